#!/usr/bin/env python3
"""Static variables and kernels, which the host finds by name all the same."""

import ctypes
import os
import re
import unittest

import support
from support import CLANG, CUDA_CLANG, HIPCC, HOST, NVCC, Bundle, HostImage
from rillcc_lib import listing, statics

# STATIC is where the word goes, static where it stays.
LINES = r"""
STATIC __constant__ float c[4] = { sizeof(int), 2 };
__constant__ STATIC int m; static int host;
STATIC __device__ __align__(16) float d[4];
static __device__ float (e)[SIZE(3)];
STATIC __device__ float f[SIZE(3)];
STATIC __device__ int braces{3};
static __device__ float function(float x) { static int y; return x + y; }
static inline __host__ __device__ int declared(int x);
namespace a { namespace { STATIC __constant__ int q; } struct S { static __device__ int z; }; }
extern "C" { STATIC __device__ int w; }
template <int N> STATIC __global__ void __launch_bounds__(128) k(int *x) { static __constant__ int inner[3]; }
/* static */ STATIC /* } */ __constant__ struct { int a; } s;
static const char *text = "__constant__ }"; const char quote = '"'; STATIC __constant__ int after;
#define CONSTANT static __constant__
static int n = 3; __constant__ int plain; // static __constant__ int no;
static __device__ bool operator==(S a, S b) { return a.v == b.v; }
"""

# Read together: braces that not all parts of a condition have, and a comment that goes on.
PARTS = r"""
#ifdef A
__device__ int f(int x) {
#elif defined B
__device__ int f(double x) {
# else
__device__ int f() {
#endif
  static __device__ int inner;
}
// a comment \
{
#if 1
STATIC __constant__ int later;
#endif
STATIC __global__ void k(int *x) {}
"""

SOURCE = """#include "parts/table.h"
static __device__ int count;
static __global__ void look_up(float *out) {
  atomicAdd(&count, 1);
  __syncthreads();
  out[threadIdx.x] = table[threadIdx.x & 3];
}
"""
NAMES = {"count", "look_up", "table"}


