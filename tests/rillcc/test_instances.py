#!/usr/bin/env python3
"""Instances of kernel templates that stand in no source: lists, the objects of a program, and the launches of CUDA
programs as lists."""

import ctypes
import os
import re
import subprocess
import unittest

import support
from rillcc_lib import instances
from support import CC, CUDA_CLANG, CXX, HOST, INCLUDE, NVCC, ONE_OF_EACH, STRICT_C, STRICT_CXX, Bundle, HostImage, pointer_to

SOURCE = """#include <rill/device/kernel.h>
#define WIDTH 3
struct pair { float a, b; };
#pragma pack(push)
enum Mode { less, more };
#pragma pack(pop)
template <class T> struct wide { using type = double; };
namespace ns { inline namespace v1 {
template <class U, int N = WIDTH> __global__ void __launch_bounds__(64) scale(int, U, U *__restrict__ x);
template <class T, int N> __global__ void __launch_bounds__(64)
scale(int n, T factor, T *__restrict__ x) { /* } */
  static_assert(N < 100, "too many");
  const int i = threadIdx.x;
  if (i < n) x[i] *= factor * N;
}
} }
template <typename T, class Op = pair> __global__ void sum(const T x[], typename wide<T>::type first, pair *out, Op by) {
  out[0].a = x[0] + first + by.b;
}
template <class... R> __global__ void many(double *out, R... r) { out[0] = (0.0 + ... + r); }
template <Mode M> __global__ void moded(int *x) { x[0] = M; }
template <class T> __global__ void two(T *x) { x[0] = 1; }
template <class T> __global__ void two(T *x, int n) { x[0] = n; }
template <> __global__ void two(double *x) { x[0] = 7; }
__global__ void plain(int n, int *x) { x[0] = n; }
template <class T> __global__ void by_hand(T *x) { x[0] = 2; }
RILL_KERNEL_INSTANCE(hand, by_hand<int>);
"""
LIST = """# what the program needs
ns::scale<float, 4>    # a comment

sum<float>  // another
one = two<int>(*)
"""
SCALE = "#include <rill/device/kernel.h>\ntemplate <class T, int N> __global__ void scale(T *x) { x[0] *= N; }\n"
FORMS: list = [("loops", {}), ("any compiler", {"RILL_CLANG": "none"})]
# A library in the place of rill: prints what is launched.
STUB = """#include <rill/kernel.h>
#include <stdio.h>
rill_status rill_stream_launch_typed(rill_stream s, rill_kernel_ref *r, const rill_launch *l, const rill_arg *a, size_t n,
                                     const char *function) {
  (void)s, (void)l, (void)function;
  printf("%s:", r->name);
  for (size_t i = 0; i < n; i++) printf(" %zu", a[i].size);
  printf("\\n");
  return RILL_OK;
}
"""
PROGRAM = """#include "k.rill.h"
struct pair { float a, b; };
int main() {
  const rill_launch launch = rill_launch_1d(1, 1);
  int n = 0;
  float x = 0;
  double wide = 0;
  int *p = &n;
  pair two = { 1, 2 };
  n += ns::scale_launch<float, 7>({}, &launch, 1, 2, &x) != RILL_OK;
  n += ns::scale_launch({}, &launch, 1, 2.0, &wide) != RILL_OK;
  n += sum_launch<float, pair>({}, &launch, &x, 1.0, &two, two) != RILL_OK;
  n += many_launch({}, &launch, &wide, 1, 2.0f, static_cast<short>(3)) != RILL_OK;
  n += many_launch({}, &launch, &wide) != RILL_OK;
  n += by_hand_launch({}, &launch, p) != RILL_OK;
  n += plain_launch({}, &launch, 1, p) != RILL_OK;
  return n;
}
"""
LAUNCHED = """_ZN2ns2v15scaleIfLi7EEEviT_PS2_: 4 4 8
_ZN2ns2v15scaleIdLi3EEEviT_PS2_: 4 8 8
_Z3sumIf4pairEvPKT_N4wideIS1_E4typeEPS0_T0_: 8 8 8 8
_Z4manyIJifsEEvPdDpT_: 8 4 4 2
_Z4manyIJEEvPdDpT_: 8
_Z7by_handIiEvPT_: 8
_Z5plainiPi: 4 8
"""


