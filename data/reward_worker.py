#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A reward worker, to start from: doc/rewards.md says what it may be asked and answer."""
import json
import sys


def judge(request: dict) -> float:
    """Whether the response ends with the right answer behind its last '#', as in-tree tasks want it."""
    _, mark, answer = request["response"].rpartition("#")
    return float(bool(mark) and answer.strip() == request["ground_truth"])


for line in sys.stdin:
    request = json.loads(line)
    answer = {"id": request["id"]}
    try:
        answer["score"] = judge(request)
    except Exception as error:  # this response has no score; the next one may
        answer["error"] = repr(error)
    print(json.dumps(answer), flush=True)  # standard output is for answers alone
