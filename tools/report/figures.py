# SPDX-License-Identifier: Apache-2.0
"""The pictures of a report.

Each function takes the groups of runs and gives a figure, or None where no run has what it shows.
"""
from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from report.calls import draw_calls
from report.curves import draw_metric, has_metric, length_quantiles
from report.data import (
    Group,
    all_runs,
    finite_points,
    is_single,
    moving_average,
    smoothing_window,
)
from report.evaluation import draw_curve, draw_evaluation, how_sampled
from report.evaluation_sets import draw_evaluation_sets
from report.fine_tuning import draw_fine_tuning
from report.layout_forecasts import draw_forecasts
from report.layout_prediction import draw_generation_time
from report.layout_regret import draw_regret
from report.layout_time import draw_layouts
from report.length_histogram import draw_length_histogram
from report.speculation import draw_speculation
from report.step_time import draw_step_time
from report.style import (
    COLOURS,
    MUTED,
    from_zero,
    iteration_axis,
    legend_below,
    log_tokens,
    new_figure,
    outside_legend,
)
from report.summary import (
    first_iterations,
    first_reward,
    last_iterations,
    last_reward,
    reward_gain,
    reward_metric,
)
from taper_h5 import Run

SCORE, REWARDS = "critic/score/mean", "critic/rewards/mean"
DENSE = 100  # iterations above which the curves of single values would hide one another


def draw_reward(groups: list[Group]) -> Figure | None:
    metric = reward_metric(groups[0].runs[0])
    if not has_metric(groups, metric):
        return None
    figure, (ax,) = new_figure("Reward", [3.6])
    draw_metric(ax, groups, metric, smooth=True)
    if is_single(groups):
        run = groups[0].runs[0]
        if metric == SCORE and _differ(run, SCORE, REWARDS):
            draw_metric(
                ax,
                groups,
                REWARDS,
                smooth=True,
                label="with KL penalty",
                colour=COLOURS[2],
                style="--",
            )
        ax.set_title(_reward_subtitle(run))
    for group in groups:
        colour = COLOURS[1] if is_single(groups) else group.colour
        label = ""
        if group is groups[0]:
            label = f"held-out prompts{how_sampled(all_runs(groups))}, after the iteration"
        draw_curve(ax, group, colour, label, each=False)
    ax.set_ylabel("mean reward of a response")
    iteration_axis(ax)
    ax.legend(loc="best") if is_single(groups) else legend_below(figure, ax)
    return figure


def _differ(run: Run, one: str, other: str) -> bool:
    if not (one in run.metrics and other in run.metrics):
        return False
    return not np.allclose(run.metrics[one], run.metrics[other], atol=1e-9, equal_nan=True)


def _reward_subtitle(run: Run) -> str:
    if np.isnan(reward_gain(run)):
        return f"{first_reward(run):.3f} in the only iteration"
    first, last = first_iterations(run), last_iterations(run)
    means = f"first {first} iterations {first_reward(run):.3f}, last {last} {last_reward(run):.3f}"
    return f"{means}, difference {reward_gain(run):+.3f}"


def draw_response_length(groups: list[Group]) -> Figure | None:
    names = ("response_length/mean", "response_length/max")
    if not (
        any(has_metric(groups, name) for name in names)
        or any(run.lengths.size for run in all_runs(groups))
    ):
        return None
    clipped = has_metric(groups, "response_length/clip_ratio")
    figure, axes = new_figure("Response length", [3.6, 1.5] if clipped else [3.6])
    ax = axes[0]
    if is_single(groups):
        _draw_length_bands(ax, groups[0].runs[0])
        dense = len(groups[0].runs[0].steps) > DENSE
        draw_metric(ax, groups, names[1], smooth=dense, label="longest", colour=COLOURS[4])
        draw_metric(ax, groups, names[0], smooth=dense, label="mean", colour=COLOURS[0])
    else:
        draw_metric(ax, groups, names[1], smooth=True, label="longest", style="--")
        draw_metric(ax, groups, names[0], smooth=True, label="mean length")
    if _spans_decades(groups):
        ax.set_yscale("log")
        log_tokens(ax.yaxis)
    else:
        from_zero(ax)
    ax.set_ylabel("tokens")
    iteration_axis(ax, label=not clipped)
    outside_legend(ax) if is_single(groups) else legend_below(figure, ax)
    if clipped:
        paint = MUTED if is_single(groups) else ""
        draw_metric(axes[1], groups, "response_length/clip_ratio", smooth=True, colour=paint)
        axes[1].set_title("Responses cut at the length limit")
        _share_axis(axes[1])
        axes[1].set_ylabel("share")
        iteration_axis(axes[1])
    return figure


