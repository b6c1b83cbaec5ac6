#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes arithmetic questions as chat prompts with ground truths, one JSON object a line.

    python3 data/make_arithmetic.py [--count 512] [--seed 1] [--digits 2] > arithmetic.jsonl
    python3 data/make_arithmetic.py --count 32 --seed 2 > held_out.jsonl
    python3 data/make_arithmetic.py --without held_out.jsonl > arithmetic.jsonl

Questions in the file of --without are left out, for prompts to train on and others to judge by. The
fields are those of verl (data_source, prompt, ground_truth), the reward rule that fits is
gsm8k-flexible: the last number of the answer counts.
"""

import argparse
import json
import random
import sys


def question(generator, digits):
    low, high = 10 ** (digits - 1), 10**digits - 1
    a, b = generator.randint(low, high), generator.randint(low, high)
    if generator.random() < 0.5:
        return f"What is {a} + {b}? Answer with the number only.", a + b
    a, b = max(a, b), min(a, b)
    return f"What is {a} - {b}? Answer with the number only.", a - b


def new_question(generator, digits, left_out):
    for _ in range(100_000):
        text, truth = question(generator, digits)
        if text not in left_out:
            return text, truth
    sys.exit(f"make_arithmetic.py: the file of --without holds all questions of {digits} digits")


def questions_in(path):
    with open(path, encoding="utf-8") as file:
        return {json.loads(line)["prompt"][0]["content"] for line in file}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--digits", type=int, default=2)
    parser.add_argument("--without", metavar="FILE", help="leave out the questions of this file")
    args = parser.parse_args()
    generator = random.Random(args.seed)
    left_out = questions_in(args.without) if args.without else set()
    for _ in range(args.count):
        text, truth = new_question(generator, args.digits, left_out)
        record = {
            "data_source": "arithmetic",
            "prompt": [{"role": "user", "content": text}],
            "ground_truth": str(truth),
        }
        json.dump(record, sys.stdout)
        print()


if __name__ == "__main__":
    main()
