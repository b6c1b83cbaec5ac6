# SPDX-License-Identifier: Apache-2.0
"""Reads what `taper train` writes: run.h5, rollouts/*.h5, metrics.jsonl; and `taper profile`: profile.h5.

The schema is in doc/results-schema.md.

    from taper_h5 import read_run
    run = read_run("out/run.h5")
    print(run.steps, run.metrics["critic/score/mean"])

Needs h5py and numpy. Bad files raise ReadError with the name of the file in the message. The files
are replaced by renaming, so they can be read while the run goes on.
"""
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

try:
    import h5py
    import numpy as np
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"taper_h5 needs {missing.name}: pip install h5py numpy, or use the environment that "
        'eval "$(cmake/deps/install.sh --python)" names in TAPER_PYTHON',
        name=missing.name,
    ) from missing

FORMAT_VERSIONS = {"taper-run": 2, "taper-rollouts": 1, "taper-profile": 2}
OLDEST_VERSIONS = {**FORMAT_VERSIONS, "taper-run": 1}
# Columns of records whose values are layouts: codes in run files of version 1.
LAYOUT_COLUMNS = {
    "layout_consultations": ("layout", "plan_layout"),
    "layout_prices": ("layout",),
    "layout_switches": ("from", "to"),
}
FINISH_NAMES = ("eos", "stop", "length", "abort")  # by code of Rollouts.finish


class ReadError(Exception):
    """ "file: problem (why) what to do"."""


@dataclass(frozen=True)
class Run:
    """One run. Every table has the iterations of its rows beside it: tables may differ in rows."""

    path: Path
    config: str = ""  # the parameters as text (YAML), defaults included
    facts: dict[str, str] = field(
        default_factory=dict
    )  # "created", "build/compiler", "machine/host", ...
    steps: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # (rows) of metrics
    metrics: dict[str, np.ndarray] = field(
        default_factory=dict
    )  # name -> (rows) f64, NaN: not measured
    units: dict[str, str] = field(default_factory=dict)  # full path of a dataset -> unit
    timing_steps: np.ndarray = field(
        default_factory=lambda: np.empty(0, np.int64)
    )  # (rows) of timing
    timing: dict[str, np.ndarray] = field(
        default_factory=dict
    )  # phase -> (rows, 3) s: min, mean, max over ranks
    length_steps: np.ndarray = field(
        default_factory=lambda: np.empty(0, np.int64)
    )  # (rows) of lengths
    lengths: np.ndarray = field(
        default_factory=lambda: np.empty((0, 0), np.int32)
    )  # (rows, samples) tokens, -1: none
    records: dict[str, dict[str, np.ndarray]] = field(
        default_factory=dict
    )  # table -> column (or "step") -> (rows) i64, f64 or str: layouts are "2x1", "2+1+1"


@dataclass(frozen=True)
class Rollouts:
    """All samples of one iteration, ordered by (group, sample).

    Per-token entries are lists of arrays, one a sample: tokens[i][:prompt_length[i]] is the prompt
    of sample i, tokens[i][prompt_length[i]:] its response.
    """

    path: Path
    iteration: int
    attributes: dict[str, str]  # of the file, e.g. git_hash
    reward_names: list[str]  # (components)
    group: np.ndarray  # (samples) i64, which prompt of the iteration
    sample: np.ndarray  # (samples) i32, which sample of the prompt
    prompt_length: np.ndarray  # (samples) i32, tokens
    response_length: np.ndarray  # (samples) i32, tokens
    advantage: np.ndarray  # (samples) f64
    finish: np.ndarray  # (samples) i8, index into FINISH_NAMES
    rewards: np.ndarray  # (samples, components) f32
    tokens: list[np.ndarray]  # (prompt + response) i32 each
    log_probs: list[np.ndarray]  # (response) f32 each, nat, at the rollout temperature
    kept_mass: list[np.ndarray]  # (response) f32 each, or empty where sampling was not truncated
    values: list[np.ndarray]  # (response) f32 each, by the critic, or empty without one
    layout: list[np.ndarray]  # (spans, 3) i32 each: first response token, TP degree, replica


def read_run(path: str | Path) -> Run:
    """Reads a run file."""
    path = Path(path)
    with _open(path, "taper-run") as file:
        facts = {name: _text(value) for name, value in file.attrs.items()}
        for group in ("build", "machine"):
            if group in file:
                facts |= {
                    f"{group}/{name}": _text(value) for name, value in file[group].attrs.items()
                }
        metrics = _read_table(file, "metrics", ())
        timing = _read_table(file, "timing", (3,))
        lengths = _read_table(file, "rollout", (-1,))
        return Run(
            path=path,
            config=_text(file["config"][()]) if "config" in file else "",
            facts=facts,
            units=_read_units(file),
            steps=metrics.pop("step"),
            metrics=metrics,
            timing_steps=timing.pop("step"),
            timing=timing,
            length_steps=lengths.pop("step"),
            lengths=lengths.get("response_length", np.empty((0, 0), np.int32)),
            records={
                name: _read_records(file, name, facts.get("machine/ranks", ""))
                for name, item in file.items()
                if isinstance(item, h5py.Group) and _text(item.attrs.get("kind", "")) == "records"
            },
        )


