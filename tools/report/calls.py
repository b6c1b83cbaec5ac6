# SPDX-License-Identifier: Apache-2.0
"""Which ranks worked at what, in two iterations of a run whose models are on different ranks."""
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from report.data import Group, NamedRun
from report.layouts import column
from report.style import COLOURS, INK, PHASE_COLOURS, new_figure, outside_legend

CALLS = "calls"
SHOWN = 2  # iterations
NARROW = 0.06  # of the time: bars too short for their name


def shown_iterations(steps: np.ndarray) -> list[int]:
    """Two in the middle of the run, where nothing is new any more; fewer if it has no more."""
    there = np.unique(steps)
    first = max(0, len(there) // 2 - 1)
    return [int(step) for step in there[first : first + SHOWN]]


def draw_calls(groups: list[Group]) -> Figure | None:
    """Of the first run that has such records: time to the right, ranks downwards."""
    runs = [n for group in groups for n in group.members if len(column(n.run, CALLS, "step"))]
    return _draw(runs[0]) if runs else None


def _draw(named: NamedRun) -> Figure:
    steps = column(named.run, CALLS, "step")
    iterations = shown_iterations(steps)
    ranks = int((column(named.run, CALLS, "first_rank") + column(named.run, CALLS, "ranks")).max())
    height = min(4.0, 1.0 + 0.35 * ranks)
    figure, axes = new_figure("Which ranks work at what", [height] * len(iterations))
    end = max(column(named.run, CALLS, "end_s")[np.isin(steps, iterations)])
    for ax, iteration in zip(axes, iterations):
        _draw_iteration(ax, named, iteration, end)
        ax.set_title(f"iteration {iteration}")
        ax.set_xlim(0, end)
        ax.set_ylim(ranks, 0)
        ax.set_yticks(np.arange(ranks) + 0.5, [str(rank) for rank in range(ranks)])
        ax.set_ylabel("rank")
        ax.grid(axis="y", visible=False)
    axes[-1].set_xlabel("seconds since the begin of the iteration")
    handles = dict(reversed(pair) for ax in axes for pair in zip(*ax.get_legend_handles_labels()))
    outside_legend(axes[0], handles=list(handles.values()), labels=list(handles))
    return figure


def _draw_iteration(ax: Axes, named: NamedRun, iteration: int, whole: float) -> None:
    rows = column(named.run, CALLS, "step") == iteration
    columns = ("call", "first_rank", "ranks", "start_s", "end_s")
    table = [column(named.run, CALLS, name)[rows].tolist() for name in columns]
    for number, (call, first, ranks, start, end) in enumerate(zip(*table)):
        colour = PHASE_COLOURS.get(call, COLOURS[number % len(COLOURS)])
        bar = {"left": start, "height": ranks - 0.15, "color": colour, "label": call}
        ax.barh(first + ranks / 2, end - start, edgecolor=INK, linewidth=0.4, **bar)
        if end - start > NARROW * whole:
            at = ((start + end) / 2, first + ranks / 2)
            ax.annotate(call, at, ha="center", va="center", fontsize=7.5, color="white")
