#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A reward worker that lets Math-Verify judge answers (pip install math-verify): 1 where the response's answer equals
the ground truth by algebra, else 0. doc/rewards.md says what workers are asked."""
import json
import sys

answers, sys.stdout = sys.stdout, sys.stderr  # whatever the packages print is no answer

try:
    from math_verify import parse, verify
    missing = None
except ImportError as error:
    missing = f"the package Math-Verify cannot be loaded by {sys.executable} ({error}): pip install math-verify"
    print(missing, flush=True)


def judge(request: dict) -> float:
    if missing:
        raise RuntimeError(missing)
    text = request["ground_truth"] or ""
    # Bare LaTeX, as most data sets have it, is only read between dollars.
    truth = parse(text if "$" in text or "\\boxed" in text else f"${text}$") or parse(text)
    if not truth:
        raise ValueError(f"Math-Verify reads no answer in the ground truth {text!r}")
    return float(verify(truth, parse(request["response"])))  # False where either takes more than 5 s


for line in sys.stdin:
    request = json.loads(line)
    answer = {"id": request["id"]}
    try:
        answer["score"] = judge(request)
    except Exception as error:
        answer["error"] = str(error) or repr(error)
    print(json.dumps(answer), file=answers, flush=True)
