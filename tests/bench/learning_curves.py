#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with each preset and seed, and prints a table of how rewards moved.

    python tests/bench/learning_curves.py --taper build/default/bin/taper --output curves

Without --run-file these are runs of the embedded model on the in-tree tasks, with the settings of
data/quickstart.yaml but for its algorithm, which is the preset's. --score NAME follows another
metric than the reward, for example the true reward of a run that sees a reward model's alone.

A run that its directory holds complete is not made again, one that stopped goes on. The figures are
those of `taper report curves/PRESET-*`, which draws the pictures, and it takes the same Python:
means over seeds, in brackets the least and the most.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from report.data import load_run, load_status
from report.evaluation import evaluation_points
from report.summary import measured, reward_metric, total_seconds
from reward_summary import window_sizes
from taper_tables import assignments, print_head, print_row

PRESETS = ["grpo", "dr-grpo", "dapo", "rloo", "reinforce++", "reinforce++-baseline", "gspo", "cispo", "ppo"]
SETTINGS = {
    "Model/Directory": ROOT / "data/model",
    "Optimizer/Learning Rate": "3e-5",
    "Training/Mini Batches": 2,
    "Evaluation/Prompts": 64,
    "Checkpoint/Every": 0,
}
# Title: figure, format. Entropy and length are those of the end, the clip fraction that of the whole run.
COLUMNS = {
    "first 5": ("first", ".3f"),
    "last 10": ("last", ".3f"),
    "difference": ("gain", "+.3f"),
    "held-out before": ("before", ".3f"),
    "after": ("after", ".3f"),
    "entropy": ("entropy", ".3f"),
    "clipped": ("clipped", ".5f"),
    "length": ("length", ".0f"),
    "minutes": ("minutes", ".1f"),
}
CRITIC = {"Critic/Learning Rate": "1e-4", "Critic/Warmup Iterations": 3}


def settings(options, preset):
    if options.run_file:
        return [options.run_file]
    values = SETTINGS | (CRITIC if preset == "ppo" else {})
    return assignments(values | {"Evaluation/Every": options.iterations})


def train(options, preset, seed, directory):
    values = {
        "Algorithm/Preset": preset,
        "Run/Seed": seed,
        "Training/Iterations": options.iterations,
        "Output/Directory": directory,
    } | dict(text.split("=", 1) for text in options.set)
    command = [*options.launcher.split(), options.taper, "train"]
    command += settings(options, preset) + assignments(values)
    with open(f"{directory}.log", "w", encoding="utf-8") as log:
        done = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"{preset}, seed {seed}: taper ended with code {done.returncode}, see {directory}.log")


def figures(directory, score):
    run = load_run(directory)
    name = score or reward_metric(run)
    scores = measured(run, name)
    if len(scores) == 0:
        sys.exit(f"{directory} has no metric {name}; `taper inspect {directory}/run.h5` lists those it has")
    first, last = window_sizes(len(scores))

    def at_the_end(metric):
        return measured(run, metric)[-last:].mean()

    held_out = evaluation_points(run)[1]
    found = {
        "first": scores[:first].mean(),
        "last": scores[-last:].mean(),
        "entropy": at_the_end("actor/entropy"),
        "clipped": measured(run, "actor/pg_clipfrac").mean(),
        "length": at_the_end("response_length/mean"),
        "minutes": total_seconds(run) / 60,
    }
    found["gain"] = found["last"] - found["first"]
    if len(held_out):
        found |= {"before": held_out[0], "after": held_out[-1]}
    return found


def mean(numbers):
    return sum(numbers) / len(numbers)


def spread(rows, name, form):
    numbers = [row[name] for row in rows if name in row]
    if not numbers:
        return ""
    least, most = min(numbers), max(numbers)
    return f"{mean(numbers):{form}}" + (f" ({least:{form}} to {most:{form}})" if least < most else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--run-file", help="a run file for `taper train`, in place of the embedded model's settings")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another parameter")
    parser.add_argument("--presets", nargs="+", default=PRESETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--score", help="the metric to follow (default: the reward)")
    parser.add_argument("--launcher", default="mpiexec -n 2 -bind-to core")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    print_head("preset", *COLUMNS)
    for preset in options.presets:
        rows = []
        for seed in options.seeds:
            directory = options.output / f"{preset}-{seed}"
            if load_status(directory).get("state") != "completed":
                train(options, preset, seed, directory)
            rows.append(figures(directory, options.score))
        print_row(preset, *(spread(rows, name, form) for name, form in COLUMNS.values()))


if __name__ == "__main__":
    main()
