"""Kernels in both forms, loops by clang and fibers by the usual compiler, which give the same bits."""

import ctypes
import os
import random
import re
import shutil
import unittest

import support
from support import HOST, HostImage, pointer_to


@unittest.skipUnless(support.LOOPS, "no clang 15 or later whose LLVM can be loaded")
class Differential(support.TestCase):
    """Both forms of a kernel give the same bits, on blocks of many shapes."""

    def open(self, source, *arguments):
        """Compiles a source without a warning; returns its image, and sets `forms` to how rillcc says that each kernel
        runs."""
        c_file = self.path("out.rill.c")
        result = self.rillcc("-v", "-o", c_file, "--target", HOST, *arguments, source)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = [line for line in result.stderr.splitlines() if not shutil.which(line.split(" ")[0])]
        notes = [re.fullmatch(re.escape(HOST) + r': kernel "(\w+)": (.*)', line) for line in said]
        self.assertEqual([line for line, note in zip(said, notes) if not note], [])
        self.forms = {note[1]: note[2] for note in notes if note}
        name = "image%d" % len(os.listdir(self.folder))  # a library that is loaded is not to be written over
        return HostImage(self, name, support.host_images(c_file)[HOST])

    def open_all(self, source, *more):
        """Each kernel's name, and the two forms of it: loops by clang, and fibers by the usual compiler."""
        fibers = self.open(source, "--fibers", *more)
        self.images = [self.open(source, *more), fibers]
        names = sorted(self.images[0].kernels)
        for image in self.images:  # their code must stay
            self.assertEqual(sorted(image.kernels), names)
        return {name: [image.kernels[name] for image in self.images] for name in names}

    def compare(self, runner, forms, n, grid, block, count=None, limit=None):
        threads = block[0] * block[1] * block[2]
        count = count or n
        numbers = random.Random(n * 31 + threads)
        x = (ctypes.c_float * count)(*[numbers.uniform(-4, 60) for _ in range(count)])
        results = []
        for kernel, as_loops in zip(forms, (1, 0)):
            y = (ctypes.c_float * (count + 8))(*([0.5] * count + [7.0] * 8))
            limits = (ctypes.c_int(n),) if limit is None else (ctypes.c_int(n), ctypes.c_int(limit))
            values = *limits, pointer_to(x), pointer_to(y)
            outcome = runner.run(kernel, as_loops, grid, block, 8 * threads, *values)
            self.assertEqual(outcome, 0, kernel.name)
            self.assertEqual(list(y[count:]), [7.0] * 8)
            results.append(bytes(y))
        self.assertTrue(results[0] == results[1], "%s, n %d, block %s" % (forms[0].name, n, block))
        return y
