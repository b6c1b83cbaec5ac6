#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a reward model with `taper reward-model` and with PyTorch and transformers on the same pairs, step by step.

    python compare_reward_model.py --taper build/default/bin/taper --model DIR [--launcher "mpiexec -n 2"] [--tp 2]

The start is a directory that transformers has saved: the model for sequence classification with one label, its head
drawn. Pairs are chats with two answers, some with a margin. Held against the reference: loss, accuracy, mean rewards
and gradient norm of each step and the held-out loss before the first and after each; then what was saved is loaded by
AutoModelForSequenceClassification, and its rewards of the held-out responses are held against ours. Exit code: 0
inside the tolerance, 1 outside, 2 when the tool failed. The model must have a ChatML template (SmolLM2-Instruct has).
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

import compare_sft

TOLERANCE = 1e-4
BATCH_PAIRS, CENTER, WARMUP, RATE = 4, 0.01, 3, 1e-5
NAMES = ("train/loss", "train/reward_chosen", "train/reward_rejected", "train/grad_norm", "val/loss")


def make_pairs(seed, count):
    rng = np.random.default_rng(seed)
    pairs = []
    for index, line in enumerate(compare_sft.make_chats(seed, count)):
        chat = line.get("messages") or line["prompt"] + line["completion"]
        other = " ".join(rng.choice(compare_sft.WORDS, rng.integers(3, 40)))
        pair = {"prompt": chat[:-1], "chosen": chat[-1:], "rejected": [{"role": "assistant", "content": other}]}
        if index % 3 == 1:
            pair["margin"] = 0.1 * index
        if index % 4 == 2:  # whole chats
            pair = {"chosen": chat, "rejected": [*chat[:-1], *pair["rejected"]]}
        pairs.append(pair)
    return pairs


def encode(tokenizer, pair):
    """Ids of both sides, up to the token that ends the turn, and the margin."""
    sides = []
    for key in ("chosen", "rejected"):
        ids = tokenizer.apply_chat_template(pair.get("prompt", []) + pair[key], tokenize=True, return_dict=True)["input_ids"]
        end = len(ids) - ids[::-1].index(tokenizer.convert_tokens_to_ids("<|im_end|>"))
        sides.append(ids[:end])
    return (*sides, pair.get("margin", 0.0))


def load(path):
    net = transformers.AutoModelForSequenceClassification.from_pretrained(path, dtype=torch.float32,
                                                                          attn_implementation="eager").train()
    net.config.pad_token_id = None  # SmolLM2's is <|im_end|>: the reward would be that of the token before it
    net.get_input_embeddings().padding_idx = None  # see compare_sft.py
    return net


def judge(net, pairs, gradient):
    """Mean loss and figures; one pair at a time, without padding."""
    sums = np.zeros(4)
    for chosen, rejected, margin in pairs:
        a, b = (net(input_ids=torch.tensor([ids]), use_cache=False).logits[0, 0] for ids in (chosen, rejected))
        loss = (-torch.nn.functional.logsigmoid(a - b - margin) + CENTER * (a + b) ** 2) / len(pairs)
        if gradient:
            loss.backward()
        sums += [loss.item(), *(x.item() / len(pairs) for x in (a, b)), (a > b).item() / len(pairs)]
    return sums


def reference(args, start, train, held_out):
    net = load(start)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    with torch.no_grad():
        first = judge(net, held_out, False)[0]
    rows = []
    for step in range(args.steps):
        batch = [train[i % len(train)] for i in range(step * BATCH_PAIRS, (step + 1) * BATCH_PAIRS)]
        optimizer.zero_grad()
        loss, chosen, rejected, accuracy = judge(net, batch, True)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0).item()
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / WARMUP)
        optimizer.step()
        with torch.no_grad():
            rows.append((loss, chosen, rejected, norm, judge(net, held_out, False)[0], accuracy))
    return first, rows


def main():
    args = compare_sft.parse_arguments(__doc__, steps=10)
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    train, held_out = make_pairs(5, 20), make_pairs(6, 3)
    coded = [[encode(tokenizer, pair) for pair in pairs] for pairs in (train, held_out)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        compare_sft.write_examples(folder, train, held_out)
        torch.manual_seed(1)
        transformers.AutoModelForSequenceClassification.from_pretrained(
            args.model, num_labels=1, dtype=torch.float32).save_pretrained(folder / "start")
        for file in Path(args.model).glob("*token*"):
            shutil.copy(file, folder / "start")
        ours = compare_sft.run_job(args, "reward-model", folder, {
            "Model/Directory": folder / "start", "Training/Batch Pairs": BATCH_PAIRS, "Training/Center Rewards": CENTER,
            "Optimizer/Learning Rate": RATE, "Optimizer/Warmup Steps": WARMUP})
        first, rows = reference(args, folder / "start", *coded)
        with torch.no_grad():
            _, chosen, rejected, accuracy = judge(load(folder / "out").eval(), coded[1], False)
    worst = {name: 0.0 for name in NAMES}
    worst["val/loss"] = abs(ours[0]["val/loss"] - first)
    same = len(ours) == len(rows) + 1
    for mine, (*theirs, right) in zip(ours[1:], rows):
        print(f"step {mine['step']}: " + "  ".join(f"{n} {mine[n]:.6f} / {t:.6f}" for n, t in zip(NAMES, theirs)))
        same &= abs(mine["train/accuracy"] - right) < 1e-9
        for name, value in zip(NAMES, theirs):
            scale = abs(value) if name == "train/grad_norm" else 1.0
            worst[name] = max(worst[name], abs(mine[name] - value) / scale)
    last = ours[-1]
    worst["saved: val/reward_chosen"] = abs(last["val/reward_chosen"] - chosen)
    worst["saved: val/reward_rejected"] = abs(last["val/reward_rejected"] - rejected)
    same &= abs(last["val/accuracy"] - accuracy) < 1e-9
    for name, difference in worst.items():
        print(f"{name:26} {difference:10.2e}  (tolerance {TOLERANCE:.0e}){'' if difference <= TOLERANCE else '  outside'}")
    print(f"accuracies: {'equal' if same else 'not equal'}")
    return 0 if same and max(worst.values()) <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
