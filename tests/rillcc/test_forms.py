#!/usr/bin/env python3
"""Kernels that loops are made of in another form than their source has: borders, shared counters, vectors of two floats,
sums of columns."""

import ctypes
import re
import shutil
import subprocess
import unittest

import differential
import support
from support import Runner, pointer_to

HEAD = "#include <rill/device/cuda_names.h>\n"
STENCIL = """RILL_KERNEL(stencil, int width, int height, int left, const float *x, float *y) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < 1 || row >= height - 1 || column < 3 || column + left >= width) return;
  y[row * width + column] = x[row * width + column - 3] + x[row * width + column + left] + x[(row - 1) * width + column];
}
RILL_KERNEL(shifted, int width, int height, int left, const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x - left;
  if (i > -1 && i < width * height) y[i] = x[i] + 1;
}
"""
COUNTERS = """RILL_KERNEL(counters, int n, const int *x, int *y) {
  __shared__ int s[8];
  __shared__ float sum;
  const int t = threadIdx.x, v = x[t];
  if (t < 8) s[t] = t == 4 ? -1 : 0;
  if (t == 0) sum = 0;
  __syncthreads();
  atomicAdd(&s[v & 1], v);
  atomicSub(&s[2], v);
  atomicXor(&s[3], v);
  atomicAnd(&s[4], v);
  atomicOr(&s[5], v);
  atomicMax(&s[6], v);
  atomicAdd(&sum, 1.0f);
  int old = s[7], seen;
  do { seen = old; old = atomicCAS(&s[7], seen, seen + v); } while (old != seen);
  y[8 + t] = atomicAdd(&s[2], 0) * 0 + (atomicExch(&s[0], s[0]) != s[0]);
  __syncthreads();
  if (t < 8) y[t] = s[t] + (t == 0 ? (int)sum : 0);
}
"""
PAIRS = """
RILL_KERNEL(pairs, int n, const float2 *x, float2 *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float2 a = x[i];
  y[i] = make_float2(a.x * a.x - a.y * a.y, 2.0f * a.x * a.y);
}
"""
# More places than LLVM compares at run time.
MANY = """
RILL_KERNEL(many, int n, const float *a, const float *b, const float *c, float *u, float *v, float *w) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  u[i] = a[i] + b[i];
  v[i] = b[i + 1] - c[i];
  w[i] = c[i + 1] * a[i + 2];
}
RILL_KERNEL(keeps, int n, const float *a, const float *b, const float *c, float *u, float *v, float *w) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float at[8];
  for (int k = 0; k < 8; k++) at[(k + n) & 7] = a[i + k] * b[k];
  u[i] = at[i & 7];
  at[n & 7] = c[i];
  v[i] = at[(i + 1) & 7];
  w[i] = at[n & 7];
}
"""
# A sum and the largest value of each column.
COLUMNS = """
RILL_KERNEL(columns, int width, int rows, const float *x, float *sums, float *largest) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float sum = 0.0f, most = -1.0f;
  for (int row = 0; row < rows; row++) {
    const float v = x[row * width + column];
    sum += v * (row + 1);
    most = v > most ? v : most;
  }
  sums[column] = sum;
  largest[column] = most;
}
RILL_KERNEL(lanes, int width, int rows, const float *x, float *sums, float *largest) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float sum = 0.0f;
  for (int row = 0; row < rows; row++) sum += x[row * width + column] * (threadIdx.x % 32);
  sums[column] = sum;
  largest[column] = threadIdx.x / 32;
}
"""


