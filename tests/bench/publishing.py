#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how the time to publish weights grows with their copies, and prints a Markdown table.

    python tests/bench/publishing.py --build build/default

Each rank is a host of its own (slow_hosts.sh: root is needed), trains the model by data parallelism
and generates with all of it. Beside each time stands its ratio to the least one: every rank gets
what it does not own, in f32, through its own link. Links are so slow that cores do not count.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path

from taper_tables import ROOT, assignments, output_of, print_head, print_row

SETTINGS = {
    "Rollout/Samples Per Prompt": 2,
    "Rollout/Max New Tokens": 8,
    "Training/Mini Batches": 1,
    "Evaluation/Every": 0,
    "Checkpoint/Every": 0,
}


def parameters(model):
    """How many numbers the tensors of a model directory have."""
    count = 0
    for path in model.glob("*.safetensors"):
        with path.open("rb") as file:
            head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        count += sum(math.prod(entry["shape"]) for name, entry in head.items() if name != "__metadata__")
    return count


def publish_seconds(options, hosts):
    """Median over iterations."""
    with tempfile.TemporaryDirectory() as scratch:
        settings = SETTINGS | {
            "Model/Directory": options.model,
            "Rollout/Prompts": hosts,
            "Training/Iterations": options.iterations,
            "Output/Directory": Path(scratch) / "run",
        }
        taper = Path(options.build).resolve() / "bin/taper"
        command = [ROOT / "tests/bench/slow_hosts.sh", f"{options.mbit}mbit", "mpiexec", "-n", str(hosts), taper, "train"]
        output_of([*command, *assignments(settings)], {"HOSTS": str(hosts), "OMP_NUM_THREADS": "1"})
        lines = [json.loads(line) for line in (Path(scratch) / "run/metrics.jsonl").read_text().splitlines()]
    times = [line["timing_s/publish"] for line in lines if "timing_s/publish" in line]
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/default", help="where taper was built")
    parser.add_argument("--model", type=Path, default=ROOT / "data/model")
    parser.add_argument("--mbit", type=int, default=50, help="rate of a link")
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--iterations", type=int, default=3)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("slow_hosts.sh needs root")
    size = 4 * parameters(options.model)
    print_head("hosts", "publishing, s", "over the least")
    for hosts in options.hosts:
        seconds = publish_seconds(options, hosts)
        least = size * (hosts - 1) / hosts * 8 / (options.mbit * 1e6)
        print_row(str(hosts), f"{seconds:.2f}", f"{seconds / least:.2f}x")


if __name__ == "__main__":
    main()
