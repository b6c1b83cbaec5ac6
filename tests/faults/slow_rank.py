#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank whose cores are slower: with Balance/Mode on it gets less to train, and no bit changes.

TAPER_FAULT makes rank 1 compute three times as slowly in the update from the second iteration on. The log must name the
rank, its share must fall, and the weights must be those of a run without the fault.
"""

import json
import re
import tempfile
from pathlib import Path

from taper_runs import Runs, arguments, check

RANKS, ITERATIONS = 2, 8
FAULT = "update_actor:1:slow3:2"


def weights(output: Path) -> bytes:
    return (output / f"checkpoints/iter_{ITERATIONS:06d}/model.safetensors").read_bytes()


def imbalance(output: Path) -> list[float]:
    """Of each iteration: the share of time in which the ranks wait for the slowest one."""
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return [line["balance/imbalance"] for line in lines if "balance/imbalance" in line]  # not the last evaluation


def main() -> None:
    args = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-slow-") as scratch:
        runs = Runs(args, Path(scratch))
        model = runs.make_model()
        settings = {"Training__Iterations": ITERATIONS, "Rollout__Prompts": 16, "Training__Bundle_Tokens": 64}
        plain = runs.run(runs.train(model, runs.folder / "plain", **settings), RANKS)
        check(plain.code == 0, "the plain run failed", plain.text)
        outputs = {}
        for mode in ("advise", "on"):
            outputs[mode] = runs.folder / mode
            outcome = runs.run(runs.train(model, outputs[mode], **settings, Balance__Mode=mode), RANKS,
                               env={"TAPER_FAULT": FAULT})
            check(outcome.code == 0, f"{mode}: the run failed", outcome.text)
            named = re.search(r"rank 1 \(.*\) computes at 0\.\d+ of the median speed in training", outcome.text)
            check(named is not None, f"{mode}: the slow rank is not named", outcome.text)
            check(weights(outputs[mode]) == weights(runs.folder / "plain"), f"{mode}: other weights", outcome.text)
        waiting = {mode: sum(imbalance(output)[-3:]) / 3 for mode, output in outputs.items()}
        check(waiting["on"] < 0.7 * waiting["advise"], f"ranks wait as long as without shares: {waiting}", "")
        print(f"share of time in which ranks wait for the slow one: {waiting['advise']:.2f}, "
              f"with shares by speed {waiting['on']:.2f}; the same weights")


if __name__ == "__main__":
    main()
