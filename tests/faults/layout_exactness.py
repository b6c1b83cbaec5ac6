#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With `Training/Exactness: layout` runs have the same weights on any number of ranks, in any layout, with any instruction
set, and stopped runs go on elsewhere with the same bits."""

import hashlib
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from taper_runs import Runs, arguments, check

RUN = {"Training__Exactness": "layout", "Training__Bundle_Tokens": 200, "Training__Iterations": 4,
       "Rollout__Prompts": 6, "Rollout__Samples_Per_Prompt": 3, "Rollout__Max_New_Tokens": 60,
       "Rollout__KV_Memory_MB": 64, "Training__Mini_Batches": 2, "Training__Epochs": 2, "Evaluation__Every": 0,
       "Checkpoint__Every": 2, "Checkpoint__Keep": 8, "Optimizer__Learning_Rate": 1e-4, "Run__Hang_Seconds": 60}
PPO = {"Algorithm__Preset": "ppo", "Critic__Warmup_Iterations": 1, "Critic__Learning_Rate": 1e-3}
TAIL = {"Rollout__Rounds": "tail", "Rollout__Tail_Prompts": 1.5}  # two short rounds, a long one, a short one
BF16 = {"Model__Arithmetic": "bf16", "Training__Iterations": 2}
DOT = {**BF16, "Model__Arithmetic": "bf16-dot"}
SFT = {"Training/Exactness": "layout", "Training/Bundle Tokens": 300, "Training/Batch Tokens": 2000,
       "Training/Steps": 3, "Data/Task": "mix", "Run/Hang Seconds": 60}


@dataclass
class Layout:
    ranks: int
    tp: int
    max_tokens: int = 256
    instructions: str = ""  # empty: the widest
    shares: bool = True  # weights, with the ranks of the host

    def __str__(self) -> str:
        by = f", {self.instructions}" if self.instructions else ""
        if not self.shares:
            by += ", own copies of weights"
        return f"{self.ranks} ranks, TP {self.tp}, micro-batches of {self.max_tokens} tokens{by}"


SHORT = [Layout(1, 1), Layout(2, 1), Layout(2, 2, 1000), Layout(3, 1)]
# On CPUs all instruction sets have the same bits, in each arithmetic.
SETS = [Layout(1, 1), Layout(2, 2, 1000, "avx2"), Layout(2, 1, 500, "scalar", shares=False)]
LONG = [*SHORT, Layout(1, 1, 2000), Layout(2, 1, 2000), Layout(3, 3), Layout(4, 1), Layout(4, 2), Layout(4, 4, 300)]


def weights(output: Path, unit: str = "iter") -> dict[str, str]:
    """Hashes of the weights in the last checkpoint, by file."""
    last = sorted((output / "checkpoints").glob(f"{unit}_*"))[-1]
    found = {str(file.relative_to(last)): hashlib.sha256(file.read_bytes()).hexdigest()
             for file in sorted(last.rglob("*.safetensors"))}
    check(bool(found), f"{last} has no weights")
    return found


def log_prob_differences(output: Path) -> list[float]:
    """The largest one of rollout and training in each iteration that trains."""
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    name = "training/rollout_log_probs_diff_max"
    return [line[name] for line in lines if name in line]


class Trials:
    def __init__(self, runs: Runs):
        self.runs, self.model, self.count = runs, runs.source / "data/model", 0

    def train(self, layout: Layout, output: Path, changes: dict) -> str:
        words = self.runs.train(self.model, output, **{**RUN, **changes, "Training__Tensor_Parallel": layout.tp,
                                                       "Training__Max_Tokens": layout.max_tokens})
        env = {"TAPER_SHARE_WEIGHTS": "yes" if layout.shares else "no"}
        if layout.instructions:
            env["TAPER_ISA"] = layout.instructions
        outcome = self.runs.run(words, layout.ranks, guard=300, env=env)
        check(outcome.code == 0, f"the run on {layout} failed", outcome.text)
        found = log_prob_differences(output)
        check(bool(found) and not any(found), f"on {layout} rollout and training have other log-probs: {found}")
        return outcome.text

    def new_output(self) -> Path:
        self.count += 1
        return self.runs.folder / f"run{self.count}"

    def compare(self, name: str, layouts: list[Layout], changes: dict) -> dict[str, str]:
        expected = {}
        for layout in layouts:
            output = self.new_output()
            self.train(layout, output, changes)
            found = weights(output)
            check(not expected or found == expected, f"{name}: other weights on {layout}", f"{found}\n{expected}")
            expected = found
            print(f"{name} on {layout}: the same weights", flush=True)
        return expected

    def resume(self, expected: dict[str, str], changes: dict) -> None:
        output = self.new_output()
        for until, layout in [(2, Layout(2, 1)), (3, Layout(4, 2, instructions="avx2")), (4, Layout(1, 1))]:
            text = self.train(layout, output, {**changes, "Training__Iterations": until})
            check("the results are close" not in text, "a run that is exact is said to be close", text)
        check(weights(output) == expected, "a run that went on elsewhere has other weights")
        print("resumed on 2, 4 and 1 ranks: the same weights", flush=True)

    def tune(self, layouts: list[Layout]) -> None:
        expected = {}
        for layout in layouts:
            output = self.new_output()
            words = ["sft"]
            for key, value in {**SFT, "Model/Directory": self.model, "Output/Directory": output,
                               "Training/Tensor Parallel": layout.tp, "Training/Max Tokens": layout.max_tokens + 100}.items():
                words += ["--set", f"{key}={value}"]
            outcome = self.runs.run(words, layout.ranks, guard=300)
            check(outcome.code == 0, f"sft on {layout} failed", outcome.text)
            found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in output.glob("*.safetensors")}
            check(bool(found) and (not expected or found == expected), f"sft: other weights on {layout}",
                  f"{found}\n{expected}")
            expected = found
            print(f"sft on {layout}: the same weights", flush=True)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--long", action="store_true", help="more layouts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-exactness-") as scratch:
        trials = Trials(Runs(args, Path(scratch)))
        layouts = LONG if args.long else SHORT
        expected = trials.compare("grpo", layouts, {})
        trials.resume(expected, {})
        expected = trials.compare("grpo in rounds of tail batching", layouts if args.long else [*SHORT[:2], SHORT[3]], TAIL)
        trials.resume(expected, TAIL)
        trials.compare("ppo", layouts if args.long else SHORT[:3], PPO)
        # With AVX-512, but without its dot products and tiles, where the processor has it.
        wide = [Layout(2, 2, 1000, "avx512")] if "avx512vl" in Path("/proc/cpuinfo").read_text() else []
        expected = trials.compare("grpo in bf16 arithmetic", [*SETS, *wide, *(layouts[1:] if args.long else [])], BF16)
        f32 = trials.compare("grpo in f32 arithmetic", SETS, {**BF16, "Model__Arithmetic": "f32"})
        dot = trials.compare("grpo in bf16-dot arithmetic", [*SETS, *wide], DOT)
        check(len({str(found) for found in (expected, f32, dot)}) == 3, "two arithmetics have the same weights")
        rounded = trials.compare("grpo over a cache of bf16", SETS, {**BF16, "Model__Arithmetic": "f32",
                                                                     "Model__Cache_Type": "bf16"})
        check(rounded != f32, "a cache of bf16 has the same weights")
        rounded = trials.compare("grpo in bf16-dot over a cache of bf16", SETS[:2], {**DOT, "Model__Cache_Type": "bf16"})
        check(rounded != dot, "a cache of bf16 has the same weights in bf16-dot")
        trials.tune(layouts if args.long else SHORT[:3])
        # The test can fail.
        run = {"Training__Exactness": "run"}
        outputs = [trials.new_output(), trials.new_output()]
        for layout, output in zip(SHORT, outputs):
            trials.train(layout, output, run)
        check(weights(outputs[0]) != weights(outputs[1]), "runs that are not exact have the same weights by chance")


if __name__ == "__main__":
    sys.exit(main())
