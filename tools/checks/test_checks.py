# SPDX-License-Identifier: Apache-2.0
"""Each check finds the problem it is there for: small trees with one planted fault."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
MATRIX = "0 base -\n1 kernels base\n1 io base\n1 param base\n2 comm base\n7 apps base\n"


class CheckTest(unittest.TestCase):
    def run_check(self, name, files):
        """Exit code and output of a check on a tree of the given files."""
        with tempfile.TemporaryDirectory() as folder:
            for path, content in ({"doc/dev/module-matrix.txt": MATRIX} | files).items():
                target = Path(folder, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(content, encoding="utf-8")
            run = subprocess.run([sys.executable, str(HERE / f"{name}.py"), *self.arguments(name, folder)], check=False,
                                 capture_output=True, text=True, env=os.environ | {"TAPER_CHECKED_TREE": folder})
            self.assertEqual(run.stderr, "")
            return run.returncode, run.stdout

    @staticmethod
    def arguments(name, folder):
        return [folder] if name == "headers" else []

    def expect_problem(self, name, files, text):
        code, output = self.run_check(name, files)
        self.assertEqual(code, 1, output)
        self.assertIn(text, output)

    def expect_clean(self, name, files):
        code, output = self.run_check(name, files)
        self.assertEqual(code, 0, output)

    def test_modules(self):
        self.expect_clean("modules", {"src/comm/A.hpp": '#include "base/B.hpp"\n#include "comm/C.hpp"\n'})
        self.expect_problem("modules", {"src/comm/A.hpp": '\n#include "io/B.hpp"\n'}, "src/comm/A.hpp:2: comm must not include io")
        self.expect_problem("modules", {"src/fresh/A.hpp": ""}, "the module fresh is not in")
        self.expect_problem("modules", {"src/comm/A.hpp": '#include "other/B.hpp"\n'}, "other is no module")
        self.expect_problem("modules", {"src/comm/a/b/A.hpp": ""}, "nested too deep")
        self.expect_problem("modules", {"doc/dev/module-matrix.txt": MATRIX.replace("2 comm base", "2 comm base io"),
                                        "src/comm/A.hpp": '#include "base/B.hpp"\n'}, "comm may include io, but does not")
        self.expect_clean("modules", {"src/comm/Comm_params.cpp": '#include "param/Schema.hpp"\n'})

    def test_rows_of_modules(self):
        uses_io = {"src/comm/A.hpp": '#include "base/B.hpp"\n#include "io/C.hpp"\n'}
        for row, code in (2, 0), (1, 1):
            matrix = MATRIX.replace("2 comm base", f"{row} comm base io")
            self.assertEqual(self.run_check("modules", uses_io | {"doc/dev/module-matrix.txt": matrix})[0], code)
        self.expect_problem("modules", uses_io | {"doc/dev/module-matrix.txt": matrix},
                            "comm (row 1) may include io (row 1), which is in no smaller row")
        self.expect_problem("modules", {"doc/dev/module-matrix.txt": MATRIX + "2 text base\n"},
                            "text is of row 2, but stands below row 7")

    def test_sizes(self):
        self.expect_clean("sizes", {"src/base/A.cpp": "\n" * 400})
        code, output = self.run_check("sizes", {"src/base/A.cpp": "\n" * 401})
        self.assertEqual(code, 0)
        self.assertIn("401 lines", output)
        self.expect_problem("sizes", {"src/base/A.cpp": "\n" * 801}, "split it")

    def test_licences(self):
        script = "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\n"
        self.expect_clean("licences", {"src/base/A.cpp": SPDX, "tool": script})
        self.expect_problem("licences", {"src/base/A.cpp": "int a;\n"}, "src/base/A.cpp:1")
        self.expect_problem("licences", {"tool": "#!/bin/sh\ntrue\n"}, "tool:1")

    def test_device_code(self):
        use = "auto f = KOKKOS_LAMBDA(int i) {};\n"
        self.expect_clean("device_code", {"kernels/a.cpp": use, "src/io/A.device.cpp": use, "src/io/B.cpp": "// " + use})
        self.expect_problem("device_code", {"src/io/A.cpp": use}, "src/io/A.cpp:1: KOKKOS_LAMBDA")
        self.expect_problem("device_code", {"kernels/a.cpp": "#include <mpi.h>\n"}, "must not include mpi.h")
        self.expect_problem("device_code", {"kernels/a.cpp": "void f() { Kokkos::fence(); }\n"}, "fence")
        kokkos = "#include <Kokkos_Core.hpp>\n"
        self.expect_clean("device_code", {"kernels/a.cpp": kokkos, "src/device/A.cpp": kokkos})
        self.expect_problem("device_code", {"src/model/A.hpp": kokkos}, "src/model/A.hpp:1: Kokkos")

    def test_bare_calls(self):
        self.expect_clean("bare_calls", {"src/comm/A.cpp": "TAPER_MPI_CALL(\n  MPI_Barrier(comm));\n"})
        self.expect_clean("bare_calls", {"src/io/A.cpp": 'TAPER_HDF5_CALL(file, H5Dopen2(a, "b(", c));\n// H5Dopen2(a)\n'})
        self.expect_problem("bare_calls", {"src/comm/A.cpp": "\nMPI_Barrier(comm);\n"}, "src/comm/A.cpp:2: MPI_Barrier")
        self.expect_problem("bare_calls", {"src/io/A.cpp": "TAPER_HDF5_CALL(f, g());\nH5Dopen2(a);\n"}, ":2: H5Dopen2")
        self.expect_problem("bare_calls", {"src/base/A.cpp": "TAPER_MPI_CALL(MPI_Barrier(c));\n"}, "in src/comm/, src/io/")

    def test_machine_paths(self):
        self.expect_clean("machine_paths", {"README.md": "work/root and build/work\n"})
        for line in ("/" + "work/main/x", "see /" + "root/.cache", "/" + "home/someone/x", "deb.debian" + ".org"):
            self.expect_problem("machine_paths", {"README.md": "\n" + line + "\n"}, "README.md:2")

    def test_twins(self):
        test = {"tests/io/A.test.cpp": '#include "io/A.hpp"\n'}
        self.expect_clean("twins", test | {"src/io/A.hpp": "", "src/io/A_params.hpp": "", "src/io/detail/B.hpp": ""})
        self.expect_problem("twins", test | {"src/io/A.hpp": "", "src/io/B.hpp": ""}, "no tests/io/B.test.cpp")
        self.expect_problem("twins", test | {"src/io/A.hpp": "", "src/io/fast/A.hpp": ""},
                            "src/io/fast/A.hpp: tests/io/A.test.cpp does not include it")

    def headers_tree(self, header):
        """A header that no .cpp includes first."""
        return {"src/io/A.hpp": header, "src/io/B.cpp": '#include <string>\n#include "io/A.hpp"\n',
                "compile_commands.json": "[]"}

    def run_headers(self, header):
        with tempfile.TemporaryDirectory() as folder:
            for path, content in self.headers_tree(header).items():
                target = Path(folder, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(content, encoding="utf-8")
            source = f"{folder}/src/io/B.cpp"
            command = f"c++ -std=c++20 -I{folder}/src -o B.o -c {source}"
            Path(folder, "compile_commands.json").write_text(
                f'[{{"directory": "{folder}", "file": "{source}", "command": "{command}"}}]', encoding="utf-8")
            runs = [subprocess.run([sys.executable, str(HERE / "headers.py"), folder], capture_output=True, text=True,
                                   check=False, env=os.environ | {"TAPER_CHECKED_TREE": folder}) for _ in range(2)]
            return [run.returncode for run in runs], [run.stdout for run in runs]

    def test_headers(self):
        codes, outputs = self.run_headers("#pragma once\n#include <string>\ninline std::string f() { return {}; }\n")
        self.assertEqual(codes, [0, 0], outputs)
        self.assertIn("1 sent to the compiler", outputs[0])
        self.assertIn("0 sent to the compiler", outputs[1])  # remembered
        codes, outputs = self.run_headers("#pragma once\ninline std::string f() { return {}; }\n")
        self.assertEqual(codes, [1, 1], outputs)
        self.assertIn("does not compile alone", outputs[0])
        codes, outputs = self.run_headers("struct A {};\n")
        self.assertEqual(codes[0], 1)
        self.assertIn('no "#pragma once"', outputs[0])


if __name__ == "__main__":
    unittest.main()
