#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What early learning could save at most: iterations played with known lengths and measured step times.

    build/default/bin/taper profile --model data/model --output profile.h5       # on the ranks of a real run
    python tests/bench/early_learning_bound.py profile.h5 --update-us 150

Needs h5py and numpy. Each rank is a replica with --sequences responses of the same law; a step takes what the profile says
for one rank (fitted by a constant, the sequences and the tokens that they read), and learning --update-us per response
token on one rank, evenly dealt. `idle` learns only on ranks that have nothing to generate; `release` may also, at the best
moment, move all sequences to a half or a quarter of the ranks, at no cost. Both may learn from all tokens of finished
responses, prompts or not. Mean share of the iteration over --draws draws.
"""

import argparse
import math
import random

import h5py
import numpy as np

from taper_tables import print_head, print_row

PROMPT = 100  # tokens


def step_law(path):
    with h5py.File(path) as file:
        steps = {name: file["steps"][name][:] for name in ("tp", "new_tokens", "sequences", "context", "time_ns")}
    plain = (steps["tp"] == 1) & (steps["new_tokens"] == steps["sequences"])
    ns = steps["time_ns"][plain].astype(float)
    terms = np.stack([np.ones(len(ns)), steps["sequences"][plain], steps["context"][plain]], 1)
    return np.linalg.lstsq(terms / ns[:, None], np.ones(len(ns)), rcond=None)[0]


def draw(law, count, limit, rng):
    """As src/simulate/LengthLaw.cpp in kind, not in number."""
    if law == "straggler":
        return [limit if rng.random() < 1 / 32 else rng.randint(1, limit // 4) for _ in range(count)]
    middle, spread = {"heavy-tail": (math.log(limit / 2) - 1.235 * 1.1, 1.1), "log-normal": (math.log(limit / 4), 0.7)}[law]
    return [min(limit, max(1, round(math.exp(rng.gauss(middle, spread))))) for _ in range(count)]


def generation_ns(left, law, before=0):
    """Until all of these have ended; `before` tokens of each are there."""
    total, done, left = 0.0, 0, sorted(left)
    for i, length in enumerate(left):
        steps, alive = length - done, len(left) - i
        total += steps * (law[0] + alive * (law[1] + law[2] * (PROMPT + before + done + steps / 2)))
        done = length
    return total


def shares(lengths, limit, law, update_ns):
    """What the iteration takes with early learning on idle ranks, and with release too, of what it takes without."""
    ranks, ends = len(lengths), [generation_ns(of_rank, law) for of_rank in lengths]
    work, last = update_ns * sum(map(sum, lengths)), max(ends)
    plain = last + work / ranks
    idle = max(last, (sum(ends) + work) / ranks)
    best = idle
    for moment in range(0, limit, max(1, limit // 40)):
        until = max(generation_ns([min(length, moment) for length in of_rank], law) for of_rank in lengths)
        left = sorted(length - moment for of_rank in lengths for length in of_rank if length > moment)
        for keep in {ranks // 2, ranks // 4} - {0}:
            rest = max(generation_ns(left[k::keep], law, moment) for k in range(keep))
            free = (ranks - keep) * rest
            best = min(best, until + rest + max(0.0, work - free) / ranks)
    return plain, idle, best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("--update-us", type=float, required=True, help="learning from a token, on one rank")
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 8, 32])
    parser.add_argument("--sequences", type=int, default=32, help="of a rank")
    parser.add_argument("--limits", nargs="+", type=int, default=[512, 2048])
    parser.add_argument("--draws", type=int, default=12)
    options = parser.parse_args()
    law = step_law(options.profile)
    print_head("ranks", "limit", "lengths", "generation", "idle", "release too")
    for ranks in options.ranks:
        for limit in options.limits:
            for name in ("straggler", "heavy-tail", "log-normal"):
                rng = random.Random(1)
                found = []
                for _ in range(options.draws):
                    lengths = [draw(name, options.sequences, limit, rng) for _ in range(ranks)]
                    plain, idle, best = shares(lengths, limit, law, options.update_us * 1000)
                    last = max(generation_ns(of_rank, law) for of_rank in lengths)
                    found.append((last / plain, 1 - idle / plain, 1 - best / plain))
                print_row(str(ranks), str(limit), name, *(f"{value:.0%}" for value in np.mean(found, axis=0)))


if __name__ == "__main__":
    main()
