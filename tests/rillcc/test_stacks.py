#!/usr/bin/env python3
"""How much stack rillcc says that kernels need on the cpu, and which ones it refuses."""

import shutil

import support
from support import HOST, Bundle, HostImage

from rillcc_lib import stacks

HEAD = "#include <rill/device/kernel.h>\n"
COMPILERS = [c for c in ("g++", "clang++-19", "clang++") if shutil.which(c)][: None if support.LONG else 2]

# An array of N ints that no compiler can do without, and its sum.
ARRAY = """
  volatile int a[%d];
  for (int i = 0; i < %d; i++) a[i] = x[i %% n];
  int s = 0;
  for (int i = 0; i < %d; i++) s += a[i];
"""


def array(count):
    return ARRAY % (count, count, count)


def kernel(name, body):
    return "RILL_KERNEL(%s, int n, const int *x, int *y) {\n%s\n}\n" % (name, body)


def function(name, body, kind="int"):
    return "static __device__ __attribute__((noinline)) %s %s(const int *x, int n) {\n%s\n}\n" % (kind, name, body)


SMALL = kernel("small", "if (threadIdx.x < n) y[threadIdx.x] = x[0];")
FIBERS = function("meet", "__syncthreads();", "void")  # a barrier in a function is on fibers


class Stacks(support.TestCase):
    """What compilers say of frames is added up along the calls."""

    def stacks(self, text, cxx):
        """Returns the table of the image, by kernel."""
        source = self.write("k.kernel.cu", HEAD + text)
        bundle = Bundle(self, self.compile(source, "--target", HOST, "--cxx", cxx)[0], "k_bundle", cxx + ".so")
        image = HostImage(self, cxx, bundle.images[HOST])
        self.assertIn(image.table.version, (4, 8))
        names = [k.name.decode() for k in image.table.kernels[: image.table.kernel_count]]
        self.assertEqual(image.table.stacks[0], len(names))
        return dict(zip(names, image.table.stacks[1 : 1 + len(names)]))

    def refused(self, text, *words):
        source = self.write("k.kernel.cu", HEAD + text)
        for cxx in COMPILERS:
            with self.subTest(cxx):
                result = self.rillcc("--target", HOST, "--cxx", cxx, "-o", self.path("k.c"), source)
                self.assertEqual(result.returncode, 1)
                for word in words:
                    self.assertIn(word, result.stderr)

    def within(self, number, least, most=4096):
        self.assertGreaterEqual(number, least + stacks.RESERVE)
        self.assertLess(number, least + stacks.RESERVE + most)

    def test_frames_are_counted(self):
        text = SMALL + kernel("large", array(20000) + "y[threadIdx.x] = s;")
        for cxx in COMPILERS:
            with self.subTest(cxx):
                found = self.stacks(text, cxx)
                self.within(found["small"], 0)
                self.within(found["large"], 80000)

    def test_stacks_of_fibers_are_counted(self):
        text = FIBERS + kernel("large", "meet(x, n);" + array(20000) + "meet(x, n); y[threadIdx.x] = s;") + SMALL
        for cxx in COMPILERS:
            with self.subTest(cxx):
                found = self.stacks(text, cxx)
                self.within(found["large"], 80000)
                self.within(found["small"], 0)

    def test_the_deepest_call_counts(self):
        """The deepest way counts, not all together; what nobody calls does not."""
        text = function("low", array(1000) + "return s;")
        text += function("left", array(10000) + "return s + low(x, n);")
        text += function("right", array(30000) + "return s;")
        text += function("nobody", array(300000) + "return s;").replace("__attribute__((", "__attribute__((used, ")
        text += kernel("one", "y[threadIdx.x] = low(x, n);")
        text += kernel("two", array(500) + "y[threadIdx.x] = s + left(x, n) + low(x + 1, n);")
        text += kernel("three", "y[threadIdx.x] = left(x, n) + right(x, n);")
        for cxx in COMPILERS:
            with self.subTest(cxx):
                found = self.stacks(text, cxx)
                self.within(found["one"], 4000)
                self.within(found["two"], 2000 + 40000 + 4000)
                self.within(found["three"], 120000)

    def test_calls_through_pointers_count(self):
        """Whose address a kernel takes, it may call; through a table of such, too."""
        text = function("big", array(30000) + "return s;") + function("other", array(3000) + "return s;")
        text += "typedef int (*call)(const int *, int);\nstatic call const volatile calls[2] = { big, other };\n"
        text += kernel("taken", "const call volatile c = n == 7 ? big : other; y[threadIdx.x] = c(x, n);")
        text += kernel("table", "y[threadIdx.x] = calls[n & 1](x, n);")
        for cxx in COMPILERS:
            with self.subTest(cxx):
                found = self.stacks(text, cxx)
                self.within(found["taken"], 120000)
                self.within(found["table"], 120000)

    def test_handlers_that_name_their_table_are_no_recursion(self):
        """Names that lead back to a function without a call to it are no recursion."""
        text = "typedef int (*call)(const int *, int);\nextern call const volatile table[2];\n"
        text += function("first", "return table[1] != nullptr ? x[0] : n;") + function("second", "return x[n];")
        text += "call const volatile table[2] = { first, second };\n"
        text += kernel("k", "y[threadIdx.x] = table[n & 1](x, n);")
        for cxx in COMPILERS:
            with self.subTest(cxx):
                self.within(self.stacks(text, cxx)["k"], 0)

    def test_too_large_stacks_are_refused(self):
        self.refused(SMALL + kernel("huge", array(3000000) + "y[threadIdx.x] = s;"), 'kernel "huge"', "8388608")
        inner = function("inner", array(1500000) + "return s;")
        self.refused(inner + kernel("huge", array(1500000) + "y[threadIdx.x] = s + inner(x, n);"), 'kernel "huge"')

    def test_the_largest_stack_is_accepted(self):
        for cxx in COMPILERS:
            with self.subTest(cxx):
                found = self.stacks(kernel("k", array(2000000) + "y[threadIdx.x] = s;"), cxx)
                self.within(found["k"], 8000000)

    def test_stacks_without_a_bound_are_refused(self):
        body = "int *a = (int *)__builtin_alloca(n * sizeof(int)); a[0] = x[0]; a[n - 1] = 2;"
        self.refused(SMALL + kernel("k", body + "y[threadIdx.x] = a[n / 2];"), 'kernel "k"', "alloca", "k.kernel.cu:5")
        body += "volatile int *b = a; return b[n / 2];"
        text = function("helper", body) + kernel("k", "y[threadIdx.x] = helper(x, n);")
        self.refused(text, 'kernel "k"', "helper", "alloca")

    def test_recursion_is_refused(self):
        body = "volatile int v = x[n]; return n == 0 ? v : %s(x, n - 1) + %s(x, n / 2) + v;"
        text = function("down", body % ("down", "down")) + kernel("k", "y[threadIdx.x] = down(x, n);")
        self.refused(text, 'kernel "k"', "down", "calls itself")
        text = function("b", "return n;").replace("{\nreturn n;\n}", ";")
        text += function("a", body % ("b", "b"))
        for last in ("a", "a"), ("a", "x[2] + a"):  # compilers make one of two that are alike
            self.refused(text + function("b", body % last) + kernel("k", "y[threadIdx.x] = a(x, n);"), "calls itself")

    def test_recursion_that_is_a_loop(self):
        """A call in the last place needs no stack."""
        text = function("down", "return n <= 0 ? x[0] : down(x, n - 1);") + kernel("k", "y[threadIdx.x] = down(x, n);")
        for cxx in COMPILERS:
            with self.subTest(cxx):
                self.within(self.stacks(text, cxx)["k"], 0)

    def test_recursion_that_no_kernel_reaches_is_accepted(self):
        body = "volatile int v = x[n]; return n == 0 ? v : alone(x, n - 1) + v;"
        text = function("alone", body).replace("__attribute__((", "__attribute__((used, ") + SMALL
        for cxx in COMPILERS:
            with self.subTest(cxx):
                self.within(self.stacks(text, cxx)["small"], 0)

    def test_a_compiler_without_stack_sizes_gives_no_table(self):
        self.assertNotIn("rill_cpu_stacks", stacks.table([], "\t.text\nf:\n\tret\n", ""))


support.main()
