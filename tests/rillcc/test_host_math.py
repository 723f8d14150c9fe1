#!/usr/bin/env python3
"""The functions of <math.h> that rill has itself for the cpu: how exact they are, in both forms, and that they are vectors."""

import ctypes
import fractions
import math
import os
import random
import re
import shutil
import struct
import subprocess
import unittest

import differential
import support
from rillcc_lib import listing, spmd, vector_calls
from support import CC, HERE, ROOT, STRICT_C, Runner, pointer_to

TWO = ("pow", "atan2", "hypot")
OF_CUDA = ("sinpi", "cospi", "normcdf")
OF_FLOATS = [name for name in spmd.MATHEMATICS if name != "sincosf"] + ["normcdff"]
OF_DOUBLES = [name for name in spmd.MATHEMATICS_OF_DOUBLE if name != "sincos"]
MORE = 0.005  # what the reference's own error may add, and the last digit of a bound
STEP = 997  # of all floats, every so many
IN_BOTH_FORMS = 50000  # values at most: the test runs fibers slowly


def stated():
    """Units in the last place by function, as docs/reference/KERNELS.md has them."""
    with open(os.path.join(ROOT, "docs", "reference", "KERNELS.md"), encoding="utf-8") as file:
        text = file.read().partition("### Functions that rill implements")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*`) \| ([\d.]+) \|$", text, re.MULTILINE)
    return {name: float(bound) for names, bound in rows for name in re.findall(r"`(\w+)`", names)}


def source_of(names):
    """Returns a kernel for each function."""
    text = "#include <cmath>\n#include <rill/device/cuda_names.h>\n"
    for i, name in enumerate(sorted(names)):
        number, plain = ("float", name[:-1]) if name in OF_FLOATS else ("double", name)
        function = "std::" + plain if i % 2 and plain not in (*OF_CUDA, "exp10") else name
        call = "%s(x[i], y[i])" % function if plain in TWO else "%s(x[i])" % function
        text += f"RILL_KERNEL(use_{name}, int n, const {number} *x, const {number} *y, {number} *z) {{ "
        text += "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) z[i] = %s; }\n" % call
    return text


def exactly(digits, bias, bits):
    """What 16 bits mean: a fraction, or an infinity or a NaN as a float."""
    exponent, fraction = bits >> digits & (1 << 15 - digits) - 1, bits & (1 << digits) - 1
    sign = -1 if bits >> 15 else 1
    if exponent == (1 << 15 - digits) - 1:
        return math.nan if fraction else sign * math.inf
    number = fraction + (1 << digits if exponent else 0)
    return sign * number * fractions.Fraction(2) ** (max(exponent, 1) - bias - digits)


def fused(digits, bias, *bits):
    """Returns the bits of a * b + c, without the sign of a zero; or None for a NaN."""
    a, b, c = (exactly(digits, bias, number) for number in bits)
    if any(isinstance(x, float) for x in (a, b, c)):
        a, b, c = (x if isinstance(x, float) else float((x > 0) - (x < 0)) for x in (a, b, c))
        result = a * b + c
        return None if math.isnan(result) else (0x8000 if result < 0 else 0) | ((1 << 15 - digits) - 1) << digits
    exact = a * b + c
    size, low, high = abs(exact), 0, ((1 << 15 - digits) - 1) << digits
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exactly(digits, bias, middle) <= size else (low, middle)
    step = fractions.Fraction(2) ** (max(low >> digits, 1) - bias - digits)
    rest = size - exactly(digits, bias, low)
    return (0x8000 if exact < 0 else 0) | (low + (rest > step / 2 or (rest == step / 2 and low & 1)))


def same(digits, found, wanted):
    if wanted is None:
        return found & 0x7FFF > ((1 << 15 - digits) - 1) << digits
    return found == wanted or (found | wanted) & 0x7FFF == 0


class HostMath(differential.Differential):
    def setUp(self):
        super().setUp()
        self.names = [*OF_FLOATS, *OF_DOUBLES]

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
        """Returns all pairs of special numbers, and others of which some are near 1, small or integers."""
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
            self.assertGreater(worst, bounds[name] * 0.7 - 0.1, "docs/reference/KERNELS.md has a bound that is much too large: " + name)
            self.assertEqual(library.differences(ctypes.sizeof(number), ctypes.c_size_t(some), *results), 0, name)

    def test_the_documents_list_every_function(self):
        self.assertEqual(sorted(stated()), sorted(self.names))

    def test_functions_of_floats_are_accurate(self):
        names = [name for name in self.names if name in OF_FLOATS]
        bits = self.floats()
        values = (ctypes.c_float * len(bits)).from_buffer((ctypes.c_uint * len(bits))(*bits))
        self.check([name for name in names if name[:-1] not in TWO], ctypes.c_float, values, values)
        x, y = ((ctypes.c_float * len(numbers))(*numbers) for numbers in self.pairs("f", 100000))
        self.check([name for name in names if name[:-1] in TWO], ctypes.c_float, x, y)

    def test_functions_of_doubles_are_accurate(self):
        """Doubles of every size, those around powers of 2, small ones of which functions are steep, limits, and numbers near
        multiples of pi / 2, including the nearest of some binades. Neighbours in a vector are near and far."""
        numbers = random.Random(3)
        bits = [(e << 52) + d & (1 << 64) - 1 for e in range(0, 4096, 3) for d in range(-3, 4)]
        bits += [numbers.getrandbits(64) for _ in range(200000)]
        values = [x for (x,) in struct.iter_unpack("d", struct.pack("%dQ" % len(bits), *bits))]
        limits = [709.782712893384, -745.1332191019412, 710.4758600739439, 308.2547155599167, 1024.0, -1074.5, 2.0**0.5, 22.0]
        values = [0.0, -0.0, 10.0, 1000.0, *limits, *(-x for x in limits), *values]
        values += [numbers.uniform(-1, 1) * size for size in (1, 1, 1, 2, 30, 800) for _ in range(50000)]
        values += [1 + numbers.uniform(-1, 1) / size for size in (2, 3, 100) for _ in range(50000)]
        turns = [numbers.getrandbits(numbers.randint(1, 40)) * (math.pi / 2) for _ in range(20000)]
        turns += [4e5, *map(float.fromhex, ("0x1.6c6cbc45dc8dep5", "0x1.bf9b3c6059d24p17", "0x1.6ac5b262ca1ffp849"))]
        for turn in turns:
            near = struct.unpack("q", struct.pack("d", turn))[0] + numbers.randint(-2, 2)
            values += [sign * y for y in (turn, *struct.unpack("d", struct.pack("q", near))) for sign in (1, -1)]
        values += [numbers.uniform(-5e5, 5e5) for _ in range(50000)]
        names = [name for name in self.names if name in OF_DOUBLES]
        x = (ctypes.c_double * len(values))(*values)
        self.check([name for name in names if name not in TWO], ctypes.c_double, x, x)
        x, y = ((ctypes.c_double * len(column))(*column) for column in self.pairs("d", 50000))
        self.check([name for name in names if name in TWO], ctypes.c_double, x, y)

    def test_numbers_of_16_bits_are_rounded_once(self):
        """a * b + c is rounded once, also where a float, or a double, of the sum is just the middle of two numbers."""
        text, formats = "#include <rill/device/cuda_names.h>\n", {"__half": (10, 15), "__nv_bfloat16": (7, 127)}
        for name in formats:
            text += f"RILL_KERNEL(fused{name}, int n, const {name} *x, const {name} *y, {name} *z) {{ "
            text += "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) z[i] = __hfma(x[i], y[i], z[i]); }\n"
        runner, kernels = Runner(self), self.open_all(self.write("k.kernel.cu", text))
        for name, (digits, bias) in formats.items():
            numbers, one = random.Random(name), bias << digits
            cases = [[numbers.getrandbits(16) for _ in range(3)] for _ in range(3000)]
            for _ in range(3000):  # the product is near half of the last digit of c, or the other way round
                a, b = one + numbers.randrange(1 << digits), one - numbers.randrange(1 << digits + 1)
                c = one + numbers.randrange(1 << digits) + ((digits + numbers.randrange(3)) << digits)
                cases += [[a, b, c | numbers.getrandbits(1) << 15], [a, b, numbers.getrandbits(digits) + 1]]
            # The square of 1 + 2^-4 (of 1 + 2^-6, a half's) is a middle, to which next to nothing is added.
            cases += [[one + (1 << digits // 2), one + (1 << digits - digits // 2 - 1), c] for c in (0, 1, 0x8001, 0x80, 0x8080)]
            x, y, z = ((ctypes.c_ushort * len(cases))(*column) for column in zip(*cases))
            for kernel, as_loops in zip(kernels["fused" + name], (1, 0)):
                result = (ctypes.c_ushort * len(cases))(*z)
                values = ctypes.c_int(len(cases)), *map(pointer_to, (x, y, result))
                self.assertEqual(runner.run(kernel, as_loops, ((len(cases) + 255) // 256, 1, 1), (256, 1, 1), 0, *values), 0)
                for numbers_in, found in zip(cases, result):
                    wanted = fused(digits, bias, *numbers_in)
                    self.assertTrue(same(digits, found, wanted), "%s of %r: %#x, not %r" % (name, numbers_in, found, wanted))

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
    def test_levels_return_the_same_bits(self):
        """Vectors have another size at each level. In the second kernel, those of 8 doubles are passed between functions
        for which clang prefers 256 bits."""
        text = "#include <cmath>\n#include <rill/device/cuda_names.h>\n"
        text += "RILL_KERNEL(doubles, const double *x, double *y) { const int i = blockIdx.x * 256 + threadIdx.x; double s, c; "
        text += "sincos(x[i], &s, &c); y[i] = s + tan(x[i]) * c + sinpi(x[i]); }\n"
        text += "RILL_KERNEL(floats, const double *x, double *y) { __shared__ float t[256]; const int j = threadIdx.x; "
        text += "t[j] = x[blockIdx.x * 256 + j]; __syncthreads(); t[j] = sin(double(t[j])) + tan(double(t[j])); __syncthreads(); "
        text += "y[blockIdx.x * 256 + j] = t[255 - j] * cos(double(t[j])); }\n"
        levels = [level for level in ("x86-64", "x86-64-v3", "x86-64-v4") if support.runnable(level)]
        self.compile(self.write("k.kernel.cu", text), "--target", "cpu:" + ",".join(levels))
        images = support.host_images(self.path("out.rill.c"))
        numbers, runner, count = random.Random(5), Runner(self), 256 * 200
        values = [numbers.uniform(-9, 9) * numbers.choice((1,) * 20 + (1e5, 1e30)) for _ in range(count)]
        x, results = (ctypes.c_double * count)(*values), {}
        for level in levels:
            image = support.HostImage(self, level, images["cpu:" + level])
            for name, kernel in image.kernels.items():
                y = (ctypes.c_double * count)()
                self.assertEqual(runner.run(kernel, 1, (count // 256, 1, 1), (256, 1, 1), 0, pointer_to(x), pointer_to(y)), 0)
                self.assertTrue(results.setdefault(name, bytes(y)) == bytes(y), (name, level))
        self.assertEqual(sorted(results), ["doubles", "floats"])
        self.assertGreater(len(set(struct.unpack("%dd" % count, results["floats"]))), count // 2)

    @unittest.skipUnless(support.X86 and shutil.which("objdump"), "no objdump for x86")
    def test_calls_are_calls_of_vectors(self):
        """A loop calls the function of as many numbers as a vector has, also between floats, under a condition and in a
        kernel with barriers."""
        text = "#include <cmath>\n#include <rill/device/cuda_names.h>\n"
        text += "RILL_KERNEL(plain, const double *x, double *y) { const int i = threadIdx.x; y[i] = %s(x[i]); }\n"
        text += "RILL_KERNEL(floats, const float *x, float *y) { const int i = threadIdx.x; y[i] = float(%s(double(x[i]))); }\n"
        text += "RILL_KERNEL(some, const double *x, double *y) { const int i = threadIdx.x; if (x[i] > y[i]) y[i] = %s(x[i]); }\n"
        text += "RILL_KERNEL(waits, const double *x, double *y) { __shared__ double t[256]; const int i = threadIdx.x; "
        text += "t[i] = %s(x[i]); __syncthreads(); y[i] = t[255 - i]; }\n"
        lanes = {"x86-64": (2, 4, 2, 2), "x86-64-v3": (4, 8, 4, 4), "x86-64-v4": (8, 8, 8, 4)}
        for name in vector_calls.FUNCTIONS:
            source = self.write("k.kernel.cu", text.replace("%s", name))
            for level, wanted in lanes.items():
                self.compile(source, "--target", "cpu:" + level)
                path = self.path("image.so")
                with open(path, "wb") as file:
                    file.write(support.Bundle(self, self.path("out.rill.c"), "k_bundle", name + level + ".so").images["cpu:" + level])
                shown = subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=True).stdout
                functions = dict(re.findall(r"^\w+ <(.*)>:\n((?:.+\n)*)", shown, re.MULTILINE))
                for kernel, number in zip(("plain", "floats", "some", "waits"), wanted):
                    code = "".join(body for symbol, body in functions.items() if kernel + "v.block" in symbol)
                    found = set(map(int, re.findall("<rill_math_%s_by_([0-9]+)>" % name, code)))
                    self.assertIn(number, found, (name, level, kernel))

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