def _draw_length_bands(ax: Axes, run: Run) -> None:
    if run.lengths.size == 0:
        return
    steps = run.length_steps
    window = smoothing_window(len(steps)) if len(steps) > DENSE else 1
    table = length_quantiles(run.lengths, (0.10, 0.25, 0.50, 0.75, 0.90, 0.99))
    p10, p25, p50, p75, p90, p99 = (moving_average(row, window) for row in table)
    if len(steps) == 1:
        bars = {"10-90 %": (p10, p90, 6, 0.2), "25-75 %": (p25, p75, 12, 0.3)}
        for label, (low, high, width, alpha) in bars.items():
            ax.vlines(steps, low, high, color=COLOURS[0], alpha=alpha, linewidth=width, label=label)
    else:
        ax.fill_between(steps, p10, p90, color=COLOURS[0], alpha=0.12, linewidth=0, label="10-90 %")
        ax.fill_between(steps, p25, p75, color=COLOURS[0], alpha=0.2, linewidth=0, label="25-75 %")
    mark = "o" if len(steps) <= 12 else ""
    ax.plot(steps, p99, color=COLOURS[1], linewidth=1.4, marker=mark, markersize=4, label="99 %")
    ax.plot(
        steps,
        p50,
        color=COLOURS[0],
        linewidth=1.2,
        linestyle="--",
        marker=mark,
        markersize=4,
        label="median",
    )


def _spans_decades(groups: list[Group]) -> bool:
    low, high = np.inf, 0.0
    for run in all_runs(groups):
        for name in ("response_length/mean", "response_length/max"):
            values = finite_points(run, name)[1]
            if len(values):
                low, high = min(low, values.min()), max(high, values.max())
    return low > 0 and high > 8 * low


def _share_axis(ax: Axes) -> None:
    top = max(1.08 * ax.dataLim.y1, 0.01)
    ax.set_ylim(0, top)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=1 if top < 0.05 else 0, symbol=" %"))


def draw_entropy(groups: list[Group]) -> Figure | None:
    if not has_metric(groups, "actor/entropy"):
        return None
    figure, (ax,) = new_figure("Entropy of the policy", [3.2])
    draw_metric(ax, groups, "actor/entropy", smooth=True)
    from_zero(ax)
    ax.set_ylabel("nat per token")
    iteration_axis(ax)
    ax.legend(loc="best") if is_single(groups) else legend_below(figure, ax)
    return figure


EXACTNESS = "Rollout against training probability"
# Panels of the picture of the update: title, unit of the axis, metric.
UPDATE_PANELS = (
    ("KL to the rollout policy, estimated (can be negative)", "nat per token", "actor/ppo_kl"),
    ("KL to the reference model, in the loss", "nat per token", "actor/kl_loss"),
    ("Ratios clipped", "share of tokens", "actor/pg_clipfrac"),
    ("Gradient norm", "norm", "actor/grad_norm"),
    ("Policy loss", "loss", "actor/pg_loss"),
    ("Learning rate", "rate", "actor/lr"),
    (EXACTNESS, "largest difference", "training/rollout_probs_diff_max"),
)
SMOOTH = ("actor/lr", "training/rollout_probs_diff_max")  # without noise that an average removes


