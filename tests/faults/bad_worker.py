#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A reward worker that leaves a file named by its process id in a folder and misbehaves.

bad_worker.py KIND FOLDER [SECONDS]: the kind "slow" takes so many seconds, and writes when it began and ended; "doomed"
takes so many for one response in twenty, which gets 0, and little for the others, which get 1.
"""
import json
import os
import sys
import time

kind, folder = sys.argv[1], sys.argv[2]
open(os.path.join(folder, str(os.getpid())), "w").close()
if kind == "dies_at_start":
    sys.exit("cannot load the judge")
if kind == "exits_at_once":
    sys.exit(0)


def misbehave(request: dict) -> None:
    if kind == "hangs":
        time.sleep(600)
    if kind == "dies":
        os.kill(os.getpid(), 9)
    if kind == "rubbish":
        print("Loading checkpoint shards: 100%", flush=True)
    if kind == "wrong_id":
        print(json.dumps({"id": request["id"] + 1, "score": 1.0}), flush=True)
    if kind == "half_line":
        print('{"id": 1, "sco', end="", flush=True)
        os._exit(1)
    if kind == "huge_line":
        while True:
            sys.stdout.write("x" * 4096)
    if kind == "reports":
        print(json.dumps({"id": request["id"], "error": "no judge for this"}), flush=True)
    if kind == "closes":
        os.close(1)
        time.sleep(600)


for line in sys.stdin:
    request = json.loads(line)
    assert request["response_tokens"] > 0 and request["prompt"], request
    if kind == "slow":
        with open(os.path.join(folder, str(os.getpid())), "a") as times:
            print(time.time(), file=times, flush=True)
            time.sleep(float(sys.argv[3]))
            print(time.time(), file=times)
    elif kind == "doomed":
        is_doomed = (request["index"] * 8 + request["sample"]) % 20 == 7
        time.sleep(float(sys.argv[3]) if is_doomed else 0.2)
        print(json.dumps({"id": request["id"], "score": 0.0 if is_doomed else 1.0}), flush=True)
        continue
    elif kind != "good" and request["index"] == 1 and request["sample"] == 0:
        misbehave(request)
        continue
    print(json.dumps({"id": request["id"], "score": request["response_tokens"] / 64,
                      "components": {"even": request["response_tokens"] % 2}}), flush=True)
