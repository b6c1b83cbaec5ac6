#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/rl.json: what PyTorch says of advantages, policy losses and corrections.

    make_rl.py            writes the file
    make_rl.py --check    recomputes, compares with the committed file and with TRL, writes nothing

Needs torch; --check needs trl, too. rl_reference.py has the formulas.
"""

import argparse
import itertools
import json
import platform
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

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
    ]:
        golden[key] = [case for name, batch in batches.items() for case in cases(name, batch)]
    golden["controller"] = controller_case()
    return golden


# ---- TRL -----------------------------------------------------------------------------------------


def trl_loss(loss_type, level, options, t, mask, advantage):
    """GRPOTrainer._compute_loss on given log-probs; its gradient by them."""
    from trl import GRPOTrainer

    log_prob = t["log_probs"].clone().requires_grad_()
    same = SimpleNamespace(
        gather=lambda x: x,
        gather_for_metrics=lambda x: x,
        reduce=lambda x, reduction=None: x,
        num_processes=1,
        sync_gradients=True,
    )
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *a, **k: (log_prob, t["entropies"], None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        beta=options["kl_coef"],
        loss_type=loss_type,
        epsilon_low=options["clip_low"],
        # CISPO: TRL's bound is that of the ratio itself
        epsilon_high=options["clip_high"] + (1.0 if loss_type == "cispo" else 0.0),
        args=SimpleNamespace(
            delta=None, use_bias_correction_kl=False, steps_per_generation=1, max_tool_calling=0
        ),
        use_vllm=False,
        vllm_importance_sampling_correction=False,
        model=SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1,
        max_completion_length=options["length_norm"],
        _entropy_bonus_enabled=False,
        use_adaptive_entropy=False,
        accelerator=same,
        _metrics={"train": defaultdict(list)},
    )
    inputs = {
        "prompt_ids": torch.zeros(len(mask), 1, dtype=torch.long),
        "prompt_mask": torch.ones(len(mask), 1, dtype=torch.long),
        "completion_ids": torch.zeros(mask.shape, dtype=torch.long),
        "completion_mask": mask,
        "advantages": advantage,
        "old_per_token_logps": t["old"],
        "ref_per_token_logps": t["ref"],
        "num_items_in_batch": mask.sum(),
    }
    loss = GRPOTrainer._compute_loss(trainer, None, inputs)
    loss.backward()
    return loss, log_prob.grad


def check_trl():
    """The reference against TRL, where that has the formula. Returns the number of differences."""
    import trl

    t = tensors(make_batches()["ragged"])
    mask = t["mask"]
    bad = 0
    for loss_type, level, kind, how in [
        ("grpo", "token", "ppo", "seq-mean-token-mean"),
        ("bnpo", "token", "ppo", "token-mean"),
        ("dapo", "token", "ppo", "token-mean"),
        ("dr_grpo", "token", "ppo", "seq-mean-token-sum-norm"),
        ("grpo", "sequence", "gspo", "seq-mean-token-mean"),
        ("cispo", "token", "cispo", "token-mean"),
    ]:
        options = {"kind": kind, "aggregation": how, "clip_low": 0.2, "clip_high": 0.28}
        options |= {"dual_clip": 0.0, "kl": "k3", "kl_coef": 0.1, "entropy_coef": 0.0}
        options["length_norm"] = 8.0
        if kind == "gspo":
            options |= {"clip_low": 0.03, "clip_high": 0.04}
        if kind == "cispo":
            options["clip_low"] = 1.0
        # One advantage per sample, as TRL's sequence level has it.
        advantage = t["advantages"][:, :1].expand_as(mask) * 1.0
        ours = dict(t, advantages=advantage)
        loss, _, slope, _ = loss_case(options, ours, mask, torch.ones_like(mask))
        other, other_slope = trl_loss(loss_type, level, options, t, mask, advantage[:, 0])
        # GSPO in its token form has the gradient of the sequence form, TRL's, where each sequence
        # has one advantage.
        worst = max((loss - other).abs().item(), (slope - other_slope * mask).abs().max().item())
        print(f"TRL {trl.__version__} {loss_type:8} {level:8} as {kind:5} {how}: {worst:.1e}")
        bad += worst > 1e-7
    return bad


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
    parser.add_argument("--check", action="store_true", help="compare with the file and with TRL")
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
    bad = check_trl()
    print("different" if found or bad else "the same up to 1e-7, and TRL agrees")
    return 1 if found or bad else 0


if __name__ == "__main__":
    sys.exit(main())
