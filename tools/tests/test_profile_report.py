# SPDX-License-Identifier: Apache-2.0
"""The reader and the report of a made-up latency profile.

python3 tools/tests/test_profile_report.py. Exit code 77: packages missing.
"""
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

try:
    import h5py
    import numpy as np

    from report.profile import (
        common_context,
        completeness,
        curves,
        decode_lines,
        draw_profile,
        profile_page,
        step_ms,
    )
    from taper_h5 import ReadError, read_profile
    from taper_report import main
except ModuleNotFoundError as missing:
    print(
        f"skipped: {missing} (set TAPER_PYTHON to an interpreter with h5py, numpy and matplotlib)"
    )
    sys.exit(77)


def write_profile(path: Path) -> None:
    """Two ranks; TP 2 takes two thirds of the time of TP 1."""
    rows = [
        (tp, 0, batch, batch, batch * each, round((1e6 + 2e4 * batch + each * batch) / (1 + tp / 2)))
        for tp in (1, 2)
        for batch in (1, 8, 32)
        for each in (64, 512)
    ] + [(tp, 0, 65, 1, 200, 9_000_000 // tp) for tp in (1, 2)]
    columns = ("tp", "pair", "new_tokens", "sequences", "context", "time_ns")
    with h5py.File(path, "w") as file:
        file.attrs.update(format="taper-profile", format_version=2, ranks=2)
        file.create_group("identity/model").attrs["layers"] = "4"
        for name, values in zip(columns, zip(*rows)):
            file[f"steps/{name}"] = np.array(values)
        for name, value in {"pair": 0, "latency_ns": 2000, "ps_per_byte": 500}.items():
            file[f"switching/moves/{name}"] = np.array([value])
        for name, value in {"ranks": 2, "ns": 7000}.items():
            file[f"switching/rendezvous/{name}"] = np.array([value])
        file["switching"].attrs.update(groups_ns=100, weights_ns=2000, graphs_ns=0)
        for table in ("fit_errors", "repeat_noise"):
            for name in ("tp", "pair", "p50", "p90", "p95", "max"):
                file[f"{table}/{name}"] = np.array([1, 2] if name == "tp" else [0, 0])


class ProfileReport(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="taper-test-")
        self.addCleanup(scratch.cleanup)
        self.path = Path(scratch.name) / "p.h5"
        write_profile(self.path)

    def test_all_that_was_written(self) -> None:
        profile = read_profile(self.path)
        self.assertEqual(profile.ranks, 2)
        self.assertEqual(profile.facts, {"model/layers": "4"})
        self.assertEqual(curves(profile), [(1, 0), (2, 0)])
        lines = decode_lines(profile, 2, 0)
        self.assertEqual(sorted(lines), [1, 8, 32])
        np.testing.assert_allclose(lines[8][0], [64, 512])
        self.assertEqual(common_context(profile), 256)
        at = step_ms(lines, 288)  # half way between 64 and 512
        np.testing.assert_allclose(at[0], [1, (1e6 + 2e4 + 288) / 2e6])

    def test_the_report(self) -> None:
        self.assertEqual(main([str(self.path)]), 0)
        output = self.path.with_name("p-report")
        self.assertEqual({p.name for p in output.iterdir()}, {"profile.png", "index.md", "index.html"})
        self.assertGreater((output / "profile.png").stat().st_size, 10000)
        text = (output / "index.md").read_text()
        self.assertTrue(text.startswith("# Latency profile p.h5\n"))
        self.assertIn("| decode step |", text)
        for part in ("2.0 us, 2.00 GB/s", "meeting of 2 ranks", "model/layers", "14 points"):
            self.assertIn(part, text)

    def test_the_legend_covers_no_bar(self) -> None:
        with h5py.File(self.path, "r+") as file:
            for table in ("fit_errors", "repeat_noise"):
                file[f"{table}/p50"][:], file[f"{table}/p90"][:] = (80_000, 220_000), (690_000, 650_000)
        figure = draw_profile(read_profile(self.path))
        figure.canvas.draw()
        ax = figure.axes[3]
        bars_end = ax.transData.transform((0, 69))[1]
        self.assertGreater(ax.get_legend().get_window_extent().y0, bars_end)

    def test_an_incomplete_profile_says_so(self) -> None:
        self.assertEqual(read_profile(self.path).measured_percent, 100)  # of a file without it
        self.assertEqual(completeness(read_profile(self.path)), "complete")
        with h5py.File(self.path, "r+") as file:
            file.attrs["measured_percent"] = 7
        self.assertIn("incomplete: 7 %", profile_page(read_profile(self.path)).lead)

    def test_two_classes_of_a_degree_have_names(self) -> None:
        with h5py.File(self.path, "r+") as file:
            file["steps/pair"][8:12] = 1
        profile = read_profile(self.path)
        self.assertEqual(curves(profile), [(1, 0), (2, 0), (2, 1)])
        self.assertEqual(len(profile_page(profile).pictures), 1)

    def test_damage_is_refused(self) -> None:
        with h5py.File(self.path, "r+") as file:
            del file["steps/context"]
            file["steps/context"] = np.array([1, 2])
        with self.assertRaisesRegex(ReadError, "differ in length"):
            read_profile(self.path)
        self.path.write_bytes(b"nothing")
        self.assertEqual(main([str(self.path)]), 2)


if __name__ == "__main__":
    unittest.main()
