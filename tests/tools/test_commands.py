"""rill info, --version, --help, and command lines that make no sense."""
import json
import pathlib
import re
import unittest

from tool_test import ToolTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BACKENDS = re.findall(r'X\(RILL_BACKEND_\w+, \d+, "(\w+)"\)', (ROOT / "include/rill/device.h").read_text("utf-8"))
FEATURES = re.findall(r"^  (RILL_FEATURE_\w+[a-zA-Z])\b", (ROOT / "include/rill/device.h").read_text("utf-8"), re.M)


class Commands(ToolTest):
    def test_the_version_is_printed(self):
        for word in ("--version", "version"):
            self.assertRegex(self.succeed(word), r"^rill \d+\.\d+\.\d+\n$")

    def test_help_names_every_option(self):
        text = self.succeed("--help")
        for word in ("info", "--topology", "--json", "doctor", "bench", "--quick", "demo", "trace", "-o", "--device", "--streams", "--tile", "--timeline", "--version"):
            self.assertIn(word, text)

    def test_each_command_has_help(self):
        text = self.succeed("help")
        self.assertEqual(self.succeed("-h"), text)
        commands = re.findall(r"^usage: rill ([\w |]+) \| help ", text)[0].split(" | ")
        self.assertEqual(commands[:2], ["info", "demo"])
        for command in commands:
            part = self.succeed("help", command)
            self.assertTrue(part.startswith(f"usage: rill {command} "), part)
            self.assertIn(part, text)
            self.assertEqual(self.succeed(command, "--help"), part)
            self.assertEqual(self.succeed(command, "--tile", "-h"), part)
        self.fail_with(2, 'unknown command "fly"', "help", "fly")
        self.fail_with(2, 'unexpected argument "demo"', "help", "info", "demo")

    def test_info_lists_the_cpu_last(self):
        lines = self.succeed("info").split("\n")
        table = lines[: lines.index("")]
        self.assertTrue(table[0].startswith("device"))
        self.assertTrue(table[-1].startswith("cpu "), table)
        self.assertEqual(lines[-3:], ["", self.succeed("--version").strip(), ""])

    def test_info_columns_are_aligned(self):
        lines = self.succeed("info").split("\n")
        table = lines[: lines.index("")]
        starts = [m.start() for m in re.finditer(r"\S+", table[0])]
        for line in table[1:]:
            for start in starts[1:]:
                self.assertRegex(line[start - 2 : start + 1], r"^  \S$")

    def test_info_says_why_other_backends_have_no_device(self):
        text = self.succeed("info")
        self.assertEqual(BACKENDS[0], "cpu")
        for backend in BACKENDS[1:]:
            listed = re.search(rf"^{backend}:0 ", text, re.M)
            excused = re.search(rf"^no {backend} device: .+", text, re.M)
            self.assertTrue(bool(listed) != bool(excused), text)

    def test_rill_trace_prints_each_call_of_a_backend(self):
        done = self.run_tool("info", RILL_TRACE="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^rill: cpu device\.init in rill_device_\w+$")
        for line in done.stderr.splitlines():
            self.assertRegex(line, r"^rill: \w+(:\d+)? \w+\.\w+( of .+)? in rill_\w+$")
        done = self.run_tool("demo", "--device", "cpu", "--tile", "64", "-o", self.path("out.png"), RILL_TRACE="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        launch = r'in image_blur_launch: "image_blur" as "blur", \d+ x \d+ x 1 blocks of \d+ x \d+ x 1 threads$'
        self.assertRegex(done.stderr, '(?m)^rill: cpu kernel.launch of stream ".+" ' + launch)
        self.assertRegex(done.stderr, r"(?m)^rill: cpu stream\.record of .+ in rill_stream_record_event$")

    def test_rill_trace_is_off(self):
        self.assertEqual(self.run_tool("info", RILL_TRACE="0").stderr, "")

    def test_a_missing_command_is_refused(self):
        self.fail_with(2, "a command is missing")

    def test_an_unknown_command_is_refused(self):
        self.fail_with(2, 'unknown command "fly"', "fly")

    def test_info_shows_one_device(self):
        text = self.succeed("info", "cpu")
        self.assertRegex(text, r"^cpu  \S")
        self.assertRegex(text, r"(?m)^  numa node +-$")
        self.assertRegex(text, r"(?m)^  graph +yes$")
        self.assertRegex(text, r"(?m)^  cluster +no: \w.+ \w")
        self.fail_with(1, "is not a device name", "info", "gpu7x")

    def test_info_prints_json(self):
        version = self.succeed("--version").split()[1]
        everything, one = (json.loads(self.succeed("info", *device, "--json")) for device in ((), ("cpu",)))
        self.assertEqual((everything["version"], one["version"]), (version, version))
        self.assertEqual(everything["devices"][-1:], one["devices"])
        cpu = one["devices"][0]
        self.assertEqual((cpu["device"], cpu["pci_bus_id"], cpu["library"]), ("cpu", None, None))
        self.assertEqual(cpu["max_block_dim"], [1024, 1024, 64])
        self.assertEqual(len(cpu["features"]), len(FEATURES))
        for name, feature in cpu["features"].items():
            self.assertIn(f"RILL_FEATURE_{name.upper()}", FEATURES)
            self.assertEqual(feature["supported"], feature["why"] is None, name)
        # A vendor's device is listed or excused.
        named = {device["device"].split(":")[0] for device in everything["devices"] + everything["absent"]}
        self.assertEqual(named, set(BACKENDS))

    def test_info_refuses_other_arguments(self):
        self.fail_with(2, 'info: unexpected argument "--jso"', "info", "--jso")
        self.fail_with(2, 'info: unexpected argument "hip"', "info", "cpu", "hip")
        self.fail_with(2, "info --topology takes no other argument", "info", "cpu", "--topology")


if __name__ == "__main__":
    unittest.main()
