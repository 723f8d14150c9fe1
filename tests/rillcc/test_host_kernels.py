#!/usr/bin/env python3
"""What the kernels compute on the host, from images run without the library."""

import ctypes
import random

import support
from support import HOST, SOURCES, Bundle, HostImage, pointer_to


class HostKernels(support.TestCase):
    """The host images give the right results, the same from every image that this machine can run."""

    def images(self, name):
        bundle = Bundle(self, self.compile(SOURCES[name], "--target", "cpu")[0], name + "_bundle")
        images = {label: data for label, data in bundle.images.items() if support.runnable(label.partition(":")[2])}
        self.assertTrue(images)
        return [HostImage(self, label, data) for label, data in images.items()]

    def test_axpy_computes_the_right_values(self):
        n = 1000
        numbers = random.Random(1)
        x = [numbers.uniform(-1, 1) for _ in range(n)]
        results = []
        for image in self.images("basic"):
            xs, ys = (ctypes.c_float * n)(*x), (ctypes.c_float * (n + 24))(*([1.0] * n + [7.0] * 24))
            values = ctypes.c_int(n), ctypes.c_float(3.0), pointer_to(xs), pointer_to(ys)
            image.run("axpy", (8, 1, 1), (128, 1, 1), *values)
            self.assertEqual(list(ys[n:]), [7.0] * 24)
            for i in range(n):
                # Two roundings, not one: a product and a sum are never fused on the host.
                product = ctypes.c_float(3.0 * xs[i]).value
                self.assertEqual(ys[i], ctypes.c_float(product + 1.0).value)
            results.append(bytes(ys))
        self.assertEqual(len(set(results)), 1)

    def test_basic_kernels_compute_the_right_values(self):
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

    def test_gates_wait_and_open(self):
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

    def test_the_dialect_computes_the_right_values(self):
        for image in self.images("dialect"):
            self.check_dialect(image)

    def check_dialect(self, image):
        one = (1, 1, 1)
        doubles = (ctypes.c_double * 9)()
        out = pointer_to(doubles)
        values: list = [ctypes.c_byte(-1), ctypes.c_short(-2), ctypes.c_int(-3), ctypes.c_longlong(2**40)]
        values += [ctypes.c_float(0.5), ctypes.c_double(0.1), out, ctypes.c_bool(True), ctypes.c_ubyte(200), out]
        image.run("arguments", one, one, *values)
        self.assertEqual(list(doubles), [-1, -2, -3, 2**40, 0.5, 0.1, 1, 1, 200])

        self.assertEqual({name: v.size for name, v in image.variables.items()}, {"gain": 4, "table": 16, "hits": 8})
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

        source, target = (ctypes.c_int * 6)(1, 2, 3, 4, 50, 600), (ctypes.c_int * 4)()
        image.run("hints", one, one, pointer_to(source), pointer_to(target))
        self.assertEqual(list(target), [1, 2, 3, 654])

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
    (a, b, c), (d, _, f), (g, h, i) = [[luma(p) for p in line] for line in around]
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
        """Runs a filter on a list of pixels of that size; returns the window (x, y, width, height)."""
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

    def filtered(self, name, picture, *more, **options):
        size = (self.WIDTH, self.HEIGHT)
        return self.filter(name, picture, size, (0, 0, *size), *more, **options)

    def test_blur_equals_its_definition(self):
        expected = binomial_blur(self.picture, self.WIDTH, self.HEIGHT)
        # One thread a block: every barrier is passed at once, and each thread does the whole tile.
        self.assertEqual(self.filtered("image_blur", self.picture, block=(1, 1, 1)), expected)

    def test_sharpen_equals_its_definition(self):
        for amount in (0, 100, 256, 65536):
            expected = neighbours(self.picture, self.WIDTH, self.HEIGHT, lambda around, a=amount: sharpen(around, a))
            self.assertEqual(self.filtered("image_sharpen", self.picture, amount), expected)

    def test_edges_equal_their_definition(self):
        expected = neighbours(self.picture, self.WIDTH, self.HEIGHT, edges)
        self.assertEqual(self.filtered("image_edges", self.picture), expected)

    def test_tone_equals_its_definition(self):
        for values in ((256, 256, 0), (400, 300, -20), (0, 1000, 255)):
            expected = [tone(pixel, *values) for pixel in self.picture]
            self.assertEqual(self.filtered("image_tone", self.picture, *values), expected)

    def test_tiles_make_the_picture(self):
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


if __name__ == "__main__":
    support.main()