class Lists(support.TestCase):
    """--instances."""

    def setUp(self):
        super().setUp()
        self.source = self.write("k.kernel.cu", SOURCE)

    def test_every_target_has_the_kernels_of_a_list(self):
        self.write("list.txt", LIST.replace("two<int>(*)", "static_cast<void (*)(int *)>(two<int>)"))
        environments: list = [{}, {"RILL_NVCC": "none", "RILL_HIPCC": "none"}]
        for environment in environments:
            with self.subTest(environment=environment):
                c_file, _ = self.compile(
                    self.source, "--instances", "list.txt", "--depfile", "k.d", *ONE_OF_EACH, **environment
                )
                bundle = Bundle(self, c_file, "k_bundle", "%d.so" % len(environment))
                self.assertEqual(
                    bundle.kernels,
                    {
                        "_ZN2ns2v15scaleIfLi4EEEviT_PS2_": [("n", 4), ("factor", 4), ("x", 8)],
                        "_Z3sumIf4pairEvPKT_N4wideIS1_E4typeEPS0_T0_": [("x", 8), ("first", 8), ("out", 8), ("by", 8)],
                        "_Z3twoIiEvPT_": [("x", 8)],
                        "_Z5plainiPi": [("n", 4), ("x", 8)],
                        "_Z7by_handIiEvPT_": [("x", 8)],
                    },
                )
                for name in ("scale_float_4(", "sum_float(", "one(", "hand(", "plain("):
                    self.assertIn(name.replace("(", "_launch("), self.read("out.rill.h"))
                self.assertIn("list.txt", self.read("k.d"))
                self.assertNotIn(".copies", self.read("k.d"))
        self.assertEqual([name for name in os.listdir(self.folder) if "copies" in name], [])

    def test_instances_compute_the_right_values(self):
        self.write("list.txt", "ns::scale<float, 4>\nmany<int, float>\n")
        for form, environment in FORMS:
            with self.subTest(form=form):
                c_file, _ = self.compile(self.source, "--instances", "list.txt", "--target", HOST, **environment)
                image = HostImage(self, form, Bundle(self, c_file, "k_bundle", form + ".so").images[HOST])
                x, out = (ctypes.c_float * 4)(1, 2, 3, 4), ctypes.c_double()
                one = (1, 1, 1)
                image.run("_ZN2ns2v15scaleIfLi4EEEviT_PS2_", one, (3, 1, 1), ctypes.c_int(3), ctypes.c_float(2), pointer_to(x))
                self.assertEqual(list(x), [8, 16, 24, 4])
                image.run("_Z4manyIJifEEvPdDpT_", one, one, pointer_to(out), ctypes.c_int(2), ctypes.c_float(0.5))
                self.assertEqual(out.value, 2.5)

    def refused(self, text, *expected, source=None, **environment):
        self.write("list.txt", text)
        arguments = ["--target", HOST, "-o", "k.rill.c", "--instances", "list.txt", source or self.source]
        result = self.rillcc(*arguments, **environment)
        self.assertEqual(result.returncode, 1, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), len(expected), result.stderr)
        for line, pattern in zip(lines, expected):
            self.assertRegex(line, r"^rillcc: list\.txt:" + pattern)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("k.rill")], [])

    def test_invalid_instances_are_refused(self):
        text = "ns::scale<float, float>\nscal<float>\n\nns::scale<flot, 4>\nplain<int>\ntwo<int>\nns::scale<>\nx = nothing\n"
        lines = [
            r"1: ns::scale<float, float> is not an instance of template <class T, int N = 3> ns::v1::scale$",
            r'2: the source has no kernel template "scal"; it has by_hand, many, moded, ns::v1::scale, sum, two$',
            r"4: ns::scale<flot, 4>: .*flot",
            r'5: kernel "plain" is not a template and needs no line$',
            r"6: the source has 2 kernel templates named two: select one with the line name = static_cast<void \(\*\)\(parameters\)>\(two<int>\)$",
            r"7: ns::scale<> is not an instance of template",
            r"8: nothing: .*nothing",
        ]
        for form, environment in FORMS:
            with self.subTest(form=form):
                self.refused(text, *lines, **environment)
        self.refused("k<int>\n", '1: the source has no kernel template "k"; it has none', source=self.write("o.cu", support.ONE))

    def test_signs_and_brackets_are_understood(self):
        self.write("list.txt", "ns::v1::scale<int, (2 > 1 ? 8 : 4)>\nns::scale<int, 1 << 3 | 1>\nsigns = ns::scale<long, sizeof(int[2])>;\n")
        result = self.rillcc("--header", "k.rill.h", "--instances", "list.txt", self.source)
        self.assertRegex(result.stderr, r"list\.txt:3: .* does not name an instance of a template")
        self.write("list.txt", self.read("list.txt").replace(";", ""))
        result = self.rillcc("--header", "k.rill.h", "--instances", "list.txt", self.source)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for name in ("scale_int_2_1_8_4", "scale_int_1_3_1", "signs"):
            self.assertIn(" %s_launch(rill_stream stream, const rill_launch *launch, " % name, " ".join(self.read("k.rill.h").split()))

    def test_invalid_lines_are_refused(self):
        self.refused("\nns::scale<float, 4\n", r"2: ns::scale<float, 4: its brackets do not match$")
        self.refused("ns::scale<(1 > 2)>)\n", r"1: .*brackets do not match$")
        self.refused("two<int)\n", r"1: .*brackets do not match$")
        for line in ("ns::scale", "7 = two<int>", 'two<"a">', "two<int>; int x"):
            self.refused(line + "\n", r"1: .* does not name an instance of a template: write NAME<arguments>, or name = NAME<arg")
        self.assertEqual(self.rillcc("--instances", "nowhere", "-o", "x.c", self.source).stderr[:28], "rillcc: cannot read nowhere:")

    def test_instances_that_exist_already(self):
        self.refused("two = two<int>\nns::scale<int>\nns::scale< int >\n", r"3: ns::scale< int > is already in list\.txt:2$")
        again = r"2: ns::scale<unsigned int, 1 \+ 1> already exists: it is scale_unsigned_2, from list\.txt:1$"
        self.refused("ns::scale<unsigned, 2>\nns::scale<unsigned int, 1 + 1>\n", again)
        self.refused("by_hand<int>\n", r"1: by_hand<int> already exists: it is hand, from .*k\.kernel\.cu:\d+$")
        same = r'2: "scale_int" is already the name of ns::scale<int> in list\.txt:1: begin the line with another name'
        self.refused("ns::scale<int>\nscale_int = ns::scale<long>\n", same)
        for name in ("plain", "hand"):
            self.refused(name + " = ns::scale<int>\n", r'1: the source already has a kernel "%s": begin the line' % name)

    def test_instances_have_names_in_c(self):
        for spelling, name in (
            ("ns::scale<float, 4>", "scale_float_4"),
            ("k<const float *, -1, unsigned char>", "k_const_float_ptr_minus_1_unsigned_char"),
            ("::k<ns::vec<int *> &, (2 * 8)>", "k_ns_vec_int_ptr_ref_2_8"),
        ):
            self.assertEqual(instances.c_name(spelling), name)

    def test_a_warning_names_the_line_of_the_template(self):
        source = self.write("b.kernel.cu", SCALE.replace("{ x", "{\n  __syncthreads();\n  x"))
        self.write("list.txt", "scale<int, 2>\n")
        arguments = ["--target", HOST, "--instances", "list.txt", "-o", "b.rill.c", source]
        result = self.rillcc(*arguments, RILL_CLANG="none")
        self.assertRegex(result.stderr, r'\A.*b\.kernel\.cu:2: warning: kernel "scale_int_2" is slow on the cpu')

    @unittest.skipUnless(NVCC or CUDA_CLANG, "no compiler for NVIDIA's GPUs")
    def test_ptx_of_another_list_is_not_taken(self):
        for text in ("ns::scale<int, 1>\n", "ns::scale<int, 2>\n"):
            self.write("list.txt", text)
            if text.endswith("1>\n"):
                self.compile(self.source, "--instances", "list.txt", "--target", "cuda:ptx", "--write-ptx", "ptx")
            without: dict = {"RILL_NVCC": "none", "RILL_CLANG": "none"}
            c_file, _ = self.compile(self.source, "--instances", "list.txt", "--target", HOST, "--read-ptx", "ptx", **without)
            self.assertEqual('"ptx_' in self.read("out.rill.c"), text.endswith("1>\n"), c_file)


