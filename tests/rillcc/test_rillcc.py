#!/usr/bin/env python3
"""Tests of rillcc: what it writes, for every compiler on this machine, and what it says when it cannot."""

import ctypes
import os
import random
import re
import shutil
import struct
import unittest

import support
from support import CC, CXX, HERE, INCLUDE, KERNELS, STRICT_C, STRICT_CXX, Bundle, HostImage, pointer_to

from rillcc_lib import compilers, offload, scan  # noqa: E402
from rillcc_lib.errors import RillccError  # noqa: E402

ELF_MACHINE = {"cuda": 190, "hip": 224, "cpu:x86-64": 62}
AMD_MACH = {"gfx90a": 0x3F, "gfx1030": 0x36, "gfx942": 0x4C, "gfx1100": 0x41, "gfx1201": 0x4E}
BARRIERS = {"basic": {"block_sum"}, "gate": set(), "image": {"image_blur"}, "dialect": {"rotate"}}
SOURCES = {name: os.path.join(KERNELS, name + ".kernel.cu") for name in ("basic", "gate", "image")}
SOURCES["dialect"] = os.path.join(HERE, "dialect.kernel.cu")

HAVE_NVCC = compilers.find_program(os.environ.get("RILL_NVCC"), "nvcc", ("CUDA_HOME", "CUDA_PATH"), "/usr/local/cuda/bin")
HAVE_HIPCC = compilers.find_program(os.environ.get("RILL_HIPCC"), "hipcc", ("HIP_PATH", "ROCM_PATH"), "/opt/rocm/bin")
HAVE_CLANG = compilers.find_clang(os.environ.get("RILL_CLANG"))
X86 = os.uname().machine == "x86_64"
HOST = "cpu:x86-64" if X86 else "cpu:" + os.uname().machine
ONE = "#include <rill/device/kernel.h>\nRILL_KERNEL(one, int n, float *x) { if (n) x[0] = 1; }\n"


class Images(support.TestCase):
    """Every kernel source of the project, by every compiler that is here."""

    def check(self, name):
        c_file, header = self.compile(SOURCES[name])
        bundle = Bundle(self, c_file, name + "_bundle")
        self.assertEqual((bundle.data.magic, bundle.data.version), (0x4C4C4952, 1))
        self.assertEqual(bundle.data.name.decode(), name)
        expected = []
        if HAVE_NVCC:
            expected += ["cuda:sm_80", "cuda:sm_90", "cuda:ptx_80"]
        if HAVE_HIPCC or HAVE_CLANG:
            expected += ["hip:gfx90a", "hip:gfx1030"]
        expected += ["cpu:x86-64", "cpu:x86-64-v3", "cpu:x86-64-v4"] if X86 else [HOST]
        self.assertEqual(list(bundle.images), expected)
        for label, data in bundle.images.items():
            backend, _, target = label.partition(":")
            if backend == "cuda" and target.startswith("ptx"):
                self.check_ptx(bundle, data)
            elif backend == "cuda":
                self.check_cubin(data, int(target[3:]))
            elif backend == "hip":
                self.check_code_object(bundle, data, target)
            else:
                self.check_host_image(bundle, target, data, BARRIERS[name])
        self.check_headers(header, c_file)

    def check_elf(self, data, machine):
        self.assertEqual(data[:6], b"\x7fELF\x02\x01")
        self.assertEqual(struct.unpack_from("<H", data, 18)[0], machine)
        return struct.unpack_from("<I", data, 48)[0]

    def check_cubin(self, data, capability):
        flags = self.check_elf(data, ELF_MACHINE["cuda"])
        # The number moved up by 8 bits with version 8 of the ABI.
        self.assertEqual(flags >> 8 & 0xFF if data[8] >= 8 else flags & 0xFF, capability)

    def check_ptx(self, bundle, data):
        self.assertEqual((data[-1:], data.count(b"\0")), (b"\0", 1))
        text = data[:-1].decode("ascii")
        self.assertIn(".target sm_80", text)
        bits = {"8": 1, "16": 2, "32": 4, "64": 8}
        entries = dict(re.findall(r"\.entry\s+(\w+)\s*\(([^)]*)\)", text))
        self.assertEqual(set(entries), set(bundle.kernels))
        for name, parameters in entries.items():
            sizes = [bits[size] for size in re.findall(r"\.param\s+\.[usbf](\d+)\s", parameters)]
            self.assertEqual(sizes, [size for _, size in bundle.kernels[name]], name)

    def check_code_object(self, bundle, data, target):
        flags = self.check_elf(data, ELF_MACHINE["hip"])
        self.assertEqual(flags & 0xFF, AMD_MACH[target])
        self.assertEqual(data[8], 2, "code object version 4")
        for name in bundle.kernels:
            self.assertTrue(b"\0%s.kd\0" % name.encode() in data, name)

    def check_host_image(self, bundle, target, data, barriers):
        if X86:
            self.check_elf(data, ELF_MACHINE["cpu:x86-64"])
        self.assertTrue(b"\0rill_cpu_image\0" in data)
        for word in ("libstdc++", HERE, self.folder):
            self.assertFalse(word.encode() in data, word)
        if not support.runnable(target):
            return
        image = HostImage(self, target, data)
        self.assertEqual((image.table.magic, image.table.version), (0x43504C52, 1))
        self.assertEqual(list(image.kernels), list(bundle.kernels))
        for name, kernel in image.kernels.items():
            self.assertEqual(list(kernel.arg_sizes[: kernel.arg_count]), [size for _, size in bundle.kernels[name]])
            self.assertEqual(bool(kernel.run_block), name not in barriers, name)
            self.assertTrue(kernel.run_thread)

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

    def test_basic(self):
        self.check("basic")

    def test_gate(self):
        self.check("gate")

    def test_image(self):
        self.check("image")

    def test_dialect(self):
        self.check("dialect")

    @unittest.skipUnless(HAVE_CLANG, "no clang 15 or later with lld")
    def test_without_hip_headers(self):
        targets = ["gfx90a", "gfx1030"]
        if int(re.search(r"(\d+)$", HAVE_CLANG + "15").group(1)) >= 18:
            targets += ["gfx942", "gfx1100"]
        for name, source in SOURCES.items():
            c_file, _ = self.compile(source, "--target", "hip:" + ",".join(targets), RILL_HIPCC="none")
            bundle = Bundle(self, c_file, name + "_bundle")
            self.assertEqual(list(bundle.images), ["hip:" + target for target in targets])
            for label, data in bundle.images.items():
                self.check_code_object(bundle, data, label.partition(":")[2])


