#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What shares by speed bring if one rank computes at half speed, and what they cost if none does.

    python tests/bench/balance.py --taper build/default/bin/taper

Runs of data/quickstart.yaml on two ranks, quiet and with a fault that makes rank 1 half as fast in the update
(TAPER_FAULT; builds with TAPER_ENABLE_FAULTS), with Balance/Mode off and on. The time is that of update_actor, means
over the iterations after the third, medians over --rounds. `of the ideal`: if the update were all training and its bundles
could be cut anywhere, shares of 2 to 1 would make it 1.5 times as fast.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from taper_tables import ROOT, iterations, print_head, print_row

SLOW = "update_actor:1:slow2"
IDEAL = 1.5


def seconds(options, folder, mode, fault):
    values = {
        "Model/Directory": ROOT / "data/model",
        "Training/Iterations": options.iterations,
        "Evaluation/Every": 0,
        "Checkpoint/Every": 0,
        "Balance/Mode": mode,
    } | dict(text.split("=", 1) for text in options.set)
    output = Path(tempfile.mkdtemp(dir=folder)) / "run"
    lines = iterations(options, ROOT / "data/quickstart.yaml", output, values, {"TAPER_FAULT": fault})
    return statistics.mean(line["timing_s/update_actor"] for line in lines[3:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another parameter")
    parser.add_argument("--launcher", default="mpiexec -n 2 -bind-to core")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for fault in ("", SLOW):
                for mode in ("off", "on"):
                    found.setdefault((fault, mode), []).append(seconds(options, folder, mode, fault))
    print_head("ranks", "off, s", "on, s", "faster", "of the ideal")
    for fault, name in (("", "alike"), (SLOW, "one at half speed")):
        off, on = (statistics.median(found[fault, mode]) for mode in ("off", "on"))
        ideal = f"{100 * off / IDEAL / on:.0f} %" if fault else ""
        print_row(name, f"{off:.3f}", f"{on:.3f}", f"{off / on:.2f}x", ideal)


if __name__ == "__main__":
    main()
