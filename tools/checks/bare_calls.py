#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of MPI and HDF5 go through a CALL wrapper that checks the result, and stand in their modules only."""
import re

import tree

CALL = re.compile(r"\b(MPI_[A-Z][a-z]\w*|H5[A-Z]{1,2}[a-z]\w*)\s*\(")
WRAPPER = re.compile(r"\bTAPER_\w*CALL\s*\(")
PLACES = {"MPI": ("src/comm/", "src/io/", "src/results/", "src/session/"), "H5": ("src/io/",)}
# Cannot fail or have nowhere to report to: queries with a value of their own for failure, and what destructors use.
UNCHECKED = re.compile(r"^(MPI_(Initialized|Finalized|Finalize|Abort|Wtime|Comm_free|Error_string)"
                       r"|H5(Tget_(class|size|sign)|Iget_type|Sget_simple_extent_npoints|\w*close|E\w+))$")
# Whole files, with the reason.
EXCEPT = {"src/session/Guard.cpp": "ends the job: an error of MPI has nowhere to go"}


def closing(code, start):
    """Index behind the parenthesis that closes the one before start."""
    depth = 1
    while depth and start < len(code):
        depth += {"(": 1, ")": -1}.get(code[start], 0)
        start += 1
    return start


def problems_of(path):
    code = tree.without_comments(tree.text(path))
    wrapped = [(m.start(), closing(code, m.end())) for m in WRAPPER.finditer(code)]
    for match in CALL.finditer(code):
        place = f"{path}:{tree.line_of(code, match.start())}: {match[1]}"
        library = "MPI" if match[1].startswith("MPI") else "H5"
        if not str(path).startswith(PLACES[library]):
            yield f"{place} may be called in {', '.join(PLACES[library])} only"
        elif not UNCHECKED.match(match[1]) and not any(a < match.start() < b for a, b in wrapped):
            yield f"{place} is called without a CALL wrapper"


def main():
    paths = [p for p in tree.files("src", "kernels", "apps", suffixes=tree.CPP) if str(p) not in EXCEPT]
    tree.report("bare calls", [problem for path in paths for problem in problems_of(path)], checked=len(paths))


main()
