# SPDX-License-Identifier: Apache-2.0
"""The tiny models that the golden files are made of: one config.json each, and how it is stored.

The spelling of config.json differs on purpose, because all of these are met in the wild:
  llama_a          no head_dim, no rope_scaling, weights in two shards with an index
  llama_b          "rope_scaling" with "rope_type": "llama3"
  llama_c          "rope_scaling" with the old key "type"; head_dim that is not hidden / heads
  qwen2_b, qwen3_b "rope_parameters" and "dtype", as transformers 5 writes them
"""

from dataclasses import dataclass


@dataclass
class GoldenModel:
    name: str
    seed: int
    config: dict
    dtype: str = "float32"  # of the stored weights
    shards: int = 1


COMMON = {
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 256,
    "num_hidden_layers": 2,
    "use_cache": True,
    "vocab_size": 320,
}

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "attention_bias": False,
    "mlp_bias": False,
    "rms_norm_eps": 1e-05,
}

QWEN2 = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "rms_norm_eps": 1e-06,
    "sliding_window": 256,
    "max_window_layers": 2,
    "use_sliding_window": False,
}

QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "rms_norm_eps": 1e-06,
    "sliding_window": None,
    "max_window_layers": 2,
    "use_sliding_window": False,
}


def _sizes(hidden, heads, kv_heads, intermediate, tied, **more):
    return {
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": intermediate,
        "tie_word_embeddings": tied,
        **more,
    }


def golden_models():
    llama3 = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        # Shorter than the longest golden sequence; head_dim 16 then has a kept, a blended and
        # scaled frequencies.
        "original_max_position_embeddings": 64,
    }
    return [
        GoldenModel(
            "llama_a",
            11,
            {**COMMON, **LLAMA, **_sizes(64, 4, 4, 96, True), "rope_theta": 10000.0},
            shards=2,
        ),
        GoldenModel(
            "llama_b",
            12,
            {
                **COMMON,
                **LLAMA,
                **_sizes(96, 6, 2, 200, False, head_dim=16),
                "vocab_size": 331,
                "max_position_embeddings": 512,
                "rope_theta": 500000.0,
                "rope_scaling": llama3,
            },
            dtype="bfloat16",
        ),
        GoldenModel(
            "llama_c",
            13,
            {
                **COMMON,
                **LLAMA,
                **_sizes(48, 3, 3, 96, True, head_dim=32),
                "rope_theta": 10000.0,
                "rope_scaling": {"type": "linear", "factor": 2.0},
            },
            dtype="float16",
        ),
        GoldenModel(
            "qwen2_a",
            14,
            {**COMMON, **QWEN2, **_sizes(64, 4, 2, 72, True), "rope_theta": 1000000.0},
            dtype="bfloat16",
        ),
        GoldenModel(
            "qwen2_b",
            15,
            {
                **COMMON,
                **QWEN2,
                **_sizes(48, 3, 1, 80, False),
                "vocab_size": 331,
                "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
            },
        ),
        GoldenModel(
            "qwen3_a",
            16,
            {
                **COMMON,
                **QWEN3,
                **_sizes(64, 4, 2, 80, True, head_dim=24),
                "rope_theta": 1000000.0,
                "rope_scaling": None,
            },
            dtype="bfloat16",
        ),
        GoldenModel(
            "qwen3_b",
            17,
            {
                **COMMON,
                **QWEN3,
                **_sizes(64, 8, 1, 72, False, head_dim=16),
                "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
            },
            dtype="float16",
        ),
    ]


def config_json(model):
    """config.json with the dtype key in the spelling that goes with its rope keys."""
    key = "dtype" if "rope_parameters" in model.config else "torch_dtype"
    return {**model.config, key: model.dtype}
