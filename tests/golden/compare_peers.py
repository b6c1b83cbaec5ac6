# SPDX-License-Identifier: Apache-2.0
"""The formulas of rl_reference.py against functions of TRL and verl, on the batches of make_rl.py."""

import itertools
from collections import defaultdict
from types import SimpleNamespace

import torch

import rl_reference as ref


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


def check_trl(t, loss_case):
    """The reference against TRL, if that has the formula. Returns the number of differences."""
    import trl

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
        # GSPO in its token form has the gradient of the sequence form, TRL's, if each sequence
        # has one advantage.
        worst = max((loss - other).abs().item(), (slope - other_slope * mask).abs().max().item())
        print(f"TRL {trl.__version__} {loss_type:8} {level:8} as {kind:5} {how}: {worst:.1e}")
        bad += worst > 1e-7
    return bad


def check_verl(t):
    """GAE and value loss against verl's functions. Returns the number of differences."""
    try:
        from verl.trainer.ppo import core_algos
    except ImportError as error:
        print(f"verl: not compared ({error})")
        return 0
    mask = t["mask"]
    bad = 0
    rewards = ref.token_rewards(t["scores"], t["old"], t["ref"], mask, None)
    for gamma, lam in [(1.0, 1.0), (1.0, 0.95), (0.9, 0.5), (0.99, 0.0)]:
        ours, returns = ref.gae(rewards, t["values"], mask, gamma, lam)
        theirs = core_algos.compute_gae_advantage_return(rewards, t["values"], mask, gamma, lam)
        worst = max(
            ((x - y) * mask).abs().max().item()
            for x, y in zip((ref.masked_whiten(ours, mask), returns), theirs)
        )
        print(f"verl gae gamma {gamma} lambda {lam}: {worst:.1e}")
        bad += worst > 1e-7
    for clip, how in itertools.product([0.2, 0.5], ["token-mean", "seq-mean-token-mean"]):
        options = {"aggregation": how, "clip": clip, "length_norm": 8.0}
        loss, parts = ref.value_loss(
            options, t["new_values"], t["values"], t["advantages"], t["ragged_mask"]
        )
        other, fraction = core_algos.compute_value_loss(
            t["new_values"], t["advantages"], t["values"], t["ragged_mask"], clip, how
        )
        worst = max((loss - other).abs().item(), (parts["clip_fraction"] - fraction).abs().item())
        print(f"verl value loss clip {clip} {how}: {worst:.1e}")
        bad += worst > 1e-7
    return bad
