# SPDX-License-Identifier: Apache-2.0
"""Event files for TensorBoard, written without TensorFlow (standard library and numpy only).

An event file is a sequence of records: length (u64), masked CRC-32C of the length, content, masked
CRC-32C of the content. The content is a protobuf `Event`: wall_time = 1 (f64), step = 2 (i64),
file_version = 3 (text), summary = 5; a `Summary` repeats value = 1: tag = 1 (text),
simple_value = 2 (f32).

Equal runs give equal bytes, and a run that has gone on gives its old bytes and more: TensorBoard
can watch a file that is written again and again.
"""
import calendar
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from report.data import finite_points
from taper_h5 import Run

FILE_NAME = "events.out.tfevents.0000000000.taper"  # the name says so; one file a run


def crc32c(data: bytes) -> int:
    """Castagnoli's CRC, as in iSCSI."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _make_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _make_table()


def masked_crc(data: bytes) -> bytes:
    """As TFRecord stores it: rotated and shifted, so that a CRC of CRCs stays sound."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + masked_crc(length) + content + masked_crc(content)


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF  # negative numbers as protobuf has them
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _message(field: int, content: bytes) -> bytes:
    """A text or message inside another one."""
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _wall_time(seconds: float) -> bytes:
    return b"\x09" + struct.pack("<d", seconds)


def version_event(seconds: float) -> bytes:
    return _wall_time(seconds) + _message(3, b"brain.Event:2")


def scalars_event(seconds: float, step: int, values: dict[str, float]) -> bytes:
    """All metrics of an iteration in one event."""
    summary = b"".join(
        _message(1, _message(1, tag.encode()) + b"\x15" + struct.pack("<f", _as_float32(value)))
        for tag, value in values.items()
    )
    return _wall_time(seconds) + b"\x10" + _varint(step) + _message(5, summary)


def _as_float32(value: float) -> float:
    """What is too large for a float becomes infinite."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def start_of(run: Run) -> float:
    """Seconds since 1970 at which the run was created; 0 where it does not say."""
    try:
        return float(calendar.timegm(time.strptime(run.facts["created"], "%Y-%m-%dT%H:%M:%SZ")))
    except (KeyError, ValueError):
        return 0.0


def times_of(run: Run) -> np.ndarray:
    """(rows) seconds since 1970: the start and the time in iterations up to each."""
    seconds = np.zeros(len(run.steps))
    for name in ("timing_s/step", "perf/time_per_step"):
        if len(finite_points(run, name)[1]):
            seconds = np.nan_to_num(run.metrics[name])
            break
    return start_of(run) + np.cumsum(seconds)


def events(run: Run) -> Iterator[bytes]:
    """One event a row, with the metrics that were measured; the first says the version."""
    yield version_event(start_of(run))
    for row, (step, at) in enumerate(zip(run.steps, times_of(run))):
        values = {name: column[row] for name, column in sorted(run.metrics.items())}
        measured = {name: float(value) for name, value in values.items() if not np.isnan(value)}
        if measured:
            yield scalars_event(float(at), int(step), measured)


def event_file(run: Run) -> bytes:
    return b"".join(record(event) for event in events(run))


def event_path(directory: Path, name: str) -> Path:
    """Where the events of a run stand: TensorBoard calls runs by their directories."""
    return directory / name / FILE_NAME
