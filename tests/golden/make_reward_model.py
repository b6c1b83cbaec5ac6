#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a reward model on the golden model llama_a with PyTorch and transformers, on token ids.

    python make_reward_model.py            rewrites reward_model/
    python make_reward_model.py --check    recomputes and compares with what is committed

reward_model/train.jsonl and held_out.jsonl are preference pairs as `taper reward-model` reads them, some with a margin;
golden.json has the settings, the head's weights at the start (`score`), by step the loss, accuracy, mean rewards of
chosen and rejected responses, the gradient norm before clipping and the learning rate, and the held-out loss and
accuracy before the first and after each step. The loss is TRL's: -log sigmoid(chosen - rejected - margin) and the
coefficient times (chosen + rejected)^2, means over the pairs; a reward is what AutoModelForSequenceClassification gives
for a sequence without padding. Optimizer, schedule and passes over the pairs are those of make_sft.py.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

import make_sft

HERE = pathlib.Path(__file__).resolve().parent
SETTINGS = {**make_sft.SETTINGS, "batch_pairs": 4, "center_rewards": 0.02, "learning_rate": 5e-4}
make_sft.SETTINGS["learning_rate"] = SETTINGS["learning_rate"]
SERIES = ("loss", "accuracy", "reward_chosen", "reward_rejected", "grad_norm", "rate", "pairs", "held_out_loss",
          "held_out_accuracy")


def make_pairs(seed, count):
    rng = np.random.default_rng(seed)

    def response():
        return [*rng.integers(3, 320, rng.integers(1, 13)).tolist(), 2]

    return [{"prompt_tokens": rng.integers(3, 320, rng.integers(1, 14)).tolist(), "chosen_tokens": response(),
             "rejected_tokens": response(), **({"margin": round(0.1 * index, 1)} if index % 3 == 1 else {})}
            for index in range(count)]


def judge(net, pairs):
    """The mean loss, and figures."""
    def reward(pair, key):
        return net(input_ids=torch.tensor([pair["prompt_tokens"] + pair[key]])).logits[0, 0]

    chosen = torch.stack([reward(p, "chosen_tokens") for p in pairs])
    rejected = torch.stack([reward(p, "rejected_tokens") for p in pairs])
    margin = torch.tensor([p.get("margin", 0.0) for p in pairs])
    loss = -torch.nn.functional.logsigmoid(chosen - rejected - margin).mean()
    loss = loss + SETTINGS["center_rewards"] * torch.mean((chosen + rejected) ** 2)
    return loss, {"loss": loss.item(), "accuracy": (chosen > rejected).float().mean().item(),
                  "reward_chosen": chosen.mean().item(), "reward_rejected": rejected.mean().item()}


def batches(pairs):
    order = list(pairs) * SETTINGS["epochs"]
    return [order[i:i + SETTINGS["batch_pairs"]] for i in range(0, len(order), SETTINGS["batch_pairs"])]


def train(score, train_set, held_out):
    net = transformers.AutoModelForSequenceClassification.from_pretrained(
        HERE / "models/llama_a", num_labels=1, dtype=torch.float32, attn_implementation="eager").train()
    with torch.no_grad():
        net.score.weight.copy_(torch.tensor([score]))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.0, betas=(SETTINGS["beta1"], SETTINGS["beta2"]),
                                  eps=SETTINGS["epsilon"], weight_decay=SETTINGS["weight_decay"])
    result = {name: [] for name in SERIES}

    def validate():
        with torch.no_grad():
            figures = judge(net, held_out)[1]
        for name in ("loss", "accuracy"):
            result[f"held_out_{name}"].append(figures[name])

    validate()
    steps = batches(train_set)
    for step, batch in enumerate(steps):
        optimizer.zero_grad()
        loss, figures = judge(net, batch)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), SETTINGS["clip_norm"]).item()
        rate = make_sft.rate_of(step, len(steps))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        for name, value in {**figures, "grad_norm": norm, "rate": rate, "pairs": len(batch)}.items():
            result[name].append(value)
        validate()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    train_set, held_out = make_pairs(1, 14), make_pairs(2, 5)
    score = np.round(0.05 * np.random.default_rng(3).standard_normal(64), 4).tolist()
    result = train(score, train_set, held_out)
    folder = HERE / "reward_model"
    if check:
        stored = json.loads((folder / "golden.json").read_text())
        worst = max(abs(a - b) for key in SERIES for a, b in zip(result[key], stored[key], strict=True))
        print(f"largest difference {worst:.2e}")
        sys.exit(worst > 1e-5)
    folder.mkdir(exist_ok=True)
    for name, pairs in (("train", train_set), ("held_out", held_out)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(p) + "\n" for p in pairs))
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    (folder / "golden.json").write_text(json.dumps({"made_by": "tests/golden/make_reward_model.py", "versions": versions,
                                                    "settings": SETTINGS, "score": score, **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
