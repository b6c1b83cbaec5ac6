# SPDX-License-Identifier: Apache-2.0
"""Scaling studies: runs that differ in their number of ranks.

The first iteration of each run warms up and is left out, as are those that not all runs of a study have. Efficiency is
the throughput per rank relative to the fewest ranks of the study: the same figure for strong scaling (equal work) and
for weak scaling (equal work per rank).
"""
import itertools
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter

from report.captions import CAPTIONS
from report.data import (
    Group,
    NamedRun,
    differing_parameters,
    finite_points,
    load_runs,
    phase_table,
    short_names,
)
from report.glossary import glossary
from report.pages import Page, Picture, Table
from report.rows import plain
from report.step_time import draw_step_time
from report.style import COLOURS, MUTED, log_tokens, new_figure, render
from report.summary import phase_rows
from report.words import count_text
from taper_h5 import ReadError, Run

HEAD = (
    "study,ranks,threads,iterations,tokens of an iteration,iteration (s),generation (s),training (s),"
    "tokens/s,speed-up,efficiency"
)
MAY_DIFFER = ("Output/Directory", "Rollout/Prompts", "Rollout/Profile")


@dataclass(frozen=True)
class Size:
    """Medians over the iterations that count; throughput is all their tokens by all their seconds."""

    ranks: int
    threads: str  # of a rank; "-" in older files
    iterations: int
    tokens: float  # prompts and responses of an iteration
    step_s: float
    gen_s: float
    train_s: float  # updates of policy and critic
    tokens_per_s: float


@dataclass(frozen=True)
class Study:
    """The runs of one directory by their number of ranks, each with the iterations that count."""

    label: str
    colour: str
    runs: list[NamedRun]  # named after their ranks
    sizes: list[Size]

    def speed_ups(self) -> np.ndarray:
        return np.array([size.tokens_per_s / self.sizes[0].tokens_per_s for size in self.sizes])

    def ranks(self) -> np.ndarray:
        return np.array([size.ranks for size in self.sizes])

    def efficiencies(self) -> np.ndarray:
        return self.speed_ups() * self.ranks()[0] / self.ranks()


def only_steps(run: Run, steps: set[int]) -> Run:
    """The run as if it had these iterations alone."""
    rows, timed = np.isin(run.steps, list(steps)), np.isin(run.timing_steps, list(steps))
    return replace(
        run,
        steps=run.steps[rows],
        metrics={name: values[rows] for name, values in run.metrics.items()},
        timing_steps=run.timing_steps[timed],
        timing={name: values[timed] for name, values in run.timing.items()},
    )


def ranks_of(run: Run) -> int:
    ranks = run.facts.get("machine/ranks", "")
    if not ranks.isdigit():
        raise ReadError(f"{run.path} does not say on how many ranks it ran; run it again")
    return int(ranks)


def _seconds(run: Run) -> float:
    """Of all iterations, without checkpoints: a short run has one at its end, a real one rarely."""
    saving = run.metrics.get("timing_s/save_checkpoint", np.zeros(len(run.steps)))
    return float(np.nansum(run.metrics["timing_s/step"]) - np.nansum(saving))


def measure(run: Run) -> Size:
    def median(*metrics: str) -> float:
        """Of their sum; what an iteration lacks is 0: a critic may learn alone at first."""
        parts = [np.nan_to_num(run.metrics.get(name, np.zeros(len(run.steps)))) for name in metrics]
        return float(np.median(sum(parts)))

    ranks = ranks_of(run)
    return Size(
        ranks,
        run.facts.get("machine/threads_per_rank", "-"),
        len(run.steps),
        median("perf/total_num_tokens"),
        median("timing_s/step"),
        median("timing_s/gen"),
        median("timing_s/update_actor", "timing_s/update_critic"),
        float(np.nansum(run.metrics["perf/total_num_tokens"]) / _seconds(run)),
    )


def studies_of(run_directories: list[Path]) -> tuple[list[Study], list[str]]:
    """One for each directory that holds runs, and what is to be said of runs that are not as they should be."""
    found: dict[Path, list[NamedRun]] = {}
    problems = []
    for directory in run_directories:
        try:
            [named] = load_runs([directory])
            ranks_of(named.run)
            if len(finite_points(named.run, "timing_s/step")[1]) < 2:
                raise ReadError(
                    f"{named.run.path} has less than two iterations (the first one warms up)"
                )
        except ReadError as error:
            problems.append(f"left out: {error}")
            continue
        if named.status.get("state", "completed") != "completed":
            problems.append(f"{directory} is not completed (status.json: {named.status['state']})")
        found.setdefault(named.directory.resolve().parent, []).append(named)
    labels = short_names(list(found)) if found else []
    studies = []
    for label, runs, colour in zip(labels, found.values(), itertools.cycle(COLOURS)):
        runs.sort(key=lambda named: ranks_of(named.run))
        common = set.intersection(*(set(named.run.steps[1:].tolist()) for named in runs))
        if not common:
            problems.append(f"left out: {label} (its runs have no iteration in common)")
            continue
        prefix = f"{label}, " if len(found) > 1 else ""
        kept = [
            replace(named, name=prefix + name, run=only_steps(named.run, common))
            for name, named in zip(_names(runs), runs)
        ]
        studies.append(Study(label, colour, kept, [measure(named.run) for named in kept]))
        problems += [f"{label}: {problem}" for problem in _differences(runs, studies[-1])]
    return studies, problems


