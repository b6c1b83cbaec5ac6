# SPDX-License-Identifier: Apache-2.0
"""The figures of the summary: plain numbers by name."""
import math
from collections.abc import Callable

import numpy as np

from report.data import Group, NamedRun, all_runs, finite_points, is_fine_tuning, phase_table
from report.evaluation import evaluation_gain, evaluation_points, final_score, has_final, when
from report.fine_tuning_rows import FINE_TUNING_ROWS, loss_line
from report.layout_rows import LAYOUT_ROWS
from report.rows import Row, duration, exactness, fixed, label_of, percent, plain, signed
from reward_summary import window_sizes
from taper_h5 import Run, valid_lengths

STEP_SECONDS = ("timing_s/step", "perf/time_per_step")  # either says how long an iteration took


def reward_metric(run: Run) -> str:
    names = ("critic/score/mean", "critic/rewards/mean")
    return next((name for name in names if len(finite_points(run, name)[1])), names[0])


def measured(run: Run, metric: str) -> np.ndarray:
    return finite_points(run, metric)[1]


def _or_nan(values: np.ndarray, reduce: Callable[[np.ndarray], float]) -> float:
    return float(reduce(values)) if len(values) else math.nan


def first_iterations(run: Run) -> int:
    return window_sizes(len(measured(run, reward_metric(run))))[0]


def last_iterations(run: Run) -> int:
    return window_sizes(len(measured(run, reward_metric(run))))[1]


def first_reward(run: Run) -> float:
    return _or_nan(measured(run, reward_metric(run))[: first_iterations(run)], np.mean)


def last_reward(run: Run) -> float:
    return _or_nan(measured(run, reward_metric(run))[-last_iterations(run) :], np.mean)


def reward_gain(run: Run) -> float:
    return (
        last_reward(run) - first_reward(run)
        if len(measured(run, reward_metric(run))) > 1
        else math.nan
    )


def total_seconds(run: Run) -> float:
    for metric in STEP_SECONDS:
        if len(measured(run, metric)):
            return float(measured(run, metric).sum())
    phases = phase_table(run)[1]
    return float(sum(values[:, 1].sum() for values in phases.values())) if phases else math.nan


def seconds_per_iteration(run: Run) -> float:
    for metric in STEP_SECONDS:
        if len(measured(run, metric)):
            return float(np.median(measured(run, metric)))
    return math.nan


def results_share(run: Run) -> float:
    """Time spent on writing rollouts, metrics.jsonl and run.h5, as a share of all time."""
    parts = [measured(run, name) for name in ("timing_s/output", "timing_s/record")]
    if not all(len(part) for part in parts):
        return math.nan
    return float(sum(part.sum() for part in parts) / (total_seconds(run) + parts[1].sum()))


def response_tokens(run: Run) -> float:
    lengths = valid_lengths(run.lengths)
    return float(lengths.sum(dtype=np.int64)) if len(lengths) else math.nan


def generation_speed(run: Run) -> float:
    seconds = sum(phase_table(run)[1].get("gen", np.zeros((0, 3)))[:, 1])
    return response_tokens(run) / seconds if seconds > 0 else math.nan


def mean_length(run: Run) -> float:
    lengths = valid_lengths(run.lengths)
    return (
        float(lengths.mean())
        if len(lengths)
        else _or_nan(measured(run, "response_length/mean"), np.mean)
    )


def longest(run: Run) -> float:
    lengths = valid_lengths(run.lengths)
    return (
        float(lengths.max())
        if len(lengths)
        else _or_nan(measured(run, "response_length/max"), np.max)
    )


def _of(metric: str, reduce: Callable[[np.ndarray], float]) -> Callable[[Run], float]:
    return lambda run: _or_nan(measured(run, metric), reduce)


def _first(values: np.ndarray) -> float:
    return values[0]


def _final(values: np.ndarray) -> float:
    return values[-1]


def _evaluated(reduce: Callable[[np.ndarray], float]) -> Callable[[Run], float]:
    return lambda run: _or_nan(evaluation_points(run)[1], reduce)


def _evaluations(run: Run) -> float:
    return float(len(evaluation_points(run)[1]) or math.nan)


def _iterations(run: Run) -> float:
    return math.nan if is_fine_tuning(run) else float(len(run.steps))


