#!/usr/bin/env python3
"""What a debugger and a profiler show of kernels on the cpu, in a program that launches them: their names, and the variables
of those that rillcc --debug compiled."""

import os
import re
import shutil
import subprocess
import unittest

import support
from support import CC, HOST, INCLUDE, LOOPS
from rillcc_lib import listing

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
START = """#include "k.rill.h"
#include <rill/rill.h>
#include <stdio.h>
#define TRY(call) if ((call) != RILL_OK) { fprintf(stderr, "%s\\n", rill_last_error_text()); return 1; }
"""
PROGRAM = START + """int main(void) {
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

RECORD = ["perf", "record", "-q", "-e", "cpu-clock", "-o"]


def gdb_runs():
    """Returns whether there is a gdb that may run a program here: containers may forbid it."""
    if not shutil.which("gdb"):
        return False
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", "run", shutil.which("true") or "true"],
                          capture_output=True, text=True, check=False)
    return "exited normally" in done.stdout


def perf_runs():
    """Returns whether there is a perf that may record a program here."""
    if not shutil.which("perf"):
        return False
    done = subprocess.run([*RECORD, os.devnull, "true"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return done.returncode == 0


class WithProgram(support.TestCase):
    """Compiles a kernel source and a program that launches what is in it."""

    def build_program(self, kernels, program, *options, **environment):
        library = os.environ["RILL_LIBRARY"]
        self.write("k.kernel.cu", kernels)
        result = self.rillcc("-Wno-fibers", "--target", HOST, "-o", "k.rill.c", "--header", "k.rill.h", *options, "k.kernel.cu",
                             **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.write("program.c", program)
        command = [*CC, "-I", INCLUDE, "-I", ".", "-o", "program", "program.c", "k.rill.c", library]
        self.assertEqual(self.run_compiler([*command, "-Wl,-rpath," + os.path.dirname(library)]), (0, ""))

    def run_program(self, *before, **environment):
        return subprocess.run([*before, "./program"], cwd=self.folder, env={**os.environ, **environment}, capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL)


NAMED = """#include <rill/device/kernel.h>
#define BODY for (int i = 0; i < n; i++) y[threadIdx.x] = 0.5f * y[threadIdx.x] + 1;
RILL_KERNEL(blend_marked, int n, float *y) { BODY }
RILL_KERNEL(blend_meeting, int n, float *y) { BODY __syncthreads(); y[threadIdx.x] += 1; }
__global__ void blend_plain(int n, float *y) { BODY }
namespace game { __global__ void blend_inside(int n, float *y) { BODY } }
template <class T> __global__ void blend(int n, T *y) { BODY }
RILL_KERNEL_INSTANCE(blend_float, blend<float>);
"""
LAUNCHES = START + """int main(void) {
  rill_device device;
  rill_stream stream;
  float *y;
  char line[512];
  TRY(rill_device_open("cpu", &device));
  TRY(rill_stream_create(device, NULL, &stream));
  TRY(RILL_NEW(device, RILL_MEMORY_PINNED, 64, &y));
  const rill_launch launch = rill_launch_1d(64 * 64, 64);
  TRY(blend_marked_launch(stream, &launch, COUNT, y));
  TRY(blend_meeting_launch(stream, &launch, COUNT, y));
  TRY(blend_plain_launch(stream, &launch, COUNT, y));
  TRY(blend_inside_launch(stream, &launch, COUNT, y));
  TRY(blend_float_launch(stream, &launch, COUNT, y));
  TRY(rill_stream_synchronize(stream));
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) fputs(line, stdout);
  return 0;
}
"""
NAMES = ["blend_marked", "blend_meeting", "blend_plain", "game::blend_inside", "blend<float>"]


class Names(WithProgram):
    """The names that profilers and debuggers show."""

    def functions(self, data):
        """Returns the functions among the symbols of an image, as a C++ demangler writes them."""
        elf = listing.Elf(data)
        tables = [section for section in elf.sections if section[1] == listing.SHT_SYMTAB]
        names = [name for table in tables for name, info, *_ in elf.symbols(table) if info & 15 == 2]
        done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def has_names(self, functions):
        for name in NAMES:
            pattern = r"(void )?%s\(.*\) \[clone \.(block|thread)\]" % re.escape(name)
            self.assertTrue([function for function in functions if re.fullmatch(pattern, function)], (name, functions))
        self.assertFalse([function for function in functions if "run_block" in function or "run_thread" in function])

    def test_functions_have_the_names_of_kernels(self):
        """In a file that stays, of which the code is mapped: what perf, and a debugger that comes later, read."""
        for options in ((), ("--fibers",), ("--check",), ("--cpu-option=-g",), ("--clang", "none")):
            with self.subTest(options=options):
                self.build_program(NAMED, "#define COUNT 1\n" + LAUNCHES, *options)
                keep = self.path("kept" + "".join(options))
                os.mkdir(keep)
                done = self.run_program(RILL_CPU_KEEP_IMAGES=keep)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                (kept,) = (os.path.join(keep, name) for name in os.listdir(keep))
                self.assertRegex(kept, r"/k-\w{6}\.so$")
                self.assertRegex(done.stdout, "(?m)^[0-9a-f-]+ r-xp .* %s$" % re.escape(kept))
                with open(kept, "rb") as file:
                    self.has_names(self.functions(file.read()))

    def test_bodies_have_the_names_of_kernels_in_debug_builds(self):
        self.build_program(NAMED, "#define COUNT 1\n" + LAUNCHES, "--debug")
        done = self.run_program(RILL_CPU_KEEP_IMAGES=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (kept,) = (name for name in os.listdir(self.folder) if name.endswith(".so"))
        with open(self.path(kept), "rb") as file:
            data = file.read()
        self.assertNotIn(b"rill_body_", data)
        if LOOPS:
            self.assertIn("blend_marked(int, float*)", self.functions(data))

    def test_a_helper_may_have_the_name_of_a_kernel(self):
        text = NAMED + "static __device__ __attribute__((noinline)) void same(int n, float *y) { BODY }\n"
        text += "RILL_KERNEL(same, int n, float *y) { ::same(n + 1, y); }\n"
        self.build_program(text, "#define COUNT 1\n" + LAUNCHES, "--debug")

    def test_where_images_are_kept(self):
        self.build_program(NAMED, "#define COUNT 1\n" + LAUNCHES)
        before = set(os.listdir(self.folder))
        done = self.run_program(RILL_CPU_KEEP_IMAGES="")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(set(os.listdir(self.folder)), before)
        done = self.run_program(RILL_CPU_KEEP_IMAGES="kept")
        self.assertEqual(done.returncode, 1)
        self.assertIn('RILL_CPU_KEEP_IMAGES is "kept", which is not an absolute path', done.stderr)
        done = self.run_program(RILL_CPU_KEEP_IMAGES=self.path("none"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"RILL_CPU_KEEP_IMAGES\): .*/none: No such file or directory")

    @unittest.skipUnless(perf_runs(), "no perf, or it may record nothing here")
    def test_perf_shows_names_of_kernels(self):
        self.build_program(NAMED, "#define COUNT 20000\n" + LAUNCHES)
        data = self.path("perf.data")
        done = self.run_program(*RECORD, data, RILL_CPU_KEEP_IMAGES=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        command = ["perf", "report", "-i", data, "--stdio", "--sort", "symbol"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        for name in NAMES:
            self.assertRegex(done.stdout, r"(?m)\[\.\] (void )?%s(?![\w:])" % re.escape(name))

    @unittest.skipUnless(gdb_runs(), "no gdb, or it may run no program here")
    def test_gdb_shows_names_of_kernels(self):
        """Stops at each kernel by its name, in images with debug information and without any, and shows it in the frame."""
        for options in ((), ("--debug",), ("--cpu-option=-g",), ("--clang", "none")):
            with self.subTest(options=options):
                self.build_program(NAMED, "#define COUNT 1\n" + LAUNCHES, *options)
                names = NAMES if "-g" in str(options) or "--debug" in options else NAMES[:-1]  # it knows templates by DWARF alone
                commands = "set breakpoint pending on\nset pagination off\n"
                commands += "".join("tbreak %s\n" % name for name in names) + "run\n" + "bt 1\ncontinue\n" * len(names)
                command = ["gdb", "-q", "-nx", "-batch", "-x", self.write("commands", commands)]
                done = self.run_program(*command, RILL_CPU_WORKERS="1", RILL_CPU_KEEP_IMAGES=self.folder)
                frames = re.findall(r"^#0 +(?:0x\w+ in )?(.*?) ?\(", done.stdout, re.MULTILINE)
                self.assertEqual(frames, names, done.stdout + done.stderr)


@unittest.skipUnless(gdb_runs(), "no gdb, or it may run no program here")
class Debugger(WithProgram):
    def build(self, *options, **environment):
        self.build_program(KERNEL, PROGRAM, *options, **environment)
        done = self.run_program()
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
