#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what ranks of a host save by keeping weights in one copy, and prints Markdown tables.

    python tests/bench/shared_weights.py --build build/default --model DIR

Runs with and without shared weights (TAPER_SHARE_WEIGHTS=no) take turns. The first table trains on
1, 2, 4 replicas of one rank, each with the same work: memory of all ranks together (the sum of
their proportional set sizes, in which a page that several map counts once), most at any time, and
the time to publish. The second decodes on two replicas of one rank with one thread each, beside one
rank with two threads and as many sequences. Memory does not depend on cores; times need a core for
each rank.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from taper_tables import ROOT, assignments, band, output_of, print_head, print_row



def children(process):
    """Numbers of the processes below this one, itself too."""
    below = (Path("/proc") / str(process) / "task" / str(process) / "children").read_text().split()
    return [process, *(number for child in below for number in children(int(child)))]


def proportional_mib(process):
    """Of a process and those below it; 0 while some of them end."""
    try:
        texts = [(Path("/proc") / str(number) / "smaps_rollup").read_text() for number in children(process)]
    except OSError:
        return 0.0
    lines = (line.split() for text in texts for line in text.splitlines())
    return sum(int(words[1]) for words in lines if words[0] == "Pss:") / 1024


def environment(shared, threads):
    return {"TAPER_SHARE_WEIGHTS": "yes" if shared else "no", "OMP_NUM_THREADS": str(threads)}


def train(options, ranks, shared, directory):
    """Most memory of all ranks in MiB, and seconds to publish of each iteration."""
    taper = Path(options.build) / "bin/taper"
    settings = {
        "Model/Directory": options.model,
        "Rollout/Prompts": ranks,
        "Rollout/Samples Per Prompt": 2,
        "Rollout/Max New Tokens": 16,
        "Rollout/KV Memory MB": 64,
        "Training/Max Tokens": 256,
        "Training/Mini Batches": 1,
        "Training/Iterations": options.iterations,
        "Evaluation/Every": 0,
        "Checkpoint/Every": 0,
        "Output/Directory": directory,
    } | dict(setting.split("=", 1) for setting in options.set)
    command = ["mpiexec", "-n", str(ranks), taper, "train", *assignments(settings)]
    with tempfile.TemporaryFile("w+") as log:
        job = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | environment(shared, 1))
        most = 0.0
        while job.poll() is None:
            most = max(most, proportional_mib(job.pid))
            time.sleep(0.2)
        log.seek(0)
        if job.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))} ended with code {job.returncode}:\n{log.read()[-3000:]}")
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return most, [line["timing_s/publish"] for line in lines if "timing_s/publish" in line]


def decode(options, ranks, threads, batches, shared):
    """Tokens per second at each number of sequences of a rank."""
    command = ["mpiexec", "-n", str(ranks), *(["-bind-to", "core"] if ranks > 1 else [])]
    command += [Path(options.build) / "tests/bench/bench_model", "--model", options.model, "--tp", "1"]
    command += ["--parts", "decode", "--repeats", "3", "--batches", ",".join(map(str, batches))]
    figures = json.loads(output_of(command, environment(shared, threads)))
    return [figures[f"decode {batch}"]["median"] for batch in batches]


def train_table(options):
    print_head("replicas", "memory, own copies, MiB", "shared", "publish, own copies, ms", "shared")
    for ranks in options.ranks:
        memory, publish = {True: [], False: []}, {True: [], False: []}
        for turn in range(options.rounds):
            for shared in (False, True):
                with tempfile.TemporaryDirectory() as scratch:
                    most, seconds = train(options, ranks, shared, Path(scratch) / str(turn))
                memory[shared].append(most)
                publish[shared].append(1e3 * statistics.median(seconds))
        print_row(
            str(ranks),
            *(band(memory[shared], ".0f") for shared in (False, True)),
            *(band(publish[shared], ".1f") for shared in (False, True)),
        )


def decode_table(options):
    batches = options.batches
    rates = {kind: [] for kind in ("threads", "own", "shared")}
    for _ in range(options.rounds):
        rates["threads"].append(decode(options, 1, 2, [2 * batch for batch in batches], False))
        rates["own"].append(decode(options, 2, 1, batches, False))
        rates["shared"].append(decode(options, 2, 1, batches, True))
    print_head("sequences", "one rank, two threads", "two replicas, own copies", "shared", "shared over one rank")
    for place, batch in enumerate(batches):
        of = {kind: [turn[place] for turn in turns] for kind, turns in rates.items()}
        ratios = [shared / threads for shared, threads in zip(of["shared"], of["threads"])]
        print_row(str(2 * batch), *(band(of[kind], ".0f") for kind in rates), band(ratios, ".2f"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", default=ROOT / "build/default")
    parser.add_argument("--model", required=True, help="a Hugging Face directory")
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 4, 16], help="sequences of a replica")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--set", action="append", default=[], help='of the training, e.g. "Algorithm/KL Coefficient=0.01"')
    options = parser.parse_args()
    if options.ranks:
        train_table(options)
    if options.batches:
        print()
        decode_table(options)


if __name__ == "__main__":
    main()
