#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that nobody bound and nobody gave a number of threads share the cores; too many threads are a warning."""

import os
import sys
import tempfile
from pathlib import Path

from taper_runs import Runs, arguments

RANKS = 2
CORES = len(os.sched_getaffinity(0))
ROOM = max(1, CORES // RANKS)


def text_of(runs: Runs, model: Path, threads: int | None) -> str:
    """What two ranks say that generate with OMP_NUM_THREADS=threads, or without it."""
    env = {"OMP_NUM_THREADS": None if threads is None else str(threads)}
    (runs.folder / "in.jsonl").write_text('{"tokens": [5, 9, 7]}\n')
    outcome = runs.run(["generate", "--model", model, "--prompts", runs.folder / "in.jsonl", "--output",
                        runs.folder / "out.jsonl", "--max-new-tokens", "4"], RANKS, env=env)
    if outcome.code != 0:
        sys.exit(f"exit code {outcome.code}:\n{outcome.text}")
    return outcome.text


def main() -> None:
    args = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-threads-") as scratch:
        runs = Runs(args, Path(scratch))
        model = runs.make_model()
        plural = "" if ROOM == 1 else "s"
        cases = [
            (None, f"{ROOM} thread{plural} per rank (chosen: {CORES} core{'' if CORES == 1 else 's'} / {RANKS} ranks)",
             False),
            (ROOM, f"{ROOM} thread{plural} per rank (OMP_NUM_THREADS)", False),
            (ROOM + 1, f"{ROOM + 1} threads per rank (OMP_NUM_THREADS)", True),
        ]
        failed = False
        for threads, expected, warned in cases:
            text = text_of(runs, model, threads)
            good = expected in text and (f"leave room for {ROOM}" in text) == warned
            print(f"OMP_NUM_THREADS {threads}: {'ok' if good else f'{expected!r} expected in:{chr(10)}{text}'}")
            failed |= not good
    sys.exit(failed)


if __name__ == "__main__":
    main()
