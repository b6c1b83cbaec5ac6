# SPDX-License-Identifier: Apache-2.0
"""The picture of which ranks work at what, on made-up records.

python3 tools/tests/test_calls_report.py. Exit code 77: packages missing.
"""
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

from test_report import ALL_PICTURES, ReportCase  # ends with 77 without packages

import numpy as np
from synthetic_layouts import write_rows
from synthetic_run import make_numbers

from report.calls import draw_calls, shown_iterations
from report.data import group_runs, load_runs
from report.style import COLOURS
from taper_report import make_report

# call, first rank, ranks, start, end: the reference scores while a reward model judges
CALLS = (
    ("gen", 0, 4, 0.0, 1.0),
    ("reward_model", 2, 2, 1.1, 1.5),
    ("ref", 0, 2, 1.1, 1.6),
    ("update_actor", 0, 4, 1.7, 2.5),
)


class CallsReport(ReportCase):
    def make_placed_run(self, iterations: int = 4) -> Path:
        run = self.make_run("placed", make_numbers(iterations))
        rows = [
            {"step": s, "call": call, "first_rank": first, "ranks": ranks, "tp": 1, "dp": ranks}
            | {"start_s": start, "end_s": end, "busy_s": end - start}
            for s in range(1, iterations + 1)
            for call, first, ranks, start, end in CALLS
        ]
        write_rows(run / "run.h5", "calls", rows)
        return run

    def test_iterations(self) -> None:
        self.assertEqual(shown_iterations(np.array([1, 1, 2, 3, 4, 4])), [2, 3])
        self.assertEqual(shown_iterations(np.array([7, 7])), [7])

    def test_picture(self) -> None:
        (group,) = group_runs(load_runs([self.make_placed_run()]), COLOURS)
        axes = draw_calls([group]).axes
        self.assertEqual(
            [ax.get_title(loc="left") for ax in axes], ["iteration 2", "iteration 3"]
        )
        bars = [bar for container in axes[0].containers for bar in container]
        self.assertEqual(len(bars), len(CALLS))
        for bar, (_, first, ranks, start, end) in zip(bars, CALLS):
            self.assertAlmostEqual(bar.get_x(), start)
            self.assertAlmostEqual(bar.get_width(), end - start)
            self.assertAlmostEqual(bar.get_y() + bar.get_height() / 2, first + ranks / 2)
        names = [text.get_text() for text in axes[0].get_legend().get_texts()]
        self.assertEqual(sorted(names), sorted(call for call, *_ in CALLS))

    def test_pages(self) -> None:
        output = make_report([self.make_placed_run()], self.root / "out")
        self.check_pages(output, ALL_PICTURES | {"calls.png"})

    def test_nothing_to_show(self) -> None:
        groups = group_runs(load_runs([self.make_run("plain", make_numbers(2))]), COLOURS)
        self.assertIsNone(draw_calls(groups))


if __name__ == "__main__":
    unittest.main()
