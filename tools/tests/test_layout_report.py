# SPDX-License-Identifier: Apache-2.0
"""What the report tells of adaptive layouts, on made-up records.

python3 tools/tests/test_layout_report.py. Exit code 77: packages missing.
"""
import json
import math
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

from test_report import ALL_PICTURES, OF_LAYOUTS, ReportCase  # ends with 77 without packages

import matplotlib.pyplot as plt
import numpy as np
from synthetic_layouts import Row, write_layout_run, write_rows
from synthetic_run import make_numbers, write_run

from report.data import Group, group_runs, load_runs
from report.figures import LAYOUT_FIGURES
from report.layout_regret import draw_regret
from report.layout_time import draw_layouts
from report.layout_forecasts import count_forecasts
from report.layout_prediction import error_edges
from report.layout_time import spread
from report.layouts import (
    choose_generations,
    group_count,
    is_adaptive,
    read_accounts,
    read_generation,
)
from report.style import COLOURS
from taper_report import make_report

# Four generations. Degree 1 is the best static one: 40 s against 44 s. The oracle gains 2 s of 10
# in the first, 0.1 s (1 %) in the second, 1 s in the third, nothing in the last.
ACCOUNTS = {
    "measured_s": (8.0, 10.0, 10.0, 10.0),
    "predicted_s": (8.4, 10.5, 9.5, 10.2),
    "replayed_s": (8.4, 10.0, 9.5, 10.2),
    "stayed_s": (10.0, 10.0, 10.0, 10.0),
    "static_tp1_s": (10.0, 10.0, 10.0, 10.0),
    "static_tp2_s": (9.0, 11.0, 12.0, 12.0),
    "oracle_s": (8.0, 9.9, 9.0, 10.0),
    "switches": (2.0, 0.0, 1.0, 1.0),
    "false_triggers": (0.0, 0.0, 0.0, 1.0),
    "false_loss_s": (0.0, 0.0, 0.0, 0.25),
    "forecasts": (10.0, 0.0, 20.0, 10.0),
    "below_low": (1.0, 0.0, 5.0, 2.0),
    "below_mean": (5.0, 0.0, 9.0, 4.0),
    "below_high": (8.0, 0.0, 15.0, 10.0),
}
# iteration, at, from, to, repack, done, predicted and measured cost
SWITCHES = (
    (1, 3.0, "1x2", "2x1", 0, 1, 0.004, 0.005),
    (1, 4.0, "2x1", "2x1", 1, 1, 0.001, 0.001),
    (3, 5.0, "1x2", "2x1", 0, 1, 0.004, 0.008),
    (4, 6.0, "1x2", "2x1", 0, 0, 0.004, 0.002),
    (4, 7.0, "1x2", "2x1", 0, 1, 0.004, 0.004),
)
CONSULTATIONS = (  # iteration, elapsed, layout, alive, waiting, candidates
    (1, 1.0, "1x2", 64, 16, 0),
    (1, 2.9, "1x2", 8, 0, 3),
    (1, 3.5, "2x1", 6, 0, 3),
    (1, 7.5, "2x1", 1, 0, 1),
    (2, 1.0, "1x2", 64, 0, 0),
    (3, 2.0, "1x2", 30, 0, 3),
    (3, 9.0, "2x1", 2, 0, 0),
    (4, 1.5, "1x2", 30, 0, 3),
)


def table(rows: tuple[tuple[str | float, ...], ...], names: str) -> list[Row]:
    return [dict(zip(["step", *names.split()], row)) for row in rows]


