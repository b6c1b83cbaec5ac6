# SPDX-License-Identifier: Apache-2.0
"""What single pictures of a report show, on made-up runs.

python3 tools/tests/test_report_pictures.py. Exit code 77: packages missing.
"""
import sys
import unittest
from itertools import combinations
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

from test_report import ReportCase  # ends with 77 without packages

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from synthetic_run import Synthetic, make_numbers

from report.data import Group, group_runs, load_runs
from report.figures import EXACTNESS, draw_update
from report.length_histogram import bin_shares, draw_length_histogram, log_bins
from report.step_time import RANKS, draw_step_time
from report.style import COLOURS, PHASE_COLOURS


class PictureCase(ReportCase):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(plt.close, "all")

    def groups(self, **numbers: Synthetic) -> list[Group]:
        return group_runs(load_runs([self.make_run(*item) for item in numbers.items()]), COLOURS)


def labels(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


class Lengths(PictureCase):
    def test_bars_add_up_to_all_responses(self) -> None:
        lengths = np.array([0, 1, 1, 2, 3, 40, 41, 1000])
        self.assertAlmostEqual(bin_shares(lengths, log_bins(1000)).sum(), 1.0)
        figure = draw_length_histogram(self.groups(run=make_numbers(20)))
        drawn = [patch.get_data().values.sum() for patch in figure.axes[0].patches]
        np.testing.assert_allclose(drawn, 1.0)


class Update(PictureCase):
    def test_one_run_says_what_is_pale(self) -> None:
        figure = draw_update(self.groups(run=make_numbers(40)))
        told = [text.get_text() for text in figure.legends[0].get_texts()]
        self.assertEqual(told, ["each iteration", "mean of 5 iterations"])
        panels = {ax.get_title("left"): ax for ax in figure.axes}
        self.assertIn("KL to the rollout policy, estimated (can be negative)", panels)
        self.assertIn("KL to the reference model, in the loss", panels)
        self.assertEqual([text.get_text() for text in panels[EXACTNESS].texts], ["0 in all iterations"])

    def test_the_legend_of_several_runs_fits_all_panels(self) -> None:
        b = make_numbers(40, 1, 1e-4)
        b.metrics["training/rollout_probs_diff_max"][3] = 0.5
        figure = draw_update(self.groups(a=make_numbers(40), b=b))
        told = [text.get_text() for text in figure.legends[0].get_texts()]
        self.assertEqual(told, ["a, smoothed over 5", "b, smoothed over 5"])
        self.assertEqual([text for ax in figure.axes for text in ax.texts], [])  # not 0 in all


class StepTime(PictureCase):
    def test_colours_can_be_told_apart(self) -> None:
        for one, other in combinations(PHASE_COLOURS, 2):
            apart = np.linalg.norm(np.subtract(to_rgb(PHASE_COLOURS[one]), to_rgb(PHASE_COLOURS[other])))
            self.assertGreater(apart, 0.19, f"{one} and {other}")

    def test_the_band_of_ranks_stands_in_the_legend_where_it_can_be_seen(self) -> None:
        numbers = make_numbers(20)
        ax = draw_step_time(self.groups(wide=numbers)).axes[0]
        self.assertIn(RANKS, labels(ax))
        at = labels(ax).index(RANKS)
        self.assertEqual(ax.get_legend().get_patches()[at].get_hatch(), "/////")
        self.assertIsNone(ax.get_legend().get_patches()[at].get_alpha())
        for values in numbers.timing.values():
            values[:] = values[:, 1:2] * np.array([0.9999, 1, 1.0001])
        self.assertNotIn(RANKS, labels(draw_step_time(self.groups(narrow=numbers)).axes[0]))

    def test_small_phases_are_one_part_of_the_bars(self) -> None:
        runs = {name: make_numbers(20, 1, rate) for name, rate in (("a", 2e-4), ("b", 1e-4))}
        for numbers in runs.values():
            numbers.timing["adv"][:] = 0.004  # of about 4 s; 0.05 s are in no phase
        ax = draw_step_time(self.groups(**runs)).axes[0]
        self.assertNotIn("adv", labels(ax))
        self.assertRegex(labels(ax)[-1], r"^other \(up to 1\.\d %\)$")
        ends = [bars.patches[0].get_x() + bars.patches[0].get_width() for bars in ax.containers]
        total = runs["a"].metrics["timing_s/step"].mean()
        self.assertAlmostEqual(max(ends), total)


if __name__ == "__main__":
    unittest.main()