class HostKernels(support.TestCase):
    """The host images give the right results, the same from every image that this machine can run."""

    def images(self, name):
        bundle = Bundle(self, self.compile(SOURCES[name], "--target", "cpu")[0], name + "_bundle")
        images = {label: data for label, data in bundle.images.items() if support.runnable(label.partition(":")[2])}
        self.assertTrue(images)
        return [HostImage(self, label, data) for label, data in images.items()]

    def test_axpy(self):
        n = 1000
        numbers = random.Random(1)
        x = [numbers.uniform(-1, 1) for _ in range(n)]
        results = []
        for image in self.images("basic"):
            xs, ys = (ctypes.c_float * n)(*x), (ctypes.c_float * (n + 24))(*([1.0] * n + [7.0] * 24))
            image.run("axpy", (8, 1, 1), (128, 1, 1), ctypes.c_int(n), ctypes.c_float(3.0), pointer_to(xs), pointer_to(ys))
            self.assertEqual(list(ys[n:]), [7.0] * 24)
            for i in range(n):
                # Two roundings, not one: a product and a sum are never fused on the host.
                product = ctypes.c_float(3.0 * xs[i]).value
                self.assertEqual(ys[i], ctypes.c_float(product + 1.0).value)
            results.append(bytes(ys))
        self.assertEqual(len(set(results)), 1)

    def test_basic(self):
        n = 100
        for image in self.images("basic"):
            grid, block, count = (4, 1, 1), (32, 1, 1), ctypes.c_int(n)
            xs, ys, zs = [(ctypes.c_float * n)(*range(n)) for _ in range(3)]
            image.run("fill", grid, block, count, ctypes.c_float(2.5), pointer_to(zs))
            self.assertEqual(list(zs), [2.5] * n)
            image.run("scale", grid, block, count, ctypes.c_float(2.0), pointer_to(xs))
            self.assertEqual(list(xs), [2.0 * i for i in range(n)])
            image.run("vector_add", grid, block, count, pointer_to(xs), pointer_to(ys), pointer_to(zs))
            self.assertEqual(list(zs), [3.0 * i for i in range(n)])
            words, total = (ctypes.c_uint * n)(*[i % 7 for i in range(n)]), ctypes.c_uint(5)
            image.run("count_equal", grid, block, count, ctypes.c_uint(3), pointer_to(words), pointer_to(total))
            self.assertEqual(total.value, 5 + 14)
            sums = (ctypes.c_float * n)()
            image.run("block_sum", (n, 1, 1), (1, 1, 1), count, pointer_to(ys), pointer_to(sums), shared=4)
            self.assertEqual(list(sums), list(ys))

    def test_gate(self):
        for image in self.images("gate"):
            one = (1, 1, 1)
            flag, late, counter = ctypes.c_uint(0), ctypes.c_uint(0), ctypes.c_uint(40)
            wait = (pointer_to(flag), ctypes.c_uint(9), ctypes.c_ulonglong(1000), pointer_to(late))
            image.run("wait_for_flag", one, one, *wait)
            self.assertEqual(late.value, 1)
            late.value = 0
            image.run("set_flag", one, one, pointer_to(flag), ctypes.c_uint(9))
            image.run("wait_for_flag", one, one, *wait)
            self.assertEqual((flag.value, late.value), (9, 0))
            image.run("increment", (2, 1, 1), one, pointer_to(counter))
            image.run("spin", one, one, ctypes.c_ulonglong(1000))
            self.assertEqual(counter.value, 42)

    def test_dialect(self):
        for image in self.images("dialect"):
            self.check_dialect(image)

    def check_dialect(self, image):
        one = (1, 1, 1)
        doubles = (ctypes.c_double * 9)()
        out = pointer_to(doubles)
        values = [ctypes.c_byte(-1), ctypes.c_short(-2), ctypes.c_int(-3), ctypes.c_longlong(2**40), ctypes.c_float(0.5)]
        values += [ctypes.c_double(0.1), out, ctypes.c_bool(True), ctypes.c_ubyte(200), out]
        image.run("arguments", one, one, *values)
        self.assertEqual(list(doubles), [-1, -2, -3, 2**40, 0.5, 0.1, 1, 1, 200])

        self.assertEqual(list(image.variables), ["gain", "table", "hits"])
        self.assertEqual([v.size for v in image.variables.values()], [4, 16, 8])
        image.run("no_arguments", (3, 1, 1), (5, 1, 1))
        self.assertEqual(ctypes.c_ulonglong.from_address(image.variables["hits"].address).value, 15)
        ctypes.c_float.from_address(image.variables["gain"].address).value = 10.0
        floats = (ctypes.c_float * 8)()
        image.run("constants", one, (8, 1, 1), ctypes.c_int(8), pointer_to(floats))
        self.assertEqual(list(floats), [10, 20, 40, 80] * 2)

        n = 2 * 3 * 4 * 5 * 6 * 7
        in_kernel, in_helper = (ctypes.c_uint * n)(), (ctypes.c_uint * n)()
        image.run("indices", (2, 3, 4), (5, 6, 7), pointer_to(in_kernel), pointer_to(in_helper))
        self.assertEqual(list(in_kernel), list(range(n)))
        self.assertEqual(list(in_helper), list(range(n)))

        # Threads that had passed the barrier before the last one arrived would read zeros.
        words = (ctypes.c_uint * 16)()
        image.run("rotate", (2, 1, 1), (8, 1, 1), pointer_to(words), shared=32)
        self.assertEqual(list(words), [1, 2, 3, 4, 5, 6, 7, 0] * 2)

        i, u, wide = (ctypes.c_int * 9)(), (ctypes.c_uint * 9)(*[12] * 9), (ctypes.c_ulonglong * 9)(*[12] * 9)
        f, d = (ctypes.c_float * 2)(1, 1), (ctypes.c_double * 1)(1)
        u[3] = wide[3] = 0
        image.run("atomics", one, (2, 1, 1), *map(pointer_to, (i, u, wide, f, d)))
        self.assertEqual(list(i), [4, -4, 7, 9, -5, 5, 0, 6, 0])
        self.assertEqual(list(u), [16, 8, 7, 9, 5, 12, 4, 14, 12])
        self.assertEqual(list(wide), [16, 12, 7, 9, 5, 12, 4, 14, 12])
        self.assertEqual((list(f), list(d)), ([2, 2], [1.5]))

        f, d, k = (ctypes.c_float * 6)(), (ctypes.c_double * 3)(), (ctypes.c_int * 5)()
        scalars = ctypes.c_float(2.25), ctypes.c_double(6.25), ctypes.c_int(-4)
        image.run("math", one, one, *scalars, *map(pointer_to, (f, d, k)))
        self.assertEqual(list(f), [1.5, 2.25, 3.25, 9, 6.0625, 4.25])
        self.assertEqual(list(d), [8.75, 1 + 6.25 + 6 + 7 + 6 + 6 + 40.0625, 8.25])
        self.assertEqual(list(k), [4, -1, 8, 8, 1])

        flag, count, elapsed = ctypes.c_uint(0), ctypes.c_ulonglong(41), ctypes.c_ulonglong(0)
        image.run("wait_a_little", one, one, *map(pointer_to, (flag, count, elapsed)))
        self.assertEqual((count.value, elapsed.value >= 1000), (42, True))


