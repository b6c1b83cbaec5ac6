#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the embedded model with each preset and seed, and prints a table of how rewards moved.

    python tests/bench/learning_curves.py --taper build/default/bin/taper --output curves

A run that its directory holds complete is not made again, one that stopped goes on. The settings
are those of data/quickstart.yaml without its algorithm, which is the preset's. The figures are
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
from report.summary import first_reward, last_iterations, last_reward, measured, reward_gain

PRESETS = ["grpo", "dr-grpo", "dapo", "rloo", "reinforce++", "reinforce++-baseline", "gspo", "cispo", "ppo"]
SETTINGS = {
    "Model/Directory": ROOT / "data/model",
    "Optimizer/Learning Rate": "3e-5",
    "Training/Mini Batches": 2,
    "Evaluation/Prompts": 64,
    "Checkpoint/Every": 0,
}
CRITIC = {"Critic/Learning Rate": "1e-4", "Critic/Warmup Iterations": 3}


def train(options, preset, seed, directory):
    values = SETTINGS | (CRITIC if preset == "ppo" else {}) | {
        "Algorithm/Preset": preset,
        "Run/Seed": seed,
        "Training/Iterations": options.iterations,
        "Evaluation/Every": options.iterations,
        "Output/Directory": directory,
    }
    command = [*options.launcher.split(), options.taper, "train"]
    for name, value in values.items():
        command += ["--set", f"{name}={value}"]
    with open(f"{directory}.log", "w", encoding="utf-8") as log:
        done = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"{preset}, seed {seed}: taper ended with code {done.returncode}, see {directory}.log")


def figures(directory):
    run = load_run(directory)

    def at_the_end(metric):
        return measured(run, metric)[-last_iterations(run) :].mean()

    held_out = evaluation_points(run)[1]
    return {
        "first": first_reward(run),
        "last": last_reward(run),
        "gain": reward_gain(run),
        "held-out before": held_out[0],
        "held-out after": held_out[-1],
        "entropy": at_the_end("actor/entropy"),
        "clipped": at_the_end("actor/pg_clipfrac"),
        "length": at_the_end("response_length/mean"),
    }


def mean(numbers):
    return sum(numbers) / len(numbers)


def spread(rows, name, form):
    numbers = [row[name] for row in rows]
    return f"{mean(numbers):{form}} ({min(numbers):{form}} to {max(numbers):{form}})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--presets", nargs="+", default=PRESETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--launcher", default="mpiexec -n 2 -bind-to core")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    print("| preset | first 5 | last 10 | difference | held-out before | after | entropy | clipped | length |")
    print("|---" * 9 + "|")
    for preset in options.presets:
        rows = []
        for seed in options.seeds:
            directory = options.output / f"{preset}-{seed}"
            if load_status(directory).get("state") != "completed":
                train(options, preset, seed, directory)
            rows.append(figures(directory))
        print(f"| {preset} | {mean([r['first'] for r in rows]):.3f} | {spread(rows, 'last', '.3f')} | "
              f"{spread(rows, 'gain', '+.3f')} | {mean([r['held-out before'] for r in rows]):.3f} | "
              f"{spread(rows, 'held-out after', '.3f')} | {mean([r['entropy'] for r in rows]):.3f} | "
              f"{mean([r['clipped'] for r in rows]):.4f} | {mean([r['length'] for r in rows]):.0f} |", flush=True)


if __name__ == "__main__":
    main()
