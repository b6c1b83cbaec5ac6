#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speculation of llama.cpp and of Taper on the same prompts, weights and cores, one sequence at a time, greedy; prints a
table.

    cmake -S llama.cpp -B build-llama -DCMAKE_BUILD_TYPE=Release -DLLAMA_CURL=OFF
    cmake --build build-llama --target llama-lookup llama-speculative-simple
    python bench_llamacpp_speculation.py --llama build-llama/bin --gguf SmolLM2-135M-Instruct.Q4_1.gguf \\
        --bench build/default/tests/bench/bench_speculation --model DIR [--draft-model DIR] --prompts chats.jsonl --count 8

llama.cpp: no drafts (lookup with drafts of length 0), drafts from the text itself (lookup), from earlier texts, too (its
dynamic cache) in the first and in the second pass, and drafts of a draft model (speculative-simple, with its least
probability as it is by default). Taper: `off`, and `auto` in the first and in the second pass, with and without the
draft model. A ratio is that of the rates to the same program's without drafts; that of Taper is from the second pass, as
the first one touches memory. llama.cpp's programs time decoding alone, Taper's times include reading the prompts.
llama.cpp gets the weights of the directories, of Llama's architecture, with the metadata of the file --gguf. Options
are those of the llama.cpp in llama-cpp-python 0.3.16.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
from safetensors import safe_open
from transformers import AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/bench"), str(ROOT / "data")]
from make_smollm2 import hugging_face_name  # noqa: E402
from taper_tables import band, output_of, print_head, print_row  # noqa: E402

