#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source file names its licence in its first or, after a #! line, second line."""
import tree

SUFFIXES = (".cpp", ".hpp", ".py", ".sh", ".cmake", ".env", ".sbatch", ".def", ".lua", ".yaml")
MARK = "SPDX-License-Identifier: Apache-2.0"


def is_script(path):
    with (tree.ROOT / path).open("rb") as file:
        return file.read(2) == b"#!"


def main():
    paths = [p for p in tree.files() if p.suffix in SUFFIXES or p.name == "CMakeLists.txt" or not p.suffix and is_script(p)]
    problems = []
    for path in paths:
        head = tree.text(path).splitlines()[:2]
        if not head or MARK not in head[1 if head[0].startswith("#!") and len(head) > 1 else 0]:
            problems.append(f'{path}:1: the first line must say "{MARK}"')
    tree.report("licences", problems, checked=len(paths))


main()
