# SPDX-License-Identifier: Apache-2.0
"""The report of a scaling study, of made-up runs.

python3 tools/tests/test_scaling_report.py. Exit code 77: packages missing.
"""
import json
import sys
import unittest
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

from test_report import ReportCase  # ends with 77 without packages

import h5py
import numpy as np
from synthetic_run import Synthetic, make_numbers

from report.scaling import draw_scaling, scaling_rows, studies_of
from taper_report import main


def numbers(seconds: list[float], ranks: int, tokens: int = 1200) -> Synthetic:
    """A run whose iterations take so long: half of that generation, a quarter training."""
    made, step = make_numbers(len(seconds)), np.array(seconds)
    times = {"step": step, "gen": step / 2, "update_actor": step / 4}
    metrics = {f"timing_s/{name}": values for name, values in times.items()} | {
        "perf/total_num_tokens": np.full(len(step), float(tokens)),
        "perf/throughput": tokens / step / ranks,
    }
    timing = {
        name: np.stack([values, values, 1.1 * values], axis=1)
        for name, values in times.items()
        if name != "step"
    }
    return Synthetic(made.steps, metrics, timing, np.empty((0, 0), np.int32), made.config)


class Scaling(ReportCase):
    def make_size(self, name: str, ranks: int, made: Synthetic) -> Path:
        directory = self.make_run(name, made)
        with h5py.File(directory / "run.h5", "r+") as file:
            file["machine"].attrs["ranks"] = np.bytes_(str(ranks))
        return directory

    def report(self, *words: object) -> tuple[int, str, str]:
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["--scaling", *map(str, words), "--output", str(self.root / "report")])
        return code, out.getvalue(), err.getvalue()

    def test_efficiency_is_relative_to_the_fewest_ranks(self) -> None:
        # The first iterations warm up: they count nowhere.
        four = self.make_size("study/four", 4, numbers([9.0, 2.0, 2.0, 2.0], 4))
        two = self.make_size("study/two", 2, numbers([9.0, 3.0, 3.2, 3.4], 2))
        code, out, said = self.report(four, two)
        self.assertEqual((code, said), (0, ""))
        lines = [line.split() for line in out.splitlines()[1:3]]
        self.assertEqual(
            lines,
            [
                "study 2 - 3 1,200 3.2 1.6 0.8 375 1.00 100 %".split(),
                "study 4 - 3 1,200 2 1 0.5 600 1.60 80 %".split(),
            ],
        )
        self.check_pages(self.root / "report", {"scaling.png", "step_time.png"})
        page = (self.root / "report/index.md").read_text()
        self.assertIn("## Time by phase, 4 ranks", page)
        self.assertIn("| gen | 3.0 s | 50.0 % | 1 | 1 to 1.1 |", page)
        self.assertIn("| efficiency |", page.split("## Glossary")[1])
        sizes = json.loads((self.root / "report/summary.json").read_text())["study"]
        self.assertEqual([size["ranks"] for size in sizes], [2, 4])
        self.assertAlmostEqual(sizes[1]["efficiency"], 0.8)

    def test_a_critic_that_learns_counts_as_training(self) -> None:
        made = numbers([9.0, 3.0, 3.0], 2)
        alone = made.metrics["timing_s/update_actor"].copy()
        alone[1] = np.nan
        critic = np.array([np.nan, 0.5, 0.75])
        made = replace(
            made,
            metrics=made.metrics
            | {"timing_s/update_actor": alone, "timing_s/update_critic": critic},
        )
        studies, _ = studies_of([self.make_size("study/ppo", 2, made)])
        self.assertAlmostEqual(studies[0].sizes[0].train_s, (0.5 + 1.5) / 2)

    def test_studies_beside_each_other(self) -> None:
        runs = [
            self.make_size(f"{mode}/{n}", n, numbers([1.0, 4.0 / n], n))
            for mode in ("adaptive", "static")
            for n in (1, 2)
        ]
        studies, problems = studies_of(runs)
        self.assertEqual(problems, [])
        self.assertEqual([study.label for study in studies], ["adaptive", "static"])
        self.assertEqual(
            [row[:2] for row in scaling_rows(studies)[1:]],
            [["adaptive", "1"], ["adaptive", "2"], ["static", "1"], ["static", "2"]],
        )
        self.assertEqual(studies[1].runs[1].name, "static, 2 ranks")
        self.check_inside(draw_scaling(studies), "scaling")

    def test_runs_are_compared_over_the_same_iterations(self) -> None:
        four = self.make_size("study/four", 4, numbers([9.0, 2.0, 2.2, 7.0], 4))
        two = self.make_size("study/two", 2, numbers([9.0, 3.0, 3.2], 2))
        (two / "status.json").write_text('{"state": "stopped"}')
        code, out, said = self.report(four, two)
        self.assertEqual(code, 0)
        self.assertEqual([line.split()[3:6] for line in out.splitlines()[1:3]], [["2", "1,200", "3.1"], ["2", "1,200", "2.1"]])
        self.assertIn(f"warning: {two} is not completed (status.json: stopped)", said)
        self.assertIn("warning: study: compared over the 2 iterations that all runs have", said)
        page = (self.root / "report/index.md").read_text()
        self.assertIn("Warning: study: compared over the 2 iterations", page)
        self.assertIn("| status/state | stopped | - |", page)

    def test_what_makes_runs_different_is_told(self) -> None:
        one, two = (numbers([1.0, 1.0], n) for n in (1, 2))
        two = replace(two, config=two.config.replace("Beta1: 0.9", "Beta1: 0.8"))
        runs = [self.make_size("study/one", 1, one), self.make_size("study/two", 2, two)]
        for directory, threads in zip(runs, ("2", "1")):
            with h5py.File(directory / "run.h5", "r+") as file:
                file["machine"].attrs["threads_per_rank"] = np.bytes_(threads)
        _, problems = studies_of(runs)
        self.assertEqual(
            problems,
            [
                "study: ranks have different numbers of threads",
                "study: parameters differ (Optimizer/Beta1)",
            ],
        )

    def test_runs_without_a_common_iteration(self) -> None:
        late = numbers([1.0, 1.0, 1.0], 2)
        late = replace(late, steps=late.steps + 10)
        runs = [self.make_size("study/one", 1, numbers([1.0, 1.0, 1.0], 1)), self.make_size("study/two", 2, late)]
        studies, problems = studies_of(runs)
        self.assertEqual((studies, len(problems)), ([], 1))
        self.assertIn("no iteration in common", problems[0])

    def test_equal_ranks_are_told_apart(self) -> None:
        runs = [self.make_size(f"study/{name}", 2, numbers([1.0, 1.0], 2)) for name in ("tp1", "tp2")]
        studies, _ = studies_of(runs)
        self.assertEqual([run.name for run in studies[0].runs], ["2 ranks (tp1)", "2 ranks (tp2)"])

    def test_what_cannot_be_used_is_left_out(self) -> None:
        short = self.make_size("study/short", 1, numbers([1.0], 1))
        code, _, said = self.report(short, self.root / "study/none")
        self.assertEqual(code, 2)
        self.assertIn("less than two iterations", said)
        self.assertIn("no such directory", said)
        self.assertIn("error: no run is left to report", said)
        code, out, said = self.report(short, self.make_size("study/two", 2, numbers([1.0, 1.0], 2)))
        self.assertEqual(code, 0)
        self.assertIn("warning: left out: " + str(short), said)


if __name__ == "__main__":
    unittest.main()
