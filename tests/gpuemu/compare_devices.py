#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs commands of Taper on the CPU and on an emulated GPU, which must leave the same files, byte for byte.

    python tests/gpuemu/compare_devices.py --cpu TAPER --gpu TAPER --emulator DIR

CPU and GPU are executables of the presets default and cuda, DIR the folder of the stand-in for the CUDA runtime
(tests/gpuemu/lib in the build of default). With --device the second executable runs on the machine's GPU instead.
`--train` adds GRPO and PPO runs of two iterations, by one rank and by two, data and tensor parallel (minutes). In the
bf16 arithmetic of GPUs, responses must not depend on batch, chunks of prompts and tensor parallelism, score must give
their log-probs, and training must give the same weights on one rank and on two. Emulated ranks exchange data through
the stand-in for NCCL. A generation that changes its layout by a profile must keep its tokens. Jobs whose GPUs or
exchanges fail must end with a report. Needs no Python packages."""
import argparse
import filecmp
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/golden/models"
TRAINED = ("llama_a", "qwen2_a", "qwen3_a", "wide")
F32 = ["--arithmetic", "f32"]
SAMPLING = {"greedy": ["--temperature", 0, "--samples", 1], "plain": ["--temperature", 1, "--samples", 2],
            "truncated": ["--temperature", 0.7, "--top-k", 20, "--top-p", 0.9, "--samples", 2]}


class Side:
    """One executable, and the folder of its results. While they are written it has the same name for both, since files
    may tell it."""

    def __init__(self, taper, results, more):
        self.taper, self.results, self.environment = str(Path(taper).resolve()), results, os.environ | more

    def run(self, name, ranks, *words):
        """Returns what it says. Two ranks have a GPU each, and NCCL, if the emulator shows them two; the name says where they share one."""
        now = self.results.parent / f"now-{name}"
        now.mkdir()
        start = [] if ranks == 1 else ["mpiexec", "-n", str(ranks)]
        command = [*start, self.taper, *(str(w).replace("@", str(now)) for w in words)]
        devices = {"GPUEMU_DEVICES": "1" if name.endswith("shared") else str(ranks)}
        if name.startswith(("train", "adaptive")):  # minutes less, and nothing that the other cases do not check
            devices["GPUEMU_CHECKS"] = "none"
        done = subprocess.run(command, cwd=ROOT, env=self.environment | devices, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{name}: {' '.join(command)} ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
            (now / f"ended with {done.returncode}").touch()  # a difference, also if both sides end so
        now.rename(self.results / name)
        return done.stdout + done.stderr


def write_small_model(directory):
    """With a tokenizer, so that it can be trained on tasks."""
    shutil.copytree(MODELS / "llama_a", directory)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(ROOT / "data/model" / name, directory)


def training(*settings, run_file=()):
    """Words of a short run."""
    sets = ["Training/Iterations=2", "Rollout/Prompts=2", "Rollout/Samples Per Prompt=2", "Rollout/Max New Tokens=12",
            "Evaluation/Every=0", "Checkpoint/Every=1", "Output/Directory=@/run", *settings]
    return ["train", *run_file, *(word for s in sets for word in ("--set", s))]


def small_training(work, *settings):
    """In which rewards, which random weights do not earn, are not all that moves the weights."""
    return training(f"Model/Directory={work / 'small'}", "Algorithm/Entropy Coefficient=0.05",
                    "Optimizer/Learning Rate=1e-3", *settings)


def write_inputs(work):
    draw = random.Random(3)
    tokens = lambda low, high: [draw.randrange(3, 90) for _ in range(draw.randrange(low, high))]
    (work / "prompts.jsonl").write_text("".join(json.dumps({"prompt_tokens": tokens(2, 9)}) + "\n" for _ in range(3)))
    (work / "pairs.jsonl").write_text("".join(json.dumps(
        {"prompt_tokens": tokens(2, 9), "chosen_tokens": tokens(3, 12), "rejected_tokens": tokens(3, 12)}) + "\n"
        for _ in range(24)))
    (work / "examples.jsonl").write_text("".join(
        json.dumps({"prompt_tokens": tokens(2, 9), "tokens": tokens(3, 12)}) + "\n" for _ in range(24)))


def write_wide_model(directory):
    """A model with so many MLP columns and ids that leaves have several blocks on GPUs, the last ones cut short."""
    hidden, columns, ids = 64, 8300, 8200
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": hidden,
              "intermediate_size": columns, "vocab_size": ids, "num_hidden_layers": 1, "num_attention_heads": 4,
              "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [ids, hidden], "model.norm.weight": [hidden], "lm_head.weight": [ids, hidden],
              layer + "input_layernorm.weight": [hidden], layer + "post_attention_layernorm.weight": [hidden],
              layer + "self_attn.q_proj.weight": [hidden, hidden], layer + "self_attn.k_proj.weight": [hidden // 2, hidden],
              layer + "self_attn.v_proj.weight": [hidden // 2, hidden], layer + "self_attn.o_proj.weight": [hidden, hidden],
              layer + "mlp.gate_proj.weight": [columns, hidden], layer + "mlp.up_proj.weight": [columns, hidden],
              layer + "mlp.down_proj.weight": [hidden, columns]}
    draw, header, data = random.Random(5), {}, bytearray()
    for name, shape in shapes.items():
        begin = len(data)
        values = [draw.uniform(-0.2, 0.2) for _ in range(math.prod(shape))] if len(shape) == 2 else [1.0] * shape[0]
        data += b"".join(struct.pack("<f", value)[2:] for value in values)  # cut to bf16
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, len(data)]}
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config))
    text = json.dumps(header).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def models(work):
    return {path.name: path for path in [*sorted(MODELS.iterdir()), work / "wide"]}


def cases(work, with_training):
    """(name, ranks, words of the command); @ stands for the folder of the results."""
    for model in models(work).values():
        generate = ["generate", *F32, "--model", model, "--prompts", work / "prompts.jsonl", "--output", "@/out.jsonl",
                    "--max-new-tokens", 8]
        for name, options in SAMPLING.items():
            yield f"generate-{model.name}-{name}", 1, [*generate, *options]
        yield f"generate-{model.name}-2x1", 2, [*generate, *SAMPLING["plain"], "--layout", "2x1"]
        if model.name == "llama_b":
            for tp in (3, 4):
                yield f"generate-{model.name}-{tp}x1", tp, [*generate, *SAMPLING["plain"], "--layout", f"{tp}x1"]
        if model.name == "llama_a":
            yield f"generate-{model.name}-chunks", 1, [*generate, *SAMPLING["plain"], "--step-rows", 3]
            # Sequences that grow beyond their first page find no second one.
            yield f"generate-{model.name}-preempted", 1, [*generate[:-1], 70, *SAMPLING["plain"], "--kv-memory-mb", 0.3]
        if model.name.endswith("_a"):
            yield f"generate-{model.name}-2x1-shared", 2, [*generate, *SAMPLING["plain"], "--layout", "2x1"]
            # Responses that repeat themselves, so that there is something to draft from.
            drafts = [*generate[:-1], 24, "--temperature", 0.2, "--samples", 2, "--speculation", "fixed", "--draft-length", 3]
            yield f"generate-{model.name}-drafts", 1, drafts
            yield f"generate-{model.name}-drafts-2x1", 2, [*drafts, "--layout", "2x1"]
            if model.name == "llama_a":  # the other one is large enough for its ids
                yield f"generate-{model.name}-draft-model", 1, [*drafts, "--draft-model", MODELS / "llama_c"]
        responses = work / f"cpu/generate-{model.name}-plain/out.jsonl"
        yield f"score-{model.name}", 1, ["score", *F32, "--model", model, "--output", "@/scores.jsonl", "--input", responses]
        if model.name == "llama_a":
            exits = ["exits", *F32, "--model", model, "--layers", 1, "--vocabulary", 32, "--output", "@/exits"]
            for tp in (1, 2):
                yield f"exits-{model.name}-{tp}x1", tp, [*exits, "--layout", f"{tp}x1", "--responses", responses]
            yield f"exit_drafts-{model.name}", 1, [*drafts, "--early-exits", work / f"cpu/exits-{model.name}-1x1/exits"]
    for model in TRAINED:
        run_file = work / f"sft-{model}.yaml"
        run_file.write_text(f"Model: {{Directory: {models(work)[model]}}}\nData: {{Files: [{work / 'examples.jsonl'}]}}\n"
                            "Training: {Steps: 2, Batch Tokens: 64, Max Tokens: 128}\nOptimizer: {Learning Rate: 1e-3}\n")
        sft = ["sft", run_file, "--set", "Model/Arithmetic=f32", "--set", "Output/Directory=@/model", "--set", "Output/Run Directory=@/run"]
        yield f"sft-{model}", 1, sft
        yield f"sft-{model}-offload", 1, [*sft, "--set", "Optimizer/Offload=all"]
        for tp in (1, 2):
            yield f"sft-{model}-{tp}x{2 // tp}", 2, [*sft, "--set", f"Training/Tensor Parallel={tp}"]
        yield f"sft-{model}-1x2-shared", 2, [*sft, "--set", "Training/Tensor Parallel=1"]  # all goes through the host
        yield f"sft-{model}-1x3", 3, [*sft, "--set", "Training/Tensor Parallel=1"]  # weights are passed on
    small = work / "small"
    yield "eval", 1, ["eval", *F32, "--model", small, "--count", 4, "--max-new-tokens", 6, "--output", "@/accuracy.json"]
    reward_model = ["reward-model"]
    for setting in (f"Model/Directory={MODELS / 'llama_a'}", "Model/Arithmetic=f32", f"Data/Files={work / 'pairs.jsonl'}",
                    "Training/Steps=2", "Training/Batch Pairs=4", "Output/Directory=@/model", "Output/Run Directory=@/run"):
        reward_model += ["--set", setting]
    yield "reward_model", 1, reward_model
    yield "reward_model-2x1", 2, [*reward_model, "--set", "Training/Tensor Parallel=2"]
    if with_training:
        train = training("Model/Arithmetic=f32", run_file=["data/quickstart.yaml"])
        yield "train", 1, train
        yield "train-offload", 1, [*train, "--set", "Algorithm/KL Coefficient=0.01", "--set", "Training/Offload Reference=true",
                                   "--set", "Optimizer/Offload=all"]
        for rollout, tp in ((1, 1), (1, 2), (2, 1)):
            yield f"train-{rollout}-{tp}", 2, [*train, "--set", f"Rollout/Tensor Parallel={rollout}",
                                               "--set", f"Training/Tensor Parallel={tp}"]
        ppo = small_training(work, "Model/Arithmetic=f32", "Algorithm/Preset=ppo", "Critic/Warmup Iterations=0")
        yield "train-ppo", 1, ppo
        yield "train-ppo-placed", 2, [*ppo, "--set", "Placement/Strategy=separation"]
        yield "train-ppo-placed-2x1", 4, [*ppo, "--set", "Placement/Strategy=separation", "--set", "Training/Tensor Parallel=2",
                                          "--set", "Rollout/Tensor Parallel=2"]
        yield "train-early", 2, small_training(work, "Model/Arithmetic=f32", "Algorithm/KL Coefficient=0.05",
                                               "Training/Early Learning=true")


def turn_of(case):
    """When it comes: some need what others leave."""
    return {"score": 1, "exits": 1, "exit_drafts": 2}.get(case[0].split("-")[0], 2 if case[0].endswith("-score") else 0)


def bf16_cases(work, with_training):
    """(name, ranks, words); all but the score leave what the first of a model leaves."""
    if with_training:
        train = small_training(work, "Model/Arithmetic=bf16")
        yield "train_bf16-small", 1, train
        for rollout, tp in ((1, 1), (1, 2), (2, 1)):
            yield f"train_bf16-small-{rollout}-{tp}", 2, [*train, "--set", f"Rollout/Tensor Parallel={rollout}",
                                                          "--set", f"Training/Tensor Parallel={tp}"]
    for model in TRAINED:
        bf16 = ["--model", models(work)[model], "--arithmetic", "bf16", "--output"]
        generate = ["generate", *bf16, "@/out.jsonl", "--prompts", work / "prompts.jsonl", "--max-new-tokens", 8,
                    *SAMPLING["plain"]]
        yield f"bf16-{model}", 1, generate
        yield f"bf16-{model}-one-by-one", 1, [*generate, "--max-running", 1]
        yield f"bf16-{model}-chunks", 1, [*generate, "--step-rows", 3]
        yield f"bf16-{model}-2x1", 2, [*generate, "--layout", "2x1"]
        yield f"bf16-{model}-score", 1, ["score", *bf16, "@/out.jsonl", "--input", work / f"gpu/bf16-{model}/out.jsonl"]
        sft = ["sft", work / f"sft-{model}.yaml", "--set", "Model/Arithmetic=bf16", "--set", "Output/Directory=@/model",
               "--set", "Output/Run Directory=@/run"]
        yield f"bf16_sft-{model}", 1, sft
        for tp in (1, 2):
            yield f"bf16_sft-{model}-{tp}x{2 // tp}", 2, [*sft, "--set", f"Training/Tensor Parallel={tp}"]


def bf16_difference(work, name):
    base = "-".join(name.split("-")[:2])
    kinds = {"bf16": "out.jsonl", "bf16_sft": "model/model.safetensors",
             "train_bf16": "run/checkpoints/iter_000002/model.safetensors"}
    is_training = not name.startswith("bf16-")
    paths = [work / "gpu" / n / kinds[name.split("-")[0]] for n in (base, name)]
    if not all(path.exists() for path in paths) or any((work / "gpu" / name).glob("ended with *")):
        return ["failed"]
    if name.startswith("train") and (far := log_prob_differences(work / "gpu" / name / "run")):
        return [f"log-probs of rollout and training differ by {far}"]
    if is_training:
        return [] if filecmp.cmp(*paths, shallow=False) else [f"not as {base}"]
    lines = [[json.loads(line) for line in open(path, encoding="utf-8")] for path in paths]
    if name.endswith("-score"):
        lines = [[line["log_probs"] for line in each] for each in lines]
    return [] if lines[0] == lines[1] else [f"not as {base}"]


def log_prob_differences(run):
    """Those that are not zero."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [d for line in lines if (d := line.get("training/rollout_log_probs_diff_max", "missing")) != 0]


