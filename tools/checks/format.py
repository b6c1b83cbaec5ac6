#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format 14 changes nothing. Other versions differ in details, so without version 14 the check is skipped
(exit code 77). --fix formats in place."""
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree

VERSION = 14
BATCH = 20  # files per process


def clang_format():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program:
            answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
            if re.search(rf"version {VERSION}\.", answer):
                return program
    return None


def main():
    program = clang_format()
    if program is None:
        print(f"format: skipped, clang-format {VERSION} is not here")
        sys.exit(77)
    options = ["-i"] if "--fix" in sys.argv else ["--dry-run", "-Werror", "-ferror-limit=1"]
    paths = [str(tree.ROOT / p) for p in tree.files("src", "kernels", "apps", "tests", suffixes=tree.CPP)]
    batches = [paths[i : i + BATCH] for i in range(0, len(paths), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(lambda batch: subprocess.run([program, *options, *batch], capture_output=True, text=True,
                                                     check=False).stderr, batches)
    wrong = sorted({m[1] for text in runs for m in re.finditer(r"^(\S+?):\d+:\d+: error", text, re.M)})
    problems = [f"{os.path.relpath(path, tree.ROOT)}: run tools/checks/format.py --fix" for path in wrong]
    tree.report("format", problems, checked=len(paths))


main()
