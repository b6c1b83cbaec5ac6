#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares runs whose rewards are spread to the largest variance (Algorithm/Reward Adjustment) with runs as they are.

    python tests/bench/reward_variance.py --taper build/default/bin/taper --run-file data/preferred.yaml --output spread \\
        --reward reward/preferred/mean --task reward/right/mean --launcher "mpiexec -n 1"

For each preset and seed a plain run and an adjusted one. `iterations` is when the mean reward of five iterations first
reaches that of the plain run's last five, in the adjusted run over in the plain one: the geometric mean over seeds, and a
band that holds it with 95 % (Student's t of the logarithms). A run that never gets there counts as if it did with its
last iteration, and is told. Rewards and the task's score are those of the last five iterations, means over seeds, in
brackets the least and the most. Runs that are there complete are not made again."""

import argparse
import math
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from learning_curves import spread, train
from report.data import load_run, load_status
from report.summary import measured
from taper_tables import print_head, print_row

WINDOW = 5
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}  # 97.5 %, by freedom
COLUMNS = ["preset", "iterations (95 %)", "not reached", "reward, plain", "adjusted", "task, plain", "adjusted"]


def windows(curve):
    return [curve[i - WINDOW : i].mean() for i in range(WINDOW, len(curve) + 1)]


def reached(curve, level):
    """The iteration with which a window reaches the level; None if none does."""
    return next((i + WINDOW for i, mean in enumerate(windows(curve)) if mean >= level), None)


def band(ratios):
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.mean(logs)
    if len(logs) < 2:
        return f"{math.exp(middle):.2f}"
    half = STUDENT[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{math.exp(middle):.2f} ({math.exp(middle - half):.2f} to {math.exp(middle + half):.2f})"


def run(options, preset, seed, adjustment):
    directory = options.output / f"{preset}-{adjustment}-{seed}"
    if load_status(directory).get("state") != "completed":
        options.set = [*options.more, f"Algorithm/Reward Adjustment={adjustment}"]
        train(options, preset, seed, directory)
    return load_run(directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--run-file", required=True)
    parser.add_argument("--set", dest="more", action="append", default=[], metavar="NAME=VALUE", help="another parameter")
    parser.add_argument("--presets", nargs="+", default=["grpo", "dr-grpo"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--reward", required=True, help="the metric that the runs learn, before the adjustment")
    parser.add_argument("--task", required=True, help="the metric that is meant")
    parser.add_argument("--launcher", default="mpiexec -n 2 -bind-to core")
    options = parser.parse_args()
    if len(options.seeds) > max(STUDENT) + 1:
        parser.error(f"--seeds: at most {max(STUDENT) + 1}, as many as the table of Student's distribution here is for")
    options.output.mkdir(parents=True, exist_ok=True)
    print_head(*COLUMNS)
    for preset in options.presets:
        ratios, late, rows = [], 0, []
        for seed in options.seeds:
            plain, adjusted = (run(options, preset, seed, adjustment) for adjustment in ("none", "variance"))
            level = windows(measured(plain, options.reward))[-1]
            iteration = reached(measured(adjusted, options.reward), level)
            late += iteration is None
            ratios.append((iteration or options.iterations) / reached(measured(plain, options.reward), level))
            rows.append({
                f"{metric} {name}": windows(measured(of, key))[-1]
                for name, of in (("plain", plain), ("adjusted", adjusted))
                for metric, key in (("reward", options.reward), ("task", options.task))
            })
        figures = [f"{metric} {name}" for metric in ("reward", "task") for name in ("plain", "adjusted")]
        print_row(preset, band(ratios), str(late), *(spread(rows, figure, ".3f") for figure in figures))


if __name__ == "__main__":
    main()
