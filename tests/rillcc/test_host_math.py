#!/usr/bin/env python3
"""The functions of <math.h> that rill has itself for the cpu: how exact they are, in both forms, and that they are vectors."""

import ctypes
import os
import random
import re
import struct
import unittest

import differential
import support
from rillcc_lib import listing, spmd
from support import CC, HERE, ROOT, STRICT_C, Runner, pointer_to

TWO = ("pow", "atan2", "hypot")
OF_CUDA = ("sinpi", "cospi", "normcdf")
MORE = 0.005  # what the reference's own error may add, and the last digit of a bound
STEP = 997  # of all floats, every so many
IN_BOTH_FORMS = 50000  # values at most: the test runs fibers slowly


def stated():
    """Units in the last place by function, as docs/KERNELS.md has them."""
    with open(os.path.join(ROOT, "docs", "KERNELS.md"), encoding="utf-8") as file:
        text = file.read().partition("### Functions that rill has itself")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*`) \| ([\d.]+) \|$", text, re.MULTILINE)
    return {name: float(bound) for names, bound in rows for name in re.findall(r"`(\w+)`", names)}


def source_of(names):
    """A kernel for each function."""
    text = "#include <cmath>\n#include <rill/device/cuda_names.h>\n"
    for i, name in enumerate(sorted(names)):
        number, plain = ("float", name[:-1]) if name.endswith("f") and name != "erf" else ("double", name)
        function = "std::" + plain if i % 2 and plain not in (*OF_CUDA, "exp10") else name
        call = "%s(x[i], y[i])" % function if plain in TWO else "%s(x[i])" % function
        text += f"RILL_KERNEL(use_{name}, int n, const {number} *x, const {number} *y, {number} *z) {{ "
        text += "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) z[i] = %s; }\n" % call
    return text


class HostMath(differential.Differential):
    def setUp(self):
        super().setUp()
        self.names = [name for name in spmd.MATHEMATICS if not name.startswith("sincos")]

    def reference(self):
        path = self.path("exactness.so")
        command = CC + STRICT_C + ["-O2", "-fPIC", "-shared", "-o", path, os.path.join(HERE, "exactness.c"), "-lm"]
        self.assertEqual(self.run_compiler(command), (0, ""))
        library = ctypes.CDLL(path)
        library.worst_of_floats.restype = library.worst_of_doubles.restype = ctypes.c_double
        return library

    def floats(self):
        """Those around all powers of 2 and around limits of the functions, and floats of every size, fewer of them first."""
        bits = [(e << 23) + d & 0xFFFFFFFF for e in range(512) for d in range(-4, 5)]
        limits = (88.72283, 89.415985, 128, 38.53184, -87.33655, -103.97208, -149.5, 0.70710677, 1.5707964, 10.05, 3.92, 14.2)
        bits += [struct.unpack("I", struct.pack("f", s * x))[0] + d for x in limits for s in (1, -1) for d in range(-4, 5)]
        return bits + list(range(0, 1 << 32, 211 * STEP)) + list(range(0, 1 << 32, STEP))

    def pairs(self, kind, count):
        """All pairs of special numbers, and others of which some are near 1, small or integers."""
        special = [0.0, 1.0, 0.5, 2.0, 3.0, 0.33333334, 1.0000001, 0.99999994, 1e10, 1e-30, 128.0, 149.0, 1e-45, 3.4e38, float("inf")]
        special += [float("nan"), 16777215.0, 16777216.0, 8388607.5, 8388609.0]
        special += [] if kind == "f" else [1 + 2.0**-52, 1 - 2.0**-53, 5e-324, 1.7e308, 1074.0, 2.0**53 - 1, 2.0**53, 2.0**52 - 0.5]
        special += [-x for x in special]
        found = [(x, y) for x in special for y in special]
        numbers = random.Random(kind)
        sizes = [numbers.uniform(-40, 40) for _ in range(count)]
        found += [(2.0**s * numbers.choice((1, 1, -1)), numbers.uniform(-30, 30)) for s in sizes]
        found += [(numbers.uniform(0, 2), 2.0**s) for s in sizes]
        found += [(numbers.uniform(-5, 5), float(numbers.randint(-90, 90))) for s in sizes]
        found += [(numbers.uniform(-1, 1) * 2.0**s, numbers.uniform(-1, 1) * 2.0 ** numbers.choice(sizes)) for s in sizes]
        return list(zip(*found))

    def check(self, names, number, values, second):
        """Runs the functions, and the first of the values in both forms."""
        runner, kernels, library = Runner(self), self.open_all(self.write("k.kernel.cu", source_of(names))), self.reference()
        worst_of = library.worst_of_floats if number == ctypes.c_float else library.worst_of_doubles
        bounds, some = stated(), min(len(values), IN_BOTH_FORMS)
        for name in names:
            results, at = [], ctypes.c_size_t()
            for kernel, as_loops, count in zip(kernels["use_" + name], (1, 0), (len(values), some)):
                results.append((number * count)())
                grid, arrays = ((count + 1023) // 1024, 1, 1), map(pointer_to, (values, second, results[-1]))
                self.assertEqual(runner.run(kernel, as_loops, grid, (1024, 1, 1), 0, ctypes.c_int(count), *arrays), 0)
            z = results[0]
            plain = name[:-1] if number == ctypes.c_float else name
            worst = worst_of(plain.encode(), ctypes.c_size_t(len(values)), values, second, z, ctypes.byref(at))
            text = "%s of %r and %r: %r" % (name, values[at.value], second[at.value], z[at.value])
            self.assertLess(worst, bounds[name] + MORE, text)
            self.assertGreater(worst, bounds[name] * 0.8 - 0.1, "docs/KERNELS.md has a bound that is much too large: " + name)
            self.assertEqual(library.differences(ctypes.sizeof(number), ctypes.c_size_t(some), *results), 0, name)

    def test_floats(self):
        names = [name for name in self.names if name.endswith("f") and name != "erf"]
        bits = self.floats()
        values = (ctypes.c_float * len(bits)).from_buffer((ctypes.c_uint * len(bits))(*bits))
        self.check([name for name in names if name[:-1] not in TWO], ctypes.c_float, values, values)
        x, y = ((ctypes.c_float * len(numbers))(*numbers) for numbers in self.pairs("f", 100000))
        self.check([name for name in names if name[:-1] in TWO], ctypes.c_float, x, y)

    def test_nothing_is_left_of_a_square(self):
        """The power that sources raise floats to most: a product alone."""
        text = "#include <cmath>\n#include <rill/device/kernel.h>\nRILL_KERNEL(k, float *x) { x[threadIdx.x] = %s; }\n"
        images = set()
        for call in ("x[threadIdx.x] * x[threadIdx.x]", "powf(x[threadIdx.x], 2.0f)", "std::pow(x[threadIdx.x], 2.0f)"):
            c_file, _ = self.compile(self.write("k.kernel.cu", text % call), "--target", support.HOST)
            library = "square%d.so" % len(os.listdir(self.folder))
            images.add(support.Bundle(self, c_file, "k_bundle", library).images[support.HOST])
        self.assertEqual(len(images), 1)

    @unittest.skipUnless(support.X86, "the levels of x86-64")
    def test_functions_are_vectors(self):
        """No call of the C library is left, and clang says that it made a vector of each loop."""
        source = self.write("k.kernel.cu", source_of(self.names))
        record = self.path("record.yaml")
        options = "-fsave-optimization-record", "-foptimization-record-passes=loop-vectorize", "-foptimization-record-file=" + record
        for level in ("x86-64", "x86-64-v3", "x86-64-v4"):
            self.compile(source, "--target", "cpu:" + level, *["--cpu-option=" + option for option in options])
            vectors = set(re.findall(r"^Name: +Vectorized\n(?:.*\n)*?Function: +\w*_use_(\w+?)iPK[fd]", self.read(record), re.MULTILINE))
            if level != "x86-64":
                self.assertEqual(set(self.names) - vectors, set(), level)
            elf = listing.Elf(support.Bundle(self, self.path("out.rill.c"), "k_bundle", level + ".so").images["cpu:" + level])
            missing = set()
            for section in elf.sections:
                if section[1] in (listing.SHT_SYMTAB, listing.SHT_DYNSYM):
                    missing |= {name.partition("@")[0] for name, _, _, index, _ in elf.symbols(section) if index == 0}
            self.assertEqual(missing & {*self.names, "sincos", "sincosf"}, set(), level)


if __name__ == "__main__":
    support.main()
