# SPDX-License-Identifier: Apache-2.0
"""What benchmarks that start `taper` and print Markdown tables share."""

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def assignments(values):
    """Words of a command line that set parameters by name."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def print_row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def print_head(*titles):
    print_row(*titles)
    print("|---" * len(titles) + "|")


def band(numbers, form):
    """Their median and, in brackets, the least and the most, each in that format."""
    return f"{statistics.median(numbers):{form}} ({min(numbers):{form}} to {max(numbers):{form}})"


def bootstrap_interval(items, statistic, resamples=2000):
    """A 95 % interval of a statistic of the items; resamples of which it is None do not count."""
    draw = random.Random(1)
    drawn = (statistic(draw.choices(items, k=len(items))) for _ in range(resamples))
    values = sorted(value for value in drawn if value is not None)
    return values[int(0.025 * len(values))], values[int(0.975 * len(values))]


def processor():
    """Its name, and which instructions for bf16 it has."""
    words = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    words = {name.strip(): value.strip() for name, value in words.items()}
    kinds = {"avx2": "AVX2", "avx512vl": "AVX-512", "avx512_bf16": "AVX512-BF16", "amx_bf16": "AMX"}
    flags = words.get("flags", "").split()
    return f"{words.get('model name', 'unknown processor')} ({', '.join(kinds[k] for k in kinds if k in flags)})"


def output_of(command, environment=None):
    """What a command prints, with these variables beside ours; it ends this program if the command fails."""
    words = list(map(str, command))
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=os.environ | (environment or {}), check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with code {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def output_and_memory(command, environment=None):
    """What a command prints, and the most resident memory of its process in MiB; ends this program as output_of does."""
    words = list(map(str, command))
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(words, env=os.environ | (environment or {}), stdout=out, stderr=errors) as job:
            _, status, used = os.wait4(job.pid, 0)
            job.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        text = out.read()
        if job.returncode != 0:
            sys.exit(f"{' '.join(words)} ended with code {job.returncode}:\n{text[-3000:]}{errors.read()[-3000:]}")
    return text, used.ru_maxrss / 1024


def head_dim(config):
    """Of a model with this config.json."""
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def matrix_sizes(config):
    """How many numbers the matrices of all layers have, and that of the head, of a model with this config.json."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    attention = 2 * hidden * head_dim(config) * (config["num_attention_heads"] + config["num_key_value_heads"])
    return layers * (attention + 3 * hidden * config["intermediate_size"]), config["vocab_size"] * hidden


def reading_rate(build, environment):
    """Bytes per second, the most that a product of one row gets from memory, with weights beyond all caches."""
    command = [Path(build) / "tests/bench/bench_device", "--part", "products", "--scale", "4", "--rows", "1"]
    lines = "".join(output_of(command, environment) for _ in range(3))
    products = re.findall(r"(\d+) x (\d+) +rows +1 +([\d.]+) us", lines)
    return max(2 * float(k) * float(columns) / (float(time) * 1e-6) for k, columns, time in products)


def iterations(options, run_file, output, values, environment=None):
    """Metrics of each iteration of a run to `output`, with the parameters `values`; it ends this program if the run
    fails. `options` has the launcher and the executable."""
    words = assignments({"Output/Directory": output} | values)
    output_of([*options.launcher.split(), options.taper, "train", run_file, *words], environment)
    lines = [json.loads(line) for line in (Path(output) / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if "timing_s/gen" in line]


def iterations_without_learning(options, output, values):
    """iterations() of a run of data/quickstart.yaml that does not learn."""
    fixed = {
        "Model/Directory": ROOT / "data/model",
        "Optimizer/Learning Rate": "1e-12",
        "Evaluation/Every": 0,
        "Checkpoint/Every": 0,
    }
    return iterations(options, ROOT / "data/quickstart.yaml", output, fixed | values)
