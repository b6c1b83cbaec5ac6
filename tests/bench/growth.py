#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows how time and memory grow, one Markdown table for each thing that does.

    python tests/bench/growth.py --build build/default --model DIR

DIR is a Hugging Face directory of which only config.json is read: weights are drawn. Parts:
  context     decode of one sequence at longer and longer contexts, beside the time in which its
              weights, keys and values can be read from memory. The rate of reading is the largest of
              products of one row over weights beyond all caches, in the same run
  batch       decode of more and more sequences
  parameters  decode of one sequence, and training, with more and more layers
  queue       time and memory per prompt of `taper generate` with more and more prompts queued
Each figure is the median of --rounds runs, between which all of a part are run.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from taper_tables import ROOT, head_dim, matrix_sizes, output_and_memory, print_head, print_row, reading_rate

PARTS = ["context", "batch", "parameters", "queue"]


class Bench:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.threads = {"OMP_NUM_THREADS": str(options.threads)}
        self.config = json.loads((Path(options.model) / "config.json").read_text())

    def model(self, name, **changes):
        """A directory whose config.json is that of the model with some values changed."""
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config | changes))
        return folder

    def rates(self, model, *words):
        """Tokens per second, by the names that bench_model prints, and MiB of memory."""
        command = [Path(self.options.build) / "tests/bench/bench_model", "--model", model, "--draw-weights"]
        command += ["--cache-type", self.options.cache_type, "--repeats", "2"]
        output, memory = output_and_memory([*command, *words], self.threads)
        rates = {name: value["median"] for name, value in json.loads(output).items() if isinstance(value, dict)}
        return rates | {"MiB": memory}

    def medians(self, runs):
        """Of the dicts that these functions return, called in turn, by name of the function. Of a rate that is a limit,
        the largest."""
        seen = {name: [] for name in runs}
        for _ in range(self.options.rounds):
            for name, run in runs.items():
                seen[name].append(run())
        return {
            name: {key: (max if key == "limit" else statistics.median)([t[key] for t in turns]) for key in turns[0]}
            for name, turns in seen.items()
        }

    def weights(self):
        """Bytes of bf16 weights that a step reads."""
        return 2 * sum(matrix_sizes(self.config))

    def keys_and_values(self):
        """Bytes of the cache of one position."""
        c = self.config
        bytes_of_a_number = 2 if self.options.cache_type == "bf16" else 4
        return 2 * bytes_of_a_number * c["num_hidden_layers"] * c["num_key_value_heads"] * head_dim(c)

    def context(self):
        contexts = self.options.contexts
        model = self.model("long", max_position_embeddings=max(contexts) + 512)

        def decode(length):
            return lambda: self.rates(model, "--parts", "decode", "--batches", "1", "--context", str(length))

        limit = {"memory": lambda: {"limit": reading_rate(self.options.build, self.threads)}}
        of = self.medians(limit | {length: decode(length) for length in contexts})
        rate = of["memory"]["limit"]
        print(f"Reading: {rate / 1e9:.1f} GB/s.\n")
        print_head("context", "time per token", "reading its weights, keys and values", "ratio", "memory")
        for length in contexts:
            taken = 1 / of[length]["decode 1"]
            least = (self.weights() + (length + 18) * self.keys_and_values()) / rate
            cells = [f"{1e3 * taken:.2f} ms", f"{1e3 * least:.2f} ms", f"{taken / least:.2f}"]
            print_row(f"{length:,}", *cells, f"{of[length]['MiB']:.0f} MiB")

    def batch(self):
        batches = self.options.batches

        def decode(batch):
            return lambda: self.rates(self.options.model, "--parts", "decode", "--batches", str(batch))

        of = self.medians({batch: decode(batch) for batch in batches})
        print_head("sequences", "tokens/s", "time per step", "memory")
        for batch in batches:
            rate = of[batch][f"decode {batch}"]
            print_row(str(batch), f"{rate:.0f}", f"{1e3 * batch / rate:.1f} ms", f"{of[batch]['MiB']:.0f} MiB")

    def parameters(self):
        depths = self.options.layers
        words = ["--parts", "decode,train", "--batches", "1"]

        def run(depth):
            model = self.model(f"layers-{depth}", num_hidden_layers=depth)
            return lambda: self.rates(model, *words)

        of = self.medians({depth: run(depth) for depth in depths})
        titles = ["layers", "decode, time per token", "of a layer more", "training, time per token", "of a layer more"]
        print_head(*titles, "memory, training")
        before = None
        for depth in depths:
            now = [1e6 / of[depth]["decode 1"], 1e6 / of[depth]["train"]]
            more = [(b - a) / (depth - before[0]) for a, b in zip(before[1], now)] if before else None
            cells = [f"{now[0]:.0f} us", f"{more[0]:.0f} us" if more else "", f"{now[1]:.0f} us"]
            print_row(str(depth), *cells, f"{more[1]:.0f} us" if more else "", f"{of[depth]['MiB']:.0f} MiB")
            before = (depth, now)

    def queue(self):
        prompts = self.scratch / "prompts.jsonl"

        def generate(count):
            def run():
                lines = (json.dumps({"prompt": f"{n % 90 + 10}+{n % 70 + 20}="}) + "\n" for n in range(count))
                prompts.write_text("".join(lines))
                command = [Path(self.options.build) / "bin/taper", "generate", "--model", ROOT / "data/model"]
                command += ["--prompts", prompts, "--output", self.scratch / "responses.jsonl"]
                command += ["--max-new-tokens", "4", "--temperature", "0", "--kv-memory-mb", "64"]
                begin = time.monotonic()
                _, memory = output_and_memory(command, self.threads)
                return {"seconds": time.monotonic() - begin, "MiB": memory}

            return run

        counts = self.options.queued
        of = self.medians({count: generate(count) for count in counts})
        print_head("prompts", "time", "per prompt more", "memory", "per 1,000 prompts more")
        before = None
        for count in counts:
            now = of[count]
            cells = ["", ""]
            if before:
                more = count - before
                cells = [
                    f"{1e3 * (now['seconds'] - of[before]['seconds']) / more:.3f} ms",
                    f"{1e3 * (now['MiB'] - of[before]['MiB']) / more:.2f} MiB",
                ]
            print_row(f"{count:,}", f"{now['seconds']:.2f} s", cells[0], f"{now['MiB']:.0f} MiB", cells[1])
            before = count


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", default=ROOT / "build/default")
    parser.add_argument("--model", required=True, help="a Hugging Face directory")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache-type", choices=["f32", "bf16"], default="f32", help="of keys and values")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contexts", type=int, nargs="+", default=[1024, 4096, 16384])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 8, 16, 30])
    parser.add_argument("--queued", type=int, nargs="+", default=[100, 1000, 10000, 20000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, Path(scratch))
        for part in options.parts:
            getattr(bench, part)()
            print(flush=True)


if __name__ == "__main__":
    main()