TYPES = {"f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16}
NO_DRAFTS = "none"


class Sums:
    """Tokens and seconds of generations, and their drafts."""

    def __init__(self):
        self.tokens = self.seconds = self.drafted = self.accepted = 0

    def add(self, tokens, seconds, drafted, accepted):
        self.tokens += tokens
        self.seconds += seconds
        self.drafted += drafted
        self.accepted += accepted

    def rate(self):
        return self.tokens / self.seconds

    def acceptance(self):
        return f"{100 * self.accepted / self.drafted:.0f} % of {self.drafted:,.0f}" if self.drafted else ""


# ---- llama.cpp -----------------------------------------------------------------------------------


def pairs_from_halves(matrix, heads):
    """GGUF keeps the two elements that rope rotates together side by side, Hugging Face half a head apart."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(vocabulary, directory, output, kind):
    """The model of a Hugging Face directory with the metadata of the reader `vocabulary`, but for the number of layers."""
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    for name, key in (("hidden_size", "embedding_length"), ("intermediate_size", "feed_forward_length"),
                      ("num_attention_heads", "attention.head_count"),
                      ("num_key_value_heads", "attention.head_count_kv")):
        if config[name] != vocabulary.get_field(f"llama.{key}").contents():
            sys.exit(f"{directory / 'config.json'}: {name} is {config[name]}, llama.{key} of the GGUF file is another; "
                     "use a model that differs in its layers only (taper draft)")
    writer = gguf.GGUFWriter(output, "llama")
    replaced = ("general.architecture", "general.file_type", "llama.block_count")
    for field in vocabulary.fields.values():
        if field.name.startswith("GGUF.") or field.name in replaced:
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], inner)
    writer.add_block_count(config["num_hidden_layers"])
    with safe_open(directory / "model.safetensors", framework="pt") as weights:
        for name in (t.name for t in vocabulary.tensors):
            if name.startswith("blk.") and int(name.split(".")[1]) >= config["num_hidden_layers"]:
                continue
            values = weights.get_tensor(hugging_face_name(name)).float().numpy()
            if name.endswith("attn_q.weight"):
                values = pairs_from_halves(values, config["num_attention_heads"])
            if name.endswith("attn_k.weight"):
                values = pairs_from_halves(values, config["num_key_value_heads"])
            if values.ndim == 1:  # norms
                writer.add_tensor(name, values)
            else:
                writer.add_tensor(name, gguf.quants.quantize(values, TYPES[kind]), raw_dtype=TYPES[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def number(pattern, text):
    found = re.findall(pattern, text)
    if not found:
        sys.exit(f"llama.cpp printed nothing like '{pattern}':\n{text[-2000:]}")
    return float(found[-1])


class Llama:
    """Its programs, on a model and a draft model."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.model, self.draft = folder / "model.gguf", folder / "draft.gguf"
        vocabulary = gguf.GGUFReader(options.gguf)
        write_gguf(vocabulary, options.model, self.model, options.llama_type)
        if options.draft_model:
            write_gguf(vocabulary, options.draft_model, self.draft, options.llama_type)

    def generate(self, texts, program, *arguments):
        sums = Sums()
        for text, length in texts:
            command = [self.options.llama / program, "-m", self.model, "-p", text, "-n", self.options.max_new_tokens,
                       "-t", self.options.threads, "-c", 2048, "--temp", 0, *arguments]
            done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{program} ended with code {done.returncode}:\n{done.stdout[-2000:]}")
            if number(r"encoded +(\d+) tokens", done.stdout) != length:
                sys.exit(f"llama.cpp reads another number of tokens than the tokenizer's {length} in:\n{text}")
            sums.add(number(r"decoded +(\d+) tokens", done.stdout),
                     number(r"decoded +\d+ tokens in +([\d.]+)", done.stdout),
                     number(r"n_drafted += (\d+)", done.stdout), number(r"n_accept += (\d+)", done.stdout))
        return sums

    def ways(self, texts):
        length = self.options.draft_length
        cache = self.folder / "lookup-cache"
        cache.unlink(missing_ok=True)
        yield NO_DRAFTS, self.generate(texts, "llama-lookup", "--draft-max", 0)
        yield "from the text (lookup)", self.generate(texts, "llama-lookup", "--draft-max", length)
        yield "from all texts (lookup)", self.generate(texts, "llama-lookup", "--draft-max", length, "-lcd", cache)
        yield "from all texts (lookup), second pass", self.generate(texts, "llama-lookup", "--draft-max", length, "-lcd", cache)
        if self.options.draft_model:
            yield "draft model", self.generate(texts, "llama-speculative-simple", "-md", self.draft, "-td",
                                               self.options.threads, "--draft-max", length)


# ---- Taper ---------------------------------------------------------------------------------------


def taper_ways(options):
    command = [options.bench, "--model", options.model, "--prompts", options.prompts, "--count", options.count,
               "--passes", 2, "--max-running", 1, "--temperature", 0, "--max-new-tokens", options.max_new_tokens,
               "--draft-length", options.draft_length, "--mode", "off", "--mode", "auto"]
    if options.draft_model:
        command += ["--draft-model", options.draft_model, "--placement", "sequence"]
    names = {"off": NO_DRAFTS, "auto": "from texts (auto)", "auto/sequence": "from texts and draft model (auto)"}
    for line in map(json.loads, output_of(command, {"OMP_NUM_THREADS": str(options.threads)}).splitlines()):
        for contestant, name in names.items():
            if contestant not in line or (contestant == "off" and line["pass"] == 0):
                continue
            sources = line[contestant].get("sources", {}).values()
            sums = Sums()
            sums.add(line["tokens"], line[contestant]["seconds"], sum(s[0] for s in sources), sum(s[1] for s in sources))
            yield name + (", second pass" if line["pass"] > 0 and contestant != "off" else ""), sums


# ---- the table -----------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", required=True, type=Path, help="folder of llama.cpp's programs")
    parser.add_argument("--gguf", required=True, type=Path, help="the model in any weight type, for its vocabulary")
    parser.add_argument("--llama-type", choices=TYPES, default="f16", help="of llama.cpp's weights (f16)")
    parser.add_argument("--bench", required=True, type=Path, help="bench_speculation")
    parser.add_argument("--model", required=True, type=Path, help="Hugging Face directory")
    parser.add_argument("--draft-model", type=Path, help="Hugging Face directory of the model with fewer layers")
    parser.add_argument("--prompts", required=True, type=Path, help="chats, JSON lines")
    parser.add_argument("--count", type=int, default=8, help="prompts")
    parser.add_argument("--max-new-tokens", type=int, default=200)
    parser.add_argument("--draft-length", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    with open(options.prompts, encoding="utf-8") as file:
        chats = [json.loads(line)["prompt"] for _, line in zip(range(options.count), file)]
    if len(chats) < options.count:
        sys.exit(f"{options.prompts} has {len(chats)} prompts, --count is {options.count}")
    rendered = [tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
    texts = [(text, len(tokenizer(text, add_special_tokens=False).input_ids)) for text in rendered]
    rounds = []
    with tempfile.TemporaryDirectory() as scratch:
        llama = Llama(options, Path(scratch))
        for _ in range(options.rounds):
            ways = {("llama.cpp", name): sums for name, sums in llama.ways(texts)}
            ways |= {("Taper", name): sums for name, sums in taper_ways(options)}
            rounds.append(ways)
    print_head("program", "drafts", "tokens/s", "against none", "accepted")
    for program, name in sorted(rounds[0], key=lambda way: (way[0] == "Taper", way[1] != NO_DRAFTS)):
        ratios = [r[program, name].rate() / r[program, NO_DRAFTS].rate() for r in rounds]
        print_row(program, name, f"{statistics.median(r[program, name].rate() for r in rounds):.0f}",
                  band(ratios, ".2f"), rounds[0][program, name].acceptance())


if __name__ == "__main__":
    main()
