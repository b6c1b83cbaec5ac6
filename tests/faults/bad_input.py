#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input to `taper train`: each case must end with its exit code, name what is wrong, and write nothing; with --check
as without."""

import json
import os
import resource
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from taper_runs import Runs, arguments


@dataclass
class Case:
    name: str
    expect: list[str]                       # words of the message
    set: dict = field(default_factory=dict)  # parameters that differ from the small run
    more: list = field(default_factory=list)  # further words; FOLDER stands for the scratch folder
    prepare: Callable[[Path], None] = lambda folder: None  # damages the scratch folder
    ranks: int = 0
    env: dict = field(default_factory=dict)
    prefix: list = field(default_factory=list)
    needs: Callable[[], bool] = lambda: True
    preexec: Callable[[], None] | None = None
    code: int = 2


def edit_config(**changes) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / "model/config.json"
        file.write_text(json.dumps(dict(json.loads(file.read_text()), **changes)))
    return edit


def write(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text)


def cut_weights(folder: Path) -> None:
    for file in sorted((folder / "model").glob("*.safetensors"))[-1:]:
        os.truncate(file, file.stat().st_size // 2)


def flip_header(folder: Path) -> None:
    file = sorted((folder / "model").glob("*.safetensors"))[-1]
    data = bytearray(file.read_bytes())
    data[7] = 0x7F  # the header would be exabytes long
    file.write_bytes(data)


def garbage(folder: Path) -> None:
    file = sorted((folder / "model").glob("*.safetensors"))[-1]
    file.write_bytes(b"\xfe" * file.stat().st_size)


def whole_numbers(folder: Path) -> None:
    """Weights of a type that is no weight's, in tensors of the same size."""
    for file in (folder / "model").glob("*.safetensors"):
        file.write_bytes(file.read_bytes().replace(b'"F32"', b'"I32"').replace(b'"BF16"', b'"I16" '))


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def limit_address_space() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def two_cores() -> bool:
    return len(os.sched_getaffinity(0)) > 1


LINE = '{"prompt": "%s", "ground_truth": "1", "data_source": "x"}\n'
FILE = {"Data/Prompts": "FOLDER/prompts.jsonl", "Data/Reward Rule": "exact", "Evaluation/Every": 0}

