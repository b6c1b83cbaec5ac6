# SPDX-License-Identifier: Apache-2.0
"""The report's page in a headless browser: Chromium on the path, or what TAPER_BROWSER names.

python3 tools/tests/test_report_browser.py. Exit code 77: no browser, or packages missing.
"""
import os
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS), str(TOOLS / "tests")]

try:
    from browser import Browser, find_browser
    from synthetic_layouts import write_layout_run
    from synthetic_run import make_numbers, write_run

    from taper_report import make_report
except ModuleNotFoundError as missing:
    print(f"skipped: {missing} (set TAPER_PYTHON to an interpreter with h5py, numpy and matplotlib)")
    sys.exit(77)
if find_browser() is None:
    print("skipped: no Chromium on the path (TAPER_BROWSER may name one)")
    sys.exit(77)

DESKTOP, PHONE = 1280, 390  # widths in CSS pixels


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.browser = Browser(find_browser())
        cls.addClassCleanup(cls.browser.close)

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="taper-test-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def check(self, page: Path, pictures: int, tables: int) -> None:
        for width in (DESKTOP, PHONE):
            self.browser.open(page, width, mobile=width == PHONE)
            self.assertEqual(self.browser.errors, [])
            outside = [url for url in self.browser.requests if not url.startswith("data:")]
            self.assertEqual(outside, [page.resolve().as_uri()])
            sizes = self.browser.value("[...document.images].map(i => [i.complete, i.naturalWidth, "
                                       "i.naturalHeight, i.width, i.alt])")
            self.assertEqual(len(sizes), pictures)
            for complete, natural_width, natural_height, shown, text in sizes:
                self.assertTrue(complete and natural_width > 0 and natural_height > 0, text)
                # On a phone the picture scrolls in its frame: smaller, its text could not be read.
                self.assertTrue(0 < shown <= max(width, 660), f"{text}: {shown}")
                self.assertTrue(text)
            rows = self.browser.value("[...document.querySelectorAll('table')].map(t => t.rows.length)")
            self.assertEqual(len(rows), tables)
            self.assertTrue(all(count > 1 for count in rows), rows)
            scrolled = self.browser.value("document.documentElement.scrollWidth")
            self.assertLessEqual(scrolled, width, f"scrolls sideways at {width}")
        self.check_headings()

    def check_headings(self) -> None:
        self.assertTrue(self.browser.value("document.title"))
        self.assertEqual(self.browser.value("document.querySelectorAll('h1').length"), 1)
        headings = self.browser.value("[...document.querySelectorAll('h2')].map(h => h.innerText)")
        self.assertEqual(len(headings), len(set(headings)))
        broken = self.browser.value("[...document.querySelectorAll('a')].filter(a => "
                                    "!document.querySelector(a.getAttribute('href'))).length")
        self.assertEqual(broken, 0)

    def test_one_adaptive_run(self) -> None:
        write_layout_run(self.root / "run/run.h5", 30)
        output = make_report([self.root / "run"], None)
        self.check(output / "index.html", len(list(output.glob("*.png"))), 4)

    def test_several_runs_with_long_names(self) -> None:
        runs = []
        for seed in (1, 2, 3, 4):
            runs.append(self.root / f"a-run-with-a-rather-long-name-{seed}")
            write_run(runs[-1] / "run.h5", make_numbers(20, seed, 1e-4 * (1 + seed % 2)))
        output = make_report(runs, self.root / "out")
        self.check(output / "index.html", len(list(output.glob("*.png"))), 8)

    def test_a_bad_page_is_told(self) -> None:
        page = self.root / "bad.html"
        page.write_text('<title>x</title><h1>x</h1><h2>x</h2><div style="width:2000px">x</div>'
                        '<img alt="x" src="http://127.0.0.1:9/x.png"><script>nothing.here</script>')
        self.browser.open(page, DESKTOP)
        self.assertIn("http://127.0.0.1:9/x.png", self.browser.requests)
        self.assertTrue(any("nothing is not defined" in text for text in self.browser.errors))
        self.assertEqual(self.browser.value("document.images[0].naturalWidth"), 0)
        self.assertGreater(self.browser.value("document.documentElement.scrollWidth"), DESKTOP)

    @unittest.skipUnless("TAPER_RUN_DIR" in os.environ, "TAPER_RUN_DIR names no run")
    def test_a_real_run(self) -> None:
        output = make_report([Path(os.environ["TAPER_RUN_DIR"])], self.root / "out")
        self.check(output / "index.html", len(list(output.glob("*.png"))), 4)


if __name__ == "__main__":
    unittest.main()
