#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes arithmetic questions as chat prompts with ground truths, one JSON object a line.

    python3 data/make_arithmetic.py [--count 512] [--seed 1] [--digits 2] > arithmetic.jsonl

The fields are those of verl (data_source, prompt, ground_truth), the reward rule that fits is
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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--digits", type=int, default=2)
    args = parser.parse_args()
    generator = random.Random(args.seed)
    for _ in range(args.count):
        text, truth = question(generator, args.digits)
        record = {
            "data_source": "arithmetic",
            "prompt": [{"role": "user", "content": text}],
            "ground_truth": str(truth),
        }
        json.dump(record, sys.stdout)
        print()


if __name__ == "__main__":
    main()
