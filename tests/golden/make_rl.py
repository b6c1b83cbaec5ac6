#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/rl.json: what PyTorch says of advantages, losses and corrections.

    make_rl.py            writes the file
    make_rl.py --check    recomputes, compares with the committed file, with TRL and, if it is
                          installed, with verl; writes nothing

Needs torch; --check needs trl, too. rl_reference.py has the formulas, compare_peers.py what TRL and
verl say.
"""

import argparse
import itertools
import json
import platform
import sys
from pathlib import Path

import numpy as np
import torch

import compare_peers
import rl_reference as ref

HERE = Path(__file__).resolve().parent
FILE = HERE / "rl.json"
COMBINATIONS = [
    ("grpo", "group"),
    ("grpo", "batch"),
    ("grpo", "none"),
    ("dr-grpo", "none"),
    ("rloo", "none"),
    ("rloo", "batch"),
    ("reinforce++", "batch"),
    ("reinforce++", "none"),
    ("reinforce++-baseline", "batch"),
    ("reinforce++-baseline", "none"),
]
AGGREGATIONS = (
    "token-mean",
    "seq-mean-token-sum",
    "seq-mean-token-mean",
    "seq-mean-token-sum-norm",
)


# ---- batches -------------------------------------------------------------------------------------


def f32(x):
    return np.asarray(x, np.float32)


def make_batch(seed, groups, lengths, spread, truncated=(), equal=()):
    """Ragged lists of float32 values. spread: deviation of new from old log-probs."""
    rng = np.random.Generator(np.random.PCG64(seed))
    batch = {"groups": groups, "truncated": [int(i in truncated) for i in range(len(groups))]}
    scores = f32(rng.standard_normal(len(groups)))
    scores[[i for i, g in enumerate(groups) if g in equal]] = 1.0
    batch["scores"] = scores
    batch["old"] = [f32(-3.0 * rng.random(n) - 0.01) for n in lengths]
    batch["log_probs"] = [f32(x + spread * rng.standard_normal(len(x))) for x in batch["old"]]
    batch["ref"] = [f32(x + 1.5 * spread * rng.standard_normal(len(x))) for x in batch["old"]]
    batch["entropies"] = [f32(2.0 * rng.random(n)) for n in lengths]
    batch["advantages"] = [f32(rng.standard_normal(n)) for n in lengths]
    batch["corrections"] = [f32(2.0 * rng.random(n)) for n in lengths]
    batch["kept_mass"] = [f32(1.0 - 0.7 * rng.random(n) * (rng.random(n) < 0.6)) for n in lengths]
    batch["values"] = [f32(rng.standard_normal(n)) for n in lengths]
    batch["new_values"] = [f32(x + 2.0 * spread * rng.standard_normal(len(x))) for x in batch["values"]]
    batch["kept"] = [f32(rng.random(n) < 0.7) for n in lengths]
    return batch


def make_batches():
    extreme = make_batch(2, [0, 0, 0, 1, 1, 1], [5, 3, 8, 1, 6, 4], 0.4, truncated=[1])
    for sample, token, distance in [(0, 1, 35.0), (0, 3, -35.0), (2, 0, 19.0), (4, 5, -19.0)]:
        extreme["log_probs"][sample][token] = extreme["old"][sample][token] + np.float32(distance)
        extreme["ref"][sample][token] = extreme["old"][sample][token] - np.float32(distance)
    extreme["log_probs"][5] = f32(extreme["old"][5] + 14.0)  # beyond GSPO's bound of 10
    return {
        "ragged": make_batch(1, [0, 0, 0, 1, 1, 1, 1, 2, 2], [7, 1, 4, 9, 2, 12, 5, 3, 6], 0.3),
        "extreme": extreme,
        # a group of one, one-token responses, a truncated group, a group of equal scores
        "odd": make_batch(
            3,
            [0, 1, 1, 2, 2, 2, 3, 3],
            [4, 1, 1, 6, 6, 6, 2, 1],
            0.2,
            truncated=[3, 4, 5],
            equal=[3],
        ),
    }


def padded(lists):
    width = max(len(x) for x in lists)
    out = torch.zeros(len(lists), width, dtype=torch.float64)
    for i, x in enumerate(lists):
        out[i, : len(x)] = torch.from_numpy(x.astype(np.float64))
    return out


def tensors(batch):
    out = {k: padded(v) for k, v in batch.items() if k not in ("groups", "truncated", "scores")}
    out["scores"] = torch.from_numpy(batch["scores"].astype(np.float64))
    out["mask"] = padded([np.ones(len(x), np.float32) for x in batch["old"]])
    out["loss_mask"] = out["mask"] * (1.0 - torch.tensor(batch["truncated"]))[:, None]
    out["ragged_mask"] = out["loss_mask"] * out["kept"]
    return out


def ragged(x, mask):
    return [row[m > 0].tolist() for row, m in zip(x, mask)]


# ---- cases ---------------------------------------------------------------------------------------


def advantage_cases(name, batch):
    t = tensors(batch)
    kls = [None, {"estimator": "k1", "coef": 0.05}, {"estimator": "k3", "coef": 0.1}]
    cases = []
    for k, (estimator, normalization) in enumerate(COMBINATIONS):
        for kl, masked in [(None, False), (kls[1 + k % 2], True)]:
            gamma = 0.9 if estimator == "reinforce++" and masked else 1.0
            rewards = ref.token_rewards(t["scores"], t["old"], t["ref"], t["mask"], kl)
            values = ref.advantages(
                estimator,
                normalization,
                gamma,
                rewards,
                batch["groups"],
                t["mask"],
                t["loss_mask"] if masked else t["mask"],
            )
            case = {"batch": name, "estimator": estimator, "normalization": normalization}
            case |= {"gamma": gamma, "mask_truncated": masked, "kl": kl}
            case["kl_mean"] = 0.0
            if kl is not None:
                estimate = ref.kl_estimate(kl["estimator"], t["old"], t["ref"]) * t["mask"]
                case["kl_mean"] = (estimate.sum(-1) / t["mask"].sum(-1)).mean().item()
            cases.append(case | {"values": ragged(values, t["mask"])})
    return cases


def gae_cases(name, batch):
    """Masks: all tokens, without truncated responses, and with holes besides."""
    t = tensors(batch)
    kl = {"estimator": "k1", "coef": 0.05}
    cases = []
    for k, (gamma, lam) in enumerate([(1.0, 1.0), (1.0, 0.95), (0.9, 0.5), (0.99, 0.0)]):
        for mask, whitened in [("mask", False), ("loss_mask", True), ("ragged_mask", True)]:
            rewards = ref.token_rewards(t["scores"], t["old"], t["ref"], t["mask"], kl if k else None)
            advantages, returns = ref.gae(rewards, t["values"], t["mask"], gamma, lam)
            if whitened:
                advantages = ref.masked_whiten(advantages, t[mask]) * t["mask"]
            case = {"batch": name, "gamma": gamma, "lambda": lam, "kl": kl if k else None}
            case |= {"whitened": whitened, "loss_tokens": ragged(t[mask], t["mask"])}
            case["explained_variance"] = ref.explained_variance(t["values"], returns, t[mask]).item()
            case["values"] = ragged(advantages, t["mask"])
            cases.append(case | {"returns": ragged(returns, t["mask"])})
    return cases


def value_loss_cases(name, batch):
    t = tensors(batch)
    masks = itertools.cycle(["mask", "loss_mask", "ragged_mask"])
    cases = []
    for how, clip in itertools.product(AGGREGATIONS, [0.0, 0.2, 0.5]):
        options = {"aggregation": how, "clip": clip, "length_norm": 8.0}
        mask = t[next(masks)]
        value = t["new_values"].clone().requires_grad_()
        # advantages stand in for returns: any target will do
        loss, parts = ref.value_loss(options, value, t["values"], t["advantages"], mask)
        loss.backward()
        case = {"batch": name, "loss_tokens": ragged(mask, t["mask"])} | options
        case["sums"] = {"loss": loss.item()} | {n: p.item() for n, p in parts.items()}
        cases.append(case | {"gradient": ragged(value.grad, t["mask"])})
    return cases


def loss_options():
    """Kinds and aggregations, with the other settings in turn."""
    estimators = itertools.cycle(["k1", "k2", "k3"])
    bounds = itertools.cycle([(0.2, 0.28, 3.0), (0.1, 0.3, 0.0), (1.0, 0.2, 1.5)])
    for kind in ("ppo", "cispo", "gspo"):
        for how in AGGREGATIONS if kind != "gspo" else ["seq-mean-token-mean"] * 3:
            low, high, dual = next(bounds)
            if kind == "gspo":
                low, high = 0.03, 0.04
            yield {"kind": kind, "aggregation": how, "clip_low": low, "clip_high": high} | {
                "dual_clip": dual,
                "kl": next(estimators),
                "kl_coef": 0.1,
                "entropy_coef": 0.02,
                "length_norm": 8.0,
            }


def loss_case(options, t, mask, correction):
    log_prob = t["log_probs"].clone().requires_grad_()
    entropy = t["entropies"].clone().requires_grad_()
    total, parts = ref.total_loss(
        options, log_prob, t["old"], t["ref"], t["advantages"], entropy, correction, mask
    )
    total.backward()
    return total, parts, log_prob.grad, entropy.grad


def loss_cases(name, batch):
    t = tensors(batch)
    cases = []
    for k, options in enumerate(loss_options()):
        masked, corrected = k % 2 == 1, k % 3 == 2
        mask = t["loss_mask"] if masked else t["mask"]
        correction = t["corrections"] if corrected else torch.ones_like(mask)
        total, parts, slope, entropy_slope = loss_case(options, t, mask, correction)
        case = {"batch": name, "mask_truncated": masked, "corrected": corrected}
        case |= options
        case["sums"] = {"total": total.item()} | {n: p.item() for n, p in parts.items()}
        case["gradient"] = ragged(slope, t["mask"])
        case["entropy_gradient"] = ragged(entropy_slope, t["mask"])
        cases.append(case)
    return cases


def correction_cases(name, batch):
    t = tensors(batch)
    log_ratio = torch.where(t["mask"] > 0, torch.log(t["kept_mass"].clamp(min=1e-30)), 0.0)
    cases = []
    settings = itertools.product(("none", "token", "sequence"), ("none", "token", "geometric"))
    for k, (weights, rejection) in enumerate([*settings, ("sequence", "sequence")]):
        options = {"weights": weights, "cap": 0.9 if k % 2 else 2.0, "rejection": rejection}
        options |= {"normalize": weights != "none" and k % 3 > 0, "low": 0.6, "high": 2.0}
        masked = k % 2 == 0
        w, passed, metrics = ref.correct(options, log_ratio, t["loss_mask" if masked else "mask"])
        case = {"batch": name, "mask_truncated": masked} | options
        case["metrics"] = {n: m.item() for n, m in metrics.items()}
        cases.append(case | {"values": ragged(w, t["mask"]), "mask": ragged(passed, t["mask"])})
    return cases


def controller_case():
    kls = [0.05, 0.3, 0.11, 0.0, 5.0, 0.1]
    case = {"coef": 0.02, "target": 0.1, "horizon": 10000.0, "samples": 512, "kls": kls}
    case["values"] = ref.adaptive_kl(case["coef"], case["target"], case["horizon"], kls, 512)
    return case


def make():
    batches = make_batches()
    golden = {
        "made_by": "tests/golden/make_rl.py",
        "versions": {"torch": torch.__version__, "numpy": np.__version__}
        | {"python": platform.python_version()},
        "batches": {
            n: {k: [np.asarray(x).tolist() for x in v] for k, v in b.items()}
            for n, b in batches.items()
        },
    }
    for key, cases in [
        ("advantages", advantage_cases),
        ("losses", loss_cases),
        ("corrections", correction_cases),
        ("gae", gae_cases),
        ("value_losses", value_loss_cases),
    ]:
        golden[key] = [case for name, batch in batches.items() for case in cases(name, batch)]
    golden["controller"] = controller_case()
    return golden


# ---- file ----------------------------------------------------------------------------------------


def rounded(x):
    """Nine digits: more than float32 has."""
    if isinstance(x, float):
        return float(f"{x:.9g}")
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    return [rounded(v) for v in x] if isinstance(x, list) else x


def differences(new, old, path=""):
    if isinstance(new, dict) and isinstance(old, dict) and new.keys() == old.keys():
        return sum((differences(new[k], old[k], f"{path}/{k}") for k in new), [])
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return sum((differences(a, b, f"{path}/{i}") for i, (a, b) in enumerate(zip(new, old))), [])
    if isinstance(new, float) and isinstance(old, (int, float)):
        return [] if abs(new - old) <= 1e-7 * max(1.0, abs(old)) else [f"{path}: {old} -> {new}"]
    return [] if new == old else [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the file, TRL and verl")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    golden = rounded(make())
    if not args.check:
        lines = [f'"{k}": {json.dumps(v, separators=(",", ":"))}' for k, v in golden.items()]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{FILE.name}: {FILE.stat().st_size} bytes")
        return 0
    old = json.loads(FILE.read_text())
    old["versions"] = golden["versions"]
    found = differences(golden, old)
    for text in found[:20]:
        print(text)
    t = tensors(make_batches()["ragged"])
    bad = compare_peers.check_trl(t, loss_case) + compare_peers.check_verl(t)
    print("different" if found or bad else "the same up to 1e-7, and the peers agree")
    return 1 if found or bad else 0


if __name__ == "__main__":
    sys.exit(main())
