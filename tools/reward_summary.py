#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how the mean reward of a run moved: reward_summary.py RUN_DIR/metrics.jsonl (standard library only)"""
import json
import sys

FIRST, LAST = 5, 10


def mean(values):
    return sum(values) / len(values)


def values_of(path, name):
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            value = json.loads(line).get(name)
            if value is not None:
                found.append(float(value))
    return found


def main(path):
    rewards = values_of(path, "critic/score/mean")
    if not rewards:
        sys.exit(f"{path}: no critic/score/mean in it")
    first, last = rewards[:FIRST], rewards[-LAST:]
    print(f"  reward     {mean(first):.3f} mean of the first {len(first)} iterations, "
          f"{mean(last):.3f} of the last {len(last)}: {mean(last) - mean(first):+.3f}")
    held_out = values_of(path, "val/score/mean")
    held_out += values_of(path, "val/score/final")
    if held_out:
        print(f"  held-out   {', '.join(f'{value:.3f}' for value in held_out)}")
    differences = values_of(path, "training/rollout_log_probs_diff_max")
    if differences:
        print(f"  exactness  largest difference of rollout and training log-probs: {max(differences):g}")


if __name__ == "__main__":
    main(sys.argv[1])
