"""rill bench: that each section has its figures, on the cpu and on stand-ins.  What they are is not judged.

RILL_FAKE_CUDA_DIR and RILL_NULL_*_DIR name the folders of the stand-ins.  The last two are empty without kernels."""
import json
import os
import unittest

from tool_test import ToolTest

CUDA, NULL_CUDA, NULL_HIP = (os.environ[f"RILL_{name}_DIR"] for name in ("FAKE_CUDA", "NULL_CUDA", "NULL_HIP"))
SECTIONS = ["layer", "copies", "stream", "launches", "peers", "graphs"]


class Bench(ToolTest):
    def sections(self, *arguments, **variables):
        """Returns the rows of each section by their names, and why a section has none."""
        report = json.loads(self.succeed("bench", "--quick", "--json", *arguments, **variables))
        self.assertTrue(report["quick"])
        self.device = report["device"]
        rows, self.left_out = {}, {}
        for section in report["sections"]:
            rows[section["section"]] = {row.pop("what"): row for row in section["rows"]}
            self.left_out[section["section"]] = section["left_out"]
            self.assertEqual(section["left_out"] is None, len(section["rows"]) > 0, section)
        return rows

    def test_the_cpu_has_every_section(self):
        rows = self.sections("--device", "cpu")
        self.assertEqual((self.device, list(rows)), ("cpu", SECTIONS))
        self.assertEqual({row["driver"] for row in rows["layer"].values()}, {None})
        self.assertEqual(list(rows["copies"]), ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"])
        self.assertEqual(list(rows["stream"]), ["copy", "scale", "add", "triad"])
        self.assertIn("1 thread", rows["launches"])
        self.assertEqual(list(rows["graphs"]["launched as a graph"]), ["10_kernels", "100_kernels", "1000_kernels"])
        self.assertEqual(self.left_out["peers"], "this backend has no other device")
        for section in ("copies", "stream", "launches", "graphs"):
            for what, row in rows[section].items():
                for column, value in row.items():
                    self.assertGreater(value, 0, (section, what, column))

    def test_only_chosen_sections_are_printed(self):
        self.assertEqual(list(self.sections("stream", "layer", "--device", "cpu")), ["layer", "stream"])

    def test_calls_are_compared_with_the_drivers_own(self):
        for name, folder in (("cuda:0", NULL_CUDA), ("hip:0", NULL_HIP)):
            if folder:
                layer = self.sections("layer", "--device", name, LD_LIBRARY_PATH=folder)["layer"]
                self.assertEqual(len(layer), 5)
                for row in layer.values():
                    self.assertAlmostEqual(row["difference"], row["rill"] - row["driver"], delta=1e-3 * row["rill"])

    def test_peers_are_measured_in_both_directions(self):
        variables = {"LD_LIBRARY_PATH": CUDA, "RILL_FAKE_DEVICES": "2"}
        rows = self.sections("peers", "--device", "cuda:1", **variables)["peers"]
        self.assertEqual(list(rows), ["cuda:1 to cuda:0", "cuda:0 to cuda:1"])
        self.assertGreater(rows["cuda:0 to cuda:1"]["access_on"], 0)
        rows = self.sections("peers", "--device", "cuda:1", RILL_FAKE_PEERS="0", **variables)["peers"]
        self.assertIsNone(rows["cuda:0 to cuda:1"]["access_on"])

    def test_little_memory_is_enough(self):
        if NULL_CUDA:
            rows = self.sections("copies", "stream", LD_LIBRARY_PATH=CUDA, RILL_FAKE_MEMORY="8", RILL_DEVICE="cuda:0")
            self.assertEqual(list(rows["stream"]), ["copy", "scale", "add", "triad"])
            self.assertIn("4 KiB", rows["copies"])

    def test_the_table_has_units_and_headings(self):
        text = self.succeed("bench", "stream", "peers", "--quick", "--device", "cpu")
        self.assertRegex(text, r"^cpu: \S.*, rill \d+\.\d+\.\d+, --quick\n\nstream, GB/s +float +double\n  copy +[\d.]+ +[\d.]+\n")
        self.assertIn("\npeers, GB/s", text)
        self.assertTrue(text.endswith("\n  left out: this backend has no other device\n"), text)
        self.assertNotIn("\x1b", text)

    def test_a_call_that_fails_is_reported(self):
        if NULL_CUDA:
            for call, what in (("cuLaunchKernel", "launch"), ("cuMemcpyHtoDAsync", "copy"), ("cuGraphLaunch", "graph")):
                done = self.run_tool("bench", "--quick", "--device", "cuda:0", LD_LIBRARY_PATH=CUDA,
                                     RILL_FAKE_FAIL=f"{call}:1:2")
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertRegex(done.stderr, rf"^rill: .*{what}.*\n$")

    def test_misuse_is_refused(self):
        self.fail_with(2, 'bench: unexpected argument "--fast"', "bench", "--fast")
        self.fail_with(2, 'bench: unexpected argument "--device"', "bench", "--device")
        self.fail_with(1, "is not a device name", "bench", "--device", "cpu7x")


if __name__ == "__main__":
    unittest.main()
