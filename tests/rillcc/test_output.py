#!/usr/bin/env python3
"""What rillcc writes beside the images: names, headers, dependencies; and what it says when it cannot."""

import os
import re
import shutil
import subprocess
import sys
import unittest

import support
from support import CC, CLANG, CUDA_CLANG, CXX, HERE, HIPCC, HOST, INCLUDE, NVCC, ONE, ONE_OF_EACH, SOURCES, STRICT_C, STRICT_CXX
from support import Bundle

# Types that CUDA's headers declare, and those of a source, as a program in C sees them.
TYPES = {"half *": "rill_half *", "float4 *": "rill_float4 *", "int2 const *": "const rill_int2 *"}
TYPES.update({"__nv_bfloat16 *": "rill_bfloat16 *", "const half2 *": "const rill_half2 *", "dim3": "rill_dim3"})
TYPES.update({"const float4 *const *": "const rill_float4 *const *", "float3": "rill_float3", "half": "rill_half"})
TYPES.update({"point *": "struct point *", "const struct point *": "const struct point *", "both **": "union both **"})
TYPES.update({"volatile point *": "volatile struct point *", "tagged *": "struct tag_of_it *", "wide *": "struct wide *"})
TYPES.update({"unnamed *": "void *", "geo::line *": "void *", "const list<float> *": "const void *"})
TYPES.update({"color *": "void *", "thing *": "void *", "heir *": "struct heir *"})
STRUCTS = """struct point { float x, y; };
typedef struct tag_of_it { int a; } tagged;
typedef struct { int a; } unnamed;
union both { int i; float f; };
struct __align__(16) wide { float x[4]; };
struct heir final : point { int z; };
enum struct color : short { RED };
class thing { int x; };
namespace geo { struct line { float a; }; }
template <class T> struct list { T x; };
"""


