#!/usr/bin/env python3
"""Kernels with known answers on the cpu, at every level of x86-64 that this machine runs."""

import ctypes
import os
import random
import unittest

import support
from support import Bundle, HostImage, Runner, pointer_to

LEVELS = ["cpu:" + level for level in ("x86-64", "x86-64-v3", "x86-64-v4") if support.runnable(level)] if support.X86 else [support.HOST]
TYPES = {
    "i8": ("signed char", ctypes.c_int8),
    "u8": ("unsigned char", ctypes.c_uint8),
    "i16": ("short", ctypes.c_int16),
    "u16": ("unsigned short", ctypes.c_uint16),
    "i32": ("int", ctypes.c_int32),
    "u32": ("unsigned", ctypes.c_uint32),
    "i64": ("long long", ctypes.c_int64),
    "u64": ("unsigned long long", ctypes.c_uint64),
}
THREADS = 128

# Divisions of values that all threads have alike, made by some threads only: as an index and as a value.
UNIFORM = """
RILL_KERNEL(uniform_%(name)s, unsigned *out, const unsigned *in, %(type)s a, %(type)s b) {
  __shared__ %(type)s shared[2];
  unsigned i = threadIdx.x, v = 1, w = 2;
  shared[0] = a;
  shared[1] = b;
  __syncthreads();
  if ((i & 31) >= 3) v = in[a %% b + i];
  if ((i & 31) >= 5) w = (unsigned)(shared[0] / shared[1]) + in[i];
  if ((i & 31) >= 7) w += in[shared[0] %% shared[1] + (blockIdx.x + 9) / (blockIdx.x + 2) + i];
  out[2 * i] = v;
  out[2 * i + 1] = w;
}
"""
# Divisions of any two values.
VARYING = """
RILL_KERNEL(varying_%(name)s, %(type)s *quotients, %(type)s *remainders, const %(type)s *a, const %(type)s *b) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  quotients[i] = (%(type)s)(a[i] / b[i]);
  if (a[i] != b[i]) remainders[i] = (%(type)s)(a[i] %% b[i]);
}
"""
OTHERS = """
RILL_KERNEL(voted, unsigned *out, unsigned n, unsigned a, unsigned c) {
  unsigned h = threadIdx.x, v = n - c, k = 0;
  do {
    if (blockIdx.x == 0) {
      unsigned w = v & 7;
      do {
        h = h * 3 + (v & 7);
      } while (__any_sync(~0u, w != 0 && --w > 0));
      v = n - a;
    }
    __syncthreads();
  } while (++k < 3);
  out[threadIdx.x] = h;
}
#define COUNTED(NAME, WHAT)                                                   \\
  RILL_KERNEL(NAME, unsigned *out, const unsigned *in, unsigned want) {    \\
    unsigned i = threadIdx.x, v = in[i], a = __shfl_xor_sync(~0u, v, 1);      \\
    unsigned o = WHAT(a == want), b = __shfl_xor_sync(~0u, v, 31);            \\
    out[i] = o + 1000 * __shfl_xor_sync(~0u, a + b, 2);                       \\
  }
COUNTED(counted, __syncthreads_count)
COUNTED(any_of, __syncthreads_or)
COUNTED(all_of, __syncthreads_and)
RILL_KERNEL(converted, const float *x, const double *y, int *i, unsigned *u, short *s, unsigned char *c, long long *l,
                          unsigned long long *m) {
  unsigned t = threadIdx.x;
  i[t] = (int)x[t], u[t] = (unsigned)x[t], s[t] = (short)x[t], c[t] = (unsigned char)x[t], l[t] = (long long)x[t];
  m[t] = (unsigned long long)y[t], i[t + 64] = (int)y[t], u[t + 64] = (unsigned)y[t];
}
__device__ volatile unsigned room[1024];
__device__ __noinline__ void sum_warp(volatile unsigned *s, unsigned t) {
  for (unsigned by = 32; by > 0; by /= 2) s[t] += s[t + by];
}
RILL_KERNEL(in_step, unsigned *out, const unsigned *in, volatile unsigned *given) {
  unsigned t = threadIdx.x;
  given[t] = room[t] = in[t];
  __syncthreads();
  if (t < 32) {
    sum_warp(given, t);
    for (unsigned by = 32; by > 0; by /= 2) room[t] += room[t + by];
  }
  __syncthreads();
  out[t] = given[0] + room[0];
}
"""


