#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs with reward workers on two ranks: good ones, and each way in which they can fail.

No fault may hang the job, pass as a score, or leave a process behind.
"""

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from taper_runs import Runs, arguments, check, end_of, family, finish, status

RANKS = 2
WORKER = Path(__file__).resolve().parent / "bad_worker.py"
SAMPLES = 8  # of an iteration


class Workers:
    def __init__(self, args, folder: Path):
        self.runs = Runs(args, folder)
        self.model = self.runs.make_model()
        self.folder = folder

    def output(self, name: str) -> Path:
        return self.folder / name

    def words(self, name: str, kind: str, more: str = "", **options) -> list:
        """A run with the reward 'judge' by a worker of this kind; options of the reward with _ for blanks."""
        pids = self.folder / f"{name}.pids"
        pids.mkdir(exist_ok=True)
        judge = {"Kind": "command", "Command": f"[{sys.executable}, {WORKER}, {kind}, {pids}{more}]", "Workers": 2,
                 "Timeout": 60, "Retries": 0, "On Error": "fail"}
        judge.update({key.replace("_", " "): value for key, value in options.items()})
        words = self.runs.train(self.model, self.output(name), Run__Hang_Seconds=60, Training__Iterations=1,
                                Evaluation__Every=0)
        for key, value in judge.items():
            words += ["--set", f"Rewards/judge/{key}={value}"]
        return words

    def metrics(self, name: str) -> dict:
        lines = (self.output(name) / "metrics.jsonl").read_text().splitlines()
        return {key: value for line in lines for key, value in json.loads(line).items()}

    def left(self, name: str) -> list[int]:
        """Workers that are still there. A moment is theirs: if a rank is killed, its spawner ends them."""
        pids = [int(file.name) for file in (self.folder / f"{name}.pids").iterdir()]
        check(len(pids) > 0, f"{name}: no worker was started")
        for _ in range(100):
            alive = [pid for pid in pids if is_worker(pid)]
            if not alive:
                return []
            time.sleep(0.1)
        return alive


def is_worker(pid: int) -> bool:
    try:
        return WORKER.name in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False


def good(w: Workers) -> None:
    words = w.words("good", "good", Components="[even]", Weight=0.5)
    words += ["--set", "Rewards/right/Kind=task"]
    outcome = w.runs.run(words, RANKS)
    check(outcome.code == 0, "good workers: the run failed", outcome.text)
    m = w.metrics("good")
    check(abs(m["reward/judge/mean"] - m["response_length/mean"] / 64) < 1e-5, f"scores are not the worker's: {m}")
    score = 0.5 * m["reward/judge/mean"] + m["reward/right/mean"]
    check(abs(m["critic/score/mean"] - score) < 1e-5, f"the score is not the weighted sum: {m}")
    check("reward/judge/even/mean" in m, f"no component of the answers: {m}")
    for name in ("failed", "errors", "timeouts", "restarts"):
        check(m[f"reward/judge/{name}"] == 0, f"{name}: {m}")
    check(0 < m["reward/judge/latency_s/mean"] <= m["reward/judge/latency_s/max"], f"latency: {m}")
    check(not w.left("good"), "good workers were left behind")
    logs = list((w.output("good") / "reward_logs").iterdir())
    check(len(logs) == 2 * RANKS, f"logs: {logs}")


def example(w: Workers) -> None:
    """The worker that the documentation shows says what the rule says."""
    model = w.runs.source / "data/model"  # half of its answers are right
    words = w.runs.train(model, w.output("example"), Run__Hang_Seconds=60, Training__Iterations=1, Evaluation__Every=2,
                         Evaluation__Prompts=8, Rollout__Max_New_Tokens=64, Rollout__Prompts=8)
    worker = w.runs.source / "data/reward_worker.py"
    words += ["--set", "Rewards/right/Kind=task", "--set", "Rewards/judge/Kind=command", "--set",
              f"Rewards/judge/Command=[{sys.executable}, {worker}]"]
    outcome = w.runs.run(words, RANKS, guard=120)
    check(outcome.code == 0, "the example: the run failed", outcome.text)
    m = w.metrics("example")
    check(0 < m["reward/right/mean"] < 1 and m["reward/judge/mean"] == m["reward/right/mean"], f"the example: {m}")
    check(m["val/reward/judge/mean"] == m["val/reward/right/mean"], f"the example, held out: {m}")


def math_verify(w: Workers) -> None:
    """Without its package the worker that asks Math-Verify says what to install. With it: tools/tests."""
    words = w.words("math_verify", "good")
    worker = w.runs.source / "data/reward_math_verify.py"
    words += ["--set", f"Rewards/judge/Command=[{sys.executable}, -I, -S, {worker}]"]
    outcome = w.runs.run(words, RANKS)
    check(not outcome.timed_out and outcome.code == 1, f"no package: exit code {outcome.code}", outcome.text)
    check("pip install math-verify" in outcome.text, "no package: no advice", outcome.text)


def evaluated(w: Workers) -> None:
    """taper eval judges by the rewards of a file."""
    rewards, figures = w.folder / "rewards.yaml", w.folder / "eval.json"
    worker = w.runs.source / "data/reward_worker.py"
    rewards.write_text(f"Rewards:\n  judge: {{Kind: command, Command: [{sys.executable}, {worker}]}}\n")
    words = ["eval", "--model", w.runs.source / "data/model", "--task", "sum", "--count", "12", "--max-new-tokens", "64",
             "--reward-logs", w.folder / "eval-logs", "--output", figures]
    scores = []
    for more in ([], ["--rewards", rewards]):
        outcome = w.runs.run(words + more, RANKS, guard=120)
        check(outcome.code == 0, "eval failed", outcome.text)
        scores.append(json.loads(figures.read_text()))
    check(scores[0]["tasks"] != {} and 0 < scores[0]["tasks"]["sum"]["avg@1"] < 1, f"eval: {scores[0]}")
    check(scores[1]["tasks"]["sum"]["avg@1"] == scores[0]["tasks"]["sum"]["avg@1"], f"eval: {scores}")
    check(scores[1]["reward/judge/failed"] == 0, f"eval: {scores[1]}")
    rewards.write_text("Rewards: {judge: {Kind: command, Command: [no-such-program]}}\n")
    outcome = w.runs.run(words + ["--rewards", rewards], RANKS)
    check(outcome.code == 2 and "there is no program no-such-program" in outcome.text, "eval: no program", outcome.text)
    rewards.write_text("Rewards: {judge: {Kind: boxed}}\n")
    outcome = w.runs.run(words + ["--rewards", rewards], RANKS)
    check(outcome.code == 2 and "does not fit the in-tree tasks" in outcome.text, "eval: a rule", outcome.text)


# What each kind counts as.
FAULTS = {"hangs": "timeouts", "dies": "errors", "rubbish": "errors", "wrong_id": "errors", "half_line": "errors",
          "huge_line": "errors", "closes": "errors", "reports": "errors"}


def faults(w: Workers) -> None:
    for number, (kind, count) in enumerate(FAULTS.items()):
        # A time-out that no healthy worker meets, but the start of Python counts apart.
        limits = {"Timeout": 3, "Start_Timeout": 20} if kind == "hangs" else {}
        on_error = ("drop", "zero", "fail")[number % 3]
        outcome = w.runs.run(w.words(kind, kind, On_Error=on_error, **limits), RANKS, guard=120)
        check(not outcome.timed_out, f"{kind}: the job did not end", outcome.text)
        check(not w.left(kind), f"{kind}: workers were left behind")
        if on_error == "fail":
            check(outcome.code == 1, f"{kind}: exit code {outcome.code}", outcome.text)
            check("Rewards/judge has no score for sample 0 of prompt 1" in outcome.text, kind, outcome.text)
            check(status(w.output(kind))["state"] == "failed", f"{kind}: {status(w.output(kind))}")
        else:
            check(outcome.code == 0, f"{kind}: exit code {outcome.code}", outcome.text)
            check("without a score; the last one: " in outcome.text, f"{kind}: no word of it", outcome.text)
            m = w.metrics(kind)
            check(m["reward/judge/failed"] == 1 and m[f"reward/judge/{count}"] == 1, f"{kind}: {m}")
            seen = SAMPLES - 1 if on_error == "drop" else SAMPLES
            sums = m["reward/judge/mean"] * (SAMPLES - 1) / seen
            check(abs(m["critic/score/mean"] - sums) < 1e-5, f"{kind}: the score of {on_error}: {m}")
        print(f"{kind} ({on_error}): ok", flush=True)


def retried(w: Workers) -> None:
    outcome = w.runs.run(w.words("retried", "dies", Retries=2, On_Error="drop"), RANKS)
    check(outcome.code == 0, "retries: the run failed", outcome.text)
    m = w.metrics("retried")
    check(m["reward/judge/errors"] == 3 and m["reward/judge/failed"] == 1, f"retries: {m}")


def cut_short(w: Workers) -> None:
    """An answer that takes longer than its prompt allows is given up at once, whatever Timeout and Retries are."""
    limits = {"Adaptive_Timeout/Least": 3, "Adaptive_Timeout/Most": 3, "Timeout": 600, "Start_Timeout": 20}
    outcome = w.runs.run(w.words("cut_short", "hangs", Retries=2, On_Error="zero", **limits), RANKS, guard=120)
    check(not outcome.timed_out and outcome.code == 0, f"cut short: exit code {outcome.code}", outcome.text)
    m = w.metrics("cut_short")
    for name, count in (("cut_short", 1), ("timeouts", 1), ("failed", 1), ("anchor_hits", 0)):
        check(m[f"reward/judge/{name}"] == count, f"cut short: {name}: {m}")
    check(not w.left("cut_short"), "cut short: workers were left behind")


def never_there(w: Workers) -> None:
    """Workers of which none ever answers must not become zeros."""
    for kind, word in (("dies_at_start", "exited with code 1"), ("exits_at_once", "exited with code 0")):
        outcome = w.runs.run(w.words(kind, kind, On_Error="zero"), RANKS)
        check(not outcome.timed_out and outcome.code == 1, f"{kind}: exit code {outcome.code}", outcome.text)
        check("has scored none of 8 responses" in outcome.text and word in outcome.text, kind, outcome.text)
        check(not w.left(kind), f"{kind}: workers were left behind")
    logs = (w.output("dies_at_start") / "reward_logs").glob("*.log")
    check(any("cannot load the judge" in log.read_text() for log in logs), "the log of a worker that died at its start")


def no_program(w: Workers) -> None:
    for program in ("no-such-program", f"{w.folder}/nothing", str(w.folder)):
        for more in ([], ["--check"]):
            words = w.words("absent", "good", Command=f"[{program}, x]") + more
            outcome = w.runs.run(words, RANKS)
            check(outcome.code == 2, f"{program} {more}: exit code {outcome.code}", outcome.text)
            check("Rewards/judge/Command: there is no program" in outcome.text and program in outcome.text,
                  f"{program}: not named", outcome.text)
            check(not w.output("absent").exists(), f"{program}: something was written")
    words = w.words("absent", "good")
    words[words.index("Rewards/judge/On Error=fail")] = "Rewards/judge/On Eror=fail"
    outcome = w.runs.run(words, RANKS)
    check(outcome.code == 2 and "did you mean On Error?" in outcome.text, "a misspelled option", outcome.text)


def spawners(root: int) -> list[int]:
    return [pid for pid in family(root) if Path(f"/proc/{pid}/comm").read_text().strip() == "taper-spawner"]


def killed(w: Workers) -> None:
    """A rank, or its spawner, is killed while a worker hangs."""
    for name, choose in (("rank", lambda root: [parent(pid) for pid in spawners(root)]), ("spawner", spawners)):
        process = w.runs.start(w.words(name, "hangs"), RANKS)
        pids = w.folder / f"{name}.pids"
        deadline = end_of(60)
        while len(list(pids.iterdir())) < 2 * RANKS or len(spawners(process.pid)) < RANKS:
            check(time.monotonic() < deadline, f"killed {name}: the workers did not start")
            time.sleep(0.05)
        time.sleep(1.0)  # the workers have requests by now
        os.kill(choose(process.pid)[0], signal.SIGKILL)
        outcome = finish(process, 60)
        check(not outcome.timed_out and outcome.code not in (0, 2, 75), f"killed {name}: {outcome.code}", outcome.text)
        check(not w.left(name), f"killed {name}: workers were left behind", outcome.text)
        if name == "spawner":
            check("the spawner of reward workers" in outcome.text, "killed spawner: no word of it", outcome.text)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def stopped(w: Workers) -> None:
    """A stop request is honored while workers take their time, and the run goes on; also if all processes of the job
    are told, as schedulers do, so that workers end with responses in hand."""
    for name, workers in (("stopped", 1), ("all_stopped", SAMPLES)):
        process = w.runs.start(w.words(name, "slow", more=", 10.0", Workers=workers), RANKS)
        pids = w.folder / f"{name}.pids"
        deadline = end_of(60)
        while sum(file.stat().st_size > 0 for file in pids.iterdir()) < min(workers * RANKS, SAMPLES):
            check(time.monotonic() < deadline, f"{name}: the workers were not asked")
            time.sleep(0.05)
        time.sleep(2.0)  # by now the ranks ask each other ten times a second, no more
        told = [parent(pid) for pid in spawners(process.pid)]
        if name == "all_stopped":
            told = [int(file.name) for file in pids.iterdir()] + told  # ranks last: the loss comes first
        for pid in told:
            os.kill(pid, signal.SIGTERM)
        outcome = finish(process, 60)
        check(outcome.code in (75, 143), f"{name}: exit code {outcome.code}", outcome.text)  # 143: a launcher was told
        check(not w.left(name), f"{name}: workers were left behind")
        check(status(w.output(name))["state"] == "stopped", f"{name}: {status(w.output(name))}", outcome.text)
        outcome = w.runs.run(w.words(name, "good"), RANKS)
        check(outcome.code == 0, f"{name}: the resumed run failed", outcome.text)


def overlapped(w: Workers) -> None:
    """Workers judge while others are generated: what is left to wait for is what they could not have done meanwhile."""
    latency, workers, samples = 0.5, 8, 48
    config = w.model / "config.json"
    config.write_text(json.dumps(dict(json.loads(config.read_text()), max_position_embeddings=2048)))
    words = w.words("overlap", "slow", more=f", {latency}", Workers=workers)
    # One at a time: responses end all through the generation.
    for change in ("Max Running=1", "Max New Tokens=1500", f"Prompts={samples // 8}", "Samples Per Prompt=8"):
        words += ["--set", f"Rollout/{change}"]
    words += ["--set", "Training/Max Tokens=2048"]
    outcome = w.runs.run(words, RANKS, guard=300)
    check(outcome.code == 0, "overlap: the run failed", outcome.text)
    m = w.metrics("overlap")
    times = [float(word) for file in (w.folder / "overlap.pids").iterdir() for word in file.read_text().split()]
    judging = max(times) - min(times)
    print(f"overlap: judging took {judging:.2f} s beside {m['timing_s/gen']:.2f} s of generation, then a wait of "
          f"{m['timing_s/reward']:.2f} s", flush=True)
    # Were it to begin when generation ends, all of it would be waited for.
    check(judging > m["timing_s/reward"] + 0.5 * m["timing_s/gen"], f"overlap: {judging} s, {m}")


CASES = [good, example, math_verify, evaluated, faults, retried, cut_short, never_there, no_program, killed, stopped, overlapped]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", default="", help="names of cases, separated by commas")
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else [case.__name__ for case in CASES]
    with tempfile.TemporaryDirectory(prefix="taper-rewards-") as scratch:
        workers = Workers(args, Path(scratch))
        for case in CASES:
            if case.__name__ in wanted:
                case(workers)
                print(f"{case.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
