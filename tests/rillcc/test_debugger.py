#!/usr/bin/env python3
"""A debugger stops in a kernel that rillcc --debug compiled, in a program that launches it, and shows its variables."""

import os
import re
import shutil
import subprocess
import unittest

import support
from support import CC, HOST, INCLUDE

KERNEL = """#include <rill/device/kernel.h>
static __device__ float twice(float v) {
  const float result = 2 * v;
  return result;
}
RILL_KERNEL(turn, int n, const float *x, float *y) {
  __shared__ float tile[64];
  const int mine = threadIdx.x;
  tile[mine] = twice(x[mine]);
  __syncthreads();
  float other = tile[n - 1 - mine];
  other += 1;
  y[mine] = other;
}
"""
PROGRAM = """#include "k.rill.h"
#include <rill/rill.h>
#include <stdio.h>
#define TRY(call) if ((call) != RILL_OK) { fprintf(stderr, "%s\\n", rill_last_error_text()); return 1; }
int main(void) {
  rill_device device;
  rill_stream stream;
  float *x, *y;
  TRY(rill_device_open("cpu", &device));
  TRY(rill_stream_create(device, NULL, &stream));
  TRY(RILL_NEW(device, RILL_MEMORY_PINNED, 64, &x));
  TRY(RILL_NEW(device, RILL_MEMORY_PINNED, 64, &y));
  for (int i = 0; i < 64; i++) x[i] = (float)i;
  const rill_launch launch = rill_launch_1d(64, 64);
  TRY(turn_launch(stream, &launch, 64, x, y));
  TRY(rill_stream_synchronize(stream));
  printf("%g %g\\n", (double)y[0], (double)y[63]);
  return 0;
}
"""
COMMANDS = """set breakpoint pending on
set pagination off
break k.kernel.cu:12 if mine == 5
run
print mine
print other
print tile[3]
print n
next
next
print other
kill
"""


def gdb_runs():
    """Whether there is a gdb that may run a program here: containers may forbid it."""
    if not shutil.which("gdb"):
        return False
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", "run", shutil.which("true") or "true"],
                          capture_output=True, text=True, check=False)
    return "exited normally" in done.stdout


@unittest.skipUnless(gdb_runs(), "no gdb, or it may run no program here")
class Debugger(support.TestCase):
    def build(self, *options, **environment):
        library = os.environ["RILL_LIBRARY"]
        self.write("k.kernel.cu", KERNEL)
        result = self.rillcc("--target", HOST, "-o", "k.rill.c", "--header", "k.rill.h", *options, "k.kernel.cu", **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.write("program.c", PROGRAM)
        command = [*CC, "-I", INCLUDE, "-I", ".", "-o", "program", "program.c", "k.rill.c", library]
        self.assertEqual(self.run_compiler([*command, "-Wl,-rpath," + os.path.dirname(library)]), (0, ""))
        done = subprocess.run([self.path("program")], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "127 1\n"), done.stderr)

    def debug(self):
        """What gdb prints of values, and the lines at which it stands."""
        command = ["gdb", "-q", "-nx", "-batch", "-x", self.write("commands", COMMANDS), "./program"]
        shown = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        values = re.findall(r"^\$\d+ = (.*)$", shown.stdout, re.MULTILINE)
        return values, re.findall(r"^(\d+)\t", shown.stdout, re.MULTILINE), shown.stdout + shown.stderr

    def test_it_stops_and_shows_variables(self):
        environments: list = [{}, {"RILL_CLANG": "none"}]  # with clang, and with any C++ compiler
        for environment in environments:
            with self.subTest(environment=environment):
                self.build("--debug", **environment)
                values, lines, text = self.debug()
                self.assertEqual(values, ["5", "116", "6", "64", "117"], text)
                self.assertEqual(lines, ["12", "13", "14"], text)


if __name__ == "__main__":
    support.main()
