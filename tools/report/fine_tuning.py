# SPDX-License-Identifier: Apache-2.0
"""Losses of supervised fine-tuning by steps."""
from matplotlib.figure import Figure

from report.data import Group, all_runs, finite_points, is_single, moving_average, smoothing_window
from report.style import COLOURS, iteration_axis, legend_below, new_figure

TRAIN, HELD_OUT = "train/loss", "val/loss"


def draw_fine_tuning(groups: list[Group]) -> Figure | None:
    """The loss of each step, faintly, its moving average, and the held-out loss as points."""
    if not any(len(finite_points(run, TRAIN)[1]) for run in all_runs(groups)):
        return None
    figure, (ax,) = new_figure("Loss of fine-tuning", [3.6])
    for group in groups:
        for index, run in enumerate(group.runs):
            steps, losses = finite_points(run, TRAIN)
            colour = group.colour
            name = "" if is_single(groups) else f"{group.label}, "
            ax.plot(steps, losses, color=colour, alpha=0.3, linewidth=0.8)
            smooth = moving_average(losses, smoothing_window(len(losses)))
            ax.plot(steps, smooth, color=colour, label=f"{name}training" if index == 0 else None)
            held_out = finite_points(run, HELD_OUT)
            if len(held_out[1]):
                second = COLOURS[1] if is_single(groups) else colour
                ax.plot(*held_out, "D:", color=second, markersize=4, label=f"{name}held out" if index == 0 else None)
    ax.set_ylabel("cross entropy of a learned token, nat")
    iteration_axis(ax)
    ax.set_xlabel("step")
    ax.legend(loc="best") if is_single(groups) else legend_below(figure, ax)
    return figure
