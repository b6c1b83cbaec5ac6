#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares loss, gradients and AdamW steps of a real model with PyTorch in float32 on the CPU.

    python compare_training.py --tool build/default/tests/peers/training_tool --model DIR

Sequences of several lengths, all in each of ten steps. Held against transformers: log-probs of ids
spread over the vocabulary at each position (by the logits' range), the gradient of every tensor
(by its norm), the loss before and after each step and the gradient norms (relative). Exit code: 0
inside the tolerances, 1 outside, 2 when the tool failed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
import transformers

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


def run_tool(args, task):
    """The tool's answer and its gradients."""
    with tempfile.TemporaryDirectory() as scratch:
        source, gradients = Path(scratch) / "task.json", Path(scratch) / "grad.safetensors"
        source.write_text(json.dumps(task))
        command = [args.tool, args.model, str(source), str(gradients)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout[-2000:], done.stderr[-4000:], file=sys.stderr)
            sys.exit(2)
        return json.loads(done.stdout), safetensors.torch.load_file(gradients)


class Reference:
    def __init__(self, path, task, dtype=torch.float32):
        self.net = transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=dtype, attn_implementation="eager"
        ).train()
        self.task = task
        self.tokens = sum(len(ids) - 1 for ids in task["sequences"])
        self.optimizer = torch.optim.AdamW(
            self.net.parameters(),
            lr=task["learning_rate"],
            betas=(0.9, 0.999),
            eps=1e-8,
            weight_decay=task["weight_decay"],
        )

    @torch.no_grad()
    def probes(self):
        """Log-probs (positions, probes) of the first sequence, and the range of its logits."""
        ids = torch.tensor([self.task["sequences"][0]])
        logits = self.net(input_ids=ids, use_cache=False).logits[0, :-1].double()
        picked = torch.log_softmax(logits, -1)[:, self.task["probe_ids"]]
        return picked.numpy(), (logits.max() - logits.min()).item()

    def accumulate(self):
        """Sets the gradient and returns the loss."""
        self.optimizer.zero_grad()
        total = 0.0
        for ids in self.task["sequences"]:
            ids = torch.tensor([ids])
            logits = self.net(input_ids=ids, use_cache=False).logits[0, :-1]
            loss = torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum")
            (loss / self.tokens).backward()
            total += loss.item()
        return total / self.tokens

    def gradients(self):
        return {name: p.grad.clone() for name, p in self.net.named_parameters()}

    def step(self):
        """Returns the gradient norm before clipping."""
        norm = torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.task["clip_norm"])
        self.optimizer.step()
        return norm.item()


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


def print_against_float64(ours, theirs, path, task):
    exact = Reference(path, task, torch.float64)
    exact.accumulate()
    for name, gradients in (("Taper", ours), ("PyTorch", theirs)):
        differences = sorted(gradient_differences(gradients, exact.gradients()).values())
        median, worst = differences[len(differences) // 2], differences[-1]
        print(f"gradients of {name} against float64: median {median:.2e}, worst {worst:.2e}")


def compare(answer, gradients, reference, args):
    """Rows (name, largest difference, tolerance)."""
    probes, spread = reference.probes()
    losses, norms = [reference.accumulate()], []
    expected = reference.gradients()
    by_tensor = gradient_differences(gradients, expected)
    if args.float64:
        print_against_float64(gradients, expected, args.model, reference.task)
    for _ in range(reference.task["steps"]):
        norms.append(reference.step())
        losses.append(reference.accumulate())
    ours = np.array(answer["probes"]).reshape(probes.shape)
    worst = sorted(by_tensor, key=by_tensor.get)
    print(f"{len(by_tensor)} gradients, median {by_tensor[worst[len(worst) // 2]]:.2e}")
    print("losses " + " ".join(f"{loss:.5f}" for loss in losses))
    return [
        ("log-probs, of the logits' range", float(np.abs(ours - probes).max()) / spread, 1e-5),
        (f"gradient, worst tensor ({worst[-1]})", by_tensor[worst[-1]], 1e-4),
        ("losses, relative", relative(answer["losses"], losses), 1e-5),
        ("gradient norms, relative", relative(answer["grad_norms"], norms), 1e-4),
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tool", required=True, help="the executable training_tool")
    parser.add_argument("--model", required=True, help="Hugging Face directory")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--float64", action="store_true", help="hold both gradients against it too")
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    vocabulary = transformers.AutoConfig.from_pretrained(args.model).vocab_size
    task = make_task(args, vocabulary)
    answer, gradients = run_tool(args, task)
    rows = compare(answer, gradients, Reference(args.model, task), args)
    for name, difference, tolerance in rows:
        verdict = "" if difference <= tolerance else "  outside"
        print(f"{name:60} {difference:10.2e}  (tolerance {tolerance:.0e}){verdict}")
    return 0 if all(difference <= tolerance for _, difference, tolerance in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
