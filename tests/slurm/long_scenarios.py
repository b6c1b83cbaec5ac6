# SPDX-License-Identifier: Apache-2.0
"""What takes minutes: time limits, dead nodes, scancel at any moment, random interruptions, whole pipelines."""

import json
import os
import random
import re
import subprocess
import time
from contextlib import suppress
from statistics import median

from cluster import end_processes, processes_below
from jobs import PATIENCE, TWO_NODES, Jobs, check, differences
from scenarios import TINY

LONGER = 75  # s; Slurm looks at time limits every half minute
SPAN = 4.0  # s, within which a running job is interrupted
OVER = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")


def as_mpiexec(jobs: Jobs) -> str:
    """What connects the ranks, and who started them, changes no bit."""
    outcome = jobs.runs.run(["train", *jobs.words(jobs.output("mpiexec"))], 2, guard=300)
    check(outcome.code == 0, "mpiexec failed", outcome.text)
    other = differences(jobs.output("mpiexec"), jobs.output("straight"), 4)
    check(not other, f"{', '.join(other)} differ between mpiexec and srun", outcome.text)
    return "srun on two nodes and mpiexec on one: the same bits"


def four_nodes(jobs: Jobs) -> str:
    changes = {**TINY, "Rollout__Tensor_Parallel": 2, "Training__Iterations": 3}  # slow on few cores
    words = jobs.runs.train(jobs.tiny, jobs.output("four"), **changes)[1:]
    number = jobs.submit("four", "train.sbatch", *words, options=["--nodes=4", "--ntasks=4"])
    jobs.wait_until_over("four", number)
    for node in range(4):
        check(f"rank {node}  node n{node + 1}" in jobs.log("four"), "not one rank to a node", jobs.log("four"))
    return "four nodes, tensor parallelism between them"


