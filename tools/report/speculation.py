# SPDX-License-Identifier: Apache-2.0
"""What drafts bring: tokens per step by the sequences in a step, acceptance rates by source."""
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from report.data import Group
from report.layouts import column
from report.style import COLOURS, from_zero, iteration_axis, legend_below, log_tokens, new_figure

BATCHES, SOURCES = "draft_batches", "draft_sources"
IN_WORDS = {
    "self": "the sequence itself",
    "prompt": "other responses to the prompt",
    "run": "any response",
    "model": "the draft model",
    "journal": "the same generation",
}
LINES = dict(zip(IN_WORDS, ("-", "--", ":", "-.", (0, (1, 3)))))
SOURCE_COLOURS = dict(zip(IN_WORDS, COLOURS))


@dataclass
class Shares:
    """Sums over records with the same key: of a size of batch, or of an iteration."""

    keys: np.ndarray
    part: np.ndarray
    whole: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """NaN where there is nothing to share."""
        return np.divide(
            self.part, self.whole, out=np.full(len(self.keys), np.nan), where=self.whole > 0
        )


def sum_by(keys: np.ndarray, part: np.ndarray, whole: np.ndarray) -> Shares:
    unique, at = np.unique(keys, return_inverse=True)
    return Shares(unique, np.bincount(at, part, len(unique)), np.bincount(at, whole, len(unique)))


def _joined(group: Group, table: str, name: str) -> np.ndarray:
    return np.concatenate([column(run, table, name) for run in group.runs])


def tokens_by_batch(group: Group) -> Shares:
    """Tokens beyond one for each sequence, of the sequences in steps of each size."""
    return sum_by(
        *(_joined(group, BATCHES, name) for name in ("least_batch", "accepted", "sequences"))
    )


def right_by_iteration(group: Group, source: str) -> Shares:
    """Right guesses, of those drafted from a source."""
    mine = _joined(group, SOURCES, "source") == source
    return sum_by(*(_joined(group, SOURCES, name)[mine] for name in ("step", "accepted", "drafted")))


def draw_speculation(groups: list[Group]) -> Figure | None:
    """Tokens per sequence and step over sequences in a step; below, acceptance rates over time."""
    drafting = [group for group in groups if _joined(group, BATCHES, "drafted").sum() > 0]
    if not drafting:
        return None
    figure, (above, below) = new_figure("Tokens per step by drafts", [2.6, 2.4])
    for group in drafting:
        batches = tokens_by_batch(group)
        above.plot(batches.keys, 1 + batches.share, "o-", color=group.colour, markersize=4)
        _draw_sources(below, group, group.label if len(groups) > 1 else "")
    above.set_xscale("log", base=2)
    log_tokens(above.xaxis)
    above.set_xticks(2.0 ** np.arange(1 + np.log2(max(b.max() for b in _sizes(drafting)))))
    above.set_xlabel("sequences in a step, at least")
    above.set_ylabel("tokens per\nsequence and step")
    from_zero(above)
    below.set_title("Acceptance rate by source")
    below.set_ylabel("accepted, of\ndrafted tokens")
    below.set_ylim(0, 1.05)
    below.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    iteration_axis(below)
    legend_below(figure, below)
    return figure


def _sizes(groups: list[Group]) -> list[np.ndarray]:
    return [tokens_by_batch(group).keys for group in groups]


def _draw_sources(ax: Axes, group: Group, label: str) -> None:
    """Sources differ by colour, or, if groups do, by their lines."""
    for source, words in IN_WORDS.items():
        right = right_by_iteration(group, source)
        if not right.whole.sum() > 0:
            continue
        text = f"{words} ({int(right.whole.sum()):,} drafted)"
        ax.plot(
            right.keys,
            right.share,
            linestyle=LINES[source] if label else "-",
            marker="." if len(right.keys) < 30 else None,
            color=group.colour if label else SOURCE_COLOURS[source],
            label=f"{label}: {text}" if label else text,
        )
