# SPDX-License-Identifier: Apache-2.0
"""Active sequences and layout over the time of a generation."""
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from report.data import Group, NamedRun, is_single
from report.layouts import (
    Generation,
    Key,
    choose_generations,
    group_count,
    key_name,
    read_accounts,
    read_generation,
)
from report.rows import percent, short_time
from report.style import COLOURS, INK, MUTED, new_figure, outside_legend

PANELS = 4  # runs shown beside one another
LISTED = 6  # switches of a generation that are written out
TINT = 0.2  # of the colours of layouts behind the curves
LEAST = 0.8  # lower end of the axis: one sequence stands above it
COUNTED = {"color": INK, "linestyle": "", "marker": "o", "markersize": 4}
BETWEEN = {"color": INK, "linestyle": "--", "linewidth": 0.9}
WAITING = {"color": MUTED, "linestyle": ":", "marker": "o", "markersize": 3, "linewidth": 1.0}
LINE = 0.165  # inches of a line of the legend
# Heights of the curves, the numbers of switches and the words above them, as shares of the panel.
CURVES, NUMBERS, WORDS = 0.74, 0.83, 0.935
PER_LETTER = 0.0118  # of the panel's width
APART = 0.032  # least distance of two numbers, of the panel's width


@dataclass(frozen=True)
class Panel:
    run: NamedRun
    title: str
    generation: Generation


def draw_layouts(groups: list[Group]) -> Figure | None:
    """A run: up to three of its generations. Several: the most telling one of each."""
    runs = [named for group in groups for named in group.members]
    panels = _panels_of(runs[0]) if is_single(groups) else _one_each(runs)[:PANELS]
    if not panels:
        return None
    colours = _colours(panels)
    legends = [_legend(panel, colours) for panel in panels]
    lines = [sum(1 + label.count("\n") for _, label in legend) for legend in legends]
    heights = [max(2.1, 0.75 + LINE * count) for count in lines]
    figure, axes = new_figure("Active sequences and layout within a generation", heights)
    for ax, panel, legend in zip(axes, panels, legends):
        _draw_generation(ax, panel, colours)
        handles, labels = zip(*legend)
        outside_legend(ax, handles=list(handles), labels=list(labels))
    axes[-1].set_xlabel("seconds since the start of the generation")
    return figure


def _panels_of(named: NamedRun) -> list[Panel]:
    return [
        Panel(
            named,
            f"{key_name(named.run, key).capitalize()} ({', '.join(reasons)}){_account(named, key)}",
            read_generation(named.run, key),
        )
        for key, reasons in choose_generations(named.run).items()
    ]


def _one_each(runs: list[NamedRun]) -> list[Panel]:
    """The generation with the largest saving, else the last one with a switch, else the longest."""
    panels = []
    for named in runs:
        chosen = choose_generations(named.run)
        for reason in ("largest saving", "last switch", "longest"):
            key = next((key for key, reasons in chosen.items() if reason in reasons), None)
            if key is not None:
                title = f"{named.name}: {key_name(named.run, key)}{_account(named, key)}"
                panels.append(Panel(named, title, read_generation(named.run, key)))
                break
    return panels


def _account(named: NamedRun, key: Key) -> str:
    """How long the generation took, and what its switches saved by replay, where known."""
    accounts = read_accounts(named.run)
    if accounts is None or key not in accounts.keys:
        return ""
    at = accounts.keys.index(key)
    took = f", {short_time(accounts.measured[at])}"
    saved = accounts.stayed[at] - accounts.replayed[at]
    if saved == 0:
        return took
    share = percent(abs(saved) / accounts.stayed[at])
    word = "saved" if saved > 0 else "lost"
    return f"{took}: switching {word} {short_time(abs(saved))}, {share} (replay)"


def _colours(panels: list[Panel]) -> dict[str, str]:
    """By layout: those of many groups first, so that usual pictures look alike."""
    seen = {layout for panel in panels for _, _, layout in panel.generation.spans}
    order = sorted(seen, key=lambda layout: (-group_count(layout), layout))
    return {layout: COLOURS[i % len(COLOURS)] for i, layout in enumerate(order)}


