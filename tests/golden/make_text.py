#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the small tokenizers of tests/golden/text and writes the ids Hugging Face gives for the test texts.

    python tests/golden/make_text.py        (needs: tokenizers)

Writes tests/golden/text/<name>.tokenizer.json and tests/golden/text/tokenizer_cases.json.
"""
import json
import pathlib
import random

import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = pathlib.Path(__file__).resolve().parent / "text"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def train_byte_level(samples, pre_tokenizer, size, normalizer=None):
    tok = Tokenizer(models.BPE())
    if normalizer:
        tok.normalizer = normalizer
    tok.pre_tokenizer = pre_tokenizer
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(samples, trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    return tok


def byte_level(**kw):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **kw})


def make_llama3(samples, size=900):
    tok = train_byte_level(samples, pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), byte_level()]), size)
    data = json.loads(tok.to_str())
    vocab = data["model"]["vocab"]
    data["model"]["ignore_merges"] = True
    data["model"]["merges"] = [" ".join(m) for m in data["model"]["merges"]]  # the older of the two forms
    for word in ["Ġtwo", "xyzzy", "Ġqwertz"]:  # that no chain of merges reaches: only ignore_merges finds them
        vocab.setdefault(word, len(vocab))
    tok = Tokenizer.from_str(json.dumps(data))
    tok.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|start_header_id|>",
                            "<|end_header_id|>"])
    bos = tok.token_to_id("<|begin_of_text|>")
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|> $B:1",
        special_tokens=[("<|begin_of_text|>", bos)])])
    final = json.loads(tok.to_str())
    final["model"]["merges"] = data["model"]["merges"]
    return final


def make_qwen2(samples, size=900):
    tok = train_byte_level(samples, pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN2), "isolated"), byte_level()]), size, normalizers.NFC())
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tok.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("<think>", normalized=False)])
    return json.loads(tok.to_str())


def make_gpt2(samples, size=800):
    tok = train_byte_level(samples, byte_level(use_regex=True, add_prefix_space=True), size)
    tok.post_processor = processors.ByteLevel(trim_offsets=True)
    tok.add_special_tokens([AddedToken("<|endoftext|>", normalized=True), AddedToken("<mask>", lstrip=True)])
    tok.add_tokens([AddedToken("word", single_word=True), AddedToken("[R]", rstrip=True),
                    AddedToken("    ", normalized=False), AddedToken("[RR]", rstrip=True, lstrip=True),
                    AddedToken("[R][", normalized=True)])
    return json.loads(tok.to_str())


def make_smollm2(samples, size=800):
    tok = train_byte_level(samples, pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)]), size)
    tok.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"])
    return json.loads(tok.to_str())


def make_llama2(samples, size=900):
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    # Cut at spaces while training only, so that merges stay inside words.
    tok.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    common = [s for s in samples if sum(ord(c) > 0x24F for c in s) < len(s) / 2]
    tok.train_from_iterator(common, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=specials,
                                                        limit_alphabet=150))
    data = json.loads(tok.to_str())
    data["pre_tokenizer"] = None
    data["added_tokens"] = [t for t in data["added_tokens"] if t["id"] < 3]
    data["post_processor"] = json.loads(processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B:1", special_tokens=[("<s>", 1)]).__getstate__())
    return data


def make_llama2_metaspace(llama2):
    """The form of newer conversions: no normalizer, a Metaspace that does not split."""
    data = json.loads(json.dumps(llama2))
    data["normalizer"] = None
    data["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    data["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}]}
    data["model"]["byte_fallback"] = True
    return data


EDGE_CASES = [
    "", " ", "  ", "\n", "\r\n", " \n ", "\n\n\n  x", "a", " a", "a ", "  a  ", "\t\tx", "a\u00a0b", "a\u2003b\u3000c",
    "x\u180ey", "\u0085next", "a\u200bb\u200dc", "\ufeffbom", "\x00\x01\x7f", "don't DON'T 'Tis 'ſ I'LL we'Ve x'y",
    "'s's's", "1234567890", "1 22 333 4444 55555", "٣٤٥٦७८९", "½¾Ⅻ²", "e\u0301 \u00e9", "a\u0323\u0307 a\u0307\u0323",
    "\u1112\u1161\u11ab \ud55c", "\u212b \u00c5 A\u030a", "\u2126 \u03a9", "q\u0307\u0323\u031b" * 5,
    "<|begin_of_text|>hi<|eot_id|>", "<|im_start|>user\nHi<|im_end|>\n", "<|im_start", "<<|im_end|>>", "<s> a </s>b<s>",
    "a <mask> b", "a   <mask>   b<mask><mask>", "word words sword a word. word's wordß word\u0301", "[R]   x [R]\n\ny",
    "  [RR]  z [RR] [RR]", "[R][ [R][R]   [R]", "x    y        z     w", "<tool_call>{\"a\": 1}<think>", "<repo_name>x/y",
    "▁ ▁a a▁b ▁▁", "<0x41><0x0A>", "<unk>", "\u4e00\u9fff\U00020000", "👩‍👩‍👧‍👦👍🏽🇫🇷", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛", "xyzzy qwertz two xyzzyx",
    "ﬀ ﬁ ẞ ß ŉ", "ÀÈÌ àèì", "a" * 300, "ab" * 200, " " * 100 + "x", "\n" * 50, "-" * 77, "=>" * 40, "1" * 100, "\u0301" * 9,
    "\u0378\u0530 unassigned", "\ue000 private \U0010ffff", "\U0001f1e6\U0001f1e6\U0001f1e6", "\u202e right \u202c",
]


def random_texts(count):
    rng = random.Random(20240607)
    ranges = [(0x20, 0x7e)] * 4 + [(0x9, 0xd), (0x20, 0x20), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x52f), (0x5d0, 0x6ff),
              (0x900, 0x97f), (0xe00, 0xe7f), (0x1100, 0x11ff), (0x1e00, 0x1fff), (0x2000, 0x206f), (0x3040, 0x30ff),
              (0x4e00, 0x4eff), (0xac00, 0xad00), (0x1f300, 0x1f64f)]
    return ["".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(1, 30))) for _ in range(count)]


def main():
    HERE.mkdir(exist_ok=True)
    samples = (HERE / "samples.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    files = {"llama3": make_llama3(samples), "qwen2": make_qwen2(samples), "gpt2": make_gpt2(samples),
             "smollm2": make_smollm2(samples), "llama2": make_llama2(samples)}
    files["llama2_metaspace"] = make_llama2_metaspace(files["llama2"])
    texts = samples + EDGE_CASES + random_texts(60) + ["".join(samples)]
    result = {"made_by": "tests/golden/make_text.py", "tokenizers": tokenizers.__version__, "texts": texts, "cases": {}}
    for name, data in files.items():
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        (HERE / f"{name}.tokenizer.json").write_text(text + "\n", encoding="utf-8")
        tok = Tokenizer.from_str(text)
        plain = [tok.encode(t, add_special_tokens=False).ids for t in texts]
        result["cases"][name] = {
            "ids": plain,
            "special_ids": [tok.encode(t).ids for t in texts[:3]],
            "decoded": [tok.decode(ids, skip_special_tokens=False) for ids in plain],
            # Every second token: cuts through characters.
            "decoded_half": [tok.decode(ids[::2], skip_special_tokens=True) for ids in plain],
            "vocab_size": max(tok.get_vocab(with_added_tokens=True).values()) + 1,
        }
    # Decoded text equal to the input is left out of the file.
    for case in result["cases"].values():
        case["decoded"] = [None if d == t else d for d, t in zip(case["decoded"], texts)]
    with open(HERE / "tokenizer_cases.json", "w", encoding="utf-8") as f:
        json.dump(result, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
