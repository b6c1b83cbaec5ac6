#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Short training runs with all messages over TCP: each must end by itself with code 0.

MPICH 4.0 with UCX sometimes does not come back from MPI_Finalize there; the runs that needed the way out are counted.
"""

import sys
import tempfile
import time
from pathlib import Path

from taper_runs import Runs, arguments, status

TCP = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "MPIR_CVAR_NOLOCAL": "1"}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-tcp-") as scratch:
        runs = Runs(args, Path(scratch))
        model = runs.make_model()
        seconds = []
        for number in range(args.runs):
            output = runs.folder / f"run-{number}"
            words = runs.train(model, output, Training__Iterations=1, Evaluation__Every=0, Run__Hang_Seconds=60)
            start = time.monotonic()
            outcome = runs.run(words, 2, env=TCP)
            seconds.append(time.monotonic() - start)
            if outcome.timed_out or outcome.code != 0 or status(output)["state"] != "completed":
                sys.exit(f"FAILED: run {number} ended with {outcome.code} after {seconds[-1]:.1f} s\n{outcome.text}")
        typical = sorted(seconds)[len(seconds) // 2]
        late = sum(s > typical + 4 for s in seconds)
        print(f"{len(seconds)} runs over TCP, typically {typical:.1f} s, {late} of them late by the wait in MPI_Finalize")


if __name__ == "__main__":
    main()
