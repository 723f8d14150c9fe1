#!/usr/bin/env python3
"""Kernels with barriers on the host: split into loops, and thread by thread, to the same last bit."""

import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
import unittest

import differential
import support
from rillcc_lib import host, listing, llvm
from support import HERE, HOST, Runner, pointer_to


SHAPES = ((1, 1, 1), (32, 1, 1), (33, 1, 1), (100, 1, 1), (1024, 1, 1), (16, 16, 1), (7, 5, 1), (3, 4, 5), (1, 1, 9))
VOLUME = "(blockDim.x * blockDim.y * blockDim.z) + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;"
POWERS = ((1, 1, 1), (2, 1, 1), (32, 1, 1), (256, 1, 1), (1024, 1, 1))


class Regions(differential.Differential):
    def test_notes(self):
        text = support.ONE + "RILL_KERNEL(two, float *x) { __shared__ float s[1]; s[0] = 1; __syncthreads(); x[0] = s[0]; }\n"
        text += "struct big { float at[300]; };\n"
        text += "RILL_KERNEL(three, int n, float *x) { big b; for (int i = 0; i < n; i++) b.at[i] = x[i]; "
        text += "__syncthreads(); x[0] = b.at[n / 2]; }\n"
        text += "static __device__ __attribute__((noinline)) void meet() { __syncthreads(); }\n"
        text += "RILL_KERNEL(four, float *x) { meet(); meet(); x[0] = 1; }\n"
        text += "RILL_KERNEL(five, int n, float *x) { void (*volatile f)() = meet; f(); x[0] = 1; }\n"
        text += "#include <assert.h>\nRILL_KERNEL(six, int n, float *x) { x[0] = rill_block_sum(x[n]); assert(x[0] > 0); meet(); }\n"
        source = self.write("k.kernel.cu", text)
        expected = {
            "one": (True, "a loop over the threads"),
            "two": (True, "loops between barriers"),
            "three": (False, "fibers: its variables are too large: each thread keeps more than 1024 bytes across barriers"),
            "four": (True, "loops between barriers"),
            "six": (True, "loops between barriers"),
            "five": (False, "fibers: it may call \"meet\" through a pointer"),
        }
        result = self.rillcc("-v", "--target", HOST, "-o", "out.rill.c", source)
        self.assertEqual(result.returncode, 0, result.stderr)
        for name, (_, note) in expected.items():
            self.assertIn('%s: kernel "%s": %s\n' % (HOST, name, note), result.stderr)
            self.assertEqual(' warning: kernel "%s" is slow on the cpu' % name in result.stderr, "fibers" in note)
        self.assertIn("k.kernel.cu:5: warning: kernel \"three\"", result.stderr)
        result = self.rillcc("-Werror=fibers", "--target", HOST, "-o", "out.rill.c", source)
        self.assertEqual(result.returncode, 1)
        self.assertIn("k.kernel.cu:5: error: kernel \"three\" is slow on the cpu", result.stderr)
        image = self.open(source, "-Wno-fibers")
        self.assertEqual({k: bool(v.run_block) for k, v in image.kernels.items()}, {k: v[0] for k, v in expected.items()})
        image = self.open(source, "--fibers")
        self.assertEqual([name for name, kernel in image.kernels.items() if kernel.run_block], [])

    def functions(self, source, *options):
        """Returns the functions in an image."""
        c_file, _ = self.compile(source, "--target", HOST, *options)
        library = "image%d.so" % len(os.listdir(self.folder))
        elf = listing.Elf(support.Bundle(self, c_file, "k_bundle", library).images[HOST])
        tables = [section for section in elf.sections if section[1] == listing.SHT_SYMTAB]
        return {name for table in tables for name, info, _, index, _ in elf.symbols(table) if info & 15 == 2 and index}

    def test_an_image_has_only_what_its_kernels_call(self):
        """What the header has for kernels that meet, or run on fibers, would be most of the image, and of clang's time."""
        head = "#include <rill/device/kernel.h>\nRILL_KERNEL(k, float *x, int *y) {\n  __shared__ float s[64];\n"
        bodies = {
            "x[threadIdx.x] = 1;": set(),
            "y[threadIdx.x] /= y[0];": {"rill_check_division"},
            "s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[63 - threadIdx.x];": set(),
            "if (threadIdx.x & 1) __syncthreads(); x[threadIdx.x] = __syncthreads_count(y[threadIdx.x]);": {
                "rill_check_division",
                *("rill_sched_%s" % name for name in ("begin", "count", "first", "more", "next", "note")),
            },
        }
        for body, expected in bodies.items():
            with self.subTest(body=body):
                functions = self.functions(self.write("k.kernel.cu", head + "  %s\n}\n" % body))
                self.assertEqual({name for name in functions if name.startswith("rill_")}, expected)
        functions = self.functions(self.path("k.kernel.cu"), "--check")
        self.assertIn("rill_fiber_barrier_count", functions)
        self.assertFalse({name for name in functions if name.startswith("rill_sched_")})

    @unittest.skipUnless(support.X86, "a single level")
    def test_levels_for_which_a_source_is_the_same_are_read_once(self):
        same = "#include <rill/device/kernel.h>\nRILL_KERNEL(k, int *x) { x[threadIdx.x] = %s; }\n"
        level = "\n#ifdef __AVX512F__\n4\n#elif defined __AVX2__\n3\n#else\n1\n#endif\n"
        own = same % 0 + '__attribute__((target("avx2"))) __device__ int f(int v) { return v; }\n'
        # rill/device/half.h is another one for x86-64
        for text, count in ((same % 7, 2), (same % level, 3), (own, 3)) if support.LONG else ((same % level, 3),):
            source = self.write("k.kernel.cu", text)
            result = self.rillcc("-v", "-o", "k.rill.c", "--target", "cpu", source)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr.count("-disable-llvm-passes"), count, text)
            images = support.Bundle(self, self.path("k.rill.c"), "k_bundle", "all%d.so" % count).images
            for number, name in ((1, "x86-64"), (3, "x86-64-v3"), (4, "x86-64-v4")):
                target = "cpu:" + name
                self.compile(source, "--target", target)
                alone = support.Bundle(self, self.path("out.rill.c"), "k_bundle", "one%d%d.so" % (count, number)).images
                self.assertEqual(alone[target], images[target], target)
                if text == same % level and support.runnable(name):
                    x = (ctypes.c_int * 1)()
                    support.HostImage(self, "k%d" % number, images[target]).run("k", (1, 1, 1), (1, 1, 1), pointer_to(x))
                    self.assertEqual(x[0], number)

    @support.long
    def test_an_image_is_the_same_every_time(self):
        """Wherever LLVM has its memory: regions are numbered in the order of the function."""
        text = "#include <rill/device/kernel.h>\nRILL_KERNEL(k, float *x) {\n  __shared__ float s[64];\n"
        text += "  const unsigned t = threadIdx.x;\n  s[t] = x[t];\n  __syncthreads();\n"
        text += "  for (unsigned k = 2; k <= blockDim.x; k *= 2) {\n    for (unsigned j = k / 2; j > 0; j /= 2) {\n"
        text += "      if ((t ^ j) > t) s[t] += s[t ^ j];\n      __syncthreads();\n    }\n  }\n  x[t] = s[t];\n}\n"
        source = self.write("k.kernel.cu", text)
        texts = set()
        for _ in range(20):
            self.compile(source, "--target", HOST)
            texts.add(self.read("out.rill.c"))
        self.assertEqual(len(texts), 1)

    def test_a_link_to_another_program_hides_no_clang(self):
        """As ccache has them in a folder that is the first on the PATH."""
        os.mkdir(self.path("links"))
        other = self.write("ccache", "#!/bin/sh\nexit 1\n")
        os.chmod(other, 0o755)
        os.symlink(other, os.path.join(self.path("links"), os.path.basename(support.LOOPS)))
        text = "#include <rill/device/kernel.h>\nRILL_KERNEL(k, float *x) {\n  __shared__ float s[64];\n"
        text += "  s[threadIdx.x] = x[threadIdx.x];\n  __syncthreads();\n  x[threadIdx.x] = s[63 - threadIdx.x];\n}\n"
        path = self.path("links") + os.pathsep + os.environ["PATH"]
        result = self.rillcc("-v", "-o", "out.rill.c", "--target", HOST, self.write("k.kernel.cu", text), PATH=path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('kernel "k": loops between barriers', result.stdout + result.stderr)

    @support.long
    def test_debug_information_changes_no_form(self):
        """With every clang that is here: LLVM before 19 keeps it in calls among the others."""
        text = "#include <rill/device/cuda_names.h>\nRILL_KERNEL(k, int n, float *x) {\n"
        text += "  const float s = rill_warp_sum(x[threadIdx.x]);\n  if (threadIdx.x >= 40) return;\n  __syncthreads();\n"
        text += "  for (unsigned i = 0; i < threadIdx.x; i++) x[0] += rill_shuffle_xor(s, i);\n}\n"
        text += "RILL_KERNEL(maximum, const float *x, float *y) {\n  const float value = rill_block_max(x[threadIdx.x]);\n"
        text += "  y[threadIdx.x] = rill_block_max(value * x[0]);\n}\n"
        text += "RILL_KERNEL(some, int n, float *x) {\n  if ((int)threadIdx.x < n) {\n"
        text += "    const float value = __shfl_xor_sync(__activemask(), x[threadIdx.x], 1);\n"
        text += "    x[threadIdx.x] = value;\n  }\n}\n"
        source = self.write("k.kernel.cu", text)
        expected = dict.fromkeys(("k", "maximum", "some"), "loops between barriers")
        hardened = ["-fstack-protector-strong", "-D_FORTIFY_SOURCE=3"] + ["-fcf-protection"] * support.X86
        for version in range(host.OLDEST, host.NEWEST):
            clang = llvm.which_clang("clang++-%d" % version)
            if not clang or not llvm.find_library(clang):
                continue
            for options in (["-g"], ["-gdwarf-4", *hardened]):
                with self.subTest(clang=version, options=options):
                    more = ["--cpu-option=" + option for option in options]
                    result = self.rillcc("-v", "--target", HOST, "-o", "out.rill.c", *more, source, RILL_CLANG=clang)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    forms = dict(re.findall(r'kernel "(\w+)": (.*)', result.stderr))
                    self.assertEqual(forms, expected)

    @unittest.skipUnless(shutil.which("objdump"), "no objdump")
    @support.long
    def test_a_debugger_finds_lines_and_names(self):
        text = "#include <rill/device/kernel.h>\nRILL_KERNEL(k, int n, const float *x, float *y) {\n"
        text += "  __shared__ float tile[64];\n  const int mine = threadIdx.x;\n  float value = x[mine] * 3;\n"
        text += "  tile[mine] = value;\n  __syncthreads();\n  value += tile[n - 1 - mine];\n  __syncthreads();\n"
        text += "  tile[mine] = value + tile[mine];\n  __syncthreads();\n  y[mine] = tile[n - 1 - mine] / value;\n}\n"
        source = self.write("k.kernel.cu", text)
        for options in ("--cpu-option=-g", "--cpu-option=-g --fibers", ""):
            image = self.open(source, *options.split())
            self.assertTrue(image.kernels)
            path = image.library._name
            shown = subprocess.run(["objdump", "--dwarf=decodedline,info", path], capture_output=True, text=True, check=True)
            lines = {int(line) for line in re.findall(r"^k\.kernel\.cu\s+(\d+)\s", shown.stdout, re.M)}
            names = set(re.findall(r"DW_AT_name\s*:.*?(\w+)$", shown.stdout, re.M))
            with self.subTest(options=options):
                self.assertEqual({5, 6, 8, 10, 12} - lines, set() if options else {5, 6, 8, 10, 12})
                self.assertEqual({"mine", "value", "tile"} - names, set() if options else {"mine", "value", "tile"})

    def test_many_barriers_of_an_unrolled_loop_stay_one_loop(self):
        """Hundreds of loops in one function would take clang minutes."""
        body = "  float v = x[threadIdx.x];\n#pragma unroll\n  for (int i = 0; i < 100; i++) {\n"
        body += "    s[threadIdx.x] = v;\n    __syncthreads();\n    v += s[(threadIdx.x + i) % blockDim.x];\n    __syncthreads();\n"
        body += "  }\n  y[threadIdx.x] = v;\n"
        text = "#include <rill/device/kernel.h>\nRILL_KERNEL(k, const float *x, float *y) {\n  __shared__ float s[64];\n%s}\n" % body
        image, runner = self.open(self.write("k.kernel.cu", text)), Runner(self)
        x, y = (ctypes.c_float * 64)(*range(64)), (ctypes.c_float * 64)()
        self.assertEqual(runner.run(image.kernels["k"], 1, (1, 1, 1), (64, 1, 1), 0, pointer_to(x), pointer_to(y)), 0)
        values = [ctypes.c_float(t) for t in range(64)]
        for i in range(100):
            values = [ctypes.c_float(values[t].value + values[(t + i) % 64].value) for t in range(64)]
        self.assertEqual(list(y), [v.value for v in values])
        self.assertLess(os.path.getsize(self.path("out.rill.c")), 120000)

    def test_volatile_shared_memory_keeps_warps_in_step(self):
        """As programs count on it that were written for GPUs whose warps have one program counter."""
        text = "#include <rill/device/kernel.h>\n"
        text += "static __device__ void sum_warp(volatile float *s, unsigned lane) {\n"
        text += "  for (unsigned by = 16; by > 0; by /= 2) s[lane] += s[lane + by];\n}\n"
        text += "template <int N> static __device__ void sums(const float *x, float *y, volatile float *s, unsigned t) {\n"
        text += "  float *const mine = const_cast<float *>(s) + t / 32 * 48;\n"
        text += "  mine[t % 32] = x[t];\n  if (t % 32 < 16) mine[32 + t % 32] = 0;\n  __syncthreads();\n"
        text += "  if (t / 32 % N == 0) sum_warp(mine, t % 32);\n  __syncthreads();\n  y[t] = mine[0];\n}\n"
        text += "RILL_KERNEL(all, const float *x, float *y) { __shared__ float s[48 * 8]; sums<1>(x, y, s, threadIdx.x); }\n"
        text += "RILL_KERNEL(some, const float *x, float *y) {\n"
        text += "  RILL_DYNAMIC_SHARED(float, s);\n  sums<3>(x, y, s, threadIdx.x);\n}\n"
        text += "RILL_KERNEL(fourth, const float *x, float *y) { __shared__ float s[48 * 8]; sums<4>(x, y, s, threadIdx.x); }\n"
        image, runner, threads = self.open(self.write("k.kernel.cu", text)), Runner(self), 256
        x, y = (ctypes.c_float * threads)(*range(threads)), (ctypes.c_float * threads)()
        for name, step in (("all", 1), ("some", 3), ("fourth", 4)):
            outcome = runner.run(image.kernels[name], 1, (1, 1, 1), (threads, 1, 1), 48 * 8 * 4, pointer_to(x), pointer_to(y))
            self.assertEqual(outcome, 0)
            sums = [sum(range(first, first + 32)) if first // 32 % step == 0 else first for first in range(0, threads, 32)]
            self.assertEqual(list(y), [sums[t // 32] for t in range(threads)], name)

    def test_loops_with_the_threads_inside(self):
        """As they are thread by thread, in rows of any length; in vectors; and as written where a thread would keep too much."""
        index = "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        text = "#include <rill/device/kernel.h>\n"
        bodies = {
            "column": "if (i >= n) return; float s = 0; for (int k = 0; k < m; k++) s += a[k * n + i] * b[k]; y[i] = s;",
            "column_if": "if (i < n) { float s = 0; for (int k = m; k > 0; k--) s += a[k * size_t(n) + i] / b[k]; y[i] = s; }",
            "nested": "float s = i; for (int j = 0; j < m; j++) { for (int k = j; k < m; k++) s = s * b[k] + j; s -= a[i]; } "
            "y[i] = s;",
            "choice": "float s = -1; for (int k = 0; k < m; k++) { float v = a[k * n + i], u = b[k]; s = v > s ? v : s * u; } y[i] = s;",
            "same": "float s = 0; for (int k = 0; k < m; k++) if (b[k] > 0) s += a[k * n + i] * b[k]; y[i] = s;",
            "stored": "for (int k = 1; k < m; k++) y[k * 512 + i] = a[k * n + i] - a[(k - 1) * n + i] + b[k];",
            "after": "float s = 0; for (int k = 0; k < m; k++) s += a[k * n + i] * b[k]; y[i] = rill_warp_sum(s);",
            "odd": "float s = 0; if (i % 3) for (int k = 0; k < m; k++) s += a[k * n + i] * b[k]; __syncthreads(); y[i] = s;",
            "ends": "float s = 0; for (int k = 0; k < m; k++) { if (k == n) return; s += a[k * n + i]; } y[i] = s;",
            "large": "struct { float at[300]; } v = {}; for (int k = 0; k < m; k++) v.at[k * 7 % 300] = b[k]; float s = 0; "
            "for (int k = 0; k < m; k++) s += a[k * n + i] * b[k]; y[i] = s + v.at[n];",
        }
        for name, body in bodies.items():
            text += "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n%s  %s\n}\n" % (name, index, body)
        path = self.write("k.kernel.cu", text)
        self.compare_forms(path, {
            name: "loops between barriers" if name == "odd" else "a loop over the threads" if name == "large"
            else "loops between barriers, inside its own loops" if name == "after"
            else "a loop over the threads, inside its own loops" for name in bodies
        })  # fmt: skip

    def test_loops_after_borders(self):
        """The threads beyond a border go around with the others, and change nothing; if no thread is inside, none does."""
        adds = "for (int k = 0; k < m; k++) s += a[k * n + i] * b[k];"
        bodies = {
            "returns": "if (i >= n) return; " + adds,
            "inside": "s = 1; if (i < n) { s = a[i]; if (i + 9 < m * 4) { %s } } s *= 3;" % adds,
            "low": "if (i < 1 || i >= n) return; int q = 3; for (int k = 0; k < m; k++) { q += k * 77 / i; s += a[k * n + i]; } s += q;",
            "plane": "if (i < 2 || r + int(threadIdx.y) < 1 || i + 3 > n) return; for (int k = 1; k < m; k++) "
            "y[k * 512 + i] = a[k * n + i - 2] + a[k * n + i + 1] - b[k + r]; s = 4;",
            "endless": "if (i < 40 || i >= n) return; const int d = m >> 3; "
            "for (int k = d * 4 + (m < 8); k != 0; k -= d) s = s / 2 + a[k + i];",
            "nested": "if (i + r >= n) return; for (int j = 0; j < min(m, 5); j++) { s *= b[j]; "
            "for (int k = j; k < m; k++) s += a[k * n + i]; y[4096 + j * 512 + i] = s; }",
            "between": "if (i >= n) return; %s y[2048 + i] = s; s -= a[i]; for (int k = m; k > 0; k--) s = s * b[k] - a[k + i];" % adds,
            "meets": "if (i < n) { %s } __syncthreads(); s = rill_shuffle_xor(s, 1);" % adds,
            "roots": "if (i >= n) return; for (int k = 0; k < m; k++) s = sqrtf(s + fabsf(a[k * n + i])) + fminf(b[k], s); s = n / (i + 1) + s;",
        }
        start = "  const int r = blockIdx.x, i = r * blockDim.x + threadIdx.x;\n  float s = 0;\n"
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n%s  %s\n  y[i] = s;\n}\n"
        text = "#include <rill/device/kernel.h>\n" + "".join(kernel % (name, start, body) for name, body in bodies.items())
        notes = dict.fromkeys(bodies, "a loop over the threads, inside its own loops")
        notes["meets"] = "loops between barriers, inside its own loops"
        self.compare_forms(self.write("k.kernel.cu", text), notes, ((0, 3), (30, 2), (61, 17), (100, 33)))
        if shutil.which("nm"):
            shown = subprocess.run(["nm", self.images[0].library._name], capture_output=True, text=True, check=True)
            for name in bodies:
                self.assertRegex(shown.stdout, name + r"\w*\.block\.some")

    def test_a_mistake_with_borders_is_an_error(self):
        text = "RILL_KERNEL(k, int n, int m, const float *a, float *y) { int i = blockIdx.x * blockDim.x + threadIdx.x; "
        text += "if (i >= n) return; float s = 0; for (int k = 0; k < m; k++) s += a[k * n + i]; y[i] = s; }\n"
        path = self.write("k.kernel.cu", "#include <rill/device/kernel.h>\n" + text)
        code = "import runpy, sys; sys.argv[:] = sys.argv[1:]; sys.path.insert(0, sys.argv.pop(0)); from rillcc_lib import borders; "
        code += "%srunpy.run_path(sys.argv[0], run_name='__main__')"
        for change in "", "borders.Borders.leave_out = lambda *_: None; ":
            command = [sys.executable, "-c", code % change, os.path.dirname(support.RILLCC), support.RILLCC, "--target", HOST]
            result = subprocess.run([*command, "-o", self.path("o.c"), path], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode != 0, change != "", result.stderr)
            self.assertEqual("threads beyond a border execute" in result.stderr, change != "", result.stderr)

    def test_loops_that_threads_leave_one_after_another(self):
        """The rounds in which all take part are executed for all at once."""
        head = "#include <rill/device/kernel.h>\n"
        product = "s += a[r * m + k] * b[k];"
        bodies = {
            "block": "for (int k = threadIdx.x; k < m; k += blockDim.x) %s" % product,
            "lane": "for (int k = threadIdx.x % 32; k < m; k += 32) " + product,
            "grid": "for (size_t k = i; m * 9 > k; k += size_t(gridDim.x) * blockDim.x) s = s * b[k] - a[k];",
            "from": "for (unsigned k = threadIdx.x + r + 3; k <= unsigned(m); k += 64) { s += a[k]; if (b[k] > 0) s *= b[k]; }",
            "first": "int k = threadIdx.x; do { %s } while ((k += blockDim.x) < m);" % product,
            "down": "for (unsigned k = threadIdx.x; k < unsigned(m); k--) %s" % product,
            "several": "float p = 1; for (int k = threadIdx.x; k < m; k += blockDim.x) { %s p -= a[k]; } s *= p;" % product,
            "guarded": "if (i >= n) return; for (int k = threadIdx.x; k < m; k += 16) %s" % product,
            "either": "if (r < n && n > 50) for (int k = threadIdx.x; k < m; k += blockDim.x) %s else s = 5;" % product,
            "stored": "for (int k = threadIdx.x; k < m; k += blockDim.x) { y[2048 + k] = a[k]; s += 1; }",
            "looked_up": "const int q = ((const int *)b)[r] & 15; for (int k = threadIdx.x; k < m; k += blockDim.x) s += a[q * m + k];",
            "kept": "int k = threadIdx.x; for (; k < m; k += blockDim.x) %s s += k;" % product,
            "sum": "for (int k = threadIdx.x; k < m; k += blockDim.x) %s s = rill_block_sum(s);" % product,
            "warp": "const unsigned w = (blockIdx.x * blockDim.x + threadIdx.x) / 32, l = threadIdx.x & 31; "
            "for (int k = l; k < m; k += 32) s += a[w * m + k] * b[k]; s = rill_warp_sum(s) + w;",
            "twice": "unsigned h = i * 7; for (int o = 0; o < 2; o++) { unsigned k = r * 5 + (threadIdx.x & 31), u = threadIdx.x; "
            "do { u = u * 3 + unsigned(b[k] * 9 + 10); } while ((k += blockDim.x) < unsigned(m)); h = h * 31 + rill_warp_sum(u); } "
            "s = h >> 8;",
            "warps": "const unsigned w = threadIdx.x >> 6, l = (threadIdx.x + blockIdx.x * blockDim.x) % 64; "
            "for (unsigned k = l; k < m; k += 64) s += a[w * 5 + k] * b[k]; s -= rill_shuffle_xor(s, 8);",
            "other": "for (int k = threadIdx.x; k < m; k += blockDim.x) %s s = rill_shuffle_xor(s, 4); float p = 0; "
            "for (int k = n & 7; k-- > 0;) p = p / 2 + a[k + threadIdx.x]; s = s * 3 + p;" % product,
            "shifted": "const unsigned w = (threadIdx.x + n) / 32, l = (threadIdx.x + n) % 32; "
            "for (int k = l; k < m; k += 32) s += a[w * 7 + k] * b[k]; s += w;",
            "ints": "const int t = threadIdx.x, w = (i - 64) / 32, l = t % 32; "
            "for (int k = l; k < m; k += 32) s += a[(w + 5) * 7 + k] * b[k]; s = rill_warp_sum(s) + w;",
            "table": "for (int k = threadIdx.x; k < m; k += blockDim.x) s += expf(a[r * m + k]) * b[k];",
            "tile": "const int l = threadIdx.y; for (int k = l; k < m; k++) s += a[l * m + k] * b[k * 3 + i]; s += l; "
            "y[4096 + l * blockDim.x + i] = s; s = 0;",
        }
        start = "  const int r = blockIdx.x, i = r * blockDim.x + threadIdx.x;\n  float s = 0;\n"
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n%s  %s\n  y[i] = s;\n}\n"
        text = head + "".join(kernel % (name, start, body) for name, body in bodies.items())
        notes = dict.fromkeys(bodies, "a loop over the threads, inside its own loops")
        notes.update(dict.fromkeys(("sum", "warp", "warps", "ints", "twice", "other"), "loops between barriers, inside its own loops"))
        notes["tile"] = "a loop over the threads"
        self.compare_forms(self.write("k.kernel.cu", text), notes, ((40, 0), (60, 31), (100, 96), (60, 300)))

    def test_loops_around_sums(self):
        """Each thread adds up numbers in several rounds: its own row's, or those that are next to its neighbours'."""
        bodies = {
            "rows": "for (int t = x; t < m; t += blockDim.x) { float v = 0; for (int d = 0; d < 24; d++) v += b[d] * a[(r + t) * 24 + d]; y[2048 + t] = v; s += v; }",
            "columns": "for (int t = x; t < m; t += blockDim.x) { float v = t; for (int d = 0; d < n; d++) v = v / 2 + b[d] * a[d * 40 + t]; s -= v; }",
            "shared": "w[x] = b[x]; __syncthreads(); for (int t = x; t < m; t += blockDim.x) { float v = 0; "
            "for (int d = 0; d < n; d++) v += w[d & 31] * a[(r + d) * m + t]; y[2048 + r * 512 + t] = v; }",
            "few": "for (unsigned t = x; t < 23; t += blockDim.x) { float v = 0; for (int d = 0; d < n; d++) v += a[d * 23 + t]; y[4096 + t] = v; }",
            "odd": "for (int t = x * 3 + 1; t <= m; t += blockDim.x * 2) { float v = 1; for (int d = 0; d < 20; d++) v -= a[t + d * 3] * b[d]; s += v; }",
            "guarded": "if (i >= n) return; for (int t = x; t < m; t += 16) { float v = 0; for (int d = 0; d < 17; d++) v += a[d * m + t]; s += v; }",
            "later": "float p = 0; for (int t = x; t < m; t += blockDim.x) { float v = 0; for (int d = 0; d < n; d++) v += a[t * 32 + d]; "
            "p = fmaxf(p, v); } __syncthreads(); s = rill_warp_max(p); if (i >= n) return; y[512 + i] = s;",
            "choice": "for (int t = x; t < m; t += blockDim.x) { float v = 0; if (t % 3) for (int d = 0; d < n; d++) v += a[d * m + t]; "
            "else v = b[t]; s += v; }",
            "wraps": "const unsigned q = blockIdx.x * 4u - unsigned(m); "
            "for (unsigned k = x + m; k < 2u * m + 9; k += blockDim.x) s += a[q + k] * b[k];",
            "some_wrap": "const unsigned q = blockIdx.x - 40u; for (int k = x; k < m; k += blockDim.x) if (k >= 40) s = s * 3 + a[q + k];",
            "below": "for (unsigned k = x; k < unsigned(m); k += blockDim.x) s = s * 3 + a[unsigned(n) * 0x20000000u + 9 + k & 4095];",
            "negative": "for (int k = x - 9; k < m - 5; k += blockDim.x) s += a[unsigned(r) * m + 64 + k];",
            "last": "unsigned u = 0; for (unsigned k = x + 0xfffff000u; k < 0xfffff100u - (n & 3); k += blockDim.x) u = u * 3 + (k & 63); s = u;",
            "conditions": "w[x] = b[x]; __syncthreads(); if (x % 32 == 0) w[x / 32 + 1000] = a[x]; __syncthreads(); s = w[x / 32 + 1000]; "
            "__syncthreads(); if (x % 32 == 0) w[x / 32 + 1040] = s + x; __syncthreads(); s *= w[x / 32 + 1040] + (x % 32 == 0) + x / 32;",
        }
        start = "  __shared__ float w[1088];\n  const int r = blockIdx.x, x = threadIdx.x, i = r * blockDim.x + x;\n"
        start += "  float s = 0;\n"
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n%s  %s\n  y[i] = s;\n}\n"
        text = "#include <rill/device/kernel.h>\n" + "".join(kernel % (name, start, body) for name, body in bodies.items())
        notes = dict.fromkeys(bodies, "")
        self.compare_forms(self.write("k.kernel.cu", text), notes, ((40, 0), (60, 31), (20, 100), (17, 300), (33, 7)))

    def test_sums_of_blocks_that_a_program_writes(self):
        """Conditions about warps around functions of these keep the loops before and after as they are."""
        sums = "for (int o = 16; o > 0; o >>= 1) s += rill_shuffle_down(s, o);"
        store = "if (t % 32 == 0) w[t / 32] = s; __syncthreads(); "
        load = "s = t < (threads + 31) / 32 ? w[t] : 0; "
        give = "if (t == 0) w[0] = s; } __syncthreads(); s = w[0];"
        tree = "w[t] = s; __syncthreads(); for (unsigned o = 512; o > 32; o >>= 1) { if (t < o && t + o < threads) w[t] += w[t + o]; "
        tree += "__syncthreads(); } "
        bodies = {
            "first": sums + store + load + "if (t < 32) { " + sums + give,
            "inside": sums + store + "if (t / 32 == 0) { " + load + sums + give,
            "butterfly": sums.replace("down", "xor") + store + "if (threadIdx.x < 32) { " + load + sums.replace("down", "xor") + give,
            "second": sums + "if (t >= 32 && t < 64) { " + sums + "if (t == 40) y[9] = s; } else if (t > 70) y[t] = s;",
            "leave": sums + store + "if (t > 31) return; " + load + sums + "if (t == 0) y[7] = s; return;",
            "parts": "if (t < 32) { if (a[t] > 0) s += a[t + n]; " + sums + "for (unsigned o = 0; o < (t & 3); o++) s += b[o + t]; "
            "const float v = s / 3; s += rill_shuffle_xor(s, 2); if (v > 0) s -= v * int(t / (m + 1)); s += rill_shuffle_up(s, 1); }",
            "loop": sums + "if (t / 32 != 1) { for (int o = n; o > 0; o /= 4) s += rill_shuffle_xor(s, 1); }",
            "unused": "for (int r = 0; r < 3; r++) { unsigned v = t % 32; for (unsigned o = 1; o < 32; o *= 2) { "
            "const unsigned u = rill_shuffle_up(v, o); if (t % 32 >= o) v += u; } } rill_warp_sync();",
            "other": sums + "if (t < 64 && n > 50) { s = rill_ballot(s > 0) % 9 + rill_warp_max(s); }",
            "given": "__syncthreads(); if (t < 32) w[t] = 1; s = rill_shuffle_down(s, 1); __syncthreads(); s += w[0];",
            "two": sums + "if (t < 32) { " + sums + "} if (t / 32 == 1) { " + sums + "} __syncthreads();",
            "tree": tree + "if (t < 32) { s = w[t] + (t + 32 < threads ? w[t + 32] : 0); " + sums + give,
            "steps": tree + "if (t < 32) { for (unsigned o = 32; o > 0; o /= 2) { const float v = t + o < threads ? w[t + o] : 0; "
            "rill_warp_sync(); w[t] += v; rill_warp_sync(); } } __syncthreads(); s = w[0];",
        }
        start = "  const unsigned threads = blockDim.x * blockDim.y * blockDim.z, r = blockIdx.x;\n"
        start += "  const unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x, i = r * threads + t;\n"
        start += "  float s = 0;\n  for (int k = threadIdx.x; k < m; k += blockDim.x) s += a[r * m + k] * b[k];\n"
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n  __shared__ float w[1088];\n"
        kernel += "%s  %s\n  y[i] = s;\n}\n"
        text = "#include <rill/device/kernel.h>\n" + "".join(kernel % (name, start, body) for name, body in bodies.items())
        notes = dict.fromkeys(bodies, "loops between barriers, inside its own loops")
        notes["loop"] = "loops between barriers"
        self.compare_forms(self.write("k.kernel.cu", text), notes, ((40, 0), (60, 96), (100, 300)))

    def test_blocks_of_the_usual_size(self):
        """Kernels with barriers have a version for them, the others have none."""
        bodies = {
            "sums": "s[t] = a[i]; __syncthreads(); for (unsigned half = threads / 2; half > 0; half /= 2) { "
            "if (t < half) s[t] += s[t + half]; __syncthreads(); } y[i] = s[0];",
            "plane": "s[threadIdx.x * blockDim.y + threadIdx.y] = a[i]; __syncthreads(); y[i] = s[t] - s[threads - 1 - t];",
            "returns": "const int k = blockIdx.x * blockDim.x + threadIdx.x; if (k >= n) return; y[k] = rill_block_sum(a[k]);",
            "apart": "y[i] = a[i] * b[i] + s[t];",
        }
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n  __shared__ float s[1024];\n"
        kernel += "  const unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
        kernel += "  const unsigned threads = blockDim.x * blockDim.y * blockDim.z, i = blockIdx.x * threads + t;\n"
        kernel += "  s[t] = 1.0f;\n  %s\n}\n"
        source = self.write("k.kernel.cu", "#include <rill/device/kernel.h>\n" + "".join(kernel % both for both in bodies.items()))
        usual = [name for name in self.functions(source) if name.endswith(".usual")]
        self.assertEqual(sorted(re.findall("sums|plane|returns|apart", name)[0] for name in usual), ["plane", "returns", "sums"])
        notes = dict.fromkeys(bodies, "loops between barriers")
        notes["apart"] = "a loop over the threads"
        self.compare_forms(source, notes, ((1000, 0), (300, 1), (0, 2)))

    def code(self, source, level, function):
        """Returns the assembly of a function in the image for a level of the processor."""
        c_file, _ = self.compile(source, "--target", "cpu:" + level)
        with open(self.path("image.so"), "wb") as file:
            file.write(support.Bundle(self, c_file, "k_bundle", "bundle%d.so" % len(os.listdir(self.folder))).images["cpu:" + level])
        shown = subprocess.run(["objdump", "-d", self.path("image.so")], capture_output=True, text=True, check=True)
        found = re.findall(r"<[^>]*%s[^>]*>:\n(.*?)\n\n" % function, shown.stdout + "\n", re.S)
        self.assertTrue(found)
        return "\n".join(found)

    def test_branches_of_few_threads(self):
        """A branch for one value of an index is executed only for the threads that take it."""
        edges = "if (x == 0 && i > 0) s[y][0] = a[i - 1]; if (x + 1 == w && i < n) s[y][w + 1] = a[i + 1]; "
        bodies = {
            "halo": edges + "if (y == 0) s[33][x] = b[i]; if (y + 1 == blockDim.y) s[34][x] = b[i + 1]; MEET v = s[y][x] + s[33][x] - s[34][x];",
            "thread": "if (y * w + x == m) s[35][1] = v; if (x == m / 2) s[35][2 + y] = a[i] / b[i]; MEET v -= s[35][1] + s[35][2 + y];",
            "round": "for (int k = 0; k < (m & 3) + 2; k++) { %s MEET v = v / 2 + s[y][x] - s[y][x + 2]; MEET }" % edges,
            "returns": "if (i >= n) return; %s MEET v = s[y][x];" % edges,
            "shift": "if (m > 3 && m < 20 && x == 1u << m) s[36][y] = v; if (x - 3u == (m & 7)) s[36][y] = 2; MEET v = s[36][y];",
            "shuffled": edges + "MEET v = rill_shuffle_xor(s[y][x], 1);",
            "apart": "y2[i] = v; if (x == 5) y2[4096 + i * 3] = v / 3; if (x == 6) y2[4097 + i * 3] = y2[i] * 3;",
            "either": "if (x == 0 || i == m) s[y][0] = a[i + 1]; if (x == 2) v = 3; MEET v += s[y][0];",
        }
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y2) {\n  __shared__ float s[64][260];\n"
        kernel += "  const int x = threadIdx.x, y = threadIdx.y + blockDim.y * threadIdx.z & 31, w = blockDim.x & 255;\n"
        kernel += "  const int i = ((blockIdx.x * blockDim.z + threadIdx.z) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
        kernel += "  float v = b[i];\n  if (threadIdx.z == 0 && y < 32) s[y][x + 1] = a[i];\n  if (x < 64 && y == 0) s[33][x] = s[34][x] = s[35][x] = s[36][x] = 0;\n"
        kernel += "  if (x < 2) s[y][x] = s[y][w + 1] = 1;\n  MEET\n  %s\n  y2[i] = v;\n}\n"
        text = "".join(kernel % both for both in bodies.items()).replace("MEET", "__syncthreads();")
        source = self.write("k.kernel.cu", "#include <rill/device/cuda_names.h>\n" + text)
        self.compare_forms(source, dict.fromkeys(bodies, "loops between barriers"), ((40, 0), (100, 9), (300, 33)))
        if support.X86 and shutil.which("objdump"):
            self.assertNotRegex(self.code(source, "x86-64-v4", "halo[^>]*block"), "scatter")

    def test_strips_wider_than_a_warp(self):
        """A loop that depends on no warp is executed for more threads at once, if rows consist of so many."""
        adds = "for (int k = 0; k < m; k++) s += a[k * n + i] * b[k];"
        bodies = {
            "column": adds,
            "two": "float p = i; for (int k = 0; k < m; k++) { s += a[k * n + i]; p = p * b[k] - s; } s -= p;",
            "doubles": "double d = i; for (int k = 0; k < m; k++) d = d / 2 + a[k * n + i]; s = d;",
            "bits": "unsigned h = i; for (int k = 0; k < m; k++) h = h * 31 + (unsigned(i) << 7 | k) + unsigned(b[k] * 9 + 10); s = h >> 9;",
            "numbers": "for (int k = 0; k < m; k++) s += a[k * n + i / 64] * (i %% 128);",
            "guarded": "if (i >= n) return; " + adds,
            "shared": "__shared__ float w[1024]; w[threadIdx.x] = b[i]; __syncthreads(); for (int k = 0; k < m; k++) s += a[k + i] * w[k & 31];",
        }
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n"
        kernel += "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  float s = 0;\n  %s\n  y[blockIdx.x * blockDim.x + threadIdx.x] = s;\n}\n"
        text = "".join(kernel % (name, body.replace("%%", "%")) for name, body in bodies.items())
        source = self.write("k.kernel.cu", "#include <rill/device/cuda_names.h>\n" + text)
        notes = dict.fromkeys(bodies, "a loop over the threads, inside its own loops")
        notes["shared"] = "loops between barriers, inside its own loops, rows of 16 threads at a time"
        self.compare_forms(source, notes, ((40, 3), (300, 17), (0, 2)))
        if support.X86 and shutil.which("objdump"):
            self.assertRegex(self.code(source, "x86-64-v4", "column[^>]*block"), r"\$0x7f\b")

    def test_loads_that_agree(self):
        """What all threads load from one place is the same for all, unless atomic or volatile accesses give them an order."""
        lock = "while (atomicCAS(&w[2], 0u, 1u) != 0u) {} %s atomicExch(&w[2], 0u); "
        bodies = {
            "row": "const int q = c[r] & 7; for (int k = threadIdx.x; k < m; k += blockDim.x) s += a[q * m + k]; s += q;",
            "bound": "if (t == 0) w[0] = n & 7; MEET for (unsigned k = 0; k < w[0]; k++) { s = s * 2 + a[k + t]; MEET }",
            "left": "if (t == 5 % threads) w[0] = 3 + r; MEET "
            "while (w[0] > 0) { s = rill_shuffle_xor(s + t, 1); MEET if (t == 0) w[0]--; MEET }",
            "ended": "if (i >= unsigned(n)) return; const int q = c[r] & 3; if (q > 0) s = rill_shuffle_up(s + i, 1) * q; s -= q;",
            "own": "w[t] = i; const unsigned v = w[t]; MEET s = v + w[threads - 1];",
            "same": "w[5] = n; const unsigned v = w[5]; MEET w[5] = 2; MEET s = v * w[5];",
            "order": "w[1] = 0; w[2] = 0; MEET unsigned v = 0; " + lock % "v = w[1]; w[1] = v + 1;" + "MEET s = v * 3 + w[1];",
            "called": "w[1] = 0; MEET next(w + 1); const unsigned v = w[1]; atomicAdd(w + 1, 1u); MEET s = v * 3 + w[1];",
            "flag": "volatile unsigned *const p = w; p[1] = 0; MEET unsigned v = 0; for (unsigned k = 0; k < threads; k++) { "
            "if (k == t) v = p[1]; if (k == t) p[1] = v + 3; MEET } s = v;",
            "copied": "struct nine { unsigned at[9]; } *const p = (nine *)w; if (t == 0) for (int k = 0; k < 9; k++) p[1].at[k] = k + n; "
            "MEET nine v = p[1]; v.at[t % 9]++; MEET s = v.at[n % 9];",
        }
        head = "#include <rill/device/cuda_names.h>\nstatic __device__ __noinline__ void next(unsigned *w) { atomicAdd(w, 2u); }\n"
        start = "  const unsigned threads = blockDim.x * blockDim.y * blockDim.z, r = blockIdx.x;\n"
        start += "  const unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x, i = r * threads + t;\n"
        start += "  const int *const c = (const int *)b;\n  float s = 0;\n"
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n  __shared__ unsigned w[1088];\n"
        kernel += "%s  %s\n  y[i] = s;\n}\n"
        text = head + "".join(kernel % (name, start, body.replace("MEET", "__syncthreads();")) for name, body in bodies.items())
        notes = dict.fromkeys(bodies, "loops between barriers")
        notes["row"] = "a loop over the threads, inside its own loops"
        self.compare_forms(self.write("k.kernel.cu", text), notes, ((40, 0), (61, 31), (100, 300)))

    def test_rows_of_each_thread(self):
        """A loop over a row of each thread's own is done for several threads at once, with the same results."""
        product = "for (int k = 0; k < m; k++) s += a[i * m + k] * b[k];"
        more = "a loop over the threads, rows of 16 threads at a time"
        inner = "a loop over the threads, inside its own loops, rows of 16 threads at a time"
        bodies = {
            "row": (product, more),
            "guarded": ("if (i >= n) return; " + product, more),
            "some": ("if (threadIdx.x >= 3 && i < n) " + product, more),
            "distance": ("for (int k = 0; k < m; k++) { float d = b[k] - a[i * m + k]; s += d * d; } s = sqrtf(s);", more),
            "larger": ("s = b[i]; for (int k = n & 3; k < m; k++) { float v = a[i * m + k]; s = v > s ? v : s / 2; }", more),
            "several": ("float p = 1; for (int k = 0; k < m; k++) { s += a[i * m + k]; p = fmaf(p, b[i * m + k], k); } s -= p;", more),
            "doubles": (("const double *c = (const double *)a; double d = i; for (size_t k = 0; k < m; k++) d = d / 2 + c[i * 8 + k]; "
                        "s = (d - long(d)) * 0.5;"), more),
            "bytes": ("const signed char *c = (const signed char *)a; for (int k = 0; k < m; k++) s += c[i * 7 + k] * b[k];", more),
            "shorts": ("const unsigned short *c = (const unsigned short *)a; for (int k = 0; k < m; k++) s = s / 2 + c[i * m + k];", more),
            "words": (("const unsigned *c = (const unsigned *)a; unsigned h = i; float p = 0; for (int k = 0; k < m; k++) { "
                      "h = h * 31 + c[i * 3 + k]; p += b[k] * c[i + k]; } s = p + (h & 0xff);"), inner),
            "after": (product + " y[4096 + i] = s; s = rill_warp_sum(s);", "loops between barriers, rows of 16 threads at a time"),
            "twice": (product + " s *= 3; for (int k = 0; k < m; k++) s -= a[i * 5 + k];", more),
            "wraps": ("for (unsigned k = n & 3; k < unsigned(m); k++) s += a[i * m + k];", "a loop over the threads"),
            "stored": ("for (int k = 0; k < m; k++) { s += a[i * m + k]; y[4096 + i] = s; }", "a loop over the threads"),
            "strided": ("for (int k = 0; k < m; k++) s += a[i * m + 2 * k] * b[k];", "a loop over the threads"),
        }  # fmt: skip
        start = "  const int i = (blockIdx.x * blockDim.x + threadIdx.x) & 127;\n  float s = 0;\n"
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n%s  %s\n  y[blockIdx.x * blockDim.x + threadIdx.x] = s;\n}\n"
        text = "#include <rill/device/kernel.h>\n" + "".join(kernel % (name, start, body) for name, (body, _) in bodies.items())
        notes = {name: note for name, (_, note) in bodies.items()}
        self.compare_forms(self.write("k.kernel.cu", text), notes, ((40, 3), (60, 16), (100, 96), (45, 117)))

    def test_numbers_of_warps(self):
        """What is divided by 32 is a thread's index and a multiple of 32, put together in any way, of any sign."""
        bodies = {
            "either": "(t | t << 5) / 32",
            "bits": "((t | unsigned(m) << 5) / 32 & 1023) + ((t | t * 96) & 63)",
            "multiple": "int(t + (t + n) * m * 0x10000200) / 32 & 1023",
        }
        kernel = "RILL_KERNEL(%s, int n, int m, const float *a, const float *b, float *y) {\n"
        kernel += "  const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n"
        kernel += "  y[i] = rill_shuffle_xor(a[i], 8) + (%s);\n}\n"
        text = "#include <rill/device/kernel.h>\n" + "".join(kernel % both for both in bodies.items())
        self.compare_forms(self.write("k.kernel.cu", text), dict.fromkeys(bodies, "loops between barriers"))

    def compare_forms(self, path, notes, sizes=((40, 0), (40, 1), (256, 33), (100, 20))):
        """Compares kernels of some numbers n and m and arrays a, b and y with their execution thread by thread. `notes` has
        what rillcc says of each kernel, or "" for anything."""
        kernels, runner, numbers = self.open_all(path), Runner(self), random.Random(3)
        self.assertEqual({name: form if notes.get(name) else "" for name, form in self.forms.items()}, notes)
        a, b = [(ctypes.c_float * 65536)(*[numbers.uniform(-1, 1) for _ in range(65536)]) for _ in range(2)]
        for block in (*SHAPES[:4], (256, 1, 1), (16, 16, 1), (7, 5, 1), (8, 4, 1), (1, 64, 1), (64, 1, 2), (128, 2, 1)):
            for n, m in sizes:
                for name in notes:
                    results = []
                    for kernel, as_loops in zip(kernels[name], (1, 0)):
                        y = (ctypes.c_float * 65536)()
                        values = ctypes.c_int(n), ctypes.c_int(m), pointer_to(a), pointer_to(b), pointer_to(y)
                        self.assertEqual(runner.run(kernel, as_loops, (2, 1, 1), block, 4096, *values), 0)
                        results.append(bytes(y))
                    self.assertTrue(results[0] == results[1], "%s, blocks of %s, %d by %d" % (name, block, n, m))

    @support.long
    def test_kernels(self):
        runner, kernels = Runner(self), self.open_all(os.path.join(HERE, "barriers.kernel.cu"))
        powers = {"reduce_halves", "reduce_neighbours", "scan_blelloch", "bitonic_sort"}
        special = {"transpose", "matmul"}
        for name, forms in kernels.items():
            if name in special:
                continue
            for block in POWERS if name in powers else SHAPES:
                threads = block[0] * block[1] * block[2]
                for n in (1, 5 * threads // 2 + 1, 4 * threads):
                    grid = ((n + threads - 1) // threads, 1, 1)
                    with self.subTest(kernel=name, block=block, n=n):
                        self.compare(runner, forms, n, grid, block)
        for n in (1, 16, 45):
            tiles = (n + 15) // 16
            for block in ((16, 16, 1), (16, 4, 1), (16, 1, 1)):
                self.compare(runner, kernels["transpose"], n, (tiles, tiles, 1), block, n * n)
            self.compare(runner, kernels["matmul"], n, (tiles, tiles, 1), (16, 16, 1), n * n)

    def test_conditions(self):
        """Of an index plus a number, which may wrap, and a limit: also where all of a block are below it."""
        text, names = "#include <rill/device/kernel.h>\n", []
        sums = ["static_cast<%s>(static_cast<unsigned %s>(base) + %s)" % (kind, word, index)
                for index in ("threadIdx.x", "threadIdx.y", "(threadIdx.y * blockDim.x + threadIdx.x)", "threadIdx.x / 4",
                              "threadIdx.x % 8", "threadIdx.x * 5", "threadIdx.x / 2 + threadIdx.y * 4", "(threadIdx.x & 6)")
                for kind, word in (("int", ""), ("unsigned", ""), ("long long", "long long"), ("size_t", "long long"))]
        numbers = random.Random(1)
        for sum_ in sums:
            for kind in ("auto", "long long", "unsigned long long"):
                for sign in numbers.sample(("<", "<=", ">", ">="), 2 if support.LONG else 1):
                    names.append("c%d" % len(names))
                    text += "RILL_KERNEL(%s, long long base, long long limit, unsigned *y) {\n" % names[-1]
                    text += "  const auto sum = %s;\n  const %s i = sum%s;\n" % (sum_, kind, numbers.choice(("", "", " / 4", " / 7")))
                    text += "  if (i %s static_cast<decltype(i)>(limit)) y[threadIdx.y * blockDim.x + threadIdx.x] += 1;\n}\n" % sign
        runner, kernels = Runner(self), self.open_all(self.write("k.kernel.cu", text), "--cpu-option=-w")
        ends = (0, 2**31, 2**32, 2**63)
        for name in names:
            for base in {end + away for end in ends for away in (-9, 0)}:
                for limit in {end + away for end in ends for away in (-5, 4, 90)}:
                    results = []
                    for kernel, as_loops in zip(kernels[name], (1, 0)):
                        y = (ctypes.c_uint * 48)()
                        values = ctypes.c_longlong(base), ctypes.c_longlong(limit), pointer_to(y)
                        self.assertEqual(runner.run(kernel, as_loops, (1, 1, 1), (16, 3, 1), 0, *values), 0)
                        results.append(list(y))
                    self.assertEqual(results[0], results[1], "%s, base %d, limit %d" % (name, base, limit))


if __name__ == "__main__":
    support.main()