def read_rollouts(path: str | Path) -> Rollouts:
    """Reads the rollouts of one iteration."""
    path = Path(path)
    with _open(path, "taper-rollouts") as file:
        rows = len(file["group"])
        names = [_text(name) for name in file["reward_names"][()]]
        columns = {
            name: _read_column(path, file, name, rows)
            for name in (
                "group",
                "sample",
                "prompt_length",
                "response_length",
                "advantage",
                "finish",
            )
        }
        rewards = _read_column(path, file, "rewards", rows)
        if rewards.shape != (rows, len(names)):
            raise ReadError(
                f"{path}: /rewards is {rewards.shape} ({rows} samples, {len(names)} names); damaged file?"
            )
        ragged = {
            name: _read_ragged(path, file, name, rows)
            for name in ("tokens", "log_probs", "layout")
        }
        ragged |= {
            name: (
                _read_ragged(path, file, name, rows)
                if name in file
                else [np.empty(0, np.float32)] * rows
            )
            for name in ("kept_mass", "values")
        }
        return Rollouts(
            path=path,
            iteration=int(file.attrs["iteration"]),
            attributes={name: _text(value) for name, value in file.attrs.items()},
            reward_names=names,
            rewards=rewards,
            **columns,
            **ragged,
        )


@dataclass(frozen=True)
class Profile:
    """A latency profile. Times as stored: integers of ns, errors in millionths."""

    path: Path
    ranks: int
    measured_percent: int  # of the planned measuring; 100 is complete
    facts: dict[str, str]  # "model/layers", "machine/cpu", ...
    steps: dict[str, np.ndarray]  # column -> (points)
    moves: dict[str, np.ndarray]
    rendezvous: dict[str, np.ndarray]
    switching: dict[str, int]  # "weights_ns", ...
    fit_errors: dict[str, np.ndarray]  # column -> (degrees and classes)
    repeat_noise: dict[str, np.ndarray]


def read_profile(path: str | Path) -> Profile:
    path = Path(path)
    with _open(path, "taper-profile") as file:

        def table(group: str) -> dict[str, np.ndarray]:
            columns = {name: item[()] for name, item in _datasets(file[group]).items()}
            if len({len(values) for values in columns.values()}) > 1:
                raise ReadError(f"{path}: the columns of {group} differ in length (damaged file)")
            return columns

        facts = {
            f"{kind}/{name}": _text(value)
            for kind, group in file["/identity"].items()
            for name, value in group.attrs.items()
        }
        return Profile(
            path,
            int(file.attrs["ranks"]),
            int(file.attrs.get("measured_percent", 100)),
            facts,
            table("/steps"),
            table("/switching/moves"),
            table("/switching/rendezvous"),
            {name: int(value) for name, value in file["/switching"].attrs.items()},
            table("/fit_errors"),
            table("/repeat_noise"),
        )


