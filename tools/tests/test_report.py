# SPDX-License-Identifier: Apache-2.0
"""The report of made-up runs, and of one that `taper train` made
where TAPER_RUN_DIR names its directory.

python3 tools/tests/test_report.py. Exit code 77: packages missing.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

try:
    import h5py
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.figure import Figure
    from synthetic_run import Synthetic, make_numbers, write_log, write_run

    from report.data import (
        config_entries,
        group_runs,
        load_runs,
        moving_average,
        phase_table,
        short_names,
    )
    from report.figures import FIGURES, LAYOUT_FIGURES
    from report.style import COLOURS
    from reward_summary import window_sizes
    from taper_report import make_report
except ModuleNotFoundError as missing:
    print(
        f"skipped: {missing} (set TAPER_PYTHON to an interpreter with h5py, numpy and matplotlib)"
    )
    sys.exit(77)

OF_LAYOUTS = {f"{name}.png" for name, _, _ in LAYOUT_FIGURES}  # see test_layout_report.py
# See test_evaluation_sets_report.py, test_speculation_report.py and test_calls_report.py.
OF_OTHER_RUNS = {"evaluation_sets.png", "fine_tuning.png", "speculation.png", "calls.png"}
ALL_PICTURES = {f"{name}.png" for name, _, _ in FIGURES} - OF_LAYOUTS - OF_OTHER_RUNS


def png_size(path: Path) -> tuple[int, int]:
    """(width, height) in pixels, from the header."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n", path
    return struct.unpack(">II", head[16:24])


def only(numbers: Synthetic, names: list[str]) -> Synthetic:
    """The same run with these metrics alone, without timing and lengths."""
    kept = {name: numbers.metrics[name] for name in names}
    return Synthetic(numbers.steps, kept, {}, np.empty((0, 0), np.int32), "")


