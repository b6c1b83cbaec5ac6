#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares rounds of tail batching with plain ones.

    python tests/bench/tail_rounds.py --taper build/default/bin/taper --lengths straggler

Runs of data/quickstart.yaml that do not learn, with prescribed lengths: for each seed a plain run and one for each of
--rounds, written as MODE:PROMPTS:SAMPLES (Rollout/Rounds, Tail Prompts, Tail Samples) or plain, perhaps followed by
settings: tail:1.5:1,Speculation/Mode=auto. `faster` is the generation time of the first plain run over that of the other,
both for equally many trained samples: median over seeds, in brackets the least and the most. `generated` are tokens of
all responses for each token that is trained; `long` is the share of trained responses of more than half the limit, with
that of the plain run. Take a number of iterations that holds whole periods: 1.25 has five iterations, 1.5 three, 2 two.
"""

import argparse
import re
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from report.data import load_run
from taper_tables import band, iterations_without_learning, print_head, print_row

LIMIT = 1024


def run(options, folder, seed, rounds):
    mode, *settings = rounds.split(",")
    output = Path(folder) / "-".join(["run", str(seed), *re.findall(r"[\w.]+", rounds)])
    values = {
        "Run/Seed": seed,
        "Training/Iterations": options.iterations,
        "Rollout/Lengths": options.lengths,
        "Rollout/Max New Tokens": LIMIT,
    } | dict(text.split("=", 1) for text in [*options.set, *settings])
    if mode != "plain":
        mode, prompts, samples = mode.split(":")
        values |= {"Rollout/Rounds": mode, "Rollout/Tail Prompts": prompts, "Rollout/Tail Samples": samples}
    lines = iterations_without_learning(options, output, values)
    lengths = load_run(output).lengths
    trained = [int(length) for row in lengths for length in row if length >= 0]
    unkept = sum(line.get("rollout/unkept_tokens", 0) for line in lines)
    return {
        "seconds": sum(line["timing_s/gen"] for line in lines),
        "generated": 1 + unkept / sum(trained),
        "long": sum(length > LIMIT // 2 for length in trained) / len(trained),
        "waiting": lines[-1].get("rollout/waiting_prompts", 0),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--lengths", required=True, help="Rollout/Lengths of all runs")
    parser.add_argument("--rounds", nargs="+", default=["tail:1.25:1", "tail:1.5:1", "tail:2:1", "tail:1.25:1.25"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another parameter")
    parser.add_argument("--launcher", default="mpiexec -n 2 -bind-to core")
    options = parser.parse_args()
    print_head("lengths", "rounds", "faster", "generated", "long (plain)", "left waiting")
    with tempfile.TemporaryDirectory() as folder:
        results = {
            seed: {rounds: run(options, folder, seed, rounds) for rounds in ["plain", *options.rounds]}
            for seed in options.seeds
        }
    for rounds in options.rounds:
        pairs = [(of["plain"], of[rounds]) for of in results.values()]
        print_row(
            options.lengths,
            rounds,
            band([plain["seconds"] / tail["seconds"] for plain, tail in pairs], ".2f"),
            f"{statistics.mean(tail['generated'] for _, tail in pairs):.2f}",
            f"{statistics.mean(tail['long'] for _, tail in pairs):.1%} "
            f"({statistics.mean(plain['long'] for plain, _ in pairs):.1%})",
            f"{statistics.mean(tail['waiting'] for _, tail in pairs):.0f}",
        )


if __name__ == "__main__":
    main()