CASES = [
    Case("unknown parameter", ["Rollout/Temprature", "Temperature"], {"Rollout/Temprature": 1}),
    Case("unknown section", ["Rolout", "Rollout"], {"Rolout/Prompts": 1}),
    Case("unknown parameter in the run file", ["run.yaml", "Sead", "Seed"], more=["FOLDER/run.yaml"],
         prepare=write("run.yaml", "Run:\n  Sead: 1\n")),
    Case("broken run file", ["run.yaml line 2"], more=["FOLDER/run.yaml"],
         prepare=write("run.yaml", "Run:\n  Seed: [1\n")),
    Case("wrong type", ["Rollout/Prompts", "many", "integer"], {"Rollout/Prompts": "many"}),
    Case("out of range", ["Rollout/Top P", "1.5"], {"Rollout/Top P": 1.5}),
    Case("unknown choice", ["Model/Weight Type", "fp8", "bf16"], {"Model/Weight Type": "fp8"}),
    Case("unknown option", ["--resum", "--resume"], more=["--resum", "none"]),
    Case("unknown option on several ranks", ["--resum", "--resume"], more=["--resum", "none"], ranks=3),
    Case("unknown parameter on several ranks", ["Rollout/Temprature"], {"Rollout/Temprature": 1}, ranks=3),
    Case("no model on several ranks", ["Model/Directory is FOLDER/nowhere"], {"Model/Directory": "FOLDER/nowhere"}, ranks=2),
    Case("no run file", ["nowhere.yaml"], more=["FOLDER/nowhere.yaml"]),
    Case("no model", ["Model/Directory is FOLDER/nowhere"], {"Model/Directory": "FOLDER/nowhere"}),
    Case("no model at a relative path", ["Model/Directory is nowhere", "working directory, " + os.getcwd()],
         {"Model/Directory": "nowhere"}),
    Case("no model at a path with a blank", ["Model/Directory is 'FOLDER/no where'"],
         {"Model/Directory": "FOLDER/no where"}),
    Case("no model named", ["--set Model/Directory=: Model/Directory is not set", "name a run file"],
         {"Model/Directory": ""}),
    Case("a model without config", ["Model/Directory is FOLDER", "no config.json"], {"Model/Directory": "FOLDER"}),
    Case("no tokenizer", ["model/tokenizer.json is missing"], prepare=remove("model/tokenizer.json")),
    Case("no shard", ["model-00002-of-00002.safetensors", "no such file"],
         prepare=remove("model/model-00002-of-00002.safetensors")),
    Case("garbage for weights", ["model-00002-of-00002.safetensors"], prepare=garbage),
    Case("weights of whole numbers", ["FOLDER/model", "dtype I", "convert"], prepare=whole_numbers),
    Case("no weights", ["model", "safetensors"],
         prepare=lambda folder: [f.unlink() for f in (folder / "model").glob("*.safetensors*")] and None),
    Case("no prompts", ["prompts.jsonl"], FILE),
    Case("no checkpoint", ["iter_9"], more=["--resume", "FOLDER/iter_9"]),
    Case("truncated safetensors", [".safetensors", "truncated"], prepare=cut_weights),
    Case("damaged safetensors header", [".safetensors", "header"], prepare=flip_header),
    Case("wrong shapes", ["FOLDER/model", "mlp", "shape", "config.json"], prepare=edit_config(intermediate_size=128)),
    Case("missing layer", ["model.layers.2", "config.json"], prepare=edit_config(num_hidden_layers=3)),
    Case("vocabulary mismatch", ["tokenizer.json", "vocab_size", "100"], prepare=edit_config(vocab_size=100)),
    Case("unsupported model type", ["config.json", "model_type", "gpt2", "llama"],
         prepare=edit_config(model_type="gpt2")),
    Case("broken config", ["config.json"], prepare=write("model/config.json", "{")),
    Case("broken tokenizer", ["tokenizer.json"], prepare=write("model/tokenizer.json", "{}")),
    Case("a directory for prompts", ["Data/Prompts is FOLDER (a directory)"], dict(FILE, **{"Data/Prompts": "FOLDER"})),
    Case("a number for a prompt", ["prompts.jsonl:1", "'prompt' is 3", "a text or a list of messages"], FILE,
         prepare=write("prompts.jsonl", '{"prompt": 3, "ground_truth": "1"}\n')),
    Case("unknown role", ["prompts.jsonl:1", "role 'usr'"], FILE,
         prepare=write("prompts.jsonl", '{"prompt": [{"role": "usr", "content": "x"}], "ground_truth": "1"}\n')),
    Case("all prompts longer than allowed", ["prompts.jsonl", "longer", "Rollout/Max Prompt Tokens"], FILE,
         prepare=write("prompts.jsonl", LINE % ("x" * 200))),
    Case("prompt and response longer than the context", ["Rollout/Max New Tokens", "256"],
         {"Rollout/Max New Tokens": 1000}),
    Case("no ground truth", ["prompts.jsonl:1", "ground_truth"], FILE,
         prepare=write("prompts.jsonl", '{"prompt": "x"}\n')),
    Case("a broken line", ["prompts.jsonl:2", "JSON", "one object per line"], FILE,
         prepare=write("prompts.jsonl", LINE % "x" + "{\n")),
    Case("no prompt", ["prompts.jsonl:2", "exactly one of 'prompt'", "remove the line"], FILE,
         prepare=write("prompts.jsonl", LINE % "x" + '{"ground_truth": "1"}\n')),
    Case("an empty prompt", ["prompts.jsonl:2", "the prompt is empty", "remove the line"], FILE,
         prepare=write("prompts.jsonl", LINE % "x" + LINE % "")),
    Case("an answer of another type", ["prompts.jsonl:1", "'ground_truth' is {", "as a text"], FILE,
         prepare=write("prompts.jsonl", '{"prompt": "x", "ground_truth": {"a": 1}}\n')),
    Case("weights for other files", ["Data/Weights has 2 numbers for 1 file"], dict(FILE, **{"Data/Weights": "[1, 2]"}),
         prepare=write("prompts.jsonl", LINE % "x")),
    Case("no held-out prompts of a set", ["Evaluation/Sets/a/Prompt File is FOLDER/nowhere"],
         {"Evaluation/Sets/a/Prompt File": "FOLDER/nowhere", "Evaluation/Sets/a/Reward Rule": "exact"}),
    Case("a set that cannot be", ["Evaluation/Sets/a/Samples is 3", "all the same"],
         {"Evaluation/Sets/a/Samples": 3, "Evaluation/Sets/a/Prompts": 3}),
    Case("the best of nothing", ["Evaluation/Best By is val/a/avg@1", "the metrics are val/score/mean"],
         {"Evaluation/Best By": "val/a/avg@1"}),
    Case("ranks not divisible", ["Rollout/Tensor Parallel", "2", "3 ranks"], {"Rollout/Tensor Parallel": 2}, ranks=3),
    Case("degrees that do not nest", ["Tensor Parallel", "2", "3", "6 ranks"],
         {"Rollout/Tensor Parallel": 2, "Training/Tensor Parallel": 3}, ranks=6),
    Case("a layout of other ranks", ["Rollout/Layout is 3x1", "there are 2"], {"Rollout/Layout": "3x1"}, ranks=2),
    Case("no layout", ["Rollout/Layout is 'foo'", "TPxDP"], {"Rollout/Layout": "foo"}),
    Case("no profile", ["Rollout/Profile is nowhere.h5", "taper profile"],
         {"Rollout/Mode": "advise", "Rollout/Profile": "nowhere.h5"}),
    Case("more ranks than units", ["tensor-parallel degree 4", "MLP"], {"Training/Tensor Parallel": 4}, ranks=4),
    Case("too little memory for one sequence", ["Rollout/KV Memory MB", "0.01"], {"Rollout/KV Memory MB": 0.01}),
    Case("too little memory on the host", ["memory plan", "Training/Max Tokens"], {"Training/Max Tokens": 1 << 26}),
    Case("too little address space", ["memory plan", "Training/Max Tokens"], {"Training/Max Tokens": 1 << 19},
         preexec=limit_address_space),
    Case("unknown instruction set", ["TAPER_ISA is 'sse'", "avx2"], env={"TAPER_ISA": "sse"}),
    Case("ranks of another MPI", ["OMPI_COMM_WORLD_SIZE=2", "mpiexec"], env={"OMPI_COMM_WORLD_SIZE": "2"}),
    Case("ranks of srun without PMI", ["SLURM_NTASKS=4", "srun --mpi=pmi2"], env={"SLURM_NTASKS": "4"}),
    Case("ranks pinned to one core", ["ranks 0 and 1", "core", "-bind-to core"], ranks=2,
         prefix=["taskset", "-c", str(min(os.sched_getaffinity(0)))], needs=two_cores),
    Case("output is a file", ["Output/Directory", "FOLDER/run"], prepare=write("run", "")),
    Case("output below a file", ["Output/Directory", "FOLDER/file/run"],
         {"Output/Directory": "FOLDER/file/run"}, prepare=write("file", "")),
    Case("output where nothing can be", ["Output/Directory", "/proc/taper"], {"Output/Directory": "/proc/taper"}),
    Case("fewer rows than sequences", ["--set Rollout/Step Rows=10: Rollout/Step Rows is 10", "Max Running 64"],
         {"Rollout/Step Rows": 10}),
    Case("too many sequences", ["--set Rollout/Max Running=999999999", "between 1 and 1048576"],
         {"Rollout/Max Running": 999999999}),
    Case("a cosine without an end", ["--set Optimizer/Schedule=cosine", "Optimizer/Total Steps is 0"],
         {"Optimizer/Schedule": "cosine"}),
    Case("one sample per prompt", ["Rollout/Samples Per Prompt is 1", "raise it"], {"Rollout/Samples Per Prompt": 1}),
    Case("greedy rollouts", ["Rollout/Temperature is 0", "above 0"], {"Rollout/Temperature": 0}),
    Case("more mini-batches than prompts", ["Training/Mini Batches is 5", "Rollout/Prompts 4"],
         {"Training/Mini Batches": 5}),
    Case("a rule that no task fits", ["Data/Reward Rule", "Data/Prompts"], {"Data/Reward Rule": "boxed"}),
    Case("unknown task", ["Data/Task", "chess", "collatz"], {"Data/Task": "chess"}),
    Case("no prompts to evaluate on", ["Evaluation/Every is 1", "Data/Evaluation Prompts"],
         dict(FILE, **{"Evaluation/Every": 1}), prepare=write("prompts.jsonl", LINE % "x")),
]