def far_from_f32(work, sides, model):
    """How far the log-probs of the bf16 responses are from those that the CPU gives the same tokens in f32."""
    tokens = work / f"gpu/bf16-{model}/out.jsonl"
    if not tokens.exists():
        return True
    sides[0].run(f"bf16-{model}-f32", 1, "score", *F32, "--model", models(work)[model], "--output", "@/out.jsonl", "--input", tokens)
    lines = [[json.loads(line) for line in open(path, encoding="utf-8")]
             for path in (tokens, work / f"cpu/bf16-{model}-f32/out.jsonl")]
    far = sorted(abs(a - b) for got, exact in zip(*lines) for a, b in zip(got["log_probs"], exact["log_probs"]))
    print(f"bf16-{model} against f32: difference of log-probs median {far[len(far) // 2]:.1e}, largest {far[-1]:.1e}")
    return far[-1] > 0.1


# Environment, what the report must say, and more words of the command.
FAULTS = {"no GPU": ({"GPUEMU_DEVICES": "0"}, "this rank sees none"),
          "too little memory": ({"GPUEMU_MEMORY_MB": "16"}, "and its GPU has", "--layout", "2x1", "--step-rows", "200000"),
          "NCCL fails": ({"GPUEMU_NCCL_FAULT": "1:20:error"}, "failed: remote error"),
          "NCCL fails at once": ({"GPUEMU_NCCL_FAULT": "1:2:error"}, "failed: remote error"),
          "NCCL fails later": ({"GPUEMU_NCCL_FAULT": "1:20:later"}, "NCCL reports: remote error"),
          "a split of NCCL is wrong": ({"GPUEMU_NCCL_FAULT": "1:1:split"}, "of 3 where it is number", "--layout", "2x2"),
          "a sum over GPUs hangs": ({"GPUEMU_PEER_FAULT": "1:stall"}, "no progress for more than 3 s"),
          "NCCL hangs": ({"GPUEMU_NCCL_FAULT": "1:20:stuck"}, "no progress for more than 3 s"),
          "NCCL hangs in a recorded step": ({"GPUEMU_NCCL_FAULT": "1:3:recorded", "TAPER_PEER_SUMS": "no"}, "an exchange between GPUs has not ended for"),
          "NCCL cannot be ended": ({"GPUEMU_NCCL_FAULT": "1:20:unending"}, "gpuemu nccl: aborted"),
          "a rank is killed": ({"GPUEMU_NCCL_FAULT": "1:20:killed"}, "(signal 9)")}


