#!/usr/bin/env python3
"""Kernels for NVIDIA GPUs by clang alone: what comes of the dialect, and whether NVIDIA's assembler takes it."""

import glob
import os
import re
import unittest

import support
from support import CUDA_CLANG, HERE, KERNELS, NVCC, PTXAS, ROOT, Bundle

WITHOUT_NVCC = {"RILL_NVCC": "none", "RILL_CLANG": CUDA_CLANG or "none"}
VERSIONS = {"70": "6.3", "80": "7.0", "90": "7.8"}  # of PTX, the oldest for each GPU
CONFORMANCE = os.path.join(os.path.dirname(HERE), "conformance")


@unittest.skipUnless(CUDA_CLANG, "no clang 15 or later")
class Nvidia(support.TestCase):
    def images(self, source, *arguments):
        c_file, _ = self.compile(source, *arguments, **WITHOUT_NVCC)
        name = re.findall(r"rill_bundle (\w+)", self.read("out.rill.c"))[0]
        self.made = getattr(self, "made", 0) + 1  # the loader knows libraries by their paths
        bundle = Bundle(self, c_file, name, "%d.so" % self.made)
        return bundle, {label.partition("ptx_")[2]: data for label, data in bundle.images.items()}

    def ptx(self, body, *arguments):
        text = "#include <rill/device/kernel.h>\nRILL_KERNEL(k, float *x, double *y, int *n) {\n%s\n}\n" % body
        _, images = self.images(self.write("k.kernel.cu", text), "--target", "cuda:ptx", *arguments)
        self.assemble(images["70"], "75")
        return images["70"].decode("ascii")

    def test_sources_of_this_project_compile(self):
        sources = sorted(glob.glob(os.path.join(KERNELS, "*.cu")) + glob.glob(os.path.join(CONFORMANCE, "*.cu")))
        for source in sources if support.LONG else sources[::8]:
            with self.subTest(source=os.path.relpath(source, ROOT)):
                include = ["-I", CONFORMANCE, "--include", os.path.join(CONFORMANCE, "dialect_types.h")]
                arguments = ["--target", "cuda:ptx,sm_80,ptx_90", *(include if "/dialect" in source else [])]
                bundle, images = self.images(source, *arguments)
                self.assertEqual(list(images), list(VERSIONS))
                for gpu, data in images.items():
                    self.check_ptx(bundle, data, gpu, re.escape(VERSIONS[gpu]))
                self.assemble(images["70"], "75", "90")
                self.assemble(images["80"], "80")
                self.assemble(images["90"], "90")

    def test_operations_round_as_the_standard_requires(self):
        body = "x[0] = x[1] * x[2] + x[3]; x[4] = x[5] / x[6] + sqrtf(x[7]); y[0] = y[1] * y[2] + sqrt(y[3]) / y[4];"
        text = self.ptx(body)
        for instruction in ("fma.rn.f32", "fma.rn.f64", "div.rn.f32", "div.rn.f64", "sqrt.rn.f32", "sqrt.rn.f64"):
            self.assertIn(instruction, text)
        self.assertNotRegex(text, r"\.(ftz|approx|full)\b")
        self.assertNotIn("fma.", self.ptx(body, "--fp-contract", "off"))

    def test_atomic_functions_have_their_scopes(self):
        names = "Add Exch Min Max And Or Xor".split()
        calls = "".join("atomic%s%%s(n, 1); " % name for name in names) + "atomicCAS%s(n, 1, 2); "
        floats = "atomicAdd%s(x, 1.0f); atomicAdd%s(y, 1.0); atomicInc%s(reinterpret_cast<unsigned *>(n), 3u);"
        count = len(names) + 4
        for suffix, found in (("", r"\batom\.(?!sys|cta)"), ("_block", r"\batom\.(?!sys)"), ("_system", r"\batom\.sys\.")):
            text = self.ptx((calls + floats).replace("%s", suffix))
            self.assertEqual(len(re.findall(found, text)), count, suffix)

    def test_atomic_functions_work_in_shared_memory(self):
        text = self.ptx("__shared__ int s[2]; s[threadIdx.x] = 0; __syncthreads(); atomicAdd(s, 1); n[0] = s[0];")
        self.assertIn("atom.shared.add.u32", text)
        self.assertIn("bar.sync", text)

    def test_hints_choose_the_instructions(self):
        text = self.ptx("x[0] = __ldg(x + 1) + __ldcs(x + 2); __stcs(y, __ldcg(y + 1)); __stwt(n, __ldcv(n + 1));")
        for instruction in "ld.global.nc.u32 ld.global.cs.u32 st.global.cs.u64 ld.global.cg.u64 st.global.wt.u32".split():
            self.assertIn(instruction, text)

    def test_bounds_of_launches_reach_the_ptx(self):
        text = "RILL_KERNEL_BOUNDED(RILL_MIN_BLOCKS(128, 4), k, int *n) { n[0] = 1; }\n"
        _, images = self.images(self.write("k.kernel.cu", text), "--target", "cuda:ptx")
        self.assertRegex(images["70"].decode("ascii"), r"\.maxntid 128[^\n]*\n\.minnctapersm 4\n")

    def test_variables_are_visible_in_the_ptx(self):
        text = "__constant__ int table[4];\n__device__ float total;\n"
        text += "RILL_KERNEL(k, int i) { if (i) total = static_cast<float>(table[i]); }\n"
        _, images = self.images(self.write("k.kernel.cu", text), "--target", "cuda:ptx")
        for line in (r"\.visible \.const \.align 4 \.b8 table\[16\]", r"\.visible \.global \.align 4 \.f32 total\b"):
            self.assertRegex(images["70"].decode("ascii"), line)

    def test_a_toolkit_does_not_change_the_image(self):
        source = self.write("k.kernel.cu", support.ONE)
        made = []
        for home in ("/nonexistent", os.path.dirname(os.path.dirname(PTXAS or "/usr/bin/x"))):
            self.compile(source, "--target", "cuda:sm_80", CUDA_HOME=home, CUDA_PATH=home, **WITHOUT_NVCC)
            made.append(self.read("out.rill.c"))
        self.assertEqual(*made)

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_nvcc_goes_first(self):
        said = self.rillcc("--list-targets", "--target", "cuda:sm_80", RILL_NVCC=NVCC, RILL_CLANG=CUDA_CLANG)
        self.assertEqual(said.stdout.split(), ["cuda:sm_80", NVCC])

    def test_ptx_that_was_made_elsewhere(self):
        nothing = {"RILL_NVCC": "none", "RILL_HIPCC": "none", "RILL_CLANG": "none"}
        self.write("own.h", "enum { ONE = 1 };\n")
        source = self.write("k.kernel.cu", '#include "own.h"\n' + support.ONE)
        self.compile(source, "--target", "cuda:ptx,sm_80", "--write-ptx", "ptx", **WITHOUT_NVCC)
        self.assertEqual(sorted(os.listdir(self.path("ptx"))), ["k.ptx_70.ptx", "k.ptx_80.ptx"])

        def images(*arguments, **environment):
            self.compile(source, "--read-ptx", "ptx", *arguments, **environment)
            self.made = getattr(self, "made", 0) + 1
            return Bundle(self, self.path("out.rill.c"), "k_bundle", "%d.so" % self.made).images

        found = images(**nothing)
        self.assertEqual(list(found)[:2], ["cuda:ptx_70", "cuda:ptx_80"])
        self.assertRegex(found["cuda:ptx_70"].decode("ascii"), r"\.entry one\(")
        self.assemble(found["cuda:ptx_70"], "75")
        self.assertEqual(list(images("--target", support.HOST, **nothing))[2:], [support.HOST])
        self.assertNotIn("cuda:ptx_80", images(**WITHOUT_NVCC))
        for changed in ("own.h", "k.kernel.cu"):
            text = self.read(changed)
            self.write(changed, text + "\n")
            self.assertNotIn("cuda:ptx_70", images(**nothing), changed)
            self.write(changed, text)
        self.assertNotIn("cuda:ptx_70", images("-DTWO=2", **nothing))
        self.assertIn("cuda:ptx_70", images(**nothing))

    def test_targets_that_clang_lacks_are_refused(self):
        source = self.write("k.kernel.cu", support.ONE)
        for target in ("sm_60", "ptx_61"):
            result = self.rillcc("-o", "k.c", "--target", "cuda:" + target, source, **WITHOUT_NVCC)
            wanted = "rillcc: --target cuda:%s: clang compiles only for sm_70 and later GPUs\n" % target
            self.assertEqual((result.returncode, result.stderr), (1, wanted))
        source = self.write("k.kernel.cu", "#ifdef __CUDACC__\n#include <mma.h>\n#endif\n" + support.ONE)
        result = self.rillcc("-o", "k.c", "--target", "cuda:ptx", source, **WITHOUT_NVCC)
        self.assertRegex(result.stderr, r"\Arillcc: \S+:2: <mma\.h>: rill has no matrix units [^\n]*\nrillcc: [^\n]*\n\Z")


if __name__ == "__main__":
    support.main()