class LayoutCase(ReportCase):
    def make_known(self, name: str = "run") -> Path:
        """The run of the tables above; 1 % of the generation is consultations, 0.1 % of the
        iterations switches."""
        numbers = make_numbers(4)
        numbers.metrics["adaptive/switches"] = np.array([2.0, 0.0, 1.0, 1.0])
        numbers.metrics["adaptive/switch_time_s"] = 0.001 * numbers.metrics["timing_s/step"]
        numbers.metrics["adaptive/consult_time_s"] = 0.01 * numbers.metrics["timing_s/gen"]
        directory = self.make_run(name, numbers)
        file = directory / "run.h5"
        accounts = [{n: v[i] for n, v in ACCOUNTS.items()} | {"step": i + 1} for i in range(4)]
        write_rows(file, "layout_accounts", accounts)
        columns = "at_s from to repack done predicted_s time_s"
        write_rows(file, "layout_switches", table(SWITCHES, columns))
        columns = "elapsed_s layout alive waiting candidates"
        write_rows(file, "layout_consultations", table(CONSULTATIONS, columns))
        return directory

    def groups(self, *directories: Path) -> list[Group]:
        return group_runs(load_runs(list(directories)), COLOURS)

    def check_figures(self, groups: list[Group], expected: set[str], what: str) -> None:
        for name, _, draw in LAYOUT_FIGURES:
            figure = draw(groups)
            self.assertEqual(figure is not None, name in expected, f"{name}, {what}")
            if figure is not None:
                self.check_inside(figure, f"{name}, {what}")


class Numbers(LayoutCase):
    def test_numbers_of_groups(self) -> None:
        names = {"1x16": 16, "2x1": 1, "4+2+1+1": 4, "32 groups of up to 2": 32}
        self.assertEqual({name: group_count(name) for name in names}, names)

    def test_accounts(self) -> None:
        accounts = read_accounts(load_runs([self.make_known()])[0].run)
        self.assertEqual(accounts.best_degree, 1)
        np.testing.assert_array_equal(accounts.room, [True, False, True, False])
        self.assertAlmostEqual(accounts.share, (1.6 + 0.5) / (2.0 + 1.0))
        np.testing.assert_allclose(accounts.error, [0.05, 0.05, -0.05, 0.02])

    def test_summary(self) -> None:
        output = make_report([self.make_known()], None)
        seen = json.loads((output / "summary.json").read_text())["run"]
        expected = {
            "switches": 4,
            "switch_iterations": 0.75,
            "adaptive_saving": 1.9 / 40,
            "oracle_saving": 3.1 / 40,
            "oracle_share": 0.7,
            "false_triggers": 1,
            "false_loss": 0.25,
            "switching_share": 0.001,
            "consultation_share": 0.01,
            "generation_error_median": 0.05,
            "generation_error_90": 0.05,
        }
        for key, value in expected.items():
            self.assertAlmostEqual(seen[key], value, msg=key)
        markdown = (output / "index.md").read_text()
        for row in ("switches of layout | 4", "iterations with a switch | 75.00 %"):
            self.assertIn(f"| {row} |", markdown)
        self.assertIn("| share of the oracle's gain, where it is 2 % or more | 70.00 % |", markdown)
        self.check_pages(output, ALL_PICTURES | OF_LAYOUTS)

    def test_switches_are_counted_without_metrics(self) -> None:
        directory = self.root / "run"
        numbers = make_numbers(4)
        write_run(directory / "run.h5", numbers)
        columns = "at_s from to repack done predicted_s time_s"
        write_rows(directory / "run.h5", "layout_switches", table(SWITCHES, columns))
        seen = json.loads((make_report([directory], None) / "summary.json").read_text())["run"]
        self.assertEqual((seen["switches"], seen["switch_iterations"]), (4, 0.75))
        self.assertIsNone(seen["switching_share"])

    def test_forecasts(self) -> None:
        one, other = self.make_known("a"), self.make_known("b")
        self.assertEqual(
            count_forecasts(self.groups(one)[0]),
            {"generations": 3, "of": 40, "below_low": 8, "below_mean": 18, "below_high": 33},
        )
        self.assertEqual(count_forecasts(self.groups(one, other)[0])["of"], 80)

    def test_incomplete_accounts_are_left_out(self) -> None:
        numbers = make_numbers(3)
        directory = self.make_run("run", numbers)
        rows = [{n: v[i] for n, v in ACCOUNTS.items()} | {"step": i + 1} for i in range(3)]
        rows[1]["oracle_s"] = math.nan
        rows[2]["static_tp1_s"] = math.nan
        write_rows(directory / "run.h5", "layout_accounts", rows)
        accounts = read_accounts(load_runs([directory])[0].run)
        np.testing.assert_array_equal(accounts.steps, [1, 3])
        self.assertEqual(list(accounts.static), [2])


