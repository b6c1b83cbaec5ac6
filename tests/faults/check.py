#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`taper train --check` says where the run would start, leaves nothing behind, and is right about it."""

import shutil
import sys
import tempfile
from pathlib import Path

from taper_runs import Runs, arguments


def snapshot(folder: Path) -> dict:
    """All files with time and size, and all folders, in which entries may have come and gone."""
    return {str(p): p.is_dir() or (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*")}


class Check:
    def __init__(self, args, folder: Path):
        self.runs = Runs(args, folder)
        self.folder, self.output = folder, folder / "run"
        self.model = self.runs.make_model()
        self.failed = 0

    def words(self, *more: str, **changes) -> list:
        return self.runs.train(self.model, self.output, **changes) + list(more)

    def train(self, **changes) -> None:
        outcome = self.runs.run(self.words(**changes))
        assert outcome.code == 0, outcome.text

    def expect(self, code: int, word: str, *more: str, ranks: int = 0, **changes) -> None:
        before = snapshot(self.folder)
        outcome = self.runs.run(self.words("--check", *more, **changes), ranks)
        problems = [f"exit code {outcome.code} instead of {code}"] if outcome.code != code else []
        problems += [f"no word of '{word}'"] if word not in outcome.text else []
        problems += ["changed files"] if snapshot(self.folder) != before else []
        self.failed += bool(problems)
        print(f"{word}: {'; '.join(problems + [outcome.text.strip()]) if problems else 'ok'}", flush=True)


def check_sft_results(check: Check, words: list[str]) -> None:
    """A start says what it removes, and removes nothing whose checkpoints were removed."""
    place = check.folder / "done.run"
    words = [*words, "--set", f"Output/Directory={check.folder}/done", "--set", "Training/Batch Tokens=256", "--set",
             "Training/Max Tokens=256", "--set", "Checkpoint/Every=1", "--set"]
    found = f"{place}, {{}} after step {{}}: checkpoints/iter_00000{{}}"

    def expect(code: int, word: str, *more: str) -> None:
        before = snapshot(check.folder)
        outcome = check.runs.run([*words, *more])
        if outcome.code != code or word not in outcome.text or ("--check" in words) != (snapshot(check.folder) == before):
            check.failed += 1
            print(f"sft with results: '{word}' and {code} are expected\n{outcome.code}: {outcome.text}")

    words.remove("--check")
    expect(0, "completed: 2 steps", "Training/Steps=2")
    words.insert(1, "--check")
    expect(0, f"would remove from {found.format('starting', 0, 2)}; checkpoints/iter_000001; metrics of steps 1 to 2\n",
           "Training/Steps=2", "--resume", "none")
    expect(0, f"would remove from {found.format('starting', 1, 2)}; metrics of step 2\n", "Training/Steps=3", "--resume",
           str(place / "checkpoints/iter_000001"))
    expect(0, "differs from the checkpoint's run file: Training/Steps: 2 -> 3\n", "Training/Steps=3")
    words.remove("--check")
    expect(0, f"removing from {found.format('because this job starts', 1, 2)}; metrics of step 2\n", "Training/Steps=3",
           "--resume", str(place / "checkpoints/iter_000001"))
    words.insert(1, "--check")
    shutil.rmtree(place / "checkpoints")
    expect(2, "has results up to step 3 but no checkpoint (by the settings in its run.h5 it saved one after step 1:",
           "Training/Steps=3")
    expect(0, "would remove from ", "Training/Steps=3", "--resume", "none")


def check_sft(check: Check) -> None:
    words = ["sft", "--check", "--set", f"Model/Directory={check.model}", "--set", f"Output/Directory={check.folder}/sft"]
    check_sft_results(check, words)

    def expect(code: int, word: str, *more: str) -> None:
        before = snapshot(check.folder)
        outcome = check.runs.run([*words, *more])
        if outcome.code != code or word not in outcome.text or snapshot(check.folder) != before:
            check.failed += 1
            print(f"sft: '{word}' and {code} are expected\n{outcome.code}: {outcome.text}")

    scratch = ["--set", "Training/From Scratch=on"]
    examples = check.folder / "examples.jsonl"
    files = ["--set", f"Data/Files={examples}", "--set", "Training/Epochs=2"]
    good = '{"prompt": "1+1=", "response": "2"}\n'
    for line, problem in (('{"prompt": "x"', "JSON"), ('{"prompt": "x"}', "has no 'response'"),
                          ('{"prompt": "x", "response": 5}', "'response' is 5"),
                          ('{"prompt": "x", "response": ""}', "the response is empty"),
                          ('{"messages": [{"role": "user", "content": "x"}]}', "none of the assistant")):
        examples.write_text(good + line + "\n")
        expect(2, f"{examples}:2: ", *files)
        expect(2, problem, *files)
    examples.write_text(good)
    expect(0, f"input is valid; would start from {check.model}\n", *files)
    expect(2, "Data/Files is nowhere", "--set", "Data/Files=nowhere")
    expect(2, "Training/Epochs is 2", "--set", "Training/Epochs=2")
    expect(2, "Validation/Every is 2", "--set", "Validation/Every=2")
    examples.unlink()
    expect(0, f"input is valid; would start from {check.model}\n")
    expect(2, "memory plan", "--set", f"Training/Max Tokens={1 << 26}")
    sorted(check.model.glob("*.safetensors"))[-1].unlink()
    expect(2, "model-00002-of-00002.safetensors")
    expect(0, "would start from random weights", *scratch)
    (check.model / "tokenizer.json").unlink()
    expect(2, "tokenizer.json is missing", *scratch)


def main() -> None:
    args = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-check-") as scratch:
        check = Check(args, Path(scratch))
        checkpoints = check.output / "checkpoints"
        afresh = "input is valid; would start afresh\n"
        check.expect(0, afresh)
        check.expect(0, afresh, ranks=2)
        check.train()
        newest = f"iteration 3 (checkpoint {checkpoints}/iter_000003)"
        check.expect(0, f"input is valid; would find nothing to do after {newest}")
        check.expect(0, f"input is valid; would resume after {newest}\n", Training__Iterations=5)
        check.expect(0, f"input is valid; would resume after {newest}\n", Training__Iterations=5, ranks=2)
        check.expect(0, "differs from the checkpoint's run file: Training/Iterations: 3 -> 5", Training__Iterations=5)
        check.expect(0, afresh, "--resume", "none")
        check.expect(0, "the deadline of this job has already passed", "--deadline", "1000")
        prompts = check.folder / "prompts.jsonl"
        prompts.write_text('{"prompt": "1+1=", "ground_truth": "2"}\n')
        check.expect(0, "Data/Prompts has 1 prompt, fewer than", Data__Prompts=prompts,
                     Data__Reward_Rule="exact", Evaluation__Every=0)
        everything = "; rollouts of iterations 1 to 3; metrics of iterations 1 to 3\n"
        check.expect(0, everything, "--resume", "none")
        check.expect(0, "would remove from ", "--resume", "none")
        check.expect(0, "would resume after iteration 2", "--resume", str(checkpoints / "iter_000002"))
        check.expect(2, "Run/Seed 1 (this run has 2)", Run__Seed=2)
        check.expect(2, "belongs to another model", "--resume", str(checkpoints / "iter_000002"),
                     Model__Directory=check.runs.make_model("other", "qwen3_a"))
        state = checkpoints / "iter_000003/state.h5"
        content = bytearray(state.read_bytes())
        content[len(content) // 2] ^= 1
        state.write_bytes(content)
        check.expect(0, "iter_000003 is passed over", Training__Iterations=5)
        check.expect(0, "would resume after iteration 2", Training__Iterations=5)
        outcome = check.runs.run(check.words(Training__Iterations=5))
        if outcome.code != 0 or "resuming after iteration 2" not in outcome.text:
            check.failed += 1
            print(f"the run goes on elsewhere than --check said\n{outcome.text}")
        (check.output / "metrics.jsonl").write_text("broken\n")
        check.expect(2, "delete this line", Training__Iterations=6)
        check.expect(0, afresh, "--resume", "none")
        check_sft(check)
        sys.exit(check.failed > 0)


if __name__ == "__main__":
    main()
