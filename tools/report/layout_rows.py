# SPDX-License-Identifier: Apache-2.0
"""The figures of the summary that tell of adaptive layouts. NaN in runs of one fixed layout."""
import math
from collections.abc import Callable

import numpy as np

from report.data import finite_points
from report.layouts import (
    ACCOUNTS,
    ROOM,
    SWITCHES,
    Accounts,
    column,
    is_adaptive,
    read_accounts,
)
from report.rows import Row, percent, plain
from taper_h5 import Run


def switches_by_iteration(run: Run) -> np.ndarray:
    """Changes that were carried out, (iterations): from the metrics, else from the records."""
    counts = finite_points(run, "adaptive/switches")[1]
    if len(counts):
        return counts
    done = column(run, SWITCHES, "step")[column(run, SWITCHES, "done") == 1]
    return np.array([(done == step).sum() for step in run.steps])


def switches(run: Run) -> float:
    return float(switches_by_iteration(run).sum()) if is_adaptive(run) else math.nan


def iterations_with_switch(run: Run) -> float:
    return float((switches_by_iteration(run) > 0).mean()) if is_adaptive(run) else math.nan


def share_of_time(run: Run, part: str, wholes: tuple[str, ...]) -> float:
    """Sum of a metric by that of the first of wholes that is there, over iterations with both."""
    if not is_adaptive(run):
        return math.nan
    parts = dict(zip(*finite_points(run, part)))
    for whole in wholes:
        totals = dict(zip(*finite_points(run, whole)))
        both = parts.keys() & totals.keys()
        total = sum(totals[step] for step in both)
        if total > 0:
            return float(sum(parts[step] for step in both) / total)
    return math.nan


def switching_share(run: Run) -> float:
    return share_of_time(run, "adaptive/switch_time_s", ("timing_s/step", "perf/time_per_step"))


def consultation_share(run: Run) -> float:
    return share_of_time(run, "adaptive/consult_time_s", ("timing_s/gen",))


def _account(compute: Callable[[Accounts], float]) -> Callable[[Run], float]:
    def of_run(run: Run) -> float:
        accounts = read_accounts(run)
        return float(compute(accounts)) if accounts is not None else math.nan

    return of_run


def _total(name: str) -> Callable[[Run], float]:
    """Sum of a column of the accounts."""

    def of_run(run: Run) -> float:
        values = column(run, ACCOUNTS, name)
        values = values[np.isfinite(values)]
        return float(values.sum()) if len(values) else math.nan

    return of_run


def saving(accounts: Accounts) -> float:
    return 1 - accounts.replayed.sum() / accounts.best.sum()


def oracle_saving(accounts: Accounts) -> float:
    return 1 - accounts.oracle.sum() / accounts.best.sum()


def error_quantile(accounts: Accounts, quantile: float) -> float:
    return float(np.quantile(np.abs(accounts.error), quantile))


LAYOUT_ROWS = (
    Row("switches", "switches of layout", "", switches, plain),
    Row("switch_iterations", "iterations with a switch", "", iterations_with_switch, percent),
    Row(
        "adaptive_saving",
        "generation time saved against the best static layout, by replay",
        "",
        _account(saving),
        percent,
    ),
    Row("oracle_saving", "the same with the oracle", "", _account(oracle_saving), percent),
    Row(
        "oracle_share",
        f"share of the oracle's gain, where it is {100 * ROOM:g} % or more",
        "",
        _account(lambda accounts: accounts.share),
        percent,
    ),
    Row(
        "false_triggers",
        "switches that lost time (false triggers)",
        "",
        _total("false_triggers"),
        plain,
    ),
    Row("false_loss", "time lost by them", "s", _total("false_loss_s"), plain),
    Row("switching_share", "share of iterations spent on switches", "", switching_share, percent),
    Row(
        "consultation_share",
        "share of generation spent on consultations and the choice of its first layout",
        "",
        consultation_share,
        percent,
    ),
    Row(
        "generation_error_median",
        "error of predicted generation time, median",
        "",
        _account(lambda accounts: error_quantile(accounts, 0.5)),
        percent,
    ),
    Row(
        "generation_error_90",
        "error of predicted generation time, 90 %",
        "",
        _account(lambda accounts: error_quantile(accounts, 0.9)),
        percent,
    ),
)
