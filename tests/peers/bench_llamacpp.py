#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times llama.cpp through llama-cpp-python on the CPU and prints one JSON object.

    pip install llama-cpp-python
    python bench_llamacpp.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf --threads 2

The low-level batch interface is used: one token per sequence and step, contexts of 64 to 100
tokens, every row with logits, as a generation engine has to. The weight types are made from the
given file by llama.cpp's own quantizer, so that all hold the same (dequantized) weights. Prefill is
one sequence of 512 tokens with logits of the last. Rates are tokens per second.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import llama_cpp as lc

PROMPT, NEW, PREFILL = 64, 36, 512
FILE_TYPES = {
    "f32": lc.LLAMA_FTYPE_ALL_F32,
    "f16": lc.LLAMA_FTYPE_MOSTLY_F16,
    "bf16": lc.LLAMA_FTYPE_MOSTLY_BF16,
    "q8_0": lc.LLAMA_FTYPE_MOSTLY_Q8_0,
}


def converted(source, target, kind, threads):
    """Writes the model in another weight type."""
    params = lc.llama_model_quantize_default_params()
    params.ftype = FILE_TYPES[kind]
    params.allow_requantize = True
    params.nthread = threads
    code = lc.llama_model_quantize(
        str(source).encode(), str(target).encode(), ctypes.byref(params)
    )
    if code != 0:
        sys.exit(f"llama.cpp could not convert {source} to {kind} (code {code})")


class Engine:
    """One context; sequences are numbered from 0. cells: positions kept for each of them."""

    def __init__(self, path, batch, cells, unified, threads):
        self.model = lc.llama_model_load_from_file(
            str(path).encode(), lc.llama_model_default_params()
        )
        params = lc.llama_context_default_params()
        params.n_ctx = batch * cells
        params.n_batch = params.n_ubatch = max(PREFILL, batch)
        params.n_seq_max = batch
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = unified
        self.context = lc.llama_init_from_model(self.model, params)
        if not self.model or not self.context:
            sys.exit(f"llama.cpp could not load {path}")
        self.batch = lc.llama_batch_init(params.n_batch, 0, 1)

    def decode(self, tokens):
        """tokens: list of (token, position, sequence, whether logits are wanted)."""
        self.batch.n_tokens = len(tokens)
        for i, (token, position, sequence, wanted) in enumerate(tokens):
            self.batch.token[i] = token
            self.batch.pos[i] = position
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = sequence
            self.batch.logits[i] = wanted
        if lc.llama_decode(self.context, self.batch) != 0:
            sys.exit("llama_decode failed")
        lc.llama_synchronize(self.context)

    def forget(self):
        lc.llama_memory_clear(lc.llama_get_memory(self.context), True)

    def close(self):
        lc.llama_batch_free(self.batch)
        lc.llama_free(self.context)
        lc.llama_model_free(self.model)


def token(position, sequence):
    """Any id will do; they differ so that sequences differ."""
    return 100 + (7919 * position + 104729 * sequence) % 30000


def decode_rate(engine, batch):
    engine.forget()
    for sequence in range(batch):
        engine.decode([(token(p, sequence), p, sequence, 0) for p in range(PROMPT)])
    start = time.perf_counter()
    for p in range(PROMPT, PROMPT + NEW):
        engine.decode([(token(p, s), p, s, 1) for s in range(batch)])
    return batch * NEW / (time.perf_counter() - start)


def prefill_rate(engine):
    engine.forget()
    start = time.perf_counter()
    engine.decode([(token(p, 0), p, 0, int(p == PREFILL - 1)) for p in range(PREFILL)])
    return PREFILL / (time.perf_counter() - start)


def measured(rate, path, args, batch, cells):
    """Median of the rates of one kind; the better one of llama.cpp's two cache arrangements."""
    best = 0.0
    for unified in (False, True):
        engine = Engine(path, batch, cells, unified, args.threads)
        if batch == 1:  # larger ones run long enough
            rate(engine)
        best = max(best, statistics.median(rate(engine) for _ in range(args.repeats)))
        engine.close()
    return best


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gguf", type=Path, required=True, help="model in any weight type")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--types", nargs="+", choices=FILE_TYPES, default=list(FILE_TYPES))
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()

    @lc.llama_log_callback
    def silent(_level, _text, _data):
        pass

    if "LLAMA_LOG" not in os.environ:
        lc.llama_log_set(silent, ctypes.c_void_p(0))
    lc.llama_backend_init()
    result = {
        "peer": "llama.cpp",
        "versions": {"llama-cpp-python": lc.__version__},
        "features": lc.llama_print_system_info().decode(),
        "threads": args.threads,
        "decode": {},
        "prefill": {},
    }
    with tempfile.TemporaryDirectory() as scratch:
        for kind in args.types:
            path = Path(scratch) / f"{kind}.gguf"
            converted(args.gguf, path, kind, args.threads)
            result["prefill"][kind] = measured(prefill_rate, path, args, 1, PREFILL)
            for batch in args.batches:
                rate = measured(lambda e, b=batch: decode_rate(e, b), path, args, batch, 128)
                result["decode"][f"{kind} batch {batch}"] = rate
            path.unlink()
    json.dump(result, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
