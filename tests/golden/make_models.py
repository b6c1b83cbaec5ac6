#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny models and golden results of tests/golden/models with PyTorch and transformers.

    python make_models.py            rewrites models/
    python make_models.py --check    recomputes and compares with what is committed
    python make_models.py --full DIR writes elsewhere, with all logits and whole gradients

What the files hold: README.md beside this script. Weights come from numpy's PCG64 so that they do
not depend on the version of PyTorch; results are float32 with eager attention on one thread, one
sequence at a time, without padding.
"""

import argparse
import json
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
import transformers

from model_table import config_json, golden_models

HERE = Path(__file__).resolve().parent
LENGTHS = (5, 17, 70)
GREEDY_TOKENS = 20
STEPS = 10
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
CLIP_NORM = 0.5
SAMPLED_ENTRIES = 512  # a longer gradient is stored as a strided sample of about this many
MIN_MARGIN = 0.02  # between the two best logits of a greedy step: far above rounding
MIN_DISTINCT = 8  # greedy tokens: a continuation that repeats itself tests little


# ---- weights and directories ---------------------------------------------------------------------


def random_weights(model, rng):
    """State dict without the tied head, rounded to the stored type."""
    with torch.device("meta"):
        config = transformers.AutoConfig.for_model(**model.config)
        shapes = transformers.AutoModelForCausalLM.from_config(config).state_dict()
    weights = {}
    for name in sorted(shapes):
        if name == "lm_head.weight" and model.config["tie_word_embeddings"]:
            continue
        noise = rng.standard_normal(tuple(shapes[name].shape)).astype(np.float32)
        if "norm" in name:
            value = 1 + 0.1 * noise
        elif name.endswith("bias"):
            value = 0.2 * noise
        elif "embed_tokens" in name or "lm_head" in name:
            value = 0.2 * noise
        else:
            value = 0.12 * noise
        weights[name] = torch.from_numpy(value).to(getattr(torch, model.dtype))
    return weights


def write_directory(path, model, weights):
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config_json(model), indent=2) + "\n")
    meta = {"format": "pt"}
    if model.shards == 1:
        safetensors.torch.save_file(weights, path / "model.safetensors", metadata=meta)
        return
    names = sorted(weights)
    weight_map = {}
    for shard in range(model.shards):
        part = names[
            shard * len(names) // model.shards : (shard + 1) * len(names) // model.shards
        ]
        file = f"model-{shard + 1:05d}-of-{model.shards:05d}.safetensors"
        safetensors.torch.save_file({n: weights[n] for n in part}, path / file, metadata=meta)
        weight_map.update({n: file for n in part})
    size = sum(w.numel() * w.element_size() for w in weights.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (path / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def load(path):
    return transformers.AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, attn_implementation="eager"
    ).eval()


# ---- results -------------------------------------------------------------------------------------


def token_log_probs(net, sequences):
    """Log-probs of every next token, one tensor per sequence, and all logits."""
    log_probs, logits = [], []
    for ids in sequences:
        out = net(input_ids=ids[None], use_cache=False).logits[0]
        logits.append(out)
        picked = torch.log_softmax(out[:-1], -1).gather(1, ids[1:, None])
        log_probs.append(picked[:, 0])
    return log_probs, logits


def mean_loss(net, sequences):
    log_probs, _ = token_log_probs(net, sequences)
    return -torch.cat(log_probs).mean()


def gradients(net, sequences):
    net.zero_grad(set_to_none=True)
    loss = mean_loss(net, sequences)
    loss.backward()
    return loss, {name: p.grad.clone() for name, p in net.named_parameters()}


def adamw_losses(path, sequences, clip):
    """Losses before the first and after each step, and the gradient norms before clipping."""
    net = load(path)
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False, **ADAMW)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = mean_loss(net, sequences)
        loss.backward()
        limit = clip if clip is not None else float("inf")
        norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), limit).item())
        losses.append(loss.item())
        optimizer.step()
    with torch.no_grad():
        losses.append(mean_loss(net, sequences).item())
    return torch.tensor(losses), torch.tensor(norms)


@torch.no_grad()
def greedy(net, ids):
    """Argmax continuation without a cache; also the smallest gap between the two best logits."""
    ids, margin = ids.clone(), float("inf")
    for _ in range(GREEDY_TOKENS):
        best = net(input_ids=ids[None], use_cache=False).logits[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        ids = torch.cat([ids, best.indices[:1]])
    return ids[-GREEDY_TOKENS:], margin


def rounding_noise(path, sequences, logits, grads):
    """How far float32 itself is from float64 (norms and rope tables stay float32 inside)."""
    net = load(path).double()
    _, exact_grads = gradients(net, sequences)
    with torch.no_grad():
        exact_logits = torch.cat(token_log_probs(net, sequences)[1])
    scale = max(g.abs().max() for g in exact_grads.values())
    worst = max((grads[n] - g).abs().max() for n, g in exact_grads.items())
    return (logits - exact_logits).abs().max().item(), (worst / scale).item()


# ---- golden file ---------------------------------------------------------------------------------


def sample_stride(count, row):
    """Smallest odd stride, not a divisor of the row length, that keeps SAMPLED_ENTRIES or fewer."""
    if count <= SAMPLED_ENTRIES:
        return 1
    stride = -(-count // SAMPLED_ENTRIES)
    while np.gcd(stride, row) != 1 or stride % 2 == 0:
        stride += 1
    return stride


def logit_rows(full):
    """Flat positions whose logits are stored: two sequences whole, the last one thinned out."""
    start = sum(LENGTHS[:-1])
    total = sum(LENGTHS)
    if full:
        return list(range(total))
    return list(range(start)) + sorted({*range(start, total, 5), *range(total - 6, total)})


def golden_tensors(path, sequences, continuation, full):
    net = load(path)
    loss, grads = gradients(net, sequences)
    with torch.no_grad():
        log_probs, logits = token_log_probs(net, sequences)
    logits = torch.cat(logits)
    rows = torch.tensor(logit_rows(full))
    plain, norms = adamw_losses(path, sequences, None)
    clipped, clipped_norms = adamw_losses(path, sequences, CLIP_NORM)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    tensors = {
        "input_ids": torch.cat(sequences),
        "offsets": torch.from_numpy(offsets),
        "logit_rows": rows,
        "logits": logits[rows],
        "log_probs": torch.cat([torch.cat([torch.zeros(1), lp]) for lp in log_probs]),
        "loss": loss.detach()[None],
        "adamw.losses": plain,
        "adamw.grad_norms": norms,
        "adamw_clipped.losses": clipped,
        "adamw_clipped.grad_norms": clipped_norms,
        "greedy": continuation,
    }
    for name, grad in grads.items():
        stride = 1 if full else sample_stride(grad.numel(), grad.shape[-1])
        tensors[f"grad.{name}"] = grad if stride == 1 else grad.flatten()[::stride].clone()
        tensors[f"grad_stride.{name}"] = torch.tensor([stride])
        tensors[f"grad_norm.{name}"] = grad.double().norm()[None]
    noise = rounding_noise(path, sequences, logits, grads)
    return {k: v.contiguous() for k, v in tensors.items()}, noise


def make_model(model, out, full):
    """Takes the first seed whose greedy continuation is clear-cut, varied and free of eos."""
    for attempt in range(1000):
        seed = 1000 * model.seed + attempt
        rng = np.random.Generator(np.random.PCG64(seed))
        weights = random_weights(model, rng)
        vocab = model.config["vocab_size"]
        ids = rng.integers(3, vocab, sum(LENGTHS))
        sequences = list(torch.from_numpy(ids).split(LENGTHS))
        path = out / model.name
        shutil.rmtree(path, ignore_errors=True)
        write_directory(path, model, weights)
        continuation, margin = greedy(load(path), sequences[0])
        varied = len(set(continuation.tolist())) >= MIN_DISTINCT
        if margin >= MIN_MARGIN and varied and model.config["eos_token_id"] not in continuation:
            break
    else:
        sys.exit(f"{model.name}: no seed gives a clear greedy continuation")
    tensors, noise = golden_tensors(path, sequences, continuation, full)
    metadata = {
        "made_by": "tests/golden/make_models.py",
        "seed": str(seed),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "safetensors": safetensors.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "adamw": json.dumps({**ADAMW, "steps": STEPS, "clip_norm": CLIP_NORM}),
        "greedy_margin": f"{margin:.4f}",
        "f32_noise_logits": f"{noise[0]:.2e}",
        "f32_noise_grad_relative": f"{noise[1]:.2e}",
    }
    safetensors.torch.save_file(tensors, path / "golden.safetensors", metadata=metadata)
    logits = tensors["logits"]
    count = sum(w.numel() for w in weights.values())
    print(
        f"{model.name:8} seed {seed} {count:7d} weights {model.dtype:8} loss {tensors['loss'][0]:.4f}"
        f" -> {tensors['adamw.losses'][-1]:.4f} logits std {logits.std():.2f}"
        f" max {logits.abs().max():.1f} grad norm {tensors['adamw.grad_norms'][0]:.2f}"
        f" margin {margin:.3f} noise {noise[0]:.1e} {noise[1]:.1e}"
    )


def check(made, committed):
    """Largest difference per kind of tensor; exits when one is above its limit."""
    bad = 0
    for model in golden_models():
        new = safetensors.torch.load_file(made / model.name / "golden.safetensors")
        old = safetensors.torch.load_file(committed / model.name / "golden.safetensors")
        for file in sorted((committed / model.name).glob("model*.safetensors")):
            if file.read_bytes() != (made / model.name / file.name).read_bytes():
                print(f"{model.name}: {file.name} differs")
                bad += 1
        if new.keys() != old.keys():
            print(f"{model.name}: golden.safetensors holds other tensors")
            bad += 1
        for name in sorted(new.keys() & old.keys()):
            scale = old[name].abs().max().double().clamp(min=1e-6)
            diff = (new[name].double() - old[name].double()).abs().max() / scale
            if diff > 1e-5 or (not old[name].is_floating_point() and diff > 0):
                print(f"{model.name}: {name} differs by {diff:.1e} of its largest value")
                bad += 1
    print("different" if bad else "the same up to 1e-5 of each tensor's largest value")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    parser.add_argument("--full", metavar="DIR", type=Path, help="write complete tensors to DIR")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(dir=HERE) as scratch:
        out = args.full or Path(scratch) / "models"
        for model in golden_models():
            make_model(model, out, full=args.full is not None)
        if args.check:
            return check(out, HERE / "models")
        if not args.full:
            shutil.rmtree(HERE / "models", ignore_errors=True)
            out.rename(HERE / "models")
    return 0


if __name__ == "__main__":
    sys.exit(main())
