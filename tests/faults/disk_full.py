#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs out of disk at different files: an error that names the file, older results intact, and the run goes on.

Once by the limit on file sizes (ulimit -f), which needs no disk; once on a small file system, if one may be mounted.
"""

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from taper_runs import Runs, arguments, check, finish, leftovers, ranks_of, status

REASONS = ("file size limit reached: ", "disk full: ")


def run_limited(runs: Runs, words: list[str], ranks: int, output: Path, size: int):
    """A run whose files cannot grow beyond `size`, once it iterates: MPI's shared memory is made of files, too."""
    process = runs.start(words, ranks)
    while process.poll() is None and status(output)["state"] != "running":
        time.sleep(0.005)
    for pid in ranks_of(process, runs.taper):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    return finish(process, 60)


def check_failed_cleanly(runs: Runs, outcome, output: Path, where: str) -> None:
    check(not outcome.timed_out, f"{where}: it did not end", outcome.text)
    check(outcome.code not in (0, 2, 75), f"{where}: exit code {outcome.code}", outcome.text)
    told = [line for line in outcome.text.splitlines() if any(reason in line for reason in REASONS)]
    check(len(told) > 0, f"{where}: no reason given", outcome.text)
    check(all(str(output) in line for line in told), f"{where}: no file named", outcome.text)
    check("(unexpected)" not in outcome.text, f"{where}: not foreseen", outcome.text)
    inspected = runs.run(["inspect", output / "checkpoints/iter_000001"])
    check(inspected.code == 0, f"{where}: the first checkpoint is damaged", inspected.text)
    print(f"{where}: {told[0]}", flush=True)


def weights(output: Path) -> bytes:
    return (output / "checkpoints/iter_000003/model.safetensors").read_bytes()


def limits_of_file_size(runs: Runs, model: Path, straight: bytes) -> None:
    first = runs.folder / "first"
    check(runs.run(runs.train(model, first, Training__Iterations=1), 2).code == 0, "the first iteration", "")
    largest = max(f.stat().st_size for f in (first / "checkpoints").rglob("*"))
    for size in (300, largest // 16, largest // 3, largest - 4096):
        for ranks in (0, 2):
            output = runs.folder / f"limited-{size}-{ranks}"
            shutil.copytree(first, output)
            outcome = run_limited(runs, runs.train(model, output), ranks, output, size)
            check_failed_cleanly(runs, outcome, output, f"{ranks or 1} ranks, files of at most {size} bytes")
            if ranks == 0:
                check(leftovers(output) == [], "half-written files are left", str(leftovers(output)))
            if status(output)["state"] == "completed":
                sys.exit("FAILED: status.json says completed")
            check(runs.run(runs.train(model, output), 2).code == 0, "the run does not go on", "")
            check(weights(output) == straight, "the weights differ from an undisturbed run", "")
            shutil.rmtree(output)


def small_file_system(runs: Runs, model: Path, straight: bytes) -> None:
    disk = runs.folder / "disk"
    disk.mkdir()
    # Full in the middle of the second checkpoint.
    first = runs.folder / "first"
    space = sum(f.stat().st_size for f in first.rglob("*") if f.is_file()) * 3 // 2
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={space}", "tmpfs", disk],
                      stderr=subprocess.DEVNULL).returncode != 0:
        print("a small file system cannot be mounted here: left out")
        return
    try:
        output = disk / "run"
        outcome = runs.run(runs.train(model, output), 2)
        check_failed_cleanly(runs, outcome, output, f"disk of {space} bytes")
        subprocess.run(["mount", "-o", f"remount,size={8 * space}", disk], check=True)
        check(runs.run(runs.train(model, output), 2).code == 0, "the run does not go on", "")
        check(weights(output) == straight, "the weights differ from an undisturbed run", "")
    finally:
        subprocess.run(["umount", disk], check=True)


def main() -> None:
    args = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-disk-") as scratch:
        runs = Runs(args, Path(scratch))
        model = runs.make_model()
        outcome = runs.run(runs.train(model, runs.folder / "straight"), 2)
        check(outcome.code == 0, "the undisturbed run failed", outcome.text)
        straight = weights(runs.folder / "straight")
        limits_of_file_size(runs, model, straight)
        small_file_system(runs, model, straight)


if __name__ == "__main__":
    main()
