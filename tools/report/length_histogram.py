# SPDX-License-Identifier: Apache-2.0
"""The distribution of response lengths: how it begins, how it ends, and its tail."""
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from report.data import Group, is_single
from report.style import COLOURS, MUTED, log_tokens, new_figure
from taper_h5 import Run, valid_lengths


@dataclass(frozen=True)
class Part:
    label: str
    colour: str
    lengths: np.ndarray  # tokens, flat


def draw_length_histogram(groups: list[Group]) -> Figure | None:
    """A run: its first and last quarter. Several: the last quarter of each, seeds together."""
    if is_single(groups):
        parts = _quarters(groups[0].runs[0])
    else:
        parts = [
            Part(
                group.label,
                group.colour,
                np.concatenate([_last_quarter(run) for run in group.runs]),
            )
            for group in groups
        ]
    parts = [part for part in parts if len(part.lengths)]
    if not parts:
        return None
    title = "Response lengths" if is_single(groups) else "Response lengths, last quarter"
    figure, (ax, strip) = new_figure(title, [3.2, 0.45 + 0.38 * len(parts)])
    bins = log_bins(max(part.lengths.max() for part in parts))
    for part in parts:
        shares = bin_shares(part.lengths, bins)
        ax.stairs(shares, bins, fill=True, color=part.colour, alpha=0.22)
        ax.stairs(shares, bins, color=part.colour, linewidth=1.5, label=part.label)
    ax.set_ylabel("share of responses in a bar")
    ax.yaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter(lambda share, _: f"{round(100 * share, 4):g}%")
    ax.legend(loc="best")
    _draw_marks(strip, parts)
    for panel in (ax, strip):
        panel.set_xscale("log")
        panel.set_xlim(_left_edge(parts), bins[-1] * 1.6)
        log_tokens(panel.xaxis)
    ax.tick_params(labelbottom=False)
    strip.set_xlabel("response length (tokens)")
    return figure


def _quarters(run: Run) -> list[Part]:
    rows = len(run.lengths)
    if rows < 2:
        return (
            [Part(f"iteration {run.length_steps[0]}", COLOURS[0], valid_lengths(run.lengths))]
            if rows
            else []
        )
    quarter = max(1, rows // 4)
    ends = (
        ("first quarter", COLOURS[1], slice(0, quarter)),
        ("last quarter", COLOURS[0], slice(rows - quarter, rows)),
    )
    return [
        Part(
            f"{label} ({_span(run.length_steps[rows_of])})",
            colour,
            valid_lengths(run.lengths[rows_of]),
        )
        for label, colour, rows_of in ends
    ]


def _span(steps: np.ndarray) -> str:
    return f"iteration {steps[0]}" if len(steps) == 1 else f"iterations {steps[0]}-{steps[-1]}"


def _last_quarter(run: Run) -> np.ndarray:
    rows = len(run.lengths)
    return valid_lengths(run.lengths[rows - max(1, rows // 4) :]) if rows else np.empty(0, np.int32)


def bin_shares(lengths: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """(bins) of lengths from 1 (empty responses count as 1) to the longest: the sum is 1."""
    return np.histogram(np.maximum(lengths, 1), bins)[0] / len(lengths)


def log_bins(longest: int) -> np.ndarray:
    """Edges about equally far apart on a logarithmic axis; every bin holds a whole number."""
    edges = np.unique(np.round(np.geomspace(1, max(longest, 2) + 1, 45)))
    return edges - 0.5


def _left_edge(parts: list[Part]) -> float:
    shortest = max(1, min(int(part.lengths.min()) for part in parts))
    return max(0.5, shortest * 0.6)


def _draw_marks(ax: Axes, parts: list[Part]) -> None:
    """A line for each part from its median over its 99th percentile to its longest."""
    for i, part in enumerate(parts):
        p50, p99 = np.quantile(part.lengths, (0.5, 0.99))
        longest = part.lengths.max()
        y = -i
        ax.plot([max(p50, 1), longest], [y, y], color=part.colour, linewidth=1.4)
        ax.plot([max(p50, 1), p99, longest], [y] * 3, "o", color=part.colour, markersize=5)
        offset = {"textcoords": "offset points", "fontsize": 8.5, "color": part.colour}
        ax.annotate(
            f"p50 {p50:,.0f}", (max(p50, 1), y), xytext=(-7, 0), ha="right", va="center", **offset
        )
        ax.annotate(f"p99 {p99:,.0f}", (p99, y), xytext=(0, 5), ha="center", va="bottom", **offset)
        ax.annotate(
            f"max {longest:,.0f}", (longest, y), xytext=(7, 0), ha="left", va="center", **offset
        )
    ax.set_ylim(-len(parts) + 0.4, 0.9)
    ax.set_yticks([])
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    ax.spines["bottom"].set_color(MUTED)
