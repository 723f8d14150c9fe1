#!/usr/bin/env python3
"""What rillcc asks of the compilers for AMD GPUs, and what comes of it."""

import argparse
import os
import re
import struct
import unittest
import unittest.mock

import support
from support import CLANG, HIPCC, INCLUDE, Bundle, compilers

# Options that compilers are given if they know them.
OPTIONS = [["-fatomic-fine-grained-memory", "-fatomic-remote-memory"], ["-mllvm", "-amdgpu-sdwa-peephole=0"]]
OPTIONS += [["--no-offload-compress"]]
CODE_OBJECT = {4: 2, 6: 4}  # version: what stands in the ELF header

SUMS = """
#include <rill/device/kernel.h>
RILL_KERNEL(sums, float *f, double *d) {
  atomicAdd%s(f, 1.0f);
  atomicAdd%s(d, 1.0);
}
"""

BYTES = """
#include <rill/device/kernel.h>
#include <rill/device/cuda_names.h>
RILL_KERNEL(bytes, unsigned *p) {
  const unsigned a = p[threadIdx.x], b = p[threadIdx.x + 64];
  p[threadIdx.x] = __vabsdiffu4(a, b) + __vabsdiffs4(a, b) + __vsub4(a, b) + __vsubus4(a, b) + __vabsdiffu2(a, b);
}
"""

# A compiler that takes every option but one.  It notes its calls, and "compiles" by a copy.
FAKE = """#!/bin/sh
echo "$@" >> calls
for word; do
  case $word in
  %s) echo "unknown argument: $word" >&2; exit 1 ;;
  esac
done
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then cp code "$2"; fi
  shift
done
"""


