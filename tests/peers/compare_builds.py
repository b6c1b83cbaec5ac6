#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds two builds of Taper against each other: the same commands with the same seeds must leave the same files, byte
for byte, but for what is measured (times, memory, layouts that were chosen by them).

    python compare_builds.py OLD_TAPER NEW_TAPER [--work DIR] [--case NAME ...] [--renamed OLD=NEW ...]

OLD_TAPER and NEW_TAPER are executables; commands run in the source tree that this script is in. Needs h5py, numpy and
mpiexec. Ends with 1 if anything differs. `--renamed policy=planner` takes OLD in paths of HDF5 objects and in
names of metrics of the first build for NEW in the second; checksums of files that hold such names are then not
compared. Lines of printed texts that differ are listed by number."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy

ROOT = Path(__file__).resolve().parents[2]
# Paths in files, and keys of metrics, that hold what was measured or chosen by measurements.
MEASURED = re.compile(r"^/?(metrics/)?(timing|timing_s|perf|adaptive|machine|layout_\w+|build)(/|@|$)|/latency_s|"
                      r"@(created|git_hash|DIMENSION_LIST|REFERENCE_LIST)$")
# In runs whose layout changes by measured times, also where tokens were produced, and what the planner has learned.
CHOSEN = re.compile(r"^/(policy|planner|samples/layout|layout\w*)(/|@|$)|^files/state.h5/")
SMALL = ["Training/Iterations=3", "Rollout/Prompts=4", "Rollout/Samples Per Prompt=4", "Rollout/Max New Tokens=96",
         "Evaluation/Every=2", "Evaluation/Prompts=8", "Checkpoint/Every=2", "Checkpoint/Keep=3"]


def sets(values):
    return [word for value in values for word in ("--set", value)]


class Build:
    """One executable, and the folder that its results go to."""

    def __init__(self, taper, work):
        self.taper, self.work = str(Path(taper).resolve()), work
        work.mkdir(parents=True)

    def run(self, name, ranks, *arguments):
        """The results of both builds have one name while they are written, which they repeat."""
        folder = self.work.parent / "now"
        words = [str(a).replace("@", str(folder)).replace("%", str(self.work.parent)) for a in arguments]
        if (self.work / name).exists():
            (self.work / name).rename(folder)
        folder.mkdir(exist_ok=True)
        launcher = ["mpiexec", "-n", str(ranks)] if ranks else []
        environment = os.environ | {"OMP_NUM_THREADS": "1", "KOKKOS_DISABLE_WARNINGS": "1", "OMP_PROC_BIND": "false"}
        run = subprocess.run([*launcher, self.taper, *words], cwd=ROOT, env=environment, capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, check=False)
        if run.returncode != 0:
            sys.exit(f"{name}: {' '.join(words)} ended with {run.returncode}\n{run.stdout}{run.stderr}")
        folder.rename(self.work / name)
        return run.stdout

    def keep(self, name, *arguments, ranks=0):
        """What a command prints is a result, too."""
        text = self.run(name, ranks, *arguments)
        (self.work / name / "stdout.txt").write_text(text, encoding="utf-8")


def train(name, ranks, run_file="data/quickstart.yaml", more=()):
    return name, lambda b: b.run(name, ranks, "train", run_file, *sets([*SMALL, *more, "Output/Directory=@/run"]))


def printed(name, *arguments):
    return name, lambda b: b.keep(name, *arguments)


def cases():
    yield from (train(f"train-{n}", n) for n in (1, 2, 4))
    yield train("train-tp2", 2, more=["Training/Tensor Parallel=2", "Rollout/Tensor Parallel=2"])
    yield train("train-2x2", 4, more=["Training/Tensor Parallel=2", "Rollout/Tensor Parallel=2", "Model/Weight Type=f32"])
    for ranks in (2, 4):
        yield train(f"adaptive-{ranks}", ranks,
                    more=["Rollout/Mode=adaptive", f"Rollout/Profile=%/profile-{ranks}.h5", "Rollout/Max New Tokens=400"])
    yield from (train(f"ppo-{n}", n, "data/ppo.yaml") for n in (2, 4))
    # A reward model, and the run in which it judges.
    yield "reward-model-2", lambda b: b.run("reward-model-2", 2, "reward-model", "data/reward_model.yaml", *sets(
        ["Training/Steps=4", "Training/Batch Pairs=8", "Data/Files=[%/preferences.jsonl]", "Validation/Every=2",
         "Data/Validation Files=[%/preferences.jsonl]", "Output/Directory=@/model", "Output/Run Directory=@/run"]))
    yield train("preferred-2", 2, "data/preferred.yaml", ["Rewards/preferred/Directory=%/recorded/reward-model-2/model"])
    yield train("rewards-2", 2, more=["Rewards/judge/Kind=command", "Rewards/judge/Command=[python3, data/reward_worker.py]",
                                      "Rewards/answer/Kind=task", "Algorithm/KL Coefficient=0.01",
                                      "Algorithm/Dynamic Sampling=true", "Rollout/Top P=0.9"])
    yield "sft-2", lambda b: b.run("sft-2", 2, "sft", "data/sft.yaml", *sets(
        ["Training/Steps=3", "Training/Batch Tokens=2048", "Output/Directory=@/model", "Output/Run Directory=@/run",
         "Model/Directory=data/model"]))
    for ranks, layout in ((1, "1x1"), (2, "2x1"), (4, "2+1+1")):
        name = f"generate-{ranks}"
        yield name, lambda b, name=name, ranks=ranks, layout=layout: b.run(
            name, ranks, "generate", "--model", "data/model", "--prompts", "%/prompts.jsonl", "--output", "@/out.jsonl",
            "--layout", layout, "--samples", 3, "--max-new-tokens", 80, "--top-k", 20)
    yield "score-2", lambda b: b.run("score-2", 2, "score", "--model", "data/model", "--input",
                                     b.work / "generate-1/out.jsonl", "--output", "@/scores.jsonl")
    yield "eval-2", lambda b: b.keep("eval-2", "eval", "--model", "data/model", "--task", "sum", "--count", 12,
                                     "--samples", 2, "--temperature", 1, "--max-new-tokens", 80, "--output",
                                     "@/eval.json", ranks=2)
    yield printed("replay-run", "replay", "--profile", "%/profile-2.h5", "--run", "%/recorded/train-2/run",
                  "--output", "@/account.jsonl")
    yield printed("replay-laws", "replay", "--profile", "%/profile-4.h5", "--law", "all", "--seeds", 1, "--iterations", 2,
                  "--sequences", 32, "--output", "@/account.jsonl")
    yield printed("simulate", "simulate", "data/simulate/two-cores.yaml", "--output", "@/rows.jsonl")
    yield printed("inspect", "inspect", "%/recorded/train-2/run")
    yield printed("validate", "inspect", "--validate", "%/recorded/train-2/run")
    for command in ("train", "sft", "reward-model", "simulate"):
        yield printed(f"defaults-{command}", command, "--dump-default")
    for command in ("train", "sft", "reward-model", "generate", "score", "eval", "profile", "inspect", "replay", "simulate"):
        yield printed(f"help-{command}", command, "--help")


