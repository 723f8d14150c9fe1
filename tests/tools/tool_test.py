"""What the test programs of the command line tool share.  RILL_TOOL names the program."""
import os
import subprocess
import tempfile
import unittest

TOOL = os.environ.get("RILL_TOOL", "rill")


class ToolTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run_tool(self, *arguments, **variables):
        environment = {k: v for k, v in os.environ.items() if k != "RILL_DEVICE"}
        environment.update(variables)
        return subprocess.run(
            [TOOL, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    def succeed(self, *arguments, **variables):
        done = self.run_tool(*arguments, **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def fail_with(self, code, pattern, *arguments, **variables):
        """One line on stderr that matches, that exit code, and no new file."""
        before = sorted(os.listdir(self.folder))
        done = self.run_tool(*arguments, **variables)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("rill: ") and done.stderr.endswith("\n"), done.stderr)
        self.assertRegex(done.stderr, pattern)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