def _draw_generation(ax: Axes, panel: Panel, colours: dict[str, str]) -> None:
    generation = panel.generation
    ax.set_title(panel.title)
    ax.set_ylabel("sequences")
    ax.set_yscale("log")  # what matters happens among the last few sequences
    _draw_sequences(ax, generation)
    most = max(float(generation.alive.max()), 2.0)
    ax.set_ylim(LEAST, LEAST * (most / LEAST) ** (1 / CURVES))
    ticks = [k * 10**e for e in range(7) for k in (1, 2, 5) if k * 10**e <= most]
    ax.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlim(0, generation.end)
    ax.grid(axis="x", visible=False)
    for begin, end, layout in generation.spans:
        ax.axvspan(begin, end, color=colours[layout], alpha=TINT, linewidth=0)
        if _fits(begin, end, layout, generation):
            middle = (begin + end) / 2 / generation.end
            style = {"color": colours[layout], "fontsize": 8.5, "fontweight": "bold"}
            place = {"transform": ax.transAxes, "ha": "center", "va": "center"}
            ax.text(middle, WORDS, layout, **style, **place)
    _number_switches(ax, generation)


def _draw_sequences(ax: Axes, generation: Generation) -> None:
    """Dots where a consultation counted; straight lines between them, as nothing is known there.

    Flat ones would say that no sequence ended for seconds, where the planner only was not asked.
    """
    times = [*generation.times, generation.end]
    if (generation.alive > generation.running).any():
        ax.plot(generation.times, generation.alive, **WAITING)
    ax.plot(times, [*generation.running, LEAST], **BETWEEN)
    ax.plot(generation.times, generation.running, **COUNTED)


def _fits(begin: float, end: float, words: str, generation: Generation) -> bool:
    return PER_LETTER * len(words) < (end - begin) / generation.end


def _number_switches(ax: Axes, generation: Generation) -> None:
    """A line at each switch, and its number above the curves, beside others where it is narrow."""
    places = spread([s.at / generation.end for s in generation.switches], APART)
    for number, (switch, x) in enumerate(zip(generation.switches, places), start=1):
        at = switch.at / generation.end
        style = "-" if switch.done else ":"
        line = {"color": INK, "linewidth": 1.0, "linestyle": style, "transform": ax.transAxes}
        ax.plot([at, at, x], [0, NUMBERS - 0.11, NUMBERS - 0.06], **line)
        ax.text(
            x,
            NUMBERS,
            str(number),
            transform=ax.transAxes,
            ha="center",
            va="center",
            fontsize=7.5,
            color="white" if switch.done else INK,
            bbox={
                "boxstyle": "circle,pad=0.25",
                "facecolor": INK if switch.done else "white",
                "edgecolor": INK,
                "linewidth": 0.8,
            },
        )


def spread(places: list[float], apart: float) -> list[float]:
    """Ascending places within [0, 1], moved as little as needed to be so far from one another."""
    moved: list[float] = []
    for place in places:
        moved.append(max([place, *(before + apart for before in moved[-1:])]))
    limit = 1 - apart / 2
    for i in reversed(range(len(moved))):  # what was pushed over the end comes back
        moved[i] = min(moved[i], limit)
        limit = moved[i] - apart
    return moved


def _legend(panel: Panel, colours: dict[str, str]) -> list[tuple[object, str]]:
    generation = panel.generation
    entries: list[tuple[object, str]] = [
        (Line2D([], [], **COUNTED), "sequences, when the planner was asked"),
        (Line2D([], [], **BETWEEN), "in between: not counted"),
    ]
    if (generation.alive > generation.running).any():
        entries.append((Line2D([], [], **WAITING), "running or waiting"))
    told = {span[2] for span in generation.spans if _fits(*span, generation)}
    shown = dict.fromkeys(layout for _, _, layout in generation.spans)  # each once, in their order
    for layout in (layout for layout in shown if layout not in told):
        entries.append((Patch(color=colours[layout], alpha=2 * TINT), layout))
    for number, switch in enumerate(generation.switches[:LISTED], start=1):
        mark = Line2D([], [], linestyle="", marker=f"${number}$", color=INK, markersize=6)
        target = "repack" if switch.repack else f"to {switch.to}"
        cost = f"cost: {short_time(switch.predicted)} predicted"
        took = f"{short_time(switch.measured)} measured" if switch.done else "not carried out"
        entries.append((mark, f"{short_time(switch.at)}: {target}\n{cost}, {took}"))
    if len(generation.switches) > LISTED:
        more = len(generation.switches) - LISTED
        entries.append((Line2D([], [], linestyle=""), f"and {more} more"))
    return entries
