# SPDX-License-Identifier: Apache-2.0
"""Advantages, policy losses, KL penalties and rollout corrections in PyTorch, from their formulas.

Padded tensors (samples, tokens) in float64; `mask` is 1 on response tokens. doc/algorithms.md has the
formulas and their sources. Nothing here follows the C++ code.
"""

import torch

EPS = 1e-6


# ---- statistics ----------------------------------------------------------------------------------


def masked_mean(x, mask):
    return torch.where(mask > 0, x, 0.0).sum() / mask.sum()


def masked_whiten(x, mask):
    """(x - mean) / sqrt(var + 1e-8) with the unbiased variance of the unmasked entries."""
    kept = x[mask > 0]
    variance = kept.var(unbiased=True) if kept.numel() > 1 else torch.zeros(())
    mean = kept.mean() if kept.numel() else torch.zeros(())
    return (x - mean) * torch.rsqrt(variance + 1e-8)


# ---- KL ------------------------------------------------------------------------------------------


def kl_estimate(kind, log_prob, ref):
    if kind == "k1":
        return log_prob - ref
    if kind == "k2":
        return 0.5 * (log_prob - ref) ** 2
    x = torch.clamp(ref - log_prob, -20.0, 20.0)
    return torch.clamp(torch.exp(x) - x - 1.0, -10.0, 10.0)


def token_rewards(score, old, ref, mask, kl):
    """Score on the last response token, less coef * KL(old, ref) on all of them."""
    rewards = torch.zeros_like(old)
    last = mask.sum(-1).long() - 1
    rewards[torch.arange(len(last)), last] = score
    if kl is not None:
        rewards = rewards - kl["coef"] * kl_estimate(kl["estimator"], old, ref) * mask
    return rewards


def adaptive_kl(coef, target, horizon, kls, samples):
    series = []
    for kl in kls:
        error = min(max(kl / target - 1.0, -0.2), 0.2)
        coef *= 1.0 + error * samples / horizon
        series.append(coef)
    return series


# ---- advantages ----------------------------------------------------------------------------------


def group_baseline(total, groups, others):
    """Total reward less the mean of the group, or of its other members; 0 for a group of one."""
    out = total.clone()
    for g in set(groups):
        at = [i for i, other in enumerate(groups) if other == g]
        for i in at:
            rest = [j for j in at if j != i] if others else at
            if len(at) > 1:
                out[i] = total[i] - total[rest].mean()
    return out


def advantages(estimator, normalization, gamma, rewards, groups, mask, loss_mask):
    """loss_mask: tokens whose statistics count. Returns (samples, tokens), 0 outside `mask`."""
    total = (rewards * mask).sum(-1)
    if estimator == "reinforce++":
        returns = torch.zeros_like(rewards)
        running = torch.zeros(len(total), dtype=rewards.dtype)
        for t in reversed(range(rewards.shape[1])):
            running = (rewards[:, t] + gamma * running) * mask[:, t]
            returns[:, t] = running
        value = masked_whiten(returns, loss_mask) if normalization == "batch" else returns
        return value * mask
    centred = group_baseline(total, groups, others=estimator == "rloo")
    if estimator == "reinforce++-baseline":
        value = centred[:, None] * mask
        value = masked_whiten(value, loss_mask) if normalization == "batch" else value
        return value * mask
    if normalization == "group":
        for g in set(groups):
            at = [i for i, other in enumerate(groups) if other == g]
            deviation = total[at].std(unbiased=True) if len(at) > 1 else 1.0
            centred[at] = centred[at] / (deviation + EPS)
    elif normalization == "batch" and estimator == "rloo":
        centred = (centred - centred.mean()) / (centred.std(unbiased=True) + EPS)
    elif normalization == "batch":
        centred = centred / (total.std(unbiased=True) + EPS)
    return centred[:, None] * mask


def gae(rewards, values, mask, gamma, lam):
    """Advantages, not normalized, and returns; nothing comes after the last token of a response."""
    advantages = torch.zeros_like(rewards)
    for i, length in enumerate(mask.sum(-1).long().tolist()):
        for t in range(length):
            # The definition: the discounted sum of all temporal differences from t on.
            for s in range(t, length):
                after = values[i, s + 1] if s + 1 < length else 0.0
                delta = rewards[i, s] + gamma * after - values[i, s]
                advantages[i, t] += (gamma * lam) ** (s - t) * delta
    return advantages, (advantages + values) * mask


# ---- losses --------------------------------------------------------------------------------------


def aggregate(x, mask, how, length_norm):
    kept = torch.where(mask > 0, x, 0.0)
    lengths = mask.sum(-1)
    sequences = (lengths > 0).sum()
    if how == "token-mean":
        return kept.sum() / mask.sum()
    if how == "seq-mean-token-sum":
        return kept.sum() / sequences
    if how == "seq-mean-token-mean":
        return (kept.sum(-1) / (lengths + 1e-8)).sum() / sequences
    return kept.sum() / (sequences * length_norm)


