#include "reference.h"

/* The filters are defined in kernels/image.kernel.cu; outside a picture, the nearest edge pixel is used. */

static int clamp(int v, int low, int high) { return v < low ? low : v > high ? high : v; }

static const uint8_t *at(const struct picture *picture, int x, int y) {
  const size_t cx = (size_t)clamp(x, 0, (int)picture->width - 1), cy = (size_t)clamp(y, 0, (int)picture->height - 1);
  return picture->pixels + (cy * picture->width + cx) * 4;
}

/* Returns v / 256 rounded to the nearest integer, halves up, including negative numbers. */
static int scaled(int v) { return (v + 128) >> 8; }

static void blur(const struct picture *in, int x, int y, uint8_t *out) {
  static const int weights[5] = { 1, 4, 6, 4, 1 };
  int sum[4] = { 0 };
  for (int dy = -2; dy <= 2; dy++) {
    for (int dx = -2; dx <= 2; dx++) {
      const uint8_t *pixel = at(in, x + dx, y + dy);
      const int weight = weights[dx + 2] * weights[dy + 2];
      for (int c = 0; c < 4; c++) sum[c] += weight * pixel[c];
    }
  }
  for (int c = 0; c < 4; c++) out[c] = (uint8_t)scaled(sum[c]);
}

static void sharpen(const struct picture *in, int x, int y, uint8_t *out) {
  const uint8_t *center = at(in, x, y);
  const uint8_t *left = at(in, x - 1, y), *right = at(in, x + 1, y);
  const uint8_t *up = at(in, x, y - 1), *down = at(in, x, y + 1);
  for (int c = 0; c < 3; c++) {
    const int detail = 4 * center[c] - left[c] - right[c] - up[c] - down[c];
    out[c] = (uint8_t)clamp(center[c] + scaled(detail * FILTER_AMOUNT), 0, 255);
  }
  out[3] = center[3];
}

static void tone(uint8_t *pixel) {
  const int grey = scaled(77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2]);
  for (int c = 0; c < 3; c++) {
    const int vivid = grey + scaled((pixel[c] - grey) * FILTER_SATURATION);
    pixel[c] = (uint8_t)clamp(128 + scaled((vivid - 128) * FILTER_CONTRAST) + FILTER_BRIGHTNESS, 0, 255);
  }
}

bool reference_filter(const struct picture *in, struct picture *out) {
  struct picture blurred = { .width = in->width, .height = in->height };
  if (!picture_allocate(&blurred)) return false;
  const int width = (int)in->width, height = (int)in->height;
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) blur(in, x, y, blurred.pixels + ((size_t)y * in->width + (size_t)x) * 4);
  }
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      uint8_t *pixel = out->pixels + ((size_t)y * in->width + (size_t)x) * 4;
      sharpen(&blurred, x, y, pixel);
      tone(pixel);
    }
  }
  picture_free(&blurred);
  return true;
}
