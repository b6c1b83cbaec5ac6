#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes preference pairs for the in-tree task `sum`, one JSON object a line: a right answer is preferred to a wrong one.

    python3 data/make_preferences.py [--count 2000] [--seed 1] > preferences.jsonl

Prompts and responses are those of the task (src/data/Tasks.hpp): "12+34+56=" is answered with work, "12+34=46+56=102#102",
or directly, "#102". Of the pairs a half hold worked answers against direct guesses, a quarter worked ones against worked
ones with a slip, and a quarter direct ones against guesses. data/reward_model.yaml trains on them.
"""

import argparse
import json
import random
import sys

ERRORS = (-10, -2, -1, 1, 2, 10)


def worked(terms, slip=None):
    """Running totals; with a slip, (step, error), one is wrong, and the rest follows from it."""
    total, text = terms[0], str(terms[0])
    for index, term in enumerate(terms[1:]):
        total += term
        if slip and index == slip[0]:
            total += slip[1]
        text += f"+{term}={total}"
    return f"{text}#{total}"


def wrong_guess(generator, answer):
    """A number near the answer, as one is who adds up at a glance."""
    error = 0
    while error == 0 or answer + error < 1:
        error = round(generator.gauss(0, 25))
    return f"#{answer + error}"


def pair(generator):
    terms = [generator.randint(10, 99) for _ in range(generator.randint(3, 6))]
    answer, style = sum(terms), generator.random()
    slip = (generator.randrange(len(terms) - 1), generator.choice(ERRORS))
    if style < 0.5:
        chosen, rejected = worked(terms), wrong_guess(generator, answer)
    elif style < 0.75:
        chosen, rejected = worked(terms), worked(terms, slip)
    else:
        chosen, rejected = f"#{answer}", wrong_guess(generator, answer)
    return {"prompt": "+".join(map(str, terms)) + "=", "chosen": chosen, "rejected": rejected}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    generator = random.Random(args.seed)
    for _ in range(args.count):
        json.dump(pair(generator), sys.stdout)
        print()


if __name__ == "__main__":
    main()
