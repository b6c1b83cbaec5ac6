#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts Parquet files of prompts, as verl has them, into the JSON lines that Taper reads (doc/data.md).

    python3 tools/parquet_to_jsonl.py train.parquet [more.parquet ...] --output train.jsonl
    python3 tools/parquet_to_jsonl.py train.parquet --prompt question --truth answer --output train.jsonl

Of each row: `prompt` (a text, or messages {"role", "content"}), `data_source`, the ground truth (`ground_truth`, or
`reward_model.ground_truth`) and `extra_info`, which rewards can see. Other columns go into extra_info with --keep NAME.
Lists, structs, numbers and times become JSON; bytes are an error. Rows are read in batches: memory does not grow with the
file. Needs pyarrow. Exit code: 0 done, 2 bad input.
"""

import argparse
import json
import math
import os
import sys


class BadInput(Exception):
    """What is wrong, with file and row."""


def plain(value, where):
    """A value of pyarrow's to_pylist() as JSON has it."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return [plain(item, where) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item, where) for key, item in value.items()}
    if isinstance(value, bytes):
        raise BadInput(f"{where}: there are bytes (images?), which JSON lines do not hold; leave that column out")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def without_nulls(value):
    """Structs of Parquet have all keys in all rows; those without a value are not there."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def check_prompt(prompt, name, where):
    if isinstance(prompt, str):
        return
    if not isinstance(prompt, list) or not prompt:
        raise BadInput(f"{where}: '{name}' is {json.dumps(prompt)[:60]} (a text or a list of messages is expected)")
    for index, message in enumerate(prompt):
        if not isinstance(message, dict) or not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise BadInput(f"{where}: message {index} of '{name}' must have role and content, both texts")


def convert_row(row, args, where):
    """The object of one line."""
    if args.prompt not in row:
        raise BadInput(f"{where}: no column '{args.prompt}' (there are {', '.join(row)}); name it with --prompt")
    prompt = without_nulls(plain(row[args.prompt], where))
    check_prompt(prompt, args.prompt, where)
    line = {"prompt": prompt}
    source = args.data_source or row.get("data_source")
    if source is not None:
        line["data_source"] = str(source)
    truth = row.get(args.truth)
    if truth is None and isinstance(row.get("reward_model"), dict):
        truth = row["reward_model"].get("ground_truth")
    if truth is not None:
        line["ground_truth"] = without_nulls(plain(truth, where))
    elif not args.without_truth:
        raise BadInput(f"{where}: no ground truth (neither '{args.truth}' nor reward_model.ground_truth); name its column "
                       "with --truth, or give --without-truth")
    extra = without_nulls(plain(row.get("extra_info"), where)) if row.get("extra_info") is not None else {}
    if args.keep and not isinstance(extra, dict):
        raise BadInput(f"{where}: extra_info is no struct, so nothing can be kept beside it; leave --keep out")
    for name in args.keep:
        if name not in row:
            raise BadInput(f"{where}: no column '{name}' to keep (there are {', '.join(row)})")
        extra[name] = without_nulls(plain(row[name], where))
    if extra not in ({}, None):
        line["extra_info"] = extra
    return line


def convert(args, parquet, output):
    """Writes all lines; returns their number."""
    count = 0
    for path in args.files:
        row_number = 0
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    row_number += 1
                    line = convert_row(row, args, f"{path} row {row_number}")
                    output.write(json.dumps(line, ensure_ascii=False) + "\n")
                    count += 1
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="Parquet files, one behind the other")
    parser.add_argument("--output", required=True, help="file of JSON lines; replaced when all is written")
    parser.add_argument("--prompt", default="prompt", help="column of the prompts")
    parser.add_argument("--truth", default="ground_truth", help="column of the right answers")
    parser.add_argument("--data-source", help="for all rows, instead of the column data_source")
    parser.add_argument("--without-truth", action="store_true", help="rows need no ground truth (for taper generate)")
    parser.add_argument("--keep", action="append", default=[], metavar="NAME", help="a further column for extra_info")
    args = parser.parse_args()
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        sys.exit("pyarrow is missing: python3 -m pip install pyarrow (in an environment of your own)")
    part = args.output + ".part"
    try:
        with open(part, "w", encoding="utf-8") as output:
            count = convert(args, parquet, output)
        os.replace(part, args.output)
    except (BadInput, ArrowException, OSError) as problem:
        if os.path.exists(part):
            os.remove(part)
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
    print(f"{count} prompts in {args.output}")


if __name__ == "__main__":
    main()