def survives(work, side, name):
    """Whether a job with a fault does not end as it must: soon, with a report and an exit code."""
    environment, report, *words = FAULTS[name]
    words = words or ("--layout", "2x1")
    ranks = "4" if "2x2" in words else "2"
    command = ["mpiexec", "-n", ranks, side.taper, "generate", "--model", MODELS / "llama_a", "--prompts",
               work / "prompts.jsonl", "--output", work / "fault.jsonl", "--hang-seconds", "3", *words]
    try:
        done = subprocess.run([str(w) for w in command], cwd=work, timeout=60, capture_output=True, text=True, check=False,
                              env=side.environment | {"GPUEMU_DEVICES": ranks} | environment)
    except subprocess.TimeoutExpired:
        print(f"fault '{name}': the job hangs")
        return True
    wrong = "" if done.returncode != 0 and report in done.stdout + done.stderr else done.stdout + done.stderr
    print(f"fault '{name}': {'no such report:' + wrong if wrong else 'reported'}")
    return bool(wrong)


def fails_to_adapt(work, side):
    """A profile of two emulated GPUs, and a generation that it makes change its layout, among others by repacking: not one
    token may change."""
    model = ["--model", MODELS / "llama_a", "--arithmetic", "bf16"]
    generate = ["generate", *model, "--prompts", work / "prompts.jsonl", "--max-new-tokens", 90, *SAMPLING["plain"],
                "--layout", "1x2", "--output", "@/out.jsonl"]
    side.run("adaptive-profile", 2, "profile", *model, "--budget", 1, "--max-positions", 128, "--max-batch", 2,
             "--output", "@/profile.h5")
    side.run("adaptive-static", 2, *generate)
    log = side.run("adaptive", 2, *generate, "--mode", "adaptive", "--profile", work / "gpu/adaptive-profile/profile.h5")
    responses = [work / "gpu" / name / "out.jsonl" for name in ("adaptive-static", "adaptive")]
    if not all(path.exists() for path in responses):
        return True
    is_equal = filecmp.cmp(*responses, shallow=False)
    layouts = "".join(line for line in log.splitlines(keepends=True) if line.startswith("layout "))
    print(f"adaptive: {'equal' if is_equal else 'DIFFERENT'}; {layouts.strip()}")
    return not is_equal or ", 2x1 at" not in layouts