class Objects(support.TestCase):
    """--instances-of: programs that launch what nobody listed."""

    def build(self, source=SOURCE, program=PROGRAM, options=(), for_program=()):
        """Writes the header, and makes program.o with it."""
        self.write("k.kernel.cu", source)
        result = self.rillcc("--header", "k.rill.h", *options, "k.kernel.cu")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.write("program.cpp", program)
        self.compile_program(CXX, *for_program)

    def compile_program(self, compiler, *options):
        command = [*compiler, *STRICT_CXX, *options, "-I", INCLUDE, "-I", ".", "-c", "-o", "program.o", "program.cpp"]
        self.assertEqual(self.run_compiler(command), (0, ""))

    def kernels(self, *arguments):
        """Compiles the kernels that objects refer to."""
        result = self.rillcc("--target", HOST, "-o", "k.rill.c", *arguments, "k.kernel.cu")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def names(self):
        """Those of the kernels, in C."""
        return sorted(re.findall(r"^rill_kernel_ref rill_ref_(\w+) = ", self.read("k.rill.c"), re.MULTILINE))

    def launched(self):
        """Links and runs the program with a library that only prints what it is given."""
        self.write("stub.c", STUB)
        for name in ("stub", "k.rill"):
            self.assertEqual(self.run_compiler([*CC, *STRICT_C, "-I", INCLUDE, "-c", name + ".c"]), (0, ""))
        self.assertEqual(self.run_compiler([*CXX, "-o", "program", "program.o", "k.rill.o", "stub.o"]), (0, ""))
        done = subprocess.run([self.path("program")], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, message, *arguments):
        result = self.rillcc("--target", HOST, "-o", "k.rill.c", *arguments, "k.kernel.cu")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Arillcc: " + message)
        self.assertNotIn("Traceback", result.stderr)

    @unittest.skipUnless("RILL_LIBRARY" in os.environ, "RILL_LIBRARY names no librill.so")
    def test_the_example_of_the_documents_works(self):
        with open(os.path.join(support.ROOT, "docs", "reference", "KERNELS.md"), encoding="utf-8") as file:
            section = file.read().partition("### Instances that a program launches")[2].partition("\n### ")[0]
        kernel, program, commands = re.findall(r"```(?:c\+\+|sh)\n(.*?)```", section, re.DOTALL)
        self.write("scale.kernel.cu", kernel)
        self.write("program.cpp", program.replace("rill_device_open(nullptr", 'rill_device_open("cpu"'))
        library = os.environ["RILL_LIBRARY"]
        for old, new in (
            ("$(pkg-config --cflags rill)", "-Wall -Wextra -Werror -I " + INCLUDE),
            ("$(pkg-config --libs rill)", "%s -Wl,-rpath,%s" % (library, os.path.dirname(library))),
            ("c++ ", " ".join(CXX) + " "),
            ("\ncc ", "\n%s " % " ".join(CC)),
            ("rillcc ", support.RILLCC + " "),
        ):
            self.assertIn(old, commands)
            commands = commands.replace(old, new)
        self.assertEqual(self.run_compiler(["sh", "-ec", commands]), (0, ""))
        done = subprocess.run([self.path("program")], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "1998\n499.5\n", ""))

    def test_a_program_launches_unlisted_instances(self):
        self.build()
        for compiler in [CXX] + ([[CUDA_CLANG]] if CUDA_CLANG else []):
            with self.subTest(compiler=compiler):
                self.compile_program(compiler)
                self.kernels("--instances-of", "program.o", "--depfile", "k.d")
                self.assertEqual(self.launched(), LAUNCHED)
                names = "scale_float_7 scale_double_3 sum_float_pair many_int_float_short many hand plain".split()
                self.assertEqual(self.names(), sorted(names))
                self.assertIn("program.o", self.read("k.d"))

    def test_a_list_has_the_instances_of_the_program(self):
        self.build()
        text = "ns::scale<float, 7>\nns::scale<double>\nmany<int, float, short>\nby_hand<long>\nagain = by_hand<short>\n"
        self.write("list.txt", text + "many = many<long>\n")
        self.kernels("--instances", "list.txt", "--instances-of", "program.o")
        self.assertEqual(self.launched(), LAUNCHED)
        listed = ["scale_float_7", "scale_double", "many_int_float_short", "by_hand_long", "again", "many"]
        self.assertEqual(self.names(), sorted(["hand", "plain", "sum_float_pair", "many_2", *listed]))
        self.write("list.txt", text + "many<>\n")
        program = PROGRAM.replace("n += sum_", "if (n) n += n ? 0 : sum_").replace("n += by_hand_", "if (n) n += by_hand_")
        lines = [line for line in program.splitlines(keepends=True) if " sum_launch" not in line and "by_hand" not in line]
        self.write("program.cpp", "".join(lines).replace("  pair two = { 1, 2 };\n", ""))
        self.compile_program(CXX)
        self.kernels("--instances", "list.txt")
        self.assertEqual(self.launched(), "".join(line + "\n" for line in LAUNCHED.splitlines() if "3sum" not in line and "hand" not in line))

    def test_archives_are_read(self):
        self.build()
        long = "a_file_with_a_name_that_is_long.o"
        os.rename(self.path("program.o"), self.path(long))
        self.write("empty.c", "int nothing;\n")
        self.assertEqual(self.run_compiler([*CC, "-c", "empty.c"]), (0, ""))
        for kind, archive in (("rc", "usual.a"), ("rcT", "thin.a")):
            self.assertEqual(self.run_compiler(["ar", kind, archive, "empty.o", long]), (0, ""))
            self.kernels("--instances-of", archive)
            self.assertIn("_ZN2ns2v15scaleIfLi7EEEviT_PS2_", self.read("k.rill.c"))
        self.assertEqual(self.run_compiler([*CC, "-I", INCLUDE, "-c", "k.rill.c"]), (0, ""))
        os.unlink(self.path(long))
        self.refused(r"cannot read .*%s: No such file" % long, "--instances-of", "thin.a")
        with open(self.path("usual.a"), "r+b") as file:
            file.seek(8 + 48)
            file.write(b"nonsense  ")
        self.refused(r"usual\.a: this archive cannot be read", "--instances-of", "usual.a")

    def test_templates_of_other_sources_are_left_out(self):
        """Templates of another source, and instances that one of the files defines."""
        program = '#include "k.rill.h"\ntemplate <class T> rill_kernel_ref *rill_instance_other();\n'
        program += "int main() { const rill_launch l = rill_launch_1d(1, 1); int n; return rill_instance_other<int>() == nullptr"
        program += " || scale_launch<int, 2>({}, &l, &n) != RILL_OK; }\n"
        self.build(SCALE, program)
        self.kernels("--instances-of", "program.o")
        self.assertEqual(self.read("k.rill.c").count("rill_kernel_ref *instance_"), 2)
        self.assertEqual(self.run_compiler([*CC, "-I", INCLUDE, "-c", "k.rill.c"]), (0, ""))
        nothing = r"k\.kernel\.cu: no object refers to an instance of its kernel templates: scale"
        self.refused(nothing, "--instances-of", "program.o", "--instances-of", "k.rill.o")
        self.refused(nothing, "--instances-of", "k.rill.o")

    def test_the_prefix_applies_to_instances(self):
        source = SCALE.replace("T *x", "T *x, rill_half half")  # a type of rill's, in a header of its own
        self.build(source, PROGRAM[: PROGRAM.index("  int n")].replace("struct pair { float a, b; };\n", "")
                   + "  double x = 1;\n  return mine_scale_launch<double, 5>({}, &launch, &x, rill_half{}) != RILL_OK;\n}\n", ["--prefix", "mine_"])
        self.kernels("--instances-of", "program.o", "--prefix", "mine_")
        self.assertEqual(self.launched(), "_Z5scaleIdLi5EEvPT_9rill_half: 8 2\n")
        self.refused("k.kernel.cu: no object refers to", "--instances-of", "program.o", "--prefix", "other_")

    def test_arguments_without_a_name_are_refused(self):
        program = '#include "k.rill.h"\nint main() {\n  const rill_launch l = rill_launch_1d(1, 1);\n  auto by = [](int i) { return i; };\n'
        program += "  return scale_launch<decltype(by), 1>({}, &l, nullptr) != RILL_OK;\n}\n"
        self.build(SCALE, program, for_program=["-w"])  # of which compilers warn
        self.refused(r"program\.o: it refers to scale<.*lambda.*>, which a kernel source cannot name", "--instances-of", "program.o")

    def test_a_type_that_the_source_does_not_have(self):
        program = '#include "k.rill.h"\nstruct mine { int x; };\nint main() {\n  const rill_launch l = rill_launch_1d(1, 1);\n'
        self.build(SCALE, program + "  return scale_launch<mine, 1>({}, &l, nullptr) != RILL_OK;\n}\n")
        self.refused(r"program\.o: scale<mine, 1>: .*mine", "--instances-of", "program.o")
        result = self.rillcc("--target", HOST, "-o", "k.rill.c", "--instances-of", "program.o", "k.kernel.cu")
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_invalid_objects_are_refused(self):
        self.build()
        self.refused("cannot read nowhere.o: No such file", "--instances-of", "nowhere.o")
        self.refused(r"program\.cpp: it is not an ELF object", "--instances-of", "program.cpp")
        with open(self.path("program.o"), "rb") as file:
            data = file.read()
        for size in (4, 63, 100, len(data) - 700):
            with open(self.path("cut.o"), "wb") as file:
                file.write(data[:size])
            self.refused(r"cut\.o: it cannot be read", "--instances-of", "cut.o")
        self.compile_program(CXX, "-flto")
        self.refused(r"program\.o: it (is no ELF object|has no code).* compiled with -flto", "--instances-of", "program.o")

    def test_templates_without_a_launch_function_are_explained(self):
        self.build()
        header = self.read("k.rill.h")
        self.assertIn("/* `moded`: no launch function, since Mode M has a type that no header declares here", header)
        self.assertIn("/* `two`: no launch function, since there are 2 templates of that name. */", header)
        self.assertIn("/** Launches `sum<T, Op>`.  The size of `first` is checked at the launch. */", header)
        self.write("mode.h", "enum Mode { none };\nstruct pair;\n")
        result = self.rillcc("--header", "k.rill.h", "--include", "mode.h", "k.kernel.cu")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("template <Mode M>\nRILL_NODISCARD inline rill_status moded_launch(", self.read("k.rill.h"))

    def test_the_header_can_be_written_alone(self):
        self.build()
        self.assertEqual(sorted(os.listdir(self.folder)), ["k.kernel.cu", "k.rill.h", "program.cpp", "program.o"])
        result = self.rillcc("-o", "k.rill.c", self.write("t.kernel.cu", SCALE))
        self.assertRegex(result.stderr, r"\Arillcc: .*its kernels are templates.*--instances FILE, or use --instances-of")
        self.assertEqual(self.run_compiler([*CC, *STRICT_C, "-I", INCLUDE, "-x", "c", "-fsyntax-only", "k.rill.h"])[0], 0)


