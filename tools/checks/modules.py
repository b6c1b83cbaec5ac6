#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks each #include of src/, kernels/ and apps/ against doc/dev/module-matrix.txt, which allows no more than is used
and has all arrows point to smaller rows."""
import re

import tree

MATRIX = "doc/dev/module-matrix.txt"


def read_matrix():
    """The row of each module, in the order of the file, and the modules that it may include."""
    rows, allowed = {}, {}
    for line in tree.text(MATRIX).splitlines():
        if line.strip() and not line.startswith("#"):
            row, module, *others = line.split()
            rows[module] = int(row)
            allowed[module] = set(others) - {"-"}
    return rows, allowed


def row_problems(rows, allowed):
    problems = []
    last = 0
    for module, row in rows.items():
        if row < last:
            problems.append(f"{MATRIX}: {module} is of row {row}, but stands below row {last}")
        last = row
        problems += [f"{MATRIX}: {module} (row {row}) may include {other} (row {rows[other]}), which is in no smaller row"
                     for other in sorted(allowed[module] & rows.keys()) if rows[other] >= row]
    return problems


def module_of(path):
    return path.parts[1] if path.parts[0] == "src" else path.parts[0]


def included_modules(path):
    """(line number, module) of the includes with a folder in front, which all name a module."""
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"/]+)/', line)
        if match:
            yield number, match[1]


def depth_problem(path):
    """src/<module>/ and one level below it (detail/, mpi/, ...); nothing deeper."""
    levels = len(path.parts) - (2 if path.parts[0] == "src" else 1)
    return [f"{path}:1: folders are nested too deep (a module has one level below it)"] if levels > 2 else []


def main():
    rows, allowed = read_matrix()
    problems = row_problems(rows, allowed)
    used = {}
    paths = tree.files("src", "kernels", "apps", suffixes=tree.CPP)
    for path in paths:
        module = module_of(path)
        if module not in allowed:
            problems.append(f"{path}:1: the module {module} is not in {MATRIX}")
            continue
        problems += depth_problem(path)
        may = allowed[module] | {module} | ({"param"} if "_params." in path.name else set())
        for number, other in included_modules(path):
            if other not in allowed:
                problems.append(f"{path}:{number}: {other} is no module (include roots are src/ and the tree)")
            elif other not in may:
                problems.append(f"{path}:{number}: {module} must not include {other} ({MATRIX})")
            else:
                used.setdefault(module, set()).add(other)
    for module in allowed.keys() & used.keys():
        problems += [f"{MATRIX}: {module} may include {other}, but does not" for other in
                     sorted(allowed[module] - used[module] - {"base"})]
    tree.report("modules", problems, checked=len(paths))


main()