def ratio_of(kind, log_prob, old, mask):
    difference = log_prob - old
    if kind != "gspo":
        return torch.exp(torch.clamp(difference, -20.0, 20.0))
    sequence = (difference * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)
    token = log_prob - log_prob.detach() + sequence.detach()[:, None]
    return torch.exp(torch.clamp(token, max=10.0))


def policy_loss(options, log_prob, old, advantage, mask):
    """Loss of each token, and shares of clipped tokens."""
    ratio = ratio_of(options["kind"], log_prob, old, mask)
    clipped = torch.clamp(ratio, 1.0 - options["clip_low"], 1.0 + options["clip_high"])
    lower = torch.zeros_like(ratio)
    if options["kind"] == "cispo":
        loss = -clipped.detach() * advantage * log_prob
        return loss, masked_mean((ratio != clipped).double(), mask), masked_mean(lower, mask)
    plain, held = -advantage * ratio, -advantage * clipped
    loss = torch.maximum(plain, held)
    if options["kind"] == "ppo" and options["dual_clip"] > 0:
        bound = -advantage * options["dual_clip"]
        lower = ((loss > bound) & (advantage < 0)).double()
        loss = torch.where(advantage < 0, torch.minimum(bound, loss), loss)
    return loss, masked_mean((held > plain).double(), mask), masked_mean(lower, mask)


def total_loss(options, log_prob, old, ref, advantage, entropy, correction, mask):
    loss, clip_fraction, lower = policy_loss(options, log_prob, old, advantage, mask)
    norm = options["length_norm"]
    parts = {
        "policy": aggregate(loss * correction, mask, options["aggregation"], norm),
        "kl": aggregate(
            kl_estimate(options["kl"], log_prob, ref), mask, options["aggregation"], norm
        ),
        "entropy": aggregate(entropy, mask, options["aggregation"], norm),
        "clip_fraction": clip_fraction,
        "dual_clip_fraction": lower,
        "ppo_kl": masked_mean(torch.clamp(old - log_prob, -20.0, 20.0), mask),
    }
    total = parts["policy"] + options["kl_coef"] * parts["kl"]
    return total - options["entropy_coef"] * parts["entropy"], parts


def value_loss(options, value, old_value, target, mask):
    """Half the aggregated larger one of plain and clipped squared error, and its metrics."""
    clip = options["clip"] if options["clip"] > 0 else float("inf")
    held = old_value + torch.clamp(value - old_value, -clip, clip)
    plain, clipped = (value - target) ** 2, (held - target) ** 2
    loss = torch.maximum(plain, clipped)
    parts = {
        "clip_fraction": masked_mean((clipped > plain).double(), mask),
        "value_mean": masked_mean(value, mask),
    }
    return 0.5 * aggregate(loss, mask, options["aggregation"], options["length_norm"]), parts


def explained_variance(value, target, mask):
    kept = mask > 0
    return 1.0 - (target - value)[kept].var() / (target[kept].var() + 1e-5)


# ---- rollout correction --------------------------------------------------------------------------


def bounded(x):
    return torch.exp(torch.clamp(x, -20.0, 20.0))


def correct(options, log_ratio, mask):
    """Importance weights, mask after rejection, metrics."""
    lengths = mask.sum(-1)
    kept = lengths > 0
    sums = (log_ratio * mask).sum(-1)
    means = torch.where(kept, sums / lengths.clamp(min=1.0), 0.0)
    metrics = {
        "kl": masked_mean(-log_ratio, mask),
        "k3_kl": masked_mean(torch.exp(log_ratio) - log_ratio - 1.0, mask),
        "ppl_ratio": torch.exp(-means)[kept].mean(),
        "chi2_token": masked_mean(bounded(log_ratio) ** 2, mask) - 1.0,
        "chi2_seq": (bounded(sums) ** 2)[kept].mean() - 1.0,
        "log_ratio_abs_max": (log_ratio.abs() * mask).max(),
    }
    weights = torch.ones_like(log_ratio)
    if options["weights"] != "none":
        ratio = log_ratio if options["weights"] == "token" else sums[:, None].expand_as(log_ratio)
        weights = torch.clamp(bounded(ratio), max=options["cap"])
        drawn = weights[mask > 0]
        metrics["weight_mean"] = drawn.mean()
        metrics["weight_min"], metrics["weight_max"] = drawn.min(), drawn.max()
        metrics["effective_sample_size"] = drawn.sum() ** 2 / (drawn**2).sum() / drawn.numel()
        if options["normalize"]:
            mean = drawn.mean() if options["weights"] == "token" else weights[:, 0][kept].mean()
            weights = weights / mean
    judged = {
        "none": torch.zeros_like(log_ratio),
        "token": log_ratio,
        "sequence": sums[:, None].expand_as(log_ratio),
        "geometric": means[:, None].expand_as(log_ratio),
    }[options["rejection"]]
    ratio = bounded(judged)
    passed = mask * ((ratio >= options["low"]) & (ratio <= options["high"])).double()
    metrics["rejected_tokens"] = 1.0 - passed.sum() / mask.sum()
    metrics["rejected_sequences"] = (passed.sum(-1) < lengths)[kept].double().mean()
    return weights, passed, metrics