def fill(value, folder: Path):
    return value.replace("FOLDER", str(folder)) if isinstance(value, str) else value


def problems_of(case: Case, args, more: list) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="taper-bad-input-") as scratch:
        folder = Path(scratch)
        runs = Runs(args, folder)
        model = runs.make_model()
        case.prepare(folder)
        before = sorted(folder.rglob("*"))
        changes = {key: fill(value, folder) for key, value in case.set.items()}
        words = runs.train(model, folder / "run", **changes) + [fill(w, folder) for w in case.more + more]
        outcome = runs.run(words, case.ranks, env=case.env, prefix=case.prefix, preexec_fn=case.preexec)
        problems = [f"no word of '{fill(w, folder)}'" for w in case.expect if fill(w, folder) not in outcome.text]
        if outcome.timed_out:
            problems.append("did not end")
        elif outcome.code != case.code:
            problems.append(f"exit code {outcome.code} instead of {case.code}")
        if (said := outcome.text.count("error: ")) != 1:
            problems.append(f"said {said} times")
        if "(unexpected)" in outcome.text:
            problems.append("the error was not foreseen")
        new = [p for p in sorted(folder.rglob("*")) if p not in before]
        if new:
            problems.append(f"left {', '.join(str(p.relative_to(folder)) for p in new)}")
        return problems + [outcome.text.strip()] if problems else []


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--skip", default="", help="the name of a case to leave out")
    args = parser.parse_args()
    failed = 0
    for case in CASES:
        if args.only not in case.name or case.name == args.skip or not case.needs():
            continue
        for more in ([], ["--check"]):
            problems = problems_of(case, args, more)
            failed += bool(problems)
            print(f"{' '.join([case.name, *more])}: {'; '.join(problems) if problems else 'ok'}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
