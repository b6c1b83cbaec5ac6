# SPDX-License-Identifier: Apache-2.0
"""Numbers with the words that they count, and the lines that ./quickstart ends with. Standard library only.

python3 tools/tests/test_words.py
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))

from report.words import count_text


class Words(unittest.TestCase):
    def test_one_and_many(self) -> None:
        self.assertEqual(count_text(1, "iteration"), "1 iteration")
        self.assertEqual([count_text(n, "change") for n in (0, 2.0)], ["0 changes", "2 changes"])
        self.assertEqual(count_text(1234567.0, "change"), "1234567 changes")


class RewardSummary(unittest.TestCase):
    def lines(self, records: list[dict]) -> list[str]:
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch) / "metrics.jsonl"
            log.write_text("".join(json.dumps(record) + "\n" for record in records))
            done = subprocess.run(
                [sys.executable, TOOLS / "reward_summary.py", log], capture_output=True, text=True, check=True
            )
        return [" ".join(line.split()) for line in done.stdout.splitlines()]

    def test_a_run_of_one_iteration(self) -> None:
        record = {"step": 1, "critic/score/mean": 0.5, "adaptive/switches": 1.0}
        self.assertEqual(
            self.lines([record]), ["reward 0.500 in the only iteration", "layouts 1 change in 1 of 1 iteration"]
        )

    def test_more_changes_than_iterations(self) -> None:
        records = [{"step": i, "critic/score/mean": 0.5, "adaptive/switches": 3.0 * (i > 1)} for i in (1, 2, 3)]
        self.assertEqual(self.lines(records)[1], "layouts 6 changes in 2 of 3 iterations")


if __name__ == "__main__":
    unittest.main()
