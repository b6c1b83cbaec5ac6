#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run whose gradients depend on the layout goes on on another number of ranks, and says once that its results are
close, not equal."""

import sys
import tempfile
from pathlib import Path

from taper_runs import Runs, arguments

SENTENCE = "were trained in layout (TPxDP) {}, from here on it is {}: gradients are summed in another order, so the results are close"


def main() -> None:
    args = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="taper-elsewhere-") as scratch:
        runs = Runs(args, Path(scratch))
        model, output = runs.make_model(), runs.folder / "run"
        # Iterations until, ranks, layout of the checkpoint (of another one) and of the run.
        for until, ranks, layouts in [(1, 2, None), (2, 2, None), (3, 1, ("1x2", "1x1")), (4, 2, ("1x1", "1x2"))]:
            words = runs.train(model, output, Training__Iterations=until, Evaluation__Every=0,
                               Training__Exactness="run")
            outcome = runs.run(words, ranks)
            said = outcome.text.count("so the results are close")
            good = outcome.code == 0 and said == (layouts is not None)
            if layouts:
                good = good and SENTENCE.format(*layouts) in outcome.text
            print(f"until iteration {until} on {ranks} ranks: {'ok' if good else outcome.text}", flush=True)
            if not good:
                sys.exit(1)


if __name__ == "__main__":
    main()
