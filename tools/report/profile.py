# SPDX-License-Identifier: Apache-2.0
"""The picture and the tables of a latency profile."""
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from report.captions import CAPTIONS
from report.glossary import glossary
from report.pages import Page, Picture, Table
from report.style import COLOURS, from_zero, log_tokens, new_figure, render
from report.words import count_text
from taper_h5 import Profile

PAIRS = ("same node", "other node")
PARTS = {
    "groups": "groups of ranks of the new layout",
    "weights": "weights of the new layout",
    "graphs": "recording GPU graphs anew",
}


def curves(profile: Profile) -> list[tuple[int, int]]:
    """Degrees and pair classes that have samples."""
    return sorted(set(zip(profile.steps["tp"].tolist(), profile.steps["pair"].tolist())))


def name_of(profile: Profile, tp: int, pair: int) -> str:
    several = len({p for t, p in curves(profile) if t == tp}) > 1
    return f"TP {tp}" + (f", {PAIRS[pair]}" if several else "")


def decode_lines(profile: Profile, tp: int, pair: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Batch -> (mean contexts ascending, ms) of the decode steps."""
    s = profile.steps
    chosen = (s["tp"] == tp) & (s["pair"] == pair) & (s["new_tokens"] == s["sequences"])
    lines = {}
    for batch in np.unique(s["sequences"][chosen]):
        at = np.flatnonzero(chosen & (s["sequences"] == batch))
        at = at[np.argsort(s["context"][at])]
        lines[int(batch)] = (s["context"][at] / batch, s["time_ns"][at] / 1e6)
    return lines


def step_ms(lines: dict[int, tuple[np.ndarray, np.ndarray]], context: float) -> np.ndarray:
    """(batches, 2): batch and ms of a decode step at a mean context."""
    return np.array([(b, np.interp(context, *line)) for b, line in sorted(lines.items())])


def common_context(profile: Profile) -> float:
    """A mean context that all lines of all degrees hold, towards their upper end."""
    tops = [line[0][-1] for c in curves(profile) for line in decode_lines(profile, *c).values()]
    return 0.5 * min(tops)


def draw_profile(profile: Profile) -> Figure:
    figure, axes = new_figure("Latency profile", [3.2, 3.2], columns=2)
    context = common_context(profile)
    for colour, (tp, pair) in zip(COLOURS, curves(profile)):
        at = step_ms(decode_lines(profile, tp, pair), context)
        label = name_of(profile, tp, pair)
        axes[0].plot(at[:, 0], at[:, 1], "o-", color=colour, markersize=3.5, label=label)
        alive = at[:, 0] * profile.ranks / tp
        axes[1].plot(alive, at[:, 1], "o-", color=colour, markersize=3.5, label=label)
        s = profile.steps
        chosen = (s["tp"] == tp) & (s["pair"] == pair) & (s["new_tokens"] > s["sequences"])
        axes[2].plot(
            (s["new_tokens"] - s["sequences"])[chosen],
            s["time_ns"][chosen] / 1e6,
            "o",
            color=colour,
            markersize=4,
            label=label,
        )
    axes[0].set_title(f"Decode steps, {context:,.0f} positions each")
    axes[0].set_xlabel("sequences of a replica")
    axes[1].set_title("The same for all sequences alive")
    axes[1].set_xlabel("sequences over all ranks")
    axes[2].set_title("Steps with prompt tokens")
    axes[2].set_xlabel("prompt tokens in the step")
    for ax in axes[:3]:
        ax.set_xscale("log")
        ax.set_yscale("log")
        log_tokens(ax.xaxis)
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set_ylabel("ms")
        ax.legend(loc="best")
    _draw_errors(axes[3], profile)
    return figure


def _draw_errors(ax: Axes, profile: Profile) -> None:
    """Median bars with the 90th percentile on top, interpolation beside noise."""
    rows = [(profile.fit_errors, "interpolation"), (profile.repeat_noise, "machine's noise")]
    for k, (errors, label) in enumerate(rows):
        x = np.arange(len(errors["tp"])) + 0.4 * k - 0.2
        p50, p90 = errors["p50"] / 1e4, errors["p90"] / 1e4
        ax.bar(x, p50, 0.36, color=COLOURS[k], label=f"{label}, median and 90 %")
        ax.errorbar(x, p50, [np.zeros_like(p50), p90 - p50], fmt="none", ecolor=COLOURS[k])
    names = [
        name_of(profile, int(t), int(p))
        for t, p in zip(profile.fit_errors["tp"], profile.fit_errors["pair"])
    ]
    ax.set_xticks(np.arange(len(names)), names)
    ax.set_title("Errors of step times")
    ax.set_ylabel("%")
    from_zero(ax)
    ax.set_ylim(top=1.3 * ax.get_ylim()[1])  # room for the legend above the bars
    ax.legend(loc="upper left", ncols=1, borderaxespad=0.2)


def cost_rows(profile: Profile) -> list[list[str]]:
    rows = [["cost of switching", ""]]
    for pair, latency, rate in zip(*(profile.moves[c] for c in ("pair", "latency_ns", "ps_per_byte"))):
        rows.append(
            [
                f"moving keys and values, {PAIRS[int(pair)]}",
                f"{latency / 1e3:.1f} us, {1e3 / max(int(rate), 1):.2f} GB/s",
            ]
        )
    for ranks, ns in zip(profile.rendezvous["ranks"], profile.rendezvous["ns"]):
        rows.append([f"meeting of {ranks} ranks", f"{ns / 1e3:.1f} us"])
    for part, words in PARTS.items():
        rows.append([words, f"{profile.switching[part + '_ns'] / 1e3:.1f} us"])
    return rows


def completeness(profile: Profile) -> str:
    if profile.measured_percent == 100:
        return "complete"
    return (
        f"incomplete: {profile.measured_percent} % of the planned measuring "
        "(the same taper profile goes on)"
    )


def profile_page(profile: Profile) -> Page:
    facts = [["", profile.path.name], *([name, value] for name, value in profile.facts.items())]
    points = (
        f"{count_text(len(profile.steps['tp']), 'point')} on {count_text(profile.ranks, 'rank')}, "
        f"{completeness(profile)}"
    )
    return Page(
        f"Latency profile {profile.path.name}",
        points,
        [Table("Switching", cost_rows(profile)), Table("Where it was measured", facts, False)],
        [Picture("profile.png", "Step times", render(draw_profile(profile)), CAPTIONS["profile"])],
        {},
        glossary(["profile"], []),
    )