class Output(support.TestCase):
    """Names, headers, dependencies."""

    @support.long
    def test_macros_of_a_source_do_not_reach_the_dialect(self):
        words = "T P I N M B F E R U value block name kernel used section begin call args index size thread lane mask"
        words += " width result Body Tag Forms forms annotate note group tile number count first last line file text"
        words += " v a b by room there threads warp lanes live step other Operation checked rill from to"
        text = "".join("#define %s %d\n" % (word, i) for i, word in enumerate(words.split()))
        text += "#include <cuda_runtime.h>\n#include <cooperative_groups/reduce.h>\n"
        text += "RILL_KERNEL(own, const int n, float *x) {\n  RILL_DYNAMIC_SHARED(float, tile_);\n  __shared__ int s[4];\n"
        text += "  s[threadIdx.x & 3] = T;\n  tile_[0] = n;\n  __syncthreads();\n  x[0] = tile_[0] + s[0] + rill_shuffle_down(n, 1);\n}\n"
        text += "__global__ void plain(const int n, float *x) { x[0] = __shfl_xor_sync(~0u, n, 1) + P; }\n"
        text += "template <class V> __global__ void form(V *x) { x[0] = V(value); }\n"
        text += "RILL_KERNEL_INSTANCE(form_of_float, form<float>);\n"
        source = self.write("k.kernel.cu", text)
        _, header = self.compile(source, "--cuda-names", *ONE_OF_EACH)
        for name in ("own", "plain", "form_of_float"):
            self.assertIn("%s_launch(rill_stream" % name, self.read(header))
        self.compile(source, "--cuda-names", "--target", HOST, "--fibers")
        # One that names the header itself, after its macros.
        own = "#include <cuda_runtime.h>\n#include <cooperative_groups/reduce.h>\n"
        text = text.replace(own, "#include <rill/device/cuda_names.h>\n")
        self.compile(self.write("k.kernel.cu", text), *ONE_OF_EACH)

    @support.long
    def test_functions_of_a_source_go_before_those_that_nvcc_would_have(self):
        text = "#include <math_constants.h>\n#include <cuda_fp8.h>\n#include <cmath>\n#include <vector>\n"
        text += "#ifdef __CUDACC__\n#define ANYWHERE __host__ __device__\n#else\n#define ANYWHERE\n#endif\n"
        text += "ANYWHERE inline float twice(float x) { return 2 * x; }\n"
        text += "#if __CUDA_ARCH__ < 600 || CUDART_VERSION < 9000\n#error old\n#endif\n"
        text += "inline __device__ int max(int a, int b) { return a < b ? b : a; }\n"
        text += "inline __device__ int min(int a, int b) { return b < a ? b : a; }\n"
        text += "inline __device__ float rsqrtf(float x) { return 1.0f / sqrtf(x); }\n"
        text += "__global__ void k(float *x) { x[0] = twice(rsqrtf(x[1])) + CUDART_PI_F + max(1, 2) + min(1u, 2u) + max(x[0], 1.0f); }\n"
        source = self.write("k.kernel.cu", text)
        for arguments in [(), ("--fibers",), ("--clang", "none")]:
            self.compile(source, "--cuda-names", "--target", HOST, *arguments)
        if CLANG:
            self.compile(source, "--cuda-names", "--target", "hip:gfx90a", "--hipcc", "none")

    def test_plain_kernels_have_their_names_and_types_in_c(self):
        twice = "__global__ void k(int *x) {}\n__global__ void k(float *x) {}\n"
        source = self.write("k.kernel.cu", twice)
        result = self.rillcc("--target", HOST, "-o", "k.rill.c", source)
        self.assertRegex(result.stderr, "_Z1kPi and _Z1kPf are both called \"k\": give each its own name with RILL_KERNEL_INSTANCE")
        text = "struct line { double a; char b; };\n/* __global__ void k(*/\n"
        text += "__global__ void __launch_bounds__(64, 2)\nk(const int count, line by, const line *many, // one\n  float *x) {}\n"
        _, header = self.compile(self.write("k.kernel.cu", text), "--target", HOST)
        found = " ".join(self.read(header).split())
        self.assertIn("int count, const void *by, const struct line *many, float *x) {", found)
        self.assertIn("`by` points to a value of 16 bytes, a `line`.", found)
        self.assertIn("{ by, 16 }", found)

    def test_the_prefix_applies_to_every_name(self):
        c_file, header = self.compile(SOURCES["gate"], "--target", HOST, "--prefix", "mine_")
        bundle = Bundle(self, c_file, "mine_gate_bundle")
        self.assertEqual(bundle.data.name, b"gate")
        with open(header, encoding="utf-8") as file:
            text = file.read()
        for name in ("mine_gate_bundle", "rill_ref_mine_increment", "mine_increment_launch"):
            self.assertIn(name, text)
        names = re.findall(r"\b(\w+_(?:bundle|ref|launch))\b", text)
        free = {"rill_kernel_ref", "rill_launch", "rill_stream_launch_ref", "rill_stream_launch_typed", "rill_bundle"}
        self.assertEqual([name for name in names if not name.startswith("mine_") and name not in free], [])

    def test_one_program_may_have_two_bundles(self):
        sources = []
        for prefix in ("", "other_"):
            c_file, header = self.compile(SOURCES["gate"], "--target", HOST, "--prefix", prefix)
            for path in (c_file, header):
                os.rename(path, path.replace("out.", prefix + "gate."))
            sources.append(prefix + "gate.rill.c")
        user = self.write("user.c", '#include "gate.rill.h"\n#include "other_gate.rill.h"\n')
        command = CC + STRICT_C + ["-I", INCLUDE, "-shared", "-o", "both.so", *sources, user]
        self.assertEqual(self.run_compiler(command), (0, ""))

    def test_launch_functions_are_typed(self):
        self.compile(SOURCES["basic"], "--target", HOST)
        good = "(void)!axpy_launch(RILL_NULL_STREAM, NULL, 1, 2.0f, f, f)"
        bad = "(void)!axpy_launch(RILL_NULL_STREAM, NULL, 1, 2.0f, f, (double *)0)"
        for call, outcome in ((good, 0), (bad, 1)):
            text = '#include "out.rill.h"\nvoid g(float *f);\nvoid g(float *f) { %s; }\n' % call
            for compiler, name in ((CC + STRICT_C, "user.c"), (CXX + STRICT_CXX, "user.cc")):
                command = compiler + ["-I", INCLUDE, "-fsyntax-only", self.write(name, text)]
                self.assertEqual(min(self.run_compiler(command)[0], 1), outcome)

    def typed(self, *arguments):
        """Returns the header of a kernel that takes one of each type, and how the source writes these."""
        parameters = ", ".join("%s p%d" % (kind, i) for i, kind in enumerate(TYPES))
        source = self.write("k.kernel.cu", STRUCTS + "__global__ void k(%s) {}\n" % parameters)
        return self.compile(source, "--cuda-names", "--target", HOST, *arguments)

    def test_launch_functions_have_the_types_of_the_source(self):
        for arguments in ((), ("--clang", "none")):
            with self.subTest(arguments=arguments):
                _, header = self.typed(*arguments)
                found = " ".join(self.read(header).split())
                (parameters,) = re.findall(r"k_launch\(rill_stream stream, const rill_launch \*launch, (.*?)\) \{", found)
                types = [re.sub(r" ?\w+$", "", parameter) for parameter in parameters.split(", ")]
                self.assertEqual(dict(zip(TYPES, types)), TYPES)

    def test_types_without_cuda_names(self):
        """A source may have a float4 of its own."""
        text = "#include <rill/device/kernel.h>\nstruct float4 { float v[4]; };\n"
        source = self.write("k.kernel.cu", text + "RILL_KERNEL(k, float4 *x, const uint3 *y, dim3 z) {}\n")
        _, header = self.compile(source, "--target", HOST)
        found = " ".join(self.read(header).split())
        self.assertIn("*launch, struct float4 *x, const rill_uint3 *y, rill_dim3 z) {", found)

    def test_generated_types_fit_those_of_the_program(self):
        """In C and C++: the program's own structs before the header and after it, and what does not fit is refused."""
        c_file, _ = self.typed()
        own = "struct point { float x, y; };\nunion both { int i; float f; };\n"
        use = "struct user { struct point at; rill_float4 color; rill_half2 pair; };\nvoid g(struct user *u);\n"
        use += "void g(struct user *u) { u->color.w = 1; u->pair.x = u->pair.y; u->at.x = 2; %s }\n"
        include = '#include "out.rill.h"\n'
        text = "RILL_KERNEL(move, float4 *colors, point *points) { colors[0].x = points[0].x; }\n"
        self.compile(self.write("k.kernel.cu", STRUCTS + text), "--cuda-names", "--target", HOST)
        call = "(void)!move_launch(RILL_NULL_STREAM, NULL, %s);"
        good = [call % "&u->color, &u->at", ""]
        bad = [call % wrong for wrong in ("&u->pair, &u->at", "&u->color.x, &u->at", "&u->color, &u->pair")]
        compilers = ((CC + STRICT_C, "user.c"), (CXX + STRICT_CXX, "user.cc"))
        for compiler, name in compilers:
            command = compiler + ["-I", INCLUDE, "-fsyntax-only", self.path(name)]
            for order in (own + include, include + own):
                for body in good + bad:
                    self.write(name, order + use % body)
                    done = self.run_compiler(command)
                    self.assertEqual(done[0] == 0, body in good, done[1])
        self.typed()
        self.assertEqual(self.run_compiler(CC + STRICT_C + ["-I", INCLUDE, "-fsyntax-only", c_file]), (0, ""))

    def test_generated_types_fit_those_of_vendors(self):
        """Includes the headers of CUDA and HIP that are here, before rillcc's header and after it."""
        self.typed()
        own, user, tried = '#include "out.rill.h"\n', self.path("user.cc"), 0
        cuda = next((path for path in ("/usr/local/cuda/include", "/usr/include") if os.path.exists(path + "/cuda_fp16.h")), None)
        sets = [(["-isystem", cuda], ("vector_types.h", "cuda_fp16.h", "cuda_bf16.h"))] if cuda else []
        if os.path.exists("/usr/include/hip/hip_fp16.h"):
            sets.append((["-D__HIP_PLATFORM_AMD__"], ("hip/hip_runtime_api.h", "hip/hip_vector_types.h", "hip/hip_fp16.h")))
        for options, headers in sets:
            theirs = "".join("#include <%s>\n" % header for header in headers)
            if self.run_compiler([*CXX, *options, "-std=c++17", "-w", "-fsyntax-only", self.write("user.cc", theirs)])[0]:
                continue  # they want a compiler of their own
            for order in (own + theirs, theirs + own):
                self.write("user.cc", order)
                command = [*CXX, *STRICT_CXX, *options, "-w", "-I", INCLUDE, "-fsyntax-only", user]
                self.assertEqual(self.run_compiler(command), (0, ""), order)
            tried += 1
        if tried == 0:
            self.skipTest("no headers of CUDA or HIP that a C++ compiler takes")

    def test_types_have_the_layout_of_cuda(self):
        """rill's vectors are as large and as aligned as CUDA's, by every compiler that is here."""
        text = "#include <rill/device/vectors.h>\n"
        same = "static_assert(sizeof(rill_%s) == sizeof(%s) && alignof(rill_%s) == alignof(%s), \"%s\");\n"
        for kind in "char uchar short ushort int uint long ulong longlong ulonglong float double".split():
            for count in "1234":
                # Of 32 bytes: nvcc 13 warns, having two alignments for these, and HIP's headers align them to 32.
                large = count == "4" and kind in ("long", "ulong", "longlong", "ulonglong", "double")
                line = same % ((kind + count,) * 5)
                text += "#if RILL_ON_CPU\n%s#endif\n" % line if large else line
        for theirs, ours in (("__half", "half"), ("__half2", "half2"), ("__nv_bfloat16", "bfloat16"), ("__nv_bfloat162", "bfloat162")):
            text += "#if !RILL_ON_HIP\n%s#endif\n" % (same % (ours, theirs, ours, theirs, theirs))
        self.compile(self.write("k.kernel.cu", text + ONE), "--cuda-names", *ONE_OF_EACH)

    def test_launch_functions_name_themselves(self):
        """In errors: the library gets the name of the function that the program called."""
        c_file, _ = self.compile(self.write("k.kernel.cu", ONE), "--target", HOST, "--prefix", "my_")
        stub = "#include <rill/kernel.h>\n#include <stdio.h>\n"
        stub += "rill_status rill_stream_launch_typed(rill_stream s, rill_kernel_ref *r, const rill_launch *l,\n"
        stub += "                                     const rill_arg *a, size_t n, const char *f) {\n"
        stub += "  (void)s, (void)r, (void)l, (void)a, (void)n;\n  return puts(f) < 0;\n}\n"
        call = '#include "out.rill.h"\nint main(void) { return my_one_launch(RILL_NULL_STREAM, NULL, 1, NULL); }\n'
        objects = [self.path("%s.o" % i) for i in range(3)]
        strict = ["-I", INCLUDE, "-c"]
        for i, source in enumerate((c_file, self.write("stub.c", stub))):
            self.assertEqual(self.run_compiler([*CC, *STRICT_C, *strict, "-o", objects[i], source]), (0, ""))
        for compiler, name in ((CC + STRICT_C, "user.c"), (CXX + STRICT_CXX, "user.cc")):
            self.assertEqual(self.run_compiler([*compiler, *strict, "-o", objects[2], self.write(name, call)]), (0, ""))
            self.assertEqual(self.run_compiler([*CC, "-o", self.path("user"), *objects]), (0, ""))
            done = subprocess.run([self.path("user")], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, "my_one_launch\n"))

    def test_parameter_names_of_the_launch_function(self):
        source = self.write("k.kernel.cu", ONE + "RILL_KERNEL(two, int stream, int launch, int *args) { *args = 1; }\n")
        c_file, header = self.compile(source, "--target", HOST)
        user = self.write("user.c", '#include "%s"\n' % os.path.basename(header))
        command = CC + STRICT_C + ["-I", INCLUDE, "-fsyntax-only", user, c_file]
        self.assertEqual(self.run_compiler(command), (0, ""))

    def test_kernels_take_structs(self):
        guard = "#ifndef POINT_H\n#define POINT_H\n%s\n#endif\n"
        self.write("point.h", guard % "typedef struct point { short x, y, z; } point;")
        text = '#include <rill/device/kernel.h>\n#include "point.h"\n'
        text += "RILL_KERNEL(move, struct point by, point *points, const struct point *const *all) {\n"
        text += "  points[0].x += by.x + all[0]->x; }\n"
        source = self.write("k.kernel.cu", text)
        c_file, header = self.compile(source, "--target", HOST, "--include", "point.h")
        bundle = Bundle(self, c_file, "k_bundle")
        self.assertEqual(bundle.kernels["move"], [("by", 6), ("points", 8), ("all", 8)])
        user = self.write("user.cc", '#include "%s"\n' % os.path.basename(header))
        self.assertEqual(self.run_compiler(CXX + STRICT_CXX + ["-I", INCLUDE, "-fsyntax-only", user]), (0, ""))

    def test_the_depfile_lists_every_header(self):
        folder = self.path("with space")
        os.mkdir(folder)
        source = self.write("with space/k.kernel.cu", '#include "helper.h"\n' + ONE + "#include <stdlib.h>\n")
        self.write("with space/helper.h", "")
        self.compile(source, *ONE_OF_EACH, "--depfile", "k.d")
        text = self.read("k.d")
        self.assertTrue(text.startswith("%s %s:" % (self.path("out.rill.c"), self.path("out.rill.h"))))
        files = text.replace("\\ ", "\0").replace("\\\n", " ").split()[2:]
        files = {os.path.normpath(file.replace("\0", " ")) for file in files}
        local = {source, os.path.join(folder, "helper.h")}
        own = {file for file in files if file.startswith(INCLUDE + os.sep)}
        self.assertEqual(files - own, local)
        for name in ("kernel.h", "on_host.h", "host_kernels.h", "cpu_image.h"):
            self.assertIn(os.path.join(INCLUDE, "rill", "device", name), own)

    def test_options_reach_the_compilers(self):
        self.write("lib.h", "#define SIZE float\n")
        text = "#include <lib.h>\n#include <rill/device/kernel.h>\nRILL_KERNEL(NAME, SIZE *x) { *x = VALUE; }\n"
        source = self.write("k.kernel.cu", text)
        options = ("-I", ".", "-D", "NAME=named", "-DVALUE=3", "--fp-contract", "off")
        c_file, _ = self.compile(source, *ONE_OF_EACH, *options)
        self.assertEqual(Bundle(self, c_file, "k_bundle").kernels, {"named": [("x", 8)]})

    @support.long
    def test_the_same_input_gives_the_same_output(self):
        outputs = []
        for name in ("a", "b"):
            os.mkdir(self.path(name))
            c_file, header = self.compile(SOURCES["dialect"], *ONE_OF_EACH, TMPDIR=self.path(name))
            outputs.append([self.read(c_file), self.read(header)])
            self.assertEqual(os.listdir(self.path(name)), [])
        self.assertTrue(outputs[0] == outputs[1])

    @support.long
    def test_output_does_not_depend_on_the_source_folder(self):
        # Not for cuda: nvcc puts a hash of the path in the names of static functions.
        hip = ("--target", "hip:gfx90a") if HIPCC or CLANG else ()
        outputs = []
        for name in ("a", "b"):
            os.mkdir(self.path(name))
            for source in (SOURCES["dialect"], os.path.join(HERE, "dialect_helpers.h")):
                shutil.copy(source, self.path(name))
            c_file, header = self.compile(self.path(name + "/dialect.kernel.cu"), "--target", HOST, *hip)
            outputs.append([self.read(c_file), self.read(header)])
        self.assertTrue(outputs[0] == outputs[1])


