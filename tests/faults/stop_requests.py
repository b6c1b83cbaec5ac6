#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks training runs to stop and compares their resumed end with an undisturbed run.

A request reaches one rank, or all, at a random moment or (TAPER_FAULT=...:term) in a given phase. The run must then
end with exit code 75 and a checkpoint, `status.json` must say so, and the resumed run must have the weights and the
rollouts of an undisturbed one, byte for byte.
"""

import json
import os
import random
import signal
import tempfile
import time
from pathlib import Path

from taper_runs import EARLY, EARLY_PLACEMENT, Runs, arguments, check, finish, leftovers, ranks_of, status

PHASES = ["testing", "gen", "gen:5", "reward", "ref", "adv", "update_actor", "publish", "output", "save_checkpoint",
          "write_state:2"]
CRITIC_PHASES = ["values", "update_critic"]  # of a PPO run
BEFORE_UPDATE = {"testing", "gen", "gen:5", "score_early", "learn_early", "reward", "ref", "values", "adv"}
ITERATIONS = 3


def results(output: Path) -> list[bytes]:
    last = f"iter_{ITERATIONS:06d}"
    records = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
    held_out = [(r["step"], name, r[name]) for r in records for name in r if name.startswith("val/")]
    models = sorted((output / "checkpoints" / last).rglob("model.safetensors"))  # the critic's, too
    return [*(file.read_bytes() for file in models), (output / "rollouts" / f"{last}.h5").read_bytes(),
            json.dumps(held_out).encode()]


def is_listening(pid: int) -> bool:
    """Whether a rank holds SIGTERM back: before that it is not up yet, and a signal just ends it."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigBlk:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    except OSError:
        pass
    return False


def check_stopped(outcome, output: Path, why: str, what: str) -> None:
    check(not outcome.timed_out, f"{what}: still running", outcome.text)
    check(outcome.code in (0, 75), f"{what}: exit code {outcome.code}", outcome.text)
    state = status(output)
    check(state["state"] == ("stopped" if outcome.code else "completed"), f"{what}: {state}", outcome.text)
    if outcome.code:
        check(state["why"] == why, f"{what}: {state}", outcome.text)
        saved = output / f"checkpoints/iter_{state['iteration']:06d}/manifest.json"
        check(state["iteration"] == 0 or saved.exists(), f"{what}: no checkpoint of {state}", outcome.text)
    check(leftovers(output) == [], f"{what}: left {leftovers(output)}")


def finish_and_compare(runs: Runs, words: list[str], output: Path, ranks: int, straight: list[bytes], what: str) -> None:
    outcome = runs.run(words, ranks)
    check(outcome.code == 0, f"{what}: the resumed run ended with {outcome.code}", outcome.text)
    check(results(output) == straight, f"{what}: the resumed run has other bits", outcome.text)
    check(status(output)["state"] == "completed", f"{what}: {status(output)}")


def in_phase(runs: Runs, words: list[str], output: Path, ranks: int, straight: list[bytes], phase: str) -> None:
    name, _, step = phase.partition(":")
    fault = f"{name}:{ranks - 1}:term:2" + (f":{step}" if step else "")
    outcome = runs.run_with_fault(fault, words, output, ranks)
    check_stopped(outcome, output, "SIGTERM", fault)
    check(outcome.code == 75, f"{fault}: exit code {outcome.code}", outcome.text)
    check(status(output)["iteration"] == (1 if phase in BEFORE_UPDATE else 2), f"{fault}: {status(output)}", outcome.text)
    finish_and_compare(runs, words, output, ranks, straight, fault)


def in_the_last_evaluation(runs: Runs, words: list[str], output: Path, ranks: int, straight: list[bytes]) -> None:
    fault = f"testing:{ranks - 1}:term:{ITERATIONS + 1}"
    outcome = runs.run(words, ranks, env={"TAPER_FAULT": fault})
    check_stopped(outcome, output, "SIGTERM", fault)
    check(outcome.code == 75 and status(output)["iteration"] == ITERATIONS, f"{fault}: {status(output)}", outcome.text)
    finish_and_compare(runs, words, output, ranks, straight, fault)


