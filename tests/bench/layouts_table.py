#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables from the lines of bench_layouts: adaptive against static layouts, live and in replay.

    python layouts_table.py [--skip N] NAME=FILE.jsonl ...

Every generation was run by each contestant with the same responses, so ratios are paired: the
gain of a file is the sum over generations, its 95 % interval a bootstrap over generations (2,000
resamples). `--skip` leaves out first generations, in which the policy knows nothing of lengths.
The parts of a switch are medians, in brackets the 90 % quantile. Files of runs with --speculation
have a table of the contestants with drafts.
"""

import argparse
import json
import statistics
from pathlib import Path

from taper_tables import bootstrap_interval, print_head, print_row

DRAFTS = "/drafts"  # behind the names of contestants


def read(path, skip):
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")][skip:]


def without_drafts(row):
    return [name for name in row["seconds"] if not name.endswith(DRAFTS)]


def static_layouts(row):
    return [name for name in without_drafts(row) if name != "adaptive"]


def total(rows, name, kind="seconds"):
    return sum(r[kind][name] for r in rows)


def gain(rows, kind, contestant="adaptive"):
    """Relative saving of a contestant against the best static layout of all rows."""
    return 1.0 - total(rows, contestant, kind) / min(total(rows, name, kind) for name in static_layouts(rows[0]))


def percent(value):
    return f"{100 * value:+.1f} %"


def errors(rows):
    """Relative difference of replayed and measured seconds, over contestants and generations."""
    return [r["replayed"][n] / r["seconds"][n] - 1.0 for r in rows for n in without_drafts(r)]


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def gains_table(files):
    static = static_layouts(next(iter(files.values()))[0])
    print_head("setting", "generations", *(f"{s}, s" for s in static), "adaptive, s", "gain live (95 %)",
               "gain replayed", "oracle, replayed", "switches")
    for name, rows in files.items():
        live = gain(rows, "seconds")
        low, high = bootstrap_interval(rows, lambda drawn: gain(drawn, "seconds"))
        times = [statistics.median(r["seconds"][s] for r in rows) for s in [*static, "adaptive"]]
        switches = sum(s["done"] for r in rows for s in r["switches"])
        print_row(name, f"{len(rows)}", *(f"{t:.2f}" for t in times),
                  f"{percent(live)} ({percent(low)} to {percent(high)})", percent(gain(rows, "replayed")),
                  percent(gain(rows, "replayed", "oracle")), f"{switches}")


def ratio(rows, contestants, fast):
    """How much faster than the best of the contestants, with its 95 % interval."""
    def of(drawn):
        return min(total(drawn, name) for name in contestants) / total(drawn, fast)
    low, high = bootstrap_interval(rows, of)
    return f"{of(rows):.2f}x ({low:.2f} to {high:.2f})"


def drafts_table(files):
    print_head("setting", "generations", "best static layout with drafts, s", "adaptive with drafts, s",
               "over the best static layout without", "over adaptive without", "over the best static layout with drafts",
               "tokens per step", "acceptance rate")
    for name, rows in files.items():
        static = static_layouts(rows[0])
        drafting = [s + DRAFTS for s in static]
        best, both = min(drafting, key=lambda s: total(rows, s)), "adaptive" + DRAFTS
        tokens = statistics.mean(r["drafts"][both]["tokens_per_step"] for r in rows)
        acceptance = statistics.mean(r["drafts"][both]["acceptance"] for r in rows)
        print_row(name, f"{len(rows)}", f"{statistics.median(r['seconds'][best] for r in rows):.2f} ({best})",
                  f"{statistics.median(r['seconds'][both] for r in rows):.2f}", ratio(rows, static, both),
                  ratio(rows, ["adaptive"], both), ratio(rows, drafting, both), f"{tokens:.2f}", f"{100 * acceptance:.0f} %")


def cost_table(files):
    print_head("setting", "prediction error: median, 90 %, largest", "a switch: predicted, measured, ms",
               "switching / generation", "consultation / generation", "KV moved, MiB a switch")
    for name, rows in files.items():
        off = [abs(e) for e in errors(rows)]
        done = [s for r in rows for s in r["switches"] if s["done"]]
        seconds = total(rows, "adaptive")
        share = sum(s["seconds"] for r in rows for s in r["switches"]) / seconds
        consult = sum(r["consultation_s"] for r in rows) / seconds
        costs = "-"
        moved = "-"
        if done:
            costs = (f"{1e3 * statistics.median(s['predicted_s'] for s in done):.1f}, "
                     f"{1e3 * statistics.median(s['seconds'] for s in done):.1f}")
            moved = f"{statistics.median(s['kv_bytes'] for s in done) / 2**20:.1f}"
        print_row(name, ", ".join(f"{100 * e:.1f} %" for e in (statistics.median(off), quantile(off, 0.9), max(off))),
                  costs, f"{100 * share:.2f} %", f"{100 * consult:.3f} %", moved)


def parts_table(files):
    parts = {"meeting": "meeting_s", "keys and values": "kv_s", "lists of sequences": "lists_s",
             "views of weights, engine": "rebind_s"}
    print_head("setting", "switches", *(f"{name}, ms" for name in parts), "all, ms")
    for name, rows in files.items():
        done = [s for r in rows for s in r["switches"] if s["done"]]
        if not done:
            continue
        cells = []
        for key in [*parts.values(), "seconds"]:
            times = [1e3 * s[key] for s in done]
            cells.append(f"{statistics.median(times):.2f} ({quantile(times, 0.9):.2f})")
        print_row(name, f"{len(done)}", *cells)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--skip", type=int, default=0, help="generations left out of each file")
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    args = parser.parse_args()
    files = {}
    for word in args.files:
        name, _, path = word.rpartition("=")
        files[name or Path(path).stem] = read(path, args.skip)
    gains_table(files)
    print()
    cost_table(files)
    print()
    parts_table(files)
    drafted = {name: rows for name, rows in files.items() if len(without_drafts(rows[0])) < len(rows[0]["seconds"])}
    if drafted:
        print()
        drafts_table(drafted)


if __name__ == "__main__":
    main()
