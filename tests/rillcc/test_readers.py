#!/usr/bin/env python3
"""The parts of rillcc that read: sources, and AMD's containers."""

import os
import pathlib
import re
import struct
import unittest

import support

from rillcc_lib import notes, offload


class Notes(support.TestCase):
    """What rillcc knows of a source, by the compiler's word."""

    COMPILERS = ((), ("--clang", "none"))

    def header(self, text, *arguments):
        """Returns the header that rillcc writes; no image is compiled."""
        source = self.write("k.kernel.cu", "#include <rill/device/kernel.h>\n" + text)
        result = self.rillcc("--header", "out.rill.h", *arguments, source)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return self.read("out.rill.h")

    def parameters(self, text, *arguments):
        """Returns (type, name) of the parameters of the kernel k, as the header has them."""
        header = self.header(text, *arguments)
        (launch,) = re.findall(r"k_launch\(rill_stream \w+,\s*const rill_launch \*\w+(.*?)\) \{", header, re.DOTALL)
        found = [" ".join(part.split()) for part in launch.split(",")[1:]]
        return [re.findall(r"^(.*?) ?(\w+)$", part)[0] for part in found]

    def test_parameters_have_their_types_and_names(self):
        text = "using real = float; template <class T> struct list { using item = T; };\n#define COUNT unsigned\n"
        text += "enum color : short { RED };\n"
        text += "RILL_KERNEL(k, const unsigned char *__restrict__ a, unsigned long long const b, bool c, void **d,\n"
        text += "            const int e, float *const f, real g, list<double>::item *h, COUNT i, size_t j, int64_t l[3]) {}\n"
        expected = [("const unsigned char *", "a"), ("unsigned long long const", "b"), ("bool", "c"), ("void **", "d")]
        expected += [("const int", "e"), ("float *const", "f"), ("float", "g"), ("double *", "h"), ("unsigned", "i")]
        expected += [("size_t", "j"), ("long *", "l")]
        for compiler in self.COMPILERS:
            with self.subTest(compiler=compiler):
                self.assertEqual(self.parameters(text, *compiler), expected)
                self.assertEqual(self.parameters("RILL_KERNEL(k) {}", *compiler), [])
                self.assertEqual(self.parameters("RILL_KERNEL_BOUNDED(2 * 32, k, int n) {}", *compiler), [("int", "n")])
                self.assertEqual(self.parameters("RILL_KERNEL(k, int, float *) {}"), [("int", "arg1"), ("float *", "arg2")])

    def test_kernels_may_have_usual_names(self):
        """Kernels by the names that what rill's headers make of a kernel's name already has, and by usual ones."""
        names = {"kernel", "copy", "type", "instance", "init", "update", "reduce", "thread", "warp", "block", "name", "value"}
        folder = os.path.join(support.ROOT, "include", "rill", "device")
        text = "".join(path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(folder).iterdir()))
        made = set(re.findall(r"RILL_JOIN_\(\s*\\?\s*(\w+_),", text))
        self.assertGreaterEqual(len(made), 3)
        for prefix in made:
            names |= set(re.findall(rf"\b{prefix}(\w*[a-z])\b", text))
        plain = "".join(f"__global__ void {name}(int *p) {{ *p = 1; }}\n" for name in sorted(names))
        marked = "".join(f"RILL_KERNEL({name}, int *p) {{ *p = 1; }}\n" for name in sorted(names))
        for text in (plain, marked):
            source = self.write("k.kernel.cu", "#include <rill/device/kernel.h>\n" + text)
            _, header = self.compile(source, "--target", support.HOST)
            self.assertEqual(set(re.findall(r"(\w+)_launch\(rill_stream", self.read(header))), names)

    def test_dim3_converts_as_in_cuda(self):
        """As CUDA has it; HIP's own headers have no such conversions."""
        text = "__global__ void k(unsigned *p) { dim3 d; d = blockIdx; const uint3 v = d; *p = v.x; }\n"
        self.assertEqual(self.parameters(text), [("unsigned int *", "p")])

    def test_types_of_rill_are_recognized(self):
        text = "RILL_KERNEL(k, const rill_half *x, rill_bfloat16 *y) {}\n"
        self.assertEqual(self.parameters(text), [("const rill_half *", "x"), ("rill_bfloat16 *", "y")])
        self.assertIn('#include "rill/device/half.h"', self.read("out.rill.h"))

    def test_a_damaged_note_is_refused(self):
        for text in ("int a", "int a, int b, int c"):
            data = notes.HEAD.pack(notes.MAGIC, 0, 1, 2, b"k", b"k.cu", text.encode()) + bytes(2 * notes.TYPE.size)
            with self.assertRaisesRegex(ValueError, "2 parameters of kernel k, not [13]"):
                notes.read_note(data, 0, notes.Known())
        with self.assertRaisesRegex(ValueError, "begins with 0x0"):
            notes.read_note(bytes(notes.HEAD.size), 0, notes.Known())