def longer_iterations(jobs: Jobs, seconds: float = LONGER) -> int:
    """So many that a run takes about as long on any machine."""
    records = map(json.loads, (jobs.output("straight") / "metrics.jsonl").read_text().splitlines())
    return max(20 // PATIENCE, round(seconds / median(r["timing_s/step"] for r in records if "timing_s/step" in r)))


def longer_straight(jobs: Jobs) -> str:
    count = longer_iterations(jobs)
    jobs.wait_until_over("longer", jobs.train("longer", Training__Iterations=count))
    return f"{count} iterations"


def time_limit(jobs: Jobs) -> str:
    """The end by the job's time limit: known as TAPER_DEADLINE, and told by Slurm's signal."""
    cases = {"deadline": (["--signal=B:USR1@1"], 45, "(deadline)"), "signal": (["--signal=B:USR1@50"], 0, "(SIGUSR1)")}
    said, count = [], longer_iterations(jobs)
    for name, (options, margin, why) in cases.items():
        number = jobs.train(name, options=["--time=1", *options], Training__Iterations=count,
                            Run__Deadline_Margin=margin)
        found = jobs.wait_until_equal(name, number, count, "longer")
        check(int(found["Restarts"]) > 0, f"{name}: never stopped", jobs.log(name))
        check(why in jobs.log(name), f"{name}: not stopped by the {name}", jobs.log(name))
        said.append(f"{name}: {found['Restarts']} restarts")
    return f"{', '.join(said)}, the same bits"


def dead_nodes(jobs: Jobs) -> str:
    """A node of the job dies, then the one with its script; Slurm notices by itself."""
    total = longer_iterations(jobs)
    number = jobs.train("dead", Training__Iterations=total, Checkpoint__Every=1)
    for count, victim in enumerate(("n2", "n1")):
        jobs.wait_for_iteration("dead", 2 + 4 * count)
        jobs.cluster.kill_node(victim)
        jobs.cluster.wait_for_state(number, "PENDING", seconds=600)
        jobs.cluster.start_node(victim)
        jobs.cluster.wait_for_state(number, "RUNNING", seconds=600)
    found = jobs.wait_until_equal("dead", number, total, "longer")
    check(found["Restarts"] == "2", f"{found}", jobs.log("dead"))
    return "either node of two killed, requeued by Slurm, the same bits"


def cancelled_anywhere(jobs: Jobs) -> str:
    """scancel before the job starts, while it starts, and later: never requeued, and the run can go on."""
    for delay in (None, 0.0, 0.3, 0.6, 1.0, 1.5, 2.5, 4.0):
        number = jobs.train("anywhere", options=["--hold"] if delay is None else [], Checkpoint__Every=2)
        if delay is not None:
            jobs.cluster.wait_for_state(number, "RUNNING", "COMPLETED")
            time.sleep(delay)
        jobs.cluster.client("scancel", number)
        found = jobs.cluster.wait_for_state(number, *OVER)
        check(found["JobState"] in ("CANCELLED", "COMPLETED") and found["Restarts"] == "0", f"{found}",
              jobs.log("anywhere"))
    jobs.wait_until_equal("anywhere", jobs.train("anywhere", Checkpoint__Every=2))
    return "at eight moments, the same bits"


def whole_pipeline(jobs: Jobs) -> str:
    words = jobs.runs.train(jobs.tiny, jobs.output("whole"), **TINY)[1:]
    numbers = jobs.pipeline("whole", *TWO_NODES, "--", *words, "--", "--count", "4")
    for task in ("profile", "train", "eval"):
        jobs.wait_until_over("whole", numbers[task])
    log = jobs.log("whole")
    check((jobs.folder("whole") / "run-profile.h5").exists() and "Rollout/Mode=adaptive" in log, "no profile", log)
    return "profile, adaptive training, eval"


def scaling(jobs: Jobs) -> str:
    words = jobs.runs.train(jobs.tiny, jobs.output("scaling"), **{**TINY, "Training__Iterations": 5})[1:]
    script = [jobs.scripts / "scaling.sh", "--weak", "1 2", "--ntasks-per-node=1", "--", *words]
    text = jobs.cluster.client(*script, cwd=jobs.folder("scaling"), env=jobs.environment)
    numbers = [re.search(r"job (\d+)", line)[1] for line in text.splitlines()[:3]]
    for number in numbers[:2]:
        jobs.wait_until_over("scaling", number)
    if subprocess.run([jobs.python, "-c", "import h5py, matplotlib"], stderr=subprocess.DEVNULL).returncode != 0:
        jobs.wait_until_over("scaling", numbers[2], "FAILED")
        check("h5py" in jobs.log("scaling"), "no word of what is missing", jobs.log("scaling"))
        return "one and two nodes; no Python with h5py and matplotlib, so no report"
    jobs.wait_until_over("scaling", numbers[2])
    sizes = json.loads((jobs.output("scaling") / "report/summary.json").read_text())["run"]
    check([(size["ranks"], size["iterations"]) for size in sizes] == [(1, 4), (2, 4)], f"{sizes}", jobs.log("scaling"))
    check(sizes[1]["tokens"] > 1.5 * sizes[0]["tokens"], f"{sizes}")
    return "one and two nodes, their report behind them"


LONG = [four_nodes, as_mpiexec, longer_straight, time_limit, cancelled_anywhere, dead_nodes, whole_pipeline, scaling]


class Disturber:
    """Interrupts a training again and again, each time in another way."""

    def __init__(self, jobs: Jobs, name: str, rng: random.Random, **changes):
        self.jobs, self.name, self.rng, self.changes = jobs, name, rng, changes
        self.number = jobs.train(name, **changes)
        self.counts: dict[str, int] = {}

    def wait_until_running(self) -> None:
        """A job that is over is submitted again, as its user would."""
        found = self.jobs.cluster.wait_for_state(self.number, "RUNNING", *OVER, seconds=600)
        check(found["JobState"] != "COMPLETED", f"the run was over after {self.counts}: give it more iterations")
        if found["JobState"] != "RUNNING":
            self.number = self.jobs.train(self.name, **self.changes)
            self.jobs.cluster.wait_for_state(self.number, "RUNNING", seconds=600)

    def disturb(self) -> None:
        self.wait_until_running()
        before = self.jobs.cluster.job(self.number)["Restarts"]
        time.sleep(self.rng.uniform(0.0, SPAN))
        action = self.rng.choice([self.preempt, self.stop, self.kill_node, self.kill_rank, self.cancel])
        action()
        self.counts[action.__name__] = self.counts.get(action.__name__, 0) + 1

        def is_through() -> bool:
            found = self.jobs.cluster.job(self.number)
            return found["Restarts"] != before or found["JobState"] in OVER
        self.jobs.cluster.wait_for(is_through, 600, f"{action.__name__} does not end job {self.number}")

    def preempt(self) -> None:
        self.jobs.preempt()

    def stop(self) -> None:
        self.jobs.ask_to_stop(self.number)

    def cancel(self) -> None:
        self.jobs.cluster.client("scancel", self.number)

    def kill_rank(self) -> None:
        """One of the ranks; if there are none yet, the job goes instead."""
        ranks = [pid for pid in processes_below(os.getpid()) if self.is_rank(pid)]
        if ranks:
            end_processes([self.rng.choice(ranks)])
        else:
            self.cancel()

    def is_rank(self, pid: int) -> bool:
        with suppress(OSError):
            return os.path.samefile(f"/proc/{pid}/exe", self.jobs.runs.taper)
        return False

    def kill_node(self) -> None:
        """The operator tells Slurm, and brings the node back."""
        node, cluster = self.rng.choice(self.jobs.cluster.names), self.jobs.cluster
        cluster.kill_node(node)
        cluster.client("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")
        cluster.start_node(node)
        cluster.wait_for(lambda: self.has_resumed(node), 120, f"{node} does not come back")

    def has_resumed(self, node: str) -> bool:
        cluster = self.jobs.cluster
        cluster.client("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
        time.sleep(0.5)
        return cluster.client("sinfo", "-h", "-n", node, "-o", "%T").split()[0] in ("idle", "mixed", "allocated")


def random_kills(jobs: Jobs, kills: int, seed: int) -> str:
    """Of a run that is longer than it is left alone between them, all in all."""
    count = longer_iterations(jobs, kills * SPAN / 2)
    changes = {"Training__Iterations": count, "Checkpoint__Every": 1}
    jobs.wait_until_over("longer", jobs.train("longer", **changes))
    disturber = Disturber(jobs, "disturbed", random.Random(seed), **changes)
    for _ in range(kills):
        disturber.disturb()
        print(f"  {disturber.counts}", flush=True)
    disturber.wait_until_running()
    jobs.wait_until_equal("disturbed", disturber.number, count, "longer")
    return f"{sum(disturber.counts.values())} interruptions of {count} iterations ({disturber.counts}), the same bits"
