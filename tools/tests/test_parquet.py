# SPDX-License-Identifier: Apache-2.0
"""The converter from Parquet. python3 tools/tests/test_parquet.py. Exit code 77: pyarrow is missing."""
import datetime
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[1] / "parquet_to_jsonl.py"

try:
    import pyarrow
    from pyarrow import parquet
except ModuleNotFoundError as missing:
    print(f"skipped: {missing} (set TAPER_PYTHON to an interpreter with pyarrow)")
    sys.exit(77)

VERL = [
    {"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "2 + 3? ü"}], "ability": "math",
     "reward_model": {"ground_truth": "5", "style": "rule"}, "extra_info": {"index": 0, "split": "train", "note": None}},
    {"data_source": "openai/gsm8k", "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}],
     "ability": "math", "reward_model": {"ground_truth": "7", "style": "rule"},
     "extra_info": {"index": 1, "split": "train", "note": "x"}},
]


class Conversion(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="taper-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def write(self, rows, name="data.parquet"):
        path = self.folder / name
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return path

    def run_tool(self, *words):
        self.output = self.folder / "out.jsonl"
        return subprocess.run([sys.executable, TOOL, *map(str, words), "--output", self.output], capture_output=True,
                              text=True)

    def lines(self):
        return [json.loads(line) for line in self.output.read_text(encoding="utf-8").splitlines()]

    def test_rows_of_verl(self):
        done = self.run_tool(self.write(VERL))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.lines(), [
            {"prompt": VERL[0]["prompt"], "data_source": "openai/gsm8k", "ground_truth": "5",
             "extra_info": {"index": 0, "split": "train"}},
            {"prompt": VERL[1]["prompt"], "data_source": "openai/gsm8k", "ground_truth": "7",
             "extra_info": {"index": 1, "split": "train", "note": "x"}}])

    def test_several_files_in_their_order(self):
        done = self.run_tool(self.write(VERL), self.write(VERL[:1], "more.parquet"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line["ground_truth"] for line in self.lines()], ["5", "7", "5"])

    def test_columns_of_other_names(self):
        rows = [{"question": "q", "answer": 72, "level": 3, "day": datetime.date(2026, 1, 2)}]
        done = self.run_tool(self.write(rows), "--prompt", "question", "--truth", "answer", "--data-source", "mine",
                             "--keep", "level", "--keep", "day")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.lines(), [{"prompt": "q", "data_source": "mine", "ground_truth": 72,
                                         "extra_info": {"level": 3, "day": "2026-01-02"}}])

    def test_what_cannot_be_converted(self):
        for rows, words, problem in (
            ([{"prompt": "a"}], (), "row 1: no ground truth"),
            ([{"question": "a"}], (), "no column 'prompt'"),
            ([{"prompt": "a", "ground_truth": "1"}], ("--keep", "b"), "no column 'b'"),
            ([{"prompt": 5, "ground_truth": "1"}], (), "'prompt' is 5"),
            ([{"prompt": [{"role": "user"}], "ground_truth": "1"}], (), "message 0 of 'prompt'"),
            ([{"prompt": "a", "ground_truth": b"1"}], (), "bytes"),
        ):
            with self.subTest(problem=problem):
                done = self.run_tool(self.write(rows), *words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(problem, done.stderr)
                self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["data.parquet"])
        broken = self.folder / "data.parquet"
        broken.write_text("no parquet")
        self.assertEqual(self.run_tool(broken).returncode, 2)

    def test_prompts_alone(self):
        done = self.run_tool(self.write([{"prompt": "a"}]), "--without-truth")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.lines(), [{"prompt": "a"}])


if __name__ == "__main__":
    unittest.main()