def renamed(path, names):
    return "/".join(names.get(part, part) for part in path.split("/"))


def flat(prefix, value):
    """A JSON value as paths and leaves."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from flat(f"{prefix}/{key}", entry)
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            yield from flat(f"{prefix}/{i}", entry)
    else:
        yield prefix, value


def json_content(text):
    lines = [json.loads(line) for line in text.splitlines()] if "\n{" in text else [json.loads(text)]
    return dict(leaf for i, line in enumerate(lines) for leaf in flat(f"line {i + 1}", line))


def h5_content(path):
    content = {}

    def add(name, item):
        where = "/" + name
        for key, value in item.attrs.items():
            content[f"{where}@{key}"] = numpy.asarray(value).tobytes()
        if isinstance(item, h5py.Dataset):
            data = item[()]
            content[where] = (str(item.dtype), item.shape, data if isinstance(data, bytes) else numpy.asarray(data).tobytes())

    with h5py.File(path) as file:
        add("", file)
        file.visititems(add)
    return content


def content_of(path):
    """Path in the file -> value; a file of no known kind is one value."""
    if path.suffix == ".h5":
        return h5_content(path)
    if path.suffix in (".json", ".jsonl"):
        return json_content(path.read_text(encoding="utf-8"))
    if path.suffix == ".txt":
        return {f"line {i + 1}": line for i, line in enumerate(path.read_text(encoding="utf-8").splitlines())}
    return {"": path.read_bytes()}


def is_measured(case, file, key, names):
    key = re.sub(r"^line \d+/", "", key)
    return bool(MEASURED.search(key)) or file.name == "status.json" or "reward_logs" in file.parts or \
        case.startswith("adaptive") and bool(CHOSEN.search(key)) or \
        bool(names) and bool(re.search(r"^files/.*state\.h5/", key))


def compare(case, old, new, names):
    """Lists what differs between two folders; counts what was compared."""
    def files(folder):
        return {p.relative_to(folder) for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")}

    different, equal = [], 0
    for file in sorted(files(old) | files(new)):
        if not ((old / file).exists() and (new / file).exists()):
            different.append(f"{file} is in one folder only")
            continue
        before = {renamed(key, names): value for key, value in content_of(old / file).items()}
        after = content_of(new / file)
        for key in sorted(set(before) | set(after)):
            if is_measured(case, file, key, names):
                continue
            if before.get(key) == after.get(key) or before.get(key) != before.get(key) and after.get(key) != after.get(key):
                equal += 1
            else:
                different.append(f"{file}:{key}")
    return different, equal


def prepare(build, work):
    """What both builds work on: profiles, prompts, preferences, a recorded run, and a reward model of it."""
    for ranks in (2, 4):
        build.run("profile", ranks, "profile", "--model", "data/model", "--output", f"%/profile-{ranks}.h5",
                  "--max-positions", 512, "--max-batch", 8, "--budget", 5)
    (work / "prompts.jsonl").write_text("".join(json.dumps({"prompt": f"{i} + {7 * i} =", "ground_truth": str(8 * i)}) + "\n"
                                                for i in range(9)), encoding="utf-8")
    with open(work / "preferences.jsonl", "w", encoding="utf-8") as file:
        subprocess.run([sys.executable, ROOT / "data/make_preferences.py", "--count", "64", "--seed", "1"], stdout=file, check=True)
    recorded = dict(cases())
    recorded["train-2"](build)
    recorded["reward-model-2"](build)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--work")
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--renamed", action="append", default=[])
    arguments = parser.parse_args()
    work = Path(arguments.work or tempfile.mkdtemp(prefix="compare-builds-")).resolve()
    if work.exists() and arguments.work:
        shutil.rmtree(work)
    work.mkdir(exist_ok=True)
    prepare(Build(arguments.old, work / "recorded"), work)
    old, new = Build(arguments.old, work / "old"), Build(arguments.new, work / "new")
    names = dict(pair.split("=", 1) for pair in arguments.renamed)
    passed = failed = 0
    for name, run in cases():
        if arguments.case and name not in arguments.case:
            continue
        run(old)
        run(new)
        different, equal = compare(name, old.work / name, new.work / name, names)
        print(f"{name}: {equal} values equal, {len(different)} different", flush=True)
        for line in different[:20]:
            print(f"    {line}")
        passed, failed = passed + (not different), failed + bool(different)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
