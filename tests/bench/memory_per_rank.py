#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on more and more ranks, each with the same work, and prints a table of the memory of a rank.

    python tests/bench/memory_per_rank.py --taper build/default/bin/taper

The work of a rank is --prompts prompts of eight responses, whose lengths are drawn from a
heavy-tailed law (Rollout/Lengths), on the embedded model. The memory is the largest resident size
that any rank had (perf/max_memory_allocated_gb of the last iteration), which contains the weights;
what an iteration adds is the difference to a run of one prompt per rank. Several --taper are
compared in the same rounds. Run on any machine: memory does not depend on cores.
"""

import argparse
import json
import tempfile
from pathlib import Path

from taper_tables import ROOT, assignments, output_of, print_head, print_row


def peak_mib(options, taper, ranks, prompts, directory):
    settings = {
        "Model/Directory": ROOT / "data/model",
        "Rollout/Prompts": prompts * ranks,
        "Rollout/Lengths": "heavy-tail",
        "Training/Iterations": 2,
        "Checkpoint/Every": 0,
        "Output/Directory": directory,
    }
    output_of([options.mpiexec, "-n", str(ranks), taper, "train", *assignments(settings)])
    last = (directory / "metrics.jsonl").read_text().splitlines()[-1]
    return json.loads(last)["perf/max_memory_allocated_gb"] * 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--taper", action="append", required=True, help="the program; may be given again")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--prompts", type=int, default=16, help="of a rank")
    parser.add_argument("--mpiexec", default="mpiexec")
    options = parser.parse_args()
    print_head("program", "ranks", "1 prompt per rank, MiB", f"{options.prompts} prompts, MiB", "difference, MiB")
    with tempfile.TemporaryDirectory() as scratch:
        for ranks in options.ranks:
            for number, taper in enumerate(options.taper, 1):
                few, many = (
                    peak_mib(options, taper, ranks, prompts, Path(scratch) / f"{number}-{ranks}-{prompts}")
                    for prompts in (1, options.prompts)
                )
                print_row(str(number), str(ranks), f"{few:.1f}", f"{many:.1f}", f"{many - few:.1f}")


if __name__ == "__main__":
    main()
