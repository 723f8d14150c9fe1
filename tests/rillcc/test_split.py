#!/usr/bin/env python3
"""Kernels with barriers on the host: split into loops, and thread by thread, to the same last bit."""

import ctypes
import os
import random
import unittest

import random_kernels
import support  # finds rillcc_lib
from support import CC, HERE, HOST, INCLUDE, STRICT_C, Bundle, HostImage, pointer_to

from rillcc_lib import scan, split, tree

SHAPES = ((1, 1, 1), (32, 1, 1), (33, 1, 1), (100, 1, 1), (1024, 1, 1), (16, 16, 1), (7, 5, 1), (3, 4, 5), (1, 1, 9))
POWERS = ((1, 1, 1), (2, 1, 1), (32, 1, 1), (256, 1, 1), (1024, 1, 1))


BEFORE = "s[t] = x[i]; __syncthreads();"
AFTER = "y[i] = s[t];"


def split_body(body, outside=""):
    """The split form of a kernel whose threads share s."""
    text = '# 1 "k.cu"\n%s\nRILL_KERNEL(k, int n, const float *x, float *y) {\n' % outside
    text += "__shared__ float s[64]; const int t = threadIdx.x; const int i = blockIdx.x * 64 + t;\n%s\n}\n" % body
    unit = scan.read_unit(text, "k.cu")
    return split.split(unit.kernels[0], unit.constants)


