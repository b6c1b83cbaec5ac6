#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults while a training run changes the layout of a generation: the job ends with a report, and loses nothing.

The profile says that one tensor-parallel group is far faster than two replicas, so every generation, which starts with
two, changes its layout: at the meeting (`switch`) and before it is carried out (`switch:1`) a rank dies, throws or
freezes.
"""

import json
import subprocess
import tempfile
from pathlib import Path

from faults import RANKS, check, run_case, weights
from taper_runs import Runs, arguments

CASES = [("switch", 1, "kill"), ("switch", 0, "throw"), ("switch:1", 0, "kill"), ("switch:1", 1, "throw"),
         ("switch:1", 1, "freeze")]


def make_profile(runs: Runs, model: Path, tool: Path) -> Path:
    profile = runs.folder / "profile.h5"
    outcome = runs.run(["profile", "--model", model, "--output", profile, "--budget", "1", "--kv-memory-mb", "8",
                        "--max-positions", "256"], RANKS, guard=120)
    check(outcome.code == 0, "no profile", outcome.text)
    subprocess.run([str(tool), str(profile), "2"], check=True)
    return profile


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--favour-degree", required=True, type=Path, help="the tool of that name")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-faults-") as scratch:
        runs = Runs(args, Path(scratch))
        model = runs.make_model()
        settings = {"Rollout__Mode": "adaptive", "Rollout__Layout": "1x2", "Rollout__Max_New_Tokens": 192,
                    "Rollout__Max_Prompt_Tokens": 64, "Rollout__Samples_Per_Prompt": 16, "Rollout__Max_Running": 4,
                    "Rollout__Profile": make_profile(runs, model, args.favour_degree)}
        straight = runs.folder / "straight"
        outcome = runs.run(runs.train(model, straight, Run__Hang_Seconds=60, **settings), RANKS)
        check(outcome.code == 0, "the undisturbed run failed", outcome.text)
        lines = [json.loads(line) for line in (straight / "metrics.jsonl").read_text().splitlines()]
        made = [line.get("adaptive/switches", 0) for line in lines]
        check(len(made) >= 3 and min(made[:3]) >= 1, f"changes of layout by iteration: {made}", outcome.text)
        for phase, rank, kind in CASES:
            seconds = run_case(runs, model, weights(straight), phase, rank, kind, resume=True, **settings)
            print(f"{kind} of rank {rank} in {phase}: ended after {seconds:.1f} s; resumed to the same weights",
                  flush=True)


if __name__ == "__main__":
    main()
