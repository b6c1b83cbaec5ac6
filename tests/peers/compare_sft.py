#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a real model with `taper sft` and with PyTorch and transformers on the same chats, and compares step by step.

    python compare_sft.py --taper build/default/bin/taper --model DIR [--launcher "mpiexec -n 2"] [--tp 2]

Chats of one to three rounds, and prompts with completions, as JSON lines. The reference encodes them with
apply_chat_template, whose template has the generation marks that tell what the assistant says (TRL's
assistant_only_loss), makes the same batches (examples in their order until the token budget is reached) and trains in
float32. Held against it: which tokens are learned (by their number), the loss and the gradient norm of each step, and
the held-out loss before the first and after each step, all relative. Exit code: 0 inside the tolerance, 1 outside, 2
when the tool failed. The model must have a ChatML template (SmolLM2-Instruct has).
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

TOLERANCE = 1e-4
BATCH_TOKENS, WARMUP, RATE = 400, 3, 1e-5
MARKED = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\n' + default_system + '<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' }}{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{% else %}"
    "{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}"
)
DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
WORDS = "the sum of two numbers is odd 17 where one, even; Größe 数 x = 3.5 and\nnext line: - item".split(" ")


def make_chats(seed, count):
    rng = np.random.default_rng(seed)

    def text(least, most):
        return " ".join(rng.choice(WORDS, rng.integers(least, most)))

    lines = []
    for index in range(count):
        rounds = [{"role": role, "content": text(3, 40)} for _ in range(rng.integers(1, 4)) for role in ("user", "assistant")]
        if index % 4 == 1:
            rounds.insert(0, {"role": "system", "content": text(2, 8)})
        if index % 4 == 3:
            lines.append({"prompt": rounds[:-1], "completion": rounds[-1:]})
        else:
            lines.append({"messages": rounds})
    return lines


def encode(tokenizer, line):
    """Ids, and which of them are learned."""
    chat = line.get("messages") or line["prompt"] + line["completion"]
    coded = tokenizer.apply_chat_template(chat, chat_template=MARKED, default_system=DEFAULT_SYSTEM, tokenize=True,
                                          return_dict=True, return_assistant_tokens_mask=True)
    rendered = tokenizer.apply_chat_template(chat, tokenize=True, return_dict=True)
    assert coded["input_ids"] == rendered["input_ids"], "the marked template is not the model's"
    ids, mask = coded["input_ids"], np.array(coded["assistant_masks"], dtype=bool)
    if "completion" in line:  # all but the last answer is context
        last = len(mask) - np.argmax(mask[::-1])
        begin = last
        while mask[begin - 1]:
            begin -= 1
        mask[:begin] = False
    end = len(mask) - np.argmax(mask[::-1])
    return ids[:end], mask[:end]


def batches(examples, steps):
    position = 0
    for _ in range(steps):
        batch, tokens = [], 0
        while tokens < BATCH_TOKENS:
            batch.append(examples[position % len(examples)])
            tokens += len(batch[-1][0])
            position += 1
        yield batch


def backward(net, batch, gradient=True):
    """The mean loss over all learned tokens; one example at a time, without padding."""
    total, targets = 0.0, sum(int(mask[1:].sum()) for _, mask in batch)
    for ids, mask in batch:
        ids = torch.tensor([ids])
        logits = net(input_ids=ids, use_cache=False).logits[0, :-1]
        losses = torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none")
        loss = losses[torch.tensor(mask[1:])].sum() / targets
        if gradient:
            loss.backward()
        total += loss.item()
    return total, targets


def reference(args, train, held_out):
    net = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32,
                                                            attn_implementation="eager").train()
    # transformers gives the row of the padding id no gradient as an input. SmolLM2's padding id is <|im_end|>, which ends
    # every turn: a gradient of the loss has a part there.
    net.get_input_embeddings().padding_idx = None
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    rows = []
    with torch.no_grad():
        first = backward(net, held_out, gradient=False)[0]
    for step, batch in enumerate(batches(train, args.steps)):
        optimizer.zero_grad()
        loss, targets = backward(net, batch)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0).item()
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / WARMUP)
        optimizer.step()
        with torch.no_grad():
            rows.append((loss, norm, backward(net, held_out, gradient=False)[0], targets, len(batch)))
    return first, rows


def parse_arguments(description, steps):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--model", required=True, help="Hugging Face directory")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--launcher", default="", help="words before the executable")
    parser.add_argument("--tp", type=int, default=1, help="tensor-parallel degree")
    return parser.parse_args()


def write_examples(folder, train, held_out):
    for name, lines in (("train", train), ("held_out", held_out)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def run_job(args, name, folder, more):
    """The metrics of a fine-tuning command on folder/train.jsonl, in f32, with its result in folder/out."""
    values = {"Model/Weight Type": "f32", "Data/Files": f"[{folder}/train.jsonl]",
              "Data/Validation Files": f"[{folder}/held_out.jsonl]", "Data/Shuffle": "false", "Validation/Every": 1,
              "Training/Steps": args.steps, "Training/Max Tokens": 1024, "Training/Activation Checkpointing": "true",
              "Training/Tensor Parallel": args.tp, "Output/Directory": f"{folder}/out"}
    command = [*shlex.split(args.launcher), args.taper, name]
    for key, value in {**values, **more}.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-4000:], file=sys.stderr)
        sys.exit(2)
    return [json.loads(line) for line in (folder / "out.run/metrics.jsonl").read_text().splitlines()]


def main():
    args = parse_arguments(__doc__, steps=8)
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    train, held_out = make_chats(5, 20), make_chats(6, 3)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_examples(folder, train, held_out)
        ours = run_job(args, "sft", folder, {"Model/Directory": args.model, "Training/Batch Tokens": BATCH_TOKENS,
                                             "Optimizer/Learning Rate": RATE, "Optimizer/Warmup Steps": WARMUP})
    first, rows = reference(args, [encode(tokenizer, line) for line in train],
                            [encode(tokenizer, line) for line in held_out])
    names = ("train/loss", "train/grad_norm", "val/loss")
    worst = dict.fromkeys(names, 0.0)
    worst["val/loss"] = abs(ours[0]["val/loss"] / first - 1)
    same_tokens = len(ours) == len(rows) + 1
    for mine, (*theirs, targets, examples) in zip(ours[1:], rows):
        print(f"step {mine['step']}: " + "  ".join(f"{n} {mine[n]:.6f} / {t:.6f}" for n, t in zip(names, theirs)))
        same_tokens &= mine["train/target_tokens"] == targets and mine["train/examples"] == examples
        for name, value in zip(names, theirs):
            worst[name] = max(worst[name], abs(mine[name] / value - 1))
    for name, difference in worst.items():
        print(f"{name:20} {difference:10.2e}  (tolerance {TOLERANCE:.0e}){'' if difference <= TOLERANCE else '  outside'}")
    print(f"learned tokens by step: {'equal' if same_tokens else 'not equal'}")
    return 0 if same_tokens and max(worst.values()) <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
