# SPDX-License-Identifier: Apache-2.0
"""The results of a run for notebooks and scripts: one object for its directory.

    import sys; sys.path.append("PREFIX/share/taper/tools")  # or tools/ of the source tree
    from taper_results import open_run

    run = open_run("out")
    run.steps, run["critic/score/mean"]          # arrays of iterations and values
    run.frame(["critic/score/mean", "actor/*"])  # a pandas.DataFrame, where pandas is installed
    for rollouts in run.rollouts(last=3): ...    # of the last three iterations, one file at a time
    for sample in run.samples(iteration=40): ... # tokens, log-probs and rewards of each response
    run.layout_events()                          # changes of layout, predicted and measured

Needs h5py and numpy. A run may go on meanwhile: its files are whole at every moment; refresh() reads
what has come since. Bad files raise ReadError with the name of the file. What the names mean stands
in doc/results-schema.md and, metric by metric, in describe().
"""
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from taper_h5 import (
    FINISH_NAMES,
    Profile,
    ReadError,
    Rollouts,
    Run,
    read_profile,
    read_rollouts,
)

import numpy as np
from report.data import config_entries, directory_of, load_run, load_status, phase_table
from report.layouts import SWITCHES, column, layouts_of

if TYPE_CHECKING:
    import pandas

__all__ = [
    "LayoutEvent",
    "ReadError",
    "Results",
    "Rollouts",
    "Sample",
    "open_run",
    "read_profile",
]


@dataclass(frozen=True)
class Sample:
    """One response with its prompt."""

    iteration: int
    group: int  # which prompt of the iteration
    sample: int  # which response to it
    prompt: np.ndarray  # (prompt tokens) i32
    response: np.ndarray  # (response tokens) i32
    log_probs: np.ndarray  # (response tokens) f32, nat, at the rollout temperature
    rewards: dict[str, float]  # by component; NaN where it has none
    advantage: float
    finish: str  # "eos", "stop", "length" or "abort"


@dataclass(frozen=True)
class LayoutEvent:
    """A change that was carried out during a generation: of the layout, or of who has which sequence."""

    iteration: int
    at_s: float  # since the start of the generation
    before: str  # "1x2": degree 1, two replicas; "2+1+1": groups of these degrees
    after: str  # the same where sequences were only dealt out anew
    sequences: int  # running then
    time_s: float  # measured on rank 0, meeting included
    predicted_s: float
    saving_s: float  # expected, against staying


def open_run(path: str | Path) -> "Results":
    """The results in an output directory of `taper train`; its run.h5 or metrics.jsonl will do."""
    return Results(Path(path))


