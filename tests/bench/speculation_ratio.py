#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ratios of time without and with drafts from lines of bench_speculation: of the total and the median over passes, with
a 95 % interval of the first by bootstrap over passes, and tokens per sequence and step.

    speculation_ratio.py FILE...
"""
import json
import statistics
import sys

from taper_tables import bootstrap_interval

PLAIN = "off"


def total_ratio(passes, name):
    return sum(p[PLAIN]["seconds"] for p in passes) / sum(p[name]["seconds"] for p in passes)


def main(files):
    passes = [json.loads(line) for file in files for line in open(file, encoding="utf-8")]
    if not passes or PLAIN not in passes[0]:
        sys.exit(f"no passes with '{PLAIN}' in {' '.join(files) or 'no files'}; run bench_speculation with --mode {PLAIN}")
    names = [name for name, entry in passes[0].items() if isinstance(entry, dict) and "seconds" in entry and name != PLAIN]
    for name in names:
        ratios = [p[PLAIN]["seconds"] / p[name]["seconds"] for p in passes]
        low, high = bootstrap_interval(passes, lambda drawn, name=name: total_ratio(drawn, name))
        tokens = statistics.mean(p[name].get("tokens_per_step", 1.0) for p in passes)
        print(f"{name}: {total_ratio(passes, name):.3f}x ({low:.3f} to {high:.3f}), median {statistics.median(ratios):.3f}x, "
              f"{tokens:.2f} tokens per step, {len(passes)} passes")


if __name__ == "__main__":
    main(sys.argv[1:])