class Splitting(unittest.TestCase):
    """What becomes of each construct."""

    def regions(self, body, **more):
        return split_body(body, **more).count("rill_x++")

    def stored(self, body, **more):
        return split_body(body, **more).count("alignas(64)")

    def refused(self, body, why, **more):
        with self.assertRaisesRegex(tree.Refused, why + ".*, line [0-9]+"):
            split_body(body, **more)

    def test_regions(self):
        self.assertEqual(self.regions("y[i] = x[i];"), 1)
        self.assertEqual(self.regions(BEFORE + AFTER), 2)
        self.assertEqual(self.regions("__syncthreads(); __syncthreads();" + AFTER), 1)
        self.assertEqual(self.regions("{ { " + BEFORE + "} y[i] = 1; }" + AFTER), 3)
        self.assertEqual(self.regions(";;" + BEFORE + ";"), 1)

    def test_shared_variables(self):
        for words in ("alignas(16) __shared__", "alignas(16) const __shared__", "alignas(2 * (4 + 4)) __shared__"):
            text = split_body(words + " float aligned[4];" + BEFORE + "y[i] = aligned[0];" + AFTER)
            self.assertRegex(text, r"alignas ?\([^_]+\) ?__shared__ (const )?float rill_s\d+ ", words)

    def test_variables(self):
        cases = (
            ("float v = x[i];" + BEFORE + "y[i] = v;", 1, "loaded: kept"),
            ("float v = x[i]; v += 1;" + BEFORE + AFTER, 0, "not used later"),
            ("int v = i + 1;" + BEFORE + "y[v] = 1;", 0, "computed again"),
            ("const unsigned char v = static_cast<unsigned char>(t * 2);" + BEFORE + "y[v] = 1;", 0, "computed again"),
            ("int v = t / n;" + BEFORE + "y[v] = 1;", 1, "a division that costs, and might fail"),
            ("int v = t / 4 % 0x10;" + BEFORE + "y[v] = 1;", 0, "by a number"),
            ("int v = t;" + BEFORE + "v++; __syncthreads(); y[v] = 1;", 1, "changed"),
            ("int v = t; int *p = &v;" + BEFORE + "y[v] = *p;", 2, "its address is known"),
            ("int v = t; int &r = v; r = 3;" + BEFORE + "y[v] = 1;", 1, "changed through a reference"),
            ("int v = t; f(v);" + BEFORE + "y[v] = 1;", 1, "perhaps changed by a function"),
            ("int v = t; y[0] = min(v, 3);" + BEFORE + "y[v] = 1;", 0, "a function that takes it by value"),
            ("int v = t; (v) = 3;" + BEFORE + "y[v] = 1;", 1, "changed in parentheses"),
            ("int v = t; y[(v, v)++] = 3;" + BEFORE + "y[v] = 1;", 1, "changed at the end of a comma"),
            ("int v = t; (n > 1 ? v : n) = 3;" + BEFORE + "y[v] = 1;", 2, "changed on one side of a condition"),
            ("int v = t; y[0] = *(float *)&v;" + BEFORE + "y[v] = 1;", 1, "a cast of its address"),
            ("int v = t; y[0] = n & v;" + BEFORE + "y[v] = 1;", 0, "a mask, no address"),
            ("int v = t, w = v + 1;" + BEFORE + "y[w] = 1;", 0, "computed again from another"),
            ("float v = x[i]; const float w = v + 1;" + BEFORE + "y[i] = w;", 1, "computed again from what is kept"),
            ("float v[4]; for (int k = 0; k < 4; k++) v[k] = k;" + BEFORE + "y[i] = v[t % 4];", 1, "an array"),
            ("if (t) n--;" + BEFORE + "y[n] = 1;", 1, "a parameter that threads change"),
            ("n--;" + BEFORE + "y[n] = 1;", 0, "a parameter that all change"),
            ("n--;" + BEFORE + "if (t) { n--; }" + "y[n] = 1;", 1, "that all change, and then some threads"),
            ("int v = n; v++;" + BEFORE + "{ v++; }" + "y[v] = 1;", 1, "the same in a block"),
            ("int v = n; { int n = 3; " + BEFORE + "y[v] = n; } y[0] = v;", 0, "uniform, so kept once"),
            ("int v[4]; int *p = v;" + BEFORE + "y[i] = p[0];", 2, "an array that a pointer knows"),
            ("int v[2][2]; int *p = v[1];" + BEFORE + "y[i] = p[0];", 2, "a row of one"),
            ("int v[2], w[2]; int *p = n ? v : w;" + BEFORE + "y[i] = p[0];", 3, "one of two"),
            ("int v[4]; int &r = v[1]; int *p = &r;" + BEFORE + "y[i] = *p;", 2, "through a reference"),
            ("int v = t; int *p = &v;" + BEFORE + "y[i] = *p;", 2, "a number that a pointer knows"),
            ("int v = t; int *p = &(v = 3);" + BEFORE + "y[i] = *p;", 2, "that is assigned to at once"),
            ("int v = t; int *p = &++v;" + BEFORE + "y[i] = *p;", 2, "that is stepped at once"),
            ("int v = t; int *p = keep(v);" + BEFORE + "y[i] = *p;", 2, "a function that may keep it"),
            ("pair v; int *p = v.get();" + BEFORE + "y[i] = *p;", 2, "what has members"),
            ("auto v = make(3); if (n) y[v] = 1;" + BEFORE + "y[i] = 1;", 0, "a number of a type that is not written"),
            ("int v[4]; for (int k = 0; k < 4; k++) v[k] = k; y[v[1]] = v[2]++;" + BEFORE, 0, "an array's elements"),
            ("int *v[4]; v[t] = &n; y[i] = v[t][1] + *v[2];" + BEFORE, 1, "pointers, and a parameter that they point to"),
            ("int v = n + t; { int n = 3; " + BEFORE + "y[v] = n; }", 1, "its names mean something else there"),
        )
        for body, count, why in cases:
            with self.subTest(why, body=body):
                self.assertEqual(self.stored(body), count)

    def test_uniform_loops(self):
        inside = "{ s[t] += 1; __syncthreads(); y[i] += s[t + 1]; __syncthreads(); }"
        uniform = (
            "for (int k = 0; k < n; k++)",
            "for (unsigned k = blockDim.x / 2; k > 0; k >>= 1)",
            "for (int k = gridDim.y, l = 3; k + l < n * 2; k += 2, --l)",
            "int k = 5; while (k < LIMIT)",
            "for (;;)",
            "for (int k = 0; k < static_cast<int>(sizeof(float) * COUNT); ++k)",
            "const auto k = min(n, 3); for (auto j = k; j > 0; j -= k)",
        )
        for header in uniform:
            with self.subTest(header=header):
                text = split_body(header + inside, outside="constexpr int LIMIT = 5; enum { ZERO, COUNT = 3 };")
                self.assertNotIn("rill_m1", text)
        masked = (
            "for (int k = t; k < n; k++)",
            "for (int k = 0; k < s[0]; k++)",
            "for (int k = 0; k < x[0]; k++)",
            "for (int k = 0; k < unknown; k++)",
            "for (int k = 0; k < n / k; k++)",
            "int k = 0; if (t) k = 1; while (k < 3)",
            "while (n--)",
            "float k = 0; f(k); while (k < 3)",
        )
        for header in masked:
            with self.subTest(header=header):
                self.assertIn("rill_m1", split_body(header + inside))
        self.assertNotIn("rill_m1", split_body("int k = 0; do { %s k++; } while (k < 3);" % inside))
        self.assertNotIn("rill_m1", split_body("for (int k = 0; k < 9; k++) { %s if (k == n) break; }" % inside))
        self.assertIn("rill_m1", split_body("for (int k = 0; k < 9; k++) { %s if (k == t) break; }" % inside))

    def test_branches(self):
        inside = "{ __syncthreads(); y[i] = s[t]; }"
        self.assertNotIn("rill_m1", split_body("s[t] = 1; if (n > 3 && blockIdx.x == 0) %s else y[i] = 2;" % inside))
        self.assertIn("rill_m2", split_body("s[t] = 1; if (s[0] > 3) %s else %s" % (inside, inside)))

    def test_returns(self):
        self.assertNotIn("rill_live", split_body("if (n < 3) return;" + BEFORE + AFTER))
        self.assertNotIn("rill_live", split_body(BEFORE + "if (i >= n) return;" + AFTER))
        self.assertIn("rill_live", split_body("if (i >= n) return;" + BEFORE + AFTER))

    def test_few_threads(self):
        for condition, kind in (("t < n", "below"), ("threadIdx.x < 2 * n", "below"), ("t == 0", "at")):
            self.assertIn("rill_split_%s<" % kind, split_body(BEFORE + "if (%s) y[i] = 1;" % condition))
        for condition in ("t < n && n > 3", "t < s[0]", "t <= n", "i < n", "t < n | 1"):
            self.assertNotIn("rill_split_range", split_body(BEFORE + "if (%s) y[i] = 1;" % condition))
        self.assertNotIn("rill_split_range", split_body(BEFORE + "if (t < n) y[i] = 1; else y[i] = 2;"))

    def test_inside(self):
        """Kernels that ask whether a thread is inside, and need not in most blocks."""
        inside = (
            "if (i < n) y[i] = 1;",
            "if (i >= n) return; y[i] = 1; y[i + n] = 2;",
            "if (n < i) y[0] = 1; else y[1] = 1;",
            "const size_t j = size_t(3); if (i <= n - 1 && blockIdx.y < 4 && threadIdx.y < n) { y[i] = 1; }",
            "int row = blockIdx.y * 4 + threadIdx.y; if (i >= n || row > 7) { return; } y[i] = row;",
            "unsigned j = blockIdx.x * (n + 3) - 2 + (threadIdx.x); if (j < 5) y[j] = 1;",
        )
        expected = (True, True, False, True, True, True)
        for body, found in zip(inside, expected):
            with self.subTest(body=body):
                self.assertEqual("rill_inside" in split_body(body), found)
        outside = (
            "if (i < n || n > 3) y[i] = 1;",
            "if (i < n) y[i] = 1; y[0] = 2;",
            "if (i < x[0]) y[i] = 1;",
            "if (2 * i < n) y[i] = 1;",
            "if (i > 3) y[i] = 1;",
            "int j = i; if (j++ < n) y[j] = 1;",
            "short j = i + 1; if (j < n) y[j] = 1;",
            "int j = n - threadIdx.x; if (j < n) y[j] = 1;",
            "int j = n + threadIdx.x / 2; if (j < n) y[j] = 1;",
            "int j = n << 1 + threadIdx.x; if (j < n) y[j] = 1;",
            "if (i < n) return; y[0] = 1;",
            "if (i >= n && n > 3) return; y[0] = 1;",
            "if (i >= n) return;" + BEFORE + AFTER,
        )
        for body in outside:
            with self.subTest(body=body):
                self.assertNotIn("rill_inside", split_body(body))

    def test_refused(self):
        after = "__syncthreads();"
        cases = (
            ("switch (n) { case 0: __syncthreads(); }", "a barrier inside a switch"),
            ("y[0] = (__syncthreads(), 1);", "a barrier inside an expression"),
            ("int v = (__syncthreads(), 1);", "a barrier inside a declaration"),
            ("if (n) { label: n--; goto label; }" + after, "a goto"),
            ("auto f = [&] { return 3; }; f();" + after, "a lambda"),
            ("struct p { int a; }; p v;" + after, "a type that is defined in the kernel"),
            ("int (*f)(int) = 0;" + after, "a declaration that rillcc cannot read"),
            ("real (*f)(int) = 0;" + after, "a declaration that rillcc cannot read"),
            ("int v();" + after, "a declaration that rillcc cannot read"),
            ("float &r = s[t];" + after + "r = 1;", 'the reference "r" lives across a barrier'),
            ("auto v = x[i];" + after + "y[i] = v;", '"v" lives across a barrier and its type is not written'),
            ("volatile int v = t;" + after + "y[i] = v;", 'the volatile "v" lives across a barrier'),
            ("using real = float; real v = x[i];" + after + "y[i] = v;", 'the type of "v" depends on what'),
            ("static int count; count++;" + after, "a static variable"),
            ("asm volatile(\"\");" + after, "assembly"),
            ("const char *f = __func__; y[0] = f[0];" + after, "the function's name"),
            ("if (int v = n) { y[v] = 1; __syncthreads(); }", "a barrier inside a if that declares"),
            ("for (float v : {1.f}) { y[i] = v; __syncthreads(); }", "a barrier inside a for that declares"),
            ("y[0] = ({ 3; });" + after, "a statement inside an expression"),
            ("void *p = __builtin_alloca(n); y[0] = p != 0;" + after, "alloca"),
            ("[[unlikely]] y[0] = 1;" + after, "an attribute"),
            ("alignas(16) float v[4]; y[0] = v[0];" + after, "an aligned variable"),
        )
        for body, why in cases:
            with self.subTest(why):
                self.refused(body, why)

    def test_pragmas(self):
        loop = "for (int k = 0; k < 3; k++) y[k] = 1; __syncthreads();"
        self.assertEqual(self.regions("\n#pragma unroll 4\n" + loop), 1)
        self.refused("\n#pragma omp simd\n" + loop, 'a pragma "omp simd"')

    def test_macros(self):
        """The text is expanded a second time, which must change nothing."""
        self.refused("y[0] = f(n);" + BEFORE, '"f" is a macro that stands for itself', outside="#define f(v) f(v + 1)\n")
        self.assertEqual(self.regions("y[0] = f(n);" + BEFORE, outside="#define f(v) f(v)\n"), 1)
        self.assertEqual(self.regions("y[0] = f(n);" + BEFORE, outside="#define f(v) f(v + 1)\n#undef f\n"), 1)