def quotient(a, b):
    """C's: towards 0."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def saturated(x, bits, signed):
    if x != x:
        return 0
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return most if x >= most else least if x <= least else int(x)


@unittest.skipUnless(support.LOOPS, "no clang 15 or later whose LLVM can be loaded")
class Answers(support.TestCase):
    def setUp(self):
        super().setUp()
        self.runner = Runner(self)

    def open_all(self, text):
        """Compiles kernels for all levels that this machine runs; returns the images, lowest level first."""
        c_file, targets = self.path("k.rill.c"), [word for level in LEVELS for word in ("--target", level)]
        result = self.rillcc("--cuda-names", "--fill", "-o", c_file, *targets, self.write("k.kernel.cu", text))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        bundle = Bundle(self, c_file, "k_bundle")
        return [HostImage(self, level.replace(":", "-"), bundle.images[level]) for level in LEVELS]

    def run_kernel(self, image, name, grid, threads, *values):
        kernel = image.kernels[name]
        self.assertTrue(kernel.run_block, name)
        self.assertEqual(self.runner.run(kernel, 1, (grid, 1, 1), (threads, 1, 1), 0, *values), 0)

    def test_divisions(self):
        text = "".join(form % {"name": name, "type": kind} for name, (kind, _) in TYPES.items() for form in (UNIFORM, VARYING))
        for image in self.open_all(text):
            for name, (_, kind) in TYPES.items():
                self.check_uniform(image, name, kind)
                self.check_varying(image, name, kind)

    def check_uniform(self, image, name, kind):
        source, out = (ctypes.c_uint * 512)(*[5 * i + 1 for i in range(512)]), (ctypes.c_uint * (2 * THREADS))()
        for a, b in ((53, 40), (127, 2), (1, 127)):
            self.run_kernel(image, "uniform_" + name, 1, THREADS, pointer_to(out), pointer_to(source), kind(a), kind(b))
            for i in range(THREADS):
                v = source[a % b + i] if i % 32 >= 3 else 1
                w = a // b + source[i] if i % 32 >= 5 else 2
                w += source[a % b + 4 + i] if i % 32 >= 7 else 0
                self.assertEqual((out[2 * i], out[2 * i + 1]), (v, w), "%s, %d and %d, thread %d" % (name, a, b, i))

    def check_varying(self, image, name, kind):
        numbers, bits = random.Random(name), 8 * ctypes.sizeof(kind)
        ends = [kind(value).value for value in (0, 1, 2, 3, -1, -2, 1 << (bits - 1), (1 << (bits - 1)) - 1)]
        pairs = [(a, b) for a in ends for b in ends]
        for _ in range(1 << 14):
            a, b = [kind(numbers.getrandbits(bits) >> numbers.randrange(bits)).value for _ in range(2)]
            pairs.append((a, b))
        for _ in range(1 << 12):  # products and their neighbours
            a, b = [numbers.getrandbits(bits // 2) for _ in range(2)]
            pairs.append((kind(a * b + numbers.randrange(-1, 2)).value, kind(b).value))
        # Where the type is int's or wider, the quotient of its least number and -1 does not exist.
        pairs = [(a, b) for a, b in pairs if b != 0 and not (b == -1 and a == ends[6])]
        pairs += [(1, 1)] * (-len(pairs) % THREADS)
        a, b = [(kind * len(pairs))(*values) for values in zip(*pairs)]
        quotients, remainders = [(kind * len(pairs))() for _ in range(2)]
        values = [pointer_to(array) for array in (quotients, remainders, a, b)]
        self.run_kernel(image, "varying_" + name, len(pairs) // THREADS, THREADS, *values)
        for i, (x, y) in enumerate(pairs):
            expected = quotient(x, y), x - quotient(x, y) * y
            self.assertEqual((quotients[i], remainders[i]), expected, "%s: %d and %d" % (name, x, y))

    def test_meetings(self):
        for image in self.open_all(OTHERS):
            self.check_vote(image)
            self.check_counts(image)
            self.check_conversions(image)
            self.check_step(image)

    def check_vote(self, image):
        n, a, c, out = 192, 0x12345A7, 2**32 - 77, (ctypes.c_uint * 64)()
        self.run_kernel(image, "voted", 1, 64, pointer_to(out), *[ctypes.c_uint(value) for value in (n, a, c)])
        for thread in range(64):
            h, v = thread, n - c
            for _ in range(3):
                for _ in range(max(v & 7, 1)):
                    h = (h * 3 + (v & 7)) % 2**32
                v = n - a
            self.assertEqual(out[thread], h)

    def check_counts(self, image):
        for threads in (64, 160, 256):
            for matches in (0, 1, 5):
                source = (ctypes.c_uint * threads)(*[7 if i % 6 < matches or matches == 5 else i for i in range(threads)])
                out = (ctypes.c_uint * threads)()
                said = [source[i ^ 1] == 7 for i in range(threads)]
                for name, answer in (("counted", sum(said)), ("any_of", any(said)), ("all_of", all(said))):
                    self.run_kernel(image, name, 1, threads, pointer_to(out), pointer_to(source), ctypes.c_uint(7))
                    for i in range(threads):
                        others = source[i ^ 2 ^ 1] + source[i ^ 2 ^ 31]
                        self.assertEqual(out[i], answer + 1000 * others, "%s, thread %d of %d" % (name, i, threads))

    def check_conversions(self, image):
        numbers = [0.0, -0.9, 1.9, 300.7, -300.7, 7e4, 3e9, -3e9, 1e20, -1e20, 2147483647.5, 4294967295.9, -2147483648.9]
        numbers += [float("nan"), float("inf"), float("-inf"), 1.8446744073709552e19, 9.223372036854775e18, 2147483520.0]
        numbers += [4294967040.0, 2147483646.5, -0.0, 1e-40]
        numbers += [1.5] * (64 - len(numbers))
        x, y = (ctypes.c_float * 64)(*numbers), (ctypes.c_double * 64)(*numbers)
        kinds = [TYPES[name][1] for name in ("i32", "u32", "i16", "u8", "i64", "u64")]
        arrays = [(kind * 128)() for kind in kinds]
        self.run_kernel(image, "converted", 1, 64, *[pointer_to(array) for array in (x, y, *arrays)])
        i, u, s, c, wide_i, wide_u = arrays
        for t, number in enumerate(y):
            short = x[t]
            expected = [saturated(short, 32, True), saturated(short, 32, False)]
            expected += [ctypes.c_int16(expected[0]).value, ctypes.c_uint8(expected[1]).value]
            expected += [saturated(short, 64, True), saturated(number, 64, False)]
            expected += [saturated(number, 32, True), saturated(number, 32, False)]
            self.assertEqual([i[t], u[t], s[t], c[t], wide_i[t], wide_u[t], i[t + 64], u[t + 64]], expected, repr(number))

    def check_step(self, image):
        source, out, given = (ctypes.c_uint * 64)(*range(64)), (ctypes.c_uint * 64)(), (ctypes.c_uint * 64)()
        self.run_kernel(image, "in_step", 1, 64, *[pointer_to(array) for array in (out, source, given)])
        self.assertEqual(list(out), [2 * sum(range(64))] * 64)

    def test_a_clang_without_its_llvm(self):
        """Such a clang vectorizes loops over threads only if it divides right."""
        text = "RILL_KERNEL(some, unsigned *out, const unsigned *in, unsigned a, unsigned b) {\n"
        text += "  unsigned i = threadIdx.x;\n  if ((i & 31) >= 3) out[i] = in[a % b + i];\n}\n"
        source = self.write("k.kernel.cu", text)
        compiler = self.write("clang++-alone", "#!/bin/sh\nexec %s \"$@\"\n" % support.LOOPS)
        os.chmod(compiler, 0o755)
        targets = [word for level in LEVELS for word in ("--target", level)]
        command = ("-v", "-Wno-fibers", "--cuda-names", "-o", self.path("k.rill.c"), "--cxx", compiler)
        result = self.rillcc(*command, *targets, source)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("-DRILL_LOOPS=1", result.stderr)
        bundle = Bundle(self, self.path("k.rill.c"), "k_bundle")
        for level in LEVELS:
            image = HostImage(self, level.replace(":", "-"), bundle.images[level])
            values, out = (ctypes.c_uint * 256)(*range(256)), (ctypes.c_uint * 64)()
            self.run_kernel(image, "some", 1, 64, pointer_to(out), pointer_to(values), ctypes.c_uint(53), ctypes.c_uint(40))
            self.assertEqual(list(out), [13 + i if i % 32 >= 3 else 0 for i in range(64)], level)


if __name__ == "__main__":
    support.main()