CUDA_PROGRAM = r"""#include <cstdio>
#include <cuda_runtime.h>
#include "nowhere/helper-functions.h"
#include "../../common/nowhere.h"
#include "own.cuh"
#define BLOCK 256
#define GRID(n, b) (((n) + (b) - 1) / (b))
#define LAUNCH(T, N) scale<T, N><<<GRID(n, BLOCK), BLOCK>>>(n, (T *)p)
namespace deep {
struct vec { float x; };
enum class mode { a, b };
template <class T, mode M = mode::a> __global__ void move(T *x) { x[0] = T(); }
void go(vec *p) { move<vec><<<1, 2>>>(p); move<vec, mode::b> <<< 1, 2 >>> (p); }
}
template <class T, int N> __global__ void scale(int n, T *x) { x[0] = N; }
template <int N, class T> __global__ void part(T *x) { x[0] = N; }
__global__ void plain(int n) {}
// commented<int><<<1, 2>>>(p);
/* also<int><<<1, 2>>>(p); */
#if 0
off<int><<<1, 1>>>();
#endif
template <class T, int N> void run(int n, T *p) {
  using U = typename std::remove_const<T>::type;
  scale<T, N><<<dim3(n, 1), 256, 0, 0>>>(n, p);
  scale<U, 4><<<1, (n > 3 ? 1 : 2)>>>(n, p);
  scale<float, 4><<<1, n >> 2>>>(n, (float *)p);
}
int main() {
  int n = 4;
  void *p = 0;
  puts("fake<int><<<1, 2>>>(x)");
  LAUNCH(float, 4);
  LAUNCH(double, (2 > 1 ? 8 : 4));
  constexpr int W = 2 * 8;
  scale<float, W><<<1, 1>>>(n, (float *)p);
  { constexpr int W = 3; scale<float, W><<<1, 1>>>(n, (float *)p); }
  typedef unsigned long long big;
  if (n > 3) scale<big, -W - 1><<<1, 1>>>(n, (big *)p); else ::plain<<<1, 1>>>(n);
  part<4><<<1, 1>>>((float *)p);
  scale<wrapped<int, wrapped<char, int>>, 1 << 3><<<1, 1>>>(0, 0);
  auto kernel = &scale<short, 9>;
  kernel<<<1, 1>>>(n, (short *)p);
  auto generic = [&](auto tag) { scale<decltype(tag), 4><<<1, 1>>>(1, &tag); };
  deep::move<deep::vec><<<1, 1>>>((deep::vec *)0);
  scale<float, BLOCK>
    <<<1, 2>>>(0, 0);
  scale<float, sizeof(n)><<<1, 1>>>(0, 0);
  struct local { int x; };
  scale<local, 1><<<1, 1>>>(0, 0);
  auto changes = scale<int, 5>;
  if (n > 2) changes = scale<int, 6>;
  changes<<<1, 1>>>(0, 0);
  table[n]<<<1, 1>>>(0);
  elsewhere<<<1, 1>>>(0);
  std::cout << n << "<<<";
}
"""
LAUNCHES = """# The launches in p.cu: for rillcc --instances.
# own.cuh:3
inside<int>
# p.cu:13, p.cu:45
deep::move<deep::vec>
# p.cu:13
deep::move<deep::vec, deep::mode::b>
# p.cu:27, p.cu:33
scale<float, 4>
# p.cu:34
scale<double, (2 > 1 ? 8 : 4)>
# p.cu:36
scale<float, (2 * 8)>
# p.cu:37
scale<float, 3>
# p.cu:39
scale<unsigned long long, -(2 * 8) - 1>
# p.cu:41
scale<wrapped<int, wrapped<char, int>>, 1 << 3>
# p.cu:43
scale<short, 9>
# p.cu:47
scale<float, 256>
# p.cu:25: scale<T, N> depends on T, N of a template
# p.cu:26: scale<typename std::remove_const<T>::type, 4> depends on T of a template
# p.cu:39: plain is not a template and needs no line
# p.cu:40: part<4> leaves template arguments to be deduced: write them
# p.cu:44: scale<decltype(tag), 4> depends on decltype of a function
# p.cu:48: scale<float, sizeof(n)> depends on n of a function
# p.cu:50: scale<local, 1> depends on local of a function
# p.cu:53: changes: write the kernel that it stands for
# p.cu:54: an expression: write the kernel that it stands for
# p.cu:55: elsewhere: if it is a template, write its arguments
"""


