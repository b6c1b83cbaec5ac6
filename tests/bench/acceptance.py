#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Acceptance rates by source of drafts, from lines of bench_speculation, one file for each temperature:

    acceptance.py [--contestant fixed] 0=greedy.jsonl 0.7=warm.jsonl 1=hot.jsonl

Each cell: accepted share of the draft tokens, its 95 % interval (bootstrap over passes; with the same prompts in all of
them, later ones draft from earlier ones), and the number of draft tokens. The last row is how many tokens a sequence got
in a step."""
import argparse
import json
import sys

from taper_tables import bootstrap_interval, print_head, print_row


def share(counts):
    drafted = sum(c[0] for c in counts)
    return sum(c[1] for c in counts) / drafted if drafted else None


def cell(counts):
    if not sum(c[0] for c in counts):
        return ""
    low, high = bootstrap_interval(counts, share)
    return f"{100 * share(counts):.0f} % ({100 * low:.0f} to {100 * high:.0f}) of {sum(c[0] for c in counts):,}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contestant", default="fixed", help="which of the lines (fixed)")
    parser.add_argument("files", nargs="+", metavar="TEMPERATURE=FILE")
    options = parser.parse_args()
    columns = {}
    for text in options.files:
        temperature, _, file = text.partition("=")
        with open(file, encoding="utf-8") as lines:
            entries = [json.loads(line).get(options.contestant) for line in lines]
        passes = [entry for entry in entries if entry and "sources" in entry]  # others had no step that only decodes
        if not passes:
            sys.exit(f"{file}: no passes of the contestant '{options.contestant}' of bench_speculation")
        if temperature in columns:
            sys.exit(f"two files for temperature {temperature}")
        columns[temperature] = passes
    print_head("source", *(f"temperature {t}" for t in columns))
    of_all = [p["sources"] for passes in columns.values() for p in passes]
    for source in (s for s in of_all[0] if any(p[s][0] for p in of_all)):
        print_row(source, *(cell([p["sources"][source] for p in passes]) for passes in columns.values()))

    def mean(passes):
        return sum(p["tokens_per_step"] for p in passes) / len(passes)
    print_row("tokens per step", *("{:.2f} ({:.2f} to {:.2f})".format(mean(p), *bootstrap_interval(p, mean))
                                   for p in columns.values()))


if __name__ == "__main__":
    main()
