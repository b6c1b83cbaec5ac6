#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/schedules.txt: rates of the WSD schedule as PyTorch's LambdaLR gives them.

    python make_schedules.py        (needs torch)

The factor is that of verl's get_wsd_schedule_with_warmup (and of MiniCPM's schedule): 1 for `stable` of the steps after
the warm-up, then half a cosine down to `final`. The warm-up is left out: ours begins with one step of it instead of 0.
"""
import math
import pathlib

import torch

CASES = [(0, 10, 0.1, 0.9), (5, 105, 0.1, 0.9), (5, 48, 0.0, 0.5), (10, 37, 0.25, 0.0), (3, 20, 0.1, 1.0), (0, 1, 0.5, 0.9)]


def factor(step, warmup, total, final, stable):
    remaining = max(0, total - warmup)
    stable_steps = int(remaining * stable)
    decay_steps = remaining - stable_steps
    if step < warmup + stable_steps:
        return 1.0
    if step < total:
        progress = float(step - warmup - stable_steps) / float(max(1, decay_steps))
        value = max(0.0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * progress)))
        return (1.0 - final) * value + final
    return final


def main():
    lines = ["# warm-up steps, total steps, final share, stable share, step, rate; made by make_schedules.py"]
    for warmup, total, final, stable in CASES:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s, c=(warmup, total, final, stable): factor(s, *c))
        for step in range(total + 4):
            if step >= warmup:
                lines.append(f"{warmup} {total} {final} {stable} {step} {schedule.get_last_lr()[0]!r}")
            optimizer.step()
            schedule.step()
    (pathlib.Path(__file__).resolve().parent / "schedules.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