class Results:
    """One run. Arrays are of rows, one an iteration (`steps`), NaN where nothing was measured."""

    def __init__(self, path: Path) -> None:
        self.directory = directory_of(path)
        self.refresh()

    def refresh(self) -> None:
        """Reads run.h5 anew (metrics.jsonl where it is missing)."""
        self.data: Run = load_run(self.directory)

    # --- metrics

    @property
    def steps(self) -> np.ndarray:
        """(rows) i64: the iteration of each row."""
        return self.data.steps

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """Name -> (rows) f64."""
        return self.data.metrics

    def __getitem__(self, name: str) -> np.ndarray:
        """(rows) f64 of a metric; KeyError with the names that are like it."""
        if name in self.metrics:
            return self.metrics[name]
        near = [known for known in self.metrics if name.split("/")[-1] in known]
        hint = f"; there are {', '.join(sorted(near)[:5])}" if near else ""
        raise KeyError(f"{self.directory} has no metric {name}{hint}")

    def __contains__(self, name: str) -> bool:
        return name in self.metrics

    def names(self, *patterns: str) -> list[str]:
        """Metrics that fit any of the patterns ("actor/*"), sorted; all without a pattern."""
        return sorted(
            name
            for name in self.metrics
            if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
        )

    def describe(self, name: str) -> str:
        """ "actor/entropy [nat]", as run.h5 has it; no unit where only metrics.jsonl is there."""
        unit = self.data.units.get(f"/metrics/{name}", "")
        return f"{name} [{unit}]" if unit else name

    def frame(self, patterns: Iterable[str] = ()) -> "pandas.DataFrame":
        """Metrics as columns over iterations. Needs pandas."""
        import pandas

        columns = {name: self.metrics[name] for name in self.names(*patterns)}
        return pandas.DataFrame(columns, index=pandas.Index(self.steps, name="step"))

    def phases(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """(iterations (rows), phase -> (rows, 3) seconds: minimum, mean, maximum over ranks)."""
        return phase_table(self.data)

    # --- what it was

    @property
    def config(self) -> dict[str, str]:
        """Parameters by path: {"Optimizer/Learning Rate": "0.0002", ...}."""
        return config_entries(self.data.config)

    @property
    def facts(self) -> dict[str, str]:
        """ "created", "git_hash", "build/compiler", "machine/host", "machine/ranks", ..."""
        return self.data.facts

    def status(self) -> dict[str, object]:
        """status.json as it is now; empty where there is none."""
        return load_status(self.directory)

    # --- rollouts

    def rollout_files(self) -> dict[int, Path]:
        """Iteration -> file, ascending."""
        files = (self.directory / "rollouts").glob("iter_*.h5")
        found = {int(path.stem.removeprefix("iter_")): path for path in files}
        return dict(sorted(found.items()))

    def rollouts(self, iterations: Iterable[int] = (), last: int = 0) -> Iterator[Rollouts]:
        """The rollouts of these iterations, of the last so many, or of all; one file at a time."""
        files = self.rollout_files()
        iterations = list(iterations)
        for iteration in iterations:
            if iteration not in files:
                raise ReadError(
                    f"{self.directory}/rollouts has no iteration {iteration} (it has {_span(files)})"
                )
        wanted = iterations or (list(files)[-last:] if last else list(files))
        for iteration in wanted:
            yield read_rollouts(files[iteration])

    def samples(self, iteration: int) -> Iterator[Sample]:
        """The responses of an iteration, in the order of (group, sample)."""
        for rollouts in self.rollouts([iteration]):
            for i, tokens in enumerate(rollouts.tokens):
                prompt = int(rollouts.prompt_length[i])
                yield Sample(
                    rollouts.iteration,
                    int(rollouts.group[i]),
                    int(rollouts.sample[i]),
                    tokens[:prompt],
                    tokens[prompt:],
                    rollouts.log_probs[i],
                    dict(zip(rollouts.reward_names, rollouts.rewards[i].tolist())),
                    float(rollouts.advantage[i]),
                    FINISH_NAMES[rollouts.finish[i]],
                )

    # --- layouts

    def records(self, table: str) -> dict[str, np.ndarray]:
        """Columns of a table of records, "step" among them: "layout_consultations", ...

        Layouts are texts there: "1x2" (degree 1, two replicas), "2+1+1".
        """
        return self.data.records.get(table, {"step": np.empty(0, np.int64)})

    def layout_events(self) -> list[LayoutEvent]:
        """Changes of layout in their order; empty in runs of one fixed layout."""
        names = ("step", "at_s", "sequences", "time_s", "predicted_s", "saving_mean_s")
        columns = [layouts_of(self.data, SWITCHES, name) for name in ("from", "to")]
        columns += [column(self.data, SWITCHES, name) for name in names]
        done = column(self.data, SWITCHES, "done") == 1
        return [
            LayoutEvent(
                int(step),
                float(at),
                str(before),
                str(after),
                int(np.nan_to_num(sequences)),
                float(time),
                float(predicted),
                float(saving),
            )
            for before, after, step, at, sequences, time, predicted, saving in zip(
                *(values[done] for values in columns)
            )
        ]

    def profile(self) -> Profile:
        """The latency profile that the run used, from the path in its parameters."""
        named = self.config.get("Rollout/Profile", "").strip("'\"")
        if not named:
            raise ReadError(f"{self.directory} has used no profile (Rollout/Profile is empty)")
        return read_profile(named)


def _span(files: dict[int, Path]) -> str:
    return f"{min(files)} to {max(files)}" if files else "none"
