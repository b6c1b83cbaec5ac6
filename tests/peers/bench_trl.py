#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times transformers, PyTorch and TRL on the CPU and prints one JSON object.

    pip install torch transformers trl
    python bench_trl.py --model DIR --threads 2
    python bench_trl.py --model DIR --parts grpo

Parts, rates in tokens per second, each for every type of --dtypes:
  decode    `generate` in batches of equal sequences with a context of 64 to 100 tokens; the prompt
            pass is taken out by timing a run of one token too
  forward   logits of 8 x 256 tokens without gradients
  train     forward, backward and AdamW on 8 x 256 tokens, no activation checkpointing
  grpo      seconds per TRL iteration: 8 prompts x 4 samples x 64 new tokens, KL to a reference
In bfloat16, decode and forward have such weights; train and grpo have automatic mixed precision
(autocast) over f32 weights.
Weights do not matter for speed: any Hugging Face directory of the right shape will do.
"""

import argparse
import contextlib
import json
import resource
import statistics
import sys
import tempfile
import time

import torch
import transformers

PROMPT, NEW = 64, 36
TRAIN_SHAPE = (8, 256)


def load(args, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(
        args.model, dtype=dtype, attn_implementation="sdpa"
    )


def seconds(work, repeats):
    """Median after one run that is not counted, and all values."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), times


def random_ids(net, rows, columns):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(3, net.config.vocab_size, (rows, columns), generator=generator)


def bench_decode(args):
    result = {}
    for dtype in args.dtypes:
        net = load(args, getattr(torch, dtype)).eval()
        for batch in args.batches:
            ids = random_ids(net, batch, PROMPT)

            def run(new, net=net, ids=ids):
                out = net.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    do_sample=False,
                    min_new_tokens=new,
                    max_new_tokens=new,
                    pad_token_id=0,
                )
                assert out.shape[1] == PROMPT + new

            short, _ = seconds(lambda: run(1), args.repeats)
            long, _ = seconds(lambda: run(1 + NEW), args.repeats)
            result[f"{dtype} batch {batch}"] = batch * NEW / (long - short)
    return result


def forward_rate(args, dtype):
    net = load(args, getattr(torch, dtype)).eval()
    ids = random_ids(net, *TRAIN_SHAPE)
    with torch.no_grad():
        median, _ = seconds(lambda: net(input_ids=ids, use_cache=False), args.repeats)
    return ids.numel() / median


def bench_forward(args):
    return {dtype: forward_rate(args, dtype) for dtype in args.dtypes}


def train_rate(args, dtype):
    net = load(args, torch.float32).train()
    ids = random_ids(net, *TRAIN_SHAPE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
            loss = net(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        optimizer.step()

    median, _ = seconds(step, args.repeats)
    return ids.numel() / median


def bench_train(args):
    return {dtype: train_rate(args, dtype) for dtype in args.dtypes}


def bench_grpo(args):
    return {dtype: grpo_times(args, dtype) for dtype in args.dtypes}


def grpo_times(args, dtype):
    """Seconds of each iteration; the first one is left out."""
    import datasets
    import trl

    class Clock(transformers.TrainerCallback):
        def __init__(self):
            self.stamps = [time.perf_counter()]

        def on_step_end(self, *_, **__):
            self.stamps.append(time.perf_counter())

    prompts = [f"Question {i}: what is {17 + i} plus {25 + 3 * i}? Answer:" for i in range(8)]
    iterations = 1 + args.repeats
    with tempfile.TemporaryDirectory() as scratch:
        config = trl.GRPOConfig(
            output_dir=scratch,
            use_cpu=True,
            bf16=dtype == "bfloat16",
            per_device_train_batch_size=32,
            num_generations=4,
            max_completion_length=64,
            generation_kwargs={"min_new_tokens": 64},
            beta=0.04,
            learning_rate=1e-6,
            max_steps=iterations,
            gradient_checkpointing=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
        clock = Clock()
        trainer = trl.GRPOTrainer(
            model=load(args, torch.float32),
            args=config,
            reward_funcs=lambda completions, **_: [float(len(c) % 7) for c in completions],
            train_dataset=datasets.Dataset.from_dict({"prompt": prompts * iterations}),
            processing_class=tokenizer,
            callbacks=[clock],
        )
        trainer.train()
    stamps = clock.stamps
    times = [b - a for a, b in zip(stamps[1:-1], stamps[2:])]
    return {"seconds": statistics.median(times), "all": times, "trl": trl.__version__}


PARTS = {"decode": bench_decode, "forward": bench_forward, "train": bench_train, "grpo": bench_grpo}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="Hugging Face directory")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["decode", "forward", "train"])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--dtypes", nargs="+", choices=["float32", "bfloat16"], default=["float32"])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    result = {
        "peer": "transformers",
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "threads": args.threads,
        "model": args.model,
    }
    for part in args.parts:
        with contextlib.redirect_stdout(sys.stderr):  # TRL prints there; ours is one JSON object
            result[part] = PARTS[part](args)
        result[f"{part}_peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump(result, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
