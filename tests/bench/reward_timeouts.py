#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what adaptive timeouts save of the wait for rewards if a few answers are doomed.

    python tests/bench/reward_timeouts.py --taper build/default/bin/taper

Runs of data/quickstart.yaml that do not learn, on the same 16 prompts in each iteration, with a worker that takes 0.2 s
for an answer and 30 s for one in twenty, which then gets 0: one run with the plain time-out, one with an adaptive one.
In its first iteration nothing is known of the prompts; the table has the seconds of the phase `reward` after it.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from taper_tables import ROOT, iterations_without_learning, print_head, print_row

WORKER = ROOT / "tests/faults/bad_worker.py"
DOOMED, PROMPTS = 30.0, 16


def iterations(options, folder, name, more):
    """Metrics of each iteration."""
    prompts = Path(folder) / "prompts.jsonl"
    lines = [json.dumps({"prompt": f"{i} + 1 = ", "ground_truth": str(i + 1)}) for i in range(PROMPTS)]
    prompts.write_text("\n".join(lines) + "\n")
    output = Path(folder) / name
    values = {
        "Data/Prompts": prompts,
        "Rollout/Prompts": PROMPTS,
        "Rollout/Max New Tokens": 64,
        "Training/Iterations": options.iterations,
        "Rewards/judge/Kind": "command",
        "Rewards/judge/Command": f"[{sys.executable}, {WORKER}, doomed, {folder}, {DOOMED}]",
        "Rewards/judge/Workers": 16,
        "Rewards/judge/On Error": "zero",
    } | more
    return iterations_without_learning(options, output, values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--launcher", default="mpiexec -n 2 -bind-to core")
    options = parser.parse_args()
    print_head("timeout", "first iteration, s", "later ones, s: median (least to most)", "mean reward", "cut short")
    with tempfile.TemporaryDirectory(prefix="taper-timeouts-") as folder:
        for name, more in (
            ("plain", {}),
            ("adaptive", {"Rewards/judge/Adaptive Timeout/Most": DOOMED}),
        ):
            lines = iterations(options, folder, name, more)
            seconds = [line["timing_s/reward"] for line in lines]
            later = f"{statistics.median(seconds[1:]):.1f} ({min(seconds[1:]):.1f} to {max(seconds[1:]):.1f})"
            reward = statistics.mean(line["reward/judge/mean"] for line in lines)
            cut = sum(line.get("reward/judge/cut_short", 0) for line in lines)
            print_row(name, f"{seconds[0]:.1f}", later, f"{reward:.3f}", f"{cut:.0f}")


if __name__ == "__main__":
    main()
