#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values and gradients of a scalar head on three golden models, by transformers' sequence classification.

    python make_scalar.py            rewrites scalar/
    python make_scalar.py --check    recomputes and compares with what is committed

scalar/<model>.safetensors: `score` (the head's weights), `values` of all positions of the golden sequences, `slopes`,
and the gradients of sum(slopes * values) as in golden.safetensors (grad., grad_stride.). What
AutoModelForSequenceClassification gives for a sequence is the value of its last position, and the script asserts it.
"""
import argparse
import pathlib
import sys

import numpy as np
import safetensors.torch
import torch
import transformers

import make_models

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ("llama_b", "qwen2_a", "qwen3_b")
make_models.SAMPLED_ENTRIES = 128


def load(name, score):
    net = transformers.AutoModelForSequenceClassification.from_pretrained(
        HERE / "models" / name, num_labels=1, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        net.score.weight.copy_(score[None])
    return net


def values_of(net, ids):
    return net.score(net.model(input_ids=ids[None], use_cache=False).last_hidden_state)[0, :, 0]


def golden(name, seed):
    stored = safetensors.torch.load_file(HERE / "models" / name / "golden.safetensors")
    sequences = [stored["input_ids"][a:b] for a, b in zip(stored["offsets"][:-1], stored["offsets"][1:])]
    rng = np.random.Generator(np.random.PCG64(seed))
    hidden = transformers.AutoConfig.from_pretrained(HERE / "models" / name).hidden_size
    score = torch.from_numpy(0.3 * rng.standard_normal(hidden).astype(np.float32))
    slopes = torch.from_numpy(rng.standard_normal(len(stored["input_ids"])).astype(np.float32))
    net = load(name, score)
    values = [values_of(net, ids) for ids in sequences]
    for ids, value in zip(sequences, values):
        assert torch.allclose(net(input_ids=ids[None]).logits[0, 0], value[-1], atol=1e-5)
    (slopes * torch.cat(values)).sum().backward()
    tensors = {"score": score, "slopes": slopes, "values": torch.cat(values).detach()}
    for parameter, tensor in net.named_parameters():
        stride = make_models.sample_stride(tensor.numel(), tensor.shape[-1])
        tensors[f"grad.{parameter}"] = tensor.grad.flatten()[::stride].clone()
        tensors[f"grad_stride.{parameter}"] = torch.tensor([stride])
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    worst = 0.0
    (HERE / "scalar").mkdir(exist_ok=True)
    for index, name in enumerate(MODELS):
        tensors, file = golden(name, 40 + index), HERE / "scalar" / f"{name}.safetensors"
        if check:
            stored = safetensors.torch.load_file(file)
            assert stored.keys() == tensors.keys(), file
            for key, tensor in tensors.items():
                scale = max(1.0, stored[key].abs().max().item())
                worst = max(worst, (tensor - stored[key]).abs().max().item() / scale)
        else:
            safetensors.torch.save_file(tensors, file, metadata={
                "made_by": "tests/golden/make_scalar.py", "torch": torch.__version__,
                "transformers": transformers.__version__})
    if check:
        print(f"largest difference {worst:.2e}")
        sys.exit(worst > 1e-5)


if __name__ == "__main__":
    main()
