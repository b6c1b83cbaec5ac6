# SPDX-License-Identifier: Apache-2.0
"""What run.h5 tells of the layouts of generations: accounts, changes."""
import re
from dataclasses import dataclass

import numpy as np

from report.data import finite_points
from taper_h5 import Run

CONSULTATIONS, SWITCHES, ACCOUNTS = "layout_consultations", "layout_switches", "layout_accounts"
ROOM = 0.02  # the oracle's gain counts in generations where it is at least this share


def group_count(layout: str) -> int:
    """Of "1x2", "2+1+1" or "32 groups of up to 2"."""
    if "x" in layout:
        return int(layout.split("x")[1])
    return int(layout.split()[0]) if " groups " in layout else layout.count("+") + 1


def uniform_name(degree: int, ranks: int) -> str:
    """The layout of equal groups of a degree; the degree alone where the ranks do not tell it."""
    return f"{degree}x{ranks // degree}" if ranks and ranks % degree == 0 else f"TP {degree}"


def ranks_of(run: Run) -> int:
    text = run.facts.get("machine/ranks", "")
    return int(text) if text.isdigit() else 0


def column(run: Run, table: str, name: str) -> np.ndarray:
    """A column of a table of records, (records): NaN where it is missing, empty without a table."""
    records = run.records.get(table, {})
    rows = len(records.get("step", ()))
    return np.asarray(records.get(name, np.full(rows, np.nan)))


def layouts_of(run: Run, table: str, name: str) -> np.ndarray:
    """A column of layouts, (records) str as in parameters and logs: "1x2" (degree 1, two replicas).

    "unknown" where one is missing.
    """
    records = run.records.get(table, {})
    texts = records.get(name, np.full(len(records.get("step", ())), ""))
    return np.array([text or "unknown" for text in texts.tolist()], str)


# A generation: iteration, and number in it (only dynamic sampling makes several).
Key = tuple[int, int]


def keys_of(run: Run, table: str) -> list[Key]:
    """The generation of each record of a table."""
    steps, numbers = column(run, table, "step"), column(run, table, "generation")
    numbers = np.maximum(np.nan_to_num(numbers), 0)  # of older records: unknown
    return list(zip(steps.astype(int).tolist(), numbers.astype(int).tolist()))


def key_name(run: Run, key: Key) -> str:
    iteration, number = key
    several = (iteration, 1) in keys_of(run, CONSULTATIONS)
    return f"iteration {iteration}" + (f", generation {number + 1}" if several else "")


def _rows_of(run: Run, table: str, key: Key) -> np.ndarray:
    return np.array([of == key for of in keys_of(run, table)], bool)


def is_adaptive(run: Run) -> bool:
    """Whether layouts were weighed against one another: not so in static mode."""
    return (
        len(column(run, ACCOUNTS, "step")) > 0
        or len(column(run, SWITCHES, "step")) > 0
        or bool((column(run, CONSULTATIONS, "candidates") > 0).any())
        or bool((finite_points(run, "adaptive/switches")[1] > 0).any())
    )


@dataclass(frozen=True)
class Accounts:
    """Generations replayed with their true lengths: (generations) each, seconds."""

    keys: list[Key]
    measured: np.ndarray
    predicted: np.ndarray  # the replayed time by what the generations before have taught
    replayed: np.ndarray  # with the changes that were made
    stayed: np.ndarray  # in the first layout
    oracle: np.ndarray
    static: dict[int, np.ndarray]  # by degree, ascending; never empty
    best_degree: int  # of the static layout that is fastest over all these generations
    ranks: int  # of the run, 0: unknown

    @property
    def steps(self) -> np.ndarray:
        """Iterations; one with several generations stands in it as often."""
        return np.array([iteration for iteration, _ in self.keys], np.int64)

    @property
    def best(self) -> np.ndarray:
        return self.static[self.best_degree]

    @property
    def best_name(self) -> str:
        return uniform_name(self.best_degree, self.ranks)

    @property
    def error(self) -> np.ndarray:
        """Of the predicted time against the measured one, relative, with its sign."""
        return self.predicted / self.measured - 1

    @property
    def room(self) -> np.ndarray:
        """Generations where the oracle gains ROOM or more of the best static time."""
        return self.best - self.oracle >= ROOM * self.best

    @property
    def share(self) -> float:
        """Of the oracle's gain over generations with room, a ratio of sums; NaN where none has."""
        return oracle_share([self])


def oracle_share(accounts: list[Accounts]) -> float:
    """Share of the oracle's gain over the generations with room of one or several runs."""
    room = sum(float((a.best - a.oracle)[a.room].sum()) for a in accounts)
    gain = sum(float((a.best - a.replayed)[a.room].sum()) for a in accounts)
    return gain / room if room > 0 else float("nan")


