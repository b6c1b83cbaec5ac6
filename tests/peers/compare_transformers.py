#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `taper score` and greedy `taper generate` with transformers in float32 on the CPU.

    python compare_transformers.py --taper build/taper --model DIR
    python compare_transformers.py --taper build/taper --model DIR \
        --launcher "mpiexec -n 2" --layout 2x1

Scores: every log-prob of token sequences of several lengths. Generation: 20 prompts, 200 tokens.
transformers reads prompt and answer in one pass, and every token Taper chose has to have the best
logit, or one that is nearer to the best than the tolerance (a tie: float32 cannot decide it). So an
answer is followed to its end even when it left the greedy path at a tie. A model without tokenizer
gets random ids.

Tolerance: a fraction of the logits' range (largest minus smallest), for log-probs and ties alike.
The default is some ten times what the order of float32 sums causes; compare models whose stored
weights Taper would round (f32, f16) with --dtype f32. Exit code: 0 inside, 1 outside, 2 when Taper
failed.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import transformers

PROMPTS = [
    "The capital of France is",
    "Water boils at a temperature of",
    "Once upon a time, in a small village by the sea, there lived",
    "def fibonacci(n):\n",
    "The three laws of thermodynamics are:\n1.",
    "To make a good cup of tea, you first",
    "In 1969, humans first",
    "The square root of 144 is",
    "Dear Sir or Madam,\n\nI am writing to",
    "Photosynthesis is the process by which",
    "Question: What is 17 + 25?\nAnswer:",
    "List five animals that live in the ocean:\n-",
    "#include <stdio.h>\n\nint main(void) {\n",
    "The opposite of hot is",
    "Explain why the sky is blue.",
    "Write a haiku about autumn.",
    "A train travels 60 miles in 1.5 hours. Its average speed is",
    "naïve café Übergröße: these words",
    "{\"name\": \"Alice\", \"age\": 30, \"city\":",
    "The quick brown fox jumps over the lazy dog. " * 12,
]
SCORE_LENGTHS = (1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 200, 257, 300)


@dataclass
class Result:
    """One row per sequence, and what is wrong, in words."""

    rows: list = field(default_factory=list)
    problems: list = field(default_factory=list)


# ---- the reference -------------------------------------------------------------------------------