class Amd(support.TestCase):
    def toolchain(self, **given):
        options = dict(source=self.path("sums.kernel.cu"), output=None, defines=[], fp_contract="fast", verbose=False)
        options.update(cxx=None, nvcc="none", hipcc=None, clang=None, fibers=False, type_headers=[], hip_options=[], cuda_names=False)
        options.update(given)
        toolchain = compilers.Toolchain(argparse.Namespace(**options), [INCLUDE])
        self.addCleanup(toolchain.close)
        return toolchain

    def write_sums(self, suffix=""):
        return self.write("sums.kernel.cu", SUMS % (suffix, suffix))

    def assembly(self, target, *but, **given):
        """Without some of the options."""
        toolchain = self.toolchain(**given)
        command = toolchain.hip_command(compilers.Target("hip", target), self.path("sums.s"))
        command = [word for word in command if word not in ("--no-gpu-bundle-output", *but)]
        done = toolchain.execute(command + ["-S"])
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read("sums.s")

    def check_loops(self, suffix, targets, **given):
        self.write_sums(suffix)
        for target in targets:
            with self.subTest(target=target, suffix=suffix):
                text = self.assembly(target, **given)
                self.assertRegex(text, r"_atomic_cmpswap")
                self.assertEqual(re.findall(r"\w+_atomic_(?:pk_add|f?add|f?min|f?max)\w*_f\w+", text), [])

    # The instructions for sums of floats are lost in pinned memory, or others than the GPU do not see all of them.

    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    def test_sums_of_floats_are_loops(self):
        old, new = ("gfx908", "gfx90a", "gfx1030"), ("gfx942", "gfx1100", "gfx1201")
        self.check_loops("", support.some(old), hipcc="none", clang=CLANG)
        self.check_loops("_system", support.some(old), hipcc="none", clang=CLANG)
        if compilers.clang_version(CLANG) >= 18:
            self.check_loops("_system", support.some(new), hipcc="none", clang=CLANG)

    @unittest.skipUnless(HIPCC, "no hipcc")
    def test_sums_of_floats_are_loops_with_hipcc(self):
        for suffix in ("", "_system"):
            self.check_loops(suffix, support.some(("gfx908", "gfx1030", "gfx90a")), hipcc=HIPCC)

    def check_bytes(self, **given):
        """No instruction selects a byte or a half: compilers have been wrong there."""
        self.write("sums.kernel.cu", BYTES)
        for target in support.some(("gfx906", "gfx90a", "gfx1030")):
            with self.subTest(target=target):
                self.assertEqual(re.findall(r"\w+_sdwa .*", self.assembly(target, **given)), [])
                self.assertIn("_sdwa ", self.assembly(target, *OPTIONS[1], **given))

    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    def test_no_bytes_are_selected(self):
        self.check_bytes(hipcc="none", clang=CLANG)

    @unittest.skipUnless(HIPCC, "no hipcc")
    def test_no_bytes_are_selected_with_hipcc(self):
        self.check_bytes(hipcc=HIPCC)

    def fake(self, unknown, code):
        fake = self.write("clang++", FAKE % unknown)
        os.chmod(fake, 0o755)
        with open(self.path("code"), "wb") as file:
            file.write(code)
        return fake

    def calls_of_a_compiler(self, unknown):
        """Runs rillcc for two targets with a compiler that does not know an option; returns its calls."""
        fake = self.fake(unknown, b"\x7fELF" + b"\0sums.kd\0")
        self.write("calls", "")
        self.write_sums()
        self.compile("sums.kernel.cu", "--target", "hip:gfx90a,gfx1030", "--clang", fake, RILL_HIPCC="none")
        return [line for line in self.read("calls").splitlines() if "-o" in line.split()]

    def test_options_if_they_are_known(self):
        for unknown in [["--nothing"], *OPTIONS]:
            calls = self.calls_of_a_compiler(unknown[-1])
            self.assertEqual(len(calls), 2)
            for call in calls:
                missing = [options for options in OPTIONS if " ".join(options) not in call]
                self.assertEqual(missing, [unknown] if unknown in OPTIONS else [])
                self.assertNotIn(unknown[-1], call.split())

    def test_a_compressed_bundle_is_refused(self):
        for way in ("--clang", "--hipcc"):
            fake = self.fake("--nothing", b"CCOB" + bytes(60))
            arguments = ["-o", "o.c", "--target", "hip:gfx90a", way, fake, self.write_sums()]
            result = self.rillcc(*arguments, **({"RILL_HIPCC": "none"} if way == "--clang" else {}))
            self.assertIn("the output of clang++ cannot be read: compressed bundles (CCOB) are not supported: compile with", result.stderr)
            self.assertEqual(result.returncode, 1)

    def check_targets(self, targets, version):
        label = "hip:" + ",".join(targets)
        result = self.rillcc("-o", "out.rill.c", "--target", label, self.write_sums(), RILL_HIPCC="none")
        self.assertEqual(result.returncode, 0, result.stderr)
        bundle = Bundle(self, self.path("out.rill.c"), "sums_bundle")
        self.assertEqual(list(bundle.images), ["hip:" + target for target in targets])
        for label, data in bundle.images.items():
            flags = struct.unpack_from("<I", data, 48)[0]
            self.assertEqual(data[8], CODE_OBJECT[version], label)
            for feature, shift in (("xnack", 8), ("sramecc", 10)):
                asked = {"-": (2,), "+": (3,)}.get((label + ":").partition(":%s" % feature)[2][:1], (0, 1))
                self.assertIn(flags >> shift & 3, asked, label)

    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    def test_features_are_part_of_the_target(self):
        self.check_targets(["gfx90a:xnack+", "gfx90a:sramecc-:xnack-", "gfx90a"], 4)

    @unittest.skipUnless(CLANG and compilers.clang_version(CLANG) >= 19, "no clang 19 or later with lld")
    def test_generic_targets_have_their_own_version(self):
        """They have version 6, and others do not."""
        self.check_targets(["gfx9-generic", "gfx10-3-generic", "gfx11-generic"], 6)

    def test_bad_targets_are_refused(self):
        self.write_sums()
        for name in ("gfx90a:xnack", "gfx90a:", "gfx90a:xnack+:xnack-", "gfx90a:xnack+xnack-", "gfx90a:ecc+", "90a"):
            result = self.rillcc("-o", "o.c", "--target", "hip:" + name, "--clang", "true", "sums.kernel.cu")
            self.assertIn('"%s" is not gfxNNN' % name, result.stderr)
            self.assertEqual(result.returncode, 1)

    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    def test_a_source_may_include_headers_of_both_vendors(self):
        text = "#ifdef __HIPCC__\n#include <hip/hip_runtime.h>\n#include <hip/hip_fp16.h>\n#else\n#include <cuda.h>\n#endif\n"
        text += "__global__ void k(float4 *x) { x[threadIdx.x] = make_float4(1, 2, 3, 4); }\n"
        source = self.write("k.cu", text)
        self.compile(source, "--cuda-names", "--target", "hip:gfx1030", RILL_HIPCC="none", RILL_CLANG=CLANG)


