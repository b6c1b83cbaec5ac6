#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ratios of time without and with drafts from lines of bench_speculation: of the total and the median over passes, with
a 95 % interval of the first by bootstrap over passes, and tokens per sequence and step.

    speculation_ratio.py FILE...
"""
import json
import random
import statistics
import sys

PLAIN = "off"
RESAMPLES = 2000


def total_ratio(passes, name):
    return sum(p[PLAIN]["seconds"] for p in passes) / sum(p[name]["seconds"] for p in passes)


def main(files):
    passes = [json.loads(line) for file in files for line in open(file, encoding="utf-8")]
    if not passes or PLAIN not in passes[0]:
        sys.exit(f"no passes with '{PLAIN}' in {' '.join(files) or 'no files'}; run bench_speculation with --mode {PLAIN}")
    random.seed(1)
    names = [name for name, entry in passes[0].items() if isinstance(entry, dict) and "seconds" in entry and name != PLAIN]
    for name in names:
        ratios = [p[PLAIN]["seconds"] / p[name]["seconds"] for p in passes]
        resampled = sorted(total_ratio(random.choices(passes, k=len(passes)), name) for _ in range(RESAMPLES))
        low, high = resampled[int(0.025 * RESAMPLES)], resampled[int(0.975 * RESAMPLES)]
        tokens = statistics.mean(p[name].get("tokens_per_step", 1.0) for p in passes)
        print(f"{name}: {total_ratio(passes, name):.3f}x ({low:.3f} to {high:.3f}), median {statistics.median(ratios):.3f}x, "
              f"{tokens:.2f} tokens per step, {len(passes)} passes")


if __name__ == "__main__":
    main(sys.argv[1:])
