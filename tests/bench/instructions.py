#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of small fixed jobs, and compares them with those that were recorded.

    python tests/bench/instructions.py --taper build/default/bin/taper            # compares
    python tests/bench/instructions.py --taper build/default/bin/taper --renew    # records

Each job runs twice under callgrind, once with more to do; the difference is free of the start. The
code is that for AVX2, whatever the processor, on one thread and one rank: the same program counts
the same on every machine and under any load, but for a few calls of libraries. Another compiler
makes other instructions, so it has records of its own. More than --margin percent above the record
is an error, and as much below it one of the record. Exit code 77: no valgrind, or no record of this
compiler.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from taper_tables import ROOT, assignments, print_head, print_row

MODEL = ROOT / "data/model"
RECORD = Path(__file__).with_suffix(".json")


def generate(folder, more):
    prompts = folder / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"{n}+{n + 5}="}) + "\n" for n in range(10, 14)))
    return ["generate", "--model", MODEL, "--prompts", prompts, "--output", folder / "responses.jsonl",
            "--max-new-tokens", 40 if more else 8, "--samples", 4, "--kv-memory-mb", 8]


def score(folder, more, arithmetic="f32"):
    lines = folder / "tokens.jsonl"
    sequences = [[(7 * i + j) % 200 for i in range(96)] for j in range(4 if more else 1)]
    lines.write_text("".join(json.dumps({"tokens": tokens}) + "\n" for tokens in sequences))
    return ["score", "--model", MODEL, "--input", lines, "--output", folder / "scores.jsonl",
            "--arithmetic", arithmetic]


def train(folder, more):
    settings = {"Model/Directory": MODEL, "Data/Task": "mix", "Rollout/Prompts": 2, "Rollout/Samples Per Prompt": 2,
                "Rollout/Max New Tokens": 16, "Rollout/KV Memory MB": 8, "Training/Max Tokens": 256,
                "Training/Iterations": 2 if more else 1, "Checkpoint/Every": 0,
                "Output/Directory": folder / f"train{more}"}
    return ["train", *assignments(settings)]


def fine_tune(folder, more):
    settings = {"Model/Directory": MODEL, "Data/Task": "mix", "Training/Steps": 2 if more else 1,
                "Training/Batch Tokens": 256, "Training/Max Tokens": 256, "Checkpoint/Every": 0,
                "Output/Directory": folder / f"tuned{more}",
                "Output/Run Directory": folder / f"sft{more}"}
    return ["sft", *assignments(settings)]


def simulate(folder, more):
    settings = {"Machine/Ranks": 16, "Play/Seeds": 1, "Play/Warm Up": 0, "Play/Iterations": 2 if more else 1,
                "Play/Oracle Points": 0, "Generation/Prompts Per Rank": 2}
    return ["simulate", *assignments(settings)]


JOBS = {"generate": generate, "score": score, "score in bf16": partial(score, arithmetic="bf16"),
        "score in bf16-dot": partial(score, arithmetic="bf16-dot"), "train": train, "sft": fine_tune, "simulate": simulate}


def count(taper, words):
    """Instructions of a whole command."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false", "TAPER_ISA": "avx2"}
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", taper, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return int(found[1])


def compiler_of(taper):
    version = subprocess.run([taper, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r", ([^,]+, \w+)\)", version)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, type=Path, help="the program")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--margin", type=float, default=5.0, help="percent above or below the record that are no error")
    parser.add_argument("--renew", action="store_true", help="records what is counted")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("valgrind is not here")
        return 77
    compiler = compiler_of(options.taper)
    records = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    recorded = records.setdefault(compiler, {})
    if not recorded and not options.renew:
        print(f"no instructions are recorded for {compiler}")
        return 77
    others = []
    print_head("job", "million instructions", "recorded", "difference")
    for name in options.jobs:
        with tempfile.TemporaryDirectory() as scratch:
            few, many = (count(options.taper, JOBS[name](Path(scratch), more)) for more in (False, True))
        now, then = many - few, recorded.get(name)
        change = 100 * (now / then - 1) if then else 0.0
        print_row(name, f"{now / 1e6:.1f}", f"{then / 1e6:.1f}" if then else "", f"{change:+.2f} %" if then else "")
        if (then is None or abs(change) > options.margin) and not options.renew:
            others.append(name)
        recorded[name] = now
    if options.renew:
        RECORD.write_text(json.dumps(records, indent=2) + "\n")
    if others:
        print(f"other numbers of instructions than recorded, or none recorded: {', '.join(others)}; if that is meant, --renew")
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main())
