# SPDX-License-Identifier: Apache-2.0
"""Runs of a report: found, named, and put together where they are seeds of one configuration."""
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taper_h5 import ReadError, Run, format_of, read_metrics_jsonl, read_run

# What may differ between the seeds of one configuration: keys named after them, and the outputs.
SEED_KEY = re.compile(r"(^|/)[^/]*seed[^/]*$|(^|/)output/", re.IGNORECASE)


@dataclass(frozen=True)
class NamedRun:
    name: str
    directory: Path
    run: Run
    status: dict[str, object]  # top level of status.json, empty where there is none


@dataclass(frozen=True)
class Group:
    """Runs drawn in one colour: one run, or several seeds of one configuration."""

    label: str
    colour: str
    members: list[NamedRun]

    @property
    def runs(self) -> list[Run]:
        return [member.run for member in self.members]


def all_runs(groups: list[Group]) -> list[Run]:
    return [run for group in groups for run in group.runs]


def is_single(groups: list[Group]) -> bool:
    """One run, without seeds and without others to compare it with."""
    return len(groups) == 1 and len(groups[0].members) == 1


def load_runs(arguments: list[Path]) -> list[NamedRun]:
    """Loads each RUN_DIR (or its run.h5 or metrics.jsonl) under a name that tells it from the others."""
    directories = [directory_of(path) for path in arguments]
    names = short_names(directories)
    return [NamedRun(name, d, load_run(d), load_status(d)) for name, d in zip(names, directories)]


def directory_of(argument: Path) -> Path:
    if not argument.is_file():
        return argument
    if argument.name not in ("run.h5", "metrics.jsonl"):
        kind = format_of(argument)
        raise ReadError(
            f"{argument} is a file{f' of format {kind}' if kind else ''}, no run; name the output directory of a run "
            f"(or one profile.h5 alone){'' if kind else '; taper inspect tells what is wrong with a damaged one'}"
        )
    return argument.parent


def load_run(directory: Path) -> Run:
    """run.h5, or where that is missing the metrics of the log of record."""
    if not directory.is_dir():
        raise ReadError(
            f"{directory} cannot be read (no such directory); name the output directory of a run"
        )
    file, log = directory / "run.h5", directory / "metrics.jsonl"
    if not file.exists() and log.exists():
        print(
            f"warning: {file} is missing: only the metrics of {log.name} are reported",
            file=sys.stderr,
        )
        steps, metrics = read_metrics_jsonl(log)
        run = Run(path=log, steps=steps, metrics=metrics)
    elif not file.exists():
        raise ReadError(
            f"{directory} holds no run (neither run.h5 nor metrics.jsonl); name the output directory of one"
        )
    else:
        try:
            run = read_run(file)
        except ReadError as error:
            hint = f"; 'taper inspect --repair' rebuilds it from {log}" if log.exists() else ""
            raise ReadError(f"{error}{hint}") from error
    if len(run.steps) == 0:
        raise ReadError(
            f"{run.path} holds no iteration yet (the first one has not ended?); try again later"
        )
    return run


def load_status(directory: Path) -> dict[str, object]:
    path = directory / "status.json"
    if not path.exists():
        return {}
    try:
        status = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReadError(f"{path} cannot be read ({error})") from error
    if not isinstance(status, dict):
        raise ReadError(f"{path}: an object expected, not {type(status).__name__}")
    return status


def short_names(directories: list[Path]) -> list[str]:
    """The paths without what they share in front; the last part alone for a single one."""
    paths = [directory.resolve() for directory in directories]
    if len(set(paths)) == 1:
        return [path.name for path in paths]
    common = os.path.commonpath([path.parent for path in paths])
    return [os.path.relpath(path, common) for path in paths]


def config_entries(text: str) -> dict[str, str]:
    """Parameters by path ("Optimizer/Learning Rate") of YAML in block style.

    Nesting by indentation. Lines that are no "key: value" (lists, texts) belong to the key.
    """
    found: dict[str, str] = {}
    parents: list[tuple[int, str]] = []  # indentation, key
    last = ""
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "%", "---", "...")):
            continue
        indent = len(line) - len(line.lstrip())
        match = re.match(
            r"""(?:"([^"]*)"|'([^']*)'|([^\s"'\-\[{][^:]*?))\s*:(?:\s+(.*))?$""", stripped
        )
        if match is None:
            found[last] = f"{found.get(last, '')} {stripped}".strip()
            continue
        while parents and parents[-1][0] >= indent:
            parents.pop()
        key = next(part for part in match.groups()[:3] if part is not None)
        last = "/".join([name for _, name in parents] + [key])
        if match.group(4):
            found[last] = match.group(4).strip()
        else:
            parents.append((indent, key))
    return found


def essential_config(run: Run) -> dict[str, str]:
    """What makes a configuration, without seeds and places of output."""
    return {
        path: value
        for path, value in config_entries(run.config).items()
        if not SEED_KEY.search(path)
    }


def differing_parameters(runs: list[NamedRun]) -> dict[str, list[str]]:
    """Path -> value in each run ("-": not there), for parameters that are not the same in all."""
    configs = [config_entries(named.run.config) for named in runs]
    paths = sorted({path for config in configs for path in config})
    table = {path: [config.get(path, "-") for config in configs] for path in paths}
    return {path: values for path, values in table.items() if len(set(values)) > 1}