class Generations(LayoutCase):
    def test_choice(self) -> None:
        run = load_runs([self.make_known()])[0].run
        expected = {(1, 0): ["largest saving"], (2, 0): ["longest"], (4, 0): ["last switch"]}
        self.assertEqual(choose_generations(run), expected)

    def test_spans_and_sequences(self) -> None:
        run = load_runs([self.make_known()])[0].run
        first = read_generation(run, (1, 0))
        self.assertEqual(first.spans, [(0.0, 3.0, "1x2"), (3.0, 8.0, "2x1")])
        np.testing.assert_array_equal(first.running, [48, 8, 6, 1])
        np.testing.assert_array_equal(first.alive, [64, 8, 6, 1])
        self.assertEqual([s.repack for s in first.switches], [False, True])
        last = read_generation(run, (4, 0))  # the first switch was not carried out
        self.assertEqual([s.done for s in last.switches], [False, True])
        self.assertEqual(last.spans, [(0.0, 7.0, "1x2"), (7.0, 10.0, "2x1")])
        self.assertEqual(read_generation(run, (2, 0)).spans, [(0.0, 10.0, "1x2")])

    def test_several_generations_of_an_iteration(self) -> None:
        directory = self.make_run("run", make_numbers(1))
        seen = "generation elapsed_s layout alive waiting candidates"
        generations = (
            (1, 0, 1.0, "1x2", 64, 0, 3),
            (1, 0, 4.0, "1x2", 5, 0, 3),
            (1, 1, 2.0, "2x1", 30, 0, 3),
        )
        rows = table(generations, seen)
        write_rows(directory / "run.h5", "layout_consultations", rows)
        made = "generation at_s from to repack done predicted_s time_s"
        write_rows(directory / "run.h5", "layout_switches", table(((1, 1, 3.0, "2x1", "1x2", 0, 1, 0.1, 0.1),), made))
        run = load_runs([directory])[0].run
        self.assertEqual(choose_generations(run), {(1, 0): ["longest"], (1, 1): ["last switch"]})
        first, second = read_generation(run, (1, 0)), read_generation(run, (1, 1))
        np.testing.assert_array_equal(first.alive, [64, 5])
        self.assertEqual((first.switches, first.spans), ([], [(0.0, 4.0, "1x2")]))
        np.testing.assert_array_equal(second.alive, [30])
        self.assertEqual(second.spans, [(0.0, 3.0, "2x1"), (3.0, 3.1, "1x2")])
        titles = [ax.get_title(loc="left") for ax in draw_layouts(self.groups(directory)).axes]
        self.assertTrue(titles[1].startswith("Iteration 1, generation 2 ("), titles)
        plt.close("all")

    def test_nothing_is_held_flat_between_consultations(self) -> None:
        figure = draw_layouts(self.groups(self.make_known()))
        lines = figure.axes[0].get_lines()
        self.assertEqual({line.get_drawstyle() for line in lines}, {"default"})
        dots = [line for line in lines if line.get_marker() == "o" and line.get_linestyle() == "None"]
        self.assertEqual([list(dots[0].get_xdata()), list(dots[0].get_ydata())], [[1, 2.9, 3.5, 7.5], [48, 8, 6, 1]])
        plt.close(figure)

    def test_layouts_come_from_consultations_without_switches(self) -> None:
        directory = self.make_run("run", make_numbers(1))
        rows = table(CONSULTATIONS[:4], "elapsed_s layout alive waiting candidates")
        write_rows(directory / "run.h5", "layout_consultations", rows)
        groups = self.groups(directory)
        spans = read_generation(groups[0].runs[0], (1, 0)).spans
        self.assertEqual(spans, [(0.0, 3.5, "1x2"), (3.5, 7.5, "2x1")])
        self.check_figures(groups, {"layouts"}, "consultations alone")

    def test_numbers_of_switches_stand_apart(self) -> None:
        self.assertEqual(spread([0.1, 0.5], 0.04), [0.1, 0.5])
        crowded = spread([0.1, 0.1, 0.11, 0.97, 0.98, 1.0], 0.04)
        self.assertTrue((np.diff(crowded) > 0.04 - 1e-12).all() and crowded[-1] <= 0.98, crowded)
        self.assertEqual(spread([], 0.04), [])

    def test_bins_of_errors(self) -> None:
        for errors in ([0.02], [-0.03], [0.0], list(np.linspace(-0.2, 0.05, 80))):
            edges = error_edges(np.array(errors))
            self.assertAlmostEqual(np.abs(edges).min(), 0.0)
            self.assertEqual(np.histogram(errors, edges)[0].sum(), len(errors))
            self.assertLess(len(edges), 60)


