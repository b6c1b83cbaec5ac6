#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results are whole at every moment: h5py and h5dump read all HDF5 files of a training run again and again while it
goes on, and after kill -9 of all its processes; `taper inspect --validate` finds them as in the schema then, and the
run goes on. Exit code 77: h5py is missing.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from taper_runs import Runs, arguments, end_of, finish, kill_all

try:
    import h5py
except ImportError as missing:
    print(f"skipped: {missing} (set TAPER_TEST_PYTHON to an interpreter with h5py)")
    sys.exit(77)

RANKS, ITERATIONS = 2, 12


class Reader:
    """Reads everything that is there, as users would: with the default settings of the tools."""

    def __init__(self, output: Path):
        self.output, self.h5dump = output, shutil.which("h5dump")
        self.reads = {"run.h5": 0, "rollouts": 0, "state.h5": 0, "h5dump": 0}
        self.rows: set[int] = set()  # that run.h5 has had

    def read_all(self) -> None:
        for path in [self.output / "run.h5", *sorted((self.output / "rollouts").glob("*.h5"))]:
            if path.exists():
                self.read(path)
        # Others ("iter_000003.writing") are still being made.
        for path in (self.output / "checkpoints").glob("iter_" + "[0-9]" * 6 + "/state.h5"):
            try:
                self.read(path)
            except FileNotFoundError:
                pass  # an old checkpoint was removed meanwhile
        if (self.output / "run.h5").exists():
            self.dump(self.output / "run.h5")

    def read(self, path: Path) -> None:
        with h5py.File(path) as file:
            def visit(_, item):
                if isinstance(item, h5py.Dataset):
                    item[()]

            file.visititems(visit)
            if path.name == "run.h5" and "metrics/step" in file:
                self.rows.add(len(file["metrics/step"]))
        kind = path.name if path.name in self.reads else "rollouts"
        self.reads[kind] += 1

    def dump(self, path: Path) -> None:
        if self.h5dump is None:
            return
        result = subprocess.run([self.h5dump, str(path)], capture_output=True, text=True, check=False)
        if result.returncode != 0 or result.stderr:
            sys.exit(f"h5dump on {path} ended with {result.returncode}:\n{result.stderr[-2000:]}")
        self.reads["h5dump"] += 1


def validate(runs: Runs, output: Path) -> None:
    outcome = runs.run(["inspect", "--validate", output])
    if outcome.code != 0:
        sys.exit(f"taper inspect --validate ended with {outcome.code}:\n{outcome.text[-3000:]}")


def check_during(runs: Runs, words: list[str], output: Path) -> None:
    reader = Reader(output)
    process = runs.start(words, RANKS)
    deadline = end_of(300)
    while process.poll() is None:
        if time.monotonic() > deadline:
            kill_all(process)
            sys.exit("the run did not end")
        reader.read_all()
        if (output / "run.h5").exists():
            validate(runs, output / "run.h5")
    outcome = finish(process, 10)
    if outcome.code != 0:
        sys.exit(f"the run ended with {outcome.code}:\n{outcome.text[-3000:]}")
    reader.read_all()
    print(f"read while the run went on: {reader.reads}; rows seen in run.h5: {sorted(reader.rows)}", flush=True)
    if len(reader.rows) < 2 or not all(count > 0 for kind, count in reader.reads.items() if kind != "h5dump"):
        sys.exit("FAILED: the run went by without being read")
    validate(runs, output)


def is_killed(runs: Runs, words: list[str], output: Path, rng: random.Random) -> bool:
    """Some time after the first new line of metrics, unless the run is over by then."""
    log = output / "metrics.jsonl"

    def lines() -> int:
        return len(log.read_text().splitlines()) if log.exists() else 0

    before = lines()
    process = runs.start(words, RANKS)
    deadline = end_of(120)
    while process.poll() is None and lines() <= before and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(rng.uniform(0.0, 1.5))
    was_running = process.poll() is None
    kill_all(process)
    return was_running


def check_after_kills(runs: Runs, words: list[str], output: Path, kills: int, rng: random.Random) -> None:
    killed, starts = 0, 0
    while killed < kills:
        starts += 1
        if starts > 10 * kills:
            sys.exit(f"FAILED: of {starts - 1} runs only {killed} could be killed, the others were over before")
        if not is_killed(runs, words, output, rng):
            shutil.rmtree(output)
            continue
        killed += 1
        reader = Reader(output)
        reader.read_all()
        validate(runs, output)
        print(f"read after kill -9: {reader.reads}, rows in run.h5: {sorted(reader.rows)}", flush=True)
        if not any(reader.reads.values()):
            sys.exit("FAILED: killed after an iteration, and there was nothing to read")
    outcome = runs.run(words, RANKS, guard=300)
    if outcome.code != 0:
        sys.exit(f"the run did not go on:\n{outcome.text[-3000:]}")
    validate(runs, output)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-faults-") as scratch:
        runs, folder = Runs(args, Path(scratch)), Path(scratch)

        def words(output: Path) -> list[str]:
            return runs.train(args.source / "data/model", output, Training__Iterations=ITERATIONS,
                              Rollout__Samples_Per_Prompt=8, Rollout__Max_New_Tokens=48, Rollout__KV_Memory_MB=64,
                              Checkpoint__Every=3, Run__Hang_Seconds=60)

        check_during(runs, words(folder / "read"), folder / "read")
        check_after_kills(runs, words(folder / "killed"), folder / "killed", args.kills, random.Random(args.seed))


if __name__ == "__main__":
    main()
