#!/usr/bin/env python3
"""The images that rillcc makes of the project's kernels, with every compiler on this machine."""

import os
import shutil
import struct
import subprocess
import unittest

import support
from support import CC, CLANG, CUDA_CLANG, CXX, HERE, HIPCC, HOST, INCLUDE, NVCC, SOURCES, STRICT_C, STRICT_CXX, X86
from support import Bundle, HostImage

ELF_MACHINE = {"cuda": 190, "hip": 224, "cpu:x86-64": 62}
AMD_MACH = {"gfx90a": 0x3F, "gfx1030": 0x36, "gfx942": 0x4C, "gfx1100": 0x41}


class Images(support.TestCase):
    """Every kernel source of the project, by every compiler that is here."""

    def check(self, name):
        c_file, header = self.compile(SOURCES[name])
        bundle = Bundle(self, c_file, name + "_bundle")
        self.assertEqual((bundle.data.magic, bundle.data.version), (0x4C4C4952, 1))
        self.assertEqual(bundle.data.name.decode(), name)
        expected = []
        if NVCC:
            expected += ["cuda:sm_80", "cuda:sm_90", "cuda:ptx_80"]
        elif CUDA_CLANG:
            expected += ["cuda:ptx_70"]
        if HIPCC or CLANG:
            expected += ["hip:gfx90a", "hip:gfx1030"]
        expected += ["cpu:x86-64", "cpu:x86-64-v3", "cpu:x86-64-v4"] if X86 else [HOST]
        self.assertEqual(list(bundle.images), expected)
        for label, data in bundle.images.items():
            backend, _, target = label.partition(":")
            if backend == "cuda" and target.startswith("ptx"):
                self.check_ptx(bundle, data, target[4:])
            elif backend == "cuda":
                self.check_cubin(data, int(target[3:]))
            elif backend == "hip":
                self.check_code_object(bundle, data, target)
            else:
                self.check_host_image(bundle, target, data)
        self.check_headers(header, c_file)

    def check_elf(self, data, machine):
        self.assertEqual(data[:6], b"\x7fELF\x02\x01")
        self.assertEqual(struct.unpack_from("<H", data, 18)[0], machine)
        return struct.unpack_from("<I", data, 48)[0]

    def check_cubin(self, data, capability):
        flags = self.check_elf(data, ELF_MACHINE["cuda"])
        # The number moved up by 8 bits with version 8 of the ABI.
        self.assertEqual(flags >> 8 & 0xFF if data[8] >= 8 else flags & 0xFF, capability)

    def check_code_object(self, bundle, data, target):
        flags = self.check_elf(data, ELF_MACHINE["hip"])
        self.assertEqual(flags & 0xFF, AMD_MACH[target])
        self.assertEqual(data[8], 2, "code object version 4")
        for name in bundle.kernels:
            self.assertTrue(b"\0%s.kd\0" % name.encode() in data, name)

    def check_host_image(self, bundle, target, data):
        if X86:
            self.check_elf(data, ELF_MACHINE["cpu:x86-64"])
        self.assertTrue(b"\0rill_cpu_image\0" in data)
        for word in ("libstdc++", HERE, self.folder):
            self.assertFalse(word.encode() in data, word)
        # A program may have any other name.
        path = self.path(target + ".so")
        with open(path, "wb") as file:
            file.write(data)
        symbols = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
        names = {line.split()[-1] for line in symbols.splitlines()}
        self.assertEqual({name for name in names if not name.startswith("__")}, {"rill_cpu_image"})
        if not support.runnable(target):
            return
        image = HostImage(self, target, data)
        self.assertEqual(image.table.magic, 0x43504C52)
        self.assertIn(image.table.version, (4, 8))
        self.assertEqual(sorted(image.kernels), sorted(bundle.kernels))
        for name, kernel in image.kernels.items():
            self.assertEqual(list(kernel.arg_sizes[: kernel.arg_count]), [size for _, size in bundle.kernels[name]])
            self.assertTrue(kernel.run_block or (kernel.run_thread and not support.LOOPS), name)

    def check_headers(self, header, c_file):
        text = '#include "%s"\n#include "%s"\n' % (os.path.basename(header), os.path.basename(header))
        c_user, cxx_user = self.write("user.c", text), self.write("user.cc", text)
        flags = ["-I", INCLUDE, "-fsyntax-only"]
        for command in (CC + STRICT_C + flags + [c_user], CXX + STRICT_CXX + flags + [cxx_user]):
            self.assertEqual(self.run_compiler(command), (0, ""))
        clang = shutil.which("clang")
        if clang:
            strict = [clang, *STRICT_C, "-Wmissing-variable-declarations", *flags]
            self.assertEqual(self.run_compiler(strict + [c_user, c_file]), (0, ""))

    def test_images_of_basic_are_complete(self):
        self.check("basic")

    @support.long
    def test_images_of_gate_are_complete(self):
        self.check("gate")

    @support.long
    def test_images_of_image_are_complete(self):
        self.check("image")

    def test_images_of_the_dialect_are_complete(self):
        self.check("dialect")

    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    @support.long
    def test_images_need_no_hip_headers(self):
        targets = ["gfx90a", "gfx1030"]
        if support.compilers.clang_version(CLANG) >= 18:
            targets += ["gfx942", "gfx1100"]
        for name in ("dialect", "image"):
            source = SOURCES[name]
            c_file, _ = self.compile(source, "--target", "hip:" + ",".join(targets), RILL_HIPCC="none")
            bundle = Bundle(self, c_file, name + "_bundle")
            self.assertEqual(list(bundle.images), ["hip:" + target for target in targets])
            for label, data in bundle.images.items():
                self.check_code_object(bundle, data, label.partition(":")[2])

    def conformance_kernels(self, *arguments, **environment):
        """Compiles the sources that the conformance tests of the dialect run."""
        folder = os.path.join(os.path.dirname(HERE), "conformance")
        for name in ("dialect", "dialect_atomics", "dialect_faults", "dialect_half", "dialect_warps"):
            source = os.path.join(folder, name + ".kernel.cu")
            self.compile(source, "-I", folder, "--include", "dialect_types.h", *arguments, **environment)

    @support.long
    @unittest.skipUnless(CLANG, "no clang 15 or later with lld")
    def test_the_whole_dialect_needs_no_hip_headers(self):
        self.conformance_kernels("--target", "hip:gfx906,gfx1030", RILL_HIPCC="none")

    @support.long
    @unittest.skipUnless(HIPCC, "no hipcc")
    def test_the_whole_dialect_compiles_for_another_processor(self):
        self.conformance_kernels("--target", "hip:gfx906")

    @support.long
    @unittest.skipUnless(shutil.which("clang++"), "no clang++")
    def test_the_whole_dialect_compiles_with_another_host_compiler(self):
        self.conformance_kernels("--target", HOST, "--cxx", "clang++")


if __name__ == "__main__":
    support.main()
