# SPDX-License-Identifier: Apache-2.0
"""Event files against their format, and as TensorBoard's own loader sees them where that is
installed: here, or in the interpreter that TAPER_TENSORBOARD_PYTHON names.

python3 tools/tests/test_tensorboard.py. Exit code 77: packages missing.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

try:
    import numpy as np
    from synthetic_run import Synthetic, make_numbers, write_run

    from report.tensorboard import (
        crc32c,
        event_file,
        masked_crc,
        record,
        scalars_event,
        times_of,
    )
    from taper_h5 import read_run
    from taper_report import main
except ModuleNotFoundError as missing:
    print(f"skipped: {missing} (set TAPER_PYTHON to an interpreter with h5py and numpy)")
    sys.exit(77)

# Prints tag -> [(step, wall time, value)] of a directory, by TensorBoard's reader of event files.
LOADER = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
events.Reload()
print(json.dumps({t: [(e.step, e.wall_time, e.value) for e in events.Scalars(t)]
                  for t in events.Tags()["scalars"]}))
"""


def loader() -> str | None:
    """An interpreter that has TensorBoard."""
    for python in (os.environ.get("TAPER_TENSORBOARD_PYTHON"), sys.executable):
        if python and not subprocess.run(
            [python, "-c", "import tensorboard"], capture_output=True, check=False
        ).returncode:
            return python
    return None


class Format(unittest.TestCase):
    def test_checksums(self) -> None:
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)  # the check value of CRC-32C
        self.assertEqual(crc32c(bytes(32)), 0x8A9136AA)  # RFC 3720, B.4
        self.assertEqual(crc32c(b"\xff" * 32), 0x62A8AB43)
        crc = 0xE3069283
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        self.assertEqual(masked_crc(b"123456789"), struct.pack("<I", masked))

    def test_a_record_has_its_length_and_two_checksums(self) -> None:
        content = b"abc"
        length = struct.pack("<Q", 3)
        self.assertEqual(
            record(content), length + masked_crc(length) + content + masked_crc(content)
        )

    def test_an_event_is_the_message_that_protobuf_has(self) -> None:
        value = b"\x0a\x01a" + b"\x15" + struct.pack("<f", 0.5)  # tag, simple_value
        summary = b"\x0a" + bytes([len(value)]) + value
        expected = (
            b"\x09" + struct.pack("<d", 2.0) + b"\x10\xac\x02" + b"\x2a"
            + bytes([len(summary)]) + summary
        )
        self.assertEqual(scalars_event(2.0, 300, {"a": 0.5}), expected)


class EventFiles(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="taper-test-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def make_run(self, name: str, numbers: Synthetic) -> Path:
        write_run(self.root / name / "run.h5", numbers)
        return self.root / name

    def test_a_run_that_goes_on_appends(self) -> None:
        long = make_numbers(9)
        part = Synthetic(
            long.steps[:5], {k: v[:5] for k, v in long.metrics.items()}, {}, long.lengths[:5], ""
        )
        now = event_file(read_run(self.make_run("a", part) / "run.h5"))
        later = event_file(read_run(self.make_run("b", long) / "run.h5"))
        self.assertTrue(later.startswith(now))
        self.assertGreater(len(later), len(now))

    def test_the_loader_of_tensorboard_reads_them(self) -> None:
        python = loader()
        if python is None:
            self.skipTest("TensorBoard is not here (TAPER_TENSORBOARD_PYTHON may name a Python that has it)")
        numbers = make_numbers(12)
        numbers.metrics["critic/score/mean"][3] = np.nan
        numbers.metrics["actor/grad_norm"][4] = np.inf
        numbers.metrics["actor/lr"][5] = 1e300
        runs = [self.make_run("one", numbers), self.make_run("two", make_numbers(3))]
        self.assertEqual(main([*map(str, runs), "--tensorboard", str(self.root / "tb")]), 0)
        self.assertFalse((self.root / "one/report").exists())
        self.assertEqual(
            sorted(p.parent.name for p in (self.root / "tb").rglob("*tfevents*")), ["one", "two"]
        )
        seen = json.loads(
            subprocess.run(
                [python, "-c", LOADER, str(self.root / "tb/one")],
                capture_output=True, check=True, text=True,
            ).stdout
        )
        self.assertEqual(sorted(seen), sorted(numbers.metrics))
        times = times_of(read_run(runs[0] / "run.h5"))
        for name, column in numbers.metrics.items():
            measured = ~np.isnan(column)
            steps, wall, values = zip(*seen[name])
            self.assertEqual(list(steps), numbers.steps[measured].tolist(), name)
            np.testing.assert_allclose(wall, times[measured], rtol=0, atol=1e-6)
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(values, column[measured].astype(np.float32), name)


if __name__ == "__main__":
    unittest.main()
