#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each header has a test of the same name (src/a/B.hpp: tests/a/B.test.cpp)."""
import tree


def main():
    headers = [p for p in tree.files("src", "kernels", suffixes=(".hpp",))
               if not {"detail", "reference", "canonical"} & set(p.parts)]
    tests = {(p.parts[1], p.name.removesuffix(".test.cpp")) for p in tree.files("tests", suffixes=(".cpp",))}
    problems = []
    for path in headers:
        module = path.parts[1] if path.parts[0] == "src" else path.parts[0]
        stem = path.stem.removesuffix("_params")  # tested with the options that it describes
        if (module, stem) not in tests:
            problems.append(f"{path}: no tests/{module}/{stem}.test.cpp")
    tree.report("test twins", problems, [], len(headers))


main()
