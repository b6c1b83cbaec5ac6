# SPDX-License-Identifier: Apache-2.0
"""The one look of all pictures: colours, fonts, sizes, and the axes everything is drawn on."""
import io
import math

import matplotlib

matplotlib.use("Agg")  # no display on compute nodes
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.axis import Axis  # noqa: E402
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter  # noqa: E402

INK = "#1f2933"
MUTED = "#6b7885"
FAINT = "#dfe4ea"
# Told apart also without red or green; the first two carry most pictures.
COLOURS = ("#2563a8", "#d9691e", "#1b8a6b", "#8a4fb0", "#c2375a", "#8a6d1b", "#3f9fc0", "#5b6770")
PHASE_COLOURS = {
    "gen": "#2563a8",
    "reward": "#e0a526",
    "reward_model": "#9ab03a",
    "ref": "#8a4fb0",
    "values": "#b98bd0",
    "old_log_prob": "#7fa7d4",
    "adv": "#c2375a",
    "update_critic": "#86c7b0",
    "update_actor": "#1b8a6b",
    "wait": "#d5d9df",
    "publish": "#d9691e",
    "testing": "#3f9fc0",
    "save_checkpoint": "#8a6d1b",
    "output": "#e58fb5",
    "other": "#7b8794",
}
WIDTH = 9.0  # inches
DPI = 150

SETTINGS = {
    "figure.dpi": DPI,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.09,
    "figure.constrained_layout.w_pad": 0.09,
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "normal",
    "axes.titlecolor": MUTED,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-4, 5),
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.9,
    "lines.solid_capstyle": "round",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "hatch.linewidth": 0.6,
}


def new_figure(
    title: str, heights: list[float], width: float = WIDTH, columns: int = 1
) -> tuple[Figure, list[Axes]]:
    """A figure with rows of panels of the given heights (inches); the panels come row by row."""
    plt.rcParams.update(SETTINGS)
    figure, axes = plt.subplots(
        len(heights),
        columns,
        figsize=(width, sum(heights) + 0.5),
        gridspec_kw={"height_ratios": heights},
        squeeze=False,
    )
    figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold")
    return figure, list(axes.flat)


def iteration_axis(ax: Axes, label: bool = True) -> None:
    """Whole numbers; the label only where nothing else stands below. Call it when all is drawn."""
    first, last = ax.dataLim.intervalx
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 2.5, 5, 10], integer=True))
    if last - first < 2:  # one iteration is a point: give it some room
        ax.set_xlim(first - 1, last + 1)
        ax.set_xticks(range(math.ceil(first), math.floor(last) + 1))
    else:
        ax.margins(x=0.02)
    if label:
        ax.set_xlabel("iteration")


def from_zero(ax: Axes) -> None:
    """The vertical axis from 0 to a little above the data."""
    top = ax.dataLim.y1
    ax.set_ylim(0, 1.08 * top if top > 0 else 1.0)


def log_tokens(axis: Axis) -> None:
    """Ticks of a logarithmic axis at 1, 2, 5, 10, ... After set_xscale or set_yscale."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:,.0f}")
    axis.set_minor_formatter(NullFormatter())


def legend_below(figure: Figure, ax: Axes) -> None:
    """The legend of ax below all panels, in two columns if they fit; the figure grows by it."""
    handles, labels = ax.get_legend_handles_labels()
    columns = 2 if max(map(len, labels)) <= 60 else 1
    rows = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + 0.1 + 0.19 * rows)
    figure.legend(handles, labels, loc="outside lower left", ncols=columns)


def outside_legend(ax: Axes, **options: object) -> None:
    """A legend right of the axes, where it covers nothing."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, **options)


def render(figure: Figure) -> bytes:
    """The PNG file of a figure, which is closed."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    plt.close(figure)
    return buffer.getvalue()
