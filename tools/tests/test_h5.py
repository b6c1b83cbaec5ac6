# SPDX-License-Identifier: Apache-2.0
"""The reader against made-up files, and against those of `taper train`
where TAPER_RUN_DIR names their directory.

python3 tools/tests/test_h5.py. Exit code 77: packages missing.
"""
import math
import os
import re
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

try:
    import h5py
    import numpy as np
    from synthetic_run import make_numbers, write_log, write_records, write_rollouts, write_run

    from taper_h5 import (
        FORMAT_VERSIONS,
        ReadError,
        read_metrics_jsonl,
        read_rollouts,
        read_run,
        valid_lengths,
    )
except ModuleNotFoundError as missing:
    print(f"skipped: {missing} (set TAPER_PYTHON to an interpreter with h5py and numpy)")
    sys.exit(77)


class ScratchCase(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="taper-test-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def check_refused(self, read: Callable[[Path], object], path: Path, *words: str) -> None:
        with self.assertRaises(ReadError) as caught:
            read(path)
        for word in (str(path), *words):
            self.assertIn(word, str(caught.exception))


class RunFile(ScratchCase):
    def test_all_that_was_written(self) -> None:
        numbers = make_numbers(5)
        path = self.root / "run.h5"
        write_run(path, numbers)
        run = read_run(path)
        self.assertEqual(run.config, numbers.config)
        self.assertEqual(run.facts["build/compiler"], "GCC 12.2.0")
        self.assertEqual(run.facts["machine/ranks"], "2")
        self.assertEqual(run.units["/metrics/timing_s/gen"], "s")
        np.testing.assert_array_equal(run.steps, numbers.steps)
        self.assertEqual(sorted(run.metrics), sorted(numbers.metrics))
        for name, values in numbers.metrics.items():
            np.testing.assert_array_equal(run.metrics[name], values)
        np.testing.assert_array_equal(run.timing["gen"], numbers.timing["gen"])
        np.testing.assert_array_equal(run.timing_steps, numbers.steps)
        np.testing.assert_array_equal(run.lengths, numbers.lengths)
        self.assertEqual(len(valid_lengths(run.lengths)), 5 * 128 - 28)
        self.assertEqual(list(run.records), ["decisions"])
        np.testing.assert_array_equal(run.records["decisions"]["step"], [1, 1, 2, 2])

    def test_columns_of_records_keep_their_types(self) -> None:
        path = self.root / "run.h5"
        write_run(path, make_numbers(2))
        columns = {"to": np.array(["1x2", "", "4+2+2"]), "done": np.array([1, 0, 1]), "at_s": np.ones(3)}
        write_records(path, "layout_switches", np.array([1, 1, 2]), columns)
        records = read_run(path).records["layout_switches"]
        self.assertEqual(records["to"].tolist(), ["1x2", "", "4+2+2"])
        self.assertEqual([records[name].dtype.kind for name in ("to", "done", "at_s")], ["U", "i", "f"])

    def test_layouts_of_version_1_are_texts(self) -> None:
        path = self.root / "run.h5"
        write_run(path, make_numbers(2))
        layouts = {
            11: "1x2",
            2: "2x1",
            422: "4+2+2",
            4211: "4+2+1+1",
            -16000001: "16x1",
            -1000016: "1x16",
            -2000032: "32 groups of up to 2",
            math.nan: "",
        }
        codes = np.array(list(layouts), float)
        write_records(path, "layout_switches", np.ones(len(codes)), {"to": codes})
        with h5py.File(path, "a") as file:
            file.attrs["format_version"] = 1
        seen = read_run(path).records["layout_switches"]["to"]
        self.assertEqual(seen.tolist(), list(layouts.values()))
        with h5py.File(path, "a") as file:
            file["machine"].attrs["ranks"] = "64"
        self.assertIn("2x32", read_run(path).records["layout_switches"]["to"])

    def test_bad_files(self) -> None:
        self.check_refused(read_run, self.root / "none.h5", "no such file")
        self.check_refused(read_run, self.root, "directory")
        text = self.root / "text.h5"
        text.write_text("not HDF5")
        self.check_refused(read_run, text, "HDF5")
        rollouts = self.root / "rollouts.h5"
        write_rollouts(rollouts)
        self.check_refused(read_run, rollouts, "taper-rollouts")

    def test_damage_inside(self) -> None:
        path = self.root / "run.h5"
        write_run(path, make_numbers(5))
        with h5py.File(path, "a") as file:
            file.attrs["format_version"] = 9
        self.check_refused(read_run, path, "version 9")
        write_run(path, make_numbers(5))
        with h5py.File(path, "a") as file:
            file["metrics/short"] = np.zeros(4)
        self.check_refused(read_run, path, "/metrics/short")
        write_run(path, make_numbers(5))
        with h5py.File(path, "a") as file:
            del file["timing/step"]
        self.check_refused(read_run, path, "/timing has no step")

    def test_versions_are_those_that_the_program_writes(self) -> None:
        sources = {
            "taper-run": "results/RunFile.hpp",
            "taper-rollouts": "results/detail/RolloutSchema.cpp",
            "taper-profile": "results/detail/ProfileSchema.cpp",
        }
        for kind, name in sources.items():
            text = (TOOLS.parent / "src" / name).read_text()
            found = re.search(r"(?:kFormatVersion|\.version) = (\d+)", text)
            self.assertEqual(FORMAT_VERSIONS[kind], int(found[1]), name)

    def test_attribute_of_another_kind(self) -> None:
        path = self.root / "run.h5"
        write_run(path, make_numbers(5))
        with h5py.File(path, "a") as file:
            file.attrs["format_version"] = "new"
        self.check_refused(read_run, path, "cannot be read")

    def test_wrong_checksum(self) -> None:
        path = self.root / "run.h5"
        write_run(path, make_numbers(5))
        with h5py.File(path) as file:
            offset = file["metrics/actor/entropy"].id.get_chunk_info(0).byte_offset
        content = bytearray(path.read_bytes())
        content[offset + 3] ^= 0x10
        path.write_bytes(bytes(content))
        self.check_refused(read_run, path, "HDF5")


class RolloutFile(ScratchCase):
    def test_all_that_was_written(self) -> None:
        path = self.root / "iter_000007.h5"
        write_rollouts(path)
        rollouts = read_rollouts(path)
        self.assertEqual((rollouts.iteration, rollouts.reward_names), (7, ["correct", "length"]))
        self.assertEqual(rollouts.attributes["model"], "tiny")
        self.assertEqual(
            [tokens.tolist() for tokens in rollouts.tokens], [[0, 1, 2, 3], [4, 5], [6, 7, 8, 9]]
        )
        self.assertEqual(
            [len(log_probs) for log_probs in rollouts.log_probs], rollouts.response_length.tolist()
        )
        self.assertEqual([len(mass) for mass in rollouts.kept_mass], [0, 0, 0])
        self.assertEqual([values.tolist() for values in rollouts.values], [[0, 1], [], [2, 3, 4]])
        self.assertEqual(rollouts.layout[2].tolist(), [[0, 1, 1], [2, 2, 0]])
        self.assertEqual(rollouts.rewards.tolist(), [[1, 0.5], [0, 0], [1, 0]])
        self.assertEqual(rollouts.finish.tolist(), [0, 3, 2])

    def test_kept_masses_and_values_may_be_absent(self) -> None:
        path = self.root / "rollouts.h5"
        write_rollouts(path)
        with h5py.File(path, "a") as file:
            del file["kept_mass"], file["values"]
        self.assertEqual([len(mass) for mass in read_rollouts(path).kept_mass], [0, 0, 0])
        self.assertEqual([len(values) for values in read_rollouts(path).values], [0, 0, 0])

    def test_damage_inside(self) -> None:
        path = self.root / "rollouts.h5"
        write_rollouts(path)
        with h5py.File(path, "a") as file:
            file["tokens/offsets"][-1] = 11
        self.check_refused(read_rollouts, path, "/tokens/offsets")
        write_rollouts(path)
        with h5py.File(path, "a") as file:
            del file["finish"]
        self.check_refused(read_rollouts, path, "finish")


class MetricsLog(ScratchCase):
    def test_all_that_was_written(self) -> None:
        numbers = make_numbers(12)
        path = self.root / "metrics.jsonl"
        write_log(path, numbers)
        steps, metrics = read_metrics_jsonl(path)
        np.testing.assert_array_equal(steps, numbers.steps)
        for name, values in numbers.metrics.items():
            np.testing.assert_array_equal(metrics[name], values)

    def test_repeated_steps_holes_and_the_line_in_the_making(self) -> None:
        path = self.root / "metrics.jsonl"
        path.write_text(
            '{"step": 1, "a": 1, "b": "-inf"}\n\n{"step": 2, "a": 2}\n{"step": 2, "a": 3, "c": -0.0}\n{"step": 3'
        )
        steps, metrics = read_metrics_jsonl(path)
        self.assertEqual(steps.tolist(), [1, 2])
        self.assertEqual(metrics["a"].tolist(), [1, 3])
        self.assertEqual(metrics["b"][0], -np.inf)
        self.assertTrue(np.isnan(metrics["b"][1]) and np.isnan(metrics["c"][0]))

    def test_bad_lines(self) -> None:
        path = self.root / "metrics.jsonl"
        for line, word in (
            ("{", "JSON"),
            ('{"a": 1}', "step"),
            ("[1]", "step"),
            ('{"step": 2, "a": "x"}', '"a"'),
            ('{"step": 2, "a": true}', '"a"'),
            ('{"step": 1.5}', "step"),
        ):
            path.write_text('{"step": 1, "a": 1}\n' + line + "\n")
            self.check_refused(read_metrics_jsonl, path, ":2:", word)
        self.check_refused(read_metrics_jsonl, self.root / "none.jsonl", "No such file")


@unittest.skipUnless("TAPER_RUN_DIR" in os.environ, "TAPER_RUN_DIR names no run")
class RealFiles(unittest.TestCase):
    def test_the_log_and_the_run_file_agree(self) -> None:
        directory = Path(os.environ["TAPER_RUN_DIR"])
        run = read_run(directory / "run.h5")
        steps, metrics = read_metrics_jsonl(directory / "metrics.jsonl")
        np.testing.assert_array_equal(run.steps, steps)
        self.assertEqual(sorted(run.metrics), sorted(metrics))
        for name, values in metrics.items():
            np.testing.assert_array_equal(run.metrics[name], values)
        self.assertIn("gen", run.timing)
        self.assertTrue((run.timing["gen"][:, 0] <= run.timing["gen"][:, 2]).all())

    def test_rollouts_fit_the_run_file(self) -> None:
        directory = Path(os.environ["TAPER_RUN_DIR"])
        run = read_run(directory / "run.h5")
        files = sorted((directory / "rollouts").glob("*.h5"))
        self.assertTrue(files)
        for path in files:
            rollouts = read_rollouts(path)
            row = run.lengths[list(run.length_steps).index(rollouts.iteration)]
            self.assertEqual(sorted(row[row >= 0]), sorted(rollouts.response_length))
            for tokens, prompt, response in zip(
                rollouts.tokens, rollouts.prompt_length, rollouts.response_length
            ):
                self.assertEqual(len(tokens), prompt + response)


if __name__ == "__main__":
    unittest.main()
