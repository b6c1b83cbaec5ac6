#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the same iterations with models on different ranks.

    python tests/bench/placements.py --taper build/default/bin/taper --model data/model --reward taper-reward-model
    tests/bench/slow_network.sh 200mbit python tests/bench/placements.py ... --launcher "mpiexec -n 2 -bind-to core"

PPO with policy, critic, reference and two reward models (two copies of --reward, a reward model of the same family as
--model). An arm of --arms is a name and settings, NAME:KEY=VALUE,KEY=VALUE; the first arm is the measure. All arms make
the same samples and the same weights, so that only the time differs. Arms alternate in each of --rounds rounds. Times
are medians over rounds of the mean iteration after the first, in brackets the least and the most; `faster` is
the time of the first arm of the same round over this one. Memory is the largest resident size of any rank.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from taper_tables import band, iterations, print_head, print_row

ARMS = [
    "flattening",
    "interleaving:Placement/Strategy=interleaving",
    "separation:Placement/Strategy=separation",
    "one learner each:Placement/Policy=0-0,Placement/Critic=1-1",
    "one model each:Placement/Policy=0-0,Placement/Critic=1-1,Placement/Reference=0-0,"
    "Rewards/first/Ranks=0-0,Rewards/second/Ranks=1-1",
]
PHASES = {
    "gen": ("gen",),
    "scoring": ("reward", "reward_model", "ref", "values"),
    "updates": ("update_critic", "update_actor"),
    "wait": ("wait",),
}

RUN_FILE = """
Model: {{Directory: {model}}}
Data: {{Task: sum}}
Rewards:
  first: {{Kind: model, Directory: {reward}}}
  second: {{Kind: model, Directory: {reward}}}
Rollout: {{Prompts: {prompts}, Samples Per Prompt: 8, Temperature: 1.0, Max New Tokens: {tokens}, Lengths: log-normal}}
Algorithm: {{Preset: ppo, KL Coefficient: 0.01}}
Critic: {{Learning Rate: 1e-5}}
Training: {{Mini Batches: 2}}
Optimizer: {{Learning Rate: 1e-6}}
Evaluation: {{Every: 0}}
Checkpoint: {{Every: 0}}
"""


def run(options, folder, arm, number):
    name, _, settings = arm.partition(":")
    output = folder / f"{name.replace(' ', '-')}-{number}"
    values = {"Training/Iterations": options.iterations}
    values |= dict(text.split("=", 1) for text in [*settings.split(","), *options.set] if text)
    lines = iterations(options, folder / "run.yaml", output, values)[1:]

    def mean(*names):
        return statistics.mean(sum(line.get(f"timing_s/{name}", 0.0) for name in names) for line in lines)

    weights = (output / f"checkpoints/iter_{options.iterations:06d}/model.safetensors").read_bytes()
    return {
        "step": mean("step"),
        "memory": max(line["perf/max_memory_allocated_gb"] for line in lines),
        "weights": hash(weights),
    } | {title: mean(*names) for title, names in PHASES.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--reward", required=True, type=Path)
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=128, help="limit of a response")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another parameter")
    parser.add_argument("--launcher", default="mpiexec -n 2 -bind-to core")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        places = {"model": options.model.resolve(), "reward": options.reward.resolve()}
        text = RUN_FILE.format(**places, prompts=options.prompts, tokens=options.tokens)
        (folder / "run.yaml").write_text(text)
        found = {arm: [] for arm in options.arms}
        for number in range(options.rounds):
            for arm in options.arms:
                found[arm].append(run(options, folder, arm, number))
        first = found[options.arms[0]]
        print_head("placement", "iteration, s", "faster", *(f"{name}, s" for name in PHASES), "GiB of a rank")
        for arm, results in found.items():
            if {r["weights"] for r in results} != {first[0]["weights"]}:
                sys.exit(f"{arm}: other weights than {options.arms[0]}")
            ratios = [a["step"] / b["step"] for a, b in zip(first, results)]
            print_row(
                arm.partition(":")[0],
                band([r["step"] for r in results], ".2f"),
                band(ratios, ".2f") + "x",
                *(f"{statistics.median(r[name] for r in results):.2f}" for name in PHASES),
                f"{max(r['memory'] for r in results):.2f}",
            )


if __name__ == "__main__":
    main()
