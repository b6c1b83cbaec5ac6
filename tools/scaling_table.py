#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step times and throughput of runs on different numbers of ranks: scaling_table.py RUN_DIR... (standard library only)

Medians over the iterations behind the first one, which warms up. Efficiency is the throughput per rank, relative to the
run on the fewest ranks: the same number for strong and weak scaling.
"""
import json
import sys
from pathlib import Path
from statistics import median

BAD_INPUT = 2  # exit code, as of the taper command
COLUMNS = "{:>6}  {:>10}  {:>8}  {:>8}  {:>8}  {:>10}  {:>8}  {:>10}  {}"


def read_run(directory):
    """Ranks and medians of one run; None where it has not gone beyond its first iteration."""
    with open(Path(directory) / "metrics.jsonl", encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    records = [r for r in records if "timing_s/step" in r]
    if len(records) < 2:
        return None
    first = records[0]  # throughput is that of one rank
    ranks = round(first["perf/total_num_tokens"] / first["timing_s/step"] / first["perf/throughput"])
    rest = records[1:]
    return {"directory": directory, "ranks": ranks, "iterations": len(rest),
            "step": median(r["timing_s/step"] for r in rest), "gen": median(r["timing_s/gen"] for r in rest),
            "train": median(map(train_seconds, rest)),
            "tokens": median(r["perf/throughput"] for r in rest) * ranks}


def train_seconds(record):
    """Of an iteration: PPO's critic may learn alone at first, other algorithms have none."""
    return record.get("timing_s/update_actor", 0.0) + record.get("timing_s/update_critic", 0.0)


def table(runs):
    """Lines; by number of ranks."""
    runs = sorted(runs, key=lambda run: run["ranks"])
    base = runs[0]
    lines = [COLUMNS.format("ranks", "iterations", "step s", "gen s", "train s", "tokens/s", "speed-up", "efficiency",
                            "directory")]
    for run in runs:
        faster = run["tokens"] / base["tokens"]
        lines.append(COLUMNS.format(run["ranks"], run["iterations"], f"{run['step']:.2f}", f"{run['gen']:.2f}",
                                    f"{run['train']:.2f}", f"{run['tokens']:.0f}", f"{faster:.2f}",
                                    f"{faster * base['ranks'] / run['ranks']:.2f}", run["directory"]))
    return lines


def main(directories):
    if not directories or directories[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if directories else BAD_INPUT
    runs = []
    for directory in directories:
        try:
            run = read_run(directory)
        except (OSError, ValueError, KeyError) as problem:
            print(f"error: {directory} is no run of taper train ({problem})", file=sys.stderr)
            return BAD_INPUT
        if run:
            runs.append(run)
        else:
            print(f"{directory}: fewer than two iterations, left out", file=sys.stderr)
    if not runs:
        return BAD_INPUT
    print("\n".join(table(runs)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
