#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory plans of GRPO on an 8-billion-parameter model, as `taper train --check` makes them on GPUs that are emulated.

    python3 tests/gpuemu/plan_memory.py --gpu TAPER --emulator DIR [--gpus N --gpu-gib GIB --set KEY=VALUE ...]
    python3 tests/gpuemu/plan_memory.py --write-config DIR [--layers N]    # config.json of the model, and no more
    python3 tests/gpuemu/plan_memory.py --write-model DIR [--share T]      # what one of T tensor-parallel ranks has of it

TAPER is of the preset cuda, DIR the folder of the stand-in for the CUDA runtime. The model has the shape of Llama 3.1 8B
and a file of zeros that takes no space on the disk; its tokenizer is that of data/model. Without --gpus it plans 8 GPUs
of 80 GiB and 2 of 141 GB (doc/gpu.md#memory). Ends with 1 if a plan does not fit."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS, HIDDEN, MLP, KV, VOCAB = 32, 4096, 14336, 1024, 128256
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": LAYERS, "hidden_size": HIDDEN,
          "intermediate_size": MLP, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
          "vocab_size": VOCAB, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": 131072,
          "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "bfloat16", "eos_token_id": 1}
SHARED = ("intermediate_size", "num_attention_heads", "num_key_value_heads", "vocab_size")  # among tensor-parallel ranks
COMMON = {"Data/Task": "mix", "Rollout/Prompts": 128, "Rollout/Samples Per Prompt": 8, "Rollout/Max Prompt Tokens": 1024,
          "Rollout/Max New Tokens": 8192, "Rollout/Max Running": 128, "Rollout/Step Rows": 2048, "Algorithm/Preset": "grpo",
          "Training/Iterations": 100, "Training/Max Tokens": 9216, "Training/Activation Checkpointing": "true",
          "Evaluation/Every": 0}
PLANS = {"8 GPUs of 80 GiB": (8, 80, {"Training/Tensor Parallel": 4, "Rollout/Tensor Parallel": 1,
                                      "Rollout/KV Memory MB": 16384}),
         "2 GPUs of 141 GB": (2, 131, {"Training/Tensor Parallel": 2, "Rollout/Tensor Parallel": 2,
                                       "Rollout/KV Memory MB": 16384})}


def tensors(share):
    mlp, kv, query, vocab = MLP // share, KV // share, HIDDEN // share, VOCAB // share
    yield "model.embed_tokens.weight", [vocab, HIDDEN]
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        for part, shape in (("self_attn.q_proj", [query, HIDDEN]), ("self_attn.k_proj", [kv, HIDDEN]),
                            ("self_attn.v_proj", [kv, HIDDEN]), ("self_attn.o_proj", [HIDDEN, query]),
                            ("mlp.gate_proj", [mlp, HIDDEN]), ("mlp.up_proj", [mlp, HIDDEN]),
                            ("mlp.down_proj", [HIDDEN, mlp]), ("input_layernorm", [HIDDEN]),
                            ("post_attention_layernorm", [HIDDEN])):
            yield f"{name}{part}.weight", shape
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [vocab, HIDDEN]


def write_model(folder, share=1):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG | {key: CONFIG[key] // share for key in SHARED}))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(ROOT / "data/model" / name, folder)
    header, at = {}, 0
    for name, shape in tensors(share):
        size = 2
        for extent in shape:
            size *= extent
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)


def plan(arguments, work, name, gpus, gib, settings):
    sets = COMMON | settings | {"Model/Directory": work / "model", "Output/Directory": work / "run"}
    sets |= dict(text.split("=", 1) for text in arguments.set)
    run_file = work / "run.yaml"
    run_file.write_text("Run: {Seed: 1}\n")
    words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    environment = os.environ | {
        "GPUEMU_DEVICES": str(gpus), "GPUEMU_MEMORY_MB": str(gib * 1024), "OMP_NUM_THREADS": "1",
        "LD_LIBRARY_PATH": f"{Path(arguments.emulator).resolve()}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    done = subprocess.run(["mpiexec", "-n", str(gpus), Path(arguments.gpu).resolve(), "train", run_file, "--check", *words],
                          cwd=work, env=environment, capture_output=True, text=True, check=False)
    print(f"{name}: {'fits' if done.returncode == 0 else 'DOES NOT FIT'}\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu")
    parser.add_argument("--emulator")
    parser.add_argument("--write-config", type=Path)
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--write-model", type=Path)
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--gpu-gib", type=int, default=80)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    if arguments.write_config:
        arguments.write_config.mkdir(exist_ok=True)
        (arguments.write_config / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": arguments.layers}))
        return
    if arguments.write_model:
        write_model(arguments.write_model, arguments.share)
        return
    if not (arguments.gpu and arguments.emulator):
        parser.error("--gpu and --emulator are needed")
    plans = PLANS if arguments.gpus is None else {f"{arguments.gpus} GPUs": (arguments.gpus, arguments.gpu_gib, {})}
    work = Path(tempfile.mkdtemp(prefix="plan-memory-"))
    write_model(work / "model")
    fits = [plan(arguments, work, name, *rest) for name, rest in plans.items()]
    shutil.rmtree(work)
    sys.exit(not all(fits))


main()
