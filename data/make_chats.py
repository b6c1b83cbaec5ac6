#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes requests to an assistant as chat prompts, one JSON object a line, for measurements on models that chat.

    python3 data/make_chats.py [--count 64] [--seed 1] > chats.jsonl

Kinds of requests take turns: open ones (stories, explanations, letters), lists and tables, code, and texts that the
answer has to quote in part (corrections, summaries). Each kind goes through all subjects in an order of its own, which
depends on the seed; the 400 requests differ. There are no ground truths.
"""

import argparse
import json
import random
import sys
from itertools import islice

SUBJECTS = ["a lighthouse", "bread", "the tides", "a bicycle", "chess", "bees", "a volcano", "the moon", "a library",
            "rain", "a violin", "a market", "the heart", "a bridge", "coffee", "glaciers", "a mill", "trees", "a kite",
            "salt", "a telescope", "the river", "a garden", "an orchestra", "paper"]

SENTENCES = ["Nobody had thought of {0} for many years.", "Then somebody asked what {0} was good for.",
             "It was cold, and the road was long.", "The answer came sooner than expected.",
             "In the end, {0} mattered more than anything else."]

KINDS = [
    "Write a short story about {0}.",
    "Explain {0} to a child of ten years.",
    "List ten facts about {0}.",
    "Write a letter to a friend in which you describe {0}.",
    "Make a plan for one week in which I learn about {0}.",
    "Write a Python class that describes {0}, with three methods.",
    "Compare {0} with the sea. Give three common points and three differences.",
    "Write a poem of twelve lines about {0}.",
    "Give five questions about {0} for a quiz, with answers.",
    "Correct the mistakes in this text and write it again: {1}",
    "Summarize this text in two sentences: {1}",
    "Repeat this text, with every sentence on a line of its own: {1}",
    "Write a function in C that counts how often the name of {0} occurs in a file.",
    "Write a conversation between two people who disagree about {0}.",
    "Describe the history of {0} in a few paragraphs.",
    "Write a table with three columns about {0}: part, purpose, material.",
]


def misspelled(generator, text):
    words = text.split()
    for at in generator.sample([i for i, word in enumerate(words) if len(word) > 1], len(words) // 8):
        words[at] = words[at][1:] + words[at][0]
    return " ".join(words)


def requests(generator):
    of_kinds = []
    for kind in KINDS:
        subjects = generator.sample(SUBJECTS, len(SUBJECTS))
        texts = [" ".join(generator.sample(SENTENCES, len(SENTENCES))).format(s) for s in subjects]
        if kind.startswith("Correct"):
            texts = [misspelled(generator, text) for text in texts]
        of_kinds.append([kind.format(s, t) for s, t in zip(subjects, texts)])
    for turn in zip(*of_kinds):
        yield from generator.sample(turn, len(turn))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not 0 < args.count <= len(KINDS) * len(SUBJECTS):
        parser.error(f"--count must be from 1 to {len(KINDS) * len(SUBJECTS)}")
    for text in islice(requests(random.Random(args.seed)), args.count):
        json.dump({"data_source": "chats", "prompt": [{"role": "user", "content": text}]}, sys.stdout)
        print()


if __name__ == "__main__":
    main()