class Pictures(LayoutCase):
    every = {name for name, _, _ in LAYOUT_FIGURES}

    def make_long(self, name: str, iterations: int, *of: float) -> Path:
        write_layout_run(self.root / name / "run.h5", iterations, *of)
        return self.root / name

    def test_nothing_is_cut_off(self) -> None:
        small, long = self.make_long("one", 1), self.make_long("long", 80, 8)
        seeds = [self.make_long(f"seed{seed}", 12, 2, seed, 1e-4) for seed in (1, 2)]
        other = self.make_long("a-run-with-a-rather-long-name", 5, 8, 3, 3e-4)
        static = self.make_run("static", make_numbers(3, 1, 5e-4))
        cases = ([small], [long], [self.make_known()], seeds, [*seeds, other, static])
        for runs in cases:
            names = ", ".join(run.name for run in runs)
            self.check_figures(self.groups(*runs), self.every, names)

    def test_a_static_layout_far_off_leaves_the_axes(self) -> None:
        directory = self.make_run("run", make_numbers(4))
        rows = [{n: v[i] for n, v in ACCOUNTS.items()} | {"step": i + 1} for i in range(4)]
        for row in rows:
            row |= {"static_tp2_s": 4 * row["static_tp2_s"], "measured_s": 3 * row["measured_s"]}
        write_rows(directory / "run.h5", "layout_accounts", rows)
        figure = draw_regret(self.groups(directory))
        above = figure.axes[0]
        labels = [text.get_text() for text in above.get_legend().get_texts()]
        expected = ["static 1x2  +0.0 %", "static 2x1  +340.0 % (above)", "adaptive  -4.8 %", "oracle  -7.8 %"]
        self.assertEqual(labels, expected)  # replayed times alone: measured ones hold the machine's noise
        low, high = above.get_ylim()
        self.assertTrue(-0.3 < low < -0.2 and 0.02 < high < 0.1, (low, high))
        plt.close(figure)

    def test_no_room_for_the_oracle(self) -> None:
        directory = self.make_run("run", make_numbers(2))
        rows = [{n: v[i] for n, v in ACCOUNTS.items()} | {"step": i} for i in (1, 3)]
        write_rows(directory / "run.h5", "layout_accounts", rows)
        groups = self.groups(directory)
        self.assertTrue(math.isnan(read_accounts(groups[0].runs[0]).share))
        expected = {"generation_time", "regret", "forecasts"}
        self.check_figures(groups, expected, "no room")

    def test_runs_of_one_layout_have_none(self) -> None:
        plain = self.make_run("plain", make_numbers(3))
        static = self.make_run("static", make_numbers(3))  # leaders also consult about the end
        rows = [{"step": 1, "elapsed_s": 0.1, "layout": "1x2", "alive": 9, "candidates": 0}]
        write_rows(static / "run.h5", "layout_consultations", rows)
        for directory in (plain, static):
            groups = self.groups(directory)
            self.assertFalse(is_adaptive(groups[0].runs[0]))
            self.check_figures(groups, set(), directory.name)
            output = make_report([directory], None)
            self.assertNotIn("switch", (output / "index.md").read_text())
            self.check_pages(output, ALL_PICTURES)


if __name__ == "__main__":
    unittest.main()
