#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures by how much external rewards lengthen an iteration, since workers judge while others are still generated.

    python tests/bench/reward_overlap.py --taper build/default/bin/taper

Runs of data/quickstart.yaml that do not learn, so that all have the same responses: one with the rule alone, the others
with a worker that takes a second for each response. `limit` is max(latency, responses x latency / workers - generation):
what would be waited for, were all workers busy from the start of the generation, but the last answer at least.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from taper_tables import ROOT, iterations_without_learning, print_head, print_row

WORKER = ROOT / "tests/faults/bad_worker.py"
RESPONSES, LATENCY = 128, 1.0
ITERATIONS = 5


def iterations(options, folder, workers):
    """Metrics of each iteration; 0 workers: without external rewards."""
    output = Path(folder) / f"run-{workers}"
    values = {
        "Training/Iterations": ITERATIONS,
        "Rewards/right/Kind": "task",
    }
    if workers:
        values |= {
            "Rewards/judge/Kind": "command",
            "Rewards/judge/Command": f"[{sys.executable}, {WORKER}, slow, {folder}, {LATENCY}]",
            "Rewards/judge/Workers": workers,
        }
    return iterations_without_learning(options, output, values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--workers", nargs="+", type=int, default=[16, 32, 64], help="on each rank")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mpiexec", default="mpiexec -bind-to core", help="starts ranks, as many as -n behind it says")
    options = parser.parse_args()
    options.launcher = f"{options.mpiexec} -n {options.ranks}"
    print_head("workers", "generation, s", "longer by, s", "limit, s", "longer by / limit, median (least to most)")
    with tempfile.TemporaryDirectory(prefix="taper-overlap-") as folder:
        alone = iterations(options, folder, 0)
        for workers in options.workers:
            judged = iterations(options, folder, workers)
            longer = [b["timing_s/step"] - a["timing_s/step"] for a, b in zip(alone, judged)]
            generation = [a["timing_s/gen"] for a in alone]
            limits = [max(LATENCY, RESPONSES * LATENCY / (options.ranks * workers) - g) for g in generation]
            shares = [a / b for a, b in zip(longer, limits)]
            medians = [f"{statistics.median(values):.2f}" for values in (generation, longer, limits, shares)]
            medians[-1] += f" ({min(shares):.2f} to {max(shares):.2f})"
            print_row(f"{options.ranks} x {workers}", *medians)


if __name__ == "__main__":
    main()
