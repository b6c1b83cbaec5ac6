#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each header has a test of the same name that includes it (src/a/B.hpp: tests/a/B.test.cpp)."""
import tree

# Tested by a test of another name: there are no transfers without a communicator, nor calls of CUDA without a device.
ELSEWHERE = {"src/comm/nccl/Transport.hpp": "tests/comm/Communicator.test.cpp",
             "src/base/CudaCall.hpp": "tests/device/DeviceMemory.test.cpp"}


def test_of(path):
    module = path.parts[1] if path.parts[0] == "src" else path.parts[0]
    stem = path.stem.removesuffix("_params")  # tested with the options that it describes
    return ELSEWHERE.get(path.as_posix(), f"tests/{module}/{stem}.test.cpp")


def is_included(path, test):
    """Of options and their description, which are tested together, either one will do."""
    name = path.as_posix().removeprefix("src/").removesuffix(".hpp").removesuffix("_params")
    source = tree.text(test)
    return any(f'#include "{name}{ending}"' in source for ending in (".hpp", "_params.hpp"))


def main():
    headers = [p for p in tree.files("src", "kernels", suffixes=(".hpp",))
               if not {"detail", "reference", "canonical"} & set(p.parts)]
    tests = {path.as_posix() for path in tree.files("tests", suffixes=(".cpp",))}
    problems = []
    for path in headers:
        test = test_of(path)
        if test not in tests:
            problems.append(f"{path}: no {test}")
        elif not is_included(path, test):
            problems.append(f"{path}: {test} does not include it")
    tree.report("test twins", problems, [], len(headers))


main()