class ReportCase(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="taper-test-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def make_run(self, name: str, numbers: Synthetic) -> Path:
        write_run(self.root / name / "run.h5", numbers)
        return self.root / name

    def check_pages(self, output: Path, expected: set[str]) -> None:
        """The pictures are the expected ones, are pictures, and stand in both pages."""
        self.assertEqual({path.name for path in output.glob("*.png")}, expected)
        for name in expected:
            width, height = png_size(output / name)
            self.assertGreater((output / name).stat().st_size, 5000, name)
            self.assertTrue(width > 1000 and height > 200, f"{name}: {width} x {height}")
        markdown, page = (output / "index.md").read_text(), (output / "index.html").read_text()
        self.assertEqual(set(re.findall(r"\]\((\w+\.png)\)", markdown)), expected)
        self.assertEqual(page.count("data:image/png;base64,"), len(expected))
        self.assertNotRegex(page, r'(src|href)="(?!data:|#)')  # nothing from elsewhere
        self.assertEqual([path.name for path in output.glob("*.part")], [])

    def check_inside(self, figure: Figure, name: str) -> None:
        """Nothing is drawn beyond the edges of the picture, which is closed."""
        figure.canvas.draw()
        box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
        self.assertTrue(inside, f"{name}: {box} in {width} x {height} inches")
        plt.close(figure)


class OneRun(ReportCase):
    def test_pictures_and_numbers(self) -> None:
        numbers = make_numbers(45)
        directory = self.make_run("run", numbers)
        (directory / "status.json").write_text(
            '{"state": "completed", "iteration": 45, "iterations": 45}'
        )
        output = make_report([directory], None)
        self.assertEqual(output, directory / "report")
        self.check_pages(output, ALL_PICTURES)
        seen = json.loads((output / "summary.json").read_text())["run"]
        score, valid = numbers.metrics["critic/score/mean"], numbers.lengths[numbers.lengths >= 0]
        self.assertEqual(len(valid), 45 * 128 - 28)
        self.assertAlmostEqual(seen["reward_first"], sum(score[:5]) / 5)
        self.assertAlmostEqual(seen["reward_last"], sum(score[-10:]) / 10)
        self.assertAlmostEqual(seen["reward_gain"], sum(score[-10:]) / 10 - sum(score[:5]) / 5)
        self.assertEqual(seen["response_tokens"], valid.sum())
        self.assertEqual(seen["response_length_max"], valid.max())
        self.assertEqual(seen["probability_difference"], 0)
        self.assertAlmostEqual(
            seen["evaluation_last"], score[40] + 0.03
        )  # the iterations 1, 11, 21, 31, 41
        total = numbers.metrics["timing_s/step"].sum()
        self.assertAlmostEqual(seen["seconds"], total)
        self.assertIsNone(seen["results_share"])
        self.assertAlmostEqual(
            seen["time_shares"]["gen"], numbers.timing["gen"][:, 1].sum() / total
        )
        self.assertAlmostEqual(seen["time_shares"]["other"], 45 * 0.05 / total)
        self.assertAlmostEqual(sum(seen["time_shares"].values()), 1.0)
        markdown = (output / "index.md").read_text()
        self.assertIn(f"| mean reward, first 5 iterations | {seen['reward_first']:.4f} |", markdown)
        self.assertIn(f"| difference | {seen['reward_gain']:+.4f} |", markdown)
        self.assertIn("0 (exact)", markdown)
        self.assertIn("| status/state | completed |", markdown)
        self.assertIn("Learning Rate: 0.0002", markdown)

    def test_the_share_of_writing_results(self) -> None:
        numbers = make_numbers(4)
        numbers.metrics["timing_s/step"][:] = 2.0
        numbers.metrics["timing_s/output"] = np.full(4, 0.01)
        numbers.metrics["timing_s/record"] = np.array([0.0, 0.02, 0.02, 0.04])
        output = make_report([self.make_run("run", numbers)], None)
        seen = json.loads((output / "summary.json").read_text())["run"]
        self.assertAlmostEqual(seen["results_share"], (0.04 + 0.08) / (8 + 0.08))

    def test_the_ends_of_a_short_run_do_not_overlap(self) -> None:
        numbers = make_numbers(8)
        score = numbers.metrics["critic/score/mean"]
        output = make_report([self.make_run("run", numbers)], None)
        seen = json.loads((output / "summary.json").read_text())["run"]
        self.assertEqual((seen["reward_first_iterations"], seen["reward_last_iterations"]), (4, 4))
        self.assertAlmostEqual(seen["reward_first"], score[:4].mean())
        self.assertAlmostEqual(seen["reward_last"], score[4:].mean())
        markdown = (output / "index.md").read_text()
        self.assertIn("| mean reward, first 4 iterations |", markdown)
        self.assertIn("| mean reward, last 4 iterations |", markdown)
        for count, sizes in {1: (1, 1), 2: (1, 1), 3: (1, 2), 12: (5, 7), 15: (5, 10), 99: (5, 10)}.items():
            self.assertEqual(window_sizes(count), sizes)

    def test_inexact_probabilities_are_shown_as_such(self) -> None:
        numbers = make_numbers(20)
        numbers.metrics["training/rollout_probs_diff_max"][7] = 0.125
        output = make_report([self.make_run("run", numbers)], None)
        self.assertIn("probability | 0.125 |", (output / "index.md").read_text())

    def test_one_iteration(self) -> None:
        output = make_report([self.make_run("run", make_numbers(1))], None)
        self.check_pages(output, ALL_PICTURES)
        seen = json.loads((output / "summary.json").read_text())["run"]
        self.assertIsNone(seen["reward_gain"])
        self.assertEqual(seen["reward_first"], seen["reward_last"])

    def test_absent_metrics(self) -> None:
        numbers = make_numbers(12)
        few = self.make_run("few", only(numbers, ["critic/score/mean", "actor/entropy"]))
        self.check_pages(make_report([few], None), {"reward.png", "entropy.png"})
        none = self.make_run("none", only(numbers, ["training/global_step"]))
        self.check_pages(make_report([none], None), set())
        never = only(numbers, ["critic/score/mean"])
        never.metrics["critic/score/mean"][:] = np.nan
        self.check_pages(make_report([self.make_run("never", never)], None), set())

    def test_rewards_stand_in_for_scores(self) -> None:
        numbers = make_numbers(12)
        output = make_report([self.make_run("run", only(numbers, ["critic/rewards/mean"]))], None)
        self.check_pages(output, {"reward.png"})
        seen = json.loads((output / "summary.json").read_text())["run"]
        self.assertAlmostEqual(
            seen["reward_last"], numbers.metrics["critic/rewards/mean"][-7:].mean()
        )

    def test_log_alone(self) -> None:
        numbers = make_numbers(12)
        write_log(self.root / "log" / "metrics.jsonl", numbers)
        output = make_report([self.root / "log"], self.root / "out")
        self.check_pages(output, ALL_PICTURES - {"length_histogram.png"})
        seen = json.loads((output / "summary.json").read_text())["log"]
        self.assertAlmostEqual(
            seen["reward_last"], numbers.metrics["critic/score/mean"][-7:].mean()
        )

    def test_markup_in_names_is_text(self) -> None:
        output = make_report([self.make_run("a<b>|c", make_numbers(2))], self.root / "out")
        self.assertIn("a&lt;b&gt;|c", (output / "index.html").read_text())
        self.assertIn("a<b>\\|c", (output / "index.md").read_text())


class SeveralRuns(ReportCase):
    def test_seeds_of_one_configuration(self) -> None:
        numbers = [make_numbers(30, seed) for seed in (1, 2, 3)]
        runs = [self.make_run(f"seed{i + 1}", n) for i, n in enumerate(numbers)]
        groups = group_runs(load_runs(runs), COLOURS)
        self.assertEqual([len(group.members) for group in groups], [3])
        output = make_report(runs, self.root / "out")
        self.check_pages(output, ALL_PICTURES)
        last = [n.metrics["critic/score/mean"][-10:].mean() for n in numbers]
        row = next(
            line for line in (output / "index.md").read_text().splitlines() if "last 10" in line
        )
        self.assertIn(f"{np.mean(last):.4f} ± {np.std(last, ddof=1):.4f}", row)
        for value in last:
            self.assertIn(f"{value:.4f}", row)

    def test_runs_of_one_seed_are_not_called_seeds(self) -> None:
        runs = [self.make_run(name, make_numbers(12)) for name in ("a", "b")]
        self.assertEqual([g.label for g in group_runs(load_runs(runs), COLOURS)], ["2 runs"])
        runs.append(self.make_run("c", make_numbers(12, 2)))
        self.assertEqual([g.label for g in group_runs(load_runs(runs), COLOURS)], ["3 runs"])
        self.assertEqual([g.label for g in group_runs(load_runs(runs[1:]), COLOURS)], ["2 seeds"])

    def test_configurations_stand_apart(self) -> None:
        rates = {"a/seed1": (1, 2e-4), "a/seed2": (2, 2e-4), "b": (1, 1e-4)}
        runs = [self.make_run(name, make_numbers(12, *of)) for name, of in rates.items()]
        groups = group_runs(load_runs(runs), COLOURS)
        self.assertEqual([group.label for group in groups], ["Learning Rate 0.0002 (2 seeds)", "b"])
        output = make_report(runs, self.root / "out")
        self.check_pages(output, ALL_PICTURES)
        self.assertIn(
            "| Optimizer/Learning Rate | 0.0002 | 0.0002 | 0.0001 |",
            (output / "index.md").read_text(),
        )

    def test_runs_of_unknown_configuration_are_not_seeds(self) -> None:
        runs = [
            self.make_run(name, only(make_numbers(12), ["critic/score/mean"]))
            for name in ("a", "b")
        ]
        self.assertEqual(len(group_runs(load_runs(runs), COLOURS)), 2)

    def test_runs_of_different_length_and_metrics(self) -> None:
        runs = [self.make_run("long", make_numbers(30)), self.make_run("short", make_numbers(3, 2))]
        runs.append(self.make_run("few", only(make_numbers(5), ["actor/entropy"])))
        self.check_pages(make_report(runs, self.root / "out"), ALL_PICTURES)


class Pictures(ReportCase):
    def test_nothing_is_cut_off(self) -> None:
        one = [self.make_run("a-run-with-a-rather-long-name", make_numbers(45))]
        seeds = [self.make_run(f"seed{seed}", make_numbers(20, seed, 1e-4)) for seed in (1, 2)]
        tiny, long = [self.make_run("tiny", make_numbers(1))], [
            self.make_run("long", make_numbers(300))
        ]
        for runs in (one, tiny, long, seeds, one + seeds + tiny):
            groups = group_runs(load_runs(runs), COLOURS)
            for name, _, draw in FIGURES:
                figure = draw(groups)
                if f"{name}.png" in ALL_PICTURES:
                    self.check_inside(figure, f"{name} of {len(runs)} runs")
                else:
                    self.assertIsNone(figure, name)


class Parts(ReportCase):
    def test_moving_average_shrinks_at_the_ends(self) -> None:
        values = np.array([1.0, 2.0, 6.0, 3.0])
        np.testing.assert_allclose(moving_average(values, 3), [1.5, 3.0, 11 / 3, 4.5])
        np.testing.assert_allclose(moving_average(values, 1), values)

    def test_config_entries(self) -> None:
        yaml = "# words\nRun:\n  Seed: 3\nA B:\n  'C d': [1, 2]\n  E:\n    F: x: y\nG: 'two\n  lines'\n"
        expected = {"Run/Seed": "3", "A B/C d": "[1, 2]", "A B/E/F": "x: y", "G": "'two lines'"}
        self.assertEqual(config_entries(yaml), expected)

    def test_names_tell_runs_apart(self) -> None:
        names = short_names([Path("x/a/run"), Path("x/b/run"), Path("x/b/c/run")])
        self.assertEqual(names, ["a/run", "b/run", "b/c/run"])

    def test_phases_without_timing_come_from_the_metrics(self) -> None:
        numbers = make_numbers(10)
        directory = self.make_run(
            "run", Synthetic(numbers.steps, numbers.metrics, {}, numbers.lengths, "")
        )
        phases = phase_table(load_runs([directory])[0].run)[1]
        self.assertEqual(
            list(phases),
            ["gen", "reward", "ref", "adv", "update_actor", "publish", "testing", "other"],
        )
        np.testing.assert_allclose(phases["gen"], numbers.timing["gen"][:, 1:2].repeat(3, 1))


class CommandLine(ReportCase):
    def run_tool(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(TOOLS / "taper_report.py"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.root, timeout=300)

    def check_refused(self, directory: Path, *words: str) -> None:
        result = self.run_tool(directory)
        self.assertEqual(result.returncode, 2, result.stderr)
        for word in (str(directory), *words):
            self.assertIn(word, result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)

    def test_success(self) -> None:
        directory = self.make_run("run", make_numbers(3))
        result = self.run_tool(directory / "run.h5", "--output", "there")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], r"^run: mean reward 0\.\d+ in the first 1 of 3 iterations, 0\.\d+ in the last 2 ")
        self.assertEqual(lines[-1], "report written to there/index.html")
        self.check_pages(self.root / "there", ALL_PICTURES)

    def test_bad_input(self) -> None:
        self.check_refused(self.root / "nowhere", "no such directory")
        empty = self.root / "empty"
        empty.mkdir()
        self.check_refused(empty, "neither run.h5 nor metrics.jsonl")
        torn = self.make_run("torn", make_numbers(3))
        content = (torn / "run.h5").read_bytes()
        (torn / "run.h5").write_bytes(content[: len(content) // 2])
        write_log(torn / "metrics.jsonl", make_numbers(3))
        self.check_refused(torn, "run.h5", "HDF5", "taper inspect --repair")
        other = self.root / "rec.h5"
        with h5py.File(other, "w") as file:
            file.attrs["format"] = "taper-rollouts"
        self.check_refused(other, "is a file of format taper-rollouts", "output directory of a run")

    def test_unwritable_output(self) -> None:
        directory = self.make_run("run", make_numbers(2))
        (self.root / "file").write_text("")
        result = self.run_tool(directory, "--output", self.root / "file")
        self.assertEqual(result.returncode, 1)
        self.assertIn(str(self.root / "file"), result.stderr)


class MissingPackages(unittest.TestCase):
    def run_bare(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Without site packages."""
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [sys.executable, "-S", *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=TOOLS, env=environment, timeout=300
        )

    def test_the_report_says_what_to_do(self) -> None:
        result = self.run_bare(TOOLS / "taper_report.py", "run")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^error: taper report finds no \w+ for .*TAPER_PYTHON\n$")
        self.assertIn('eval "$(cmake/deps/install.sh --python)"', result.stderr)

    def test_help_needs_no_packages(self) -> None:
        result = self.run_bare(TOOLS / "taper_report.py", "--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("--tensorboard", result.stdout)

    def test_the_reader_can_be_imported_and_refused(self) -> None:
        result = self.run_bare("-c", "import taper_h5")
        self.assertIn("ModuleNotFoundError: taper_h5 needs h5py", result.stderr)


@unittest.skipUnless("TAPER_RUN_DIR" in os.environ, "TAPER_RUN_DIR names no run")
class RealRun(ReportCase):
    def test_report(self) -> None:
        directory = Path(os.environ["TAPER_RUN_DIR"])
        output = make_report([directory], self.root / "out")
        self.assertIn("reward.png", {path.name for path in output.glob("*.png")})
        self.check_pages(output, {path.name for path in output.glob("*.png")})
        lines = [
            json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()
        ]
        score = [line["critic/score/mean"] for line in lines if "critic/score/mean" in line]
        seen = next(iter(json.loads((output / "summary.json").read_text()).values()))
        self.assertAlmostEqual(seen["reward_first"], float(np.mean(score[:5])))
        self.assertAlmostEqual(seen["reward_last"], float(np.mean(score[-10:])))


if __name__ == "__main__":
    unittest.main()
