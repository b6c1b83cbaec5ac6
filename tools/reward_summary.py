#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how the mean reward of a run moved: reward_summary.py RUN_DIR/metrics.jsonl (standard library only)"""
import json
import sys

from report.words import count_text

FIRST, LAST = 5, 10  # iterations at the ends of a run whose mean rewards are compared


def window_sizes(count):
    """How many iterations of a run of `count` are its beginning and its end: they never overlap."""
    first = min(FIRST, max(1, count // 2))
    return first, max(1, min(LAST, count - first))


def mean(values):
    return sum(values) / len(values)


def values_of(lines, name):
    return [float(line[name]) for line in lines if line.get(name) is not None]


def held_out_scores(lines):
    """Of each evaluation in order, as text; that of the weights behind the last line says so."""
    scores = {}  # by iterations trained: the end of a run that went on is the start of what follows
    for line in lines:
        step = int(line["step"])
        for name, trained in (("val/score/mean", step - 1), ("val/score/final", step)):
            if line.get(name) is not None:
                scores[trained] = float(line[name])
    last = int(lines[-1]["step"])
    return [f"{scores[trained]:.3f}" + (" (final weights)" if trained == last else "") for trained in sorted(scores)]


def main(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    rewards = values_of(lines, "critic/score/mean")
    if not rewards:
        sys.exit(f"{path}: no critic/score/mean in it")
    begin, end = window_sizes(len(rewards))
    first, last = rewards[:begin], rewards[-end:]
    if len(rewards) == 1:
        print(f"  reward     {rewards[0]:.3f} in the only iteration")
    else:
        print(f"  reward     {mean(first):.3f} mean of the first {begin} of {len(rewards)} iterations, "
              f"{mean(last):.3f} of the last {end}: {mean(last) - mean(first):+.3f}")
    held_out = held_out_scores(lines)
    if held_out:
        print(f"  held-out   {', '.join(held_out)}")
    changes = values_of(lines, "adaptive/switches")
    if changes:
        print(f"  layouts    {count_text(sum(changes), 'change')} in {sum(c > 0 for c in changes)} of "
              f"{count_text(len(changes), 'iteration')}")
    differences = values_of(lines, "training/rollout_log_probs_diff_max")
    if differences:
        print(f"  exactness  largest difference of rollout and training log-probs: {max(differences):g}")


if __name__ == "__main__":
    main(sys.argv[1])
