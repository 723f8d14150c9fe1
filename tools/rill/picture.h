/* Pictures in memory, and as PNG files. */
#ifndef RILL_TOOL_PICTURE_H
#define RILL_TOOL_PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What a picture may measure: 256 MiB of pixels. */
enum { PICTURE_MAX_SIDE = 65536, PICTURE_MAX_PIXELS = 64 << 20 };

/* Red, green, blue and alpha, 8 bits each, rows from the top without gaps. */
struct picture {
  uint32_t width, height;
  uint8_t *pixels;
};

/* Gives the picture memory for its width and height, or complains. */
bool picture_allocate(struct picture *picture);
void picture_free(struct picture *picture);

/* Reads a PNG of any kind.  On failure complains once and leaves the picture empty. */
bool picture_read(const char *path, struct picture *out);

/* Writes a PNG; `path` is for the complaint. */
bool picture_write(const struct picture *picture, FILE *file, const char *path);

#endif
