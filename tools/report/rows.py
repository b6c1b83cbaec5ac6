# SPDX-License-Identifier: Apache-2.0
"""A figure of the summary, and how figures are written."""
import math
from collections.abc import Callable
from dataclasses import dataclass

from taper_h5 import Run


@dataclass(frozen=True)
class Row:
    key: str  # in summary.json
    label: str
    unit: str
    compute: Callable[[Run], float]  # NaN: cannot be said
    write: Callable[[float], str]
    count: Callable[[Run], int] | None = None  # of what "{}" in the label stands for


def label_of(row: Row, runs: list[Run]) -> str:
    """The label with the counts of these runs ("5", or "2 to 5") and the unit."""
    label = row.label
    if row.count is not None:
        said = [run for run in runs if math.isfinite(row.compute(run))] or runs
        counts = sorted({row.count(run) for run in said})
        label = label.format(" to ".join(dict.fromkeys(str(c) for c in (counts[0], counts[-1]))))
    return f"{label} ({row.unit})" if row.unit else label


def plain(value: float) -> str:
    """Four digits that count; whole numbers in full."""
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def signed(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:+.4f}"


def fixed(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.4f}"


def percent(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{100 * value:.2f} %"


def duration(seconds: float) -> str:
    if math.isnan(seconds):
        return "n/a"
    if seconds < 120:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return (
        f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d} h"
        if whole >= 3600
        else f"{whole // 60}:{whole % 60:02d} min"
    )


def exactness(value: float) -> str:
    return "0 (exact)" if value == 0 else plain(value)


def short_time(seconds: float) -> str:
    """Three digits in the unit that fits: 4.02 ms."""
    if not math.isfinite(seconds):
        return "n/a"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= 0.9995 * size:
            return f"{_digits(seconds / size)} {unit}"
    return "0 s" if seconds == 0 else f"{_digits(seconds * 1e6)} us"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
