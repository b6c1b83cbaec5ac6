#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`taper plan` finds a placement by a measured profile, tries it and writes it; a run trains with it, and another one
refuses it."""

import json
import sys
import tempfile
from pathlib import Path

from taper_runs import Runs, arguments, check

RUN = {"Training__Iterations": 2, "Rollout__Prompts": 4, "Rollout__Samples_Per_Prompt": 4, "Rollout__Max_New_Tokens": 24,
       "Rollout__Lengths": "log-normal", "Rollout__KV_Memory_MB": 64, "Evaluation__Every": 0, "Checkpoint__Every": 0,
       "Algorithm__Preset": "ppo", "Algorithm__KL_Coefficient": 0.01, "Run__Hang_Seconds": 60}


def main() -> None:
    args = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-plan-") as scratch:
        folder = Path(scratch)
        runs = Runs(args, folder)
        model, profile, plan = runs.source / "data/model", folder / "profile.h5", folder / "plan.yaml"

        def call(words: list, ranks: int = 2, code: int = 0) -> str:
            outcome = runs.run(words, ranks, guard=300)
            check(outcome.code == code, f"{words[0]} ended with {outcome.code} instead of {code}", outcome.text)
            return outcome.text

        def words(command: str, output: str, **changes) -> list:
            return [command, *runs.train(model, folder / output, **{**RUN, **changes})[1:]]

        call(["profile", "--model", model, "--output", profile, "--budget", 2, "--passes"])
        table = call([*words("plan", "run"), "--profile", profile, "--output", plan, "--json", folder / "plans.jsonl",
                      "--measure", 1])
        check("flattening" in table and "all that there are" in table, "there is no table", table)
        lines = [json.loads(line) for line in (folder / "plans.jsonl").read_text().splitlines()]
        best = next(line for line in lines if line["name"] == "1")
        flat = next(line for line in lines if line["name"] == "flattening")
        check(best["predicted_s"] <= flat["predicted_s"], "a strategy is better than the best placement", str(lines[:6]))
        check(best["measured_s"] > 0 and flat["measured_s"] > 0, "nothing was measured", str(best))
        check(not (folder / "run.trial").exists(), "a trial has left its directory")

        chosen = {"Placement__Strategy": "plan", "Placement__File": plan}
        text = call(words("train", "run", **chosen))
        check("iteration" in text, "the run with a plan did not train", text)
        call([*words("plan", "run", **chosen), "--profile", profile])  # anew, whatever the run has now
        # The degrees of the run are those of the ranks, whatever the ranks could have without it.
        call([*words("plan", "run", Training__Tensor_Parallel=3), "--profile", profile, "--ranks", 6, "--top", 3000, "--json",
              folder / "six.jsonl"])
        settings = [value for line in (folder / "six.jsonl").read_text().splitlines()
                    for value in json.loads(line)["settings"].values()]
        blocks = [[int(rank) for rank in value.split(":")[0].split("-")] for value in settings]
        check({block[-1] - block[0] + 1 for block in blocks} == {1, 3, 6}, "a plan has blocks that the run cannot have",
              str(settings))
        text = call([*words("plan", "run", Training__Tensor_Parallel=4), "--profile", profile, "--ranks", 6], code=2)
        check("Training/Tensor Parallel is 4" in text, "a degree that does not divide the ranks is not refused", text)
        text = call(words("train", "other", **chosen), ranks=1, code=2)
        check("a plan for 2 ranks" in text, "a plan for other ranks is not refused by name", text)
        text = call(words("train", "other", **chosen, Algorithm__Preset="grpo"), code=2)
        check("plan.yaml" in text and "Placement/Critic" in text, "a plan for other models is not refused by name", text)
        text = call(words("plan", "run"), code=2)
        check("--profile" in text, "a plan without a profile is not refused by name", text)


if __name__ == "__main__":
    sys.exit(main())
