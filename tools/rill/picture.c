#include "picture.h"

#include "tool.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* The signature, and the first chunk up to the height. */
enum { HEADER = 24 };

/* The file that libpng reads or writes, and its last error. */
struct io {
  FILE *file;
  uint8_t header[HEADER];
  size_t replayed; /* bytes of the header, which was read before libpng */
  jmp_buf failed;
  char text[160];
};

static void on_error(png_structp png, png_const_charp text) {
  struct io *io = png_get_error_ptr(png);
  if (io->text[0] == '\0') (void)snprintf(io->text, sizeof io->text, "%s", text);
  longjmp(io->failed, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
  (void)png;
  (void)text;
}

static void on_read(png_structp png, png_bytep data, size_t size) {
  struct io *io = png_get_io_ptr(png);
  const size_t left = HEADER - io->replayed;
  const size_t replay = size < left ? size : left;
  memcpy(data, io->header + io->replayed, replay);
  io->replayed += replay;
  if (fread(data + replay, 1, size - replay, io->file) == size - replay) return;
  png_error(png, ferror(io->file) ? strerror(errno) : "it is truncated");
}

static void on_write(png_structp png, png_bytep data, size_t size) {
  struct io *io = png_get_io_ptr(png);
  if (fwrite(data, 1, size, io->file) != size) png_error(png, strerror(errno));
}

static void on_flush(png_structp png) { (void)png; }

bool picture_allocate(struct picture *picture) {
  const size_t size = (size_t)picture->width * picture->height * 4;
  picture->pixels = malloc(size);
  return picture->pixels != NULL || complain("out of memory: %zu bytes for a picture", size);
}

void picture_free(struct picture *picture) {
  free(picture->pixels);
  *picture = (struct picture){ 0 };
}

static uint32_t big_endian(const uint8_t *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Checks signature and size before libpng is called and memory is allocated. */
static bool read_header(struct io *io, const char *path, uint32_t *width, uint32_t *height) {
  static const uint8_t signature[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
  const size_t got = fread(io->header, 1, HEADER, io->file);
  if (ferror(io->file)) return complain("cannot read %s: %s", path, strerror(errno));
  if (got == 0) return complain("%s is empty", path);
  if (memcmp(io->header, signature, got < sizeof signature ? got : sizeof signature) != 0) {
    return complain("%s is not a PNG file", path);
  }
  if (got < HEADER) return complain("%s is not a complete PNG file: it is truncated", path);
  if (memcmp(io->header + 12, "IHDR", 4) != 0) return complain("%s is damaged: its header is missing", path);
  *width = big_endian(io->header + 16);
  *height = big_endian(io->header + 20);
  if (*width == 0 || *height == 0) return complain("%s has no pixels: %u x %u", path, *width, *height);
  if (*width > PICTURE_MAX_SIDE || *height > PICTURE_MAX_SIDE || (uint64_t)*width * *height > PICTURE_MAX_PIXELS) {
    return complain("%s is too large: %u x %u; the limits are %d pixels a side and %d million in total", path, *width,
                    *height, PICTURE_MAX_SIDE, PICTURE_MAX_PIXELS / 1000000);
  }
  return true;
}

/* Converts any kind of file to 8-bit RGBA. */
static void transform_to_rgba(png_structp png) {
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_gray_to_rgb(png);
  png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
}

static bool decode(struct io *io, png_structp png, png_infop info, struct picture *out) {
  if (setjmp(io->failed) != 0) return false;
  png_set_read_fn(png, io, on_read);
  png_set_user_limits(png, PICTURE_MAX_SIDE, PICTURE_MAX_SIDE);
  png_read_info(png, info);
  transform_to_rgba(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const size_t pitch = png_get_rowbytes(png, info);
  if (pitch != (size_t)out->width * 4) png_error(png, "its pixels cannot be converted to RGBA");
  for (int pass = 0; pass < passes; pass++) {
    for (uint32_t y = 0; y < out->height; y++) png_read_row(png, out->pixels + y * pitch, NULL);
  }
  png_read_end(png, NULL);
  return true;
}

static bool read_file(struct io *io, const char *path, struct picture *out) {
  if (!read_header(io, path, &out->width, &out->height) || !picture_allocate(out)) return false;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, io, on_error, on_warning);
  png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
  const bool ok = info != NULL && decode(io, png, info, out);
  if (info == NULL) {
    (void)complain("libpng cannot be used: there is no memory, or its version is not %s, for which rill was built",
                   PNG_LIBPNG_VER_STRING);
  } else if (!ok) {
    (void)complain("%s is not a complete PNG file: %s", path, io->text);
  }
  png_destroy_read_struct(&png, &info, NULL);
  return ok;
}

bool picture_read(const char *path, struct picture *out) {
  *out = (struct picture){ 0 };
  struct io io = { .file = fopen(path, "rb") };
  if (io.file == NULL) return complain("cannot open %s: %s", path, strerror(errno));
  const bool ok = read_file(&io, path, out);
  (void)fclose(io.file);
  if (!ok) picture_free(out);
  return ok;
}

static bool encode(struct io *io, png_structp png, png_infop info, const struct picture *picture) {
  if (setjmp(io->failed) != 0) return false;
  png_set_write_fn(png, io, on_write, on_flush);
  png_set_user_limits(png, PICTURE_MAX_SIDE, PICTURE_MAX_SIDE);
  png_set_IHDR(png, info, picture->width, picture->height, 8, PNG_COLOR_TYPE_RGBA, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (uint32_t y = 0; y < picture->height; y++) {
    png_write_row(png, picture->pixels + (size_t)y * picture->width * 4);
  }
  png_write_end(png, NULL);
  return true;
}

bool picture_write(const struct picture *picture, FILE *file, const char *path) {
  struct io io = { .file = file };
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &io, on_error, on_warning);
  png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
  const bool ok = info != NULL && encode(&io, png, info, picture);
  if (!ok) (void)complain("cannot write %s: %s", path, info != NULL ? io.text : "out of memory");
  png_destroy_write_struct(&png, &info);
  return ok;
}
