#!/usr/bin/env python3
"""rillcc --list: what is inside of what rillcc wrote, of what was built with it, and of bare images."""

import os
import struct

import support
from support import CC, HOST, INCLUDE, SOURCES, STRICT_C
from support import Bundle

STUB = (
    "#include <rill/kernel.h>\n"
    "rill_status rill_stream_launch_typed(rill_stream s, rill_kernel_ref *r, const rill_launch *l,\n"
    "                                     const rill_arg *a, size_t n, const char *f) {\n"
    "  (void)s, (void)r, (void)l, (void)a, (void)n, (void)f;\n  return RILL_OK;\n}\n"
)


class Listing(support.TestCase):
    def listed(self, *arguments):
        result = self.rillcc("--list", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def build(self, *command):
        self.assertEqual(self.run_compiler(CC + STRICT_C + ["-I", INCLUDE, *command]), (0, ""))

    def test_every_form_of_a_bundle_is_listed_alike(self):
        c_file, _ = self.compile(SOURCES["gate"])
        text = self.listed(c_file)
        bundle = Bundle(self, c_file, "gate_bundle")
        lines = text.splitlines()
        self.assertEqual(lines[0], "gate_bundle: %d images, %d kernels" % (len(bundle.images), len(bundle.kernels)))
        for line, (target, data) in zip(lines[1:], bundle.images.items()):
            self.assertEqual(line.split(), [target, str(len(data)), "bytes"])
        self.assertIn("  kernel increment(counter: 8)", lines)
        self.assertIn("  kernel wait_for_flag(flag: 8, value: 4, limit_ns: 8, timed_out: 8)", lines)
        stub, user = self.write("stub.c", STUB), self.write("main.c", "int main(void) { return 0; }\n")
        self.build("-c", "-o", "gate.o", c_file)
        self.build("-shared", "-o", "gate.so", c_file, stub)
        self.build("-pie", "-o", "gate", c_file, stub, user)
        self.build("-no-pie", "-o", "gate-fixed", c_file, stub, user)
        for name in ("gate.o", "gate.so", "gate", "gate-fixed"):
            with self.subTest(name=name):
                self.assertEqual(self.listed(self.path(name)), text)

    def test_prefix_and_structs_are_listed(self):
        self.write("point.h", "#ifndef POINT_H\n#define POINT_H\ntypedef struct { short x, y; } point;\n#endif\n")
        text = '#include <rill/device/kernel.h>\n#include "point.h"\n'
        text += "RILL_KERNEL(move, point by, unsigned long long n, point *all, bool b) { if (b) all[n].x = by.x; }\n"
        text += "RILL_KERNEL(nothing) {}\n"
        source = self.write("k.kernel.cu", text)
        c_file, _ = self.compile(source, "--target", HOST, "--include", "point.h", "--prefix", "mine_")
        lines = self.listed(c_file).splitlines()
        self.assertEqual(lines[0], "mine_k_bundle: 1 image, 2 kernels")
        self.assertEqual(lines[2:], ["  kernel move(by: sizeof(point), n: 8, all: 8, b: 1)", "  kernel nothing()"])
        self.build("-I", self.folder, "-c", "-o", "k.o", c_file)
        lines = self.listed(self.path("k.o")).splitlines()
        self.assertEqual(lines[2:], ["  kernel move(by: 4, n: 8, all: 8, b: 1)", "  kernel nothing()"])

    def test_two_bundles_in_one_library_are_listed(self):
        files = []
        for name in ("gate", "basic"):
            c_file, _ = self.compile(SOURCES[name], "--target", HOST)
            os.rename(c_file, self.path(name + ".c"))
            files.append(self.path(name + ".c"))
        self.build("-shared", "-o", "both.so", *files, self.write("stub.c", STUB))
        text = self.listed(self.path("both.so"))
        self.assertRegex(text, r"(?m)^gate_bundle: 1 image, \d+ kernels$")
        self.assertRegex(text, r"(?m)^basic_bundle: 1 image, \d+ kernels$")

    def images(self):
        c_file, _ = self.compile(SOURCES["gate"])
        return Bundle(self, c_file, "gate_bundle").images

    def write_bytes(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def test_bare_images_are_listed(self):
        seen = set()
        for target, data in self.images().items():
            text = self.listed(self.write_bytes("image", data))
            size = len(data) - target.startswith("cuda:ptx")
            self.assertIn("%s  %d bytes\n" % (target, size), text)
            if not target.startswith("cpu"):
                self.assertIn("  kernel wait_for_flag(...)\n", text)
            seen.add(target.partition(":")[0])
        self.assertIn("cpu", seen)

    def test_containers_are_listed(self):
        c_file, _ = self.compile(SOURCES["gate"])
        bundle = Bundle(self, c_file, "gate_bundle")
        images, kernels = bundle.images, len(bundle.kernels)
        hip = {target: data for target, data in images.items() if target.startswith("hip:")}
        if hip:
            table = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(hip))
            at, body = 4096, b""
            for target, data in hip.items():
                name = b"hipv4-amdgcn-amd-amdhsa--" + target[4:].encode()
                table += struct.pack("<QQQ", at + len(body), len(data), len(name)) + name
                body += data
            text = self.listed(self.write_bytes("bundle", table.ljust(at, b"\0") + body))
            self.assertIn("%d images, %d kernels" % (len(hip), kernels), text)
        cuda = {target: data for target, data in images.items() if target.startswith("cuda:sm")}
        if cuda:
            body = b""
            for target, data in cuda.items():
                padded = data + b"\0" * (-len(data) % 8)
                header = struct.pack("<HHIQIIHHI", 2, 0x101, 64, len(padded), 0, 0, 8, 1, int(target[8:]))
                body += header.ljust(64, b"\0") + padded
            text = self.listed(self.write_bytes("fatbin", struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body))
            self.assertIn("%d images, %d kernels" % (len(cuda), kernels), text)

    def refused(self, path, message):
        result = self.rillcc("--list", path)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertNotIn("Traceback", result.stderr)
        self.assertRegex(result.stderr, message)

    def test_unreadable_files_are_refused(self):
        self.refused(self.path("nowhere"), "cannot read .*nowhere: No such file")
        self.refused(self.folder, "cannot read .*: Is a directory")
        self.refused(self.write("text.c", "int x;\n"), "no bundle in it")
        self.refused(self.write("empty", ""), "no bundle in it")
        for target, data in self.images().items():
            for size in [4, 63, 64, len(data) - 100]:
                if not target.startswith("cuda:ptx"):
                    self.refused(self.write_bytes("cut", data[:size]), "it cannot be read|no bundle in it")

    def test_list_takes_no_source_and_no_output(self):
        result = self.rillcc("--list", "x", "-o", "y")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--list compiles nothing, so", result.stderr)
        result = self.rillcc("-o", "y")
        self.assertEqual(result.returncode, 2)
        self.assertIn("a source and -o FILE (or --header FILE) are needed", result.stderr)


if __name__ == "__main__":
    support.main()