class Statics(support.TestCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("parts"))
        self.write("parts/table.h", '#pragma once\n#include "deep.h"\nstatic __constant__ float table[4] = { 1, 2 };\n')
        self.write("parts/deep.h", "#ifdef __CUDA_ARCH__\n#include \"../gpu.h\"\n#endif\n")
        self.write("gpu.h", "enum { ON_A_GPU };\n")
        self.source = self.write("look_up.cu", SOURCE)

    def image(self, *arguments, **environment):
        c_file, _ = self.compile(self.source, "--cuda-names", "--depfile", "x.d", *arguments, **environment)
        self.made = getattr(self, "made", 0) + 1  # the loader knows libraries by their paths
        (image,) = Bundle(self, c_file, "look_up_bundle", "%d.so" % self.made).images.values()
        return image

    def found_in(self, data, kind):
        """Returns the symbols of a GPU's image that are its variables and kernels."""
        elf = listing.Elf(data)
        symbols = [symbol for section in elf.sections if section[1] == kind for symbol in elf.symbols(section)]
        return {re.sub(r"^_Z\d+(look_up)P.*$", r"\1", name) for name, info, *_ in symbols if info & 15 in (1, 2)}

    def test_only_the_keyword_is_removed(self):
        for text in [LINES, PARTS, *LINES.splitlines()]:
            before, after = text.replace("STATIC", "static"), text.replace("STATIC", " " * 6)
            with self.subTest(text=before):
                self.assertEqual(statics.without(before), after)
                self.assertEqual(statics.without("int a;\n%s\nint b;\n" % before), "int a;\n%s\nint b;\n" % after)

    def test_static_variables_work_on_the_cpu(self):
        one = (1, 1, 1)
        for arguments in ("", "--fibers", "--cxx g++"):
            with self.subTest(arguments=arguments):
                image = HostImage(self, "image" + arguments.replace(" ", ""), self.image("--target", HOST, *arguments.split()))
                self.assertEqual({name: v.size for name, v in image.variables.items()}, {"table": 16, "count": 4})
                self.assertEqual([ctypes.c_float.from_address(image.variables["table"].address + 4).value], [2])
                ctypes.c_float.from_address(image.variables["table"].address).value = 7.5
                out = (ctypes.c_float * 4)()
                (kernel,) = image.kernels
                image.run(kernel, one, (4, 1, 1), support.pointer_to(out))
                self.assertEqual(list(out), [7.5, 2, 0, 0])
                self.assertEqual(ctypes.c_int.from_address(image.variables["count"].address).value, 4)
        self.assertNotIn("rillcc-", self.read("x.d").replace(self.folder, ""))
        self.assertIn("parts/table.h", self.read("x.d"))

    def test_a_folder_of_others_is_never_touched(self):
        """A folder called as the copies' is never touched, one that a run left is used."""
        os.mkdir(self.path("x.c.copies"))
        self.write("x.c.copies/mine", "")
        said = self.rillcc("--cuda-names", "--target", HOST, "-o", "x.c", self.source)
        self.assertNotEqual(said.returncode, 0)
        self.assertRegex(said.stderr, r"cannot write .*x\.c\.copies: File exists")
        plain = self.write("plain.cu", "__global__ void plain(int *x) { *x = 1; }\n")
        self.assertEqual(self.rillcc("--cuda-names", "--target", HOST, "-o", "x.c", plain).returncode, 0)
        self.assertEqual(os.listdir(self.path("x.c.copies")), ["mine"])
        self.write("x.c.copies/.rillcc", "")
        self.assertEqual(self.rillcc("--cuda-names", "--target", HOST, "-o", "x.c", self.source).returncode, 0)
        self.assertFalse(os.path.exists(self.path("x.c.copies")))

    def test_errors_keep_their_lines(self):
        self.write("parts/table.h", "static __constant__ float table[4];\nint wrong = no_such_name;\n")
        said = self.rillcc("--cuda-names", "--target", HOST, "-o", "x.c", self.source).stderr
        self.assertRegex(said, r"parts/table\.h:2:13: error")
        self.write("parts/table.h", "static __constant__ float table[4];\n")
        self.source = self.write("look_up.cu", SOURCE.replace("count;", "count;\nint bad = no_such_name;"))
        said = self.rillcc("--cuda-names", "--target", HOST, "-o", "x.c", self.source).stderr
        self.assertRegex(said, r"look_up\.cu:3:\d+: error")

    def test_every_run_writes_the_same_file(self):
        made = []
        for _ in range(2):
            self.compile(self.source, "--cuda-names", *support.ONE_OF_EACH)
            made.append(self.read("out.rill.c"))
        self.assertEqual(*made)
        self.assertEqual([name for name in os.listdir(self.folder) if "copies" in name], [])
        self.write("file", "")
        said = self.rillcc("--target", HOST, "-o", "file/x.c", self.source).stderr
        self.assertRegex(said, r"^rillcc: cannot write \S*file/x\.c\.copies")

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_static_variables_are_symbols_with_nvcc(self):
        self.assertLessEqual(NAMES, self.found_in(self.image("--target", "cuda:sm_90"), listing.SHT_SYMTAB))
        ptx = self.image("--target", "cuda:ptx").decode("ascii")
        for line in (r"\.const \.align 4 \.b8 table\[16\]", r"\.global \.align 4 \.u32 count\b"):
            self.assertRegex(ptx, line)
        self.assertIn("gpu.h", self.read("x.d"))

    @unittest.skipUnless(CUDA_CLANG, "no clang 15 or later")
    def test_static_variables_are_symbols_with_clang_for_nvidia(self):
        ptx = self.image("--target", "cuda:ptx", RILL_NVCC="none", RILL_CLANG=CUDA_CLANG).decode("ascii")
        for line in (r"\.visible \.const \.align 4 \.b8 table\[16\]", r"\.visible \.global \.align 4 \.u32 count\b"):
            self.assertRegex(ptx, line)

    @unittest.skipUnless(HIPCC or CLANG, "no compiler for AMD's GPUs")
    def test_static_variables_are_symbols_on_amd(self):
        for compiler in [HIPCC, "none"] if HIPCC else ["none"]:
            with self.subTest(compiler=compiler):
                found = self.found_in(self.image("--target", "hip:gfx90a", RILL_HIPCC=compiler), 11)  # SHT_DYNSYM
                self.assertLessEqual(NAMES, found)


if __name__ == "__main__":
    support.main()
