#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the directory of data/make_smollm2.py with transformers' own reading of the GGUF file.

    python verify_smollm2.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf [--model DIRECTORY]

Weights must be equal bit for bit (after rounding to bf16), logits to rounding, token ids exactly.
"""

import argparse
import os
import sys
from pathlib import Path

import torch
import transformers
from tokenizers import pre_tokenizers

TEXTS = [
    "The capital of France is Paris.",
    "  two leading spaces,\ttabs\tand\n\n\nblank lines  \n trailing ",
    "digits 0 12 345 6789 10.5e-3 1,000,000 v2.0.1 007 x1y22z333",
    "it's we'll I've don't you're HE'S 'quoted' \"double\"",
    "for (int i = 0; i < 10; ++i) { a[i] *= 2; } // C++\n\treturn a;",
    "naïve café Übergröße Ελληνικά Русский 日本語 한국어 العربية हिन्दी",
    "emoji 😀👩‍👩‍👧‍👦🇫🇷 and symbols ∑∫√ ½ ² ٣ Ⅷ ①②",
    "combining e\u0301 \u00e9, no-break\u00a0space, zero\u200bwidth, \ufeffmark",
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n",
    "a<|im_end|><|endoftext|> <|im_start|>  <empty_output>12<file_sep>",
    "",
    " ",
    "\r\n\r\n",
    "supercalifragilisticexpialidocious aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\x00\x01\x7f\u0085\u2028",
]


def worst_weight(ours, theirs):
    """Number of weights that differ after rounding theirs to the stored type."""
    different = 0
    if ours.keys() != theirs.keys():
        sys.exit(f"parameter names differ: {sorted(ours.keys() ^ theirs.keys())}")
    for name, value in ours.items():
        rounded = theirs[name].to(torch.bfloat16)
        different += int((value.to(torch.bfloat16) != rounded).sum())
    return different


def load(path, **more):
    net = transformers.AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, attn_implementation="eager", **more
    )
    return net.eval()


@torch.no_grad()
def largest_logit_difference(a, b, ids):
    return (a(input_ids=ids).logits - b(input_ids=ids).logits).abs().max().item()


def compare_tokens(ours, theirs, texts):
    """Texts that get other ids, or do not survive encoding and decoding."""
    bad = []
    for text in texts:
        x = ours(text, add_special_tokens=False).input_ids
        y = theirs(text, add_special_tokens=False).input_ids
        if x != y:
            bad.append((text, x, y))
        if ours.decode(x, clean_up_tokenization_spaces=False) != text:
            bad.append((text, "decodes to", ours.decode(x)))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = os.environ.get("TAPER_DEPS_DIR") or str(Path(cache) / "taper")
    model = Path(base) / "models" / "SmolLM2-135M-Instruct"
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=model)
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    failed = False

    ours = load(args.model)
    theirs = load(args.gguf.parent, gguf_file=args.gguf.name)
    different = worst_weight(ours.state_dict(), theirs.state_dict())
    print(f"weights that differ as bf16: {different}")
    failed |= different != 0

    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    reference = transformers.AutoTokenizer.from_pretrained(
        args.gguf.parent, gguf_file=args.gguf.name
    )
    # The file says "tokenizer.ggml.pre = smollm": numerals are cut off one by one before GPT-2's
    # expression. transformers takes plain GPT-2 instead, which matters for numerals beyond ASCII.
    reference.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]
    )
    files = [p.read_text(encoding="utf-8") for p in sorted(Path(__file__).parent.glob("*.py"))]
    bad = compare_tokens(tokenizer, reference, TEXTS + files)
    for text, x, y in bad:
        print(f"  {text[:60]!r}: {str(x)[:200]} | {str(y)[:200]}")
    print(f"texts with other token ids or text: {len(bad)} of {len(TEXTS + files)}")
    failed |= bool(bad)

    theirs.load_state_dict({k: v.bfloat16().float() for k, v in theirs.state_dict().items()})
    ids = torch.tensor([tokenizer(" ".join(TEXTS)).input_ids[:400]])
    difference = largest_logit_difference(ours, theirs, ids)
    print(f"largest difference of logits on {ids.shape[1]} tokens: {difference:.2e}")
    failed |= difference > 1e-4

    chat = [{"role": "user", "content": "Say hello."}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.no_grad():
        out = ours.generate(ids, max_new_tokens=20, do_sample=False)
    print("sample:", repr(tokenizer.decode(out[0, ids.shape[1] :])))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
