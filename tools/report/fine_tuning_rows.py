# SPDX-License-Identifier: Apache-2.0
"""The figures of the summary that tell of fine-tuning. NaN in runs of taper train."""
import math
from collections.abc import Callable

import numpy as np

from report.data import finite_points, is_fine_tuning, trained_steps
from report.rows import Row, fixed, plain
from report.words import count_text
from taper_h5 import Run

FIRST, LAST = 0, -1


def _steps(run: Run) -> float:
    return float(len(trained_steps(run))) if is_fine_tuning(run) else math.nan


def _at(metric: str, index: int) -> Callable[[Run], float]:
    """The first or the last value; the last of a single one cannot be said."""

    def value(run: Run) -> float:
        values = finite_points(run, metric)[1] if is_fine_tuning(run) else np.empty(0)
        least = 1 if index == FIRST else 2
        return float(values[index]) if len(values) >= least else math.nan

    return value


def _best_held_out(run: Run) -> float:
    values = finite_points(run, "val/loss")[1] if is_fine_tuning(run) else np.empty(0)
    return float(values.min()) if len(values) > 1 else math.nan


def loss_line(run: Run) -> str:
    """What the run has come to, "" where it has measured nothing."""
    parts = []
    for words, metric in (("training loss", "train/loss"), ("held-out loss", "val/loss")):
        steps, values = finite_points(run, metric)
        if len(values) == 0:
            continue
        last = f", {values[-1]:.3f} {_when(metric, steps[-1])}" if len(values) > 1 else ""
        parts.append(f"{words} {values[0]:.3f} {_when(metric, steps[0])}{last}")
    return "; ".join(parts)


def _when(metric: str, step: int) -> str:
    """Held-out losses are measured behind a step, training losses in it."""
    if metric.startswith("train/"):
        return f"in step {step}"
    return "before training" if step == 0 else f"after {count_text(step, 'step')}"


FINE_TUNING_ROWS = (
    Row("steps", "steps", "", _steps, plain),
    Row("train_loss_first", "training loss, first step", "nat", _at("train/loss", FIRST), fixed),
    Row("train_loss_last", "training loss, last step", "nat", _at("train/loss", LAST), fixed),
    Row("val_loss_first", "held-out loss, first measured", "nat", _at("val/loss", FIRST), fixed),
    Row("val_loss_last", "held-out loss, last measured", "nat", _at("val/loss", LAST), fixed),
    Row("val_loss_best", "held-out loss, smallest", "nat", _best_held_out, fixed),
    Row(
        "train_accuracy_last",
        "training pairs judged right, last step",
        "",
        _at("train/accuracy", LAST),
        fixed,
    ),
    Row(
        "val_accuracy_last",
        "held-out pairs judged right, last measured",
        "",
        _at("val/accuracy", LAST),
        fixed,
    ),
)