ROWS = (
    Row("iterations", "iterations", "", _iterations, plain),
    *FINE_TUNING_ROWS,
    Row(
        "reward_first",
        "mean reward, first {} iterations",
        "",
        first_reward,
        fixed,
        first_iterations,
    ),
    Row("reward_last", "mean reward, last {} iterations", "", last_reward, fixed, last_iterations),
    Row("reward_gain", "difference", "", reward_gain, signed),
    Row("evaluations", "evaluations on held-out prompts", "", _evaluations, plain),
    Row("evaluation_first", "held-out score, first evaluation", "", _evaluated(_first), fixed),
    Row("evaluation_last", "held-out score, last evaluation", "", _evaluated(_final), fixed),
    Row("evaluation_gain", "difference of held-out scores", "", evaluation_gain, signed),
    Row("evaluation_best", "held-out score, best evaluation", "", _evaluated(np.max), fixed),
    Row("evaluation_final", "held-out score of the final weights", "", final_score, fixed),
    Row(
        "probability_difference",
        "largest difference of rollout and training probability",
        "",
        _of("training/rollout_probs_diff_max", np.max),
        exactness,
    ),
    Row(
        "log_prob_difference",
        "largest difference of rollout and training log-prob",
        "nat",
        _of("training/rollout_log_probs_diff_max", np.max),
        exactness,
    ),
    Row(
        "responses",
        "responses",
        "",
        lambda run: float(len(valid_lengths(run.lengths)) or math.nan),
        plain,
    ),
    Row("response_tokens", "response tokens", "", response_tokens, plain),
    Row("response_length_mean", "mean response length", "tokens", mean_length, plain),
    Row("response_length_max", "longest response", "tokens", longest, plain),
    Row(
        "clip_ratio",
        "responses cut at the limit",
        "",
        _of("response_length/clip_ratio", np.mean),
        percent,
    ),
    Row("entropy_first", "entropy, first iteration", "nat", _of("actor/entropy", _first), plain),
    Row("entropy_last", "entropy, last iteration", "nat", _of("actor/entropy", _final), plain),
    Row("seconds", "time in iterations", "", total_seconds, duration),
    Row("seconds_per_iteration", "time of an iteration, median", "s", seconds_per_iteration, plain),
    Row("results_share", "writing rollouts, metrics and run.h5", "", results_share, percent),
    Row(
        "throughput",
        "throughput, mean",
        "tokens/s per rank",
        _of("perf/throughput", np.mean),
        plain,
    ),
    Row(
        "generation_speed",
        "response tokens per second of generation",
        "tokens/s",
        generation_speed,
        plain,
    ),
    Row("preemptions", "sequences preempted", "", _of("rollout/preemptions", np.sum), plain),
    Row(
        "memory_gb",
        "resident memory, peak",
        "GiB",
        _of("perf/max_memory_allocated_gb", np.max),
        plain,
    ),
    *LAYOUT_ROWS,
)


def summarize(run: Run) -> dict[str, float]:
    """All figures of one run by key; NaN where they cannot be said. <key>_iterations: how many it is of."""
    figures = {row.key: row.compute(run) for row in ROWS}
    return figures | {f"{row.key}_iterations": float(row.count(run)) for row in ROWS if row.count}


def console_lines(named: NamedRun) -> list[str]:
    """What a run has come to, in a line or two."""
    run, lines = named.run, []
    if not math.isnan(reward_gain(run)):
        lines.append(
            f"{named.name}: mean reward {first_reward(run):.3f} in the first {first_iterations(run)} of "
            f"{len(run.steps)} iterations, {last_reward(run):.3f} in the last {last_iterations(run)} "
            f"({reward_gain(run):+.3f})"
        )
    trained, scores = evaluation_points(run)
    if len(scores):
        last = "final weights" if has_final(run) else when(trained[-1])
        first = f"{scores[0]:.3f} {when(trained[0])}, " if len(scores) > 1 else ""
        lines.append(f"{named.name}: held-out score {first}{scores[-1]:.3f} ({last})")
    if is_fine_tuning(run) and loss_line(run):
        lines.append(f"{named.name}: {loss_line(run)}")
    return lines


def summary_table(groups: list[Group]) -> list[list[str]]:
    """Head and rows as text: a column a run, mean and standard deviation after seeds."""
    head = [""]
    for group in groups:
        head += [named.name for named in group.members]
        if len(group.members) > 1:
            head.append(f"mean of {group.label}")
    table = [head]
    for row in ROWS:
        cells = [cell for group in groups for cell in _cells(row, group)]
        if any(cell != "n/a" for cell in cells):
            table.append([label_of(row, all_runs(groups)), *cells])
    return table


def _cells(row: Row, group: Group) -> list[str]:
    values = [row.compute(run) for run in group.runs]
    cells = [row.write(value) for value in values]
    if len(values) > 1:
        known = np.array([value for value in values if math.isfinite(value)])
        if len(known) > 1:
            spread = row.write(float(known.std(ddof=1))).lstrip("+").removesuffix(" (exact)")
            cells.append(f"{row.write(float(known.mean()))} ± {spread}")
        else:
            cells.append("n/a")
    return cells


def phase_rows(named: NamedRun) -> list[list[str]]:
    """Head and rows as text: how the time of a run was spent."""
    phases = phase_table(named.run)[1]
    total = sum(values[:, 1].sum() for values in phases.values())
    table = [["phase", "total", "share", "per iteration (s)", "fastest to slowest rank (s)"]]
    for name, values in phases.items():
        spent = values[:, 1].sum()
        low, mean, high = (plain(float(seconds)) for seconds in values.mean(axis=0))
        ranks = f"{low} to {high}" if name in named.run.timing else "n/a"
        table.append([name, duration(float(spent)), f"{100 * spent / total:.1f} %", mean, ranks])
    return table if len(table) > 1 else []


def time_shares(run: Run) -> dict[str, float]:
    """Phase -> share of the time in iterations."""
    phases = phase_table(run)[1]
    total = sum(values[:, 1].sum() for values in phases.values())
    return (
        {name: float(values[:, 1].sum() / total) for name, values in phases.items()}
        if total > 0
        else {}
    )