class Runner:
    """Runs the kernels of a host image in both forms."""

    def __init__(self, test):
        path = test.path("runner.so")
        command = CC + STRICT_C + ["-D_GNU_SOURCE", "-O1", "-shared", "-I", INCLUDE, "-o", path]
        test.assertEqual(test.run_compiler(command + [os.path.join(HERE, "runner.c")]), (0, ""))
        self.library = ctypes.CDLL(path)

    def run(self, kernel, as_loops, grid, block, shared, *values):
        pointers = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(value) for value in values])
        launch = support.Grid(pointers, grid, block, shared, None)
        return self.library.run_grid(ctypes.byref(kernel), ctypes.byref(launch), as_loops)


class Differential(support.TestCase):
    """Both forms of a kernel give the same bits, on blocks of many shapes."""

    def open(self, source, *arguments):
        c_file = self.path("out.rill.c")
        result = self.rillcc("-o", c_file, "--target", HOST, *arguments, source)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("rill_split", result.stderr)  # only of what the user wrote
        name = "image%d" % len(os.listdir(self.folder))  # a library that is loaded is not to be written over
        stem = os.path.basename(source).split(".")[0]
        os.mkdir(self.path(name))
        bundle = Bundle(self, c_file, stem + "_bundle", name + "/bundle.so")
        return HostImage(self, name + "/host", bundle.images[HOST])

    def compare(self, runner, kernel, n, grid, block, count=None):
        threads = block[0] * block[1] * block[2]
        count = count or n
        numbers = random.Random(n * 31 + threads)
        x = (ctypes.c_float * count)(*[numbers.uniform(-4, 60) for _ in range(count)])
        results = []
        for as_loops in (1, 0):
            y = (ctypes.c_float * (count + 8))(*([0.5] * count + [7.0] * 8))
            values = ctypes.c_int(n), pointer_to(x), pointer_to(y)
            outcome = runner.run(kernel, as_loops, grid, block, 8 * threads, *values)
            self.assertEqual(outcome, 0, kernel.name)
            self.assertEqual(list(y[count:]), [7.0] * 8)
            results.append(bytes(y))
        self.assertTrue(results[0] == results[1], "%s, n %d, block %s" % (kernel.name, n, block))
        return y

    def test_notes(self):
        text = support.ONE + "RILL_KERNEL(two, float *x) { __shared__ float s[1]; s[0] = 1; __syncthreads(); x[0] = s[0]; }\n"
        text += "RILL_KERNEL(three, float *x) { auto f = [] {}; f(); __syncthreads(); x[0] = 1; }\n"
        text += "struct big { float at[300]; };\n"
        text += "RILL_KERNEL(four, float *x) { big b; b.at[0] = x[0]; __syncthreads(); x[0] = b.at[0]; }\n"
        text += "struct built { float at; built() : at(1) {} };\n"
        text += "RILL_KERNEL(five, float *x) { built b; __syncthreads(); x[0] = b.at; }\n"
        source = self.write("k.kernel.cu", text)
        expected = {
            "one": (True, "a loop over the threads"),
            "two": (True, "loops between barriers"),
            "three": (False, "fibers: a lambda, line 4"),
            "four": (False, "fibers: its variables are large"),
            "five": (False, "fibers: a variable has constructors"),
        }
        result = self.rillcc("-v", "--target", HOST, "-o", "out.rill.c", source)
        self.assertEqual(result.returncode, 0, result.stderr)
        for name, (_, note) in expected.items():
            self.assertIn('%s: kernel "%s": %s\n' % (HOST, name, note), result.stderr)
        image = self.open(source)
        self.assertEqual({k: bool(v.run_block) for k, v in image.kernels.items()}, {k: v[0] for k, v in expected.items()})
        image = self.open(source, "--no-split")
        self.assertEqual([name for name, kernel in image.kernels.items() if kernel.run_block], ["one"])

    def test_kernels(self):
        runner, image = Runner(self), self.open(os.path.join(HERE, "barriers.kernel.cu"))
        powers = {"reduce_halves", "reduce_neighbours", "scan_blelloch", "bitonic_sort"}
        special = {"transpose", "matmul"}
        for name, kernel in image.kernels.items():
            if name in special:
                continue
            for block in POWERS if name in powers else SHAPES:
                threads = block[0] * block[1] * block[2]
                for n in (1, 5 * threads // 2 + 1, 4 * threads):
                    grid = ((n + threads - 1) // threads, 1, 1)
                    with self.subTest(kernel=name, block=block, n=n):
                        self.compare(runner, kernel, n, grid, block)
        for n in (1, 16, 45):
            tiles = (n + 15) // 16
            for block in ((16, 16, 1), (16, 4, 1), (16, 1, 1)):
                self.compare(runner, image.kernels["transpose"], n, (tiles, tiles, 1), block, n * n)
            self.compare(runner, image.kernels["matmul"], n, (tiles, tiles, 1), (16, 16, 1), n * n)

    def test_random_kernels(self):
        """RILL_STRESS (a percentage) scales the rounds of 12 kernels; RILL_STRESS_SEED runs others."""
        runner, first = Runner(self), int(os.environ.get("RILL_STRESS_SEED", "1"))
        for seed in range(first, first + max(1, 2 * int(os.environ.get("RILL_STRESS", "100")) // 100)):
            text = random_kernels.source(random.Random(seed), 12)
            with self.subTest(seed=seed):
                image = self.open(self.write("random%d.kernel.cu" % seed, text))
                for name, kernel in image.kernels.items():
                    for block in ((1, 1, 1), (67, 1, 1), (8, 4, 1), (3, 5, 3)):
                        self.check_random(runner, "seed %d" % seed, kernel, block)

    def check_random(self, runner, what, kernel, block):
        threads = block[0] * block[1] * block[2]
        count = 3 * threads
        x = (ctypes.c_float * count)(*[(7 * i) % 97 for i in range(count)])
        results = []
        for as_loops in (1, 0):
            y = (ctypes.c_uint * count)(*[123] * count)
            values = ctypes.c_uint(5), ctypes.c_uint(count), pointer_to(x), pointer_to(y)
            self.assertEqual(runner.run(kernel, as_loops, (3, 1, 1), block, 8 * threads, *values), 0, kernel.name)
            results.append(list(y))
        different = [i for i in range(count) if results[0][i] != results[1][i]]
        self.assertEqual(different, [], "%s, %s, block %s" % (what, kernel.name.decode(), block))


if __name__ == "__main__":
    support.main()
