#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One output directory, several jobs: two at once, one after a kill, one that starts from another run's checkpoint.

A second job must end with exit code 2, name who has the directory and change nothing; what a killed job leaves behind
must not be in the way of the next one.
"""

import contextlib
import json
import os
import re
import signal
import tempfile
import time
from pathlib import Path

from taper_runs import Runs, arguments, check, finish, ranks_of, status

LOCK = "run.lock"


def iterations(output: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (output / "metrics.jsonl").read_text().splitlines()]


def content(folder: Path) -> dict:
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != LOCK}


def wait_for(path: Path, process, what: str) -> None:
    while not (path.exists() and path.stat().st_size > 0):
        check(process.poll() is None, f"{what}: no {path.name}")
        time.sleep(0.01)


def kill(runs: Runs, process) -> None:
    """All ranks: the launcher ends the others once the first is gone."""
    for pid in ranks_of(process, runs.taper):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    finish(process, 30)


def refused(runs: Runs, words: list, ranks: int, holder: dict, what: str) -> None:
    outcome = runs.run(words, ranks)
    check(outcome.code == 2, f"{what}: exit code {outcome.code}", outcome.text)
    check(outcome.text.count("error: ") == 1, f"{what}: said several times", outcome.text)
    for word in ("in use by another job", f"process {holder['process']} on {holder['host']}", "Slurm job 4711"):
        check(word in outcome.text, f"{what}: no '{word}'", outcome.text)


def two_jobs(runs: Runs, model: Path) -> None:
    output = runs.folder / "two"
    words = runs.train(model, output, Training__Iterations=2)
    # Frozen in the middle of the second iteration, so that it is there as long as it takes.
    job = {"SLURM_JOB_ID": "4711", "TAPER_FAULT": "update_actor:0:freeze:2"}
    first = runs.start([*words, "--set", "Run/Hang Seconds=600"], 2, env=job)
    wait_for(output / LOCK, first, "first job")
    holder = json.loads((output / LOCK).read_text())
    wait_for(output / "status.json", first, "first job")
    while status(output)["iteration"] < 1:
        check(first.poll() is None, "the first job ended")
        time.sleep(0.01)
    before = content(output)
    for ranks in (0, 2):
        refused(runs, words, ranks, holder, f"a second job of {ranks or 1} ranks")
        refused(runs, [*words, "--resume", "none"], ranks, holder, "a second job that starts over")
    refused(runs, ["inspect", "--repair", output], 0, holder, "a repair meanwhile")
    refused(runs, [*words, "--check"], 2, holder, "a check meanwhile")
    check(content(output) == before, "a second job has changed results")
    kill(runs, first)
    check((output / LOCK).exists(), "a killed job cannot remove its lock")
    outcome = runs.run(words, 2)
    check(outcome.code == 0 and "resuming after iteration 1" in outcome.text, "the job after the kill", outcome.text)
    check(iterations(output)[:1] == [1] and set(iterations(output)) == {1, 2}, "metrics of both jobs", outcome.text)
    check(not (output / LOCK).exists(), "the lock is left")
    # A resumed job has a table with a header, and says what changed.
    outcome = runs.run(runs.train(model, output, Training__Iterations=3, Checkpoint__Keep=3), 2)
    for word in ("tok/s/rank", "Training/Iterations: 2 -> 3", "Checkpoint/Keep: 2 -> 3",
                 f"completed: 3 iterations, results in {output}"):
        check(word in outcome.text, f"a resumed job says no '{word}'", outcome.text)
    print("two jobs in one directory: the second is refused, and goes on after a kill of the first", flush=True)


def failing_job(runs: Runs, model: Path) -> None:
    output = runs.folder / "failing"
    words = runs.train(model, output, Training__Iterations=1)
    outcome = runs.run(words, 0, env={"TAPER_FAULT": "reward:0:throw:1"})
    check(outcome.code == 1 and not (output / LOCK).exists(), "the lock of a failed job is left", outcome.text)
    outcome = runs.run(words, 2, env={"TAPER_FAULT": "reward:1:throw:1"})
    check(outcome.code not in (0, 2, 75), "a rank that fails", outcome.text)
    outcome = runs.run(words, 2)
    check(outcome.code == 0 and not (output / LOCK).exists(), "the job after one that failed", outcome.text)


def two_trainings(runs: Runs, model: Path) -> None:
    output, place = runs.folder / "tuned", runs.folder / "tuned.run"
    words = ["sft", "--set", f"Model/Directory={model}", "--set", f"Output/Directory={output}", "--set",
             "Training/Batch Tokens=256", "--set", "Training/Max Tokens=256", "--set", "Run/Hang Seconds=600"]
    # Frozen in its third step, so that it is there as long as it takes.
    job = {"SLURM_JOB_ID": "4711", "TAPER_FAULT": "sft:0:freeze:0:3"}
    first = runs.start([*words, "--set", "Training/Steps=100000"], 2, env=job)
    locks = [output.with_name("tuned.lock"), place / LOCK]
    wait_for(place / "metrics.jsonl", first, "first training")
    while len(iterations(place)) < 2:
        check(first.poll() is None, "the first training ended")
        time.sleep(0.01)
    holder = json.loads(locks[0].read_text())
    before = content(place)
    refused(runs, words, 0, holder, "a second training")
    other = [*words, "--set", f"Output/Directory={output}-2", "--set", f"Output/Run Directory={place}"]
    refused(runs, other, 0, holder, "a training of another model in the same run directory")
    refused(runs, [*other, "--check"], 2, holder, "a check of one")
    refused(runs, ["inspect", "--repair", place], 0, holder, "a repair meanwhile")
    check(content(place) == before, "a second job has changed results of the training")
    outcome = runs.run(["inspect", place])
    check("no job is at work here" not in outcome.text, "inspect of a training that runs", outcome.text)
    kill(runs, first)
    outcome = runs.run(["inspect", place])
    check("no job is at work here" in outcome.text, "inspect of a training that was killed", outcome.text)
    outcome = runs.run([*words, "--set", "Training/Steps=2"], 2)
    check(outcome.code == 0, "the training after the kill", outcome.text)
    check(f"completed: 2 steps, results in {output}" in outcome.text, "no closing line", outcome.text)
    check(not any(lock.exists() for lock in locks), "a lock is left")
    check((output / "config.json").exists(), "the model is not there")


def other_runs(runs: Runs, model: Path) -> None:
    a, b = runs.folder / "a", runs.folder / "b"
    check(runs.run(runs.train(model, a, Training__Iterations=2), 2).code == 0, "run a")
    words = runs.train(model, b, Training__Iterations=3)
    outcome = runs.run([*words, "--resume", a], 2)  # the newest of a run
    check(outcome.code == 0, "a run from another one's checkpoint", outcome.text)
    for word in ("after iteration 2 of another one", f"completed: 1 iteration (3 to 3), results in {b}"):
        check(word in outcome.text, f"no '{word}'", outcome.text)
    check("only the metrics are rebuilt" not in outcome.text, "there was nothing to rebuild", outcome.text)
    check(3 in iterations(b) and min(iterations(b)) == 3, "metrics of another run", str(iterations(b)))
    before = content(b)
    outcome = runs.run([*words, "--resume", a / "checkpoints/iter_000001"], 2)
    check(outcome.code == 2 and "another run" in outcome.text, "another run's checkpoint into a run", outcome.text)
    check(str(a) in outcome.text and str(b) in outcome.text, "both are named", outcome.text)
    check(content(b) == before, "a refused job has changed results")
    outcome = runs.run([*words, "--set", "Training/Iterations=4"], 2)
    check(outcome.code == 0 and "completed: 2 iterations (3 to 4)" in outcome.text, "the run goes on", outcome.text)
    print("another run's checkpoint: into a new directory only", flush=True)

    (a / "metrics.jsonl").write_text("{\"step\": 1}\nbroken\n")
    before = content(a)
    words = [*runs.train(model, a, Training__Iterations=3), "--resume", a / "checkpoints/iter_000001"]
    outcome = runs.run(words, 2)
    check(outcome.code == 2, "a broken metrics log", outcome.text)
    check(content(a) == before, "a broken metrics log: a refused job has changed results")
    for word in (f"{a}/metrics.jsonl:2", "delete this line", "--resume none"):
        check(word in outcome.text, f"a broken metrics log: no '{word}'", outcome.text)

    for words in (["inspect", b], ["inspect", "--repair", b]):
        alone, together = runs.run(words), runs.run(words, 2)
        check(alone.code == together.code == 0, "inspect", together.text)
        check(re.sub(r"time: .*", "", alone.text) == re.sub(r"time: .*", "", together.text), "printed once",
              together.text)
    (b / "run.h5").write_text("x")
    outcome = runs.run(["inspect", b], 2)
    check(outcome.code == 2 and outcome.text.count("error: ") == 1, "inspect of a damaged run", outcome.text)


def killed_starts(runs: Runs, model: Path) -> None:
    """A run from another one's checkpoint that is killed before its first iteration."""
    a, c = runs.folder / "a", runs.folder / "killed"
    words = [*runs.train(model, c, Training__Iterations=3), "--resume", a / "checkpoints/iter_000002"]
    outcome = runs.run(words, 2, env={"TAPER_FAULT": "write_state:0:kill"})
    check(outcome.code not in (0, 2, 75), "no kill while the first checkpoint is written", outcome.text)
    check(not (c / "metrics.jsonl").exists(), "results without a checkpoint", outcome.text)
    outcome = runs.run(words, 2, env={"TAPER_FAULT": "save_checkpoint:0:kill:0:3"})
    check("after iteration 2 of another one" in outcome.text, "the same command after the kill", outcome.text)
    check(outcome.code not in (0, 2, 75), "no kill after the first checkpoint", outcome.text)
    outcome = runs.run(words, 2)
    check(outcome.code == 2 and "--resume auto" in outcome.text, "the run has begun", outcome.text)
    outcome = runs.run(words[:-2], 2)
    for word in ("resuming after iteration 2", "completed: 1 iteration (3 to 3)"):
        check(outcome.code == 0 and word in outcome.text, f"after the second kill: no '{word}'", outcome.text)
    check("only the metrics are rebuilt" not in outcome.text, "there was nothing to rebuild", outcome.text)
    print("a start that is killed begins again, or goes on", flush=True)


def main() -> None:
    args = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-directory-") as scratch:
        runs = Runs(args, Path(scratch))
        model = runs.make_model()
        two_jobs(runs, model)
        failing_job(runs, model)
        two_trainings(runs, model)
        other_runs(runs, model)
        killed_starts(runs, model)


if __name__ == "__main__":
    main()
