#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/sampling.json: what the logits processors of transformers make of some logits.

    python make_sampling.py        (needs torch, transformers)

Each case has logits (of 96 ids, to three decimals), the tokens that the sequence has, the options, and the ids that are
left with their log-probs, in the order in which generate() applies the processors: repetition penalty, temperature,
top-k, top-p, min-p.
"""
import json
import pathlib

import numpy as np
import torch
import transformers
from transformers.generation import logits_process as lp

IDS = 96
OFF = {"penalty": 1.0, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
OPTIONS = [{}, {"penalty": 1.3}, {"penalty": 0.7}, {"temperature": 0.6}, {"top_k": 5}, {"top_p": 0.8}, {"min_p": 0.1},
           {"penalty": 1.5, "temperature": 0.7}, {"penalty": 1.2, "top_k": 12}, {"penalty": 2.0, "top_p": 0.9},
           {"penalty": 1.1, "temperature": 1.4, "min_p": 0.05},
           {"penalty": 1.25, "temperature": 0.8, "top_k": 20, "top_p": 0.85, "min_p": 0.02}]


def processed(logits, tokens, o):
    chain = lp.LogitsProcessorList([lp.RepetitionPenaltyLogitsProcessor(o["penalty"]),
                                    lp.TemperatureLogitsWarper(o["temperature"])])
    if o["top_k"]:
        chain.append(lp.TopKLogitsWarper(o["top_k"]))
    if o["top_p"] < 1:
        chain.append(lp.TopPLogitsWarper(o["top_p"]))
    if o["min_p"]:
        chain.append(lp.MinPLogitsWarper(o["min_p"]))
    scores = chain(torch.tensor([tokens]), torch.tensor([logits], dtype=torch.float64))
    return torch.log_softmax(scores, -1)[0].numpy()


def main():
    rng = np.random.default_rng(8)
    cases = []
    for options in OPTIONS:
        for _ in range(3):
            o = {**OFF, **options}
            logits = np.round(rng.standard_normal(IDS) * 3, 3).tolist()
            tokens = rng.integers(0, IDS, 40).tolist()
            log_probs = processed(logits, tokens, o)
            kept = np.flatnonzero(np.isfinite(log_probs))
            cases.append({**o, "logits": logits, "tokens": tokens, "kept": kept.tolist(),
                          "log_probs": log_probs[kept].tolist()})
    text = {"made_by": "tests/golden/make_sampling.py",
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__}, "cases": cases}
    (pathlib.Path(__file__).resolve().parent / "sampling.json").write_text(json.dumps(text) + "\n")


if __name__ == "__main__":
    main()