def read_metrics_jsonl(path: str | Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Reads the log of record: (steps (rows) i64, name -> (rows) f64).

    Lines of one step are merged, a later value replaces an earlier one; NaN where a step lacks a
    metric. A last line without its newline is still being written and is left out.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"{path} cannot be read ({_reason(error)})") from error
    rows: dict[int, dict[str, float]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            step, values = _parse_line(line, f"{path}:{number}")
            rows.setdefault(step, {}).update(values)
    steps = sorted(rows)
    names = sorted({name for values in rows.values() for name in values})
    columns = {
        name: np.array([rows[step].get(name, np.nan) for step in steps], np.float64)
        for name in names
    }
    return np.array(steps, np.int64), columns


def valid_lengths(lengths: np.ndarray) -> np.ndarray:
    """The lengths in a (rows, samples) table, flat, without the -1 that fill its rows."""
    return lengths[lengths >= 0]


# --- details


def format_of(path: Path) -> str:
    """What kind of file of Taper's it is; empty where it is none."""
    try:
        with h5py.File(path, "r", locking=False) as file:
            return _text(file.attrs.get("format", ""))
    except OSError:
        return ""


@contextmanager
def _open(path: Path, kind: str) -> Iterator[h5py.File]:
    """An open file of the given format. What h5py throws inside becomes a ReadError."""
    if not path.is_file():
        reason = "it is a directory" if path.is_dir() else "no such file"
        raise ReadError(f"{path} cannot be read ({reason}); check the path")
    try:
        with h5py.File(path, "r", locking=False) as file:
            found = _text(file.attrs.get("format", ""))
            if found != kind:
                raise ReadError(
                    f"{path} is not a {kind} file (its format attribute is {found or 'missing'})"
                )
            version = int(file.attrs.get("format_version", 0))
            oldest, newest = OLDEST_VERSIONS[kind], FORMAT_VERSIONS[kind]
            if not oldest <= version <= newest:
                known = str(newest) if oldest == newest else f"{oldest} to {newest}"
                raise ReadError(f"{path} has format version {version} (these tools read {known})")
            yield file
    except KeyError as error:
        raise ReadError(
            f"{path} lacks a dataset ({error.args[0]}); damaged file, or another version?"
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise ReadError(
            f"{path} cannot be read as HDF5 ({_reason(error)}); damaged or cut off?"
        ) from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _text(value: object) -> str:
    """Strings and numbers of attributes and scalar datasets, of fixed or variable length."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode("utf-8", "replace")
    return str(value)


def _datasets(group: h5py.Group) -> dict[str, h5py.Dataset]:
    """All datasets below a group by their names relative to it ("timing_s/gen")."""
    found: dict[str, h5py.Dataset] = {}
    group.visititems(
        lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None
    )
    return found


def _read_table(file: h5py.File, group: str, cell: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Columns of one table, "step" among them; empty where it is absent.

    cell: shape of one entry, -1 is any.
    """
    if group not in file:
        return {"step": np.empty(0, np.int64)}
    columns = {name: _values(dataset) for name, dataset in _datasets(file[group]).items()}
    if "step" not in columns:
        raise ReadError(
            f"{file.filename}: /{group} has no step (the iteration of each row); damaged file?"
        )
    rows = len(columns["step"])
    for name, values in columns.items():
        wanted = (rows,) if name == "step" else (rows, *cell)
        fits = len(values.shape) == len(wanted) and all(
            w in (-1, s) for w, s in zip(wanted, values.shape)
        )
        if not fits:
            raise ReadError(
                f"{file.filename}: /{group}/{name} is {values.shape} ({wanted} expected); damaged file?"
            )
    return columns


def _values(dataset: h5py.Dataset) -> np.ndarray:
    """Numbers as they are, texts as an array of str."""
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    return np.asarray(dataset.asstr()[()], str) if is_text else dataset[()]


def _read_records(file: h5py.File, table: str, ranks: str) -> dict[str, np.ndarray]:
    """A table of records; layouts are texts, also where the file has codes."""
    columns = _read_table(file, table, ())
    for name in LAYOUT_COLUMNS.get(table, ()):
        if name in columns and columns[name].dtype.kind == "f":
            count = int(ranks) if ranks.isdigit() else 0
            columns[name] = np.array([_layout_of(code, count) for code in columns[name]], str)
    return columns


def _layout_of(code: float, ranks: int) -> str:
    """The text of a layout's code in run files of version 1, as of src/results/detail/OldRecords.cpp.

    A code of many or large groups says only their number and the largest degree; ranks (of the run,
    0: unknown) tell whether they are all alike.
    """
    if not np.isfinite(code) or code == 0:
        return ""
    if code > 0:
        degrees = str(int(code))
        alike = len(set(degrees)) == 1
        return f"{degrees[0]}x{len(degrees)}" if alike else "+".join(degrees)
    largest, count = divmod(int(-code), 1_000_000)
    if largest == 1 or count == 1 or count * largest == ranks:
        return f"{largest}x{count}"
    return f"{count} groups of up to {largest}"


def _read_units(file: h5py.File) -> dict[str, str]:
    return {
        f"/{name}": _text(item.attrs["units"])
        for name, item in _datasets(file).items()
        if "units" in item.attrs
    }


def _read_column(path: Path, file: h5py.File, name: str, rows: int) -> np.ndarray:
    values = file[name][()]
    if len(values) != rows:
        raise ReadError(f"{path}: /{name} has {len(values)} rows ({rows} samples); damaged file?")
    return values


def _read_ragged(path: Path, file: h5py.File, name: str, rows: int) -> list[np.ndarray]:
    values, offsets = file[f"{name}/values"][()], file[f"{name}/offsets"][()]
    fits = (
        len(offsets) == rows + 1
        and offsets[0] == 0
        and offsets[-1] == len(values)
        and (np.diff(offsets) >= 0).all()
    )
    if not fits:
        raise ReadError(f"{path}: /{name}/offsets do not fit /{name}/values (damaged file?)")
    return [values[begin:end] for begin, end in zip(offsets[:-1], offsets[1:])]


def _parse_line(line: str, where: str) -> tuple[int, dict[str, float]]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ReadError(f"{where}: not valid JSON ({error})") from error
    step = record.get("step") if isinstance(record, dict) else None
    if not isinstance(step, int) or isinstance(step, bool):
        raise ReadError(f'{where}: not a metrics line (an object with an integer "step" expected)')
    return step, {
        name: _number(value, name, where) for name, value in record.items() if name != "step"
    }


def _number(value: object, name: str, where: str) -> float:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    if plain or value in ("nan", "inf", "-inf"):  # JSON has no such numbers: they are strings
        return float(value)
    raise ReadError(f'{where}: "{name}" is {value!r} (a number or "nan", "inf", "-inf" expected)')
