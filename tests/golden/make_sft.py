#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes the golden model llama_a with PyTorch and transformers, on token ids.

    python make_sft.py            rewrites sft/
    python make_sft.py --check    recomputes and compares with what is committed

sft/train.jsonl and sft/held_out.jsonl are examples as `taper sft` reads them; sft/golden.json has the settings, and by
step the loss (mean over the tokens that are learned, of the whole batch), the gradient norm before clipping, the
learning rate and the number of examples, and the held-out loss before the first and after each step. Batches are the
examples in their order, each as many as it takes to reach the token budget, over three passes.
"""
import argparse
import json
import math
import pathlib
import sys

import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
SETTINGS = {"batch_tokens": 60, "epochs": 3, "learning_rate": 2e-3, "warmup_steps": 3, "final_share": 0.1,
            "weight_decay": 0.05, "clip_norm": 0.5, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8}


def make_examples(seed, count):
    rng = np.random.default_rng(seed)
    return [{"prompt_tokens": rng.integers(3, 320, rng.integers(1, 30)).tolist(),
             "tokens": [*rng.integers(3, 320, rng.integers(1, 25)).tolist(), 2]} for _ in range(count)]


def batches(examples):
    position, end = 0, SETTINGS["epochs"] * len(examples)
    while position < end:
        batch, tokens = [], 0
        while tokens < SETTINGS["batch_tokens"] and position < end:
            batch.append(examples[position % len(examples)])
            tokens += len(batch[-1]["prompt_tokens"]) + len(batch[-1]["tokens"])
            position += 1
        yield batch


def rate_of(step, steps):
    """Linear warm-up, then half a cosine to the final share."""
    if step < SETTINGS["warmup_steps"]:
        return SETTINGS["learning_rate"] * (step + 1) / SETTINGS["warmup_steps"]
    progress = min(1.0, (step - SETTINGS["warmup_steps"]) / (steps - SETTINGS["warmup_steps"]))
    share = SETTINGS["final_share"] + (1 - SETTINGS["final_share"]) * 0.5 * (1 + math.cos(math.pi * progress))
    return SETTINGS["learning_rate"] * share


def loss_of(net, examples):
    """Mean over all response tokens; one example at a time, without padding."""
    total, targets = 0.0, sum(len(e["tokens"]) for e in examples)
    for example in examples:
        ids = torch.tensor([example["prompt_tokens"] + example["tokens"]])
        logits = net(input_ids=ids, use_cache=False).logits[0, :-1]
        begin = len(example["prompt_tokens"]) - 1
        total = total + torch.nn.functional.cross_entropy(logits[begin:], ids[0, begin + 1:], reduction="sum") / targets
    return total


def train(train_set, held_out):
    net = transformers.AutoModelForCausalLM.from_pretrained(HERE / "models/llama_a", dtype=torch.float32,
                                                            attn_implementation="eager").train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.0, betas=(SETTINGS["beta1"], SETTINGS["beta2"]),
                                  eps=SETTINGS["epsilon"], weight_decay=SETTINGS["weight_decay"])
    all_batches = list(batches(train_set))
    result = {"losses": [], "grad_norms": [], "rates": [], "examples": [len(b) for b in all_batches]}
    with torch.no_grad():
        result["held_out"] = [loss_of(net, held_out).item()]
    for step, batch in enumerate(all_batches):
        optimizer.zero_grad()
        loss = loss_of(net, batch)
        loss.backward()
        result["grad_norms"].append(torch.nn.utils.clip_grad_norm_(net.parameters(), SETTINGS["clip_norm"]).item())
        result["rates"].append(rate_of(step, len(all_batches)))
        for group in optimizer.param_groups:
            group["lr"] = result["rates"][-1]
        optimizer.step()
        result["losses"].append(loss.item())
        with torch.no_grad():
            result["held_out"].append(loss_of(net, held_out).item())
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    torch.set_num_threads(1)
    train_set, held_out = make_examples(1, 14), make_examples(2, 4)
    result = train(train_set, held_out)
    golden = HERE / "sft/golden.json"
    if check:
        stored = json.loads(golden.read_text())
        worst = max(abs(a / b - 1) for key in ("losses", "grad_norms", "rates", "held_out")
                    for a, b in zip(result[key], stored[key], strict=True))
        print(f"largest relative difference {worst:.2e}")
        sys.exit(worst > 1e-5)
    golden.parent.mkdir(exist_ok=True)
    for name, examples in (("train", train_set), ("held_out", held_out)):
        (golden.parent / f"{name}.jsonl").write_text("".join(json.dumps(e) + "\n" for e in examples))
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    golden.write_text(json.dumps({"made_by": "tests/golden/make_sft.py", "versions": versions,
                                  "settings": SETTINGS, **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
