#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone and may be included twice: headers.py BUILD_DIR

A header that some .cpp of the build includes first has been proved by the build itself and only needs `#pragma once`.
The others go through the compiler (-fsyntax-only) with the flags of a file that uses them. What passed is remembered in
BUILD_DIR/style-headers.json until the header, one it includes, or the flags change.
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
ANY_INCLUDE = re.compile(r'^\s*#\s*include\s+(\S+)', re.M)


def includes_of(path):
    """Project headers a file includes, in order, as paths relative to the root."""
    found = []
    for name in INCLUDE.findall(tree.text(path)):
        for base in (path.parent, Path("src"), Path("."), Path("tests"), Path("tests") / path.parts[min(1, len(path.parts) - 1)]):
            if (tree.ROOT / base / name).is_file():
                found.append(Path(os.path.normpath(base / name)))
                break
    return found


def starts_with_project_header(path):
    first = ANY_INCLUDE.search(tree.text(path))
    return first is not None and first[1].startswith('"')


class Includes:
    """Direct includes of all files, read once."""

    def __init__(self, paths):
        self.direct = {path: includes_of(path) for path in paths}

    def closure(self, path):
        seen, todo = set(), [path]
        while todo:
            current = todo.pop()
            if current not in seen:
                seen.add(current)
                todo += self.direct.get(current, [])
        return seen


def compile_commands(build):
    """{source: (folder, flags without output and source)} of the tree's files that the build compiles."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        source = Path(entry["directory"], entry["file"]).resolve()
        if not source.is_relative_to(tree.ROOT.resolve()):
            continue
        words, flags, skip = shlex.split(entry["command"]), [], False
        for word in words:
            if skip or word == "-c" or word == "-Werror" or Path(entry["directory"], word).resolve() == source:
                skip = False
            elif word == "-o":
                skip = True
            else:
                flags.append(word)
        commands[source.relative_to(tree.ROOT.resolve())] = (entry["directory"], flags)
    return commands


def syntax_errors(header, folder, flags):
    twice = f'#include "{(tree.ROOT / header).resolve()}"\n' * 2
    run = subprocess.run([*flags, "-fsyntax-only", "-w", "-x", "c++", "-"], input=twice, text=True, cwd=folder,
                         capture_output=True, check=False)
    return run.stderr if run.returncode else ""


def fingerprint(header, flags, includes):
    digest = hashlib.sha256(" ".join(flags).encode())
    for path in sorted(includes.closure(header)):
        digest.update(f"{path}\n{tree.text(path)}".encode())
    return digest.hexdigest()


def main():
    build = Path(sys.argv[1])
    stamp = build / "style-headers.json"
    passed = json.loads(stamp.read_text(encoding="utf-8")) if stamp.is_file() else {}
    paths = tree.files("src", "kernels", "apps", "tests", suffixes=tree.CPP)
    headers = [p for p in paths if p.suffix == ".hpp"]
    includes = Includes(paths)
    commands = compile_commands(build)
    proved = {includes.direct[source][0] for source in commands
              if includes.direct.get(source) and starts_with_project_header(source)}
    users = {path: includes.closure(path) for path in commands}

    problems = [f'{p}:1: no "#pragma once"' for p in headers if not re.search(r"^#pragma once", tree.text(p), re.M)]
    warnings, todo = [], []
    for header in headers:
        if header in proved:
            continue
        source = next((s for s in sorted(users, key=lambda s: (s.parent != header.parent, s)) if header in users[s]), None)
        if source is None:
            warnings.append(f"{header}: no file of this build includes it")
            continue
        folder, flags = commands[source]
        key = fingerprint(header, flags, includes)
        if passed.get(str(header)) != key:
            todo.append((header, folder, flags, key))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda item: syntax_errors(*item[:3]), todo)
        for (header, _, _, key), errors in zip(todo, results):
            if errors:
                problems.append(f"{header}:1: does not compile alone and twice\n{errors.rstrip()}")
            else:
                passed[str(header)] = key
    part = stamp.with_suffix(".part")
    part.write_text(json.dumps(passed, indent=1), encoding="utf-8")
    part.replace(stamp)
    print(f"headers: {len(proved & set(headers))} proved by the build, {len(todo)} sent to the compiler")
    tree.report("headers", problems, warnings, len(headers))


main()