class Places(support.TestCase):
    """Where compilers for AMD's GPUs are found, with stand-ins for AMD's packages."""

    def setUp(self):
        super().setUp()
        self.addCleanup(unittest.mock.patch.stopall)
        unittest.mock.patch.object(compilers, "ROCM", self.path("rocm*")).start()
        environment = unittest.mock.patch.dict(os.environ, {"PATH": self.path("path")})
        environment.start()
        for name in ("ROCM_PATH", "HIP_PATH"):
            os.environ.pop(name, None)

    def stand_in(self, *names, runs="echo 19.1.7"):
        path = self.path(os.path.join(*names))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.write(path, "#!/bin/sh\n%s\n" % runs)
        os.chmod(path, 0o755)
        return path

    def clang(self, *names, **given):
        """Returns a stand-in for a clang, with a linker beside it."""
        path = self.stand_in(*names, **given)
        self.write(os.path.join(os.path.dirname(path), "ld.lld"), "")
        return path

    def amd_clang(self, rocm, name="clang++", **given):
        return self.clang(rocm, "llvm", "bin", name, **given)

    def test_hipcc_is_found(self):
        self.assertIsNone(compilers.find_hipcc(None))
        for rocm in ("rocm", "rocm-6.4.3", "rocm-6.10.1", "rocm-7.2.0"):
            found = self.stand_in(rocm, "bin", "hipcc")
            self.assertEqual(compilers.find_hipcc(None), found)
        on_path = self.stand_in("path", "hipcc")
        self.assertEqual(compilers.find_hipcc(None), on_path)
        os.environ["ROCM_PATH"] = self.path("rocm-6.4.3")
        self.assertEqual(compilers.find_hipcc(None), self.path("rocm-6.4.3/bin/hipcc"))
        os.environ["HIP_PATH"] = self.path("rocm")
        self.assertEqual(compilers.find_hipcc(None), self.path("rocm/bin/hipcc"))
        self.assertIsNone(compilers.find_hipcc("none"))

    def test_clang_is_found(self):
        self.assertIsNone(compilers.find_clang(None))
        self.amd_clang("rocm-9.0.0", runs="echo 14.0.6")
        self.stand_in("rocm-8.0.0", "llvm", "bin", "clang++")  # without a linker
        self.assertIsNone(compilers.find_clang(None))
        for rocm in ("rocm", "rocm-6.4.3", "rocm-6.10.1", "rocm-7.2.0"):
            found = self.amd_clang(rocm)
            self.assertEqual(compilers.find_clang(None), found)
        found = self.amd_clang("rocm-7.2.0", "amdclang++")
        self.assertEqual(compilers.find_clang(None), found)
        for name in ("amdclang++", "clang++", "clang++-16", "clang++-19"):
            found = self.clang("path", name)
            self.assertEqual(compilers.find_clang(None), found)
        os.environ["ROCM_PATH"] = self.path("nowhere")
        self.assertEqual(compilers.find_clang(None), found)
        os.environ["ROCM_PATH"] = self.path("rocm-6.4.3")
        self.assertEqual(compilers.find_clang(None), self.path("rocm-6.4.3/llvm/bin/clang++"))
        self.assertEqual(compilers.find_clang(None, linker=False), found)  # for NVIDIA's GPUs

    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    def test_a_clang_that_was_found_compiles(self):
        found = self.amd_clang("rocm-6.4.3", "amdclang++", runs='exec %s "$@"' % CLANG)
        source = self.write("k.kernel.cu", SUMS % ("", ""))
        unittest.mock.patch.stopall()
        result = self.rillcc("--list-targets", "--target", "hip", RILL_HIPCC="none", RILL_CLANG="", ROCM_PATH=self.path("rocm-6.4.3"))
        self.assertEqual([line.split()[1] for line in result.stdout.splitlines()], [found, found], result.stderr)
        self.compile(source, "--target", "hip:gfx1030", RILL_HIPCC="none", RILL_CLANG="", ROCM_PATH=self.path("rocm-6.4.3"))


if __name__ == "__main__":
    support.main()
