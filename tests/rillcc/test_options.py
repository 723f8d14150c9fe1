#!/usr/bin/env python3
"""rillcc's options for writing kernels."""

import os

import support
from rillcc_lib import host
from support import ONE


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

    def test_what_is_compiled_for_another_machine(self):
        other = "aarch64" if support.X86 else "x86_64"
        compiler = self.write("other", "#!/bin/sh\necho '#define __%s__ 1'\n" % other)
        os.chmod(compiler, 0o755)
        result = self.rillcc("--target", "cpu:native", "--list-targets", "--cxx", compiler)
        self.assertEqual(result.returncode, 1)
        self.assertIn("--target cpu:native: %s makes code for " % compiler, result.stderr)


if __name__ == "__main__":
    support.main()
