"""The demo's filter once more, for pictures as rows of RGBA samples."""

WEIGHTS = (1, 4, 6, 4, 1)
AMOUNT, SATURATION, CONTRAST, BRIGHTNESS = 512, 352, 300, 6


def clamp(v, low, high):
    return min(max(v, low), high)


def scaled(v):
    return (v + 128) // 256


def blur(rows, width, height):
    def across(row):
        return [
            sum(WEIGHTS[d] * row[4 * clamp(x + d - 2, 0, width - 1) + c] for d in range(5))
            for x in range(width)
            for c in range(4)
        ]

    wide = [across(row) for row in rows]
    return [
        [scaled(sum(WEIGHTS[d] * wide[clamp(y + d - 2, 0, height - 1)][i] for d in range(5))) for i in range(4 * width)]
        for y in range(height)
    ]


def sharpen(rows, width, height):
    result = []
    for y in range(height):
        up, line, down = rows[max(y - 1, 0)], rows[y], rows[min(y + 1, height - 1)]
        new = list(line)
        for x in range(width):
            left, right = max(x - 1, 0), min(x + 1, width - 1)
            for c in range(3):
                i = 4 * x + c
                detail = 4 * line[i] - line[4 * left + c] - line[4 * right + c] - up[i] - down[i]
                new[i] = clamp(line[i] + scaled(detail * AMOUNT), 0, 255)
        result.append(new)
    return result


def tone(rows):
    result = []
    for row in rows:
        new = list(row)
        for i in range(0, len(row), 4):
            grey = scaled(77 * row[i] + 150 * row[i + 1] + 29 * row[i + 2])
            for c in range(3):
                vivid = grey + scaled((row[i + c] - grey) * SATURATION)
                new[i + c] = clamp(128 + scaled((vivid - 128) * CONTRAST) + BRIGHTNESS, 0, 255)
        result.append(new)
    return result


def demo(width, height, rows):
    return tone(sharpen(blur(rows, width, height), width, height))