class Reference:
    def __init__(self, path):
        self.net = transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        self.vocabulary = self.net.config.vocab_size
        self.tokenizer = None
        if (Path(path) / "tokenizer.json").exists():
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)
            self.vocabulary = min(self.vocabulary, max(self.tokenizer.get_vocab().values()) + 1)
        self.stop_ids = set()
        for config in (self.net.config, self.net.generation_config):
            ids = getattr(config, "eos_token_id", None)
            self.stop_ids |= set(ids if isinstance(ids, list) else [ids]) - {None}

    @torch.no_grad()
    def logits(self, ids):
        """(tokens, vocabulary); rows of ids that the tokenizer does not know count as absent."""
        out = self.net(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
        return out[:, : self.vocabulary].double()

    def log_probs(self, ids):
        """Log-prob of each token but the first, and the range of the logits."""
        logits = self.logits(ids)
        picked = torch.log_softmax(logits[:-1], -1).gather(1, torch.tensor(ids[1:])[:, None])
        return picked[:, 0].numpy(), (logits.max() - logits.min()).item()


# ---- running Taper -------------------------------------------------------------------------------


def run_taper(args, arguments, lines):
    """Runs one subcommand on JSON lines; returns its output lines."""
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "in.jsonl", Path(scratch) / "out.jsonl"
        source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        places = {"IN": str(source), "OUT": str(target)}
        command = [*shlex.split(args.launcher), args.taper]
        command += [places.get(word, word) for word in arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
        if done.returncode != 0 or not target.exists():
            print(" ".join(command), f"\nended with code {done.returncode}", file=sys.stderr)
            print(done.stdout[-2000:], done.stderr[-4000:], file=sys.stderr)
            sys.exit(2)
        return [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]


def taper_scores(args, sequences):
    words = ["score", "--model", args.model, "--dtype", "f32", "--input", "IN", "--output", "OUT"]
    lines = [{"tokens": ids} for ids in sequences]
    return run_taper(args, words + shlex.split(args.score_options), lines)


def taper_generate(args, requests):
    words = ["generate", "--model", args.model, "--prompts", "IN", "--output", "OUT"]
    words += ["--max-new-tokens", str(args.tokens), "--temperature", "0", "--seed", "1"]
    words += ["--samples", "1", "--layout", args.layout, "--dtype", args.dtype]
    words += ["--repetition-penalty", str(args.repetition_penalty)]
    return run_taper(args, words + shlex.split(args.generate_options), requests)


# ---- inputs --------------------------------------------------------------------------------------


def score_sequences(reference, limit):
    """Ids of many lengths: random ones, and text if there is a tokenizer."""
    rng = np.random.default_rng(7)
    sequences = [rng.integers(0, reference.vocabulary, n).tolist() for n in SCORE_LENGTHS]
    if reference.tokenizer:
        text = "\n".join(PROMPTS)
        ids = reference.tokenizer(text, add_special_tokens=False).input_ids
        sequences += [ids, ids[:100], ids[33:34] + ids[:64]]
    return [ids for ids in sequences if len(ids) <= limit]


def generation_requests(reference, limit):
    """Pairs of request and prompt ids: as ids, as text and as a chat in turn."""
    if not reference.tokenizer:
        rng = np.random.default_rng(8)
        ids = [rng.integers(0, reference.vocabulary, 1 + 3 * i).tolist() for i in range(20)]
        return [({"tokens": x}, x) for x in ids if len(x) < limit]
    pairs = []
    tokenizer = reference.tokenizer
    for i, text in enumerate(PROMPTS):
        ids = tokenizer(text).input_ids
        kind = i % (3 if tokenizer.chat_template else 2)
        if kind == 0:
            pairs.append(({"tokens": ids}, ids))
        elif kind == 1:
            pairs.append(({"prompt": text}, ids))
        else:
            chat = [{"role": "user", "content": text}]
            whole = tokenizer.apply_chat_template(
                chat, tokenize=False, add_generation_prompt=True
            )
            ids = tokenizer(whole, add_special_tokens=False).input_ids
            pairs.append(({"messages": chat}, ids))
    return pairs


# ---- comparisons ---------------------------------------------------------------------------------


def compare_scores(reference, sequences, lines, tolerance):
    result = Result()
    if len(lines) != len(sequences):
        result.problems.append(f"{len(sequences)} sequences, {len(lines)} lines of scores")
    for i, (ids, line) in enumerate(zip(sequences, lines)):
        ours = line["log_probs"]
        if len(ours) != len(ids) or ours[0] is not None or None in ours[1:]:
            result.problems.append(f"score {i}: not one null and {len(ids) - 1} numbers")
            continue
        if len(ids) == 1:
            continue
        theirs, spread = reference.log_probs(ids)
        difference = float(np.abs(np.array(ours[1:]) - theirs).max())
        result.rows.append((f"score {i}", len(ids), difference, difference / spread, 0))
        if not difference <= tolerance * spread:
            result.problems.append(f"score {i}: log-prob off by {difference:.2e}")
    return result


def check_end(reference, line, name, wanted, next_best):
    """What is wrong with length and finish reason, as a list."""
    tokens, problems = line["tokens"], []
    stops = [t in reference.stop_ids for t in tokens]
    if any(stops[:-1]):
        problems.append(f"{name}: went on after an end-of-sequence token")
    if line["finish"] == "length" and len(tokens) != wanted:
        problems.append(f"{name}: {len(tokens)} tokens, finish length, {wanted} asked for")
    if line["finish"] == "stop" and not (stops and stops[-1]):
        if next_best not in reference.stop_ids:
            problems.append(f"{name}: finish stop, but no end-of-sequence token is due")
    if line["finish"] not in ("stop", "length"):
        problems.append(f"{name}: finish {line['finish']!r}")
    return problems


def same_text(reference, line):
    """The text is that of the tokens; special ones and a cut last character may be left out."""
    decode = reference.tokenizer.decode
    ours = line["text"].rstrip("\ufffd")
    return any(
        ours == decode(line["tokens"], skip_special_tokens=skip).rstrip("\ufffd")
        for skip in (True, False)
    )


def penalized(logits, ids, tokens, penalty):
    """What the processor of transformers makes of the logits after each prefix of an answer."""
    process = transformers.RepetitionPenaltyLogitsProcessor(penalty)
    prefixes = [torch.tensor([ids + tokens[:step]]) for step in range(len(logits))]
    rows = [process(prefix, row[None]) for prefix, row in zip(prefixes, logits)]
    return torch.cat(rows)


def compare_answer(reference, ids, line, name, args, result):
    """Follows one greedy answer; adds a row and problems."""
    tokens = line["tokens"]
    logits = reference.logits(ids + tokens)[len(ids) - 1 :]
    if args.repetition_penalty != 1.0:
        logits = penalized(logits, ids, tokens, args.repetition_penalty)
    spread = (logits.max() - logits.min()).item()
    limit = args.tolerance * spread
    chosen = logits[:-1].gather(1, torch.tensor(tokens, dtype=torch.long)[:, None])[:, 0]
    gap = (logits[:-1].max(-1).values - chosen).numpy()
    log_probs = (chosen - torch.logsumexp(logits[:-1], -1)).numpy()
    for step in np.flatnonzero(~(gap <= limit))[:1]:
        result.problems.append(f"{name}: step {step} took a token {gap[step]:.2e} below the best")
    if len(line["log_probs"]) != len(tokens):
        result.problems.append(f"{name}: {len(line['log_probs'])} log-probs")
        return
    difference = float(np.abs(np.array(line["log_probs"]) - log_probs).max(initial=0.0))
    if not difference <= limit:
        result.problems.append(f"{name}: log-prob off by {difference:.2e}")
    result.problems += check_end(reference, line, name, args.tokens, int(logits[-1].argmax()))
    if reference.tokenizer and not same_text(reference, line):
        result.problems.append(f"{name}: the text is not that of its tokens")
    ties = int((gap > 0).sum())
    result.rows.append((name, len(tokens), difference, difference / spread, ties))


def compare_generation(reference, pairs, lines, args):
    result = Result()
    places = [(line["index"], line["sample"]) for line in lines]
    if places != [(i, 0) for i in range(len(pairs))]:
        result.problems.append(f"{len(pairs)} prompts, but lines with index, sample {places}")
        return result
    for i, ((request, ids), line) in enumerate(zip(pairs, lines)):
        name = f"greedy {i} ({next(iter(request))})"
        compare_answer(reference, ids, line, name, args, result)
    return result


def print_table(result):
    print(f"{'':24} {'tokens':>7} {'max diff':>10} {'of range':>10} {'ties':>5}")
    for name, count, difference, relative, ties in result.rows:
        print(f"{name:24} {count:7d} {difference:10.2e} {relative:10.2e} {ties:5d}")
    if result.rows:
        worst = max(row[3] for row in result.rows)
        print(f"{'largest':24} {'':7} {'':10} {worst:10.2e}")


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--taper", required=True, help="the executable")
    parser.add_argument("--model", required=True, help="Hugging Face directory")
    parser.add_argument("--launcher", default="", help='for example "mpiexec -n 2"')
    parser.add_argument("--layout", default="1x1", help="TPxDP of the generation")
    parser.add_argument("--dtype", default="f32", choices=("f32", "bf16"), help="of generate")
    parser.add_argument("--score-options", default="", help="more options of taper score")
    parser.add_argument("--generate-options", default="", help="more options of taper generate")
    parser.add_argument("--repetition-penalty", type=float, default=1.0, help="of generate")
    parser.add_argument("--tokens", type=int, default=200, help="generated per prompt")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="fraction of the range")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for each run")
    return parser.parse_args()


def main():
    args = parse()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    reference = Reference(args.model)
    limit = reference.net.config.max_position_embeddings
    args.tokens = min(args.tokens, limit // 2)

    sequences = score_sequences(reference, limit)
    scores = taper_scores(args, sequences)
    pairs = generation_requests(reference, limit - args.tokens)
    answers = taper_generate(args, [request for request, _ in pairs])

    results = [
        compare_scores(reference, sequences, scores, args.tolerance),
        compare_generation(reference, pairs, answers, args),
    ]
    for result in results:
        print_table(result)
    problems = [problem for result in results for problem in result.problems]
    for problem in problems:
        print("outside:", problem)
    print(f"{len(problems)} problems, tolerance {args.tolerance:.0e} of the logits' range")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
