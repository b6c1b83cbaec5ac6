# SPDX-License-Identifier: Apache-2.0
"""Losses of fine-tuning by steps: of taper sft, and of taper reward-model with the share of pairs judged right."""
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from report.data import Group, all_runs, finite_points, is_single, moving_average, smoothing_window
from report.style import COLOURS, iteration_axis, legend_below, new_figure

LOSS, ACCURACY, PAIRS = "loss", "accuracy", "train/pairs"


def has_points(groups: list[Group], name: str) -> bool:
    return any(len(finite_points(run, name)[1]) for run in all_runs(groups))


def draw_series(ax: Axes, groups: list[Group], figure_name: str) -> None:
    """What was measured at each step, faintly, its moving average, and the held-out figure as points."""
    for group in groups:
        for index, run in enumerate(group.runs):
            steps, values = finite_points(run, f"train/{figure_name}")
            colour = group.colour
            name = "" if is_single(groups) else f"{group.label}, "
            ax.plot(steps, values, color=colour, alpha=0.3, linewidth=0.8)
            smooth = moving_average(values, smoothing_window(len(values)))
            ax.plot(steps, smooth, color=colour, label=f"{name}training" if index == 0 else None)
            held_out = finite_points(run, f"val/{figure_name}")
            if len(held_out[1]):
                second = COLOURS[1] if is_single(groups) else colour
                ax.plot(*held_out, "D:", color=second, markersize=4, label=f"{name}held out" if index == 0 else None)


def draw_fine_tuning(groups: list[Group]) -> Figure | None:
    if not has_points(groups, f"train/{LOSS}"):
        return None
    of_pairs = has_points(groups, PAIRS)
    figure, axes = new_figure("Loss of fine-tuning", [3.6, 2.6] if of_pairs else [3.6])
    draw_series(axes[0], groups, LOSS)
    axes[0].set_ylabel("loss of a preference pair, nat" if of_pairs else "cross entropy of a learned token, nat")
    if of_pairs:
        draw_series(axes[1], groups, ACCURACY)
        axes[1].set_ylabel("pairs judged right")
    iteration_axis(axes[-1])
    axes[-1].set_xlabel("step")
    axes[0].legend(loc="best") if is_single(groups) else legend_below(figure, axes[-1])
    return figure