class Errors(support.TestCase):
    """Every refusal: what it says, and that it leaves nothing."""

    def refused(self, text, expected, *arguments, **environment):
        source = self.write("k.kernel.cu", text)
        before = sorted(os.listdir(self.folder))
        command = ["-o", "k.rill.c", "--header", "k.rill.h", "--depfile", "k.d"]
        command += arguments or ("--target", HOST)
        result = self.rillcc(*command, os.path.basename(source), **environment)
        self.assertNotEqual(result.returncode, 0)
        self.assertNotIn("Traceback", result.stderr)
        self.assertRegex(result.stderr, expected)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def kernel(self, text):
        return "#include <rill/device/kernel.h>\n\n" + text

    def test_invalid_parameters_are_refused(self):
        cases = (
            ("int &n", "a kernel cannot take a reference"),
            ("rill_atomic_probe s", "its type is not trivially copyable"),
            ("long double d", "GPUs have no long double"),
        )
        probe = "struct rill_atomic_probe { rill_atomic_probe(const rill_atomic_probe &) {} };\n"
        for parameters, message in cases:
            with self.subTest(parameters=parameters):
                text = self.kernel(probe + "RILL_KERNEL(k, %s) {}\n" % parameters)
                self.refused(text, r"rillcc: k\.kernel\.cu:4: .*" + message)
        for parameters in ("half h", "x", "void v", "int n = 3", "int n, , int m", "int n, float n"):
            with self.subTest(parameters=parameters):
                text = self.kernel("RILL_KERNEL(k, %s) {}\n" % parameters)
                self.refused(text, r"k\.kernel\.cu:3:\d+: (error|note): (?s:.*)rillcc: k\.kernel\.cu: \S+ cannot compile it")

    def test_malformed_kernels_are_refused(self):
        at = r"(?s)k\.kernel\.cu:3:\d+: (error|note): .*"
        self.refused(self.kernel("int x;\n"), r"rillcc: k\.kernel\.cu: there is no kernel in it")
        template = self.kernel("template <class T> __global__ void k(T *x) { x[0] = 1; }\n")
        self.refused(template, r"rillcc: k\.kernel\.cu: all its kernels are templates or in an unnamed namespace: name instances with RILL_KERNEL_INSTANCE\(")
        several = template + "template <class T> __global__ void k(T *x, int n) { x[0] = n; }\nRILL_KERNEL_INSTANCE(i, k<int>);\n"
        several_of = r"rillcc: k\.kernel\.cu:5: there are several kernels of that name: select one with RILL_KERNEL_INSTANCE\(name, static_cast<void"
        self.refused(several, several_of)
        self.refused(several, several_of, "--target", HOST, "--clang", "none")
        self.refused(self.kernel("RILL_KERNEL(k, int n);\n"), at)
        self.refused(self.kernel("RILL_KERNEL() {}\n"), r"rillcc: k\.kernel\.cu:3: RILL_KERNEL needs a name")
        self.refused(self.kernel("RILL_KERNEL(k) {} RILL_KERNEL(k, int n) {}\n"), r"redefinition|conflicting declaration")
        self.refused(self.kernel("__launch_bounds__(64) RILL_KERNEL(k) { nowhere(); }\n"), at)
        self.refused(self.kernel("RILL_KERNEL(k) { {\n"), r"k\.kernel\.cu:\d:\d+: error: ")

    def test_compiler_messages_pass_through(self):
        text = self.kernel("RILL_KERNEL(k, int *x) {\n  *x = nowhere;\n}\n")
        found = r"(?s)\A(?:[^\n]*In function[^\n]*\n)?k\.kernel\.cu[:(]4.*nowhere.*rillcc: k\.kernel\.cu: %s cannot compile it\n\Z"
        self.refused(text, found % r"\S+")
        self.refused(text, found % r"\S+", "--target", HOST, "--clang", "none")
        self.refused('#include "nowhere.h"\n', r"(?s)k\.kernel\.cu:1.*nowhere\.h.*cannot compile it")
        # What the host's compiler does not see.
        device = "#if defined(__CUDACC__) || defined(__HIP__)\n*x = nowhere;\n#endif\n"
        text = self.kernel("RILL_KERNEL(k, int *x) {\n%s}\n" % device)
        message = r"(?s)k\.kernel\.cu[:(]5.*nowhere.*rillcc: k\.kernel\.cu: for %s:\S+ %s failed with exit status"
        if NVCC:
            self.refused(text, message % ("cuda", "nvcc"), "--target", "cuda:sm_90")
        if CUDA_CLANG:
            clang = message % ("cuda", re.escape(os.path.basename(CUDA_CLANG)))
            self.refused(text, clang, "--target", "cuda:ptx", RILL_NVCC="none")
        if HIPCC:
            self.refused(text, message % ("hip", "hipcc"), "--target", "hip:gfx90a")
        if CLANG:
            clang = message % ("hip", re.escape(os.path.basename(CLANG)))
            self.refused(text, clang, "--target", "hip:gfx90a", RILL_HIPCC="none")

    def test_a_mistake_inside_a_function_of_rill_names_the_line_of_the_call(self):
        text = self.kernel("struct three { int x, y, z; };\nRILL_KERNEL(k, int *x) {\n")
        text += "  *x = rill_shuffle(three{ 1, 2, 3 }, 0).x;\n}\n"
        message = r"(?s)(?=.*a trivially copyable value of 1, 2, 4 or 8 bytes)(?=.*(k\.kernel\.cu[:(]5|line 5 of k\.kernel\.cu))"
        targets = [("--target", HOST, {})]
        if NVCC:
            targets.append(("--target", "cuda:sm_90", {}))
        if CUDA_CLANG:
            targets.append(("--target", "cuda:ptx", {"RILL_NVCC": "none"}))
        if HIPCC:
            targets.append(("--target", "hip:gfx90a", {}))
        if CLANG:
            targets.append(("--target", "hip:gfx90a", {"RILL_HIPCC": "none"}))
        for option, target, environment in targets:
            self.refused(text, message, option, target, **environment)

    def test_headers_of_cuda_for_the_host_are_named(self):
        os.mkdir(self.path("cuda"))
        self.write("cuda/vector_types.h", "struct char1 { signed char x; };\n")
        self.write("cuda/cublas_v2.h", "#include \"vector_types.h\"\n")
        self.write("common.h", "#include <math.h>\n#include <cublas_v2.h>\n")
        text = "#include \"common.h\"\n" + ONE
        message = r"rillcc: \S*common\.h:2: the header included here includes CUDA's own headers"
        for more in (), ("--clang", "none"):
            self.refused(text, message, "--target", HOST, "--cuda-names", "-I", self.path("cuda"), "-I", self.folder, *more)

    def test_cuda_names_with_any_compiler(self):
        self.compile(self.write("k.kernel.cu", ONE), "--target", HOST, "--cuda-names", "--clang", "none")

    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    def test_printing_without_hip_is_refused_in_words(self):
        text = "#include <stdio.h>\n" + self.kernel('RILL_KERNEL(k, int x) {\n  printf("%d", x);\n}\n')
        message = r"(?s)printf in a kernel needs hipcc.*k\.kernel\.cu:5"
        self.refused(text, message, "--target", "hip:gfx90a", RILL_HIPCC="none")

    def test_undefined_function_is_found_at_build_time(self):
        text = self.kernel("int far_away();\nRILL_KERNEL(k, int *x) {\n  *x = far_away();\n}\n")
        place = r'\Arillcc: k\.kernel\.cu:5: "far_away" is declared but not defined: a source [^\n]*\n'
        self.refused(text, place + r"rillcc: k\.kernel\.cu: for cpu:\S+ \S+ failed with exit status 1\n\Z")

    @support.long
    def test_names_of_cuda_end_in_what_to_write(self):
        cases = (
            ("x[0] = __expf(x[1]);", r'"__expf" is CUDA\'s: #include <rill/device/cuda_names\.h>'),
            ("x[0] = __shfl_sync(~0u, x[1], 3);", r'"__shfl_sync" is CUDA\'s: #include <rill/device/cuda_names\.h>'),
            ("float4 v = {}; x[0] = v.x;", r'"float4" is CUDA\'s: .*--cuda-names'),
            ("x[0] = __shfl_down(x[1], 1);", r'"__shfl_down" is not in the dialect: write rill_shuffle_down'),
            ("x[0] = clock64();", r'"clock64" is not in the dialect: write rill_clock_ns\(\)'),
            ("int t = 0; x[0] = tex1Dfetch(t, 1);", r'"tex1Dfetch": rill has no textures and no surfaces'),
            ("cudaTextureObject_t t; x[0] = 1;", r'"cudaTextureObject_t": rill has no textures and no surfaces'),
            ("surf2Dwrite(1.0f, x, 0, 0);", r'"surf2Dwrite": rill has no textures and no surfaces'),
            ("one<<<1, 1>>>(x);", "a launch with <<< >>> is for the host"),
            ("cudaDeviceSynchronize();", '"cudaDeviceSynchronize" is for the host'),
            ('int n; asm("mov.u16 %0, 1;" : "=h"(n)); x[0] = n;', "assembly is for one kind of processor: put PTX in an #if"),
            ("this_grid().sync();", '"this_grid": the blocks of a grid cannot wait for each other'),
        )
        for clang in ("", "none"):
            for statement, expected in cases:
                with self.subTest(statement=statement, clang=clang):
                    text = self.kernel("RILL_KERNEL(k, float *x) {\n  %s\n}\n" % statement)
                    options = ("--clang", clang) if clang else ()
                    self.refused(text, r"rillcc: k\.kernel\.cu:4: " + expected, "--target", HOST, *options)

    @support.long
    def test_recursion_is_refused(self):
        function = "__device__ int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
        text = self.kernel(function + "RILL_KERNEL(k, int *x) { *x = f(*x); }\n")
        self.refused(text, r'\Arillcc: k\.kernel\.cu:4: kernel "k" cannot run on the cpu: function "f[^"]*": it calls itself')
        message = r'\Arillcc: k\.kernel\.cu:4: kernel "k": function "f[^"]*" calls itself'
        if NVCC:
            self.refused(text, message, "--target", "cuda:sm_90")
            self.refused(text, message, "--target", "cuda:sm_90", "--clang", "none")
        if HIPCC or CLANG:
            self.refused(text, message, "--target", "hip:gfx90a")

    def test_every_image_of_the_cpu_fails_in_one_line(self):
        text = self.kernel("int far_away();\nRILL_KERNEL(k, int *x) { *x = far_away(); }\n")
        self.refused(text, r"(?m)^rillcc: k\.kernel\.cu: for cpu:[\w,.-]+ \S+ failed with exit status 1\n\Z", "--target", "cpu")

    def test_the_dialect_needs_no_include(self):
        self.compile(self.write("k.kernel.cu", "__global__ void k(float *x) { x[threadIdx.x] = 1; }\n"), *ONE_OF_EACH)

    @unittest.skipUnless(NVCC or HIPCC or CLANG, "no GPU compiler")
    def test_a_kernel_missing_from_an_image_is_named(self):
        condition = "#if !defined(__CUDACC__) && !defined(__HIP__)\n"
        text = ONE + condition + "RILL_KERNEL(only_here) {}\n#endif\n"
        self.refused(text, r'rillcc: k\.kernel\.cu:4: kernel "only_here" is missing from the image for ', "-v", *ONE_OF_EACH)

    def test_unknown_targets_are_refused(self):
        cases = [("metal", "the backends are cuda, hip and cpu"), ("cpu:z80", '"z80" is not one of')]
        if NVCC or CUDA_CLANG:
            cases.append(("cuda:90", '"90" is not sm_NN'))
        if HIPCC or CLANG:
            cases.append(("hip:90a", '"90a" is not gfxNNN'))
        for target, message in cases:
            self.refused(ONE, "rillcc: --target %s: %s" % (target, message), "--target", target)
        nothing = {"RILL_HIPCC": "none", "RILL_CLANG": "none", "RILL_NVCC": "none"}
        reason = "%s is disabled, and clang is disabled; name one with --%s or --clang"
        self.refused(ONE, reason % ("nvcc", "nvcc"), "--target", "cuda", **nothing)
        self.refused(ONE, reason % ("hipcc", "hipcc"), "--target", "hip", **nothing)

    def test_targets_and_compilers_are_listed(self):
        result = self.rillcc("--list-targets")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        *lines, form = (line for line in result.stdout.splitlines() if not line.startswith("no target for "))
        self.assertEqual("\nno target for cuda: " in result.stdout, not NVCC and not CUDA_CLANG)
        self.assertEqual("\nno target for hip: " in result.stdout, not HIPCC and not CLANG)
        self.assertRegex(form, "^barriers on the cpu: " + ("loops, made with libLLVM" if support.LOOPS else "slow, .*clang-19"))
        listed = dict(line.split(None, 1) for line in lines)
        self.assertTrue(all(os.access(program, os.X_OK) for program in listed.values()))
        self.assertIn(HOST, listed)
        self.assertEqual("cuda:sm_90" in listed, bool(NVCC))
        self.assertEqual("cuda:ptx_70" in listed, not NVCC and bool(CUDA_CLANG))
        self.assertEqual("hip:gfx90a" in listed, bool(HIPCC or CLANG))
        nothing = {"RILL_HIPCC": "none", "RILL_CLANG": "none", "RILL_NVCC": "none"}
        result = self.rillcc("--list-targets", "--target", HOST, **nothing)
        self.assertEqual(result.stdout.split()[0], HOST)
        self.assertEqual(result.stdout.count("\n"), 2)
        self.assertRegex(result.stdout, r"\nbarriers on the cpu: slow, .*\(clang is disabled\); clang .* libllvm")
        result = self.rillcc("--list-targets", "--target", "hip", **nothing)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("hipcc is disabled", result.stderr)
        self.without_gpu_compilers()
        self.assertEqual(self.rillcc("--list-targets", "-o", "k.c").returncode, 2)

    def without_gpu_compilers(self):
        """A machine with nothing but the host's compiler: what is missing for each vendor, and what to install."""
        os.mkdir(self.path("bin"))
        for name, program in (("c++", support.CXX[-1]), ("python3", sys.executable), ("env", "env"), ("as", "as"), ("ld", "ld")):
            os.symlink(shutil.which(program) or program, self.path(os.path.join("bin", name)))
        places = {"CUDA_HOME": "/none", "CUDA_PATH": "", "HIP_PATH": "", "ROCM_PATH": "", "RILL_CLANG": ""}
        vendors = {"RILL_NVCC": "none", "RILL_HIPCC": "none"}  # they may lie where they are looked for by default
        said = self.rillcc("--list-targets", PATH=self.path("bin"), **places, **vendors)
        clang = "and no clang 15 or later%s (on Debian and Ubuntu: %s)"
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertIn("\nno target for cuda: nvcc is disabled, " + clang % ("", "clang-19 libclc-19") + "\n", said.stdout)
        lld = clang % (" with lld", "clang-19 lld-19 libclc-19")
        self.assertIn("\nno target for hip: hipcc is disabled, " + lld + "\n", said.stdout)
        self.assertIn(HOST, said.stdout)
        for version, found in (("14.0.6", False), ("15.0.7", True)):
            self.write("bin/clang++", "#!/bin/sh\necho %s\n" % version)
            os.chmod(self.path("bin/clang++"), 0o755)
            said = self.rillcc("--list-targets", PATH=self.path("bin"), RILL_CXX="c++", **places, **vendors)
            self.assertEqual("\ncuda:ptx_70" in "\n" + said.stdout, found, said)
            self.assertIn("no target for hip: ", said.stdout)

    def test_the_version_is_printed(self):
        result = self.rillcc("--version")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open(os.path.join(support.ROOT, "meson.build"), encoding="utf-8") as file:
            self.assertEqual(result.stdout, "rillcc %s\n" % re.findall(r"version: '([\d.]+)'", file.read())[0])

    def test_missing_compilers_are_reported(self):
        self.refused(ONE, "program not found: nowhere-c", RILL_CXX="nowhere-c++")
        self.refused(ONE, "program not found: nowhere-nvcc", RILL_NVCC="nowhere-nvcc")
        self.refused(ONE, "false does not work", "--cxx", "false")

    def test_errors_of_files_are_reported(self):
        result = self.rillcc("-o", "k.c", "nowhere.kernel.cu")
        self.assertEqual((result.returncode, result.stderr), (1, "rillcc: nowhere.kernel.cu: no such file\n"))
        source = self.write("k.kernel.cu", ONE)
        result = self.rillcc("--target", HOST, "-o", "k.c", "--header", "none/k.h", source)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write none/k.h", result.stderr)
        result = self.rillcc("--target", HOST, "-o", "k.c", "--header", "./k.c", source)
        self.assertIn("must be different files", result.stderr)
        self.assertEqual(os.listdir(self.folder), ["k.kernel.cu"])

    def test_a_failure_keeps_existing_files(self):
        self.write("k.rill.c", "old")
        self.refused(self.kernel("RILL_KERNEL(k) { error }\n"), "error")
        self.assertEqual(self.read("k.rill.c"), "old")


if __name__ == "__main__":
    support.main()
