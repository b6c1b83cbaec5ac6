#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times Taper beside llama.cpp, vLLM, transformers and TRL on this machine and prints Markdown tables.

    python compare_speed.py --build build/default --model DIR [--gguf FILE] [--vllm PYTHON] [--rounds 3] [--parts ...]

Needs torch, transformers, trl (and llama-cpp-python for --gguf) in the environment of this
interpreter; vLLM has one of its own (bench_vllm.py). All programs run in turn, round after round,
each alone on the machine, with two threads or two ranks of one thread; figures are medians over the
rounds, ratios are of these medians, and the spread is the largest distance of a round from its
median.

Parts: decode, prefill, training (forward and training step), ranks (tensor and data parallel
against threads), grpo (a whole iteration against TRL: 8 prompts x 4 samples x 64 tokens with KL to a
reference; ours on a copy of the model whose end of sequence is an id that is not drawn, so that
lengths are equal).
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from taper_tables import processor

HERE = Path(__file__).resolve().parent
BATCHES = [1, 8, 32, 64]
LLAMA_TYPES = ["f32", "bf16", "f16"]
TORCH_TYPES = ["float32", "bfloat16"]
# Forward weights and arithmetic of products of ours, by the names in tables.
OWN_TYPES = {"f32": ("f32", "f32"), "bf16": ("bf16", "f32"), "bf16-dot": ("bf16", "bf16-dot"),
             "bf16-tile": ("bf16", "bf16")}
Runs = collections.defaultdict  # name -> list of figures, one a round


