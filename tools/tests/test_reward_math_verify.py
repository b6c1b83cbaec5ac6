# SPDX-License-Identifier: Apache-2.0
"""The worker that asks Math-Verify. python3 tools/tests/test_reward_math_verify.py. Exit code 77: it is missing."""
import json
import subprocess
import sys
import unittest
from pathlib import Path

WORKER = Path(__file__).resolve().parents[2] / "data/reward_math_verify.py"

try:
    import math_verify  # noqa: F401
except ModuleNotFoundError as missing:
    print(f"skipped: {missing} (pip install math-verify into the environment of this interpreter)")
    sys.exit(77)


def answers(pairs):
    """Of ground truths and responses, in their order."""
    requests = [json.dumps({"id": i + 7, "reward": "judge", "ground_truth": truth, "response": response})
                for i, (truth, response) in enumerate(pairs)]
    run = subprocess.run([sys.executable, WORKER], input="\n".join(requests) + "\n", capture_output=True, text=True,
                         timeout=300, check=True)
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert [answer["id"] for answer in found] == [i + 7 for i in range(len(pairs))], found
    return found


class Judged(unittest.TestCase):
    def check(self, score, pairs):
        for pair, answer in zip(pairs, answers(pairs)):
            self.assertEqual(answer.get("score"), score, (pair, answer))

    def test_equal_answers_score_one(self):
        self.check(1.0, [("\\frac{1}{2}", "so \\boxed{0.5}"), ("x+1", "\\boxed{1+x}"), ("$\\frac12$", "It is $1/2$."),
                         ("2\\sqrt{2}", "\\boxed{\\sqrt 8}"), ("\\boxed{4}", "4 is it"), ("72", "#### 72"),
                         ("\\{1,2\\}", "\\boxed{\\{2,1\\}}"), ("1{,}000", "1000")])

    def test_other_answers_score_zero(self):
        self.check(0.0, [("x+1", "\\boxed{x-1}"), ("7", "no answer"), ("7", ""), ("7", "\\boxed{"),
                         ("1", "\\boxed{9^{9^{9^9}}}")])

    def test_a_truth_without_answer_is_an_error_of_its_own(self):
        found = answers([("", "7"), (None, "None"), ("7", "7")])
        for answer in found[:2]:
            self.assertIn("no answer in the ground truth ''", answer["error"])
        self.assertEqual(found[2]["score"], 1.0)


if __name__ == "__main__":
    unittest.main()
