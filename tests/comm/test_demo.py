"""rill demo --ranks under mpirun: the same bytes for any number of ranks, and a drawing with a row for each.

usage: test_demo.py LAUNCHER, with RILL_TOOL in the environment of one MPI"""
import os
import pathlib
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))

import filters
import png
from tool_test import TOOL, ToolTest

launcher = sys.argv[1]
SVG = "{http://www.w3.org/2000/svg}"


def pattern(width, height):
    return [[(x * 7 * (c + 1) + y * 13 + x * y * (c + 3) // 5 + (97 if (x // 5 + y // 3) % 2 else 0)) % 256
             for x in range(width) for c in range(4)] for y in range(height)]


class Ranks(ToolTest):
    def launch(self, ranks, *arguments, **variables):
        return subprocess.run([launcher, "-n", str(ranks), TOOL, "demo", "--ranks", "--device", "cpu", *arguments],
                              cwd=self.folder, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=200, check=False)

    def filtered(self, ranks, *arguments):
        done = self.launch(ranks, "in.png", "-o", "out.png", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("equals that of the plain C filter in every byte", done.stdout)
        self.assertEqual(done.stdout.count("wrote "), 1)
        return self.read("out.png"), done.stdout

    def test_ranks_filter_to_the_same_bytes(self):
        for width, height, passes in ((61, 45, 1), (37, 64, 3), (16, 23, 2)):
            rows = pattern(width, height)
            expected = rows
            for _ in range(passes):
                expected = filters.demo(width, height, expected)
            self.write("in.png", png.encode(width, height, rows))
            for ranks in (1, 2, 4):
                with self.subTest(width=width, height=height, ranks=ranks):
                    got, _ = self.filtered(ranks, "--passes", str(passes), "--tile", "16")
                    self.assertEqual(png.decode(got), (width, height, expected))

    def test_bands_as_narrow_as_they_can_be(self):
        for height in (12, 13, 19, 22, 26):  # 3 to 7 rows for each of four ranks
            rows = pattern(20, height)
            self.write("in.png", png.encode(20, height, rows))
            with self.subTest(height=height):
                got, _ = self.filtered(4, "--tile", "16", "--streams", "2")
                self.assertEqual(png.decode(got), (20, height, filters.demo(20, height, rows)))

    def test_drawing_has_a_row_for_each_rank(self):
        self.write("in.png", png.encode(64, 64, pattern(64, 64)))
        _, text = self.filtered(4, "--passes", "2", "--timeline", "t.svg")
        root = ElementTree.fromstring(self.read("t.svg"))
        tracks = [node.text for node in root.iter(SVG + "text") if node.get("class") == "track"]
        self.assertEqual(tracks, ["rank 0", "rank 1", "rank 2", "rank 3"])
        titles = [node.text or "" for node in root.iter(SVG + "title")]
        self.assertEqual(len([t for t in titles if t.startswith("halo exchange")]), 4 * 2)
        for rank in range(4):
            self.assertRegex(text, rf"(?m)^{rank} +cpu +16 ")

    def test_too_many_ranks_are_refused(self):
        self.write("in.png", png.encode(20, 11, pattern(20, 11)))
        done = self.launch(4, "in.png", "-o", "out.png")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rill: 11 rows are too few for 4 ranks: each needs at least 3", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.png"])

    def test_a_missing_picture_is_reported(self):
        done = self.launch(2, "none.png")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("none.png", done.stderr)

    def test_options_that_do_not_go_together(self):
        self.fail_with(2, "--passes requires --ranks", "demo", "--passes", "2")
        self.fail_with(2, "--passes takes a number from 1 to 64", "demo", "--ranks", "--passes", "65")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
