#!/usr/bin/env python3
"""The functions of <math.h> on GPUs without a vendor's library: that they are all there, and how exact they are."""

import ctypes
import math
import os
import random
import re
import unittest

import support
from support import CLANG, CUDA_CLANG, ROOT, Bundle, listing
from rillcc_lib import clc, ir, llvm

TARGETS = ("gfx90a", "gfx1030", "gfx1100")
ONE = "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()
ONE += "erf erfc cbrt".split()
TWO = "pow atan2 fmod remainder hypot fdim".split()


def cube_root(x):
    root = math.copysign(abs(x) ** (1 / 3), x)
    return root - (root - x / (root * root)) / 3


REFERENCE: dict = {
    "exp2": lambda x: 2.0**x,
    "exp10": lambda x: 10.0**x,
    "cbrt": cube_root,
    "fdim": lambda x, y: max(x - y, 0.0),
}
CONVERSION = re.compile(r"(%\w+) = (fptosi|fptoui) (float|double) (%\w+) to (i\d+)")
BITCODE = clc.find(CLANG) if CLANG else None
# The same functions for another machine, whose pointers are all of one kind, as this one's are.
ANYWHERE = BITCODE and os.path.join(os.path.dirname(BITCODE), "nvptx64--nvidiacl.bc")


def stated():
    """Units in the last place by function, as docs/reference/KERNELS.md has them."""
    with open(os.path.join(ROOT, "docs", "reference", "KERNELS.md"), encoding="utf-8") as file:
        text = file.read().partition("## Mathematics without a vendor's library")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*`) \| (\d+) \|$", text, re.MULTILINE)
    return {name: int(bound) for names, bound in rows for name in re.findall(r"`(\w+)`", names)}


def symbol(name, kind):
    return "_Z%d%s%s" % (len(name), name, kind * (2 if name in TWO else 1))


def expected(name, *values):
    try:
        return (REFERENCE.get(name) or getattr(math, name))(*values)
    except OverflowError:
        return -math.inf if name in ("sinh", "expm1") and values[0] < 0 else math.inf
    except (ValueError, ZeroDivisionError):
        return math.nan


def error(result, wanted, digits, least):
    """In units in the last place."""
    if math.isnan(wanted) or math.isnan(result):
        return 0.0 if math.isnan(wanted) == math.isnan(result) else math.inf
    if math.isinf(wanted) or math.isinf(result):
        largest = 3.4028234663852886e38 if digits == 24 else 1.7976931348623157e308
        return 0.0 if result == wanted or abs(wanted) > 0.9999 * largest else math.inf
    return abs(result - wanted) / math.ldexp(1.0, max(math.frexp(wanted)[1] - digits, least))


@unittest.skipUnless(BITCODE, "no clang 15 or later with lld, or no libclc for it")
class Math(support.TestCase):
    def all_functions(self):
        """Returns a source with every one of them."""
        one, two = "x[0] = {0}f(x[1]); y[0] = {0}(y[1]);", "x[0] = {0}f(x[1], x[4]); y[0] = {0}(y[1], y[4]);"
        lines = [one.format(n) + ("" if n == "exp10" else "x[2] = std::%s(x[3]);" % n) for n in ONE]
        lines += [two.format(n) + "x[2] = std::%s(x[3], x[4]);" % n for n in TWO]
        lines += ["sincosf(x[0], x + 1, x + 2); sincos(y[0], y + 1, y + 2);"]
        lines += ["x[0] = roundf(x[1]) + ldexpf(x[1], 3) + frexpf(x[2], n) + modff(x[3], x + 4) + nextafterf(x[5], x[6]);"]
        lines += ["n[0] = lroundf(x[0]) + llrint(y[0]); y[0] = nearbyint(y[0]) + round(y[2]) + __expf(x[7]) + rsqrtf(x[8]);"]
        lines += ["y[0] = sin(n[0]) + pow(x[1], 2) + pow(2, y[1]) + pow(x[2], y[2]) + atan2(n[0], n[1]) + fmod(x[3], 2.0);"]
        lines += ["x[0] = isnan(x[1]) ? nanf(\"\") : INFINITY; y[0] = isinf(y[1]) ? nan(\"\") : y[1];"]
        lines += ["static_assert(sizeof(pow(x[0], x[1])) == 4 && sizeof(pow(x[0], 2)) == 8 && sizeof(exp(n[0])) == 8, \"\");"]
        text = "#include <cmath>\n#include <rill/device/cuda_names.h>\n"
        parameters = "float *x, double *y, int *n"
        for i, line in enumerate(lines):
            text += "RILL_KERNEL(k%d, %s) {\n%s\n}\n" % (i, parameters, line)
        return self.write("k.kernel.cu", text)

    def test_every_function_compiles_and_is_there(self):
        targets = "hip:" + ",".join(TARGETS)
        c_file, _ = self.compile(self.all_functions(), "--target", targets, RILL_HIPCC="none", RILL_CLANG=CLANG)
        images = Bundle(self, c_file, "k_bundle").images
        self.assertEqual(len(images), len(TARGETS))
        for target, data in images.items():
            elf = listing.Elf(data)
            for section in elf.sections:
                if section[1] in (listing.SHT_SYMTAB, listing.SHT_DYNSYM):
                    missing = [name for name, _, _, index, _ in elf.symbols(section) if name and index == 0]
                    self.assertEqual(missing, [], target)
            self.assertEqual(data[8], 2)  # code objects of version 4

    @unittest.skipUnless(CUDA_CLANG and clc.find(CUDA_CLANG, "cuda"), "no libclc for NVIDIA GPUs")
    def test_every_function_is_there_for_nvidia(self):
        c_file, _ = self.compile(self.all_functions(), "--target", "cuda:ptx", RILL_NVCC="none", RILL_CLANG=CUDA_CLANG)
        bundle = Bundle(self, c_file, "k_bundle")
        self.check_ptx(bundle, bundle.images["cuda:ptx_70"], "70")
        self.assemble(bundle.images["cuda:ptx_70"], "75", "90")

    def build(self):
        """Returns the functions for this machine.  GPUs convert numbers that are too large to the largest integer."""
        library = llvm.Library(llvm.find_library(CLANG))
        module = ir.Module(library, ANYWHERE)
        self.addCleanup(module.close)
        keep = {symbol(name, kind) for name in ONE + TWO for kind in "fd"}
        for function in module.functions():
            if not library.IsDeclaration(function):
                library.SetLinkage(function, 0 if module.name(function) in keep else llvm.INTERNAL_LINKAGE)
                library.SetComdat(function, None)
        for variable in module.chain(library.GetFirstGlobal(module.handle), library.GetNextGlobal):
            library.SetLinkage(variable, llvm.INTERNAL_LINKAGE)
        module.run_passes("globaldce")
        text = ctypes.string_at(library.PrintModuleToString(module.handle)).decode()
        declarations = set()

        def saturate(match):
            result, kind, type_of, value, integer = match.groups()
            name = "@llvm.%s.sat.%s.%s" % (kind, integer, "f32" if type_of == "float" else "f64")
            declarations.add("declare %s %s(%s)\n" % (integer, name, type_of))
            return "%s = call %s %s(%s %s)" % (result, integer, name, type_of, value)

        text = CONVERSION.sub(saturate, text) + "".join(sorted(declarations))
        of_target = r'"target-(features|cpu)"="[^"]*"|^target (triple|datalayout) = .*$'
        text = re.sub(of_target, "", text, flags=re.MULTILINE)
        path = self.path("functions.so")
        command = [CLANG, "-w", "-x", "ir", "-O1", "-fPIC", "-shared", "-o", path, self.write("functions.ll", text)]
        self.assertEqual(self.run_compiler(command), (0, ""))
        return ctypes.CDLL(path)

    @unittest.skipUnless(ANYWHERE and os.path.exists(ANYWHERE), "libclc is here for AMD alone")
    def test_errors_are_within_what_is_stated(self):
        functions, bounds = self.build(), stated()
        self.assertEqual(sorted(bounds), sorted(ONE + TWO))
        kinds = ("f", ctypes.c_float, 24, -149, 0.5), ("d", ctypes.c_double, 53, -1074, 2)
        for kind, number, digits, least, more in kinds:
            for name in ONE + TWO:
                # erfcf goes by double.
                inside = ctypes.c_double if name == "erfc" else number
                function = getattr(functions, symbol(name, "d" if name == "erfc" else kind))
                function.restype, count = inside, 2 if name in TWO else 1
                function.argtypes = [inside] * count
                numbers = random.Random(name)
                worst: tuple = (0.0, ())
                for i in range(4000):
                    size = (1, 10, 100, 3e4, 1e30)[i % 5]
                    values = [number(numbers.uniform(-size, size)).value for _ in range(count)]
                    wanted, result = expected(name, *values), number(function(*values)).value
                    if abs(wanted) < 1.2e-38 and kind == "f":
                        wanted = result if abs(result) < 1.2e-38 else wanted  # it may become 0
                    worst = max(worst, (error(result, wanted, digits, least), tuple(values)))
                self.assertLessEqual(worst[0], bounds[name] + more, "%s of %s" % (symbol(name, kind), worst[1]))


if __name__ == "__main__":
    support.main()