def run_json(command, threads, may_fail=False):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="false")
    env.pop("OMP_WAIT_POLICY", None)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0 and may_fail:
        print(f"{' '.join(command)} ended with code {done.returncode}: left out", file=sys.stderr)
        return None
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{") :])


class Bench:
    def __init__(self, args):
        self.args = args
        self.figures = Runs(list)
        self.versions = {}

    def add(self, name, value):
        self.figures[name].append(value)

    def median(self, name):
        values = self.figures.get(name)
        return statistics.median(values) if values else None

    def spread(self):
        """Largest relative distance of a round from its median, over all figures."""
        worst = 0.0
        for values in self.figures.values():
            middle = statistics.median(values)
            worst = max([worst] + [abs(v - middle) / middle for v in values])
        return worst

    def own_median(self, name):
        """The median of the fastest of our types, and its name."""
        found = [(self.median(f"taper {kind} {name}") or 0, kind) for kind in self.args.types]
        return max(found)

    def ours(self, parts, prefix, kind="bf16", ranks=1, threads=2, tp=0, batches=tuple(BATCHES)):
        launcher = ["mpiexec", "-n", str(ranks)]
        dtype, arithmetic = OWN_TYPES[kind]
        if ranks > 1:
            launcher += ["-bind-to", f"core:{threads}"]
        command = launcher + [
            self.args.build / "tests/bench/bench_model",
            *("--model", self.args.model, "--dtype", dtype, "--arithmetic", arithmetic),
            *("--tp", str(tp), "--repeats", "1"),
            *("--parts", ",".join(parts), "--batches", ",".join(map(str, batches))),
        ]
        result = run_json([str(word) for word in command], threads)
        for name, value in result.items():
            if isinstance(value, dict):
                self.add(f"{prefix} {name}", value["median"])

    def transformers(self, parts):
        command = [
            *(sys.executable, HERE / "bench_trl.py", "--model", self.args.model, "--repeats", "1"),
            *("--dtypes", *TORCH_TYPES, "--parts", *parts),
        ]
        result = run_json([str(word) for word in command], 2)
        self.versions.update(result["versions"])
        for name, value in result.get("decode", {}).items():
            self.add(f"transformers {name}", value)
        for part in ("forward", "train"):
            for dtype, value in result.get(part, {}).items():
                self.add(f"transformers {dtype} {part}", value)
        for dtype, value in result.get("grpo", {}).items():
            self.add(f"trl {dtype} grpo", value["seconds"])
            self.versions["trl"] = value["trl"]
        self.add(f"transformers memory {parts[-1]}", result[f"{parts[-1]}_peak_rss_mib"])

    def add_rates(self, peer, result):
        self.versions.update(result["versions"])
        for name, value in result["decode"].items():
            self.add(f"{peer} {name}", value)
        for name, value in result["prefill"].items():
            self.add(f"{peer} prefill {name}", value)

    def llamacpp(self):
        """A process for each weight type: one that llama.cpp does not survive is left out."""
        for kind in LLAMA_TYPES:
            command = [sys.executable, HERE / "bench_llamacpp.py", "--gguf", self.args.gguf]
            command += ["--repeats", "1", "--types", kind]
            result = run_json([str(word) for word in command], 2, may_fail=True)
            if result is None:
                continue
            self.add_rates("llama.cpp", result)

    def vllm(self):
        command = [self.args.vllm, HERE / "bench_vllm.py", "--model", self.args.model, "--repeats", "1"]
        self.add_rates("vllm", run_json([str(word) for word in command], 2))

    def grpo(self, kind):
        """Seconds of an iteration of `taper train`, the first one left out."""
        dtype, arithmetic = OWN_TYPES[kind]
        with tempfile.TemporaryDirectory() as scratch:
            scratch = Path(scratch)
            model = endless_model(self.args.model, scratch / "model")
            prompts = scratch / "prompts.jsonl"
            with open(prompts, "w", encoding="utf-8") as file:
                for i in range(8):
                    text = f"Question {i}: what is {17 + i} plus {25 + 3 * i}? Answer:"
                    json.dump({"prompt": text, "ground_truth": str(42 + 4 * i)}, file)
                    file.write("\n")
            settings = {
                "Model/Directory": model,
                "Model/Weight Type": dtype,
                "Model/Arithmetic": arithmetic,
                "Data/Prompts": prompts,
                "Data/Reward Rule": "exact",
                "Rollout/Prompts": 8,
                "Rollout/Samples Per Prompt": 4,
                "Rollout/Max Prompt Tokens": 32,
                "Rollout/Max New Tokens": 64,
                "Algorithm/KL Coefficient": 0.04,
                "Training/Iterations": 3,
                "Training/Mini Batches": 1,
                "Optimizer/Learning Rate": 1e-6,
                "Output/Directory": scratch / "run",
            }
            words = ["mpiexec", "-n", "2", "-bind-to", "core", self.args.build / "bin/taper", "train"]
            (scratch / "run.yaml").write_text("Run:\n  Seed: 1\n", encoding="utf-8")
            words.append(scratch / "run.yaml")
            for name, value in settings.items():
                words += ["--set", f"{name}={value}"]
            env = dict(os.environ, OMP_NUM_THREADS="1", OMP_PROC_BIND="false")
            done = subprocess.run(
                [str(w) for w in words], env=env, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                sys.exit(f"taper train failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
            lines = (scratch / "run/metrics.jsonl").read_text(encoding="utf-8").splitlines()
            records = [json.loads(line) for line in lines]
            steps = [r["timing_s/step"] for r in records if "timing_s/step" in r]
            self.add(f"taper {kind} grpo", statistics.median(steps[1:]))


def endless_model(source, target):
    """The same weights and tokenizer with an end of sequence that is practically never drawn."""
    target.mkdir()
    for path in Path(source).iterdir():
        (target / path.name).symlink_to(path.resolve())
    for name in ("config.json", "generation_config.json"):
        if (target / name).exists():
            values = json.loads((target / name).read_text(encoding="utf-8"))
            values["eos_token_id"] = 3
            (target / name).unlink()
            (target / name).write_text(json.dumps(values), encoding="utf-8")
    return target


def cell(value, digits=0):
    return "-" if value is None else f"{value:.{digits}f}"


def ratio(a, b):
    return "-" if not a or not b else f"{a / b:.2f}x"


def decode_table(bench):
    own_types = bench.args.types
    columns = [f"transformers {t}" for t in ("f32", "bf16")] + [f"llama.cpp {t}" for t in LLAMA_TYPES]
    columns += [f"vLLM {t}" for t in ("f32", "bf16")] + [f"Taper {t}" for t in own_types]
    columns += [f"fastest Taper over {peer}" for peer in ("16/32-bit llama.cpp", "vLLM", "transformers")]
    print("| batch | " + " | ".join(columns) + " |")
    print("|" + "---|" * (len(columns) + 1))
    for batch in BATCHES:
        hf = [bench.median(f"transformers {t} batch {batch}") for t in TORCH_TYPES]
        vllm = [bench.median(f"vllm {t} batch {batch}") for t in TORCH_TYPES]
        lc = [bench.median(f"llama.cpp {t} batch {batch}") for t in LLAMA_TYPES]
        own = [bench.median(f"taper {t} decode {batch}") for t in own_types]
        digits = 1 if batch == 1 else 0
        cells = [cell(x, digits) for x in hf + lc + vllm + own]
        ratios = [ratio(max(own), max(x or 0 for x in peer)) for peer in (lc, vllm, hf)]
        print(f"| {batch} | " + " | ".join(cells + ratios) + " |")
    own, kind = bench.own_median("prefill")
    each = ", ".join(f"{t} {cell(bench.median(f'taper {t} prefill'))}" for t in own_types)
    print(f"\nPrefill of 512 tokens: Taper {each} tokens/s", end="")
    for peer, name, types in (("llama.cpp", "16/32-bit llama.cpp", LLAMA_TYPES), ("vllm", "vLLM", TORCH_TYPES)):
        best = max(bench.median(f"{peer} prefill {t}") or 0 for t in types)
        print(f"; best {name} {cell(best or None)}: {ratio(own, best)} ({kind})", end="")
    print(".")


def training_table(bench):
    own_types = bench.args.types
    print("| 8 x 256 tokens | PyTorch f32 | bf16 | " + " | ".join(f"Taper {t}" for t in own_types) +
          " | f32 over f32 | fastest over fastest |")
    print("|" + "---|" * (len(own_types) + 5))
    for part in ("forward", "train"):
        peers = [bench.median(f"transformers {t} {part}") for t in TORCH_TYPES]
        own = [bench.median(f"taper {t} {part}") for t in own_types]
        cells = [cell(x) for x in peers + own]
        same = ratio(bench.median(f"taper f32 {part}"), peers[0])
        print(f"| {part} | " + " | ".join([*cells, same, ratio(max(own), max(peers))]) + " |")


def ranks_table(bench):
    print("| decode, tokens/s | figure | against | ratio |\n|---|---|---|---|")
    one, two = bench.median("one core decode 1"), bench.median("taper bf16 decode 1")
    tp, dp = bench.median("tp2 decode 1"), bench.median("dp2 decode 16")
    threads = bench.median("taper bf16 decode 32")
    print(f"| TP 2, batch 1 | {cell(tp, 1)} | one rank, two threads: {cell(two, 1)} | {ratio(tp, two)} |")
    print(f"| TP 2, batch 1 | {cell(tp, 1)} | one rank, one thread: {cell(one, 1)} | {ratio(tp, one)} |")
    print(f"| DP 2, batch 2 x 16 | {cell(dp)} | one rank, two threads, batch 32: {cell(threads)} | "
          f"{ratio(dp, threads)} |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, required=True, help="build folder of the default preset")
    parser.add_argument("--model", type=Path, required=True, help="Hugging Face directory")
    parser.add_argument("--gguf", type=Path, help="the same model for llama.cpp")
    parser.add_argument("--vllm", type=Path, help="the Python interpreter of an environment with vLLM's CPU build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--types", nargs="+", choices=OWN_TYPES, default=["f32", "bf16", "bf16-dot"],
                        help="forward weights and arithmetic of ours: f32; bf16 weights with f32 arithmetic "
                        "(bf16), with that of dot products or of tile units")
    parts = ["decode", "training", "ranks", "grpo"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--json", type=Path, help="all figures of all rounds go here too")
    args = parser.parse_args()
    bench = Bench(args)
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
        if "decode" in args.parts:
            for kind in args.types:
                bench.ours(["decode", "prefill"], f"taper {kind}", kind)
            bench.transformers(["decode"])
            if args.gguf:
                bench.llamacpp()
            if args.vllm:
                bench.vllm()
        if "ranks" in args.parts:
            bench.ours(["decode"], "one core", threads=1, batches=[1])
            bench.ours(["decode"], "tp2", ranks=2, threads=1, tp=2, batches=[1])
            bench.ours(["decode"], "dp2", ranks=2, threads=1, tp=1, batches=[16])
            if "decode" not in args.parts or "bf16" not in args.types:
                bench.ours(["decode"], "taper bf16", batches=[1, 32])
        if "training" in args.parts:
            for kind in args.types:
                bench.ours(["forward", "train"], f"taper {kind}", kind)
            bench.transformers(["forward", "train"])
        if "grpo" in args.parts:
            for kind in args.types:
                bench.grpo(kind)
            bench.transformers(["grpo"])
    if "decode" in args.parts:
        decode_table(bench)
    if "training" in args.parts:
        print()
        training_table(bench)
    if "ranks" in args.parts:
        print()
        ranks_table(bench)
    if "grpo" in args.parts:
        own = {f"Taper {t}": bench.median(f"taper {t} grpo") for t in args.types}
        peers = {f"TRL {t}": bench.median(f"trl {t} grpo") for t in TORCH_TYPES}
        print("\nGRPO iteration: " + ", ".join(f"{k} {cell(v, 2)} s" for k, v in (own | peers).items())
              + f"; fastest over fastest: {ratio(min(peers.values()), min(own.values()))}.")
    print(f"\n{processor()}; {args.rounds} rounds, largest distance from a median {100 * bench.spread():.0f} %; "
          + ", ".join(f"{k} {v}" for k, v in sorted(bench.versions.items())) + ".")
    if args.json:
        args.json.write_text(json.dumps({"versions": bench.versions, "figures": bench.figures}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
