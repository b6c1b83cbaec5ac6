# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured: time of generations and cost of switches."""
from collections import Counter

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from report.data import Group
from report.layouts import (
    Accounts,
    Switch,
    read_accounts,
    read_switches,
)
from report.rows import percent
from report.style import COLOURS, MUTED, from_zero, legend_below, new_figure

WIDE = 10.0  # times of generations that differ more need logarithmic axes
TARGETS = 5  # layouts told apart in the picture of switch costs


def draw_generation_time(groups: list[Group]) -> Figure | None:
    """Predicted against measured time of each generation, its error, and the cost of switches."""
    accounts = [(group, found) for group in groups if (found := _accounts_of(group))]
    switches = _switches_by_label(groups)
    if not accounts and not switches:
        return None
    panels = 2 * bool(accounts) + bool(switches)
    figure, axes = new_figure("Predicted against measured", [3.1], columns=panels)
    if accounts:
        _draw_times(axes[0], accounts)
        _draw_errors(axes[1], accounts)
    if switches:
        _draw_costs(axes[-1], switches)
    if accounts and len(groups) > 1:
        legend_below(figure, axes[0])
    elif switches:
        axes[-1].legend(loc="best", handletextpad=0.2, borderaxespad=0.3)
    return figure


def _accounts_of(group: Group) -> list[Accounts]:
    return [found for run in group.runs if (found := read_accounts(run)) is not None]


def _draw_times(ax: Axes, accounts: list[tuple[Group, list[Accounts]]]) -> None:
    for group, found in accounts:
        measured = np.concatenate([a.measured for a in found])
        predicted = np.concatenate([a.predicted for a in found])
        ax.plot(
            measured,
            predicted,
            "o",
            color=group.colour,
            markersize=5 if len(measured) <= 20 else 3.5,
            alpha=0.85 if len(measured) <= 20 else 0.5,
            markeredgewidth=0,
            label=group.label,
        )
    (x0, x1), (y0, y1) = ax.dataLim.intervalx, ax.dataLim.intervaly
    low, high = min(x0, y0), max(x1, y1)
    if wide := 0 < low < high / WIDE:
        ends = (low / 1.3, high * 1.3)
        ax.set_xscale("log")
        ax.set_yscale("log")
    else:
        room = 0.06 * (high - low) + 0.02 * high  # a single generation is a point
        ends = (max(low - room, 0.0), high + room)
    ax.plot(ends, ends, color=MUTED, linewidth=1.0, linestyle="--", zorder=1)
    ax.set_xlim(ends)
    ax.set_ylim(ends)
    if wide:
        _log_ticks(ax, ends)
    else:
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=5))
    ax.set_aspect("equal")
    ax.set_title("Time of a generation")
    ax.set_xlabel("measured (s)")
    ax.set_ylabel("predicted from the true lengths (s)")


def _draw_errors(ax: Axes, accounts: list[tuple[Group, list[Accounts]]]) -> None:
    errors = [np.concatenate([a.error for a in found]) for _, found in accounts]
    every = np.concatenate(errors)
    edges = error_edges(every)
    for (group, _), values in zip(accounts, errors):
        counts = np.histogram(values, edges)[0]
        ax.stairs(counts, edges, fill=True, color=group.colour, alpha=0.25)
        ax.stairs(counts, edges, color=group.colour, linewidth=1.5)
    ax.axvline(0.0, color=MUTED, linewidth=1.0, linestyle="--")
    from_zero(ax)
    size = np.abs(every)
    median, upper = percent(float(np.median(size))), percent(float(np.quantile(size, 0.9)))
    ax.set_title(f"Size of the error: median {median},\n90 % quantile {upper}")
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5))
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=None, symbol=" %"))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    ax.set_xlabel("(predicted - measured) / measured")
    ax.set_ylabel("generations")


def error_edges(errors: np.ndarray) -> np.ndarray:
    """Edges of bins of equal width over the errors and 0, one of them at 0."""
    widest = max(float(np.abs(errors).max()), 1e-4)
    bins = int(np.clip(np.sqrt(len(errors)) * 1.5, 5, 25))
    width = widest / bins
    first = np.floor(min(errors.min(), 0.0) / width + 1e-9)
    last = np.ceil(max(errors.max(), 0.0) / width - 1e-9)
    return width * np.arange(first - 1, last + 2)


def _switches_by_label(groups: list[Group]) -> dict[str, tuple[str, list[Switch]]]:
    """Label -> colour, switches that were carried out: by target of one run, else by group."""
    several = len(groups) > 1
    found: dict[str, list[Switch]] = {}
    colours: dict[str, str] = {}
    for group in groups:
        for run in group.runs:
            made = [s for s in read_switches(run) if s.done and s.predicted > 0 and s.measured > 0]
            for switch in made:
                words = "repack" if switch.repack else f"to {switch.to}"
                label = group.label if several else words
                colours[label] = group.colour
                found.setdefault(label, []).append(switch)
    if several:
        return {label: (colours[label], made) for label, made in found.items()}
    common = [label for label, _ in Counter({k: len(v) for k, v in found.items()}).most_common()]
    if len(common) > TARGETS + 1:
        found["other"] = [switch for label in common[TARGETS:] for switch in found[label]]
        common = [*common[:TARGETS], "other"]
    return {label: (COLOURS[i], found[label]) for i, label in enumerate(common)}


def _draw_costs(ax: Axes, switches: dict[str, tuple[str, list[Switch]]]) -> None:
    predicted, measured = [], []
    for label, (colour, made) in switches.items():
        x = [1e3 * switch.measured for switch in made]
        y = [1e3 * switch.predicted for switch in made]
        mark = {"color": colour, "markeredgewidth": 0, "alpha": 0.7, "label": label}
        ax.plot(x, y, "o", markersize=4.5, **mark)
        measured, predicted = measured + x, predicted + y
    low, high = min(predicted + measured), max(predicted + measured)
    room = 1.4 if high > 4 * low else 2.5
    ends = (low / room, high * room)
    ax.plot(ends, ends, color=MUTED, linewidth=1.0, linestyle="--", zorder=1)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(ends)
    ax.set_ylim(ends)
    _log_ticks(ax, ends)
    ax.set_aspect("equal")
    ax.set_title("Cost of a switch")
    ax.set_xlabel("measured (ms)")
    ax.set_ylabel("predicted (ms)")


def _log_ticks(ax: Axes, ends: tuple[float, float]) -> None:
    """Plain numbers on both logarithmic axes, which reach from one end to the other."""
    subs = (1.0, 2.0, 5.0) if ends[1] < 100 * ends[0] else (1.0,)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
