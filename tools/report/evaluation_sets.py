# SPDX-License-Identifier: Apache-2.0
"""Named held-out sets: the figures of each by iterations trained."""
import re

import numpy as np
from matplotlib.figure import Figure

from report.data import Group, all_runs, finite_points, is_single
from report.style import COLOURS, iteration_axis, legend_below, new_figure
from taper_h5 import Run

FIGURE = re.compile(r"val/([^/]+)/(avg|pass|maj)@(\d+)$")
STYLES = {"avg": "o-", "maj": "s--", "pass": "^:"}


def set_figures(run: Run) -> dict[str, list[str]]:
    """The figures ("avg@4") of each set that the run has evaluated, mean scores first."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    for name in run.metrics:
        if match := FIGURE.match(name):
            kind, k = match[2], int(match[3])
            found.setdefault(match[1], []).append((list(STYLES).index(kind), -k, f"{kind}@{k}"))
    return {name: [figure for *_, figure in sorted(figures)] for name, figures in sorted(found.items())}


def set_points(run: Run, name: str, figure: str) -> tuple[np.ndarray, np.ndarray]:
    """(iterations trained before, value) of each evaluation, that of the final weights included."""
    final = finite_points(run, f"val/{name}/final/{figure}")
    points = {int(step): value for step, value in zip(*final)}
    points |= {int(step) - 1: value for step, value in zip(*finite_points(run, f"val/{name}/{figure}"))}
    steps = sorted(points)
    return np.array(steps, np.int64), np.array([points[step] for step in steps], np.float64)


def draw_evaluation_sets(groups: list[Group]) -> Figure | None:
    """A panel for each set: of one run all figures but pass@j below the largest, of several avg@k."""
    names = sorted({name for run in all_runs(groups) for name in set_figures(run)})
    if not names:
        return None
    figure, axes = new_figure("Named held-out sets", [2.6] * len(names))
    for ax, name in zip(axes, names):
        for group in groups:
            for index, run in enumerate(group.runs):
                figures = set_figures(run).get(name, [])
                shown = [f for f in figures if f.startswith(("avg", "maj"))] + [f for f in figures if f.startswith("pass")][:1]
                for which, kind in enumerate(shown if is_single(groups) else shown[:1]):
                    colour = COLOURS[which] if is_single(groups) else group.colour
                    label = kind if is_single(groups) else group.label
                    style = STYLES[kind.split("@")[0]]
                    ax.plot(*set_points(run, name, kind), style, color=colour, markersize=4,
                            label=label if index == 0 else None)
        ax.set_title(name)
        ax.set_ylabel("share of 1")
        iteration_axis(ax)
    axes[-1].set_xlabel("iterations trained")
    if is_single(groups):
        for ax in axes:
            ax.legend(loc="best")
    else:
        legend_below(figure, axes[-1])
    return figure
