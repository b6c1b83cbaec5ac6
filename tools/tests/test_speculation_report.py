# SPDX-License-Identifier: Apache-2.0
"""What the report tells of drafts, on made-up records.

python3 tools/tests/test_speculation_report.py. Exit code 77: packages missing.
"""
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

from test_report import ALL_PICTURES, ReportCase  # ends with 77 without packages

import numpy as np
from synthetic_layouts import write_rows
from synthetic_run import make_numbers, write_run

from report.data import group_runs, load_runs
from report.speculation import draw_speculation, right_by_iteration, tokens_by_batch
from report.style import COLOURS
from taper_report import make_report

# iteration, least batch, steps, sequences, drafted, accepted
BATCHES = ((1, 1, 10, 10, 20, 15), (1, 8, 4, 40, 0, 0), (2, 1, 20, 20, 40, 25), (2, 8, 4, 40, 8, 4))
# iteration, source, drafted, accepted
SOURCES = ((1, "self", 20, 15), (1, "run", 0, 0), (2, "self", 40, 20), (2, "run", 8, 4))


class SpeculationReport(ReportCase):
    def make_drafting_run(self) -> Path:
        run = self.make_run("drafts", make_numbers(2))
        batches = [
            {"step": s, "generation": 0, "least_batch": b, "steps": n, "sequences": q}
            | {"drafted": d, "accepted": a, "time_s": 0.1 * n}
            for s, b, n, q, d, a in BATCHES
        ]
        sources = [
            {"step": s, "generation": 0, "source": source, "drafted": d, "accepted": a}
            for s, source, d, a in SOURCES
        ]
        write_rows(run / "run.h5", "draft_batches", batches)
        write_rows(run / "run.h5", "draft_sources", sources)
        return run

    def test_shares(self) -> None:
        (group,) = group_runs(load_runs([self.make_drafting_run()]), COLOURS)
        batches = tokens_by_batch(group)
        self.assertEqual(batches.keys.tolist(), [1, 8])
        self.assertEqual(batches.share.tolist(), [40 / 30, 4 / 80])
        own, any_text = (right_by_iteration(group, source) for source in ("self", "run"))
        self.assertEqual(own.share.tolist(), [0.75, 0.5])
        self.assertTrue(np.isnan(any_text.share[0]))
        self.assertEqual(any_text.share[1], 0.5)
        self.assertEqual(len(right_by_iteration(group, "prompt").keys), 0)

    def test_picture(self) -> None:
        (group,) = group_runs(load_runs([self.make_drafting_run()]), COLOURS)
        above, below = draw_speculation([group]).axes
        np.testing.assert_allclose(above.lines[0].get_ydata(), [1 + 40 / 30, 1.05])
        self.assertEqual([line.get_label() for line in below.lines], [
            "the sequence itself (60 drafted)", "any response (8 drafted)"])

    def test_pages(self) -> None:
        output = make_report([self.make_drafting_run()], self.root / "out")
        self.check_pages(output, ALL_PICTURES | {"speculation.png"})

    def test_nothing_to_show(self) -> None:
        groups = group_runs(load_runs([self.make_run("plain", make_numbers(2))]), COLOURS)
        self.assertIsNone(draw_speculation(groups))


if __name__ == "__main__":
    unittest.main()
