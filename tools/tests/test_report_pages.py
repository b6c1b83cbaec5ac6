# SPDX-License-Identifier: Apache-2.0
"""The words of a report: captions, glossary, and what it says of fine-tuning, on made-up runs.

python3 tools/tests/test_report_pages.py. Exit code 77: packages missing.
"""
import html
import json
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

from test_report import ReportCase  # ends with 77 without packages

import numpy as np
from synthetic_layouts import write_layout_run
from synthetic_run import CONFIG, Synthetic, make_numbers

from report.captions import CAPTIONS
from report.data import PHASE_ORDER, load_runs
from report.figures import FIGURES
from report.glossary import PHASES, glossary
from report.summary import console_lines
from taper_report import make_report


class Words(ReportCase):
    def test_every_picture_has_a_sentence(self) -> None:
        self.assertEqual(set(CAPTIONS), {name for name, _, _ in FIGURES} | {"profile", "scaling"})
        output = make_report([self.make_run("run", make_numbers(12))], None)
        markdown, page = (output / "index.md").read_text(), (output / "index.html").read_text()
        for picture in output.glob("*.png"):
            self.assertIn(f"({picture.name})\n\n{CAPTIONS[picture.stem]}\n", markdown)
            self.assertIn(html.escape(CAPTIONS[picture.stem]), page)

    def test_the_glossary_has_the_words_of_the_page(self) -> None:
        self.assertTrue({*PHASE_ORDER, "other"} <= set(PHASES))
        output = make_report([self.make_run("run", make_numbers(12))], None)
        end = (output / "index.md").read_text().split("## Glossary")[1]
        for word in ("rank", "KL", "gen (phase)", "adv (phase)", "testing (phase)"):
            self.assertIn(f"| {word} |", end)
        for word in ("oracle", "repack", "values (phase)"):
            self.assertNotIn(f"| {word} |", end)
        write_layout_run(self.root / "adaptive/run.h5", 8)
        end = (make_report([self.root / "adaptive"], None) / "index.md").read_text().split("## Glossary")[1]
        for word in ("oracle", "repack", "replay", "false trigger", "consultation"):
            self.assertIn(f"| {word} |", end)
        self.assertNotIn("iteration", [row[0] for row in glossary(["fine_tuning"], []).rows])


def fine_tuning(steps: int) -> Synthetic:
    """As taper sft logs it: a held-out loss before the first step, and behind the last one."""
    at, held_out = np.arange(steps + 1), np.full(steps + 1, np.nan)
    held_out[0], held_out[-1] = 1.5, 0.5
    loss = np.concatenate([[np.nan], np.linspace(2.0, 1.0, steps)])
    return Synthetic(
        at, {"train/loss": loss, "val/loss": held_out}, {}, np.empty((0, 0), np.int32), CONFIG
    )


class FineTuning(ReportCase):
    def test_steps_and_losses(self) -> None:
        directory = self.make_run("tuned", fine_tuning(12))
        output = make_report([directory], None)
        seen = json.loads((output / "summary.json").read_text())["tuned"]
        expected = {
            "iterations": None,
            "steps": 12,
            "train_loss_first": 2.0,
            "train_loss_last": 1.0,
            "val_loss_first": 1.5,
            "val_loss_last": 0.5,
        }
        self.assertEqual({key: seen[key] for key in expected}, expected)
        markdown = (output / "index.md").read_text()
        self.assertIn("\ntuned: steps 1 to 12\n", markdown)
        self.assertIn("| steps | 12 |", markdown)
        self.assertNotIn("iterations", markdown.split("## Glossary")[0])
        line = "training loss 2.000 in step 1, 1.000 in step 12; held-out loss 1.500 before training, 0.500 after 12 steps"
        self.assertEqual(console_lines(load_runs([directory])[0]), [f"tuned: {line}"])

    def test_beside_a_run_that_learns_from_rewards(self) -> None:
        runs = [self.make_run("tuned", fine_tuning(12)), self.make_run("run", make_numbers(45))]
        markdown = (make_report(runs, self.root / "out") / "index.md").read_text()
        for row in ("iterations | n/a | 45", "steps | 12 | n/a"):
            self.assertIn(f"| {row} |", markdown)
        self.assertIn("| mean reward, first 5 iterations | n/a |", markdown)

    def test_before_the_first_step(self) -> None:
        numbers = fine_tuning(1)
        begun = Synthetic(
            numbers.steps[:1],
            {"val/loss": numbers.metrics["val/loss"][:1]},
            {},
            numbers.lengths,
            CONFIG,
        )
        output = make_report([self.make_run("begun", begun)], None)
        self.assertIn("begun: no step yet", (output / "index.md").read_text())

    def test_training_has_no_steps(self) -> None:
        output = make_report([self.make_run("run", make_numbers(3))], None)
        seen = json.loads((output / "summary.json").read_text())["run"]
        self.assertEqual((seen["iterations"], seen["steps"]), (3, None))
        self.assertIn("run: iterations 1 to 3", (output / "index.md").read_text())


if __name__ == "__main__":
    unittest.main()
