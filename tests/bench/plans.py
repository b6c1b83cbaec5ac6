#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well `taper plan` predicts: placements of a run, measured beside what was predicted of them.

    mpiexec -n 2 -bind-to core taper profile --passes --model data/model --output profile.h5
    python tests/bench/plans.py --taper build/default/bin/taper --run run.yaml --profile profile.h5

Of all placements that the prices tell apart, --count are trained for a few iterations: the best one, that of all models
on all ranks, and others spread evenly over the predicted times. They alternate in each of --rounds rounds; the time of
an iteration is the mean from the third one on, and the median over rounds counts. (The first touches memory, the second
that of a reference; with prescribed lengths, the third is the one that is priced.) Start profile and this program in
the same way (launcher, network). --times FILE keeps what was measured, so that a measurement of hours can be
interrupted: times that it holds are not measured again. The last line has Spearman's rank correlation, the median of
|predicted / measured - 1|, how much slower the chosen placement is than the fastest measured one, and how much faster
than all models on all ranks.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from taper_tables import assignments, output_of, print_head, print_row


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def placements(options, folder):
    """All that differ in their prices, best first, and flattening."""
    output = folder / "plans.jsonl"
    command = [*options.launcher.split(), options.taper, "plan", options.run, "--top", 100000, "--json", output]
    for profile in options.profile:
        command += ["--profile", profile]
    if options.lengths:
        command += ["--lengths", options.lengths]
    output_of([*command, *options_of(options)])
    found = lines_of(output)
    flat = next((p for p in found if p["name"] == "flattening"), None)
    if flat is None:
        sys.exit("flattening is not possible here: nothing to compare placements with")
    return flat, [p for p in found if p["name"].isdigit()]


def options_of(options):
    return assignments(dict(text.split("=", 1) for text in options.set))


def iteration_seconds(options, folder, placement):
    output = folder / "run"
    values = placement["settings"] | {
        "Training/Iterations": options.iterations,
        "Output/Directory": output,
        "Checkpoint/Every": 0,
        "Evaluation/Every": 0,
    }
    launch = [*options.launcher.split(), options.taper, "train", options.run, "--resume", "none"]
    output_of([*launch, *options_of(options), *assignments(values)])
    lines = lines_of(output / "metrics.jsonl")
    steps = [x["timing_s/step"] - x.get("timing_s/save_checkpoint", 0) for x in lines if "timing_s/step" in x]
    return statistics.mean(steps[2:])


def measure(options, folder, tried):
    """Seconds of an iteration of each placement in each round; those in --times are taken from there."""
    of = {
        "run": options.run.read_text(),
        "set": options.set,
        "lengths": str(options.lengths),
        "iterations": options.iterations,
        "launcher": options.launcher,
    }
    known = lines_of(options.times) if options.times and options.times.exists() else []
    if any(x["of"] != of for x in known):
        sys.exit(f"{options.times} has times of another run or other options; name another file")
    kept = {(x["round"], json.dumps(x["settings"])): x["measured_s"] for x in known}
    times = [[] for _ in tried]
    started = False
    for number in range(options.rounds):
        for placement, seconds in zip(tried, times):
            settings = placement["settings"]
            key = (number, json.dumps(settings))
            if key not in kept:
                if not started:
                    iteration_seconds(options, folder, tried[0])  # the first start on a machine is slower
                    started = True
                kept[key] = iteration_seconds(options, folder, placement)
                if options.times:
                    line = {"round": number, "settings": settings, "measured_s": kept[key], "of": of}
                    with options.times.open("a") as file:
                        print(json.dumps(line), file=file)
            seconds.append(kept[key])
    return times


def ranks_of(values):
    """Equal values have the mean of their ranks."""
    below = [sum(v < value for v in values) for value in values]
    return [b + (values.count(value) - 1) / 2 for b, value in zip(below, values)]


def spearman(a, b):
    return statistics.correlation(ranks_of(a), ranks_of(b))


def text_of(placement):
    return ", ".join(f"{name.removesuffix('/Ranks').split('/')[-1].lower()} {value}"
                     for name, value in placement["settings"].items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--run", required=True, type=Path, help="run file")
    parser.add_argument("--profile", required=True, action="append", type=Path)
    parser.add_argument("--lengths", type=Path, help="run whose response lengths count")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another parameter")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=4, help="of a trial, at least 3")
    parser.add_argument("--times", type=Path, help="JSON Lines that keep the measured times; taken from there if measured")
    parser.add_argument("--launcher", default="mpiexec -n 2 -bind-to core")
    options = parser.parse_args()
    if options.iterations < 3:
        parser.error("--iterations must be at least 3: the first two are not counted")
    if options.count < 2:
        parser.error("--count must be at least 2: the best placement, and that of all models on all ranks")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        flat, found = placements(options, folder)
        others = [p for p in found[1:] if p["settings"] != flat["settings"]]
        tried = [found[0]] if found[0]["settings"] == flat["settings"] else [found[0], flat]
        wanted = min(options.count - len(tried), len(others))
        tried += [others[int((i + 0.5) * len(others) / wanted)] for i in range(wanted)]
        if len(tried) < 2:
            sys.exit("there is only one placement: nothing to compare it with")
        of_flat = tried.index(flat) if flat in tried else 0
        times = measure(options, folder, tried)
        measured = [statistics.median(seconds) for seconds in times]
        predicted = [p["predicted_s"] for p in tried]
        print_head("placement", "predicted, s", "measured, s", "error")
        for i in sorted(range(len(tried)), key=measured.__getitem__):
            name = ("**chosen**: " if i == 0 else "") + ("flattening: " if i == of_flat else "")
            error = f"{100 * (predicted[i] / measured[i] - 1):+.1f} %"
            print_row(name + text_of(tried[i]), f"{predicted[i]:.3f}", f"{measured[i]:.3f}", error)
        errors = [abs(p / m - 1) for p, m in zip(predicted, measured)]
        print(
            f"\n{len(found)} placements, {len(tried)} measured: rank correlation {spearman(predicted, measured):.3f}, "
            f"median error {100 * statistics.median(errors):.1f} % (90 %: {100 * sorted(errors)[int(0.9 * (len(errors) - 1))]:.1f} %), "
            f"chosen against the best measured {100 * (measured[0] / min(measured) - 1):+.1f} %, "
            f"flattening / chosen {measured[of_flat] / measured[0]:.2f}x"
        )


if __name__ == "__main__":
    main()
