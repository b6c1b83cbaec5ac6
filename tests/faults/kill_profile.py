#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `taper profile` twice while it measures; each restart must go on with all that was kept.

A rank is killed (SIGKILL) once the side file has grown; the launcher must end with a non-zero code within the
guard. What the side file held must be the beginning of what the next one holds, visit by visit. The last start
ends by itself and leaves the profile, and the side file to go on from since its budget was too small.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from kill_and_resume import launch, run_to_end
from taper_runs import ranks_of


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--taper", required=True, type=Path, help="the executable")
    parser.add_argument("--data", required=True, type=Path, help="the data folder with model/config.json")
    parser.add_argument("--launcher", default="mpiexec -n 2")
    parser.add_argument("--guard", type=float, default=120.0, help="seconds to wait for what must happen")
    return parser.parse_args()


def visits_of(partial: Path) -> dict:
    """Times by point; {} where there is no side file. It is replaced as a whole, so it must always parse."""
    if not partial.exists():
        return {}
    points = json.loads(partial.read_text())["points"]
    return {(p["tp"], p["pair"], p["tokens"], p["batch"], p["context"]): p["visits_ns"] for p in points}


def count(visits: dict) -> int:
    return sum(len(v) for v in visits.values())


def kill_when_grown(args: argparse.Namespace, words: list[str], partial: Path) -> dict:
    """Starts a job, kills a rank once the side file holds more than before, returns what it holds."""
    before = count(visits_of(partial))
    process = launch(args, *words)
    end = time.monotonic() + args.guard
    while count(visits_of(partial)) <= before:
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"no side file grew; the job ended with {process.poll()}: {process.stderr.read()[-2000:]!r}")
        time.sleep(0.05)
    os.kill(ranks_of(process, args.taper)[-1], signal.SIGKILL)
    _, errors = process.communicate(timeout=args.guard)
    if process.returncode == 0:
        sys.exit(f"the job ended with code 0 after one of its ranks was killed:\n{errors!r}")
    kept = visits_of(partial)
    print(f"  killed with {count(kept)} visits of {len(kept)} points kept", flush=True)
    return kept


def main() -> None:
    args = parse()
    with tempfile.TemporaryDirectory(prefix="taper-profile-") as scratch:
        output = Path(scratch) / "profile.h5"
        partial = Path(f"{output}.partial")
        words = ["profile", "--model", f"{args.data}/model", "--output", str(output), "--kv-memory-mb", "256",
                 "--budget"]
        first = kill_when_grown(args, [*words, "60"], partial)
        second = kill_when_grown(args, [*words, "60"], partial)
        for point, visits in first.items():
            if second.get(point, [])[:len(visits)] != visits:
                sys.exit(f"the visits of {point} were not kept")
        run_to_end(args, *words, "0.1")
        left = sorted(p.name for p in Path(scratch).iterdir())
        print(f"after the last start: {left}")
        if left != ["profile.h5", "profile.h5.partial"]:  # its budget is spent, and too small
            sys.exit(1)


if __name__ == "__main__":
    main()