def binomial_blur(image, width, height):
    """Plain references of the filters, on lists of (r, g, b, a); the edges see the edge pixels."""

    def at(x, y):
        return image[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)]

    weights = (1, 4, 6, 4, 1)
    out = []
    for y in range(height):
        for x in range(width):
            sums = [128] * 4
            for dy, wy in enumerate(weights):
                for dx, wx in enumerate(weights):
                    for c, v in enumerate(at(x + dx - 2, y + dy - 2)):
                        sums[c] += wx * wy * v
            out.append(tuple(v >> 8 for v in sums))
    return out


def clamp(v):
    return min(max(v, 0), 255)


def luma(pixel):
    return (77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2] + 128) >> 8


def neighbours(image, width, height, combine):
    def at(x, y):
        return image[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)]

    return [
        combine([[at(x + dx, y + dy) for dx in (-1, 0, 1)] for dy in (-1, 0, 1)])
        for y in range(height)
        for x in range(width)
    ]


def sharpen(around, amount):
    (_, up, _), (left, center, right), (_, down, _) = around
    result = []
    for c in range(3):
        detail = 4 * center[c] - left[c] - right[c] - up[c] - down[c]
        result.append(clamp(center[c] + ((detail * amount + 128) >> 8)))
    return tuple(result) + (center[3],)


