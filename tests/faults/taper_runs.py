# SPDX-License-Identifier: Apache-2.0
"""Whole runs of the executable for tests: a tiny model, a short training run, launch and outcome."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# Sanitizers make runs several times slower: by this, guards are longer than written, and runs may have less to do.
PATIENCE = int(os.environ.get("TAPER_TEST_PATIENCE", "1"))

# Five seconds of work on a tiny model, with every phase in each iteration.
SMALL_RUN = {"Training/Iterations": 3, "Rollout/Prompts": 4, "Rollout/Samples Per Prompt": 2,
             "Rollout/Max New Tokens": 24, "Rollout/KV Memory MB": 8, "Training/Max Tokens": 256,
             "Algorithm/Entropy Coefficient": 0.05, "Algorithm/KL Coefficient": 0.01, "Optimizer/Learning Rate": 1e-3,
             "Evaluation/Every": 1, "Evaluation/Prompts": 2, "Checkpoint/Every": 1, "Checkpoint/Keep": 2,
             "Run/Hang Seconds": 4}
# Most responses are short and a few long: who has none of these can work early.
EARLY = {"Training__Early_Learning": "true", "Rollout__Prompts": 8, "Rollout__Max_New_Tokens": 120,
         "Rollout__Lengths": "heavy-tail", "Training__Max_Tokens": 256, "Training__Bundle_Tokens": 128}
# With EARLY: rank 1 scores and learns while rank 0 generates.
EARLY_PLACEMENT = {"Placement__Strategy": "separation", "Placement__Reference": "1-1"}


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--taper", required=True, type=Path, help="the executable")
    parser.add_argument("--source", required=True, type=Path, help="the source tree: data and golden models")
    parser.add_argument("--launcher", default="mpiexec -n", help="what stands before the number of ranks")
    return parser


def check(condition: bool, what: str, text: str = "") -> None:
    """Ends the test if this is not so."""
    if not condition:
        sys.exit(f"FAILED: {what}\n{text}")


@dataclass
class Outcome:
    code: int
    text: str  # stdout and stderr
    timed_out: bool = False
    seconds: float = 0  # of Runs.run


class Runs:
    def __init__(self, args: argparse.Namespace, folder: Path):
        self.taper, self.source, self.folder = args.taper, args.source, folder
        self.launcher = args.launcher.split()

    def make_model(self, name: str = "model", golden: str = "llama_a") -> Path:
        """A tiny model with a tokenizer of bytes."""
        model = self.folder / name
        shutil.copytree(self.source / "tests/golden/models" / golden, model)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(self.source / "data/model" / file, model / file)
        return model

    def train(self, model: Path, output: Path, **changes) -> list[str]:
        """Words of `taper train`; changes are given as Section__Name=value with _ for blanks."""
        values = dict(SMALL_RUN, **{"Model/Directory": model, "Output/Directory": output})
        values.update({key.replace("__", "/").replace("_", " "): value for key, value in changes.items()})
        words = ["train"]
        for key, value in values.items():
            words += ["--set", f"{key}={value}"]
        return words

    def start(self, words: list[str], ranks: int = 0, env: dict | None = None, prefix: list[str] = (),
              **more) -> subprocess.Popen:
        """ranks 0: without a launcher; env: None unsets. A session of its own, so that all of it can be ended."""
        launcher = [*self.launcher, str(ranks)] if ranks else []
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false", "OMP_WAIT_POLICY": "passive",
                     **(env or {})}
        variables = {name: value for name, value in variables.items() if value is not None}
        return subprocess.Popen([*launcher, *prefix, str(self.taper), *map(str, words)], env=variables,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True, **more)

    def run(self, words: list[str], ranks: int = 0, guard: float = 60, **more) -> Outcome:
        start = time.monotonic()
        outcome = finish(self.start(words, ranks, **more), guard)
        outcome.seconds = time.monotonic() - start
        return outcome

    def run_with_fault(self, fault: str, words: list[str], output: Path, ranks: int, **more) -> Outcome:
        """A new run. Ranks work early only if they have time: a run without the phase of the fault is made again."""
        tries = 10 if fault.partition(":")[0].endswith("_early") else 1
        for _ in range(tries):
            shutil.rmtree(output, ignore_errors=True)
            outcome = self.run(words, ranks, env={"TAPER_FAULT": fault}, **more)
            if outcome.code != 0:
                break
        return outcome


def end_of(guard: float) -> float:
    """The time (of time.monotonic) at which a guard of so many seconds ends, if it begins now."""
    return time.monotonic() + PATIENCE * guard


def finish(process: subprocess.Popen, guard: float) -> Outcome:
    """Waits; ends the session of a process that is still there after `guard` seconds, times PATIENCE."""
    try:
        text, _ = process.communicate(timeout=PATIENCE * guard)
        return Outcome(process.returncode, text.decode(errors="replace"))
    except subprocess.TimeoutExpired:
        return Outcome(process.returncode, kill_all(process).decode(errors="replace"), timed_out=True)


def kill_all(process: subprocess.Popen) -> bytes:
    """Ends a process and all its descendants, the youngest first; what they had printed."""
    for pid in reversed(family(process.pid)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended by itself
    text, _ = process.communicate()
    return text


def family(root: int) -> list[int]:
    """A process and all its descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def ranks_of(process: subprocess.Popen, taper: Path) -> list[int]:
    """Process ids of the ranks, in no order."""
    found = []
    for pid in family(process.pid):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", taper):
                found.append(pid)
        except OSError:
            continue
    return found


def status(output: Path) -> dict:
    return json.loads((output / "status.json").read_text())


def leftovers(folder: Path) -> list[str]:
    """Side files and half-written directories below a folder."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if ".part" in p.name or ".writing" in p.name)
