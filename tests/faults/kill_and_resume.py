#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a training run again and again, anywhere, and compares its end with an undisturbed run.

Each kill takes one rank (SIGKILL) after a random time; the launcher must then end with a non-zero code
within the guard. The run goes on with `--resume auto` until it is finished. Its final checkpoint and its
last rollouts must equal those of the undisturbed run: weights byte for byte. Checkpoints are written in
every iteration, so that many kills hit one in the making.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from taper_runs import ranks_of


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--taper", required=True, type=Path, help="the executable")
    parser.add_argument("--data", required=True, type=Path, help="the data folder with model/config.json")
    parser.add_argument("--launcher", default="mpiexec -n 2")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guard", type=float, default=120.0, help="seconds for the launcher to end after a kill")
    return parser.parse_args()


def launch(args: argparse.Namespace, *words: str) -> subprocess.Popen:
    """A run in a session of its own, so that nothing of it is left behind."""
    env = dict(os.environ, OMP_NUM_THREADS="1", OMP_PROC_BIND="false")
    return subprocess.Popen([*args.launcher.split(), str(args.taper), *words], env=env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def train_words(args: argparse.Namespace, model: Path, output: Path) -> list[str]:
    values = {"Model/Directory": model, "Output/Directory": output, "Training/Iterations": args.iterations,
              "Rollout/Prompts": 4, "Rollout/Samples Per Prompt": 4, "Rollout/Max New Tokens": 24,
              "Rollout/KV Memory MB": 64, "Training/Max Tokens": 256, "Algorithm/Entropy Coefficient": 0.05,
              "Optimizer/Learning Rate": 1e-3, "Checkpoint/Every": 1, "Checkpoint/Keep": 2, "Run/Hang Seconds": 60}
    words = ["train"]
    for key, value in values.items():
        words += ["--set", f"{key}={value}"]
    return words


def run_to_end(args: argparse.Namespace, *words: str) -> None:
    process = launch(args, *words)
    _, errors = process.communicate()
    if process.returncode != 0:
        sys.exit(f"'{words[0]}' ended with code {process.returncode}:\n{errors.decode(errors='replace')[-3000:]}")


def disturb(args: argparse.Namespace, words: list[str], rng: random.Random, span: float) -> bool:
    """One run with one kill; False where it finished before."""
    process = launch(args, *words)
    time.sleep(rng.uniform(0.0, span))
    ranks = ranks_of(process, args.taper)
    if process.poll() is None and ranks:
        os.kill(rng.choice(ranks), signal.SIGKILL)
    start = time.monotonic()
    try:
        _, errors = process.communicate(timeout=args.guard)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        sys.exit(f"the job still ran {args.guard:.0f} s after one of its ranks was killed")
    if process.returncode == 0:
        return False
    print(f"  killed one of {len(ranks)} ranks, ended with code {process.returncode} after "
          f"{time.monotonic() - start:.1f} s", flush=True)
    return True


def main() -> None:
    args = parse()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="taper-faults-") as scratch:
        folder = Path(scratch)
        run_to_end(args, "sft", "--set", f"Model/Directory={args.data}/model", "--set", "Training/From Scratch=true",
                   "--set", "Training/Steps=1", "--set", "Training/Batch Tokens=512", "--set", "Training/Max Tokens=512",
                   "--set", f"Output/Directory={folder}/model")
        start = time.monotonic()
        run_to_end(args, *train_words(args, folder / "model", folder / "straight"))
        span = time.monotonic() - start
        print(f"undisturbed run: {args.iterations} iterations in {span:.1f} s", flush=True)
        words = train_words(args, folder / "model", folder / "killed")
        kills = sum(disturb(args, words, rng, span) for _ in range(args.kills))
        run_to_end(args, *words)
        name = f"checkpoints/iter_{args.iterations:06d}/model.safetensors"
        same = (folder / "straight" / name).read_bytes() == (folder / "killed" / name).read_bytes()
        lines = (folder / "killed" / "metrics.jsonl").read_text().count("\n")
        left = sorted(p.name for p in (folder / "killed" / "checkpoints").iterdir())
        print(f"{kills} kills; final weights {'equal' if same else 'DIFFER'}; {lines} lines in metrics.jsonl; {left}")
        if not same or lines != args.iterations:
            sys.exit(1)


if __name__ == "__main__":
    main()