def edges(around):
    (a, b, c), (d, e, f), (g, h, i) = [[luma(p) for p in line] for line in around]
    grey = clamp(abs(c + 2 * f + i - a - 2 * d - g) + abs(g + 2 * h + i - a - 2 * b - c))
    return (grey, grey, grey, around[1][1][3])


def tone(pixel, saturation, contrast, brightness):
    result = []
    for c in pixel[:3]:
        vivid = luma(pixel) + (((c - luma(pixel)) * saturation + 128) >> 8)
        result.append(clamp(128 + (((vivid - 128) * contrast + 128) >> 8) + brightness))
    return tuple(result) + (pixel[3],)


class Filters(support.TestCase):
    """The image filters against plain references, whole pictures and tiles with borders."""

    WIDTH, HEIGHT = 45, 21

    def setUp(self):
        super().setUp()
        bundle = Bundle(self, self.compile(SOURCES["image"], "--target", HOST)[0], "image_bundle")
        self.image = HostImage(self, HOST, bundle.images[HOST])
        numbers = random.Random(2)
        self.picture = [tuple(numbers.randrange(256) for _ in range(4)) for _ in range(self.WIDTH * self.HEIGHT)]
        self.picture[:60] = [(255, 255, 255, 255)] * 60

    def filter(self, name, source, size, window, *more, block=(8, 4, 1)):
        """Runs a filter on a list of pixels of that size; gives the window (x, y, width, height)."""
        x, y, width, height = window
        src = (ctypes.c_uint8 * (4 * len(source)))(*[v for pixel in source for v in pixel])
        pitch = 4 * width + 12
        dst = (ctypes.c_uint8 * (pitch * height))(*[99] * (pitch * height))
        args = [pointer_to(dst), ctypes.c_size_t(pitch), ctypes.c_int(width), ctypes.c_int(height), pointer_to(src)]
        args += [ctypes.c_size_t(4 * size[0])]
        if name != "image_tone":
            args += [ctypes.c_int(v) for v in (*size, x, y)]
        args += [ctypes.c_int(v) for v in more]
        tile = (32, 8) if name == "image_blur" else block
        grid = ((width + tile[0] - 1) // tile[0], (height + tile[1] - 1) // tile[1], 1)
        self.image.run(name, grid, block, *args)
        for line in range(height):
            self.assertEqual(bytes(dst[line * pitch + 4 * width : (line + 1) * pitch]), b"\x63" * 12)
        return [tuple(dst[j * pitch + 4 * i : j * pitch + 4 * i + 4]) for j in range(height) for i in range(width)]

    def whole(self, name, picture, *more, **options):
        size = (self.WIDTH, self.HEIGHT)
        return self.filter(name, picture, size, (0, 0, *size), *more, **options)

    def test_blur(self):
        expected = binomial_blur(self.picture, self.WIDTH, self.HEIGHT)
        # One thread a block: every barrier is passed at once, and each thread does the whole tile.
        self.assertEqual(self.whole("image_blur", self.picture, block=(1, 1, 1)), expected)

    def test_sharpen(self):
        for amount in (0, 100, 256, 65536):
            expected = neighbours(self.picture, self.WIDTH, self.HEIGHT, lambda around, a=amount: sharpen(around, a))
            self.assertEqual(self.whole("image_sharpen", self.picture, amount), expected)

    def test_edges(self):
        expected = neighbours(self.picture, self.WIDTH, self.HEIGHT, edges)
        self.assertEqual(self.whole("image_edges", self.picture), expected)

    def test_tone(self):
        for values in ((256, 256, 0), (400, 300, -20), (0, 1000, 255)):
            expected = [tone(pixel, *values) for pixel in self.picture]
            self.assertEqual(self.whole("image_tone", self.picture, *values), expected)

    def test_tiles_make_the_whole(self):
        """Blur, then sharpen, in tiles with a border of 3, gives what the whole picture gives."""
        width, height, border = self.WIDTH, self.HEIGHT, 3
        blurred = binomial_blur(self.picture, width, height)
        expected = neighbours(blurred, width, height, lambda around: sharpen(around, 256))
        made = [None] * (width * height)
        for top in range(0, height, 8):
            for left in range(0, width, 17):
                w, h = min(17, width - left), min(8, height - top)
                x0, y0 = max(left - border, 0), max(top - border, 0)
                x1, y1 = min(left + w + border, width), min(top + h + border, height)
                size = (x1 - x0, y1 - y0)
                source = [self.picture[y * width + x] for y in range(y0, y1) for x in range(x0, x1)]
                soft = self.filter("image_blur", source, size, (0, 0, *size), block=(1, 1, 1))
                tile = self.filter("image_sharpen", soft, size, (left - x0, top - y0, w, h), 256)
                for j in range(h):
                    made[(top + j) * width + left : (top + j) * width + left + w] = tile[j * w : (j + 1) * w]
        self.assertEqual(made, expected)


class Output(support.TestCase):
    """Names, headers, dependencies."""

    def test_prefix(self):
        c_file, header = self.compile(SOURCES["gate"], "--target", HOST, "--prefix", "mine_")
        bundle = Bundle(self, c_file, "mine_gate_bundle")
        self.assertEqual(bundle.data.name, b"gate")
        with open(header, encoding="utf-8") as file:
            text = file.read()
        for name in ("mine_gate_bundle", "mine_increment_ref", "mine_increment_launch"):
            self.assertIn(name, text)
        names = re.findall(r"\b(\w+_(?:bundle|ref|launch))\b", text)
        free = {"rill_kernel_ref", "rill_launch", "rill_stream_launch_ref", "rill_bundle"}
        self.assertEqual([name for name in names if not name.startswith("mine_") and name not in free], [])

    def test_two_bundles_in_one_program(self):
        sources = []
        for prefix in ("", "other_"):
            c_file, header = self.compile(SOURCES["gate"], "--target", HOST, "--prefix", prefix)
            for path in (c_file, header):
                os.rename(path, path.replace("out.", prefix + "gate."))
            sources.append(prefix + "gate.rill.c")
        user = self.write("user.c", '#include "gate.rill.h"\n#include "other_gate.rill.h"\n')
        command = CC + STRICT_C + ["-I", INCLUDE, "-shared", "-o", "both.so", *sources, user]
        self.assertEqual(self.run_compiler(command), (0, ""))

    def test_launch_functions_are_typed(self):
        self.compile(SOURCES["basic"], "--target", HOST)
        good = "(void)!axpy_launch(RILL_NULL_STREAM, NULL, 1, 2.0f, f, f)"
        bad = "(void)!axpy_launch(RILL_NULL_STREAM, NULL, 1, 2.0f, f, (double *)0)"
        for call, outcome in ((good, 0), (bad, 1)):
            text = '#include "out.rill.h"\nvoid g(float *f);\nvoid g(float *f) { %s; }\n' % call
            for compiler, name in ((CC + STRICT_C, "user.c"), (CXX + STRICT_CXX, "user.cc")):
                command = compiler + ["-I", INCLUDE, "-fsyntax-only", self.write(name, text)]
                self.assertEqual(min(self.run_compiler(command)[0], 1), outcome)

    def test_parameter_names_of_the_launch_function(self):
        source = self.write("k.kernel.cu", ONE + "RILL_KERNEL(two, int stream, int launch, int *args) { *args = 1; }\n")
        c_file, header = self.compile(source, "--target", HOST)
        user = self.write("user.c", '#include "%s"\n' % os.path.basename(header))
        command = CC + STRICT_C + ["-I", INCLUDE, "-fsyntax-only", user, c_file]
        self.assertEqual(self.run_compiler(command), (0, ""))

    def test_struct_parameters(self):
        self.write("point.h", "#ifndef POINT_H\n#define POINT_H\ntypedef struct point { short x, y, z; } point;\n#endif\n")
        text = '#include <rill/device/kernel.h>\n#include "point.h"\n'
        text += "RILL_KERNEL(move, struct point by, point *points, const struct point *const *all) {\n"
        text += "  points[0].x += by.x + all[0]->x; }\n"
        source = self.write("k.kernel.cu", text)
        c_file, header = self.compile(source, "--target", HOST, "--include", "point.h")
        bundle = Bundle(self, c_file, "k_bundle")
        self.assertEqual(bundle.kernels["move"], [("by", 6), ("points", 8), ("all", 8)])
        user = self.write("user.cc", '#include "%s"\n' % os.path.basename(header))
        self.assertEqual(self.run_compiler(CXX + STRICT_CXX + ["-I", INCLUDE, "-fsyntax-only", user]), (0, ""))

    def test_depfile(self):
        folder = self.path("with space")
        os.mkdir(folder)
        source = self.write("with space/k.kernel.cu", '#include "helper.h"\n' + ONE + "#include <stdlib.h>\n")
        self.write("with space/helper.h", "")
        self.compile(source, "--depfile", "k.d")
        text = self.read("k.d")
        self.assertTrue(text.startswith("%s %s:" % (self.path("out.rill.c"), self.path("out.rill.h"))))
        files = text.replace("\\ ", "\0").replace("\\\n", " ").split()[2:]
        files = {os.path.normpath(file.replace("\0", " ")) for file in files}
        local = {source, os.path.join(folder, "helper.h")}
        own = {file for file in files if file.startswith(INCLUDE + os.sep)}
        self.assertEqual(files - own, local)
        for name in ("kernel.h", "on_host.h", "host_image.h", "cpu_image.h"):
            self.assertIn(os.path.join(INCLUDE, "rill", "device", name), own)

    def test_options_reach_the_compilers(self):
        self.write("lib.h", "#define SIZE float\n")
        text = "#include <lib.h>\n#include <rill/device/kernel.h>\nRILL_KERNEL(NAME, SIZE *x) { *x = VALUE; }\n"
        source = self.write("k.kernel.cu", text)
        c_file, _ = self.compile(source, "-I", ".", "-D", "NAME=named", "-DVALUE=3", "--fp-contract", "off")
        self.assertEqual(Bundle(self, c_file, "k_bundle").kernels, {"named": [("x", 8)]})

    def test_barriers_that_depend_on_the_target(self):
        text = "RILL_KERNEL(sometimes) {\n#ifdef __AVX2__\n__syncthreads();\n#endif\n}\n"
        text += "RILL_KERNEL(always) {\n#ifdef __shared__\n__syncthreads();\n#endif\n}\n"
        c_file, _ = self.compile(self.write("k.kernel.cu", ONE + text), "--target", "cpu")
        for label, data in Bundle(self, c_file, "k_bundle").images.items():
            if support.runnable(label.partition(":")[2]):
                loops = [name for name, kernel in HostImage(self, label, data).kernels.items() if kernel.run_block]
                self.assertEqual(loops, ["one"] if label > "cpu:x86-64" else ["one", "sometimes"])

    def test_same_input_same_output(self):
        outputs = []
        for name in ("a", "b"):
            os.mkdir(self.path(name))
            c_file, header = self.compile(SOURCES["dialect"], TMPDIR=self.path(name))
            outputs.append([self.read(c_file), self.read(header)])
            self.assertEqual(os.listdir(self.path(name)), [])
        self.assertTrue(outputs[0] == outputs[1])

    def test_where_the_source_lies_does_not_show(self):
        # Not for cuda: nvcc puts a hash of the path in the names of static functions.
        outputs = []
        for name in ("a", "b"):
            os.mkdir(self.path(name))
            for source in (SOURCES["dialect"], os.path.join(HERE, "dialect_helpers.h")):
                shutil.copy(source, self.path(name))
            c_file, header = self.compile(self.path(name + "/dialect.kernel.cu"), "--nvcc", "none")
            outputs.append([self.read(c_file), self.read(header)])
        self.assertTrue(outputs[0] == outputs[1])


class Errors(support.TestCase):
    """Every refusal: what it says, and that it leaves nothing behind."""

    def refused(self, text, expected, *arguments, **environment):
        source = self.write("k.kernel.cu", text)
        before = sorted(os.listdir(self.folder))
        command = ["-o", "k.rill.c", "--header", "k.rill.h", "--depfile", "k.d"]
        command += arguments or ("--target", HOST)
        result = self.rillcc(*command, os.path.basename(source), **environment)
        self.assertNotEqual(result.returncode, 0)
        self.assertNotIn("Traceback", result.stderr)
        self.assertRegex(result.stderr, expected)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def kernel(self, text):
        return "#include <rill/device/kernel.h>\n\n" + text

    def test_parameters(self):
        cases = (
            ("int &n", "a kernel cannot take a reference"),
            ("std::string s", "not a C type"),
            ("half h", '"half" is not a C type that rillcc knows'),
            ("const float4 *v", '"float4" is not a C type that rillcc knows'),
            ("long double d", "GPUs have no long double"),
            ("int", "it needs a name"),
            ("const float *", "it needs a name"),
            ("x", "it needs a type and a name"),
            ("void v", "void is not a value"),
            ("float x[4]", "write an array parameter as a pointer"),
            ("int n = 3", "no default value"),
            ("int n, , int m", "parameter 1 .*: empty"),
            ("int n, float n", 'two parameters named "n"'),
        )
        for parameters, message in cases:
            with self.subTest(parameters=parameters):
                text = self.kernel("RILL_KERNEL(k, %s) {}\n" % parameters)
                self.refused(text, r"rillcc: k\.kernel\.cu:3: .*" + message)

    def test_form(self):
        at = r"rillcc: k\.kernel\.cu:3: .*"
        self.refused(self.kernel("int x;\n"), r"rillcc: k\.kernel\.cu: no kernel in it")
        self.refused(self.kernel("RILL_KERNEL(k, int n);\n"), at + "needs its body")
        self.refused(self.kernel("RILL_KERNEL() {}\n"), at + "needs a name")
        self.refused(self.kernel("namespace n { RILL_KERNEL(k) {} }\n"), at + "outside namespaces")
        self.refused(self.kernel("__global__ void k() {}\nRILL_KERNEL(a) {}\n"), at + "not with __global__")
        self.refused(self.kernel("RILL_KERNEL(k) {} RILL_KERNEL(k, int n) {}\n"), at + 'a second kernel "k"')
        self.refused(self.kernel("__launch_bounds__(64) RILL_KERNEL(k) {}\n"), at + "RILL_KERNEL_BOUNDED")
        self.refused(self.kernel("RILL_KERNEL(k) { extern __shared__ float x[]; }\n"), at + "RILL_DYNAMIC_SHARED")
        self.refused(self.kernel("__constant__ int a, b; RILL_KERNEL(k) {}\n"), at + "one device variable at a time")
        self.refused(self.kernel("RILL_KERNEL(k) { {\n"), at + "never closed")

    def test_compiler_messages_pass_through(self):
        text = self.kernel("RILL_KERNEL(k, int *x) {\n  *x = nowhere;\n}\n")
        message = r"(?s)k\.kernel\.cu[:(]4.*nowhere.*rillcc: k\.kernel\.cu: for %s:\S+ %s failed with exit status"
        self.refused(text, message % ("cpu", r"\S+"))
        if HAVE_NVCC:
            self.refused(text, message % ("cuda", "nvcc"), "--target", "cuda:sm_90")
        if HAVE_HIPCC:
            self.refused(text, message % ("hip", "hipcc"), "--target", "hip:gfx90a")
        self.refused('#include "nowhere.h"\n', r"(?s)k\.kernel\.cu: the preprocessor failed.*nowhere\.h")

    def test_undefined_function_is_found_at_build_time(self):
        self.refused(self.kernel("int far_away();\nRILL_KERNEL(k, int *x) { *x = far_away(); }\n"), "far_away")

    @unittest.skipUnless(HAVE_NVCC or HAVE_HIPCC or HAVE_CLANG, "no GPU compiler")
    def test_kernel_missing_from_an_image(self):
        condition = "#if !defined(__CUDACC__) && !defined(__HIP__)\n"
        text = ONE + condition + "RILL_KERNEL(only_here) {}\n#endif\n"
        self.refused(text, r'rillcc: k\.kernel\.cu:4: kernel "only_here" is missing from the image for ', "-v")

    def test_targets(self):
        cases = (
            ("metal", "the backends are cuda, hip and cpu"),
            ("cpu:z80", '"z80" is none of'),
        )
        if HAVE_NVCC:
            cases += (("cuda:90", '"90" is none of sm_NN'),)
        if HAVE_HIPCC or HAVE_CLANG:
            cases += (("hip:90a", '"90a" is not gfxNNN'),)
        for target, message in cases:
            self.refused(ONE, "rillcc: --target %s: %s" % (target, message), "--target", target)
        self.refused(ONE, "no nvcc found; name it with --nvcc or RILL_NVCC", "--target", "cuda", RILL_NVCC="none")
        nothing = {"RILL_HIPCC": "none", "RILL_CLANG": "none"}
        self.refused(ONE, "no hipcc found, and no clang", "--target", "hip", **nothing)

    def test_compilers(self):
        self.refused(ONE, "no program nowhere-c", RILL_CXX="nowhere-c++")
        self.refused(ONE, "no program nowhere-nvcc", RILL_NVCC="nowhere-nvcc")
        self.refused(ONE, "false does not work", "--cxx", "false")

    def test_files(self):
        result = self.rillcc("-o", "k.c", "nowhere.kernel.cu")
        self.assertEqual((result.returncode, result.stderr), (1, "rillcc: nowhere.kernel.cu: no such file\n"))
        source = self.write("k.kernel.cu", ONE)
        result = self.rillcc("--target", HOST, "-o", "k.c", "--header", "none/k.h", source)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write none/k.h", result.stderr)
        result = self.rillcc("--target", HOST, "-o", "k.c", "--header", "./k.c", source)
        self.assertIn("must be different files", result.stderr)
        self.assertEqual(os.listdir(self.folder), ["k.kernel.cu"])

    def test_a_failure_keeps_what_was_there(self):
        self.write("k.rill.c", "old")
        self.refused(self.kernel("RILL_KERNEL(k) { error }\n"), "error")
        self.assertEqual(self.read("k.rill.c"), "old")


def scan_text(text):
    return scan.read_unit('# 1 "k.cu"\n' + text, "k.cu")


class Scan(unittest.TestCase):
    """Reading kernels from preprocessed text."""

    def barriers(self, text):
        return [kernel.has_barrier for kernel in scan_text(text).kernels]

    def test_barriers(self):
        quiet = "RILL_KERNEL(k, int *x) { *x = 1; }\n"
        self.assertEqual(self.barriers(quiet), [False])
        self.assertEqual(self.barriers("RILL_KERNEL(b) { if (1) { __syncthreads(); } }\n" + quiet), [True, False])
        self.assertEqual(self.barriers("static void f() { __syncthreads(); }\n" + quiet), [True])
        self.assertEqual(self.barriers(quiet + "struct s { s() { __syncthreads(); } };\n"), [True])
        self.assertEqual(self.barriers("static auto f = &rill_services;\n" + quiet), [True])
        system = '# 1 "/usr/include/s.h" 1 3 4\nvoid f() { __syncthreads(); }\n# 2 "k.cu" 2\n'
        self.assertEqual(self.barriers(system + quiet), [True])
        self.assertEqual(self.barriers('# 1 "own.h" 1\nvoid f() { __syncthreads(); }\n# 2 "k.cu" 2\n' + quiet), [True])

    def test_what_only_looks_like_a_barrier(self):
        self.assertEqual(self.barriers('RILL_KERNEL(k) { f("__syncthreads(); }"); }\n'), [False])
        self.assertEqual(self.barriers('RILL_KERNEL(k) { f(R"x(__syncthreads)" )x"); }\n'), [False])
        self.assertEqual(self.barriers("RILL_KERNEL(k) { my__syncthreads(); f('{'); }\n"), [False])

    def test_macros_of_system_headers_in_a_users_file(self):
        text = 'RILL_KERNEL(k, int *x) {\n# 2 "k.cu" 3 4\n  __syncthreads()\n# 2 "k.cu"\n;}\nRILL_KERNEL(l) {}\n'
        self.assertEqual(self.barriers(text), [True, False])

    def test_indices_in_functions(self):
        kernel = "RILL_KERNEL(k) { threadIdx.x; RILL_DYNAMIC_SHARED(int, t); }\n"
        self.assertFalse(scan_text(kernel).helpers_read_index)
        self.assertTrue(scan_text("int f() { return blockIdx.x; }\n" + kernel).helpers_read_index)
        self.assertTrue(scan_text(kernel + "void f() { RILL_DYNAMIC_SHARED(int, t); }\n").helpers_read_index)

    def test_parameters(self):
        text = "RILL_KERNEL(k, const unsigned char *__restrict__ a, unsigned long long const b,\n _Bool c, void **d) {}\n"
        parameters = [(p.type, p.name) for p in scan_text(text).kernels[0].parameters]
        expected = [("const unsigned char *", "a"), ("unsigned long long const", "b"), ("bool", "c"), ("void **", "d")]
        self.assertEqual(parameters, expected)
        self.assertEqual(scan_text("RILL_KERNEL(k, void) {}").kernels[0].parameters, [])
        self.assertEqual(scan_text("RILL_KERNEL_BOUNDED(2 * f(1, 2), k, int n) {}").kernels[0].name, "k")

    def test_variables(self):
        text = """
          extern "C" { __constant__ int a[2][3]; }
          __device__ __align__(16) float b = 1.0f;
          alignas(8) __device__ struct { int x; } c;
          __constant__ float d[2] = { 1, 2 }, e;
        """
        with self.assertRaisesRegex(RillccError, "k.cu:5: declare one device variable at a time"):
            scan_text(text + "RILL_KERNEL(k) {}")
        text = text.replace(", e;", ";") + """
          __constant__ double f[] { 1, 2 };
          static __device__ int s1; __constant__ const int s2 = 1; extern __device__ int s3;
          __device__ int g1(int x = 3); __device__ __forceinline__ int g2() { return 1; }
          template <class T> __device__ T s4;
          namespace n { __device__ int s5; }
          struct t { __device__ int m() { int y; return y; } };
          RILL_KERNEL(k) { int local; }
          __device__ int h;
        """
        self.assertEqual(scan_text(text).variables, ["a", "b", "c", "d", "f", "h"])


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

    def test_reads(self):
        name = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
        self.assertEqual(offload.extract(self.ELF, "gfx90a"), self.ELF)
        data = self.container(b"host-x86_64-unknown-linux--", name, b"hipv4-amdgcn-amd-amdhsa--gfx90")
        self.assertEqual(offload.extract(data, "gfx90a"), self.ELF)
        for other in (name + b":xnack+", name.replace(b"--", b"-unknown-"), name.replace(b"v4", b"")):
            self.assertEqual(offload.extract(self.container(other), "gfx90a"), self.ELF)
        generic = b"hipv4-amdgcn-amd-amdhsa--gfx9-generic"
        self.assertEqual(offload.extract(self.container(generic), "gfx9-generic"), self.ELF)

    def test_refuses(self):
        name = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
        good = self.container(name)
        for size in range(24, 4096 + len(self.ELF)):
            with self.assertRaises(ValueError):
                offload.extract(good[:size], "gfx90a")
        bad = [b"", b"CCOB" + bytes(60), self.container(), self.container(name, name), good.replace(b"\x7fELF", b"\0ELF")]
        for at in (24, 32, 40, 48):
            for value in (2**64 - 1, 2**63, len(good), len(good) + 1):
                bad.append(good[:at] + struct.pack("<Q", value) + good[at + 8 :])
        for data in bad:
            with self.assertRaises(ValueError):
                offload.extract(data, "gfx90a")


if __name__ == "__main__":
    support.main()