def draw_update(groups: list[Group]) -> Figure | None:
    panels = [panel for panel in UPDATE_PANELS if has_metric(groups, panel[2])]
    if not panels:
        return None
    rows = (len(panels) + 1) // 2
    figure, axes = new_figure("Policy update", [2.5] * rows, columns=2)
    for ax, (title, unit, metric) in zip(axes, panels):
        draw_metric(ax, groups, metric, smooth=metric not in SMOOTH)
        ax.set_title(title)
        ax.set_ylabel(unit)
        if unit.startswith("share"):
            _share_axis(ax)
        elif title == EXACTNESS and ax.dataLim.y1 == 0:
            _say_zero(ax)
        elif title == "Learning rate":
            from_zero(ax)
            ax.yaxis.set_major_formatter("{x:g}")
        iteration_axis(ax)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    # Of the panel that most runs have.
    fullest = max(axes, key=lambda ax: len(ax.get_legend_handles_labels()[1]))
    legend_below(figure, fullest)
    return figure


def _say_zero(ax: Axes) -> None:
    """A line at 0 looks like an empty panel: words instead."""
    for line in ax.get_lines():
        line.set_visible(False)
    ax.set_yticks([0])
    ax.set_ylim(-1, 1)
    style = {"transform": ax.transAxes, "ha": "center", "va": "center", "color": MUTED}
    ax.text(0.5, 0.58, "0 in all iterations", **style)


def draw_throughput(groups: list[Group]) -> Figure | None:
    panels = [
        ("Throughput", "perf/throughput", "tokens/s per rank"),
        ("Resident memory, peak", "perf/max_memory_allocated_gb", "GiB"),
        ("Sequences preempted", "rollout/preemptions", "per iteration"),
    ]
    panels = [panel for panel in panels if _ever_positive(groups, panel[1])]
    if not panels:
        return None
    figure, axes = new_figure(panels[0][0], [3.0] + [1.5] * (len(panels) - 1))
    for ax, (title, metric, unit) in zip(axes, panels):
        draw_metric(ax, groups, metric, smooth=metric == "perf/throughput")
        if ax is not axes[0]:
            ax.set_title(title)
        from_zero(ax)
        ax.yaxis.set_major_formatter("{x:,g}")
        ax.set_ylabel(unit)
        iteration_axis(ax, label=ax is axes[len(panels) - 1])
    axes[0].legend(loc="best") if is_single(groups) else legend_below(figure, axes[0])
    return figure


def _ever_positive(groups: list[Group], metric: str) -> bool:
    return any((finite_points(run, metric)[1] > 0).any() for run in all_runs(groups))


Drawing = tuple[str, str, Callable[[list[Group]], Figure | None]]
# Name of the file, heading in the report, drawing. The first are of runs with adaptive layouts.
LAYOUT_FIGURES: tuple[Drawing, ...] = (
    ("layouts", "Active sequences and layout", draw_layouts),
    ("generation_time", "Predicted against measured", draw_generation_time),
    ("regret", "Adaptive, static and oracle layouts", draw_regret),
    ("forecasts", "Forecasts of the end of a generation", draw_forecasts),
)
FIGURES: tuple[Drawing, ...] = (
    ("reward", "Reward", draw_reward),
    ("evaluation", "Evaluation on held-out prompts", draw_evaluation),
    ("evaluation_sets", "Named held-out sets", draw_evaluation_sets),
    ("fine_tuning", "Loss of fine-tuning", draw_fine_tuning),
    ("response_length", "Response length", draw_response_length),
    ("length_histogram", "Distribution of response lengths", draw_length_histogram),
    ("entropy", "Entropy", draw_entropy),
    ("update", "Policy update", draw_update),
    ("step_time", "Time of an iteration", draw_step_time),
    ("throughput", "Throughput", draw_throughput),
    ("speculation", "Tokens per step by drafts", draw_speculation),
    ("calls", "Which ranks work at what", draw_calls),
    *LAYOUT_FIGURES,
)
