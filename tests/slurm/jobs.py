# SPDX-License-Identifier: Apache-2.0
"""Training jobs on a test cluster, submitted by the scripts of slurm/ as users do it, and what must come of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from cluster import Cluster, Failure  # which finds what follows
from taper_runs import PATIENCE, Runs, arguments, leftovers, status

# Two ranks, one on each of two nodes. Messages as between machines.
TWO_NODES = ["--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
# The embedded model for some seconds: iterations long enough to be hit, and no checkpoint but at the end, so that a
# stop must save by itself.
ITERATIONS = 4
LONG_ENOUGH = {"Training__Iterations": ITERATIONS, "Rollout__Prompts": 8, "Rollout__Samples_Per_Prompt": 4,
               "Rollout__Max_New_Tokens": 256, "Rollout__KV_Memory_MB": 64, "Training__Max_Tokens": 1024,
               "Optimizer__Learning_Rate": 1e-4, "Checkpoint__Every": 0, "Evaluation__Every": 3,
               "Run__Hang_Seconds": 120}


def check(condition: bool, what: str, text: str = "") -> None:
    if not condition:
        raise Failure(f"{what}\n{text}")


def results(output: Path, iterations: int) -> dict[str, bytes]:
    """What must be equal, bit for bit, however often a run was interrupted: weights, sampled tokens of the last
    iteration, and the figures of all iterations but their times."""
    last = f"iter_{iterations:06d}"
    found = {"weights": (output / f"checkpoints/{last}/model.safetensors").read_bytes(),
             "rollouts": (output / f"rollouts/{last}.h5").read_bytes()}
    figures = []
    for line in (output / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        figures.append({name: record[name] for name in sorted(record)
                        if name.startswith(("step", "critic/", "actor/", "val/", "response_length/"))})
    return {**found, "figures": json.dumps(figures).encode()}


def differences(one: Path, other: Path, iterations: int) -> list[str]:
    """Names of what two runs do not have in common; with the optimizer's state, but not what the run was called."""
    first, second = results(one, iterations), results(other, iterations)
    states = [str(output / f"checkpoints/iter_{iterations:06d}/state.h5") for output in (one, other)]
    compared = subprocess.run(["h5diff", "--exclude-path", "/config", *states], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    return [name for name in first if first[name] != second[name]] + (["state"] if compared.returncode else [])


class Jobs:
    def __init__(self, cluster: Cluster, runs: Runs):
        self.cluster, self.runs = cluster, runs
        self.model, self.tiny = runs.source / "data/model", runs.make_model()
        self.scripts = runs.source / "slurm"
        self.python = os.environ.get("TAPER_PYTHON", sys.executable)  # for reports
        self.environment = {"TAPER_COMMAND": str(runs.taper), "TAPER_PYTHON": self.python, "TAPER_MACHINE": "",
                            "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false", "OMP_WAIT_POLICY": "passive",
                            "KOKKOS_DISABLE_WARNINGS": "1"}
        if cluster.network:
            self.environment.update({"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"})

    def folder(self, name: str) -> Path:
        """The working directory of a job: its log lies there, too."""
        folder = self.runs.folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def words(self, output: Path, **changes) -> list[str]:
        """Options of `taper train`."""
        return self.runs.train(self.model, output, **{**LONG_ENOUGH, **changes})[1:]

    def submit(self, name: str, script: str, *words, options=(), env: dict | None = None) -> str:
        """The number of the job."""
        return self.cluster.submit(*options, self.scripts / script, *words, cwd=self.folder(name),
                                   env={**self.environment, **(env or {})})

    def train(self, name: str, *more, options=(), env: dict | None = None, **changes) -> str:
        words = self.words(self.folder(name) / "run", **changes)
        return self.submit(name, "train.sbatch", *words, *more, options=[*TWO_NODES, *options], env=env)

    def pipeline(self, name: str, *words) -> dict[str, str]:
        """slurm/pipeline.sh: the numbers of its jobs by their tasks."""
        text = self.cluster.client(self.scripts / "pipeline.sh", *words, cwd=self.folder(name), env=self.environment)
        return dict(line.split() for line in text.splitlines())

    def output(self, name: str) -> Path:
        return self.folder(name) / "run"

    def log(self, name: str) -> str:
        """Of all jobs of this name."""
        return "\n".join(file.read_text(errors="replace") for file in sorted(self.folder(name).glob("*.out")))

    def wait_for_iteration(self, name: str, number: int, output: Path | None = None, seconds: float = 300) -> None:
        """Until this iteration has been generated and trained. A hang guard."""
        file = (output or self.output(name)) / "metrics.jsonl"

        def is_there() -> bool:
            return file.exists() and file.read_text().count("\n") >= number
        try:
            self.cluster.wait_for(is_there, seconds, f"{name}: iteration {number} does not come")
        except Failure as failure:
            raise Failure(f"{failure}\n{self.log(name)}") from None

    def wait_until_over(self, name: str, number: str, state: str = "COMPLETED", seconds: float = 3600) -> dict[str, str]:
        try:
            found = self.cluster.wait_for_state(number, "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL",
                                                seconds=seconds)
        except Failure as failure:
            raise Failure(f"{name}: {failure}\n{self.log(name)}") from None
        check(found["JobState"] == state, f"{name}: job {number} is {found}", self.log(name))
        return found

    def wait_until_equal(self, name: str, number: str, iterations: int = ITERATIONS,
                         straight: str = "straight") -> dict[str, str]:
        """The job ends with the results of an undisturbed one and leaves nothing else behind."""
        found = self.wait_until_over(name, number)
        other = differences(self.output(name), self.output(straight), iterations)
        check(not other, f"{name}: {', '.join(other)} differ from those of the undisturbed run", self.log(name))
        check(status(self.output(name))["state"] == "completed", f"{name}: {status(self.output(name))}")
        check(leftovers(self.output(name)) == [], f"{name}: left {leftovers(self.output(name))}")
        return found

    def preempt(self, seconds: float = 300) -> None:
        """A job that needs all nodes comes, and goes."""
        urgent = self.cluster.submit("--partition=urgent", f"--nodes={len(self.cluster.nodes)}", "--exclusive",
                                     "--output=/dev/null", "--wrap=true", cwd=self.runs.folder)
        self.cluster.wait_for_state(urgent, "COMPLETED", seconds=seconds)

    def ask_to_stop(self, number: str) -> None:
        """The signal that Slurm sends before the time is over, by hand."""
        self.cluster.client("scancel", "--signal=USR1", "--batch", number)