class Launches(support.TestCase):
    """--list-launches."""

    def listed(self, *arguments, **environment):
        result = self.rillcc("--list-launches", *arguments, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_the_launches_of_a_program(self):
        self.write("own.cuh", "#pragma once\ntemplate <class T> __global__ void inside(T *x) { x[0] = 1; }\n"
                   "inline void call(int *x) { inside<int><<<1, 1>>>(x); }\n")
        self.write("p.cu", CUDA_PROGRAM)
        for compiler in ["c++"] + ([CUDA_CLANG] if CUDA_CLANG else []):
            with self.subTest(compiler=compiler):
                self.assertEqual(self.listed("p.cu", RILL_CXX=compiler), LAUNCHES)

    def test_the_list_of_a_program_compiles(self):
        """The list of a program makes the kernels that it launches; and definitions are taken from the command."""
        kernels = "template <class T, int N> __global__ void scale(int n, T *x) { x[n] = N; }\n"
        self.write("p.cu", kernels + "int main() { scale<float, SIZE><<<1, 1>>>(0, 0); scale<int, 1><<<1, 1>>>(0, 0); }\n")
        self.write("list.txt", self.listed("p.cu", "-D", "SIZE=3"))
        source = self.write("k.kernel.cu", kernels)
        c_file, _ = self.compile(source, "--cuda-names", "--target", HOST, "--instances", "list.txt")
        self.assertEqual(set(Bundle(self, c_file, "k_bundle").kernels), {"_Z5scaleIfLi3EEviPT_", "_Z5scaleIiLi1EEviPT_"})

    def test_list_launches_compiles_nothing(self):
        for arguments in ((), ("p.cu", "-o", "p.rill.c"), ("p.cu", "--header", "p.h")):
            result = self.rillcc("--list-launches", *arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn("--list-launches needs a source and no output file", result.stderr)


if __name__ == "__main__":
    support.main()
