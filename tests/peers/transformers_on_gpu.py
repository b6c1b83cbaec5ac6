#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what bench_model times with transformers and PyTorch, on weights that are drawn: one step of decoding, captured
as a CUDA graph, a prompt of 512 tokens, and a training step of 8 x 256 tokens with PyTorch's fused AdamW.

    python3 tests/peers/transformers_on_gpu.py --model DIR [--parts decode,prefill,train] [--batches 1,64] [--compile]

DIR has a config.json of Llama (tests/gpuemu/plan_memory.py --write-config makes one). Weights and products are bf16,
masters of the optimizer too: PyTorch has no f32 ones then. --compile compiles the model for decoding and training (about
a minute each). Prints one JSON object of rates in tokens per second. Runs on the CPU where there is no GPU, without
graphs, to be tried."""
import argparse
import json
import statistics
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

PROMPT, STEPS, PREFILL, ROWS, LENGTH = 64, 30, 512, 8, 256


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(device, action, times):
    action()
    measured = []
    for _ in range(times):
        wait(device)
        start = time.perf_counter()
        action()
        wait(device)
        measured.append(time.perf_counter() - start)
    return statistics.median(measured)


def new_cache(model, batch, device):
    cache = StaticCache(config=model.config, max_cache_len=PROMPT + 64)
    model(torch.zeros(batch, PROMPT, dtype=torch.long, device=device), past_key_values=cache, use_cache=True)
    return cache


def decode(model, batch, device, compiled):
    """Seconds of a step with a context of PROMPT tokens, and of choosing the largest logit."""
    cache = new_cache(model, batch, device)
    ids = torch.zeros(batch, 1, dtype=torch.long, device=device)
    position = torch.full((1, 1), PROMPT, dtype=torch.long, device=device).expand(batch, 1)
    forward = torch.compile(model, mode="max-autotune-no-cudagraphs") if compiled else model

    def step():
        logits = forward(ids, past_key_values=cache, position_ids=position, use_cache=True).logits
        ids.copy_(logits[:, -1].argmax(-1, keepdim=True))

    if device != "cuda":
        return seconds(device, step, 3)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return seconds(device, graph.replay, STEPS)


def train(model, device, compiled):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=device == "cuda")
    forward = torch.compile(model) if compiled else model
    ids = torch.randint(0, model.config.vocab_size, (ROWS, LENGTH), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        forward(ids, labels=ids).loss.backward()
        optimizer.step()

    return seconds(device, step, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--parts", default="decode,prefill,train")
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parts = arguments.parts.split(",")
    torch.manual_seed(1)
    config = LlamaConfig.from_pretrained(arguments.model)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = LlamaForCausalLM(config)
    rates = {}
    with torch.no_grad():
        if "decode" in parts:
            for batch in map(int, arguments.batches.split(",")):
                rates[f"decode {batch}"] = batch / decode(model, batch, device, arguments.compile)
        if "prefill" in parts:
            prompt = torch.zeros(1, PREFILL, dtype=torch.long, device=device)
            rates["prefill"] = PREFILL / seconds(device, lambda: model(prompt, logits_to_keep=1), 5)
    if "train" in parts:
        rates["train"] = ROWS * LENGTH / train(model, device, arguments.compile)
    print(json.dumps({"torch": torch.__version__, "device": device, "compiled": arguments.compile} |
                     {name: round(rate, 2) for name, rate in rates.items()}))


main()
