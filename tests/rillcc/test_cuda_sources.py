#!/usr/bin/env python3
"""Sources that people have for CUDA: the macros that they ask, CUDA's headers, and what rillcc says of the rest."""

import os
import re

import support
from support import CLANG, CUDA_CLANG, HIPCC, HOST, NVCC, ONE
from rillcc_lib import cuda_headers, messages

# (how it is called, arguments, environment, whether it is nvcc)
FORMS = [("cpu", ("--target", HOST), {}), ("cpu without clang", ("--target", HOST, "--clang", "none"), {})]
if CUDA_CLANG:
    FORMS.append(("clang for NVIDIA", ("--target", "cuda:ptx", "--nvcc", "none"), {"RILL_CLANG": CUDA_CLANG}))
if CLANG:
    FORMS.append(("clang for AMD", ("--target", "hip:gfx90a", "--hipcc", "none"), {"RILL_CLANG": CLANG}))
if HIPCC:
    FORMS.append(("hipcc", ("--target", "hip:gfx90a"), {"RILL_HIPCC": HIPCC}))
if NVCC:
    FORMS.append(("nvcc", ("--target", "cuda:sm_90"), {"RILL_NVCC": NVCC}))
# In the quick set, one compiler of each kind: the host's two, and clang for GPUs.
SOME_FORMS = [form for form in FORMS if support.LONG or form[0] not in ("clang for AMD", "hipcc", "nvcc")]

VERSIONS = """#include <cuda_runtime.h>
cudaError_t start(cudaStream_t stream, cudaEvent_t event, uint count);
#if !defined(__CUDACC__) || defined(__CUDACC_RTC__)
#error "no CUDA, or CUDA at run time"
#elif CUDA_VERSION < 12000 || CUDA_VERSION != __CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10
#error "CUDA_VERSION is not that of the compiler"
#elif CUDART_VERSION != CUDA_VERSION || __CUDACC_VER_BUILD__ < 0
#error "CUDART_VERSION is not that of the compiler"
#elif __CUDA_API_VER_MAJOR__ != __CUDACC_VER_MAJOR__ || __CUDA_API_VER_MINOR__ != __CUDACC_VER_MINOR__
#error "the interface is not of the version of the compiler"
#elif defined(__NVCC__) && !RILL_ON_CUDA
#error "__NVCC__ is for nvcc"
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 700 || __CUDA_ARCH__ != __CUDA_ARCH_LIST__)
#error "__CUDA_ARCH__ is not that of the target"
#endif
__global__ void k(uint *x) { x[0] = __CUDA_ARCH__; }
"""
# As a header does that finds out which compiler reads it (GLM): the version is asked before any header of CUDA's.
PORTABLE = """#if defined(__CUDACC__)
#if !defined(CUDA_VERSION)
#include <cuda.h>
#endif
#if CUDA_VERSION < 7000
#error "7.0 or higher"
#endif
#define ANYWHERE __device__ __host__
#else
#error "not CUDA"
#endif
ANYWHERE inline float twice(float x) { return 2 * x; }
__global__ void portable(float *x) { x[0] = twice(x[1]); }
"""
# A library's header, and what a user reads of it.
REFUSED = (
    ("cublas_v2.h", "cuBLAS is called on the host, with the stream that rill_stream_native returns; rill has rill_kernels_sgemm_many in kernels/"),
    ("cub/device/device_scan.cuh", "CUB's device-wide functions are called on the host; rill's kernels/ folder has sums, minima, maxima, scans and histograms of arrays"),
    ("cub/block/block_radix_sort.cuh", "rill has BlockReduce, BlockScan, BlockLoad, BlockStore, WarpReduce and WarpScan of CUB; for nvcc alone, include it in an #ifdef __NVCC__"),
    ("curand_kernel.h", "rill has no random number generators: a generator such as Philox or PCG takes a few lines in the source; for nvcc alone, include it in an #ifdef __NVCC__"),
    ("thrust/device_vector.h", "Thrust is called on the host; rill's kernels/ folder has sums, minima, maxima, scans and histograms of arrays"),
    ("mma.h", "rill has no matrix units (WMMA): sum the products in registers, as kernels/sgemm.kernel.cu does; for nvcc alone, include it in an #ifdef __NVCC__"),
    ("nccl.h", "NCCL is called on the host; rill has collective operations in rill/comm.h"),
    ("cuda/std/limits", "include the C++ library's header of that name, without cuda/std; for nvcc alone, include it in an #ifdef __NVCC__"),
)


