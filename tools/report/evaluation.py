# SPDX-License-Identifier: Apache-2.0
"""The score of held-out prompts: its points, its picture."""
import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from report.data import Group, all_runs, config_entries, finite_points, is_single
from report.style import COLOURS, iteration_axis, legend_below, new_figure
from report.words import count_text
from taper_h5 import Run

MEAN, FINAL = "val/score/mean", "val/score/final"


def evaluation_points(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """(iterations trained before, score) of each evaluation, that of the final weights included.

    The log has an evaluation in the iteration that begins with these weights; the final one stands
    in the iteration that has made them.
    """
    points = {int(step): value for step, value in zip(*finite_points(run, FINAL))}
    points |= {int(step) - 1: value for step, value in zip(*finite_points(run, MEAN))}
    steps = sorted(points)
    return np.array(steps, np.int64), np.array([points[step] for step in steps], np.float64)


def when(trained: int) -> str:
    """Which weights an evaluation was of."""
    return "before training" if trained == 0 else f"after {count_text(trained, 'iteration')}"


def how_sampled(runs: list[Run]) -> str:
    """" (greedy)" and the like, of the responses to held-out prompts.

    "" where it is not known, or not the same of all runs that have evaluations.
    """
    ways = {_how_sampled(run) for run in runs if len(evaluation_points(run)[1])}
    return ways.pop() if len(ways) == 1 else ""


def _how_sampled(run: Run) -> str:
    try:
        temperature = float(config_entries(run.config).get("Evaluation/Temperature", "nan"))
    except ValueError:
        return ""
    if math.isnan(temperature):
        return ""
    return f" (temperature {temperature:g})" if temperature > 0 else " (greedy)"


def has_final(run: Run) -> bool:
    """Whether the weights behind the last iteration have been evaluated.

    A finished run that was given more iterations keeps the final evaluation of its former end.
    """
    steps, _ = finite_points(run, FINAL)
    return len(steps) > 0 and int(steps[-1]) == int(run.steps[-1])


def final_score(run: Run) -> float:
    """Of the weights behind the last iteration; NaN where they have not been evaluated."""
    return float(finite_points(run, FINAL)[1][-1]) if has_final(run) else math.nan


def evaluation_gain(run: Run) -> float:
    """Last less first score; NaN with fewer than two."""
    values = evaluation_points(run)[1]
    return float(values[-1] - values[0]) if len(values) > 1 else math.nan


def draw_curve(
    ax: Axes, group: Group, colour: str, label: str = "", each: bool = True
) -> None:
    """The mean over seeds at the points that all have, with each: faintly those of every seed."""
    curves = [dict(zip(*evaluation_points(run))) for run in group.runs]
    curves = [curve for curve in curves if curve]
    if not curves:
        return
    if len(curves) > 1 and each:
        for curve in curves:
            x = np.array(sorted(curve))
            ax.plot(x, [curve[k] for k in x], color=colour, alpha=0.35, linewidth=0.8)
    shared = np.array(sorted(set.intersection(*(set(curve) for curve in curves))), np.int64)
    if len(shared) == 0:
        return
    means = [float(np.mean([curve[k] for curve in curves])) for k in shared]
    style = {"markersize": 6, "markeredgecolor": "white", "linewidth": 1.2, "zorder": 5}
    ax.plot(shared, means, "D:", color=colour, label=label or None, **style)


def draw_evaluation(groups: list[Group]) -> Figure | None:
    if not any(len(evaluation_points(run)[1]) for run in all_runs(groups)):
        return None
    figure, (ax,) = new_figure("Evaluation on held-out prompts", [3.2])
    if is_single(groups):
        run = groups[0].runs[0]
        draw_curve(ax, groups[0], COLOURS[1])
        ax.set_title(_subtitle(run))
    else:
        for group in groups:
            draw_curve(ax, group, group.colour, group.label)
        legend_below(figure, ax)
    ax.set_ylabel(f"mean score of a response{how_sampled(all_runs(groups))}")
    iteration_axis(ax)
    ax.set_xlabel("iterations trained")
    return figure


def _subtitle(run: Run) -> str:
    steps, values = evaluation_points(run)
    if len(values) == 1:
        return f"{when(steps[0])} {values[0]:.3f}"
    last = "final weights" if has_final(run) else when(steps[-1])
    return f"{when(steps[0])} {values[0]:.3f}, {last} {values[-1]:.3f}, difference {evaluation_gain(run):+.3f}"
