# SPDX-License-Identifier: Apache-2.0
"""Named held-out sets in the report of made-up runs.

python3 tools/tests/test_evaluation_sets_report.py. Exit code 77: packages missing.
"""
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

from test_report import ReportCase  # ends with 77 without packages

import numpy as np
from synthetic_run import make_numbers

from report.data import group_runs, load_runs
from report.evaluation_sets import draw_evaluation_sets, set_figures, set_points
from report.fine_tuning import draw_fine_tuning
from report.style import COLOURS
from taper_report import write_report


class EvaluationSets(ReportCase):
    """Iterations 1 and 11 begin with an evaluation, and iteration 20 ends with one."""

    def evaluated(self, name: str, seed: int) -> Path:
        numbers = make_numbers(20, seed)
        for figure, values in (("sums/avg@4", (0.25, 0.5)), ("sums/maj@4", (0.3, 0.6)), ("sums/pass@2", (0.4, 0.7)),
                               ("sums/pass@4", (0.5, 0.8)), ("gsm/avg@1", (0.1, 0.2)), ("gsm/response_length", (9, 8))):
            column = np.full(20, np.nan)
            column[[0, 10]] = values
            numbers.metrics[f"val/{figure}"] = column
        final = np.full(20, np.nan)
        final[19] = 0.75
        numbers.metrics["val/sums/final/avg@4"] = final
        return self.make_run(name, numbers)

    def test_points(self) -> None:
        run = load_runs([self.evaluated("run", 1)])[0].run
        self.assertEqual(set_figures(run), {"gsm": ["avg@1"], "sums": ["avg@4", "maj@4", "pass@4", "pass@2"]})
        steps, values = set_points(run, "sums", "avg@4")
        self.assertEqual((steps.tolist(), values.tolist()), ([0, 10, 20], [0.25, 0.5, 0.75]))
        self.assertEqual(set_points(run, "gsm", "avg@1")[0].tolist(), [0, 10])

    def test_pictures(self) -> None:
        one, two = self.evaluated("one", 1), self.evaluated("two", 2)
        figure = draw_evaluation_sets(group_runs(load_runs([one]), COLOURS))
        gsm, sums = figure.axes[:2]
        self.assertEqual([ax.get_title("left") for ax in (gsm, sums)], ["gsm", "sums"])
        self.assertEqual(len(sums.get_lines()), 3)  # avg@4, maj@4, pass@4
        both = draw_evaluation_sets(group_runs(load_runs([one, two]), COLOURS))
        self.assertEqual(len(both.axes[1].get_lines()), 2)  # avg@4 of each
        output = write_report(load_runs([one]), None)
        self.assertTrue((output / "evaluation_sets.png").exists())

    def test_losses_of_fine_tuning(self) -> None:
        numbers = make_numbers(20, 1)
        numbers.metrics["train/loss"] = np.linspace(3, 1, 20)
        held_out = np.full(20, np.nan)
        held_out[[4, 19]] = 2.5, 1.5
        numbers.metrics["val/loss"] = held_out
        runs = load_runs([self.make_run("tuned", numbers)])
        (ax,) = draw_fine_tuning(group_runs(runs, COLOURS)).axes
        self.assertEqual([len(line.get_xdata()) for line in ax.get_lines()], [20, 20, 2])
        self.assertTrue((write_report(runs, None) / "fine_tuning.png").exists())
        bare = load_runs([self.make_run("bare", make_numbers(20, 1))])
        self.assertIsNone(draw_fine_tuning(group_runs(bare, COLOURS)))

    def test_pairs_of_a_reward_model(self) -> None:
        numbers = make_numbers(20, 1)
        numbers.metrics["train/loss"] = np.linspace(0.7, 0.1, 20)
        numbers.metrics["train/pairs"] = np.full(20, 64)
        numbers.metrics["train/accuracy"] = np.linspace(0.5, 1, 20)
        loss, accuracy = draw_fine_tuning(group_runs(load_runs([self.make_run("pairs", numbers)]), COLOURS)).axes
        self.assertIn("preference pair", loss.get_ylabel())
        self.assertEqual(len(accuracy.get_lines()), 2)

    def test_nothing_to_show(self) -> None:
        bare = self.make_run("bare", make_numbers(20, 1))
        self.assertIsNone(draw_evaluation_sets(group_runs(load_runs([bare]), COLOURS)))


if __name__ == "__main__":
    unittest.main()
