# SPDX-License-Identifier: Apache-2.0
"""Forecasts of the end of a generation against when it came."""
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from report.data import Group
from report.layouts import ACCOUNTS, column
from report.style import INK, legend_below, new_figure, outside_legend

# Column of the accounts, nominal share, in words.
FORECASTS = (
    ("below_low", 0.1, "below the lower\nquantile (10 %)"),
    ("below_mean", 0.5, "below the mean\n(about 50 %)"),
    ("below_high", 0.9, "below the upper\nquantile (90 %)"),
)
FEW = 10  # generations: shares of fewer say little


def draw_forecasts(groups: list[Group]) -> Figure | None:
    """How often a generation ended before its forecasts, against how often it should have."""
    counts = [(group, counted) for group in groups if (counted := count_forecasts(group))["of"] > 0]
    if not counts:
        return None
    figure, (ax,) = new_figure("Forecasts of the end of a generation", [3.2])
    width = 0.62 / len(counts)
    for k, (group, counted) in enumerate(counts):
        x = np.arange(len(FORECASTS)) + (k - (len(counts) - 1) / 2) * width
        shares = [counted[name] / counted["of"] for name, _, _ in FORECASTS]
        ax.bar(x, shares, 0.92 * width, color=group.colour, label=_label(group, groups))
        for at, share, (name, nominal, _) in zip(x, shares, FORECASTS):
            text = f"{100 * share:.0f} %"
            if len(counts) <= 2:
                text += f"\n{counted[name]:,} of {counted['of']:,}"
            style = {"textcoords": "offset points", "ha": "center", "va": "bottom", "fontsize": 8.5}
            ax.annotate(text, (at, _above(share, nominal)), xytext=(0, 4), **style)
    middles = np.arange(len(FORECASTS))
    shares = [nominal for _, nominal, _ in FORECASTS]
    ax.hlines(shares, middles - 0.4, middles + 0.4, color=INK, linewidth=1.8, label="as it should be")
    ax.set_xticks(middles, [words for _, _, words in FORECASTS])
    ax.set_xlim(-0.55, len(FORECASTS) - 0.45)
    ax.set_ylim(0, 1.2)
    ax.set_yticks(np.arange(0, 1.01, 0.2))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    ax.grid(axis="x", visible=False)
    ax.set_ylabel("share of forecasts")
    ax.set_title(_forecast_subtitle(counts))
    outside_legend(ax) if len(counts) == 1 else legend_below(figure, ax)
    return figure


def _label(group: Group, groups: list[Group]) -> str:
    return "measured" if len(groups) == 1 else group.label


def _above(share: float, nominal: float) -> float:
    """Where the words of a bar stand, so that the line of the nominal share does not cross them."""
    return nominal if nominal - 0.18 < share < nominal else share


def count_forecasts(group: Group) -> dict[str, int]:
    """Forecasts of all runs ("of"), the generations that have any, and how many ends came below."""
    names = {"of": "forecasts"} | {name: name for name, _, _ in FORECASTS}
    counted = {"generations": 0} | {key: 0 for key in names}
    for run in group.runs:
        have = column(run, ACCOUNTS, "forecasts") > 0
        counted["generations"] += int(have.sum())
        for key, name in names.items():
            counted[key] += int(np.nan_to_num(column(run, ACCOUNTS, name)[have]).sum())
    return counted


def _forecast_subtitle(counts: list[tuple[Group, dict[str, int]]]) -> str:
    forecasts = sum(counted["of"] for _, counted in counts)
    generations = sum(counted["generations"] for _, counted in counts)
    text = f"{forecasts:,} forecasts in {generations:,} generation{'s' if generations > 1 else ''}"
    few = ": too few to judge by" if generations < FEW else ""
    return f"{text}{few}"
