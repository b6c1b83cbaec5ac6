#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stops, kills and breaks a fine-tuning command on two ranks and compares the resumed end with an undisturbed run, byte
for byte. A failure and a hang leave their reason in the run directory."""

import json
import tempfile
from pathlib import Path

from taper_runs import Runs, arguments, check, leftovers, status


# What a step takes, for a step of some tokens.
BATCH = {"sft": {"Training/Batch Tokens": 60}, "reward-model": {"Training/Batch Pairs": 5}}


def example(command: str, n: int) -> dict:
    answer = f"{2 * n}#" * (1 + n % 3)
    if command == "sft":
        return {"prompt": f"{n}+{n}=", "response": answer}
    return {"prompt": f"{n}+{n}=", "chosen": answer, "rejected": f"{2 * n + 1}#"}


def words(command: str, model: Path, examples: Path, output: Path) -> list[str]:
    values = {"Model/Directory": model, "Data/Files": examples, "Data/Validation Files": examples, "Training/Epochs": 2,
              **BATCH[command], "Training/Max Tokens": 64, "Training/Tensor Parallel": 2, "Validation/Every": 3,
              "Optimizer/Learning Rate": 1e-3, "Output/Directory": output, "Run/Hang Seconds": 60}
    return [command, *(word for key, value in values.items() for word in ("--set", f"{key}={value}"))]


def results(output: Path) -> list[bytes]:
    return [(output / "model.safetensors").read_bytes(), (output.with_name(output.name + ".run") / "metrics.jsonl").read_bytes()]


def fails(runs: Runs, command: list[str], output: Path, fault: str, why: str, steps: int) -> None:
    """The reason is in status.json, and in the report of a hang; nothing is left in the working directory."""
    place, here = output.with_name(output.name + ".run"), output.with_name(output.name + ".here")
    here.mkdir()
    outcome = runs.run([*command, "--set", "Run/Hang Seconds=4"], 2, env={"TAPER_FAULT": fault}, cwd=here)
    check(not outcome.timed_out and outcome.code not in (0, 2, 75), f"{fault}: code {outcome.code}", outcome.text)
    state = status(place)
    check(state["state"] == "failed" and why in state["why"], f"{fault}: {state}", outcome.text)
    check(state["iterations"] == steps, f"{fault}: {state}", outcome.text)
    report = place / "hang-rank-0.txt"
    check(report.exists() == ("freeze" in fault), f"{fault}: {report}", outcome.text)
    check(list(here.iterdir()) == [], f"{fault}: left {list(here.iterdir())}", outcome.text)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--command", choices=sorted(BATCH), default="sft")
    args = parser.parse_args()
    name = args.command
    with tempfile.TemporaryDirectory(prefix="taper-tuning-stop-") as scratch:
        runs = Runs(args, Path(scratch))
        model, examples = runs.make_model(), runs.folder / "examples.jsonl"
        examples.write_text("".join(json.dumps(example(name, n)) + "\n" for n in range(40)))
        outcome = runs.run(words(name, model, examples, runs.folder / "straight"), 2)
        check(outcome.code == 0, "the undisturbed run failed", outcome.text)
        straight = results(runs.folder / "straight")
        steps = json.loads(straight[1].splitlines()[-1])["step"]
        check(steps > 8, "the run is too short to be stopped")
        for fault, why in ((f"{name}:1:throw:0:3", "a fault on purpose"), (f"{name}:1:freeze:0:3", "no progress for")):
            output = runs.folder / fault.replace(":", "-")
            place = output.with_name(output.name + ".run")
            fails(runs, words(name, model, examples, output), output, fault, why, steps)
            outcome = runs.run(words(name, model, examples, output), 2)
            check(outcome.code == 0 and results(output) == straight, f"{fault}: the next run", outcome.text)
            check(status(place)["state"] == "completed", f"{fault}: {status(place)}")
            check(list(place.glob("hang-rank-*")) == [], f"{fault}: a report of the hang is left", outcome.text)
            print(f"{fault}: ok", flush=True)
        for fault, code in ((f"{name}:1:term:0:3", 75), ("validation:0:term", 75), (f"{name}:0:term:0:1", 75),
                            (f"{name}:1:kill:0:5", None)):
            output = runs.folder / fault.replace(":", "-")
            place = output.with_name(output.name + ".run")
            more = ["--set", "Checkpoint/Every=2"] if code is None else []
            outcome = runs.run([*words(name, model, examples, output), *more], 2, env={"TAPER_FAULT": fault})
            check(not outcome.timed_out and outcome.code != 0, f"{fault}: code {outcome.code}", outcome.text)
            check(code is None or outcome.code == code, f"{fault}: code {outcome.code}", outcome.text)
            check(not output.exists(), f"{fault}: a model is there already", outcome.text)
            if code is not None:
                check(status(place)["state"] == "stopped" and status(place)["why"] == "SIGTERM", f"{fault}: {status(place)}")
                check(leftovers(place) == [], f"{fault}: left {leftovers(place)}")
            outcome = runs.run([*words(name, model, examples, output), *more], 2)
            check(outcome.code == 0, f"{fault}: the resumed run ended with {outcome.code}", outcome.text)
            check(results(output) == straight, f"{fault}: the resumed run has other bits", outcome.text)
            check(status(place)["state"] == "completed", f"{fault}: {status(place)}")
            print(f"{fault}: ok", flush=True)


if __name__ == "__main__":
    main()
