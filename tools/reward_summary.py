#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how the mean reward of a run moved: reward_summary.py RUN_DIR/metrics.jsonl (standard library only)"""
import json
import sys

FIRST, LAST = 5, 10  # iterations at the ends of a run whose mean rewards are compared


def window_sizes(count):
    """How many iterations of a run of `count` are its beginning and its end: they never overlap."""
    first = min(FIRST, max(1, count // 2))
    return first, max(1, min(LAST, count - first))


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
    begin, end = window_sizes(len(rewards))
    first, last = rewards[:begin], rewards[-end:]
    if len(rewards) == 1:
        print(f"  reward     {rewards[0]:.3f} in the only iteration")
    else:
        print(f"  reward     {mean(first):.3f} mean of the first {begin} of {len(rewards)} iterations, "
              f"{mean(last):.3f} of the last {end}: {mean(last) - mean(first):+.3f}")
    held_out = [f"{value:.3f}" for value in values_of(path, "val/score/mean")]
    held_out += [f"{value:.3f} (final weights)" for value in values_of(path, "val/score/final")]
    if held_out:
        print(f"  held-out   {', '.join(held_out)}")
    differences = values_of(path, "training/rollout_log_probs_diff_max")
    if differences:
        print(f"  exactness  largest difference of rollout and training log-probs: {max(differences):g}")


if __name__ == "__main__":
    main(sys.argv[1])
