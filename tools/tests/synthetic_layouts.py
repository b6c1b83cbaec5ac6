# SPDX-License-Identifier: Apache-2.0
"""Made-up layout records of run.h5: generations that merge their groups as sequences end."""
from pathlib import Path

import numpy as np
from synthetic_run import make_numbers, write_records, write_run

# Layouts on the way from many small groups to one, and the share of the sequences that is left when
# each is taken.
CHAINS = {
    2: (("1x2", 1.0), ("2x1", 0.12)),
    8: (("1x8", 1.0), ("2x4", 0.3), ("4+2+2", 0.1), ("8x1", 0.02)),
}
Row = dict[str, str | int | float]  # one record by columns
LOSING = 7  # every so many generations' last switch loses time


def write_layout_run(
    path: Path, iterations: int, ranks: int = 2, seed: int = 1, rate: float = 2e-4
) -> None:
    """A whole run.h5 with metrics and with tables of layouts."""
    numbers = make_numbers(iterations, seed, rate)
    rows: dict[str, list[Row]] = {name: [] for name in ("c", "s", "a")}
    rng = np.random.default_rng(seed)
    for step in numbers.steps:
        add_generation(rows, int(step), rng, ranks)
    tables = {"c": "layout_consultations", "s": "layout_switches", "a": "layout_accounts"}
    switch_time = np.zeros(iterations)
    count = np.zeros(iterations)
    for row in rows["s"]:
        switch_time[int(row["step"]) - 1] += row["time_s"]
        count[int(row["step"]) - 1] += row["done"]
    numbers.metrics["adaptive/switches"] = count
    numbers.metrics["adaptive/switch_time_s"] = switch_time
    numbers.metrics["adaptive/consult_time_s"] = 0.0004 * numbers.metrics["timing_s/gen"]
    write_run(path, numbers)
    for key, name in tables.items():
        write_rows(path, name, rows[key])


def write_rows(path: Path, table: str, rows: list[Row]) -> None:
    """Rows with the same columns, "step" among them; no rows, no table.

    Columns are of texts, integers or numbers, as their values are.
    """
    if rows:
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        write_records(path, table, columns.pop("step"), columns)


def add_generation(
    rows: dict[str, list[Row]], step: int, rng: np.random.Generator, ranks: int
) -> None:
    total, capacity = 64 * ranks, 48 * ranks
    ends = np.sort(np.minimum(rng.lognormal(0.6, 0.75, total), 14.0)) * (0.8 + 0.004 * step)
    changes = []
    layouts = CHAINS[ranks] if step % 4 else CHAINS[ranks][:1]
    for layout, left in layouts[1:]:
        changes.append((float(ends[int((1 - left) * total) - 1]) + 0.02, layout))
    layout = layouts[0][0]
    for k, time in enumerate(np.arange(0.05, ends[-1], 0.05)):
        alive = int((ends > time).sum())
        layout = max([change for change in changes if change[0] < time], default=(0.0, layout))[1]
        rows["c"].append(
            {
                "step": step,
                "consultation": k,
                "elapsed_s": float(time),
                "layout": layout,
                "alive": alive,
                "waiting": max(0, total - capacity - (total - alive)),
                "finished": total - alive,
                "candidates": 3,
            }
        )
    static = {1: ends[-1] * 1.0, ranks: ends[-1] * (1.06 + 0.05 * rng.random())}
    if ranks > 2:
        static[2] = ends[-1] * (1.01 + 0.03 * rng.random())
    room = 0.09 * rng.random() if len(changes) else 0.01 * rng.random()
    oracle = min(static.values()) * (1 - room)
    lost = bool(changes) and step % LOSING == 0
    replayed = static[1] * (1.004 if lost else 1 - 0.95 * room if changes else 1.0)
    for (time, to), before in zip(changes, [layouts[0][0], *(layout for _, layout in changes)]):
        cost = 0.004 * np.exp(rng.normal(0, 0.8))
        rows["s"].append(
            {
                "step": step,
                "at_s": time,
                "from": before,
                "to": to,
                "sequences": int((ends > time).sum()),
                "repack": 0,
                "done": 1,
                "predicted_s": cost,
                "time_s": cost * np.exp(rng.normal(0.1, 0.3)),
            }
        )
    forecasts = len(ends)
    rows["a"].append(
        {
            "step": step,
            "measured_s": replayed * (1 + rng.normal(0.012, 0.02)),
            "predicted_s": replayed * 1.004,
            "replayed_s": replayed,
            "stayed_s": static[1],
            "oracle_s": oracle,
            "switches": len(changes),
            "false_triggers": int(lost),
            "false_loss_s": max(replayed - static[1], 0.0) if lost else 0.0,
            "forecasts": forecasts,
            "below_low": int(rng.binomial(forecasts, 0.17)),
            "below_mean": int(rng.binomial(forecasts, 0.55)),
            "below_high": int(rng.binomial(forecasts, 0.83)),
            **{f"static_tp{tp}_s": seconds for tp, seconds in static.items()},
        }
    )
