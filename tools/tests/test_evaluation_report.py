# SPDX-License-Identifier: Apache-2.0
"""The scores on held-out prompts in the report of made-up runs.

python3 tools/tests/test_evaluation_report.py. Exit code 77: packages missing.
"""
import json
import math
import sys
import unittest
from dataclasses import replace
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

from test_report import ReportCase, only  # ends with 77 without packages

import matplotlib.pyplot as plt
import numpy as np
from synthetic_run import make_numbers

from report.data import group_runs, load_runs
from report.evaluation import draw_evaluation, evaluation_points, final_score, has_final
from report.figures import draw_reward
from report.style import COLOURS
from report.summary import console_lines
from reward_summary import held_out_scores
from taper_report import write_report


class Evaluations(ReportCase):
    """Iterations 1 and 11 begin with an evaluation, and iteration 20 ends with one."""

    def evaluated(self, name: str, seed: int, final: bool = True, temperature: str = "") -> Path:
        numbers = make_numbers(20, seed)
        means, finals = np.full(20, np.nan), np.full(20, np.nan)
        means[0], means[10] = 0.25, 0.5
        if final:
            finals[19] = 0.75
        numbers.metrics.update({"val/score/mean": means, "val/score/final": finals})
        if temperature:
            more = f"\nEvaluation:\n  Temperature: {temperature}\n"
            numbers = replace(numbers, config=numbers.config + more)
        return self.make_run(name, numbers)

    def test_points_and_figures(self) -> None:
        runs = load_runs([self.evaluated("run", 1)])
        steps, scores = evaluation_points(runs[0].run)
        self.assertEqual((steps.tolist(), scores.tolist()), ([0, 10, 20], [0.25, 0.5, 0.75]))
        output = write_report(runs, None)
        seen = json.loads((output / "summary.json").read_text())["run"]
        expected = {"first": 0.25, "last": 0.75, "gain": 0.5, "best": 0.75, "final": 0.75}
        self.assertEqual({key: seen[f"evaluation_{key}"] for key in expected}, expected)
        self.assertEqual(seen["evaluations"], 3)
        self.assertIn("| held-out score of the final weights | 0.7500 |", (output / "index.md").read_text())
        self.assertEqual(
            console_lines(runs[0])[1], "run: held-out score 0.250 before training, 0.750 (final weights)"
        )

    def test_the_picture(self) -> None:
        one, two = self.evaluated("one", 1), self.evaluated("two", 2, final=False)
        (ax, *_) = draw_evaluation(group_runs(load_runs([one]), COLOURS)).axes
        self.assertEqual(
            ax.get_title(loc="left"), "before training 0.250, final weights 0.750, difference +0.500"
        )
        self.assertEqual(ax.lines[0].get_xdata().tolist(), [0, 10, 20])
        plt.close("all")
        (ax, *_) = draw_evaluation(group_runs(load_runs([one, two]), COLOURS)).axes  # seeds
        self.assertEqual(ax.lines[-1].get_xdata().tolist(), [0, 10])  # that both have
        plt.close("all")

    def test_how_answers_were_sampled_is_said_where_it_is_the_same_of_all(self) -> None:
        def words(*paths: Path) -> tuple[str, list[str]]:
            """The axis of the scores, and the labels beside the rewards."""
            groups = group_runs(load_runs(list(paths)), COLOURS)
            axis = draw_evaluation(groups).axes[0].get_ylabel()
            labels = draw_reward(groups).axes[0].get_legend_handles_labels()[1]
            plt.close("all")
            return axis, [label for label in labels if label.startswith("held-out")]

        greedy = self.evaluated("greedy", 1, temperature="0")
        other = self.evaluated("other", 2, temperature="0")
        warm = self.evaluated("warm", 3, temperature="1")
        bare = self.make_run("bare", only(make_numbers(20, 4), ["critic/score/mean"]))
        for paths in ([greedy], [greedy, other], [greedy, bare]):
            axis, labels = words(*paths)
            self.assertEqual(axis, "mean score of a response (greedy)")
            self.assertEqual(labels, ["held-out prompts (greedy), after the iteration"])
        self.assertEqual(words(warm)[0], "mean score of a response (temperature 1)")
        axis, labels = words(greedy, warm)
        self.assertEqual(axis, "mean score of a response")
        self.assertEqual(labels, ["held-out prompts, after the iteration"])

    def test_a_finished_run_that_went_on(self) -> None:
        numbers = make_numbers(20, 1)
        means, finals = np.full(20, np.nan), np.full(20, np.nan)
        means[0], finals[9], means[10] = 0.25, 0.5, 0.5  # the end of ten iterations begins ten more
        numbers.metrics.update({"val/score/mean": means, "val/score/final": finals})
        run = load_runs([self.make_run("longer", numbers)])[0]
        self.assertFalse(has_final(run.run))
        self.assertTrue(math.isnan(final_score(run.run)))
        self.assertEqual(
            console_lines(run)[1], "longer: held-out score 0.250 before training, 0.500 (after 10 iterations)"
        )

    def test_the_scores_of_a_log_come_in_order(self) -> None:
        lines = [
            {"step": 1, "val/score/mean": 0.25},
            {"step": 2, "val/score/final": 0.5},
            {"step": 3, "val/score/mean": 0.5},
            {"step": 4, "val/score/mean": 0.625, "val/score/final": 0.75},
        ]
        self.assertEqual(held_out_scores(lines), ["0.250", "0.500", "0.625", "0.750 (final weights)"])
        self.assertEqual(held_out_scores(lines[:2]), ["0.250", "0.500 (final weights)"])
        self.assertEqual(held_out_scores(lines[:3]), ["0.250", "0.500"])

    def test_without_evaluations_there_is_no_picture(self) -> None:
        bare = self.make_run("bare", only(make_numbers(4), ["critic/score/mean"]))
        self.assertIsNone(draw_evaluation(group_runs(load_runs([bare]), COLOURS)))


if __name__ == "__main__":
    unittest.main()
