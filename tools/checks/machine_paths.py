#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing in the tree depends on the machine it was written on: no private paths, no names of registry hosts."""
import re

import tree

PATHS = re.compile(r"(?<![\w.}/])/(work|root|tmp/dev)(/|\b)(?!\w)|/home/[a-z]\w*")
HOSTS = re.compile(r"\b(?:(?:deb|security|snapshot|ftp)[\w.]*\.debian\.org|pypi\.org|files\.pythonhosted\.org|"
                   r"artifactory|nexus|\w+\.internal|index-url|localhost:\d+)\b")
BINARY = (".png", ".h5", ".safetensors", ".gz", ".pyc", ".bin")


def main():
    problems = []
    here = "tools/checks/machine_paths.py"
    paths = [p for p in tree.files() if p.suffix not in BINARY and str(p) not in (here, "LICENSE")]
    for path in paths:
        try:
            source = tree.text(path)
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(source.splitlines(), 1):
            for pattern, what in ((PATHS, "a path of one machine"), (HOSTS, "the name of a registry host")):
                match = pattern.search(line)
                if match:
                    problems.append(f"{path}:{number}: {what}: {match[0]}")
    tree.report("machine paths", problems, checked=len(paths))


main()