def read_accounts(run: Run) -> Accounts | None:
    """The accounts of a run; None where it has none.

    Generations whose account is incomplete are left out, and degrees that some of them lack.
    """
    names = ("measured_s", "predicted_s", "replayed_s", "stayed_s", "oracle_s")
    values = {name: column(run, ACCOUNTS, name) for name in names}
    found = (re.fullmatch(r"static_tp(\d+)_s", name) for name in run.records.get(ACCOUNTS, {}))
    degrees = sorted(int(match[1]) for match in found if match)
    complete = np.all([np.isfinite(v) for v in values.values()], axis=0)
    complete &= values["measured_s"] > 0
    static = {tp: column(run, ACCOUNTS, f"static_tp{tp}_s")[complete] for tp in degrees}
    static = {tp: seconds for tp, seconds in static.items() if np.isfinite(seconds).all()}
    if not complete.any() or not static:
        return None
    return Accounts(
        [key for key, whole in zip(keys_of(run, ACCOUNTS), complete) if whole],
        *(values[name][complete] for name in names),
        static,
        min(static, key=lambda tp: static[tp].sum()),
        ranks_of(run),
    )


@dataclass(frozen=True)
class Switch:
    at: float  # s since the start of the generation
    to: str  # layout
    repack: bool
    done: bool
    predicted: float  # s
    measured: float  # s


@dataclass(frozen=True)
class Generation:
    """One generation as its consultations saw it."""

    times: np.ndarray  # (consultations) s since its start, ascending
    running: np.ndarray  # (consultations) sequences
    alive: np.ndarray  # (consultations) sequences, waiting ones included
    switches: list[Switch]
    spans: list[tuple[float, float, str]]  # begin and end in s, layout
    end: float  # s


def read_switches(run: Run, key: Key | None = None) -> list[Switch]:
    """The changes that the leaders agreed upon, in their order; of all generations or of one."""
    names = ("at_s", "repack", "done", "predicted_s", "time_s")
    columns = (column(run, SWITCHES, name) for name in names)
    rows = zip(keys_of(run, SWITCHES), layouts_of(run, SWITCHES, "to").tolist(), *columns)
    return [
        Switch(at, to, repack == 1, done == 1, predicted, measured)
        for of, to, at, repack, done, predicted, measured in rows
        if key is None or of == key
    ]


def read_generation(run: Run, key: Key) -> Generation:
    """A generation that has consultations."""
    at = np.flatnonzero(_rows_of(run, CONSULTATIONS, key))
    at = at[np.argsort(column(run, CONSULTATIONS, "elapsed_s")[at], kind="stable")]
    names = ("elapsed_s", "alive", "waiting")
    times, alive, waiting = (column(run, CONSULTATIONS, name)[at] for name in names)
    layouts = layouts_of(run, CONSULTATIONS, "layout")[at].tolist()
    made = [switch for switch in read_switches(run, key) if np.isfinite(switch.at)]
    switches = sorted(made, key=lambda switch: switch.at)
    measured = column(run, ACCOUNTS, "measured_s")[_rows_of(run, ACCOUNTS, key)]
    ends = [times[-1], *measured, *(switch.at + switch.measured for switch in switches)]
    end = max(float(np.nanmax(ends)), 1e-6)  # an axis needs a width
    changes = [(switch.at, switch.to) for switch in switches if switch.done]
    spans = _spans(changes or list(zip(times, layouts)), layouts[0], end)
    return Generation(times, alive - np.nan_to_num(waiting), alive, switches, spans, end)


def _spans(
    changes: list[tuple[float, str]], first: str, end: float
) -> list[tuple[float, float, str]]:
    """Stretches of one layout, from (time, layout) ascending; equal ones in a row are one."""
    spans = [(0.0, end, first)]
    for time, layout in changes:
        begin, _, before = spans[-1]
        if layout != before:
            spans[-1:] = [(begin, float(time), before), (float(time), end, layout)]
    return spans


def choose_generations(run: Run) -> dict[Key, list[str]]:
    """Generations worth a picture, at most three, ascending -> what each of them is chosen for."""
    keys = keys_of(run, CONSULTATIONS)
    if not keys or not is_adaptive(run):
        return {}
    chosen: dict[Key, list[str]] = {}
    seconds = dict(zip(keys, column(run, CONSULTATIONS, "elapsed_s").tolist()))
    accounts = read_accounts(run)
    if accounts is not None:
        pairs = zip(accounts.keys, accounts.measured.tolist())
        seconds |= {key: value for key, value in pairs if key in seconds}
        seen = np.array([key in seconds for key in accounts.keys])
        saved = np.where(seen, accounts.stayed - accounts.replayed, 0.0)
        if saved.max() > 0:
            chosen.setdefault(accounts.keys[saved.argmax()], []).append("largest saving")
    rows = zip(keys_of(run, SWITCHES), column(run, SWITCHES, "done"))
    done = [key for key, made in rows if made == 1 and key in seconds]
    if done:
        chosen.setdefault(done[-1], []).append("last switch")
    chosen.setdefault(max(seconds, key=seconds.__getitem__), []).append("longest")
    return dict(sorted(chosen.items()))
