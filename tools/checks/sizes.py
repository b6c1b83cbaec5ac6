#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small files: warns above 400 lines, fails above 800; one idea to a file."""
import tree

SOFT, HARD = 400, 800


def main():
    paths = [p for p in tree.files(suffixes=(".cpp", ".hpp", ".py", ".sh", ".cmake")) if "golden" not in p.parts]
    problems, warnings = [], []
    for path in paths:
        lines = tree.text(path).count("\n")
        if lines > HARD:
            problems.append(f"{path}: {lines} lines (more than {HARD}): split it")
        elif lines > SOFT:
            warnings.append(f"{path}: {lines} lines (more than {SOFT})")
    tree.report("sizes", problems, warnings, len(paths))


main()
