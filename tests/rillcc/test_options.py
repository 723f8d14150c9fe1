#!/usr/bin/env python3
"""rillcc's options for writing kernels: the help, cpu:native, and the commands for clangd."""

import json
import os
import re
import shutil
import subprocess
import unittest

import support
from rillcc_lib import host
from support import ONE

SOURCE = "#include <cuda_runtime.h>\n#include \"own/own.h\"\n__global__ void k(TYPE *x) { x[threadIdx.x] = own(__dp4a(1, 2, 3)); }\n"
CLANG = shutil.which(support.LOOPS or "clang++")


class Help(support.TestCase):
    def test_every_option_has_a_text(self):
        result = self.rillcc("--help", COLUMNS="200")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        _, _, options = result.stdout.partition("\noptions:\n")
        entries = re.findall(r"^  (-\S*)(.*(?:\n {20,}.*)*)", options, re.MULTILINE)
        self.assertGreater(len(entries), 25)
        for name, rest in entries:
            with self.subTest(option=name):
                self.assertRegex(rest, r"(\s{2,}|\n\s+)\w.* ")
        self.assertIn("--debug", dict(entries))


class Native(support.TestCase):
    def test_it_is_the_highest_that_runs_here(self):
        source = self.write("k.kernel.cu", ONE)
        every = [target for target in (host.X86_TARGETS if support.X86 else [os.uname().machine]) if support.runnable(target)]
        listed = self.rillcc("--list-targets", "--target", "cpu:native")
        self.assertIn("cpu:%s " % every[-1], listed.stdout)
        self.compile(source, "--target", "cpu:native")
        native = support.Bundle(self, self.path("out.rill.c"), "k_bundle", "native.so").images
        self.compile(source, "--target", "cpu")
        images = support.Bundle(self, self.path("out.rill.c"), "k_bundle", "all.so").images
        self.assertEqual(native, {"cpu:" + every[-1]: images["cpu:" + every[-1]]})

    def test_a_compiler_for_another_machine_is_refused(self):
        other = "aarch64" if support.X86 else "x86_64"
        compiler = self.write("other", "#!/bin/sh\necho '#define __%s__ 1'\n" % other)
        os.chmod(compiler, 0o755)
        result = self.rillcc("--target", "cpu:native", "--list-targets", "--cxx", compiler)
        self.assertEqual(result.returncode, 1)
        self.assertIn("--target cpu:native: %s compiles for " % compiler, result.stderr)


@unittest.skipUnless(CLANG, "no clang++")
class CompileCommands(support.TestCase):
    """A file that clangd reads, with the command by which clang checks a source."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("own"))
        self.write("own/own.h", "static __device__ int own(int v) { return v + ADDED; }\n")

    def entries(self, *names):
        for name in names:
            options = ["--cuda-names", "-I", ".", "-D", "TYPE=int", "-D", "ADDED=%d" % len(name)]
            result = self.rillcc("--compile-commands", "compile_commands.json", *options, name)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        return json.loads(self.read("compile_commands.json"))

    def run_entry(self, entry):
        arguments = [CLANG, *entry["arguments"][1:]]
        done = subprocess.run(arguments, cwd=entry["directory"], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def test_clang_takes_a_source_by_its_command(self):
        for name in ("a.kernel.cu", "own/a.kernel.cu"):
            self.write(name, SOURCE + "static_assert(ADDED == %d);\n" % len(name))
        self.assertEqual(len(self.entries("a.kernel.cu", "own/a.kernel.cu")), 2)
        entries = self.entries("a.kernel.cu")  # in place of its own
        self.assertEqual([entry["file"] for entry in entries], [self.path("own/a.kernel.cu"), self.path("a.kernel.cu")])
        for entry in entries:
            self.assertEqual(self.run_entry(entry), (0, ""))
        self.write("a.kernel.cu", SOURCE + "__global__ void wrong(float *x) { x[unknown] = 1; }\n")
        code, text = self.run_entry(entries[1])
        self.assertEqual(code, 1)
        self.assertIn("a.kernel.cu:4:37: error: use of undeclared identifier 'unknown'", text)

    def test_the_command_of_the_documents_works(self):
        with open(os.path.join(support.ROOT, "docs", "reference", "KERNELS.md"), encoding="utf-8") as file:
            (line,) = re.findall(r"^clang\+\+ (-x .*)$", file.read(), re.MULTILINE)
        shutil.copy(os.path.join(support.ROOT, "docs", "examples", "saxpy.kernel.cu"), self.folder)
        self.assertEqual(self.run_compiler([CLANG, *line.replace("INCLUDE", support.INCLUDE).split()]), (0, ""))

    @unittest.skipUnless(shutil.which("clangd"), "no clangd")
    def test_clangd_takes_a_source(self):
        for text, code in ((SOURCE, 0), (SOURCE + "__global__ void wrong(float *x) { x[unknown] = 1; }\n", 1)):
            self.write("a.kernel.cu", text)
            self.entries("a.kernel.cu")
            command = ["clangd", "--check=" + self.path("a.kernel.cu"), "--compile-commands-dir=" + self.folder]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
            self.assertEqual("[undeclared_var_use]" in done.stderr, code == 1, done.stderr)
            self.assertIn("All checks completed, %d errors" % code, done.stderr)

    def test_other_entries_are_kept(self):
        self.write("a.kernel.cu", SOURCE)
        other = {"directory": "/somewhere", "file": "c.c", "command": "cc -c c.c"}
        self.write("compile_commands.json", json.dumps([other]))
        self.assertEqual(self.entries("a.kernel.cu")[0], other)
        for text in ("{}", "[1]", "nothing"):
            self.write("compile_commands.json", text)
            result = self.rillcc("--compile-commands", "compile_commands.json", "a.kernel.cu")
            self.assertEqual((result.returncode, self.read("compile_commands.json")), (1, text))
            self.assertIn("compile_commands.json", result.stderr)

    def test_compile_commands_compiles_nothing(self):
        for arguments in ((), ("a.kernel.cu", "-o", "a.rill.c"), ("a.kernel.cu", "--depfile", "a.d")):
            result = self.rillcc("--compile-commands", "compile_commands.json", *arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn("--compile-commands FILE needs a source and no output file", result.stderr)


if __name__ == "__main__":
    support.main()
