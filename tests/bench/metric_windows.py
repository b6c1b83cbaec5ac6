#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints means of a run's metrics over windows of iterations: whether a long run keeps what it has learned.

    python tests/bench/metric_windows.py RUN_DIR --window 250
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from report.data import finite_points, load_run
from taper_tables import print_head, print_row

# Titles are those of doc/algorithms.md; a metric that a run lacks is left out.
METRICS = {
    "reward": ("critic/score/mean", ".3f"),
    "held-out": ("val/score/mean", ".3f"),
    "entropy": ("actor/entropy", ".4f"),
    "KL to the reference": ("actor/kl_loss", ".4f"),
    "clipped": ("actor/pg_clipfrac", ".6f"),
    "gradient": ("actor/grad_norm", ".2f"),
    "length": ("response_length/mean", ".0f"),
    "cut at the limit": ("response_length/clip_ratio", ".4f"),
}


def mean_of(run, metric, first, last, form):
    steps, values = finite_points(run, metric)
    values = values[(steps >= first) & (steps <= last)]
    return f"{values.mean():{form}}" if len(values) else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="output directory of `taper train`")
    parser.add_argument("--window", type=int, default=250, help="iterations of a row")
    options = parser.parse_args()
    if options.window < 1:
        parser.error("--window must be at least 1")
    run = load_run(options.run)
    columns = {title: what for title, what in METRICS.items() if what[0] in run.metrics}
    print_head("iterations", *columns)
    final = int(run.steps[-1])
    for first in range(1, final + 1, options.window):
        last = min(first + options.window - 1, final)
        cells = [mean_of(run, name, first, last, form) for name, form in columns.values()]
        print_row(f"{first} to {last}", *cells)


if __name__ == "__main__":
    main()