def at_random(runs: Runs, words: list[str], output: Path, ranks: int, straight: list[bytes], rng: random.Random,
              span: float) -> int:
    """Stops one run again and again until it is through; the number of stops."""
    stops = 0
    while True:
        process = runs.start(words, ranks)
        while process.poll() is None and not (len(pids := ranks_of(process, runs.taper)) == max(ranks, 1)
                                              and all(map(is_listening, pids))):
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, span))
        number = rng.choice([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
        victims = pids if rng.random() < 0.3 else [rng.choice(pids)]
        for pid in victims if process.poll() is None else []:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        outcome = finish(process, 60)
        check_stopped(outcome, output, signal.Signals(number).name, f"{ranks} ranks, stop {stops + 1}")
        if outcome.code == 0:
            break
        stops += 1
        if stops > 40:
            break
    finish_and_compare(runs, words, output, ranks, straight, f"{stops} stops of {ranks} ranks")
    return stops


def undisturbed(runs: Runs, model: Path, output: Path, ranks: int, changes: dict) -> tuple[float, list[bytes]]:
    """Its seconds and results."""
    start = time.monotonic()
    outcome = runs.run(runs.train(model, output, **changes), ranks)
    check(outcome.code == 0, "the undisturbed run failed", outcome.text)
    return time.monotonic() - start, results(output)


def at_deadline(runs: Runs, words: list[str], output: Path, ranks: int, seconds: int) -> None:
    """A run that must have ended in so many seconds."""
    outcome = runs.run(words, ranks, env={"TAPER_DEADLINE": str(int(time.time()) + seconds)})
    check_stopped(outcome, output, "deadline", f"deadline in {seconds} s")
    check(outcome.code == 75, "the deadline did not stop the run", outcome.text)


def in_other_phases(runs: Runs, model: Path, folder: Path, ranks: int, changes: dict, phases: list[str]) -> None:
    """Those that only runs with such changes have."""
    _, straight = undisturbed(runs, model, folder / "straight", ranks, changes)
    for phase in phases:
        output = folder / phase
        in_phase(runs, runs.train(model, output, **changes), output, ranks, straight, phase)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--long", action="store_true", help="every phase and many random stops, on 1 to 3 ranks")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="taper-stop-") as scratch:
        runs = Runs(args, Path(scratch))
        model = runs.make_model()
        for ranks in (1, 2, 3) if args.long else (2,):
            folder = runs.folder / f"np{ranks}"
            # A checkpoint only at the end: a stop must save by itself.
            changes = dict(Checkpoint__Every=0, Run__Hang_Seconds=60, Evaluation__Prompts=32,
                           Rollout__Tensor_Parallel=2 if ranks == 2 else 1)
            span, straight = undisturbed(runs, model, folder / "straight", ranks, changes)
            if ranks == 2:
                in_other_phases(runs, model, runs.folder / "critic", ranks, {**changes, "Algorithm__Preset": "ppo"},
                                CRITIC_PHASES)
                early = {**changes, **EARLY, **EARLY_PLACEMENT, "Rollout__Tensor_Parallel": 1}
                in_other_phases(runs, model, runs.folder / "early", ranks, early, ["score_early", "learn_early"])
            for phase in PHASES if args.long else ["testing", "gen:5", "reward", "update_actor", "save_checkpoint"]:
                every = {"Checkpoint__Every": 1} if phase.startswith(("save", "write")) else {}
                output = folder / phase.replace(":", "-")
                in_phase(runs, runs.train(model, output, **{**changes, **every}), output, ranks, straight, phase)
            output = folder / "last"
            in_the_last_evaluation(runs, runs.train(model, output, **changes), output, ranks, straight)
            output = folder / "deadline"
            at_deadline(runs, runs.train(model, output, **changes, Run__Deadline_Margin=5), output, ranks, 4)
            finish_and_compare(runs, runs.train(model, output, **changes), output, ranks, straight, "deadline")
            output = folder / "deadline-later"
            endless = {**changes, "Training__Iterations": 100000, "Run__Deadline_Margin": 1}
            at_deadline(runs, runs.train(model, output, **endless), output, ranks, 5)
            wanted, stops, tries = 30 if args.long else 3, 0, 0
            while stops < wanted:
                output = folder / f"random-{tries}"
                found = at_random(runs, runs.train(model, output, **changes), output, ranks, straight, rng, span)
                stops, tries, span = stops + found, tries + 1, span if found else span / 2
            print(f"{ranks} ranks: stopped {stops} times in {tries} runs at random and in each phase; the same bits",
                  flush=True)


if __name__ == "__main__":
    main()
