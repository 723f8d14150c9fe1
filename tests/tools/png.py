"""PNG files of any kind, written and read with the standard library alone."""
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(width, height, depth=8, color=RGBA, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace))


def pack(samples, depth):
    """One row of samples as bytes."""
    if depth == 16:
        return b"".join(struct.pack(">H", s) for s in samples)
    out, used = bytearray(), 8
    for sample in samples:
        if used == 8:
            out.append(0)
            used = 0
        out[-1] |= sample << (8 - depth - used)
        used += depth
    return bytes(out)


def encode(width, height, rows, depth=8, color=RGBA, interlace=False, extra=b""):
    """`rows`: lists of samples; `extra`: chunks before the pixels, such as PLTE."""
    channels = CHANNELS[color]
    if interlace:
        lines = []
        for x0, y0, dx, dy in PASSES:
            for y in range(y0, height, dy):
                samples = [rows[y][x * channels + c] for x in range(x0, width, dx) for c in range(channels)]
                if samples:
                    lines.append(samples)
    else:
        lines = rows
    data = b"".join(b"\0" + pack(line, depth) for line in lines)
    body = header(width, height, depth, color, int(interlace)) + extra
    return SIGNATURE + body + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def decode(data):
    """Returns an 8-bit RGBA file without interlacing as (width, height, rows of samples)."""
    assert data[:8] == SIGNATURE
    position, pixels, ended = 8, b"", False
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        kind, body = data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert (depth, color, interlace) == (8, RGBA, 0)
        elif kind == b"IDAT":
            pixels += body
        ended = kind == b"IEND"
        position += 12 + length
    assert ended
    return width, height, unfilter(zlib.decompress(pixels), width, height)


def unfilter(raw, width, height):
    pitch, rows, before = 4 * width, [], [0] * 4 * width
    for y in range(height):
        kind, line = raw[y * (pitch + 1)], list(raw[y * (pitch + 1) + 1 : (y + 1) * (pitch + 1)])
        for i in range(pitch):
            a = line[i - 4] if i >= 4 else 0
            b, c = before[i], before[i - 4] if i >= 4 else 0
            if kind == 1:
                guess = a
            elif kind == 2:
                guess = b
            elif kind == 3:
                guess = (a + b) // 2
            elif kind == 4:
                p = a + b - c
                guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            else:
                guess = 0
            line[i] = (line[i] + guess) & 255
        rows.append(line)
        before = line
    return rows
