#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times iterations that score or learn while others are generated beside iterations that do not.

    python tests/bench/early_work.py --taper build/default/bin/taper --lengths straggler heavy-tail log-normal no-tail
    python tests/bench/early_work.py --taper build/default/bin/taper --reward taper-reward-model

Runs of data/quickstart.yaml with prescribed lengths and one mini-batch; with --reward GRPO of the embedded model with a
reference and that reward model. An arm is a name and settings,
NAME:KEY=VALUE,KEY=VALUE; the first one of --arms is the measure. Arms alternate in each of --rounds rounds, in another
order in each. Times are medians over rounds of the mean iteration after the first, in brackets the least and the most;
`faster` is the time of the first arm of the same round over this one. `scored` is the share of figures of models that
were there when the generation ended, `learned` the share of response tokens learned from until then. All arms that
learn early must have the same weights, and so must all others.
"""

import argparse
import random
import statistics
import sys
import tempfile
from pathlib import Path

from taper_tables import ROOT, band, iterations, print_head, print_row

APART = "Placement/Strategy=separation"
LEARNING_ARMS = ["off", "on:Training/Early Learning=true", f"separation:{APART}", f"separation, on:{APART},Training/Early Learning=true"]
# With reference and reward model on rank 1, and generation on rank 0.
SCORES_APART = "Placement/Generation=0-0,Placement/Reference=1-1,Rewards/judge/Ranks=1-1"
ALL_APART = f"{SCORES_APART},Placement/Policy=1-1"
SCORING_ARMS = [
    "off",
    "scoring:Training/Early Scoring=true",
    "learning:Training/Early Learning=true",
    f"scores apart:{SCORES_APART}",
    f"scores apart, scoring:{SCORES_APART},Training/Early Scoring=true",
    f"all apart:{ALL_APART}",
    f"all apart, learning:{ALL_APART},Training/Early Learning=true",
]

RUN_FILE = """
Data: {{Task: sum}}
Rewards:
  judge: {{Kind: model, Directory: {reward}}}
  right: {{Kind: task}}
Rollout: {{Prompts: 16, Samples Per Prompt: 8, Temperature: 1.0}}
Algorithm: {{Preset: grpo, KL Coefficient: 0.01}}
Optimizer: {{Learning Rate: 1e-6}}
"""


def run(options, folder, law, arm, number):
    name, _, settings = arm.partition(":")
    output = folder / f"{law}-{name.replace(', ', '-')}-{number}"
    run_file = options.run or ROOT / "data/quickstart.yaml"
    if options.reward is not None:
        run_file = folder / "run.yaml"
        run_file.write_text(RUN_FILE.format(reward=options.reward.resolve()))
    values = {
        "Training/Iterations": options.iterations,
        "Training/Mini Batches": 1,
        "Rollout/Lengths": law,
        "Rollout/Max New Tokens": options.tokens,
        "Evaluation/Every": 0,
        "Checkpoint/Every": 0,
    }
    if options.run is None:
        values["Model/Directory"] = ROOT / "data/model"
    values |= dict(text.split("=", 1) for text in [*settings.split(","), *options.set] if text)
    lines = iterations(options, run_file, output, values)[1:]

    def mean(metric):
        return statistics.mean(line.get(metric, 0.0) for line in lines)

    weights = (output / f"checkpoints/iter_{options.iterations:06d}/model.safetensors").read_bytes()
    return {
        "step": mean("timing_s/step"),
        "gen": mean("timing_s/gen"),
        "update": mean("timing_s/update_actor"),
        "scoring": mean("timing_s/reward_model") + mean("timing_s/reward") + mean("timing_s/ref") + mean("timing_s/values"),
        "scored": mean("rollout/early_score_share"),
        "learned": mean("actor/early_token_share"),
        "weights": hash(weights),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--run", type=Path, help="another run file")
    parser.add_argument("--reward", type=Path, help="directory of a reward model for the embedded model")
    parser.add_argument("--lengths", nargs="+", default=["straggler"], help="Rollout/Lengths")
    parser.add_argument("--arms", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=512, help="limit of a response")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another parameter")
    parser.add_argument("--launcher", default="mpiexec -n 2 -bind-to core")
    options = parser.parse_args()
    options.arms = options.arms or (SCORING_ARMS if options.reward else LEARNING_ARMS)
    print_head("lengths", "arm", "iteration, s", "faster", "gen, s", "scoring, s", "update, s", "scored", "learned")
    order = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        for law in options.lengths:
            found = {arm: [] for arm in options.arms}
            for number in range(options.rounds):
                for arm in order.sample(options.arms, len(options.arms)):
                    found[arm].append(run(options, Path(scratch), law, arm, number))
            first = found[options.arms[0]]
            for learns in (False, True):
                arms = [arm for arm in found if ("Early Learning=true" in arm) == learns]
                if len({r["weights"] for arm in arms for r in found[arm]}) > 1:
                    sys.exit(f"{law}: these arms have different weights: {', '.join(arms)}")
            for arm, results in found.items():
                print_row(
                    law,
                    arm.partition(":")[0],
                    band([r["step"] for r in results], ".2f"),
                    band([a["step"] / b["step"] for a, b in zip(first, results)], ".3f") + "x",
                    f"{statistics.median(r['gen'] for r in results):.2f}",
                    f"{statistics.median(r['scoring'] for r in results):.2f}",
                    f"{statistics.median(r['update'] for r in results):.2f}",
                    f"{statistics.mean(r['scored'] for r in results):.0%}",
                    f"{statistics.mean(r['learned'] for r in results):.0%}",
                )


if __name__ == "__main__":
    main()
