# SPDX-License-Identifier: Apache-2.0
"""One metric over iterations, for one run or many."""
import numpy as np
from matplotlib.axes import Axes

from report.data import (
    Group,
    all_runs,
    finite_points,
    moving_average,
    seed_statistics,
    smoothing_window,
)


def has_metric(groups: list[Group], metric: str) -> bool:
    return any(len(finite_points(run, metric)[1]) for run in all_runs(groups))


def draw_metric(
    ax: Axes,
    groups: list[Group],
    metric: str,
    smooth: bool = False,
    label: str = "",
    colour: str = "",
    style: str = "-",
) -> None:
    """A curve for each group, labeled with the group and with label after it.

    Seeds: each faintly, their mean, a band of one standard deviation. smooth: moving averages; of a
    single run the values stand faintly behind. colour: instead of that of the group.
    """
    for group in groups:
        paint = colour or group.colour
        if len(group.members) > 1:
            _draw_seeds(ax, group, metric, smooth, _name(group, groups, label), paint, style)
        else:
            _draw_run(ax, group, metric, smooth, _name(group, groups, label), paint, style)


def _name(group: Group, groups: list[Group], label: str) -> str:
    if len(groups) == 1 and len(group.members) == 1:
        return label
    return f"{group.label}, {label}" if label else group.label


def _draw_run(
    ax: Axes, group: Group, metric: str, smooth: bool, label: str, colour: str, style: str
) -> None:
    steps, values = finite_points(group.runs[0], metric)
    if len(values) == 0:
        return
    window = smoothing_window(len(values)) if smooth else 1
    mark = "o" if len(values) <= 12 else ""
    if window == 1:
        ax.plot(
            steps,
            values,
            style,
            color=colour,
            marker=mark,
            markersize=4,
            label=label or "each iteration",
        )
        return
    ax.plot(
        steps,
        values,
        color=colour,
        alpha=0.38,
        linewidth=1.0,
        label=None if label else "each iteration",
    )
    smoothed = f"{label}, smoothed over {window}" if label else f"mean of {window} iterations"
    ax.plot(steps, moving_average(values, window), style, color=colour, label=smoothed)


def _draw_seeds(
    ax: Axes, group: Group, metric: str, smooth: bool, label: str, colour: str, style: str
) -> None:
    steps, mean, spread = seed_statistics(group.runs, metric)
    if len(steps) == 0:
        return
    window = smoothing_window(len(steps)) if smooth else 1
    for run in group.runs:
        x, y = finite_points(run, metric)
        ax.plot(x, moving_average(y, window), style, color=colour, alpha=0.35, linewidth=0.8)
    mean, spread = moving_average(mean, window), moving_average(spread, window)
    ax.fill_between(steps, mean - spread, mean + spread, color=colour, alpha=0.18, linewidth=0)
    mark = "o" if len(steps) <= 12 else ""
    note = f", smoothed over {window}" if window > 1 else ""
    ax.plot(
        steps,
        mean,
        style,
        color=colour,
        marker=mark,
        markersize=4,
        label=f"{label}, mean ± std{note}",
    )


def length_quantiles(run_lengths: np.ndarray, quantiles: tuple[float, ...]) -> np.ndarray:
    """(rows, samples) with -1 where there is none -> (quantiles, rows), NaN for empty rows."""
    table = np.full((len(quantiles), len(run_lengths)), np.nan)
    for i, row in enumerate(run_lengths):
        valid = row[row >= 0]
        if len(valid):
            table[:, i] = np.quantile(valid, quantiles)
    return table
