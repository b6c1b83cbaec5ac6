# SPDX-License-Identifier: Apache-2.0
"""The files of the source tree and the way all checks report: one line per problem, exit code 1 where there is one."""
import os
import re
import sys
from pathlib import Path

# Another tree can be named, for the test of the checks themselves.
ROOT = Path(os.environ.get("TAPER_CHECKED_TREE") or Path(__file__).resolve().parents[2])
SKIPPED = re.compile(r"^(\.git|build.*|out|Testing|__pycache__|taper-run.*|taper-sft)$")
CPP = (".cpp", ".hpp")


def files(*folders, suffixes=None):
    """Paths below the given folders (default: the tree), relative to the root, sorted."""
    found = []
    for start in [ROOT / folder for folder in folders] or [ROOT]:
        for folder, names, leaves in os.walk(start):
            names[:] = [name for name in names if not SKIPPED.match(name)]
            found += [Path(folder, leaf).relative_to(ROOT) for leaf in leaves if leaf != ".git"]
    return sorted(path for path in found if suffixes is None or path.suffix in suffixes)


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def without_comments(source):
    """C++ source with comments and string literals blanked; line numbers stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match[0]), source, flags=re.S)


def line_of(source, offset):
    return source.count("\n", 0, offset) + 1


def report(name, problems, warnings=(), checked=None):
    """Prints what was found and ends the script."""
    for warning in warnings:
        print(f"{warning} [{name}, warning]")
    for problem in problems:
        print(f"{problem} [{name}]")
    count = "" if checked is None else f"{checked} files, "
    print(f"{name}: {count}{len(problems)} problems" + (f", {len(warnings)} warnings" if warnings else ""))
    sys.exit(1 if problems else 0)