class Offload(unittest.TestCase):
    """The reader of AMD's containers refuses every broken one."""

    ELF = b"\x7fELF" + bytes(60)

    def container(self, *names):
        table = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
        start = 4096
        for i, name in enumerate(names):
            table += struct.pack("<QQQ", start + 100 * i, len(self.ELF), len(name)) + name
        body = table.ljust(start, b"\0")
        for _ in names:
            body += self.ELF.ljust(100, b"\0")
        return body

    def test_bundles_of_clang_are_read(self):
        name = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
        self.assertEqual(offload.extract(self.ELF, "gfx90a"), self.ELF)
        data = self.container(b"host-x86_64-unknown-linux--", name, b"hipv4-amdgcn-amd-amdhsa--gfx90")
        self.assertEqual(offload.extract(data, "gfx90a"), self.ELF)
        for other in (name + b":xnack+", name.replace(b"--", b"-unknown-"), name.replace(b"v4", b"")):
            self.assertEqual(offload.extract(self.container(other), "gfx90a"), self.ELF)
        both = self.container(name + b":xnack+", name + b":sramecc+:xnack-")
        self.assertEqual(offload.extract(both, "gfx90a:xnack+"), self.ELF)
        self.assertEqual(offload.extract(both, "gfx90a:sramecc+"), self.ELF)
        with self.assertRaises(ValueError):
            offload.extract(both, "gfx90a:sramecc-")
        generic = b"hipv4-amdgcn-amd-amdhsa--gfx9-generic"
        self.assertEqual(offload.extract(self.container(generic), "gfx9-generic"), self.ELF)

    def test_damaged_bundles_are_refused(self):
        name = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
        good = self.container(name)
        for size in range(24, 4096 + len(self.ELF)):
            with self.assertRaises(ValueError):
                offload.extract(good[:size], "gfx90a")
        bad = [b"", self.container(), self.container(name, name)]
        bad.append(good.replace(b"\x7fELF", b"\0ELF"))
        for at in (24, 32, 40, 48):
            for value in (2**64 - 1, 2**63, len(good), len(good) + 1):
                bad.append(good[:at] + struct.pack("<Q", value) + good[at + 8 :])
        for data in bad:
            with self.assertRaises(ValueError):
                offload.extract(data, "gfx90a")

    def test_compressed_bundles_are_named(self):
        """In the words of the library."""
        with open(os.path.join(support.ROOT, "backends", "hip", "image.c"), encoding="utf-8") as file:
            literals = "".join(re.findall(r'"([^"\n]*)"', file.read()))
        self.assertIn(offload.COMPRESSED_TEXT, literals)
        for read in (offload.entries, lambda data: offload.extract(data, "gfx90a")):
            with self.assertRaisesRegex(ValueError, "compressed bundles.*--no-offload-compress"):
                read(b"CCOB" + bytes(60))


if __name__ == "__main__":
    support.main()
