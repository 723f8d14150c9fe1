/* Pictures in memory, and reading and writing them as PNG files. */
#ifndef RILL_TOOL_PICTURE_H
#define RILL_TOOL_PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Size limits of a picture: 256 MiB of pixels. */
enum { PICTURE_MAX_SIDE = 65536, PICTURE_MAX_PIXELS = 64 << 20 };

/* Red, green, blue and alpha, 8 bits each, rows from the top without gaps. */
struct picture {
  uint32_t width, height;
  uint8_t *pixels;
};

/* Allocates memory for the picture's width and height, or prints an error. */
bool picture_allocate(struct picture *picture);
void picture_free(struct picture *picture);

/* Reads a PNG of any kind. On failure prints one error and leaves the picture empty. */
bool picture_read(const char *path, struct picture *out);

/* Writes a PNG; `path` is for the error message. */
bool picture_write(const struct picture *picture, FILE *file, const char *path);

#endif