# A tree over an array: how its elements are stored, added up and given, and whether a block of 256 threads keeps them in
# registers. `i` is a thread's number in the grid, and `a` has the elements.
TREES = {
    "plain": ("float s[256]", "s[t] = a[i];", "if (t < half) s[t] += s[t + half];", "s[0]", True),
    "guarded": ("float s[256]", "s[t] = i < n ? a[i] : 0.0f;", "if (t < half) s[t] = s[t + half] - s[t];", "s[0]", True),
    "counted": ("int s[300]", "s[t] = i < n ? int(a[i]) : 5;", "if (t < half) s[t] = max(s[t], s[t + half]);", "s[0] + s[1]", True),
    "doubled": ("double s[2][256]", "s[1][t] = a[i]; s[0][t] = i;", "if (t < half) for (int k = 0; k < 2; k++) s[k][t] += s[k][t + half];",
                "float(s[1][0] - s[0][1])", True),
    "summed": ("float s[256]", "s[t] = i < n ? a[i] : 0.0f;", "break;", "rill_block_sum(s[t]) + rill_block_max(a[i])", True),
    "left": ("float s[256]", "if (i >= n) return; s[t] = a[i];", "break;", "rill_block_sum(s[t])", True),
    "looked_up": ("float s[256]", "s[t] = a[i];", "if (t < half) s[int(a[t]) & 127] = 2.0f;", "s[0]", False),
    "scanned": ("float s[256]", "s[t] = a[i];", "float v = t >= half ? s[t - half] : 0.0f; __syncthreads(); s[t] += v;", "s[t]", False),
    "called": ("float s[1]", "all[t] = a[i];", "if (t < half) all[t] += all[t + half];", "first()", False),
}  # fmt: skip
TREE = """RILL_KERNEL(%s, int n, const float *a, const float *b, const float *c, float *u, float *v, float *w) {
  %s
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  v[i] = w[i] = 1.0f;
  %s
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    %s
    __syncthreads();
  }
  u[i] = %s;
}
"""
FIRST = """static __shared__ float all[256];
static __device__ __attribute__((noinline)) float first() { return all[0]; }
"""
SUM = """RILL_KERNEL(stores_sum, int n, const float *a, float *u) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float sum = rill_block_sum(i < n ? a[i] : 0.0f);
  if (threadIdx.x == 0) u[blockIdx.x] = sum;
}
"""
# Sums over a block by shuffles, and who reads the sum of each warp, before and after the lanes that do are known.
HAND = """RILL_KERNEL(%s, int n, const float *a, const float *b, const float *c, float *u, float *v, float *w) {
  __shared__ float warps[32];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float sum = c[i];
  for (int j = t; j < n; j += blockDim.x) sum += a[j] * b[(j + i) %% 512];
  const float first = sum;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  __syncthreads();
  if (t %% 32 == %d) warps[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    float all = t < (blockDim.x + 31) / 32 ? warps[t] : 0.0f;
    for (int step = 16; step > 0; step /= 2) all += __shfl_down_sync(0xffffffff, all, step);
    if (t == 0) warps[0] = all;
  }
  __syncthreads();
  u[i] = warps[0];
  v[i] = %s;
  w[i] = 1.0f;
}
"""
HANDS = {"lane_0": (0, "first"), "lane_5": (5, "first + 1.0f"), "every_lane": (0, "sum")}
# A maximum and a minimum that begin as numbers, of numbers and NaNs.
LARGEST = """RILL_KERNEL(largest, int n, const float *a, const float *b, const float *c, float *u, float *v, float *w) {
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float most = -INFINITY, least = float(n);
  for (int j = t; j < n; j += blockDim.x) {
    most = fmaxf(most, a[j] < 2.0f ? __int_as_float(0x7fc00000) : a[j]);
    least = fminf(b[j] > 9.0f ? __int_as_float(0x7fc00000) : b[j], least);
  }
  for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
  u[i] = most;
  v[i] = least;
  w[i] = c[i];
}
"""
# What __syncthreads_count(1) is compared with, in front of which threads may have ended or not, and whether it is the
# number of threads for certain.
COUNTS = {
    "first": ("", True),
    "second": ("__syncthreads(); if (__syncthreads_count(1) != int(size)) return;", True),
    "after_a_branch": ("if (n > 7) w[i] = 3.0f;", True),
    "ended": ("if (i > n) return;", False),
    "ended_later": ("if (a[i] > 5.0f) { __syncthreads(); return; }", False),
    "apart": ("if (t & 1) __syncthreads();", False),
    "looped": ("for (int k = 0; k < n % 5; k++) if (__syncthreads_count(a[i + k] > 3.0f) == 3) return;", True),
}
COUNT = """RILL_KERNEL(%s, int n, const float *a, const float *b, const float *c, float *u, float *v, float *w) {
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned size = blockDim.z * blockDim.x * blockDim.y;
  v[i] = w[i] = 1.0f;
  %s
  u[i] = 8.0f;
  if (__syncthreads_count(1) != size) fewer(u + i);
}
"""
FEWER = "static __device__ __attribute__((noinline)) void fewer(float *x) { *x = 4.0f; }\n"
ASSERTS = """#include <assert.h>
static __device__ __attribute__((noinline)) void check(int n) { assert(n < 1000); }
RILL_KERNEL(never, float *x) { x[threadIdx.x] = 1.0f; }
RILL_KERNEL(here, int n, float *x) { assert(n > 0); x[threadIdx.x] = n; }
RILL_KERNEL(there, int n, float *x) { check(n); x[threadIdx.x] = n; }
"""

