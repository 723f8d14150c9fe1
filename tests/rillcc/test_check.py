#!/usr/bin/env python3
"""rillcc --check: races and barriers that not all threads reach are found, at their lines, and nothing else is."""

import ctypes
import os
import random
import re
import unittest

import random_kernels
import support
from support import CC, HERE, HOST, INCLUDE, STRICT_C, Bundle, HostImage, pointer_to

HEAD = """#include <rill/device/kernel.h>
static __device__ void store(float *to, float v) {
  *to = v;  // in store
}
struct pair { float a, b; };
"""
# A kernel's body, and what is to be found: what the text says, and the lines that it names, which are those with marks.
WRONG = {
    "shared_race": ("s[t] = x[t];  // here\ny[t] = s[(t + 1) % n];  // here", "a race: "),
    "shared_late_race": ("s[t] = x[t];\n__syncthreads();\ny[t] = s[(t + 1) % n];  // here\ns[t] = 2;  // here", "a race: "),
    "global_race": ("y[t] = x[t];  // here\nif (t > 0) y[t - 1] += 1;  // here", "a race: "),
    "write_race": ("y[0] = x[t];  // here", "a race: "),
    "race_of_a_function": ("s[t] = x[t];  // here\ny[t] = s[t / 2] + t;  // here", "a race: "),
    "race_of_structs": ("__shared__ pair p[64];\np[t] = pair{ x[t], 1 };  // here\npair q = p[t ^ 1];  // here\ny[t] = q.a + q.b;",
                        "a race: "),
    "bytes_race": (("unsigned char *const c = reinterpret_cast<unsigned char *>(s);\nc[t + 1] = 1;  // here\n"
                   "y[t] = c[t];  // here"), "a race: "),
    "race_between_warps": ("s[t] = x[t];  // here\nrill_warp_sync();\ny[t] = s[(t + 32) % n];  // here", "a race: "),
    "in_step": ("volatile float *const v = s;\nv[t] = x[t];  // here\nif (t < 16) v[t] += v[t + 16];  // here\ny[t] = t;", "a race: "),
    "atomic_and_plain": ("atomicAdd(&y[0], x[t]);  // here\nif (t == 40) y[0] = 0;  // here", "has an atomic operation on"),
    "plain_and_atomic": ("if (t == 0) y[0] = 7;  // here\natomicAdd(&y[0], x[t]);  // here", "has an atomic operation on"),
    "barrier_of_some": ("if (t < 16) {\n__syncthreads();  // here\n}\ny[t] = x[t];", "a barrier that 16 of the block's 64 threads reach"),
    "barrier_after_return": ("if (t >= 60) return;\n__syncthreads();  // here\ny[t] = x[t];", "60 of the block's 64 threads"),
    "two_barriers": (("if (t < 16) {\ny[t] = 1;\n__syncthreads();  // here\ny[t] += x[t];\n} else {\n"
                     "__syncthreads();  // here\ny[t] = 3;\n}"), "waits in a barrier, "),
    "rounds_of_barriers": ("for (unsigned i = 0; i < 2 + t / 63; i++)\n__syncthreads();  // here\ny[t] = x[t];",
                           "1 of the block's 64 threads"),
    "counted_barrier": ("if (t < 3) y[t] = __syncthreads_count(t);  // here", "3 of the block's 64 threads"),
    "two_shuffles": (("float v = x[t];\nif (t & 1)\nv = rill_shuffle_xor(v, 1);  // here\nelse\n"
                     "v = rill_shuffle_down(v, 2) + 1;  // here\ny[t] = v;"), "waits in a function of its warp, "),
}
RIGHT = {
    "reverse": "s[t] = x[t];\n__syncthreads();\ny[t] = s[n - 1 - t];",
    "same_value": "if (x[t] >= 0) s[0] = 1;\n__syncthreads();\ny[t] = s[0];",
    "all_read_one": "y[t] = x[0] + x[1];",
    "atomics": "__shared__ int c;\nif (t == 0) c = 0;\n__syncthreads();\natomicAdd(&c, 1);\n__syncthreads();\ny[t] = c;",
    "stacks": "float a[8];\nfor (int i = 0; i < 8; i++) a[(i + t) % 8] = x[t] + i;\nstore(&a[t % 8], 1);\ny[t] = a[(t + 1) % 8];",
    "warps": "s[t] = x[t];\nrill_warp_sync();\ny[t] = s[t ^ 1];\nrill_warp_sync();\ns[t] = 3;",
    "shuffles": "y[t] = rill_warp_sum(x[t]) + rill_block_sum(x[t]) + rill_shuffle_xor(x[t], 1);",
    "bytes": "unsigned char *const c = reinterpret_cast<unsigned char *>(s);\nc[t] = t;\n__syncthreads();\ny[t] = c[(t + 1) % n];",
    "many_cells": "for (unsigned i = t; i < 4096; i += n) y[i] = x[i % n];",
    "branches": "if (n > 5) {\n__syncthreads();\n} else {\n__syncthreads();\n}\ny[t] = x[t];",
    "block_after_block": "s[t] = x[t] + blockIdx.x;\n__syncthreads();\ny[blockIdx.x * n + t] = s[(t + 5) % n];",
    "last_thread": "s[t] = 1;\n__syncthreads();\nif (t == 0) for (unsigned i = 0; i < n; i++) s[i] = i;\n__syncthreads();\ny[t] = s[t];",
}
TREE = "s[t] = x[t];\nfor (unsigned h = n / 2; h > 0; h /= 2) {\n__syncthreads();\nif (t < h) s[t] += s[t + h];  // here\n}  // rounds\n"
WRONG["tree_without_last_barrier"] = (TREE + "y[t] = s[0];  // here", "a race: ")
RIGHT["tree"] = TREE + "__syncthreads();\ny[t] = s[0];"


