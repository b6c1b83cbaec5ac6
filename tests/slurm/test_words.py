#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the scripts of slurm/ make of words and of status.json; needs no Slurm.

python3 tests/slurm/test_words.py
"""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SLURM = Path(__file__).resolve().parents[2] / "slurm"
COMMON = SLURM / "common.sh"
TASK = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": "2"}
STATUS = '{\n  "state": "stopped",\n  "iteration": 3,\n  "iterations": 10,\n  "time": "T",\n  "why": "SIG, \\"x\\""\n}'


def run_bash(code: str, *words: str, **environment: str) -> subprocess.CompletedProcess:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    return subprocess.run(["bash", "-uc", f'source "$0"; {code}', COMMON, *words], env={**variables, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def expand(*words: str, **environment: str) -> list[str]:
    done = run_bash("taper_expand \"$@\"; printf '%s\\0' \"${taper_words[@]}\"", *words, **environment)
    return done.stdout.split("\0")[:-1]


class Words(unittest.TestCase):
    def test_numbers_of_the_job(self) -> None:
        self.assertEqual(expand("run.yaml", "out-%N-%n", "100%%", "%%a", SLURM_JOB_NUM_NODES="4", SLURM_NTASKS="8"),
                         ["run.yaml", "out-4-8", "100%", "%a"])
        self.assertEqual(expand("seed-%a/%a", **TASK), ["seed-2/2"])

    def test_a_line_of_a_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            sweep = Path(folder) / "sweep.txt"
            sweep.write_text('--set A=1\n--set "Optimizer/Learning Rate=1e-3" --set \'B=%a "b"\'\n')
            self.assertEqual(expand("x", f"@{sweep}", "y z", **TASK),
                             ["x", "--set", "Optimizer/Learning Rate=1e-3", "--set", 'B=2 "b"', "y z"])
            done = run_bash('taper_expand "$@"', f"@{sweep}", **{**TASK, "SLURM_ARRAY_TASK_ID": "3"})
            self.assertEqual(done.returncode, 2)
            self.assertIn("has no line 3", done.stdout)

    def test_what_needs_an_array(self) -> None:
        for word in ("seed-%a", "@sweep.txt"):
            done = run_bash('taper_expand "$@"', word)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"'{word}' needs the index of a job array", done.stdout)

    def test_a_task_of_an_array_is_named_as_such(self) -> None:
        self.assertEqual(run_bash('echo "$taper_id"', **TASK).stdout, "5_2\n")
        self.assertEqual(run_bash('echo "$taper_id"', SLURM_JOB_ID="7").stdout, "7\n")


class ScalingStudy(unittest.TestCase):
    """slurm/scaling.sh with an sbatch that writes down what it was told."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.program("sbatch", 'case "$*" in *=8\\ *) exit 1 ;; esac\n'
                     'printf "%s\\n" "$*" >> "$FOLDER/told"; wc -l < "$FOLDER/told"')
        self.program("taper", 'case "${@: -1}" in Output/Directory) echo "${OUT:-out}" ;; *) echo 16 ;; esac')

    def program(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (self.folder / name).chmod(0o755)

    def submit(self, *words: str, **environment: str) -> tuple[int, list[list[str]], str]:
        """Exit code, what sbatch was told, and what the script said."""
        variables = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "FOLDER": str(self.folder),
                     "TAPER_COMMAND": "taper", **environment}
        done = subprocess.run([SLURM / "scaling.sh", *words], text=True, env=variables, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        (self.folder / "told").touch()
        told = [line.split() for line in (self.folder / "told").read_text().splitlines()]
        return done.returncode, told, done.stdout

    def test_nodes(self) -> None:
        code, told, _ = self.submit("1 2", "--ntasks-per-node=4", "--gpus=4", "--", "run.yaml", "--", "--time=5")
        self.assertEqual(code, 0)
        for line, nodes in zip(told, ("1", "2")):
            self.assertEqual(line[1:4], ["--ntasks-per-node=4", "--gpus=4", f"--nodes={nodes}"])
            self.assertEqual(line[5:], ["run.yaml", "--set", "Output/Directory=out/nodes-%N"])
        self.assertEqual(told[2][1:3], ["--time=5", "--dependency=afterany:1:2"])
        self.assertEqual(told[2][4:], ["--scaling", "out/nodes-1", "out/nodes-2", "--output", "out/report"])

    def test_ranks_and_weak_scaling(self) -> None:
        code, told, _ = self.submit("--weak", "--ranks", "1 4", "--", "run.yaml")
        self.assertEqual(code, 0)
        self.assertEqual([line[1] for line in told[:2]], ["--ntasks=1", "--ntasks=4"])
        for line, prompts in zip(told, (16, 64)):
            self.assertEqual(line[4:], ["--set", "Output/Directory=out/ranks-%n", "--set", f"Rollout/Prompts={prompts}"])

    def test_a_size_that_is_refused_leaves_the_others_their_report(self) -> None:
        code, told, said = self.submit("1 8", "--", "run.yaml")
        self.assertEqual(code, 1)
        self.assertIn("--dependency=afterany:1", told[1])
        self.assertIn("not submitted: 8 nodes", said)
        code, told, _ = self.submit("8", "--", "run.yaml")
        self.assertEqual((code, len(told)), (1, 2))

    def test_a_report_that_is_refused_can_be_made_by_hand(self) -> None:
        code, told, said = self.submit("1", "--", "run.yaml", "--", "--time=8 ")
        self.assertEqual((code, len(told)), (1, 1))
        self.assertIn("report by hand: taper report --scaling out/nodes-1 --output out/report", said)
        self.assertIn("not submitted: (report)", said)

    def test_bad_words(self) -> None:
        for words in (["--strong", "1", "--", "x"], ["1,2", "--", "x"], ["1", "x"], ["1", "--"]):
            self.assertEqual(self.submit(*words)[:2], (2, []))
        self.assertEqual(self.submit("1", "--", "x", OUT="out-%n")[:2], (2, []))


class Status(unittest.TestCase):
    def test_fields(self) -> None:
        found = {name: run_bash(f'taper_status_field {name} "$1"', STATUS).stdout.strip()
                 for name in ("state", "iteration", "iterations", "why", "nothing")}
        self.assertEqual(found, {"state": "stopped", "iteration": "3", "iterations": "10", "why": 'SIG, \\"x\\"',
                                 "nothing": ""})


# Answers --print as taper does.
FAKE = """#!/usr/bin/env bash
case "$1 ${@: -1}" in
  "train Output/Directory") echo "out/" ;;
  *"Output/Directory") echo "${MODEL-tuned}" ;;
  "train Output/Run Directory") exit 2 ;;
  *"Output/Run Directory") echo "${RUN-}" ;;
  *"Run/Deadline Margin") echo 120 ;;
esac
"""


class Run(unittest.TestCase):
    def examine(self, command: str, end: str = "", **environment: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as folder:
            fake = Path(folder) / "taper"
            fake.write_text(FAKE)
            fake.chmod(0o755)
            code = 'taper_read_command; taper_words=(run.yaml); taper_examine_run "$@"; echo "$taper_status"'
            return run_bash(code, command, end, TAPER_COMMAND=str(fake), **environment)

    def test_where_the_status_is(self) -> None:
        self.assertEqual(self.examine("train").stdout, "out//status.json\n")
        for command in ("sft", "reward-model"):
            self.assertEqual(self.examine(command).stdout, "tuned.run/status.json\n")
            self.assertEqual(self.examine(command, MODEL="a b/tuned//").stdout, "a b/tuned.run/status.json\n")
            self.assertEqual(self.examine(command, RUN="a run").stdout, "a run/status.json\n")

    def test_too_little_time(self) -> None:
        for command in ("train", "sft", "reward-model"):
            done = self.examine(command, "1000")
            self.assertEqual(done.returncode, 2)
            self.assertIn("ends within Run/Deadline Margin, 120 s", done.stdout)


if __name__ == "__main__":
    unittest.main()
