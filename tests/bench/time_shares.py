#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what the time of decoding, prefill and training on one CPU rank is made of, and how far it is from its limit.

    python tests/bench/time_shares.py --build build/default --model DIR --arithmetic bf16-dot

DIR is a Hugging Face directory. Needs `perf` (Linux), which samples where the processors are while bench_model runs;
reading weights from files, before it measures, is left out. The limit of a row is the larger of two times: that of
reading the weights once at the largest rate of a product of one row, and that of the multiply-adds of weights at the
largest rate of any product, both in the same run.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from taper_tables import matrix_sizes, output_of, print_head, print_row, reading_rate

PREFILL_ROWS, TRAINING_ROWS = 512, 2048  # of bench_model
# Shares by names of functions, the first that is found; None: before measuring.
SHARES = [
    (None, r"clear_page|\bconvert\b|read_piece|copy_user|page_fault"),
    ("attention", r"attend|attention|chunk|finish_query|write_pages|page_scores|list_queries|extend_values"),
    ("rounding operands", r"round_values|round_pairs|fill_pairs|round_rows|round_outer"),
    ("products", r"panel_task|product_task|store_sums|extend_|add_fixed_sums|load_sums"),
    ("waiting for the other threads", r"gomp"),
    ("other kernels", r"taper::detail::|taper::embed|Kokkos"),
    ("the rest", r""),
]
NAMES = [name for name, _ in SHARES if name]


class Shares:
    def __init__(self, options, scratch):
        self.options, self.record = options, scratch / "perf.data"
        self.tests = Path(options.build) / "tests/bench"
        self.threads = {"OMP_NUM_THREADS": str(options.threads)}

    def run(self, part, *words):
        """Tokens per second of a part, and what its time is made of."""
        command = ["perf", "record", "-q", "-F", "499", "-o", self.record, self.tests / "bench_model"]
        command += ["--model", self.options.model, "--dtype", "bf16", "--arithmetic", self.options.arithmetic]
        command += ["--parts", part, *words]
        figures = json.loads(output_of(command, self.threads))
        rate = next(value["median"] for name, value in figures.items() if name.startswith(part))
        return rate, self.shares()

    def shares(self):
        command = ["perf", "report", "--stdio", "--no-children", "-F", "overhead,dso,symbol", "-i", self.record]
        # perf warns of names that it may not see.
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        seen = dict.fromkeys(NAMES, 0.0)
        for percent, function in re.findall(r"^ +([\d.]+)% +(.*)$", done.stdout, re.MULTILINE):
            name = next(name for name, pattern in SHARES if re.search(pattern, function))
            if name:
                seen[name] += float(percent)
        total = sum(seen.values())
        if total == 0:
            sys.exit(f"perf saw nothing (may it sample, /proc/sys/kernel/perf_event_paranoid?): {done.stderr.strip()}")
        return {name: share / total for name, share in seen.items()}

    def computing_rate(self):
        """Floating-point operations per second, the most that a product gets."""
        kind = "" if self.options.arithmetic == "f32" else f"{self.options.arithmetic} "
        lines = output_of([self.tests / "bench_kernels", "--op", f"{kind}product"], self.threads)
        return 1e9 * max(float(rate) for rate in re.findall(r"([\d.]+) GFLOP/s", lines))

    def table(self):
        layers, head = matrix_sizes(json.loads((Path(self.options.model) / "config.json").read_text()))
        reading, computing = reading_rate(self.options.build, self.threads), self.computing_rate()
        print(f"Largest rates: {reading / 1e9:.1f} GB/s, {computing / 1e9:.0f} GFLOP/s.\n")
        print_head("", "tokens/s", "share of the limit", "limited by", *NAMES)

        def row(title, rows, operations, measured):
            rate, shares = measured
            times = {"reading": 2 * (layers + head) / reading, "arithmetic": operations / computing}
            by = max(times, key=times.get)
            print_row(title, f"{rate:.0f}", f"{times[by] * rate / rows:.0%}", by,
                      *(f"{shares[name]:.0%}" for name in NAMES))

        for batch in self.options.batches:
            # Prompts of a few tokens: reading them is not in the rate.
            words = ["--batches", str(batch), "--context", "8", "--tokens", "192", "--repeats", "3"]
            row(f"decode, {batch}", batch, 2 * batch * (layers + head), self.run("decode", *words))
        row("prefill", PREFILL_ROWS, 2 * PREFILL_ROWS * layers, self.run("prefill", "--repeats", "60"))
        row("training step", TRAINING_ROWS, 6 * TRAINING_ROWS * (layers + head), self.run("train", "--repeats", "4"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, metavar="DIR")
    parser.add_argument("--model", required=True, metavar="DIR")
    parser.add_argument("--arithmetic", default="f32", choices=["f32", "bf16", "bf16-dot"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 32, 64], metavar="N")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if shutil.which("perf") is None:
        sys.exit("perf is not installed (package linux-perf)")
    with tempfile.TemporaryDirectory() as scratch:
        Shares(options, Path(scratch)).table()


if __name__ == "__main__":
    main()
