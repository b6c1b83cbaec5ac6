#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what the kernels for GPUs need with kernels/resources.json, or writes that file anew.

    tools/kernel_resources.py BUILD [--renew]

BUILD is a folder of the preset cuda. Each kernels/*.device.cpp is compiled again (minutes; no GPU is needed) with the
report of ptxas. The check fails if a kernel is new or gone, uses a stack or spills registers that the file does not
name, or uses 5 % more or fewer registers; --renew after such a change was meant. Instances of one kernel are numbered in
the order of their types."""
import argparse
import collections
import concurrent.futures
import functools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "kernels/resources.json"
REPORT = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'.*?"
                    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?"
                    r"Used (\d+) registers", re.S)
REGISTERS, WARPS = 65536, 64  # of a multiprocessor of sm_80 and sm_90
TOLERANCE = 0.05


def compiler_of(build):
    """nvcc_wrapper of the Kokkos of a build, which stands in none of its commands."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    folder = re.search(r"^Kokkos_DIR:\w+=(.*)/lib\w*/cmake/Kokkos$", cache, re.M)
    return Path(folder[1], "bin/nvcc_wrapper") if folder else "nvcc_wrapper"


def compile_again(wrapper, entry):
    """The report of ptxas, the command's output going nowhere."""
    compiler, *words = shlex.split(entry["command"])
    words.insert(0, str(wrapper))
    with tempfile.TemporaryDirectory() as folder:
        words[words.index("-o") + 1] = str(Path(folder, "out.o"))
        done = subprocess.run([*words, "-Xptxas", "-v"], cwd=entry["directory"], capture_output=True, text=True, check=False,
                              env=os.environ | {"NVCC_WRAPPER_DEFAULT_COMPILER": compiler})
    if done.returncode != 0:
        sys.exit(f"{entry['file']}: does not compile\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def demangled(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def short_name(name):
    """The function of this project that a kernel stands in: "device_rope" of what Kokkos makes of a lambda in it."""
    for pattern in (r"taper::detail::(?:\(anonymous namespace\)::)?(device_\w+)", r"taper::(sum_tree|checksums)[(<]",
                    r"taper::detail::\(anonymous namespace\)::(\w+)<([^>]*)>",
                    r"^taper::(?:detail::)?\(anonymous namespace\)::(\w+)\("):
        found = re.search(pattern, name)
        if found:
            return found[1] + ("<" + re.sub(r"\(\w+(::\w+)*\)|taper::detail::|\(anonymous namespace\)::", "", found[2]) + ">"
                               if found.lastindex == 2 else "")
    return None  # a kernel of Kokkos itself


def measure(build, jobs):
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    entries = [e for e in commands if re.search(r"/kernels/\w+\.device\.cpp$", e["file"]) and "/tests/" not in e["file"]]
    if not entries:
        sys.exit(f"{build}: no commands for kernels/*.device.cpp (is it a build of the preset cuda?)")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        reports = list(pool.map(functools.partial(compile_again, compiler_of(build)), entries))
    found = [match.groups() for report in reports for match in REPORT.finditer(report)]
    of_name = collections.defaultdict(list)
    for (mangled, architecture, stack, stores, loads, registers), name in zip(found, demangled([f[0] for f in found])):
        short = short_name(name)
        if short:
            registers = int(registers)
            warps = min(WARPS, REGISTERS // (-(-registers // 8) * 8 * 32))
            of_name[f"{architecture} {short}"].append((mangled, {"registers": registers, "warps": warps, "stack": int(stack),
                                                                 "spilled": int(stores) + int(loads)}))
    kernels = {}
    for name, list_of_name in of_name.items():
        for number, (_, resources) in enumerate(sorted(list_of_name, key=lambda pair: pair[0])):
            kernels[name + (f" #{number}" if len(list_of_name) > 1 else "")] = resources
    return dict(sorted(kernels.items()))


def differences(before, now):
    for name in sorted(before.keys() | now.keys()):
        if name not in now or name not in before:
            yield f"{name} is {'gone' if name not in now else 'new'}"
            continue
        old, new = before[name], now[name]
        for key in ("stack", "spilled"):
            if new[key] > old[key]:
                yield f"{name}: {new[key]} bytes {key} (before: {old[key]})"
        if abs(new["registers"] - old["registers"]) > TOLERANCE * old["registers"]:
            yield f"{name}: {new['registers']} registers (before: {old['registers']})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    now = measure(arguments.build, arguments.jobs)
    if arguments.renew:
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(resources)}" for name, resources in now.items())
        FILE.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
        print(f"{FILE.name}: {len(now)} kernels")
        return
    found = list(differences(json.loads(FILE.read_text(encoding="utf-8")), now))
    print(*(found or [f"{len(now)} kernels need what {FILE.name} says"]), sep="\n")
    sys.exit(bool(found))


main()
