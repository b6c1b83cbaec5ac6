#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ShellCheck over the job scripts, if it is installed; bash -n in any case."""

import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


def main() -> int:
    files = sorted(str(file.relative_to(SOURCE)) for pattern in ("*.sh", "*.sbatch", "machines/*.env")
                   for file in (SOURCE / "slurm").glob(pattern))
    bad = [file for file in files if subprocess.run(["bash", "-n", file], cwd=SOURCE).returncode]
    if bad or not files:
        print(f"FAILED: bash cannot read {bad or 'slurm/, which is empty'}")
        return 1
    if not shutil.which("shellcheck"):
        print("skipped: shellcheck is not installed")
        return 77
    return subprocess.run(["shellcheck", "-x", *files], cwd=SOURCE).returncode


if __name__ == "__main__":
    sys.exit(main())
