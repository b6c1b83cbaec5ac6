#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares loss, gradients and AdamW steps of a real model with PyTorch on the CPU.

    python compare_training.py --tool build/default/tests/peers/training_tool --model DIR
    python compare_training.py --tool build/default/tests/peers/training_tool --model DIR --float64

Sequences of several lengths, all in each of ten steps. Compared are log-probs of ids spread over the
vocabulary at each position (by the logits' range), the gradient of every tensor (by its norm), the
loss before and after each step and the gradient norms (relative).

Without --float64 Taper in float32 is held against PyTorch in float32. With it, both are held against
PyTorch in float64, in float32 and in bf16, which in PyTorch is automatic mixed precision (float32
weights, rounded for products as in Taper). Medians and quantiles of Taper's errors in bf16 must not be
larger than those of PyTorch's; largest errors and single figures are shown beside them. Exit code: 0
inside the tolerances, 1 outside, 2 when the tool failed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from taper_tables import print_head, print_row

LENGTHS = (96, 3, 40, 65, 130)
PROBES = 64


def make_task(args, vocabulary):
    rng = np.random.default_rng(11)
    return {
        "sequences": [rng.integers(0, vocabulary, n).tolist() for n in LENGTHS],
        "steps": args.steps,
        "learning_rate": args.learning_rate,
        "weight_decay": 0.01,
        "clip_norm": 1.0,
        "probe_ids": np.linspace(0, vocabulary - 1, PROBES).astype(int).tolist(),
    }


@dataclass
class Trained:
    """What some steps left: log-probs (positions, probes) and gradients before the first step, losses before and after
    each, gradient norms of each."""

    probes: np.ndarray
    gradients: dict
    losses: list
    norms: list


def by_taper(args, task, arithmetic):
    with tempfile.TemporaryDirectory() as scratch:
        source, gradients = Path(scratch) / "task.json", Path(scratch) / "grad.safetensors"
        source.write_text(json.dumps(task | {"arithmetic": arithmetic}))
        command = [args.tool, args.model, str(source), str(gradients)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout[-2000:], done.stderr[-4000:], file=sys.stderr)
            sys.exit(2)
        answer = json.loads(done.stdout)
        probes = np.array(answer["probes"]).reshape(-1, PROBES)
        return Trained(probes, safetensors.torch.load_file(gradients), answer["losses"], answer["grad_norms"])


class PyTorch:
    def __init__(self, path, task, dtype=torch.float32, mixed=False):
        self.net = transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=dtype, attn_implementation="eager"
        ).train()
        self.task, self.mixed = task, mixed
        self.tokens = sum(len(ids) - 1 for ids in task["sequences"])
        self.optimizer = torch.optim.AdamW(
            self.net.parameters(),
            lr=task["learning_rate"],
            betas=(0.9, 0.999),
            eps=1e-8,
            weight_decay=task["weight_decay"],
        )

    def logits(self, ids):
        """(positions, vocabulary), of next tokens."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.mixed):
            logits = self.net(input_ids=torch.tensor([ids]), use_cache=False).logits[0, :-1]
        return logits.float() if self.mixed else logits

    @torch.no_grad()
    def probes(self):
        """Log-probs of the first sequence, and the range of its logits."""
        logits = self.logits(self.task["sequences"][0]).double()
        picked = torch.log_softmax(logits, -1)[:, self.task["probe_ids"]]
        return picked.numpy(), (logits.max() - logits.min()).item()

    def accumulate(self):
        """Sets the gradient and returns the loss."""
        self.optimizer.zero_grad()
        total = 0.0
        for ids in self.task["sequences"]:
            targets = torch.tensor(ids[1:])
            loss = torch.nn.functional.cross_entropy(self.logits(ids), targets, reduction="sum")
            (loss / self.tokens).backward()
            total += loss.item()
        return total / self.tokens

    def step(self):
        """Returns the gradient norm before clipping."""
        norm = torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.task["clip_norm"])
        self.optimizer.step()
        return norm.item()

    def trained(self):
        """What the steps of the task leave, and the range of the logits before them."""
        probes, spread = self.probes()
        losses, norms = [self.accumulate()], []
        gradients = {name: p.grad.clone() for name, p in self.net.named_parameters()}
        for _ in range(self.task["steps"]):
            norms.append(self.step())
            losses.append(self.accumulate())
        return Trained(probes, gradients, losses, norms), spread


def gradient_differences(ours, theirs):
    """||g - g'|| / ||g'|| by tensor."""
    missing = sorted(set(ours) ^ set(theirs))
    if missing:
        raise SystemExit(f"tensors on one side only: {missing}")
    return {
        name: ((ours[name].double() - g.double()).norm() / g.double().norm()).item()
        for name, g in theirs.items()
    }


def relative(ours, theirs):
    return float(np.abs(np.array(ours) / np.array(theirs) - 1).max())


def differences(ours, theirs, spread):
    """By name: distributions of log-probs and gradients, and the largest of all steps."""
    probes = np.abs(ours.probes - theirs.probes) / spread
    gradients = gradient_differences(ours.gradients, theirs.gradients)
    of_tensors = list(gradients.values())
    print(f"gradient that differs most: {max(gradients, key=gradients.get)}")
    return {
        "log-probs, of the logits' range, median": float(np.median(probes)),
        "log-probs, 99 of 100 below": float(np.quantile(probes, 0.99)),
        "log-probs, largest": float(probes.max()),
        "gradients, of their norm, median tensor": float(np.median(of_tensors)),
        "gradients, 9 of 10 tensors below": float(np.quantile(of_tensors, 0.9)),
        "gradients, worst tensor": max(of_tensors),
        "loss before the first step, relative": relative(ours.losses[:1], theirs.losses[:1]),
        "losses, relative": relative(ours.losses, theirs.losses),
        "gradient norms, relative": relative(ours.norms, theirs.norms),
    }


TOLERANCES = {
    "log-probs, largest": 1e-5,
    "gradients, worst tensor": 1e-4,
    "losses, relative": 1e-5,
    "gradient norms, relative": 1e-4,
}
JUDGED = [
    "log-probs, of the logits' range, median",
    "log-probs, 99 of 100 below",
    "gradients, of their norm, median tensor",
    "gradients, 9 of 10 tensors below",
]


def compare_float32(args, task):
    """Whether Taper is within the tolerances."""
    theirs, spread = PyTorch(args.model, task).trained()
    found = differences(by_taper(args, task, "f32"), theirs, spread)
    outside = [name for name, most in TOLERANCES.items() if not found[name] <= most]
    for name, difference in found.items():
        tolerance = f"  (tolerance {TOLERANCES[name]:.0e})" if name in TOLERANCES else ""
        print(f"{name:50} {difference:10.2e}{tolerance}{'  outside' if name in outside else ''}")
    return not outside


def compare_float64(args, task):
    """Whether Taper's errors in bf16 are no larger than PyTorch's."""
    exact, spread = PyTorch(args.model, task, torch.float64).trained()
    errors = {}
    for arithmetic in ("f32", "bf16", "bf16-dot"):  # of a build for CPUs
        errors[f"Taper, {arithmetic}"] = differences(by_taper(args, task, arithmetic), exact, spread)
    for arithmetic in ("f32", "bf16"):
        theirs, _ = PyTorch(args.model, task, mixed=arithmetic == "bf16").trained()
        errors[f"PyTorch, {arithmetic}"] = differences(theirs, exact, spread)
    print_head("against float64", *errors)
    for name in next(iter(errors.values())):
        print_row(name, *(f"{found[name]:.1e}" for found in errors.values()))
    theirs = errors["PyTorch, bf16"]
    good = True
    for arithmetic in ("bf16", "bf16-dot"):
        ours = errors[f"Taper, {arithmetic}"]
        larger = [name for name in JUDGED if not ours[name] <= theirs[name]]
        if larger:
            print(f"Taper's errors in {arithmetic} are larger: " + "; ".join(larger))
        good = good and not larger
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tool", required=True, help="the executable training_tool")
    parser.add_argument("--model", required=True, help="Hugging Face directory")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--float64", action="store_true", help="hold both programs against it")
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    vocabulary = transformers.AutoConfig.from_pretrained(args.model).vocab_size
    task = make_task(args, vocabulary)
    good = compare_float64(args, task) if args.float64 else compare_float32(args, task)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