# Operations on numbers of 16 bits: a pattern, and what takes the place of its %s.
OPERATIONS = {
    "{T}": {"a %s b": "+ - * /", "__h%s(a, b)": "add sub mul div max min", "__h%s(a)": "neg abs",
            "__hfma(a, b, %s)": "a", "h%s(a)": "floor ceil trunc rint sqrt rsqrt rcp"},
    "{T}2": {"a %s b": "+ - * /", "__h%s2(a, b)": "add sub mul max min eq ne lt le gt ge", "__h2%s(a, b)": "div",
             "__h%s2(a)": "neg abs", "__hfma2(a, b, %s)": "a", "h2%s(a)": "floor ceil trunc rint sqrt rsqrt rcp"},
    "{T} int": {"a %s b": "== != < <= > >=", "__h%s(a, b)": "eq ne lt le gt ge", "__h%s(a)": "isnan"},
    "{T}2 int": {"__hb%s2(a, b)": "eq ne lt le gt ge"},
}  # fmt: skip
OPERATION = """RILL_KERNEL(k%d_of_%s, int n, const %s *x, const %s *y, %s *z) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  %s a = x[i], b = y[i];
  z[i] = %s;
}
"""


class Forms(differential.Differential):
    def disassembly(self, image, function):
        shown = subprocess.run(["objdump", "-d", image.library._name], capture_output=True, text=True, check=True)
        found = re.findall(r"<([^>]*%s[^>]*)>:\n(.*?)\n\n" % function, shown.stdout + "\n", re.S)
        self.assertTrue(found)
        return "\n".join(text for _, text in found)

    def test_borders(self):
        forms = self.open_all(self.write("k.kernel.cu", HEAD + STENCIL))
        runner = Runner(self)
        for width, height, left, block in ((100, 20, 3, (32, 4, 1)), (64, 9, 0, (16, 8, 1)), (5, 3, 1, (8, 1, 1)), (257, 4, 7, (64, 1, 1))):
            count = width * height
            x = (ctypes.c_float * count)(*range(count))
            numbers = [ctypes.c_int(v) for v in (width, height, left)]
            plane = (width // block[0] + 1, height // block[1] + 1, 1), block
            line = (count // (block[0] * block[1]) + 2, 1, 1), (block[0] * block[1], 1, 1)
            for name, shape in {"stencil": plane, "shifted": line}.items():
                results = []
                for kernel, as_loops in zip(forms[name], (1, 0)):
                    y = (ctypes.c_float * count)()
                    self.assertEqual(runner.run(kernel, as_loops, *shape, 0, *numbers, pointer_to(x), pointer_to(y)), 0)
                    results.append(list(y))
                with self.subTest(kernel=name, width=width):
                    self.assertTrue(any(results[0]))
                    self.assertEqual(*results)

    def test_counters_in_shared_memory(self):
        forms = self.open_all(self.write("k.kernel.cu", HEAD + COUNTERS))
        runner = Runner(self)
        x = (ctypes.c_int * 100)(*[i * 37 % 64 for i in range(100)])
        results = []
        for kernel, as_loops in zip(forms["counters"], (1, 0)):
            y = (ctypes.c_int * 108)()
            self.assertEqual(runner.run(kernel, as_loops, (1, 1, 1), (100, 1, 1), 0, ctypes.c_int(100), pointer_to(x), pointer_to(y)), 0)
            results.append(list(y))
        self.assertEqual(*results)
        odd = sum(v for v in x if v % 2)
        self.assertEqual(results[0][:3], [sum(x) - odd + 100, odd, -sum(x)])
        self.assertEqual(results[0][6:8], [63, sum(x)])

    @unittest.skipUnless(support.X86 and shutil.which("objdump"), "no objdump for x86")
    def test_no_counter_in_shared_memory_locks(self):
        text = self.disassembly(self.open(self.write("k.kernel.cu", HEAD + COUNTERS)), "counters.*block")
        self.assertEqual(re.findall(r"\block\b.*|\bxchg\b.*\(%.*", text), [])

    @unittest.skipUnless(support.X86 and shutil.which("objdump"), "no objdump for x86")
    def test_vectors_of_pairs(self):
        forms = self.open_all(self.write("k.kernel.cu", HEAD + PAIRS))
        runner = Runner(self)
        self.assertNotIn("movlps", self.disassembly(self.images[0], "pairs.*block"))  # a store of two floats
        x = (ctypes.c_float * 200)(*range(200))
        for kernel, as_loops in zip(forms["pairs"], (1, 0)):
            y = (ctypes.c_float * 200)()
            self.assertEqual(runner.run(kernel, as_loops, (4, 1, 1), (32, 1, 1), 0, ctypes.c_int(99), pointer_to(x), pointer_to(y)), 0)
            expected = [v for a, b in zip(x[:198:2], x[1:198:2]) for v in (a * a - b * b, 2 * a * b)]
            self.assertEqual(list(y), [*expected, 0, 0])

    def compare(self, name, forms, grid, block, *arguments):
        """Compares a kernel of n, three arrays that it reads and three that it writes in both forms."""
        runner, count = Runner(self), 512
        read = [(ctypes.c_float * count)(*[(i * 37 + k * 11) % 101 / 7 for i in range(count)]) for k in range(3)]
        results = []
        for kernel, as_loops in zip(forms, (1, 0)):
            written = [(ctypes.c_float * count)() for _ in range(3)]
            pointers = map(pointer_to, read + written)
            self.assertEqual(runner.run(kernel, as_loops, grid, block, 0, *map(ctypes.c_int, arguments), *pointers), 0)
            results.append(list(map(list, written)))
        self.assertTrue(all(map(any, results[0])), name)
        self.assertEqual(results[0], results[1], name)

    def test_threads_are_independent(self):
        """Nothing compares where their accesses go, and each thread's own variables stay its own."""
        forms = self.open_all(self.write("k.kernel.cu", HEAD + MANY))
        for name in "many", "keeps":
            for block in (64, 1, 1), (7, 5, 1), (33, 1, 1):
                self.compare(name, forms[name], (3, 1, 1), block, 100)
        if support.X86 and shutil.which("objdump"):
            text = self.disassembly(self.images[0], "many[^>]*block")
            self.assertRegex(text, r"\bv?addps\b")
            self.assertRegex(text, r"\bv?mulps\b")

    def test_sums_of_columns(self):
        """Many adjacent columns are read in one iteration, and their sums stay in registers."""
        forms = self.open_all(self.write("k.kernel.cu", HEAD + COLUMNS))
        runner = Runner(self)
        for width, rows, threads in ((1024, 9, 256), (1000, 5, 256), (640, 3, 128), (300, 4, 64), (96, 6, 96), (50, 2, 32), (70, 3, 33)):
            x = (ctypes.c_float * (width * rows))(*[(i * 37) % 101 - 50 for i in range(width * rows)])
            blocks = (width + threads - 1) // threads
            for kernel, as_loops in zip(forms["columns"], (1, 0)):
                sums, largest = (ctypes.c_float * width)(), (ctypes.c_float * width)()
                arguments = *map(ctypes.c_int, (width, rows)), *map(pointer_to, (x, sums, largest))
                self.assertEqual(runner.run(kernel, as_loops, (blocks, 1, 1), (threads, 1, 1), 0, *arguments), 0)
                columns = [[x[row * width + i] for row in range(rows)] for i in range(width)]
                with self.subTest(width=width, threads=threads, as_loops=as_loops):
                    self.assertEqual(list(sums), [sum(v * (k + 1) for k, v in enumerate(column)) for column in columns])
                    self.assertEqual(list(largest), [max(-1, *column) for column in columns])
                if threads % 32 != 0:
                    continue
                lanes = forms["lanes"][1 - as_loops]
                self.assertEqual(runner.run(lanes, as_loops, (blocks, 1, 1), (threads, 1, 1), 0, *arguments), 0)
                with self.subTest(width=width, threads=threads, as_loops=as_loops, kernel="lanes"):
                    self.assertEqual(list(sums), [sum(column) * (i % threads % 32) for i, column in enumerate(columns)])
                    self.assertEqual(list(largest), [i % threads // 32 for i in range(width)])
        if support.X86 and shutil.which("objdump"):
            text = self.disassembly(self.images[0], "columns[^>]*block.all")
            products = [len(re.findall(r"\bv?mulps\b", loop)) for loop in re.split(r"\bj[a-z]+ ", text)]
            vector = 16 if "zmm" in text else 8 if "ymm" in text else 4
            self.assertGreater(max(products) * vector, 32, "a loop reads more columns than a warp has lanes")

    def test_arrays_in_registers(self):
        """A block of 256 threads keeps a shared array in registers if each access is to a constant part of it. The results
        are the same, also if some threads are beyond the border, and in blocks of other sizes."""
        kernel = "".join(TREE % (name, "__shared__ %s;" % parts[0], *parts[1:4]) for name, parts in TREES.items())
        forms = self.open_all(self.write("k.kernel.cu", HEAD + FIRST + kernel))
        for name in TREES:
            for block in (256, 1, 1), (64, 1, 1), (77, 1, 1):
                for n in 3, 100, 500, 512:
                    self.compare(name, forms[name], (2 if block[0] == 256 else 3, 1, 1), block, n)
        if support.X86 and shutil.which("objdump"):
            for name, (*_, expected) in TREES.items():
                text = self.disassembly(self.images[0], "%s[^>]*usual" % name)
                self.assertEqual("tls_get_addr" not in text, expected, name)

    def test_sums_of_lanes_that_are_read(self):
        """Steps of a sum by shuffles are computed only for lanes whose values reach lane 0, if no other lane's sum is read."""
        forms = self.open_all(self.write("k.kernel.cu", HEAD + "".join(HAND % (name, *parts) for name, parts in HANDS.items())))
        for name in HANDS:
            for block in (256, 1, 1), (64, 1, 1), (77, 1, 1), (128, 1, 1):
                for n in 3, 256, 400, 512:
                    self.compare(name, forms[name], (512 // block[0], 1, 1), block, n)
        if support.X86 and shutil.which("objdump"):
            texts = {name: self.disassembly(self.images[0], "%s[^>]*block.all.usual" % name) for name in HANDS}
            sums = {name: len(re.findall(r"\bv?add[ps]s\b", text)) for name, text in texts.items()}
            self.assertLess(2 * sums["lane_0"], sums["every_lane"])
            self.assertLess(sums["lane_5"], sums["every_lane"])

    def test_maxima_of_numbers(self):
        """No instruction asks whether a number is NaN that never is."""
        forms = self.open_all(self.write("k.kernel.cu", HEAD + LARGEST))
        for block in (256, 1, 1), (64, 1, 1), (32, 4, 1):
            for n in 3, 256, 400, 512:
                self.compare("largest", forms["largest"], (2, 1, 1), block, n)
        if support.X86 and shutil.which("objdump"):
            text = self.disassembly(self.images[0], "largest[^>]*block.all.usual")
            self.assertRegex(text, r"\bv?maxps\b")
            self.assertNotIn("unord", text)

    @unittest.skipUnless(support.X86 and shutil.which("objdump"), "no objdump for x86")
    def test_one_thread_stores_a_sum_without_a_loop(self):
        image = self.open(self.write("k.kernel.cu", HEAD + SUM))
        text = self.disassembly(image, "stores_sum[^>]*usual")
        self.assertEqual(re.findall(r"\tj[a-z]+ .*", text), [])

    def test_counts_of_all_threads(self):
        """Where no thread can have ended, a count is the number of threads, and code for another count is left out."""
        kernel = "".join(COUNT % (name, before) for name, (before, _) in COUNTS.items())
        forms = self.open_all(self.write("k.kernel.cu", HEAD + FEWER + kernel))
        for name, (_, certain) in COUNTS.items():
            for block in (64, 1, 1), (33, 1, 1), (7, 3, 1):
                for n in 30, 128, 500:
                    self.compare(name, forms[name], (3, 1, 1), block, n)
            if shutil.which("objdump"):
                text = self.disassembly(self.images[0], "%s[^>]*block" % name)
                self.assertEqual("fewer" not in text, certain, name)

    @unittest.skipUnless(support.X86 and shutil.which("objdump"), "no objdump for x86")
    def test_functions_of_the_backend_are_stored_where_they_are_called(self):
        image = self.open(self.write("k.kernel.cu", HEAD + ASSERTS))
        texts = {name: self.disassembly(image, "%s[^>]*block" % name) for name in ("never", "here", "there")}
        self.assertEqual({name: "tls_get_addr" in text for name, text in texts.items()}, {"never": False, "here": True, "there": True})

    @unittest.skipUnless(support.X86 and shutil.which("objdump"), "no objdump for x86")
    def test_numbers_of_16_bits_are_vectors(self):
        """Every operation is executed for several threads at once, and no element is taken out of a vector alone."""
        text, known = "#include <rill/device/cuda_names.h>\n", {}
        for kind in "half", "nv_bfloat16":
            for signature, patterns in OPERATIONS.items():
                types = signature.replace("{T}", kind).split()
                for number, code in enumerate(p % word for p, words in patterns.items() for word in words.split()):
                    known["k%d_of_%s" % (number, "_".join(types))] = code
                    text += OPERATION % (number, "_".join(types), types[0], types[0], types[-1], types[0], code)
        for level in ("x86-64-v3", "x86-64-v4") if support.LONG else ("x86-64-v3",):
            c_file, _ = self.compile(self.write("k.kernel.cu", text), "--target", "cpu:" + level)
            with open(self.path("image"), "wb") as file:
                file.write(support.host_images(c_file)["cpu:" + level])
            shown = subprocess.run(["objdump", "-d", self.path("image")], capture_output=True, text=True, check=True).stdout
            codes = dict.fromkeys(known, "")
            for name, code in re.findall(r"<_Z\d+(k\d+_of_\w+?)v\.block[^>]*>:\n(.*?)\n\n", shown + "\n", re.S):
                codes[name] += code
            for name, code in codes.items():
                alone = len(re.findall(r"\bvp(?:extr|insr)w\b|\bv(?:add|sub|mul|div|sqrt|round|rndscale)ss\b", code))
                vectors = len(re.findall(r"\bv(?:add|sub|mul|div|sqrt|round|rndscale|cmp\w*)ps\b|\bvp\w+[wdq]\b|\bv(?:and|or|xor)\w*p[sd]\b", code))
                self.assertTrue(alone <= 24 and vectors > 0, "%s, %s: %d, %d" % (known[name], name, alone, vectors))


if __name__ == "__main__":
    support.main()
