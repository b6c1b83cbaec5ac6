#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `taper profile` twice while it measures; each restart must go on with all that was kept.

A rank is killed (SIGKILL) once the side file has grown; the launcher must end with a non-zero code within the
guard. What the side file held must be the beginning of what the next one holds, visit by visit. The last start
ends by itself and leaves the profile, and the side file to go on from since its budget was too small.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from kill_and_resume import RANKS, end_after_kill, run_to_end
from taper_runs import Runs, arguments, end_of, finish, ranks_of


def visits_of(partial: Path) -> dict:
    """Times by point; {} if there is no side file. It is replaced as a whole, so it must always parse."""
    if not partial.exists():
        return {}
    points = json.loads(partial.read_text())["points"]
    return {(p["tp"], p["pair"], p["tokens"], p["batch"], p["context"]): p["visits_ns"] for p in points}


def count(visits: dict) -> int:
    return sum(len(v) for v in visits.values())


def kill_when_grown(runs: Runs, words: list[str], partial: Path, guard: float) -> dict:
    """Starts a job, kills a rank once the side file holds more than before, returns what it holds."""
    before = count(visits_of(partial))
    process = runs.start(words, RANKS)
    end = end_of(guard)
    while count(visits_of(partial)) <= before:
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"no side file grew; the job ended with {process.poll()}:\n{finish(process, 0).text[-2000:]}")
        time.sleep(0.05)
    outcome = end_after_kill(process, ranks_of(process, runs.taper)[-1:], guard)
    if outcome.code == 0:
        sys.exit(f"the job ended with code 0 after one of its ranks was killed:\n{outcome.text}")
    kept = visits_of(partial)
    print(f"  killed with {count(kept)} visits of {len(kept)} points kept", flush=True)
    return kept


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--guard", type=float, default=120.0, help="seconds to wait for what must happen")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-profile-") as scratch:
        runs = Runs(args, Path(scratch))
        output = Path(scratch) / "profile.h5"
        partial = Path(f"{output}.partial")
        words = ["profile", "--model", str(args.source / "data/model"), "--output", str(output),
                 "--kv-memory-mb", "256", "--budget"]
        first = kill_when_grown(runs, [*words, "60"], partial, args.guard)
        second = kill_when_grown(runs, [*words, "60"], partial, args.guard)
        for point, visits in first.items():
            if second.get(point, [])[:len(visits)] != visits:
                sys.exit(f"the visits of {point} were not kept")
        run_to_end(runs, [*words, "0.1"], args.guard)
        left = sorted(p.name for p in Path(scratch).iterdir())
        print(f"after the last start: {left}")
        if left != ["profile.h5", "profile.h5.partial"]:  # its budget is spent, and too small
            sys.exit(1)


if __name__ == "__main__":
    main()
