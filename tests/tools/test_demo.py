"""rill demo: its result, its drawing, and what it does with bad input."""
import os
import re
import struct
import unittest
import xml.etree.ElementTree as ElementTree

import filters
import png
from tool_test import ToolTest

SVG = "{http://www.w3.org/2000/svg}"


def pattern(width, height, channels=4, top=255):
    """Returns a picture with edges, gradients and some of everything."""
    return [
        [(x * 7 * (c + 1) + y * 13 + (x * y * (c + 3)) // 5 + (97 if (x // 5 + y // 3) % 2 else 0)) % (top + 1)
         for x in range(width) for c in range(channels)]
        for y in range(height)
    ]


def rgba(width, height):
    return png.encode(width, height, pattern(width, height))


class FilterTest(ToolTest):
    def filter(self, data, *arguments):
        self.write("in.png", data)
        self.succeed("demo", "in.png", "-o", "out.png", "--device", "cpu", *arguments)
        return png.decode(self.read("out.png"))

    def check(self, width, height, rows, data, *arguments):
        got = self.filter(data, *arguments)
        self.assertEqual(got, (width, height, filters.demo(width, height, rows)))


class Demo(FilterTest):
    def test_the_installed_picture_is_the_default(self):
        text = self.succeed("demo", "--device", "cpu")
        self.assertIn("equals that of the plain C filter in every byte", text)
        self.assertIn("1024 x 768", text)
        for stage in ("upload", "blur", "sharpen", "tone", "download"):
            self.assertRegex(text, rf"(?m)^{stage} +12 +\d+\.\d+ ms")
        self.assertEqual(sorted(os.listdir(self.folder)), ["rill-demo.png", "rill-demo.svg"])
        self.assertEqual(self.read("rill-demo.png")[:8], png.SIGNATURE)

    def test_pictures_of_any_size_are_filtered(self):
        for width, height in ((1, 1), (1, 40), (40, 1), (2, 3), (16, 16), (17, 15), (47, 33), (64, 64), (65, 49)):
            with self.subTest(width=width, height=height):
                rows = pattern(width, height)
                self.check(width, height, rows, png.encode(width, height, rows), "--tile", "16")

    def test_any_tiles_and_streams_give_the_same_picture(self):
        rows = pattern(61, 45)
        for tile in ("16", "19", "44", "60", "4096"):
            for streams in ("1", "2", "3", "5", "16"):
                with self.subTest(tile=tile, streams=streams):
                    self.check(61, 45, rows, png.encode(61, 45, rows), "--tile", tile, "--streams", streams)

    def test_a_graph_gives_the_same_picture(self):
        rows = pattern(61, 45)
        for streams in ("1", "2", "3", "16"):
            with self.subTest(streams=streams):
                self.check(61, 45, rows, png.encode(61, 45, rows), "--tile", "19", "--streams", streams, "--graph")
        text = self.succeed("demo", "in.png", "-o", "out.png", "--device", "cpu", "--tile", "19", "--graph")
        # For each of the 12 tiles 5 operations and 8 points of time; and where they start.
        self.assertRegex(text, r"(?m)^graph +157 nodes, captured in [\d.]+ ms and instantiated in [\d.]+ ms")
        self.assertEqual(len(re.findall(r"(?m)^ +[\d.]+ ms .*, on streams [\d.]+ ms", text)), 3)

    def test_the_environment_chooses_the_device(self):
        self.write("in.png", rgba(20, 20))
        text = self.succeed("demo", "in.png", RILL_DEVICE="cpu")
        self.assertRegex(text, r"(?m)^device +cpu, ")


class Kinds(FilterTest):
    """Every kind of PNG becomes the same RGBA."""

    def kind(self, color, depth, to_rgba, interlace=False, extra=b""):
        width, height = 23, 18
        rows = pattern(width, height, png.CHANNELS[color], (1 << depth) - 1)
        data = png.encode(width, height, rows, depth, color, interlace, extra)
        count = png.CHANNELS[color]
        wide = [[v for x in range(width) for v in to_rgba(row[x * count : (x + 1) * count])] for row in rows]
        self.check(width, height, wide, data)

    def test_gray_is_read(self):
        for depth in (1, 2, 4, 8):
            with self.subTest(depth=depth):
                self.kind(png.GRAY, depth, lambda p, d=depth: [p[0] * 255 // ((1 << d) - 1)] * 3 + [255])

    def test_gray_with_alpha_is_read(self):
        self.kind(png.GRAY_ALPHA, 8, lambda p: [p[0]] * 3 + [p[1]])

    def test_rgb_is_read(self):
        self.kind(png.RGB, 8, lambda p: [*p, 255])

    def test_rgb_with_a_transparent_color_is_read(self):
        first = pattern(23, 18, 3)[0][:3]
        extra = png.chunk(b"tRNS", struct.pack(">HHH", *first))
        self.kind(png.RGB, 8, lambda p: [*p, 0 if p == first else 255], extra=extra)

    def test_palettes_are_read(self):
        colors = [((i * 37) % 256, (i * 91) % 256, (255 - i * 5) % 256) for i in range(16)]
        alpha = bytes(255 - 9 * i for i in range(10))
        extra = png.chunk(b"PLTE", b"".join(bytes(c) for c in colors)) + png.chunk(b"tRNS", alpha)
        self.kind(png.PALETTE, 4, lambda p: [*colors[p[0]], alpha[p[0]] if p[0] < 10 else 255], extra=extra)

    def test_sixteen_bits_are_rounded_to_eight(self):
        def nearest(v):
            return (v * 255 + 32895) >> 16

        self.kind(png.RGBA, 16, lambda p: [nearest(v) for v in p])
        self.kind(png.GRAY, 16, lambda p: [nearest(p[0])] * 3 + [255])

    def test_interlaced_pictures_are_read(self):
        self.kind(png.RGBA, 8, list, interlace=True)
        self.kind(png.GRAY, 2, lambda p: [p[0] * 85] * 3 + [255], interlace=True)


class Drawing(ToolTest):
    def draw(self, *arguments):
        self.write("in.png", rgba(100, 70))
        self.succeed("demo", "in.png", "-o", "out.png", "--device", "cpu", "--tile", "32", *arguments)
        return ElementTree.fromstring(self.read("out.svg"))

    def test_bars_lie_in_their_tracks_and_inside_the_view(self):
        for streams, tracks in ((1, 1), (2, 2), (4, 4)):
            root = self.draw("--streams", str(streams))
            left, top, width, height = (float(v) for v in root.get("viewBox").split())
            bars = [e for e in root.iter(SVG + "rect") if e.get("class") == "bar"]
            self.assertEqual(len(bars), 12 * 5)
            for bar in bars:
                x, y, w, h = (float(bar.get(k)) for k in ("x", "y", "width", "height"))
                self.assertGreater(w, 0)
                self.assertTrue(left <= x and x + w <= left + width and top <= y and y + h <= top + height)
            self.assertEqual(len({bar.get("y") for bar in bars}), tracks)

    def test_a_replay_is_below_the_streams(self):
        bars = [e for e in self.draw("--graph").iter(SVG + "rect") if e.get("class") == "bar"]
        self.assertEqual(len(bars), 2 * 12 * 5)
        heights = sorted({float(bar.get("y")) for bar in bars})
        self.assertEqual(len(heights), 2 * 4)
        for i, bar in enumerate(bars):
            self.assertEqual(float(bar.get("y")) >= heights[4], i >= 12 * 5)

    def test_every_stage_of_every_tile_has_its_bar(self):
        titles = [e.text or "" for e in self.draw().iter(SVG + "title")]
        for stage in ("upload", "blur", "sharpen", "tone", "download"):
            tiles = sorted(int(re.findall(rf"^{stage}, tile (\d+):", t)[0]) for t in titles if t.startswith(stage))
            self.assertEqual(tiles, list(range(12)))

    def test_texts_are_inside_the_view(self):
        root = self.draw()
        _, _, width, height = (float(v) for v in root.get("viewBox").split())
        texts = list(root.iter(SVG + "text"))
        for text in texts:
            self.assertTrue(0 < float(text.get("x")) < width and 0 < float(text.get("y")) < height)
        words = [t.text for t in texts]
        self.assertTrue(words[0].startswith("rill demo on cpu ("))
        self.assertTrue({"upload", "blur", "sharpen", "tone", "download", "kernels 0", "kernels 1"} <= set(words))
        self.assertTrue(any(re.fullmatch(r"[\d.]+ (us|ms)", w) for w in words))

    def test_many_tiles_make_it_wider(self):
        self.write("in.png", rgba(400, 400))
        widths = []
        for tile in ("128", "16"):
            self.succeed("demo", "in.png", "-o", "out.png", "--timeline", "t.svg", "--device", "cpu", "--tile", tile)
            root = ElementTree.parse(self.path("t.svg")).getroot()
            widths.append(float(root.attrib["width"]))
            bars = [bar for bar in root.iter(SVG + "rect") if bar.get("class") == "bar"]
            mean = sum(float(bar.attrib["width"]) for bar in bars) / len(bars)
            self.assertTrue(all(float(bar.attrib["x"]) + float(bar.attrib["width"]) <= widths[-1] for bar in bars))
        self.assertEqual(widths[0], 1280)
        self.assertGreater(widths[1], 1280)
        self.assertGreater(mean, 0.4)

    def test_the_drawing_has_the_name_that_was_given(self):
        self.write("in.png", rgba(20, 20))
        self.succeed("demo", "in.png", "-o", "out.png", "--timeline", "tracks.svg", "--device", "cpu")
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.png", "out.png", "tracks.svg"])


class BadInput(ToolTest):
    def refuse(self, pattern_, name, *arguments):
        self.fail_with(1, pattern_, "demo", self.path(name), "-o", self.path("out.png"), "--device", "cpu", *arguments)

    def test_a_missing_file_is_refused(self):
        self.refuse("cannot open .*none.png: No such file", "none.png")

    def test_a_directory_is_refused(self):
        os.mkdir(self.path("folder.png"))
        self.refuse("folder.png: Is a directory", "folder.png")

    def test_an_empty_file_is_refused(self):
        self.write("empty.png", b"")
        self.refuse("empty.png is empty", "empty.png")

    def test_a_text_is_refused(self):
        for text in (b"x", b"This is no picture.\n", b"GIF89a" + bytes(100)):
            self.write("text.png", text)
            self.refuse("text.png is not a PNG file", "text.png")

    def test_truncated_files_are_refused(self):
        data = rgba(40, 30)
        for length in [*range(1, 60), *range(60, len(data), 97), *range(len(data) - 20, len(data))]:
            with self.subTest(length=length):
                self.write("cut.png", data[:length])
                self.refuse("not a complete PNG file|damaged", "cut.png")

    def test_flipped_bytes_never_crash(self):
        data = rgba(12, 9)
        for i in range(len(data)):
            self.write("bad.png", data[:i] + bytes([data[i] ^ 0x55]) + data[i + 1 :])
            done = self.run_tool("demo", "bad.png", "-o", "out.png", "--device", "cpu")
            self.assertIn(done.returncode, (0, 1), (i, done.stderr))
            self.assertEqual(done.stderr.count("\n"), done.returncode, (i, done.stderr))
            self.assertEqual(os.path.exists(self.path("out.png")), done.returncode == 0)
            for name in ("out.png", "out.svg"):
                if os.path.exists(self.path(name)):
                    os.remove(self.path(name))

    def test_pictures_without_pixels_are_refused(self):
        for width, height in ((0, 0), (0, 5), (5, 0)):
            body = png.header(width, height) + png.chunk(b"IDAT", b"") + png.chunk(b"IEND", b"")
            self.write("none.png", png.SIGNATURE + body)
            self.refuse("has no pixels", "none.png")

    def test_absurd_sizes_are_refused(self):
        for width, height in ((100000, 100000), (65536, 65536), (70000, 1), (1, 4294967295), (8193, 8192)):
            self.write("big.png", png.SIGNATURE + png.header(width, height) + png.chunk(b"IEND", b""))
            self.refuse(f"too large: {width} x {height}", "big.png")

    def test_a_large_size_with_little_data_is_refused(self):
        body = png.header(8000, 8000, color=png.GRAY) + png.chunk(b"IDAT", b"\x78\x9c") + png.chunk(b"IEND", b"")
        self.write("claim.png", png.SIGNATURE + body)
        self.refuse("claim.png is not a complete PNG file", "claim.png")

    def test_too_many_tiles_are_refused(self):
        rows = [[0] * 20000] * 210
        self.write("wide.png", png.encode(20000, 210, rows, 1, png.GRAY))
        self.refuse("would have 17500 tiles, and the limit is 16384: choose a larger --tile", "wide.png", "--tile", "16")

    def test_a_signature_without_a_header_is_refused(self):
        self.write("odd.png", png.SIGNATURE + png.chunk(b"IDAT", bytes(40)))
        self.refuse("damaged: its header is missing", "odd.png")


class BadOutput(ToolTest):
    def setUp(self):
        super().setUp()
        self.write("in.png", rgba(30, 20))

    def refuse(self, pattern_, *arguments):
        self.fail_with(1, pattern_, "demo", "in.png", "--device", "cpu", *arguments)

    def test_a_missing_directory_is_reported(self):
        self.refuse("cannot write none/out.png: No such file", "-o", "none/out.png")
        self.refuse("cannot write none/t.svg: No such file", "-o", "out.png", "--timeline", "none/t.svg")

    def test_a_directory_is_not_overwritten(self):
        os.mkdir(self.path("folder"))
        self.refuse("cannot write folder: Is a directory", "-o", "folder")
        self.assertEqual(os.listdir(self.path("folder")), [])

    def test_a_path_below_a_file_is_refused(self):
        self.refuse("cannot write in.png/out.png: Not a directory", "-o", "in.png/out.png")

    def test_an_empty_name_is_refused(self):
        self.refuse("cannot write : No such file", "-o", "")

    def test_a_full_device_is_reported(self):
        if os.path.exists("/dev/full"):
            self.refuse("cannot write /dev/full: No space left", "-o", "/dev/full")
            self.refuse("cannot write /dev/full: No space left", "-o", "out.png", "--timeline", "/dev/full")

    def test_a_read_only_directory_is_reported(self):
        if os.geteuid() == 0:
            self.skipTest("nothing is read-only for root")
        os.mkdir(self.path("locked"), 0o555)
        self.refuse("cannot write locked/out.png: Permission denied", "-o", "locked/out.png")

    def test_old_file_stays_when_the_work_fails(self):
        self.write("out.png", b"old")
        self.write("bad.png", b"bad")
        self.fail_with(1, "not a PNG", "demo", "bad.png", "-o", "out.png", "--device", "cpu")
        self.refuse("No space left", "-o", "out.png", "--timeline", "/dev/full")
        self.assertEqual(self.read("out.png"), b"old")

    def test_the_input_is_not_overwritten(self):
        os.link(self.path("in.png"), self.path("other.png"))
        before = self.read("in.png")
        for arguments in (("-o", "in.png"), ("-o", "./in.png"), ("-o", "other.png"), ("--timeline", "in.png")):
            self.fail_with(2, "the output would overwrite the picture", "demo", "in.png", "--device", "cpu", *arguments)
        self.assertEqual(self.read("in.png"), before)
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.png", "other.png"])

    def test_a_link_is_followed(self):
        os.mkdir(self.path("there"))
        self.write("there/real.png", b"old")
        os.symlink("there/real.png", self.path("link.png"))
        self.succeed("demo", "in.png", "-o", "link.png", "--device", "cpu")
        self.assertTrue(os.path.islink(self.path("link.png")))
        self.assertEqual(png.decode(self.read("there/real.png"))[0], 30)

    def test_a_device_file_is_written_in_place(self):
        self.succeed("demo", "in.png", "-o", "/dev/null", "--device", "cpu")
        self.assertEqual(os.listdir(self.folder), ["in.png"])
        self.assertFalse(os.path.isfile("/dev/null"))


class BadUse(ToolTest):
    def refuse(self, pattern_, *arguments):
        self.fail_with(2, pattern_ + ".*usage: rill demo", "demo", *arguments)

    def test_bad_command_lines_are_refused(self):
        self.refuse('unknown option "--fast"', "--fast")
        self.refuse('a value is missing after "-o"', "-o")
        self.refuse('only one picture can be filtered; unexpected argument "b.png"', "a.png", "b.png")
        for value in ("0", "17", "-1", "x", "", "3x", "99999999999999999999"):
            self.refuse("--streams takes a number from 1 to 16", "--streams", value)
        for value in ("15", "4097", "abc"):
            self.refuse("--tile takes a number from 16 to 4096", "--tile", value)
        self.refuse("--tile takes a number from 16 to 4096", "--tile=15")
        self.refuse('unknown option "--ranks=2"', "--ranks=2")
        self.refuse("--graph cannot be combined with it", "--graph", "--ranks")
        self.refuse("cannot both be written to", "-o", "x.png", "--timeline", "x.png")
        for name in ("x.svg", "x.SVG", "x.jpg", "x.Jpeg"):
            self.refuse(f'a PNG file, .* not by -o "{name}"', "-o", name)

    def test_values_may_follow_an_equals_sign(self):
        self.write("in.png", rgba(40, 40))
        self.assertIn("9", self.succeed("demo", "in.png", "--device=cpu", "--tile=16", "--output=out.png"))
        self.assertEqual(png.decode(self.read("out.png"))[:2], (40, 40))

    def test_a_name_may_look_like_an_option(self):
        self.fail_with(1, "cannot open -x.png", "demo", "--device", "cpu", "--", "-x.png")

    def test_an_unknown_device_is_refused(self):
        self.write("in.png", rgba(8, 8))
        for name in ("tpu:0", "cpu:7", "cuda:9999", "hip:9999"):
            self.fail_with(1, "rill_device_open: .*RILL_ERROR_N", "demo", "in.png", "--device", name)


if __name__ == "__main__":
    unittest.main()