def is_measured(path):
    """Files with times, or with the date of the build."""
    return path.suffix == ".jsonl" and path.stem == "metrics" or path.name in ("run.h5", "status.json")


def differences(cpu, gpu):
    files = lambda folder: {p.relative_to(folder) for p in folder.rglob("*") if p.is_file() and not is_measured(p)}
    ends = sorted(str(f) for f in files(cpu) | files(gpu) if str(f).startswith("ended with"))
    if ends or not files(cpu):
        return ends or ["no results"]
    return sorted(str(f) for f in files(cpu) | files(gpu)
                  if not (cpu / f).exists() or not (gpu / f).exists() or not filecmp.cmp(cpu / f, gpu / f, shallow=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", required=True)
    parser.add_argument("--gpu", required=True)
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--emulator")
    place.add_argument("--device", action="store_true")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--only", nargs="*", help="cases that begin so and no others; 'adaptive' and 'faults' are among them")
    arguments = parser.parse_args()
    begins = tuple(arguments.only) if arguments.only else ("",)
    is_whole = not arguments.only
    checks = {"adaptive", "faults"} if is_whole else set(arguments.only)
    work = Path(tempfile.mkdtemp(prefix="compare-devices-"))
    write_inputs(work)
    write_wide_model(work / "wide")
    write_small_model(work / "small")
    few = {"OMP_NUM_THREADS": "1", "KOKKOS_DISABLE_WARNINGS": "1"}
    sides = []
    for name, taper in (("cpu", arguments.cpu), ("gpu", arguments.gpu)):
        (work / name).mkdir()
        emulated = name == "gpu" and not arguments.device
        more = {"LD_LIBRARY_PATH": f"{Path(arguments.emulator).resolve()}:{os.environ.get('LD_LIBRARY_PATH', '')}"} if emulated else {}
        sides.append(Side(taper, work / name, few | more))
    def compare(case):
        name, ranks, words = case
        for side in sides:
            side.run(name, ranks, *words)
        return differences(work / "cpu" / name, work / "gpu" / name)

    def report(all_cases, results):
        for (name, *_), wrong in zip(all_cases, results):
            print(f"{name}: {'equal' if not wrong else 'DIFFERENT: ' + ', '.join(wrong)}", flush=True)
            failed.append(bool(wrong))

    failed = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for turn in range(3):
            now = [c for c in cases(work, arguments.train) if c[0].startswith(begins) and turn_of(c) == turn]
            report(now, pool.map(compare, now))
        for turn in range(3):
            now = [c for c in bf16_cases(work, arguments.train) if c[0].startswith(begins) and turn_of(c) == turn]
            list(pool.map(lambda case: sides[1].run(*case[:2], *case[2]), now))
            report(now, [bf16_difference(work, name) for name, *_ in now])
    if is_whole:
        failed += [far_from_f32(work, sides, model) for model in TRAINED]
    if arguments.emulator and "adaptive" in checks:
        failed.append(fails_to_adapt(work, sides[1]))
    if arguments.emulator and "faults" in checks:
        failed += [survives(work, sides[1], name) for name in FAULTS]
    shutil.rmtree(work)
    if not failed:
        sys.exit(f"no case begins so: {', '.join(arguments.only)}")
    sys.exit(any(failed))


main()
