# SPDX-License-Identifier: Apache-2.0
"""Where the time of an iteration goes."""
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from report.data import (
    PHASE_ORDER,
    Group,
    NamedRun,
    moving_average,
    phase_table,
    smoothing_window,
)
from report.style import (
    COLOURS,
    INK,
    PHASE_COLOURS,
    from_zero,
    iteration_axis,
    new_figure,
    outside_legend,
)

RANKS = "fastest to slowest rank"
DENSE = 100  # iterations above which outlines would cover the areas
SPREADS = 4  # phases shown in the panel of differences between ranks
SEEN = 0.01  # of the height of the panel: narrower bands between ranks cannot be seen
SMALL = 0.005  # of the time of every run: such phases are one part of the bars


def draw_step_time(groups: list[Group]) -> Figure | None:
    """A run: its phases over iterations, how far its ranks are apart. Several: their means."""
    runs = [named for group in groups for named in group.members if phase_table(named.run)[1]]
    if not runs:
        return None
    return _draw_stack(runs[0]) if len(runs) == 1 else _draw_bars(runs)


def _draw_stack(named: NamedRun) -> Figure:
    steps, phases = phase_table(named.run)
    spreads = {name: values[:, 2] - values[:, 0] for name, values in phases.items()}
    widest = sorted(
        (name for name in spreads if spreads[name].any()), key=lambda name: -spreads[name].sum()
    )[:SPREADS]
    figure, axes = new_figure("Time of an iteration by phase", [3.8, 1.7] if widest else [3.8])
    total = sum(values[:, 1].sum() for values in phases.values())
    edges, base = _edges(steps), np.zeros(len(steps))
    for i, (name, values) in enumerate(phases.items()):
        colour = _colour(name, i)
        share = 100 * values[:, 1].sum() / total if total > 0 else 0.0
        axes[0].stairs(
            base + values[:, 1],
            edges,
            baseline=base,
            fill=True,
            color=colour,
            label=f"{name}  {share:.1f} %",
        )
        base = base + values[:, 1]
    if len(steps) <= DENSE:
        _draw_rank_bands(axes[0], edges, phases)
        axes[0].stairs(base, edges, baseline=None, color=INK, linewidth=0.9)
    from_zero(axes[0])
    axes[0].set_ylabel("seconds, mean over ranks")
    _legend_of_stack(axes[0])
    for name in widest:
        colour = _colour(name, list(phases).index(name))
        smoothed = moving_average(spreads[name], smoothing_window(len(steps)))
        if len(steps) <= DENSE:
            axes[1].stairs(
                spreads[name], edges, baseline=None, color=colour, linewidth=1.5, label=name
            )
        else:
            axes[1].plot(steps, smoothed, color=colour, label=name)
    if widest:
        axes[1].set_title("Slowest rank minus fastest rank")
        axes[1].set_ylabel("seconds")
        from_zero(axes[1])
        outside_legend(axes[1])
    for ax in axes:
        iteration_axis(ax, label=ax is axes[-1])
        ax.set_xlim(edges[0], edges[-1])
    return figure


def _draw_rank_bands(ax: Axes, edges: np.ndarray, phases: dict[str, np.ndarray]) -> None:
    """From the fastest to the slowest rank, hatched around the upper edge of each phase.

    Only of phases where it can be seen; the panel below has the others.
    """
    least = SEEN * sum(values[:, 1] for values in phases.values()).max()
    base, label = np.zeros(len(edges) - 1), RANKS
    for values in phases.values():
        if (values[:, 2] - values[:, 0] > least).any():
            low, high = base + values[:, 0], base + values[:, 2]
            ax.stairs(
                high,
                edges,
                baseline=low,
                fill=True,
                facecolor="none",
                edgecolor=INK,
                hatch="/////",
                alpha=0.35,
                linewidth=0,
                label=label,
            )
            label = None
        base = base + values[:, 1]


def _legend_of_stack(ax: Axes) -> None:
    """From top to bottom as the areas lie; the hatching in full ink, or it would not be seen."""
    handles, labels = ax.get_legend_handles_labels()
    dark = Patch(facecolor="white", edgecolor=INK, hatch="/////", linewidth=0.6)
    handles = [dark if text == RANKS else handle for handle, text in zip(handles, labels)]
    outside_legend(ax, handles=handles, labels=labels, reverse=True)


def _without_small(tables: list[dict[str, np.ndarray]]) -> list[dict[str, float]]:
    """Phase -> mean s of an iteration, of each run; what is small in all of them is "other"."""
    means = [{name: values[:, 1].mean() for name, values in table.items()} for table in tables]
    large = {
        name for table in means for name, s in table.items() if s >= SMALL * sum(table.values())
    }
    folded = []
    for table in means:
        kept = {name: s for name, s in table.items() if name in large and name != "other"}
        folded.append(kept | {"other": sum(table.values()) - sum(kept.values())})
    return folded


def _draw_bars(runs: list[NamedRun]) -> Figure:
    """One bar a run; the line at its end spans fastest to slowest rank, summed over phases."""
    tables = [phase_table(named.run)[1] for named in runs]
    means = _without_small(tables)
    shown = {name for table in means for name in table}
    order = (*PHASE_ORDER, *sorted(shown - {*PHASE_ORDER, "other"}))
    names = [name for name in order if name in shown]
    shares = [table["other"] / sum(table.values()) for table in means]
    if max(shares) > 1e-4:
        names.append("other")
    figure, (ax,) = new_figure(
        "Time of an iteration by phase, mean over iterations", [0.9 + 0.42 * len(runs)]
    )
    left = np.zeros(len(runs))
    for i, name in enumerate(names):
        width = np.array([table.get(name, 0.0) for table in means])
        label = name if name != "other" else f"other (up to {100 * max(shares):.2g} %)"
        edge = {"edgecolor": _colour(name, i), "linewidth": 0.5}  # keeps thin parts in sight
        bar = {"height": 0.68, "color": _colour(name, i), "label": label}
        ax.barh(range(len(runs)), width, left=left, **bar, **edge)
        left += width
    low = [sum(values[:, 0].mean() for values in table.values()) for table in tables]
    high = [sum(values[:, 2].mean() for values in table.values()) for table in tables]
    if max(b - a for a, b in zip(low, high)) > SEEN * max(high):
        ax.hlines(range(len(runs)), low, high, color=INK, linewidth=1.6, label=RANKS)
    for i, (end, slowest) in enumerate(zip(left, high)):
        ax.annotate(
            f"{end:.3g} s",
            (max(end, slowest), i),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
    ax.set_yticks(range(len(runs)), [named.name for named in runs])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlim(0, 1.12 * max(high))
    ax.set_xlabel("seconds per iteration, mean over ranks")
    outside_legend(ax)
    return figure


def _edges(steps: np.ndarray) -> np.ndarray:
    """Borders halfway between iterations: (n) -> (n + 1)."""
    middles = (steps[1:] + steps[:-1]) / 2
    return np.concatenate([[steps[0] - 0.5], middles, [steps[-1] + 0.5]])


def _colour(phase: str, index: int) -> str:
    return PHASE_COLOURS.get(phase, COLOURS[index % len(COLOURS)])
