#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what the kernels for GPUs need with kernels/resources.json, or writes that file anew.

    tools/kernel_resources.py BUILD [--renew]

BUILD is a folder of the preset cuda. Each kernels/*.device.cpp is compiled again (minutes; no GPU is needed) with the
report of ptxas. Small jobs on an emulated GPU then count what each kernel executes for a byte of global memory that its
threads read or write, and what share of the memory's rate an H200 would reach if only the issue of instructions limited
it. Bytes that come from caches count as well, so it says where instructions cost, not how long a kernel takes. The check
fails if a kernel is new or gone, uses a stack or spills registers that the file does not name, or needs 5 % more or
fewer registers or instructions; --renew after such a change was meant. Instances of one kernel are numbered in the order
of their types. A kernel that no job calls on a megabyte has no count."""
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

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "kernels/resources.json"
REPORT = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'.*?"
                    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?"
                    r"Used (\d+) registers", re.S)
REGISTERS, WARPS = 65536, 64  # of a multiprocessor of sm_80 and sm_90
ISSUED = 132 * 4 * 1.83e9  # instructions of warps per second of an H200: processors, schedulers, clock
COPIED = 4.146e12  # bytes per second of a copy there (doc/gpu.md)
PRODUCTS = ["tests/bench/bench_device", "--seconds", "0", "--arithmetic", "bf16", "--scale", "16", "--rows", "1", "--rows", "16",
            "--rows", "64", "--rows", "1024"]
TRAINING = {"Model/Directory": ROOT / "data/model", "Data/Task": "mix", "Training/Iterations": 1, "Rollout/Prompts": 2,
            "Rollout/Samples Per Prompt": 2, "Rollout/Max New Tokens": 8, "Evaluation/Every": 0, "Checkpoint/Every": 0,
            "Output/Directory": "run"}
SHAPE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "torch_dtype": "bfloat16",
         "hidden_size": 256, "intermediate_size": 512, "vocab_size": 8192, "num_hidden_layers": 1, "head_dim": 128,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 1024, "rms_norm_eps": 1e-05,
         "rope_theta": 10000.0, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2}
DECODE = ["tests/bench/bench_model", "--model", ".", "--draw-weights", "--parts", "decode", "--batches", "16",
          "--tokens", "4", "--repeats", "1", "--arithmetic", "bf16"]
LEAST_BYTES = 1 << 20  # fewer would show the start of rows
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
    counts = count(build, jobs)
    for name, list_of_name in of_name.items():
        for number, (mangled, resources) in enumerate(sorted(list_of_name, key=lambda pair: pair[0])):
            kernels[name + (f" #{number}" if len(list_of_name) > 1 else "")] = resources | counts.get(mangled, {})
    return dict(sorted(kernels.items()))


def run_counted(build, words):
    """What one job counts, a dictionary for each kernel."""
    with tempfile.TemporaryDirectory() as folder:
        libraries = f"{build / 'tests/gpuemu/lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        file = Path(folder, "counts.jsonl")
        Path(folder, "config.json").write_text(json.dumps(SHAPE), encoding="utf-8")  # weights are drawn
        environment = os.environ | {"GPUEMU_STATISTICS": str(file), "GPUEMU_CHECKS": "none", "GPUEMU_DEVICES": "1",
                                    "OMP_NUM_THREADS": "1", "LD_LIBRARY_PATH": libraries}
        done = subprocess.run([build / words[0], *words[1:]], cwd=folder, env=environment, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"{words[0]} ended with {done.returncode} on the emulated GPU\n{done.stderr[-2000:]}")
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def count(build, jobs):
    """Of each kernel that jobs call, by its mangled name."""
    training = [word for key, value in TRAINING.items() for word in ("--set", f"{key}={value}")]
    trained = [["bin/taper", "train", "--set", f"Model/Arithmetic={a}", *training] for a in ("f32", "bf16")]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        lines = [line for its in pool.map(functools.partial(run_counted, build), [PRODUCTS, DECODE, *trained]) for line in its]
    sums = collections.defaultdict(collections.Counter)
    for line in lines:
        sums[line["kernel"]].update(instructions=line["instructions"], bytes=line["bytes_read"] + line["bytes_written"])
    per_byte = {kernel: its["instructions"] / its["bytes"] for kernel, its in sums.items() if its["bytes"] >= LEAST_BYTES}
    return {kernel: {"instructions_per_byte": round(value, 3),
                     "share_of_memory_rate": round(min(1, ISSUED / COPIED / value), 2)} for kernel, value in per_byte.items()}


def differences(before, now):
    for name in sorted(before.keys() | now.keys()):
        if name not in now or name not in before:
            yield f"{name} is {'gone' if name not in now else 'new'}"
            continue
        old, new = before[name], now[name]
        for key in ("stack", "spilled"):
            if new[key] > old[key]:
                yield f"{name}: {new[key]} bytes {key} (before: {old[key]})"
        for key in ("registers", "instructions_per_byte"):
            if abs(new.get(key, 0) - old.get(key, 0)) > TOLERANCE * old.get(key, 0):
                yield f"{name}: {new.get(key, 'no')} {key.replace('_', ' ')} (before: {old.get(key, 'none')})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    now = measure(arguments.build.resolve(), arguments.jobs)
    if arguments.renew:
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(resources)}" for name, resources in now.items())
        FILE.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
        print(f"{FILE.name}: {len(now)} kernels")
        return
    found = list(differences(json.loads(FILE.read_text(encoding="utf-8")), now))
    print(*(found or [f"{len(now)} kernels need what {FILE.name} says"]), sep="\n")
    sys.exit(bool(found))


main()
