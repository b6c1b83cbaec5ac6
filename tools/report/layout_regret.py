# SPDX-License-Identifier: Apache-2.0
"""Generation time against the best static layout of the run; what an oracle would have saved."""
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from report.data import Group, is_single, moving_average, smoothing_window
from report.layouts import ROOM, Accounts, oracle_share, read_accounts, uniform_name
from report.style import (
    COLOURS,
    MUTED,
    iteration_axis,
    legend_below,
    new_figure,
    outside_legend,
)
from report.words import count_text

MARKED = 12  # generations up to which each is a mark
WIDE = {"linewidth": 7, "alpha": 0.35, "solid_capstyle": "butt"}
LEAST_SPAN = 0.02  # of the upper panel: less is noise of the profile
ADAPTIVE, ORACLE = COLOURS[0], COLOURS[1]
STATIC = (COLOURS[2], COLOURS[3], COLOURS[5], COLOURS[6], COLOURS[7], COLOURS[4])


def draw_regret(groups: list[Group]) -> Figure | None:
    """Two panels: time relative to the best static layout by iteration, savings summed up.

    All by replay with the step times of the profile: wall times hold the noise of the machine, and
    nothing has measured what the other layouts would have taken in it.
    """
    found = [
        (group, accounts)
        for group in groups
        if (accounts := [a for run in group.runs if (a := read_accounts(run)) is not None])
    ]
    if not found:
        return None
    single = is_single(groups)
    figure, (above, below) = new_figure("Adaptive, static and oracle layouts", [3.2, 2.3])
    if single:
        _draw_run(above, below, found[0][1][0])
    else:
        for group, accounts in found:
            _draw_group(above, below, group, accounts)
    best = " and ".join(sorted({a.best_name for _, list_ in found for a in list_}))
    averaged = not single and any(_window(a) > 1 for _, list_ in found for a in list_)
    smooth = ", moving averages" if averaged else ""
    against = f"the best static layout ({best}){smooth}"
    above.set_title(f"Replayed time of a generation against {against}")
    above.set_ylabel("difference")
    above.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
    below.set_title(_share_title([a for _, list_ in found for a in list_]))
    below.set_ylabel("seconds saved, summed")
    for ax in (above, below):
        ax.axhline(0.0, color=MUTED, linewidth=1.0, zorder=1)
        iteration_axis(ax, label=ax is below)
    if single:
        outside_legend(above)
        outside_legend(below)
    else:
        legend_below(figure, below)
    return figure


def relative(seconds: np.ndarray, accounts: Accounts) -> np.ndarray:
    """Against the best static layout: 0 is as fast, negative faster; (generations)."""
    return seconds / accounts.best - 1


def total_relative(seconds: np.ndarray, accounts: Accounts) -> float:
    return float(seconds.sum() / accounts.best.sum() - 1)


def _window(accounts: Accounts) -> int:
    return smoothing_window(len(accounts.steps))


def _mark(accounts: Accounts) -> str:
    return "o" if len(accounts.steps) <= MARKED else ""


def _draw_run(above: Axes, below: Axes, a: Accounts) -> None:
    mark = {"marker": _mark(a), "markersize": 4}
    limits = _limits(a)
    for i, (tp, seconds) in enumerate(a.static.items()):
        differences = relative(seconds, a)
        label = f"static {uniform_name(tp, a.ranks)}  {100 * total_relative(seconds, a):+.1f} %"
        if differences.max() > limits[1]:
            label += " (above)" if differences.min() > limits[1] else " (partly above)"
        best = tp == a.best_degree  # a broad band: the curves of the others often lie on it
        width = WIDE if best else {"linewidth": 1.2}
        colour = STATIC[i % len(STATIC)]
        above.plot(a.steps, differences, color=colour, label=label, **width, **mark)
    lines = (
        ("adaptive", a.replayed, ADAPTIVE, {"linewidth": 1.9}),
        ("oracle", a.oracle, ORACLE, {"linewidth": 1.5, "linestyle": "--"}),
    )
    for name, seconds, colour, style in lines:
        label = f"{name}  {100 * total_relative(seconds, a):+.1f} %"
        above.plot(a.steps, relative(seconds, a), color=colour, label=label, **style, **mark)
        saved = np.cumsum(a.best - seconds)
        label = f"{name}  {saved[-1]:.3g} s"
        below.plot(a.steps, saved, color=colour, label=label, **style, **mark)
    above.set_ylim(*limits)


def _limits(a: Accounts) -> tuple[float, float]:
    """Of what was done and could have been; a static layout far off leaves the panel."""
    near = np.concatenate([relative(seconds, a) for seconds in (a.replayed, a.oracle)])
    low, high = min(near.min(), 0.0), max(near.max(), 0.0)
    span = max(high - low, LEAST_SPAN)
    low -= 0.1 * span
    reach = high + span  # statics up to here are shown whole
    tops = [relative(seconds, a).max() for seconds in a.static.values()]
    high = max([high, *(top for top in tops if top <= reach)])
    return low, high + 0.15 * span


def _draw_group(above: Axes, below: Axes, group: Group, accounts: list[Accounts]) -> None:
    """One line a run; seeds have one colour, label and share of the oracle's gain."""
    share = oracle_share(accounts)
    note = f", {100 * share:.0f} % of the oracle's gain" if np.isfinite(share) else ""
    for a in accounts:
        first = a is accounts[0]
        line = {"color": group.colour, "marker": _mark(a), "markersize": 4, "linewidth": 1.4}
        smoothed = moving_average(relative(a.replayed, a), _window(a))
        above.plot(a.steps, smoothed, **line)
        label = f"{group.label}{note}" if first else None
        below.plot(a.steps, np.cumsum(a.best - a.replayed), label=label, **line)
        line |= {"linestyle": "--", "marker": "", "alpha": 0.7}
        label = f"{group.label}, oracle" if first else None
        below.plot(a.steps, np.cumsum(a.best - a.oracle), label=label, **line)


def _share_title(accounts: list[Accounts]) -> str:
    told = count_text(sum(len(a.steps) for a in accounts), "generation")
    room = sum(int(a.room.sum()) for a in accounts)
    title, at_least = "Saved against the best static layout", f"{100 * ROOM:g} % or more"
    if room == 0:
        return f"{title} (the oracle gains {at_least} in none of {told})"
    share = 100 * oracle_share(accounts)
    where = f"over the {room} of {told} where it gains {at_least}"
    return f"{title}: {share:.1f} % of the oracle's gain\n({where})"
