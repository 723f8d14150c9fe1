#!/usr/bin/env python3
"""Draws landscape.png, the picture that `rill demo` uses when it is given none.

    python3 draw_landscape.py landscape.png

Everything is computed: sky, clouds, five ridges in haze, a lake that mirrors them, and three glass balls.
"""
import math
import struct
import sys
import zlib

WIDTH, HEIGHT, SHORE = 1024, 768, 520


def hashed(x, y):
    h = (x * 374761393 + y * 668265263) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    return ((h ^ (h >> 16)) & 0xFFFF) / 65535.0


def noise(x, y):
    xi, yi = math.floor(x), math.floor(y)
    fx, fy = x - xi, y - yi
    fx, fy = fx * fx * (3 - 2 * fx), fy * fy * (3 - 2 * fy)
    top = hashed(xi, yi) * (1 - fx) + hashed(xi + 1, yi) * fx
    bottom = hashed(xi, yi + 1) * (1 - fx) + hashed(xi + 1, yi + 1) * fx
    return top * (1 - fy) + bottom * fy


def fractal(x, y, octaves):
    total, weight = 0.0, 0.5
    for octave in range(octaves):
        total += weight * noise(x + 17 * octave, y + 31 * octave)
        x, y, weight = 2 * x, 2 * y, weight / 2
    return total


def mix(a, b, t):
    return tuple(p + (q - p) * t for p, q in zip(a, b))


def clamp(v, low=0.0, high=1.0):
    return min(max(v, low), high)


# Ridges from far to near: base line, height, scale, rock colour, share of haze.
RIDGES = [
    (380, 190, 210, (0.42, 0.45, 0.58), 0.72),
    (430, 170, 150, (0.34, 0.38, 0.50), 0.52),
    (470, 150, 110, (0.24, 0.33, 0.38), 0.34),
    (505, 120, 80, (0.15, 0.27, 0.24), 0.18),
    (528, 70, 48, (0.07, 0.16, 0.12), 0.05),
]
HAZE = (0.96, 0.78, 0.66)
SUN = (700.0, 255.0)


def crest(ridge, x):
    base, height, scale, _, _ = ridge
    f = fractal(x / scale + base, base * 0.7, 6)
    return base - height * (2 * abs(f - 0.42) + 0.15)


def sky(x, y):
    t = clamp(y / SHORE)
    colour = mix((0.16, 0.30, 0.56), (0.99, 0.74, 0.55), t ** 1.25)
    away = math.hypot(x - SUN[0], y - SUN[1])
    colour = tuple(c + g * math.exp(-away / 120) for c, g in zip(colour, (0.5, 0.36, 0.16)))
    if away < 34:
        colour = mix(colour, (1.0, 0.97, 0.86), clamp(34 - away))
    cloud = clamp((fractal(x / 190, y / 52 + 7, 5) - 0.47) * 4.2) * (1 - t ** 3)
    return mix(colour, mix((0.98, 0.94, 0.92), (0.80, 0.60, 0.58), clamp(t * 1.2)), 0.75 * cloud)


def scene(x, y, crests, ridges):
    """Returns the colour of a point above the shore, when only the `ridges` farthest ridges are drawn."""
    if ridges == 0:
        return sky(x, y)
    base, height, scale, rock, haze = RIDGES[ridges - 1]
    top = crests[ridges - 1]
    if y < top - 0.5:
        return scene(x, y, crests, ridges - 1)
    light = fractal(x / (scale * 0.35) + y / 60, y / (scale * 0.22), 4)
    light -= fractal((x + 6) / (scale * 0.35) + y / 60, y / (scale * 0.22), 4)
    snow = clamp((base - height * 0.62 - y + 40 * light) / 18) if haze > 0.3 else 0.0
    colour = tuple(clamp(c * (0.85 + 2.2 * light)) for c in mix(rock, (0.93, 0.93, 0.97), snow))
    colour = mix(colour, HAZE, clamp(haze + 0.25 * (y - top) / 160))
    cover = clamp(y - top + 0.5)
    return colour if cover == 1 else mix(scene(x, y, crests, ridges - 1), colour, cover)


def ball(colour, x, y, centre, radius, tint):
    dx, dy = (x - centre[0]) / radius, (y - centre[1]) / radius
    shadow = math.hypot((x - centre[0]) / (1.1 * radius), (y - centre[1] - radius * 0.97) / (0.18 * radius))
    if shadow < 1:
        colour = mix(colour, (0.02, 0.05, 0.08), 0.55 * (1 - shadow))
    square = dx * dx + dy * dy
    cover = clamp((1 - math.sqrt(square)) * radius + 0.5)
    if cover <= 0:
        return colour
    dz = math.sqrt(max(0.0, 1 - square))
    diffuse = clamp(0.45 * dx - 0.62 * dy + 0.64 * dz)
    half = clamp(0.25 * dx - 0.45 * dy + 0.857 * dz)
    mirrored = sky(SUN[0] + 260 * dx, clamp(270 + 300 * dy, 0, SHORE))
    body = mix(tuple(t * (0.18 + 0.9 * diffuse) for t in tint), mirrored, 0.22 + 0.5 * (1 - dz) ** 3)
    body = tuple(c + 0.9 * half ** 90 for c in body)
    return mix(colour, body, cover)


def row(y, crests):
    line = bytearray([0])
    for x in range(WIDTH):
        if y < SHORE:
            colour = scene(x, y, crests[x], len(RIDGES))
        else:
            depth = (y - SHORE) / (HEIGHT - SHORE)
            wave = fractal(x / (30 + 160 * depth), y / (2.5 + 12 * depth), 3) - 0.44
            mx = int(clamp(x + wave * 60 * depth + 9 * wave, 0, WIDTH - 1))
            my = SHORE - (y - SHORE) * 1.35 + wave * (8 + 60 * depth)
            colour = scene(mx, clamp(my, 0, SHORE - 1), crests[mx], len(RIDGES))
            colour = mix(colour, (0.05, 0.14, 0.22), 0.22 + 0.45 * depth)
            colour = tuple(c + 0.25 * max(0.0, wave - 0.12) for c in colour)
        colour = ball(colour, x, y, (250, 612), 74, (0.85, 0.22, 0.18))
        colour = ball(colour, x, y, (404, 668), 46, (0.16, 0.55, 0.36))
        colour = ball(colour, x, y, (846, 640), 58, (0.92, 0.70, 0.20))
        line += bytes(int(255 * clamp(c) + 0.5) for c in colour)
    return bytes(line)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def filtered(line, before):
    """Returns the line filtered by the PNG filter (up, or Paeth) that leaves the smaller sum. A pixel has three
    bytes."""
    up = bytes((a - b) & 255 for a, b in zip(line[1:], before[1:]))
    paeth = bytearray()
    for i in range(1, len(line)):
        a = line[i - 3] if i > 3 else 0
        b = before[i]
        c = before[i - 3] if i > 3 else 0
        pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
        paeth.append((line[i] - (a if pa <= pb and pa <= pc else b if pb <= pc else c)) & 255)
    cost = [sum(min(v, 256 - v) for v in data) for data in (up, paeth)]
    return b"\2" + up if cost[0] < cost[1] else b"\4" + bytes(paeth)


def main(path):
    crests = [[crest(ridge, x) for ridge in RIDGES] for x in range(WIDTH)]
    lines = [bytes(3 * WIDTH + 1)] + [row(y, crests) for y in range(HEIGHT)]
    data = b"".join(filtered(line, before) for before, line in zip(lines, lines[1:]))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)))
        file.write(chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


if __name__ == "__main__":
    main(sys.argv[1])
