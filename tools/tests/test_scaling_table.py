# SPDX-License-Identifier: Apache-2.0
"""The table of a scaling study. Standard library only.

python3 tools/tests/test_scaling_table.py
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "scaling_table.py"


def record(step: int, ranks: int, seconds: float, tokens: int = 1200) -> dict:
    return {"step": step, "timing_s/step": seconds, "timing_s/gen": seconds / 2, "timing_s/update_actor": seconds / 4,
            "perf/total_num_tokens": tokens, "perf/throughput": tokens / seconds / ranks}


class ScalingTable(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def write(self, name: str, records: list[dict]) -> str:
        folder = Path(self.scratch.name) / name
        folder.mkdir()
        (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        return str(folder)

    def run_script(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)

    def test_efficiency_is_relative_to_the_fewest_ranks(self) -> None:
        # The first iterations warm up; the last line of a run may hold an evaluation only.
        four = self.write("four", [record(1, 4, 9.0), record(2, 4, 2.0), record(3, 4, 2.0), {"step": 3, "val/x": 1}])
        two = self.write("two", [record(1, 2, 9.0), record(2, 2, 3.0), record(3, 2, 3.2), record(4, 2, 3.4)])
        done = self.run_script(four, two)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()[1:]]
        self.assertEqual(rows, [["2", "3", "3.20", "1.60", "0.80", "375", "1.00", "1.00", two],
                                ["4", "2", "2.00", "1.00", "0.50", "600", "1.60", "0.80", four]])

    def test_a_critic_that_learns_counts_as_training(self) -> None:
        alone = {key: value for key, value in record(2, 2, 3.0).items() if key != "timing_s/update_actor"}
        ppo = self.write("ppo", [record(1, 2, 9.0), {**alone, "timing_s/update_critic": 0.5},
                                 {**record(3, 2, 3.0), "timing_s/update_critic": 0.75}])
        done = self.run_script(ppo)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[1].split()[4], "1.00")

    def test_what_is_no_run(self) -> None:
        short = self.write("short", [record(1, 2, 1.0)])
        done = self.run_script(short)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("fewer than two iterations", done.stderr)
        done = self.run_script(self.scratch.name)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"error: {self.scratch.name} is no run", done.stderr)


if __name__ == "__main__":
    unittest.main()
