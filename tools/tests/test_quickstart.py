# SPDX-License-Identifier: Apache-2.0
"""What ./quickstart says of arguments before it builds anything.

python3 tools/tests/test_quickstart.py (standard library only).
"""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

QUICKSTART = Path(__file__).resolve().parents[2] / "quickstart"


class Refusals(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="taper-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def refused(self, *arguments: str) -> str:
        """What is printed; neither results nor builds are begun."""
        words = ["bash", str(QUICKSTART), *arguments]
        places = os.environ | {"TAPER_BUILD_DIR": str(self.folder / "build")}
        done = subprocess.run(
            words, cwd=self.folder, env=places, capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])
        return done.stdout + done.stderr

    def test_a_model_that_is_not_there_leaves_no_results(self) -> None:
        text = self.refused("--model", "nowhere")
        self.assertIn(f"{self.folder.resolve()}/nowhere is no Hugging Face directory", text)
        self.assertNotIn("one rank", text)

    def test_a_finished_run_is_kept_and_an_unfinished_one_goes_on(self) -> None:
        with tempfile.TemporaryDirectory(prefix="taper-test-") as output:
            for state, word in (("completed", "holds a finished run"), ("stopped", "it goes on")):
                Path(output, "status.json").write_text(f'{{"state": "{state}", "iteration": 4}}\n')
                self.assertIn(word, self.refused("--output", output, "--model", "nowhere"))

    def test_one_rank_drops_layouts_and_transport_aloud(self) -> None:
        self.assertIn("both are dropped", self.refused("--model", "nowhere", "--ranks", "1"))
        static = ("--ranks", "1", "--mode", "static", "--transport", "mpi")
        self.assertNotIn("dropped", self.refused("--model", "nowhere", *static))

    def test_arguments(self) -> None:
        self.assertIn("--ranks must be at least 1", self.refused("--ranks", "0"))
        self.assertIn("unknown argument --rank", self.refused("--rank", "2"))


if __name__ == "__main__":
    unittest.main()
