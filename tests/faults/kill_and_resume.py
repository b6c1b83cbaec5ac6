#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a training run again and again, anywhere, and compares its end with an undisturbed run.

Each kill takes one rank (SIGKILL) after a random time; the launcher must then end with a non-zero code
within the guard. The run goes on with `--resume auto` until it is finished. Its final checkpoint must equal
that of the undisturbed run, weights byte for byte. Checkpoints are written in every iteration, so that many
kills hit one in the making.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from taper_runs import PATIENCE, Outcome, Runs, arguments, finish, ranks_of

RANKS = 2


def parse() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guard", type=float, default=120.0, help="seconds for the launcher to end after a kill")
    return parser.parse_args()


def run_to_end(runs: Runs, words: list[str], guard: float) -> None:
    """Ends the test if the command does not end with success within so many seconds."""
    outcome = runs.run(words, RANKS, guard)
    if outcome.timed_out or outcome.code != 0:
        what = f"still ran after {outcome.seconds:.0f} s" if outcome.timed_out else f"ended with code {outcome.code}"
        sys.exit(f"'{words[0]}' {what}:\n{outcome.text[-3000:]}")


def end_after_kill(process: subprocess.Popen, ranks: list[int], guard: float) -> Outcome:
    """Kills one of these ranks, if there are any; the job must then end within the guard."""
    for pid in ranks[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    outcome = finish(process, guard)
    if outcome.timed_out:
        sys.exit(f"the job still ran {PATIENCE * guard:.0f} s after one of its ranks was killed:\n{outcome.text[-3000:]}")
    return outcome


def disturb(runs: Runs, words: list[str], rng: random.Random, span: float, guard: float) -> bool:
    """One run with one kill; False if it finished before."""
    process = runs.start(words, RANKS)
    time.sleep(rng.uniform(0.0, span))
    ranks = ranks_of(process, runs.taper)
    rng.shuffle(ranks)
    start = time.monotonic()
    outcome = end_after_kill(process, ranks, guard)
    if outcome.code == 0:
        return False
    print(f"  killed one of {len(ranks)} ranks, ended with code {outcome.code} after "
          f"{time.monotonic() - start:.1f} s", flush=True)
    return True


def compare(straight: Path, killed: Path, iterations: int) -> None:
    """Ends the test if final weights differ, or metrics have other than one line per iteration."""
    name = f"checkpoints/iter_{iterations:06d}/model.safetensors"
    same = (straight / name).read_bytes() == (killed / name).read_bytes()
    lines = (killed / "metrics.jsonl").read_text().count("\n")
    if not same or lines != iterations:
        left = sorted(p.name for p in (killed / "checkpoints").iterdir())
        sys.exit(f"{killed.name}: weights {'equal' if same else 'DIFFER'}; {lines} lines in metrics.jsonl; {left}")


def main() -> None:
    args = parse()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="taper-faults-") as scratch:
        runs, folder = Runs(args, Path(scratch)), Path(scratch)

        def words(output: Path, speculation: str) -> list[str]:
            # The embedded model: files that take long enough to write that kills hit them.
            return runs.train(args.source / "data/model", output, Training__Iterations=args.iterations,
                              Rollout__Samples_Per_Prompt=4, Rollout__KV_Memory_MB=64, Evaluation__Every=0,
                              Run__Hang_Seconds=60, Speculation__Mode=speculation)

        start = time.monotonic()
        run_to_end(runs, words(folder / "straight", "off"), 600)
        span = time.monotonic() - start
        print(f"undisturbed run: {args.iterations} iterations in {span:.1f} s", flush=True)
        kills = tries = 0
        while kills < args.kills:
            killed = folder / f"killed-{tries}"
            while kills < args.kills and disturb(runs, words(killed, "fixed"), rng, span, args.guard):
                kills += 1
            run_to_end(runs, words(killed, "fixed"), 600)
            compare(folder / "straight", killed, args.iterations)
            # If a run is through before it is killed, the next one is killed earlier.
            tries, span = tries + 1, 0.7 * span
        print(f"{kills} kills in {tries} runs; all with the weights of the undisturbed run", flush=True)


if __name__ == "__main__":
    main()
