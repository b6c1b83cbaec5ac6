#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Device code lives in kernels/ and in *.device.cpp only; Kokkos is included there and in src/device only; kernels know
no MPI, NCCL, HDF5, Teuchos, and allocate nothing."""
import re

import tree

LAMBDA = re.compile(r"\bKOKKOS_(CLASS_)?LAMBDA\b")
KOKKOS = re.compile(r'^\s*#\s*include\s*[<"]Kokkos', re.M)
FOREIGN = re.compile(r'^\s*#\s*include\s*[<"](mpi\.h|nccl\.h|hdf5\.h|Teuchos_)', re.M)
ALLOCATION = re.compile(r"\b(kokkos_malloc|malloc|cudaMalloc\w*)\s*(<[^;()]*>)?\s*\(|\bKokkos::fence\s*\(\s*\)")
STAGING_POOL = "kernels/Exec.device.cpp"  # page-locked memory that host and kernels share


def main():
    problems = []
    paths = tree.files("src", "kernels", "apps", suffixes=tree.CPP)
    for path in paths:
        source = tree.text(path)
        code = tree.without_comments(source)
        in_kernels = path.parts[0] == "kernels"
        if not in_kernels and not path.name.endswith(".device.cpp"):
            problems += [f"{path}:{tree.line_of(code, m.start())}: {m[0]} outside kernels/ and *.device.cpp"
                         for m in LAMBDA.finditer(code)]
        if not in_kernels and path.parts[:2] != ("src", "device"):
            problems += [f"{path}:{tree.line_of(source, m.start())}: Kokkos outside kernels/ and src/device (every file "
                         "above would be compiled with it)" for m in KOKKOS.finditer(source)]
        if in_kernels:
            problems += [f"{path}:{tree.line_of(source, m.start())}: kernels must not include {m[1]}"
                         for m in FOREIGN.finditer(source)]
            problems += [f"{path}:{tree.line_of(code, m.start())}: kernels neither allocate nor fence globally"
                         for m in ALLOCATION.finditer(code) if str(path) != STAGING_POOL]
    tree.report("device code", problems, checked=len(paths))


main()