def kernel(name, body):
    head = "RILL_KERNEL(%s, unsigned n, const float *x, float *y) {\n__shared__ float s[64];\n" % name
    return head + "const unsigned t = threadIdx.x;\n(void)s;\n" + body + "\n}\n"


class Checks(support.TestCase):
    def setUp(self):
        super().setUp()
        library = self.path("runner.so")
        command = CC + STRICT_C + ["-D_GNU_SOURCE", "-O1", "-shared", "-I", INCLUDE, "-o", library]
        self.assertEqual(self.run_compiler(command + [os.path.join(HERE, "runner.c")]), (0, ""))
        self.runner = ctypes.CDLL(library)
        self.runner.run_found.restype = ctypes.c_char_p

    def build(self, text, *options):
        source, c_file = self.write("k.kernel.cu", text), self.path("out.rill.c")
        result = self.rillcc("--check", "-Wno-fibers", "-o", c_file, "--target", HOST, "--cpu-option=-w", *options, source)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.image = HostImage(self, "host", Bundle(self, c_file, "k_bundle").images[HOST])

    def find(self, name):
        x, y = (ctypes.c_float * 64)(*range(64)), (ctypes.c_float * 4096)()
        return self.run_one(name, (64, 1, 1), 0, ctypes.c_uint(64), pointer_to(x), pointer_to(y))

    def run_one(self, name, block, shared, *values):
        """What is found when two blocks run, and nothing if they come to their ends."""
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        launch = support.Grid(pointers, (2, 1, 1), block, shared, None)
        outcome = self.runner.run_grid(ctypes.byref(self.image.kernels[name]), ctypes.byref(launch), 0)
        found = self.runner.run_found().decode()
        self.assertEqual(outcome, 3 if found else 0, name)
        return found

    def check_all(self, *options):
        text = HEAD + "".join(kernel(name, body) for name, (body, _) in WRONG.items())
        text += "".join(kernel(name, body) for name, body in RIGHT.items())
        self.build(text, *options)
        lines = text.split("\n")
        for name, (_, said) in WRONG.items():
            with self.subTest(kernel=name):
                found = self.find(name)
                first = next(i for i, line in enumerate(lines) if line.startswith("RILL_KERNEL(%s," % name))
                last = next(i for i in range(first, len(lines)) if lines[i] == "}")
                marks = {i + 1 for i in range(first, last) if lines[i].endswith("// here")}
                self.assertRegex(found, r"^(.*/)?k\.kernel\.cu:\d+: block \(0, 0, 0\): ")
                self.assertIn(said, found)
                self.assertEqual({int(line) for line in re.findall(r"k\.kernel\.cu:(\d+)", found)}, marks, found)
        for name in RIGHT:
            with self.subTest(kernel=name):
                self.assertEqual(self.find(name), "")

    def test_any_compiler_finds_mistakes(self):
        self.check_all("--clang", "none")

    def test_a_source_without_functions_is_checked(self):
        self.build("#include <rill/device/kernel.h>\n" + kernel("k", "y[t / 2] = x[t];"), "--clang", "none")
        self.assertIn("a race: ", self.find("k"))

    @unittest.skipUnless(support.LOOPS, "no clang 15 or later whose LLVM can be loaded")
    def test_clang_finds_mistakes(self):
        self.check_all()

    def test_random_kernels_have_no_races(self):
        """They have a barrier wherever one is needed; some end before one, which is all that may be said of them."""
        self.build(random_kernels.source(random.Random(5), 16))
        for name in self.image.kernels:
            for block in ((67, 1, 1), (3, 5, 3)):
                threads = block[0] * block[1] * block[2]
                x, y = (ctypes.c_float * (3 * threads))(*range(3 * threads)), (ctypes.c_uint * (3 * threads))()
                values = ctypes.c_uint(5), ctypes.c_uint(3 * threads), pointer_to(x), pointer_to(y)
                found = self.run_one(name, block, 8 * threads, *values)
                self.assertRegex(found, r"^$| threads reach: thread \(\d+, \d+, \d+\) has ended before$")

    def test_a_mistake_in_a_function_names_its_line(self):
        self.build(HEAD + kernel("k", "store(&s[t / 2], x[t]);"))
        self.assertRegex(self.find("k"), r"k\.kernel\.cu:3: .* writes what thread \(0, 0, 0\) writes at .*k\.kernel\.cu:3,")

    @unittest.skipUnless(support.LOOPS, "no clang 15 or later whose LLVM can be loaded")
    def test_a_cuda_source_is_checked(self):
        """A CUDA source as it stands, with dynamic shared memory."""
        text = "__global__ void k(unsigned n, const float *x, float *y) {\n  extern __shared__ float s[];\n"
        text += "  s[threadIdx.x % 4] = x[threadIdx.x];\n  float v = __shfl_down_sync(~0u, x[threadIdx.x], 1);\n"
        text += "  atomicAdd(&y[0], v);\n}\n"
        source, c_file = self.write("k.cu", text), self.path("out.rill.c")
        result = self.rillcc("--check", "--cuda-names", "-Wno-fibers", "-o", c_file, "--target", HOST, source)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    support.main()
