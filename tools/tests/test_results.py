# SPDX-License-Identifier: Apache-2.0
"""The reader for notebooks against made-up runs, and against one of `taper train` where
TAPER_RUN_DIR names its directory.

python3 tools/tests/test_results.py. Exit code 77: packages missing.
"""
import os
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

try:
    import numpy as np
    from synthetic_layouts import write_layout_run
    from synthetic_run import make_numbers, write_log, write_rollouts, write_run

    from taper_results import ReadError, open_run
except ModuleNotFoundError as missing:
    print(f"skipped: {missing} (set TAPER_PYTHON to an interpreter with h5py and numpy)")
    sys.exit(77)


class OneRun(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="taper-test-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.numbers = make_numbers(6)
        write_run(self.root / "run.h5", self.numbers)

    def test_metrics(self) -> None:
        for path in (self.root, self.root / "run.h5", str(self.root)):
            run = open_run(path)
            np.testing.assert_array_equal(run.steps, self.numbers.steps)
            np.testing.assert_array_equal(
                run["critic/score/mean"], self.numbers.metrics["critic/score/mean"]
            )
        self.assertIn("actor/entropy", run)
        self.assertNotIn("actor/other", run)
        self.assertEqual(
            run.names("critic/score/*"),
            ["critic/score/max", "critic/score/mean", "critic/score/min"],
        )
        self.assertEqual(run.names(), sorted(self.numbers.metrics))
        self.assertEqual(run.describe("timing_s/gen"), "timing_s/gen [s]")
        with self.assertRaisesRegex(KeyError, "there are .*actor/entropy"):
            run["entropy"]

    def test_a_run_that_goes_on(self) -> None:
        run = open_run(self.root)
        write_run(self.root / "run.h5", make_numbers(9))
        self.assertEqual(len(run.steps), 6)
        run.refresh()
        self.assertEqual(len(run.steps), 9)

    def test_configuration_facts_and_phases(self) -> None:
        run = open_run(self.root)
        self.assertEqual(run.config["Optimizer/Learning Rate"], "0.0002")
        self.assertEqual(run.facts["machine/ranks"], "2")
        self.assertEqual(run.status(), {})
        (self.root / "status.json").write_text('{"state": "running"}')
        self.assertEqual(run.status(), {"state": "running"})
        steps, phases = run.phases()
        np.testing.assert_array_equal(steps, self.numbers.steps)
        np.testing.assert_array_equal(phases["gen"], self.numbers.timing["gen"])

    def test_rollouts(self) -> None:
        (self.root / "rollouts").mkdir()
        run = open_run(self.root)
        self.assertEqual(list(run.rollouts()), [])
        for iteration in (7, 1000007):
            write_rollouts(self.root / f"rollouts/iter_{iteration:06d}.h5")
        self.assertEqual(list(run.rollout_files()), [7, 1000007])
        self.assertEqual(len(list(run.rollouts())), 2)
        self.assertEqual(
            [r.path.name for r in run.rollouts(last=1)], ["iter_1000007.h5"]
        )
        self.assertEqual([r.iteration for r in run.rollouts([7])], [7])
        self.assertEqual([r.iteration for r in run.rollouts(i for i in [7])], [7])
        with self.assertRaisesRegex(ReadError, "no iteration 8 .it has 7 to 1000007"):
            list(run.rollouts([8]))
        samples = list(run.samples(7))
        self.assertEqual([s.prompt.tolist() for s in samples], [[0, 1], [4, 5], [6]])
        self.assertEqual([s.response.tolist() for s in samples], [[2, 3], [], [7, 8, 9]])
        self.assertEqual(samples[0].rewards, {"correct": 1.0, "length": 0.5})
        self.assertEqual([s.finish for s in samples], ["eos", "abort", "length"])
        self.assertEqual((samples[2].group, samples[2].sample, samples[2].advantage), (1, 0, 0.0))

    def test_layout_events(self) -> None:
        self.assertEqual(open_run(self.root).layout_events(), [])
        self.assertEqual(len(open_run(self.root).records("layout_switches")["step"]), 0)
        write_layout_run(self.root / "adaptive/run.h5", 8)
        run = open_run(self.root / "adaptive")
        events = run.layout_events()
        self.assertEqual(len(events), int(run.records("layout_switches")["done"].sum()))
        self.assertEqual({event.after for event in events}, {"2x1"})
        self.assertTrue(all(event.time_s > 0 and event.predicted_s > 0 for event in events))
        self.assertEqual(sorted({e.iteration for e in events}), [1, 2, 3, 5, 6, 7])

    def test_no_profile(self) -> None:
        with self.assertRaisesRegex(ReadError, "no profile"):
            open_run(self.root).profile()

    def test_the_log_alone(self) -> None:
        write_log(self.root / "log/metrics.jsonl", self.numbers)
        run = open_run(self.root / "log")
        np.testing.assert_array_equal(run.steps, self.numbers.steps)
        self.assertEqual(run.describe("actor/entropy"), "actor/entropy")

    def test_bad_directories(self) -> None:
        with self.assertRaisesRegex(ReadError, "no such directory"):
            open_run(self.root / "nowhere")

    def test_frame(self) -> None:
        run = open_run(self.root)
        try:
            frame = run.frame(["actor/*", "critic/score/mean"])
        except ModuleNotFoundError:
            self.skipTest("pandas is not here")
        self.assertEqual(list(frame.columns), run.names("actor/*", "critic/score/mean"))
        self.assertEqual(frame.index.tolist(), self.numbers.steps.tolist())


@unittest.skipUnless("TAPER_RUN_DIR" in os.environ, "TAPER_RUN_DIR names no run")
class RealRun(unittest.TestCase):
    def test_everything_can_be_read(self) -> None:
        run = open_run(os.environ["TAPER_RUN_DIR"])
        self.assertGreater(len(run.steps), 0)
        self.assertIn("Training/Iterations", run.config)
        last = list(run.rollout_files())[-1]
        samples = list(run.samples(last))
        self.assertEqual(
            sorted(len(s.response) for s in samples),
            sorted(n for n in run.data.lengths[list(run.data.length_steps).index(last)] if n >= 0),
        )
        for sample in samples:
            self.assertEqual(len(sample.response), len(sample.log_probs))
            self.assertTrue((sample.log_probs <= 0).all())
        for event in run.layout_events():
            self.assertGreater(event.time_s, 0)


if __name__ == "__main__":
    unittest.main()