def _names(runs: list[NamedRun]) -> list[str]:
    """By their ranks, and their directories where ranks are equal."""
    ranks = [ranks_of(named.run) for named in runs]
    return [
        count_text(n, "rank") + (f" ({named.name})" if ranks.count(n) > 1 else "")
        for n, named in zip(ranks, runs)
    ]


def _differences(runs: list[NamedRun], study: Study) -> list[str]:
    """Why these runs should not be compared."""
    problems = []
    count = study.sizes[0].iterations
    if any(len(named.run.steps) - 1 > count for named in runs):
        problems.append(f"compared over the {count} iterations that all runs have")
    if len({size.threads for size in study.sizes}) > 1:
        problems.append("ranks have different numbers of threads")
    other = [name for name in differing_parameters(runs) if name not in MAY_DIFFER]
    if other:
        problems.append(f"parameters differ ({', '.join(other)})")
    return problems


def scaling_rows(studies: list[Study]) -> list[list[str]]:
    """Head and rows as text, a row for each run."""
    rows = [HEAD.split(",")]
    for study in studies:
        for size, speed_up, efficiency in zip(
            study.sizes, study.speed_ups(), study.efficiencies()
        ):
            figures = (size.tokens, size.step_s, size.gen_s, size.train_s, size.tokens_per_s)
            rows.append(
                [study.label, str(size.ranks), size.threads, str(size.iterations), *map(plain, figures)]
                + [f"{speed_up:.2f}", f"{100 * efficiency:.0f} %"]
            )
    return rows


def console_table(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]


def draw_scaling(studies: list[Study]) -> Figure:
    figure, (speed, efficiency) = new_figure("Scaling", [3.4], columns=2)
    for study in studies:
        ranks, rates = study.ranks(), [size.tokens_per_s for size in study.sizes]
        ideal = rates[0] * ranks / ranks[0]
        label = "ideal" if study is studies[0] else None
        speed.plot(ranks, ideal, color=MUTED, linestyle="--", linewidth=1.1, label=label)
        line = {"color": study.colour, "marker": "o", "markersize": 5}
        speed.plot(ranks, rates, label=study.label, **line)
        efficiency.plot(ranks, study.efficiencies(), **line)
    speed.set_yscale("log")
    log_tokens(speed.yaxis)
    speed.set_ylabel("tokens/s, all ranks")
    speed.legend(loc="upper left")
    efficiency.axhline(1.0, color=MUTED, linestyle="--", linewidth=1.1)
    efficiency.set_ylim(0, 1.08 * max(1.0, *(e for s in studies for e in s.efficiencies())))
    efficiency.yaxis.set_major_formatter(PercentFormatter(1.0))
    efficiency.set_ylabel("efficiency")
    for ax in (speed, efficiency):
        _ranks_axis(ax, studies)
    return figure


def _ranks_axis(ax: Axes, studies: list[Study]) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    ticks = sorted({size.ranks for study in studies for size in study.sizes})
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set_xlabel("ranks")


def scaling_page(studies: list[Study], problems: list[str], more: list[Table]) -> Page:
    """`more`: tables below all others."""
    groups = [Group(study.label, study.colour, study.runs) for study in studies]
    runs = [named for study in studies for named in study.runs]
    drawn = {"scaling": draw_scaling(studies), "step_time": draw_step_time(groups)}
    headings = {"scaling": "Scaling", "step_time": "Time by phase"}
    pictures = [
        Picture(f"{name}.png", headings[name], render(figure), CAPTIONS[name])
        for name, figure in drawn.items()
        if figure is not None
    ]
    tables = [Table("Summary", scaling_rows(studies))]
    tables += [Table(f"Time by phase, {named.name}", phase_rows(named)) for named in runs]
    lead = (
        "Without the first iteration of each run, which warms up. Times of the summary are medians over iterations, "
        "tokens/s all tokens by all seconds without checkpoints; times by phase are sums and means."
    )
    return Page(
        f"Scaling, {', '.join(study.label for study in studies)}",
        " ".join([lead, *(f"Warning: {problem}." for problem in problems)]),
        tables + more,
        pictures,
        {named.name: named.run.config for named in runs},
        glossary(list(drawn), [*{phase: 0 for named in runs for phase in phase_table(named.run)[1]}]),
    )


def scaling_figures(studies: list[Study]) -> dict[str, list[dict[str, float]]]:
    """For scripts: study -> its sizes."""
    return {
        study.label: [
            asdict(size) | {"speed_up": float(speed_up), "efficiency": float(efficiency)}
            for size, speed_up, efficiency in zip(
                study.sizes, study.speed_ups(), study.efficiencies()
            )
        ]
        for study in studies
    }
