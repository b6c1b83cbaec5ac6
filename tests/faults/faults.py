#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults in every phase of a training run: each must end the job within the hang guard, and lose nothing.

TAPER_FAULT makes one rank die (kill -9), throw, freeze or enter another collective than the others. The launcher must
end by itself with a non-zero code and a report; the newest whole checkpoint must be the one before the fault (or the
one in the making, once it is renamed); the run must go on to the weights of an undisturbed run.
"""

import re
import tempfile
from pathlib import Path

from taper_runs import EARLY, EARLY_PLACEMENT, Runs, arguments, check, status

RANKS, ITERATIONS, HANG_SECONDS = 2, 3, 4
# Start of each phase, and moments within: step 5 of the generation, a tensor of state.h5, before and after the manifest
# and the rename.
PHASES = ["testing", "gen", "gen:5", "reward", "ref", "adv", "update_actor", "publish", "output", "save_checkpoint",
          "write_state", "write_state:3", "save_checkpoint:1", "save_checkpoint:2", "save_checkpoint:3"]
CRITIC_PHASES = ["values", "update_critic"]  # of a PPO run
EARLY_PHASES = ["gen:5", "score_early", "learn_early", "update_actor"]  # of a run with EARLY_PLACEMENT
PLACED_PHASES = ["gen:5", "ref", "values", "update_critic", "update_actor", "publish", "wait", "write_state:3"]
# Before the checkpoint all faults leave the same behind: the short forms resume from some of them.
RESUMED = ("gen:5", "write_state:3", "save_checkpoint:2", "values", "wait", "score_early", "learn_early")
ONLY_RANK_0 = ("save_checkpoint:2", "save_checkpoint:3")
REPORT = {"kill": r"KILLED BY SIGNAL: 9|EXIT CODE: 9|signal 9|Killed", "throw": r"\[rank %d\] error: a fault on purpose",
          "freeze": r"no progress for more than \d+ s: phase", "stray": r"no progress for more than|failed on rank"}
SHORT = [("testing", 1, "kill"), ("gen:5", 1, "kill"), ("reward", 0, "kill"), ("ref", 1, "kill"),
         ("update_actor", 1, "kill"), ("publish", 1, "kill"), ("write_state:3", 1, "kill"),
         ("save_checkpoint:2", 0, "kill"), ("gen:5", 1, "throw"), ("gen:5", 1, "freeze"), ("write_state:3", 1, "throw"),
         ("write_state:3", 1, "freeze"), ("update_actor", 1, "stray")]
CRITIC_SHORT = [("values", 1, "kill"), ("update_critic", 1, "kill"), ("update_critic", 0, "throw")]
# Rank 0 generates and scores, rank 1 learns: the other one waits.
PLACED_SHORT = [("gen:5", 0, "kill"), ("ref", 0, "freeze"), ("values", 1, "throw"), ("update_actor", 1, "freeze"),
                ("publish", 1, "kill"), ("wait", 0, "kill"), ("write_state:3", 1, "kill")]

# With models on ranks of their own, the rank that alone has a phase.
ONLY_ON = {"gen:5": 0, "ref": 0, "score_early": 1, "learn_early": 1, "values": 1, "update_critic": 1, "update_actor": 1,
           "write_state:3": 1}
EARLY_SHORT = [("score_early", 1, "kill"), ("score_early", 1, "freeze"), ("learn_early", 1, "kill"),
               ("learn_early", 1, "throw"), ("learn_early", 1, "freeze"),
               ("gen:5", 0, "kill"), ("gen:5", 0, "freeze"), ("update_actor", 1, "kill")]


def grid(phases: list[str]) -> list[tuple[str, int, str]]:
    cases = [(phase, rank, kind) for phase in phases for rank in range(RANKS) for kind in ("kill", "throw", "freeze")
             if rank == 0 or phase not in ONLY_RANK_0]
    return cases + [(phase, rank, "stray") for phase in phases if ":" not in phase for rank in range(RANKS)]


def weights(output: Path) -> list[bytes]:
    """Of the policy, and of the critic if there is one."""
    last = output / f"checkpoints/iter_{ITERATIONS:06d}"
    return [file.read_bytes() for file in sorted(last.rglob("model.safetensors"))]


def check_end(outcome, output: Path, what: str, rank: int, kind: str) -> None:
    check(not outcome.timed_out, f"{what}: the job did not end", outcome.text)
    check(outcome.code not in (0, 2, 75), f"{what}: exit code {outcome.code}", outcome.text)
    report = REPORT[kind] % rank if "%d" in REPORT[kind] else REPORT[kind]
    check(re.search(report, outcome.text) is not None, f"{what}: no report like '{report}'", outcome.text)
    state = status(output)
    if kind == "kill":
        check(state["state"] in ("running", "failed"), f"{what}: {state}", outcome.text)
    else:
        check(state["state"] == "failed" and state["why"], f"{what}: {state}", outcome.text)


def run_case(runs: Runs, model: Path, straight: list[bytes], phase: str, rank: int, kind: str, resume: bool,
             **settings) -> float:
    name, _, step = phase.partition(":")
    fault = f"{name}:{rank}:{kind}:2" + (f":{step}" if step else "")
    output = runs.folder / fault.replace(":", "-")
    words = runs.train(model, output, **settings,
                       Run__Hang_Seconds=HANG_SECONDS if kind in ("freeze", "stray") else 60)
    outcome = runs.run_with_fault(fault, words, output, RANKS, guard=45)
    check_end(outcome, output, fault, rank, kind)
    if not resume:
        return outcome.seconds
    resumed = runs.run(words, RANKS)
    check(resumed.code == 0, f"{fault}: the resumed run ended with {resumed.code}", resumed.text)
    newest = {2} if phase == "save_checkpoint:3" else {1}
    if name == "save_checkpoint" and kind == "throw":
        newest.add(2)  # the other rank may have finished it before it heard of the error
    found = any(f"resuming after iteration {n}" in resumed.text for n in newest)
    check(found, f"{fault}: lost a checkpoint", resumed.text)
    check("passed over" not in resumed.text, f"{fault}: a half-written checkpoint counted", resumed.text)
    check(weights(output) == straight, f"{fault}: the resumed run has other weights", resumed.text)
    return outcome.seconds


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--long", action="store_true", help="every kind in every phase on both ranks")
    parser.add_argument("--only", default="", help="cases whose phase:rank:kind contains this")
    parser.add_argument("--critic", action="store_true", help="the phases that only a PPO run has")
    parser.add_argument("--placed", action="store_true", help="a PPO run with policy and critic on ranks of their own")
    parser.add_argument("--early", action="store_true", help="a run that learns on rank 1 while rank 0 generates")
    args = parser.parse_args()
    settings = {"Algorithm__Preset": "ppo"} if args.critic or args.placed else {}
    if args.early:
        settings = EARLY
    placement = EARLY_PLACEMENT if args.early else {"Placement__Strategy": "separation"} if args.placed else {}
    phases, short = ((PLACED_PHASES, PLACED_SHORT) if args.placed
                     else (CRITIC_PHASES, CRITIC_SHORT) if args.critic
                     else (EARLY_PHASES, EARLY_SHORT) if args.early else (PHASES, SHORT))
    cases = grid(phases) if args.long else short
    if args.placed or args.early:
        cases = [case for case in cases if ONLY_ON.get(case[0], case[1]) == case[1]]
    with tempfile.TemporaryDirectory(prefix="taper-faults-") as scratch:
        runs = Runs(args, Path(scratch))
        model = runs.make_model()
        outcome = runs.run(runs.train(model, runs.folder / "straight", **settings, Run__Hang_Seconds=60), RANKS)
        check(outcome.code == 0, "the undisturbed run failed", outcome.text)
        for phase, rank, kind in cases:
            if args.only in f"{phase}:{rank}:{kind}":
                resume = args.long or phase in RESUMED
                straight = weights(runs.folder / "straight")
                seconds = run_case(runs, model, straight, phase, rank, kind, resume, **settings,
                                   **placement)
                print(f"{kind} of rank {rank} in {phase}: ended after {seconds:.1f} s"
                      + ("; resumed to the same weights" if resume else ""), flush=True)


if __name__ == "__main__":
    main()