def group_runs(runs: list[NamedRun], colours: tuple[str, ...]) -> list[Group]:
    """One group for runs that differ only in seeds; runs of unknown configuration stand alone."""
    grouped: list[list[NamedRun]] = []
    for named in runs:
        config = essential_config(named.run)
        for members in grouped:
            if config and essential_config(members[0].run) == config:
                members.append(named)
                break
        else:
            grouped.append([named])
    labels = _group_labels(grouped)
    return [
        Group(labels[i], colours[i % len(colours)], members) for i, members in enumerate(grouped)
    ]


def _group_labels(grouped: list[list[NamedRun]]) -> list[str]:
    """The name of a single run; for seeds what sets their configuration apart, and their number."""
    varying = differing_parameters([members[0] for members in grouped])
    varying = {path: values for path, values in varying.items() if not SEED_KEY.search(path)}
    labels = []
    for i, members in enumerate(grouped):
        if len(members) == 1:
            labels.append(members[0].name)
            continue
        apart = ", ".join(
            f"{path.rsplit('/', 1)[-1]} {values[i]}" for path, values in varying.items()
        )
        told = (
            apart if 0 < len(apart) <= 40 else "" if len(grouped) == 1 else f"{members[0].name} ..."
        )
        count = f"{len(members)} {'seeds' if _seeds_differ(members) else 'runs'}"
        labels.append(f"{told} ({count})" if told else count)
    return labels


def _seeds_differ(members: list[NamedRun]) -> bool:
    """Whether no two of them have the same seeds: places of output may be all that differs."""
    seeds = {
        tuple((path, value) for path, value in config.items() if "seed" in path.lower())
        for config in (config_entries(named.run.config) for named in members)
    }
    return len(seeds) == len(members)


def is_fine_tuning(run: Run) -> bool:
    """Of taper sft or taper reward-model: counts steps, and begins with a row before the first."""
    return not any(name.startswith("critic/") for name in run.metrics) and any(
        name in run.metrics for name in ("train/loss", "val/loss")
    )


def trained_steps(run: Run) -> np.ndarray:
    """The iterations or steps that trained, ascending; step 0 of fine-tuning only evaluates."""
    return run.steps[run.steps > 0] if is_fine_tuning(run) else run.steps


def span_text(run: Run) -> str:
    """"iterations 1 to 80", "steps 1 to 12"."""
    steps, kind = trained_steps(run), "step" if is_fine_tuning(run) else "iteration"
    if len(steps) == 0:
        return "no step yet"
    return f"{kind} {steps[0]}" if len(steps) == 1 else f"{kind}s {steps[0]} to {steps[-1]}"


def finite_points(run: Run, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """(iterations, values) where a metric was measured; empty where it never was."""
    values = run.metrics.get(metric)
    if values is None:
        return np.empty(0, np.int64), np.empty(0)
    measured = np.isfinite(values)
    return run.steps[measured], values[measured]


def smoothing_window(count: int) -> int:
    """Points in a moving average over a curve of count points: odd, 1 is none."""
    return 2 * max(1, min(25, count // 16)) + 1 if count >= 8 else 1


def moving_average(values: np.ndarray, window: int) -> np.ndarray:
    """Mean over window points centered at each, fewer at the ends: (n) -> (n)."""
    half = window // 2
    sums = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    begin, end = np.maximum(at - half, 0), np.minimum(at + half + 1, len(values))
    return (sums[end] - sums[begin]) / (end - begin)


def seed_statistics(runs: list[Run], metric: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(iterations, mean, standard deviation) over runs, where all that have the metric have it."""
    points = [dict(zip(*finite_points(run, metric))) for run in runs]
    points = [values for values in points if values]
    if not points:
        return np.empty(0, np.int64), np.empty(0), np.empty(0)
    steps = sorted(set.intersection(*(set(values) for values in points)))
    table = np.array([[values[step] for step in steps] for values in points])
    spread = table.std(axis=0, ddof=1) if len(points) > 1 else np.zeros(len(steps))
    return np.array(steps, np.int64), table.mean(axis=0), spread


PHASE_ORDER = (
    "gen",
    "reward",
    "reward_model",
    "ref",
    "values",
    "old_log_prob",
    "adv",
    "update_critic",
    "update_actor",
    "wait",
    "publish",
    "output",
    "testing",
    "save_checkpoint",
)


def phase_table(run: Run) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(iterations, phase -> (rows, 3) seconds min, mean, max over ranks), in their usual order.

    From /timing, or without it from the metrics (one value thrice; "record" comes after the
    iteration). "other" is what the phases leave of timing_s/step.
    """
    prefix = "timing_s/"
    steps, table = run.timing_steps, run.timing
    if not table:
        seconds = {
            name.removeprefix(prefix): v
            for name, v in run.metrics.items()
            if name.startswith(prefix)
        }
        steps, table = run.steps, {
            name: _thrice(v) for name, v in seconds.items() if name not in ("step", "record")
        }
    table = {
        name: np.nan_to_num(values) for name, values in table.items() if "/" not in name
    }  # no parts of phases
    names = [name for name in PHASE_ORDER if name in table] + sorted(set(table) - set(PHASE_ORDER))
    phases = {name: table[name] for name in names if table[name].any()}
    whole = dict(zip(*finite_points(run, prefix + "step")))
    spent = sum((values[:, 1] for values in phases.values()), np.zeros(len(steps)))
    rest = np.maximum(np.array([whole.get(step, 0.0) for step in steps]) - spent, 0.0)
    if rest.sum() > 0.001 * spent.sum():
        phases["other"] = _thrice(rest)
    return steps, phases


def _thrice(seconds: np.ndarray) -> np.ndarray:
    return seconds[:, None].repeat(3, axis=1)