class CudaSources(support.TestCase):
    def said(self, text, *arguments, **environment):
        source = self.write("k.cu", text)
        result = self.rillcc("-Wno-fibers", "-o", "k.rill.c", *(arguments or ("--target", HOST)), os.path.basename(source), **environment)
        self.assertNotIn("Traceback", result.stderr)
        return result.stderr

    def own_lines(self, *arguments, **environment):
        """What rillcc itself says, but for its last line."""
        return self.own_lines_in(self.said(*arguments, **environment))

    def own_lines_in(self, said):
        lines = [line for line in said.splitlines() if line.startswith("rillcc: ")]
        self.assertRegex(lines[-1], r"^rillcc: k\.cu: (\S+ cannot compile it|for \S+ \S+ failed with exit status 1)$")
        return lines[:-1]

    def check(self, expected, text, *arguments, **environment):
        self.assertEqual(self.own_lines(text, *arguments, **environment), ["rillcc: k.cu:" + line for line in expected])

    def toolkit(self, *headers):
        """Returns a folder as a toolkit's include: whoever reads one of its headers fails."""
        for name in ("cuda_runtime_api.h", *headers):
            path = os.path.join("toolkit", name)
            os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
            self.write(path, '#error "this is the toolkit\'s"\n')
        return self.path("toolkit")

    def test_versions_agree_in_every_form(self):
        for name, arguments, environment in FORMS:
            with self.subTest(form=name):
                text = PORTABLE + VERSIONS
                if name != "nvcc":
                    text += "#ifdef __NVCC__\n#error this is not nvcc\n#endif\n"
                    text += 'static_assert(__CUDA_ARCH__ == 700 && CUDA_VERSION == 12000, "as documented");\n'
                self.assertEqual(self.said(text, "--cuda-names", *arguments, **environment), "")

    def test_a_toolkit_changes_nothing(self):
        known = cuda_headers.EMPTY + cuda_headers.CUB
        folder = self.toolkit(*known, *(name for name, _ in REFUSED))
        text = "".join("#include <%s>\n" % name for name in known) + VERSIONS
        for name, arguments, environment in SOME_FORMS:
            if name != "nvcc":
                with self.subTest(form=name):
                    self.assertEqual(self.said(text, "--cuda-names", *arguments, **environment, CPATH=folder), "")
        self.assertEqual(self.said(text, "--cuda-names", "--target", HOST, "-I", folder), "")
        text, expected = "#include <cuda_fp16.h>\n#include <mma.h>\n" + ONE, "2: <mma.h>: " + dict(REFUSED)["mma.h"]
        self.check([expected], text, "--cuda-names", "--target", HOST, "-I", folder)
        self.check([expected], text, "--cuda-names", "--target", HOST, "--clang", "none", CPATH=folder)

    def test_a_folder_with_a_toolkit_has_other_headers(self):
        folder = self.toolkit("cuda_runtime.h")
        self.write("toolkit/own.h", "enum { ONE_MORE = 1 };\n")
        text = "#include <cuda_runtime.h>\n#include <own.h>\n__global__ void k(int *x) { x[0] = ONE_MORE; }\n"
        self.assertEqual(self.said(text, "--cuda-names", "--target", HOST, "-I", folder), "")

    def test_own_headers_go_first(self):
        os.mkdir(self.path("own"))
        self.write("own/math_functions.h", "enum { OWN = 1 };\n")
        text = "#include <math_functions.h>\n__global__ void k(int *x) { x[0] = OWN; }\n"
        self.assertEqual(self.said(text, "--cuda-names", "--target", HOST, "-I", self.path("own")), "")

    def test_headers_of_libraries_have_a_sentence(self):
        """And nothing else, though the source goes on to use what they declare."""
        text = "".join("#include <%s>\n" % name for name, _ in REFUSED)
        text += "__global__ void k(curandState *s, cublasHandle_t h) { thrust::plus<float> p; nvcuda::wmma::load(s); }\n"
        expected = ["rillcc: k.cu:%d: <%s>: %s\n" % (i, *pair) for i, pair in enumerate(REFUSED, 1)]
        for names, clang in (((), ()), (("--cuda-names",), ("--clang", "none"))):
            said = self.said(text, "--target", HOST, *names, *clang)
            self.assertRegex(said, r"\A%s(.*) cannot compile it\n\Z" % re.escape("".join(expected) + "rillcc: k.cu: "))
        self.write("all.cuh", "\n#include <mma.h>\n")
        line = "rillcc: %s:2: <mma.h>: %s" % (re.escape("./all.cuh"), re.escape(dict(REFUSED)["mma.h"]))
        for clang in ((), ("--clang", "none")):
            said = self.own_lines('#include "all.cuh"\n' + ONE, "--target", HOST, *clang)
            self.assertRegex("\n".join(said), r"\A%s\Z" % line.replace(r"\./", r"(?:\./)?"))

    def test_headers_that_are_not_known_one_by_one(self):
        for name in ("thrust/iterator/some.h", "cub/agent/agent_scan.cuh", "cuda/std/numbers_of_mine"):
            self.assertFalse(name in cuda_headers.CALLED)
            said = "1: <%s>: %s" % (name, cuda_headers.instead_of(name))
            self.check([said], "#include <%s>\n%s" % (name, ONE), "--target", HOST)
        self.check([said], "#include <%s>\n%s" % (name, ONE), "--target", HOST, "--clang", "none")
        self.assertEqual(cuda_headers.instead_of("vector"), "")

    def test_every_sentence_has_headers(self):
        for sentence, names in cuda_headers.INSTEAD.items():
            self.assertTrue(names.split(), sentence)
            self.assertNotRegex(sentence, r'["\n%]|  ')
        self.assertFalse(set(cuda_headers.EMPTY) & set(cuda_headers.CALLED))

    def test_the_option_is_suggested(self):
        said = "1: <%s>: use rillcc --cuda-names, which declares its contents for kernels"
        option = "%d: \"%s\" is a name of CUDA: include <rill/device/cuda_names.h>, or use rillcc --cuda-names"
        kernel = "__global__ void k(float *x) { auto block = cg::this_thread_block(); block.sync(); x[0] = 1; }\n"
        for header in ("cooperative_groups.h", "cuda_fp16.h", "cuda_runtime.h"):
            self.check([said % header], "#include <%s>\n%s" % (header, kernel), "--target", HOST)
        for clang in ((), ("--clang", "none")):
            groups = option % (1, "cooperative_groups")
            self.check([groups], "namespace cg = cooperative_groups;\n" + kernel, "--target", HOST, *clang)
            self.check([groups], "using namespace cooperative_groups;\n__global__ void k() {}\n", "--target", HOST, *clang)
            self.check([option % (1, "float4")], "__global__ void k(float4 *x) { x[0].x = 1; }\n", "--target", HOST, *clang)
            self.check([option % (1, "__popc")], "__global__ void k(int *x) { x[0] = __popc(x[1]); }\n", "--target", HOST, *clang)

    def test_names_of_cub_are_explained(self):
        include = "#include <cub/cub.cuh>\n"
        cases = (
            ("", "cub::BlockReduce<int, 64>::TempStorage t; x[0] = sizeof t;", '"cub" requires #include <cub/cub.cuh> and rillcc --cuda-names'),
            (include, "cub::BlockRadixSort<int, 64, 1>::TempStorage t; x[0] = sizeof t;", '"cub::BlockRadixSort": ' + cuda_headers.CUB_HAS),
            (
                include,
                "cub::DeviceReduce::Sum(x, x);",
                "CUB's device-wide functions are for the host: a kernel source contains only kernels (see docs/guides/FROM_CUDA.md of rill)",
            ),
        )
        for clang in ((), ("--clang", "none")):
            for before, statement, said in cases:
                text = before + "__global__ void k(int *x) { %s }\n" % statement
                self.check(["%d: %s" % (text.count("\n"), said)], text, "--cuda-names", "--target", HOST, *clang)
        self.check(["1: <cub/cub.cuh>: use rillcc --cuda-names, which declares its contents for kernels"], include + ONE, "--target", HOST)

    def test_old_functions_of_cuda_get_advice(self):
        cases = (
            ("x[0] = __shfl_down(x[1], 1);", '"__shfl_down" is from older versions of CUDA: write __shfl_down_sync(~0u, v, delta)'),
            ("x[0] = __ballot(1);", '"__ballot" is from older versions of CUDA: write __ballot_sync(~0u, p)'),
            ('int n; asm("mov.u16 %0, 1;" : "=h"(n)); x[0] = n;', "assembly is for one kind of processor: put PTX in an #ifdef __NVCC__, and C++ in its #else"),
        )
        for clang in ((), ("--clang", "none")):
            for statement, said in cases:
                text = "__global__ void k(float *x) {\n  %s\n}\n" % statement
                self.check(["2: " + said], text, "--cuda-names", "--target", HOST, *clang)
        said = "rillcc: k.cu: there is no kernel in it: write __global__ void name(parameters) { ... }\n"
        self.assertEqual(self.said("int x;\n", "--cuda-names", "--target", HOST), said)

    def test_functions_of_the_c_library_take_one_line(self):
        """Not the macros with which its headers declare them."""
        text = "#include <stdlib.h>\n__global__ void k(float *x) {\n  x[0] = rand();\n}\n"
        for name, arguments, environment in FORMS:
            if "AMD" in name or "clang for" in name or name == "hipcc":
                said = self.said(text, *arguments, **environment)
                self.assertRegex(said, r"k\.cu:3:10: error: [^\n]*'rand'")
                self.assertNotIn("/usr/include", said)
                self.assertEqual(self.own_lines_in(said), ['rillcc: k.cu:3: "rand" is only available on the host'])
        text = "__global__ void k(float *x) {\n  x[0] = acosf(\"s\");\n}\n"
        for clang in ((), ("--clang", "none")):
            said = self.said(text, "--target", HOST, *clang)
            self.assertRegex(said, r"k\.cu:2:\d+: error: ")
            self.assertNotRegex(said, r"/usr/|expanded from macro|In file included")
            self.assertLess(len(said.splitlines()), 12, said)

    def test_notes_of_system_headers_are_left_out(self):
        own = "k.cu:3:1: error: bad\n    3 | x\n      | ^\n"
        note = "/usr/include/bits/mathcalls.h:53:1: note: declared here\n   53 | __MATHCALL (acos);\n      | ^\n"
        macro = "/usr/include/math.h:9:1: note: expanded from macro 'M'\nextern int M;\n^\n"
        skipped = "note: (skipping 1 expansions in backtrace; use -fmacro-backtrace-limit=0 to see all)\n"
        chain = "In file included from /usr/include/math.h:1,\n                 from <command-line>:\n"
        kept = "k.cu:1:1: note: in this call\n"
        other = "k.cu: In function 'void k()':\n"
        text = own + chain + note + macro + skipped + kept + other + own + note + "2 errors generated.\n"
        self.assertEqual(messages.without_system_notes(text), own + kept + other + own + "2 errors generated.\n")
        self.assertEqual(messages.without_system_notes(chain + own), chain + own)

    def test_an_unrolled_loop_has_no_warning(self):
        text = "__global__ void k(float *x, int n) {\n#pragma unroll\n  for (int i = 0; i < n; i++) {\n"
        text += "    if (x[i] > 3) break;\n    x[i] = i;\n    __syncthreads();\n  }\n#pragma unroll 4\n"
        text += "  for (int i = 0; x[i] > 0; i++) x[i] = i;\n}\n"
        for name, arguments, environment in SOME_FORMS:
            with self.subTest(form=name):
                self.assertEqual(self.said(text, *arguments, **environment), "")


if __name__ == "__main__":
    support.main()
