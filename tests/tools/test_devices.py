"""The last line of tests/run_tests.py: made of what a program says of itself, run on real devices and on stand-ins."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import run_tests

PROGRAM = os.environ["RILL_PROGRAM"]


def output_of(device, libraries=""):
    environment = os.environ | {"RILL_TEST_DEVICE": device, "LD_LIBRARY_PATH": libraries, "RILL_FAKE_DEVICES": "2"}
    done = subprocess.run([PROGRAM], env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return done.stdout


class Devices(unittest.TestCase):
    def line_of(self, *outputs):
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as log:
            for output in outputs:
                log.write(json.dumps({"name": "a test", "result": "OK", "stdout": output}) + "\n")
            log.write(json.dumps({"name": "without output", "result": "SKIP"}) + "\n")
            log.flush()
            return run_tests.devices([log.name])

    def test_real_devices_are_named(self):
        self.assertEqual(self.line_of(output_of("cpu")), "devices: cpu (real; 1 tests)")

    def test_stand_ins_are_named(self):
        for name, folder in (("cuda", os.environ["RILL_FAKE_CUDA"]), ("hip", os.environ["RILL_FAKE_HIP"])):
            if folder:
                own = "%s:0 %s:1 (stand-in, %s; " % (name, name, os.path.basename(folder))
                output = output_of("cpu," + name + ":0", folder)
                self.assertEqual(self.line_of(output), "devices: cpu (real; 1 tests), " + own + "1 tests)")
                line = self.line_of(output, output_of(name + ":0", folder))
                self.assertEqual(line, "devices: cpu (real; 1 tests), " + own + "2 tests)")

    def test_a_run_without_devices_is_named(self):
        self.assertEqual(self.line_of("1..0 # SKIP no device\n"), "devices: no test opened one")


if __name__ == "__main__":
    unittest.main()
