#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our tokenizer with Hugging Face tokenizers on a large corpus, fuzzed Unicode and fuzzed bytes.

    compare_tokenizers.py TOKENIZE_TOOL [tokenizer.json ...] [--megabytes 1.5] [--fuzz 20000] [--seed 1]

TOKENIZE_TOOL is the test executable of tests/text/tokenize_tool.cpp. Without files, those of tests/golden/text, of
data/tokenizer, and the same pre-tokenizers trained to larger vocabularies are compared. Exit code 1 on any difference.
Fuzzed Unicode draws from the characters that this Python knows up to Unicode 14, the version of Oniguruma 6.9.8.
"""
import argparse
import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import sysconfig
import tempfile
import unicodedata

from tokenizers import Tokenizer

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
ROOT = GOLDEN.parents[1]


def read_make_text():
    spec = importlib.util.spec_from_file_location("make_text", GOLDEN / "make_text.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assigned_characters():
    # Assigned by the database of this Python, less what came after Unicode 14.
    later = [(0x0CF3, 0x0CF3), (0x0ECE, 0x0ECE), (0x10EFD, 0x10EFF), (0x1123F, 0x11241), (0x11B00, 0x11B09),
             (0x11F00, 0x11F59), (0x1342F, 0x13455), (0x1B132, 0x1B155), (0x1D2C0, 0x1D2D3), (0x1DF25, 0x1DF2A),
             (0x1E030, 0x1E08F), (0x1E4D0, 0x1E4F9), (0x1F6DC, 0x1F6DC), (0x1F774, 0x1F77F), (0x1F7D9, 0x1F7D9),
             (0x1FA75, 0x1FA77), (0x1FA87, 0x1FA88), (0x1FAAD, 0x1FAAF), (0x1FABB, 0x1FABF), (0x1FACE, 0x1FACF),
             (0x1FADA, 0x1FADB), (0x1FAE8, 0x1FAE8), (0x1FAF7, 0x1FAF8), (0x31350, 0x323AF), (0x2EBF0, 0x2EE5D),
             (0x2FFC, 0x2FFF), (0x31EF, 0x31EF)]
    return [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")
            and not any(a <= c <= b for a, b in later)]


def corpus(megabytes, rng, samples):
    """Code, prose in many scripts, numbers and white space, as texts of up to a few KB."""
    texts, size, target = [], 0, int(megabytes * 1e6)
    stdlib = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    rng.shuffle(stdlib)
    words = " ".join(samples).split(" ")
    for path in stdlib:
        code = path.read_text(encoding="utf-8", errors="replace")
        texts += [code[i:i + 4000] for i in range(0, min(len(code), 20000), 4000)]
        size += min(len(code), 20000)
        if size > target / 2:
            break
    while size < target:
        parts = []
        for _ in range(rng.randint(1, 120)):
            parts.append(rng.choice(words) if rng.random() < 0.8 else str(rng.randrange(10 ** rng.randint(1, 12))))
            parts.append(rng.choice([" ", " ", " ", " ", "  ", "\n", "\r\n", "\t", ", ", ". ", "\n\n", "\u3000", ""]))
        texts.append("".join(parts))
        size += len(texts[-1].encode())
    return texts


def fuzz(count, rng, specials):
    characters = assigned_characters()
    marks = [c for c in characters if unicodedata.combining(c)]
    spaces = [c for c in characters if c.isspace()] + ["\n", " ", " "]
    letters = [c for c in characters if unicodedata.category(c)[0] == "L" and not 0x4e00 <= ord(c) < 0xd7a4]
    numbers = [c for c in characters if unicodedata.category(c)[0] == "N"]
    pools = [characters, marks, spaces, letters, numbers, [chr(c) for c in range(32, 127)], specials, ["'s", "'LL", "▁"]]
    for i in range(count):
        if i % 4 == 0:
            yield rng.randbytes(rng.randint(0, 60))
        elif i % 4 == 1:  # broken UTF-8: valid text with bytes removed or changed
            data = bytearray("".join(rng.choice(rng.choice(pools)) for _ in range(20)).encode())
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(data))
                if rng.random() < 0.5:
                    data[at] = rng.randrange(256)
                elif len(data) > 1:
                    del data[at]
            yield bytes(data)
        else:
            pool = pools if rng.random() < 0.5 else [rng.choice(pools), rng.choice(pools)]
            yield "".join(rng.choice(rng.choice(pool)) for _ in range(rng.randint(1, 40))).encode()


def larger_tokenizers(texts, folder):
    make = read_make_text()
    for name in ("llama3", "qwen2", "gpt2", "smollm2", "llama2"):
        data = getattr(make, "make_" + name)(texts, 8000)
        path = folder / f"{name}_8000.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        yield path


def run_tool(tool, path, requests):
    with tempfile.TemporaryFile("w+") as stdin:
        for request in requests:
            stdin.write(json.dumps(request) + "\n")
        stdin.seek(0)
        run = subprocess.run([tool, str(path)], stdin=stdin, capture_output=True)
    if run.returncode:
        sys.exit(run.stderr.decode())
    return [json.loads(line) for line in run.stdout.decode().split("\n") if line]


def compare(tool, path, inputs, rng):
    theirs = Tokenizer.from_file(str(path))
    theirs.no_padding()
    theirs.no_truncation()
    size = max(theirs.get_vocab(with_added_tokens=True).values()) + 1
    random_ids = [[rng.randrange(size + 3) for _ in range(rng.randint(0, 30))] for _ in range(2000)]
    ours = run_tool(tool, path, [{"hex": data.hex()} for data in inputs] + [{"ids": ids} for ids in random_ids])
    # Joined token_bytes are the decoded text if decoding is a plain join of bytes.
    joins = json.loads(path.read_text(encoding="utf-8"))["decoder"]["type"] == "ByteLevel"
    bad = 0
    for i, reply in enumerate(ours):
        expected = {}
        if i < len(inputs):
            text = inputs[i].decode("utf-8", errors="replace")
            ids = theirs.encode(text, add_special_tokens=False).ids
            expected = {"ids": ids, "special_ids": theirs.encode(text).ids}
            if joins and bytes.fromhex(reply.pop("bytes")).decode("utf-8", errors="replace") != reply["text"]:
                bad += 1
                print("token_bytes differ from decode for", inputs[i][:80])
            reply.pop("bytes", None)
        else:
            ids = random_ids[i - len(inputs)]
        expected["text"] = theirs.decode(ids, skip_special_tokens=False)
        expected["text_without_special"] = theirs.decode(ids, skip_special_tokens=True)
        if reply != expected:
            bad += 1
            if bad <= 5:
                keys = [k for k in expected if reply.get(k) != expected[k]]
                print(f"{path.name}: {keys} differ for {repr(inputs[i] if i < len(inputs) else ids)[:200]}")
                for key in keys[:2]:
                    print("   theirs", repr(expected[key])[:200], "\n   ours  ", repr(reply.get(key))[:200])
    total = sum(map(len, inputs))
    print(f"{path.name}: {len(inputs)} texts, {total / 1e6:.2f} MB, {size} ids: {bad} differences", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=1.5)
    parser.add_argument("--fuzz", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    samples = (GOLDEN / "text" / "samples.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    texts = corpus(args.megabytes, rng, samples)
    files = args.files
    with tempfile.TemporaryDirectory() as folder:
        if not files:
            files = sorted((GOLDEN / "text").glob("*.tokenizer.json")) + [ROOT / "data/tokenizer/tokenizer.json"]
            files += larger_tokenizers(texts, pathlib.Path(folder))
        bad, known = 0, set(assigned_characters())
        for path in files:
            specials = [t["content"] for t in json.loads(path.read_text(encoding="utf-8"))["added_tokens"]] or ["x"]
            inputs = [t.encode() for t in texts]
            inputs += [d for d in fuzz(args.fuzz, rng, specials) if known.issuperset(d.decode(errors="replace"))]
            bad += compare(args.tool, path, inputs, rng)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
