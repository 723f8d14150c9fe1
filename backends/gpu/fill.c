#include "backends/gpu/gpu.h"

#include <stdlib.h>

/* The vendors fill with patterns of 1, 2 and 4 bytes, in one dimension and, in some versions, in two.  If a fill takes
 * several calls, the first one already fails for any invalid argument; later calls can fail only if the device does. */

static uint32_t word_at(const unsigned char *pattern, size_t offset) {
  uint32_t word;
  memcpy(&word, pattern + offset, sizeof word);
  return word;
}

static uint16_t half_at(const unsigned char *pattern) {
  uint16_t half;
  memcpy(&half, pattern, sizeof half);
  return half;
}

/* Returns the size of the shortest pattern, of at least `least` bytes, that the pattern repeats. */
static size_t shorten(const unsigned char *pattern, size_t pattern_size, size_t least) {
  while (pattern_size > least && memcmp(pattern, pattern + pattern_size / 2, pattern_size / 2) == 0) pattern_size /= 2;
  return pattern_size;
}

/* ---- kinds of memory ---- */

/* Returns true if the driver reports all of the memory as device memory.  Later calls then cannot refuse what the first
 * one accepted, and copies within the memory do not block the caller.  Returns false for memory of several mappings. */
static bool is_on_device(struct rill__device *device, const void *p, size_t size) {
  gpu_pointer base = GPU_POINTER(NULL);
  size_t length = 0;
  bool on_device = false;
  struct gpu_scope scope;
  if (gpu_api.memory_range == NULL || gpu_enter(device, &scope) != GPU_SUCCESS) return false;
  gpu_result result = gpu_vendor_is_on_device(p, &on_device);
  if (result == GPU_SUCCESS && on_device) result = GPU_CALL(memory_range, (&base, &length, GPU_POINTER(p)));
  gpu_leave(&scope);
  const size_t offset = (size_t)((uintptr_t)p - (uintptr_t)base);
  return result == GPU_SUCCESS && on_device && offset <= length && size <= length - offset;
}

/* Returns true if copies within the memory are asynchronous, and far faster than filling columns and rows one by one.
 */
static bool may_double(struct rill__stream *stream, const struct rill__fill_2d *fill) {
  if (fill->dst_kind != RILL_MEMORY_UNKNOWN) return fill->dst_kind != RILL_MEMORY_PINNED;
  return is_on_device(stream->base.device, fill->dst,
                      (fill->height - 1) * fill->pitch + fill->width * fill->pattern_size);
}

/* ---- filling by the host ---- */

struct host_fill {
  unsigned char *dst;
  size_t pitch, width, height, pattern_size;
  unsigned char pattern[16];
};

static void fill_on_host(void *user, rill_status stream_status) {
  const struct host_fill fill = *(struct host_fill *)user;
  free(user);
  if (stream_status != RILL_OK) return;
  for (size_t row = 0; row < fill.height; row++) {
    for (size_t i = 0; i < fill.width; i++) {
      memcpy(fill.dst + row * fill.pitch + i * fill.pattern_size, fill.pattern, fill.pattern_size);
    }
  }
}

/* Returns true for pinned memory, including memory of other code.  A fill of all of this memory has been submitted
 * before, so the memory exists. */
static bool is_pinned(struct rill__device *device, const struct rill__fill_2d *fill) {
  bool known = false;
  if (fill->dst_kind != RILL_MEMORY_UNKNOWN) return fill->dst_kind == RILL_MEMORY_PINNED;
  return gpu_api.fill_2d_32 == NULL && !is_on_device(device, fill->dst, 1) &&
         gpu_memory_table.is_known(device, fill->dst, &known) == RILL_OK && known;
}

/* Fills pinned memory on the host, in stream order, if the vendors' fills cannot do it and their copies would block the
 * caller until the stream is done.  `done` is false in a capture, where copies are nodes. */
static rill_status try_host_fill(struct rill__stream *stream, const struct rill__fill_2d *request, bool *done) {
  bool capturing = false;
  *done = false;
  if (!is_pinned(stream->base.device, request)) return RILL_OK;
  RILL_TRY(gpu_stream_table.is_capturing(stream, &capturing));
  if (capturing) return RILL_OK;
  struct host_fill *fill = malloc(sizeof *fill);
  RILL_REQUIRE(fill != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a fill of pinned memory");
  *fill = (struct host_fill){ .dst = request->dst,
                              .pitch = request->pitch,
                              .width = request->width,
                              .height = request->height,
                              .pattern_size = request->pattern_size };
  memcpy(fill->pattern, request->pattern, request->pattern_size);
  const rill_status status = gpu_host_call(stream, fill_on_host, fill);
  if (status != RILL_OK) free(fill);
  *done = status == RILL_OK;
  return status;
}

/* ---- filling by a kernel ---- */

/* Returns true if the device's kernels can write the memory like its own. */
static bool is_of_device(struct rill__device *device, const struct rill__fill_2d *fill) {
  const size_t size = (fill->height - 1) * fill->pitch + fill->width * fill->pattern_size;
  if (fill->dst_kind != RILL_MEMORY_UNKNOWN) {
    return fill->dst_kind == RILL_MEMORY_DEVICE || fill->dst_kind == RILL_MEMORY_MANAGED;
  }
  return is_on_device(device, fill->dst, size) && gpu_vendor_is_memory_of(gpu_device_of(device)->native, fill->dst);
}

/* Fills with patterns of 8 and 16 bytes. */
static rill_status try_kernel(struct rill__stream *stream, const struct rill__fill_2d *fill, bool *done) {
  enum { THREADS = 256, MAX_ROWS = 65535 };
  const uint64_t block_words = (uint64_t)THREADS * GPU_FILL_WORDS;
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  const gpu_function kernel = gpu_device_of(device)->fill;
  const uint64_t words = fill->pattern_size / 8 * fill->width;
  const uint64_t blocks = words / block_words + (words % block_words != 0);
  *done = false;
  if (kernel == NULL || fill->pattern_size < 8 || blocks > INT32_MAX || !is_of_device(device, fill)) return RILL_OK;
  uint64_t dst = (uintptr_t)fill->dst, pitch = fill->pitch, width = words, height = fill->height, pattern[2];
  memcpy(&pattern[0], fill->pattern, 8);
  memcpy(&pattern[1], (const unsigned char *)fill->pattern + fill->pattern_size - 8, 8);
  void *args[] = { &dst, &pitch, &width, &height, &pattern[0], &pattern[1] };
  const unsigned rows = (unsigned)(height < MAX_ROWS ? height : MAX_ROWS);
  gpu_result result;
  GPU_RUN(result, device, part->work_inside, launch,
          (kernel, (unsigned)blocks, rows, 1, THREADS, 1, 1, 0, part->native, args, NULL));
  *done = result == GPU_SUCCESS;
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, launch);
}

/* ---- one dimension ---- */

/* Fills `rows` words, one pitch apart.  Works in pieces, because the vendors do not state their limit of rows. */
static rill_status fill_column(struct rill__stream *stream, unsigned char *dst, size_t pitch, uint32_t word,
                               size_t rows) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  const size_t most = (size_t)1 << 24;
  for (size_t done = 0; done < rows;) {
    const size_t n = rows - done < most ? rows - done : most;
    gpu_result result;
    GPU_RUN(result, device, part->work_inside, fill_2d_32,
            (GPU_POINTER(dst + done * pitch), pitch, word, 1, n, part->native));
    if (result != GPU_SUCCESS) return GPU_FAIL(device, result, fill_2d_32);
    done += n;
  }
  return RILL_OK;
}

/* Fills columns of patterns of several words: one two-dimensional fill for each word of a pattern. */
static rill_status fill_columns(struct rill__stream *stream, const struct rill__fill_2d *fill) {
  for (size_t offset = 0; offset < fill->width * fill->pattern_size; offset += 4) {
    RILL_TRY(fill_column(stream, (unsigned char *)fill->dst + offset, fill->pitch,
                         word_at(fill->pattern, offset % fill->pattern_size), fill->height));
  }
  return RILL_OK;
}

/* Repeats the first `done` bytes until `size` bytes are filled, copying twice as many each time. */
static rill_status double_bytes(struct rill__stream *stream, unsigned char *dst, size_t done, size_t size) {
  while (done < size) {
    const size_t n = size - done < done ? size - done : done;
    RILL_TRY(gpu_memory_table.copy(stream, dst + done, RILL_MEMORY_UNKNOWN, dst, RILL_MEMORY_UNKNOWN, n));
    done += n;
  }
  return RILL_OK;
}

static rill_status fill_word(struct rill__stream *stream, unsigned char *dst, uint32_t word, size_t count) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_result result;
  GPU_RUN(result, device, part->work_inside, fill_32, (GPU_POINTER(dst), (gpu_word)word, count, part->native));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, fill_32);
}

/* Fills a row with patterns of several words.  Columns of words are hundreds of times slower than copies (an H200
 * writes 6 GB/s of them).  So columns fill only a first part, which takes about as long as a call does, and copies
 * double it from there.  Without two-dimensional fills, a single pattern is doubled. */
static rill_status fill_wide(struct rill__stream *stream, void *dst, uint32_t dst_kind, const unsigned char *pattern,
                             size_t pattern_size, size_t count) {
  enum { FIRST = 16 << 10 };
  const size_t size = pattern_size * count;
  struct rill__fill_2d column = { dst, dst_kind, pattern_size, 1, count, pattern, pattern_size }; /* 1 per row */
  const struct rill__fill_2d row = { dst, dst_kind, size, count, 1, pattern, pattern_size };
  bool done = false;
  RILL_TRY(try_kernel(stream, &row, &done));
  if (done) return RILL_OK;
  if (gpu_api.fill_2d_32 != NULL) {
    if (size > FIRST && may_double(stream, &column)) column.height = FIRST / pattern_size;
    RILL_TRY(fill_columns(stream, &column));
    return double_bytes(stream, dst, column.height * pattern_size, size);
  }
  /* If only the vendor knows the memory's extent, the first call covers all of it, so that later calls are not
   * refused. */
  if (dst_kind == RILL_MEMORY_UNKNOWN) RILL_TRY(fill_word(stream, dst, word_at(pattern, 0), size / 4));
  RILL_TRY(try_host_fill(stream, &column, &done));
  if (done) return RILL_OK;
  for (size_t i = 0; i < pattern_size; i += 4) {
    RILL_TRY(fill_word(stream, (unsigned char *)dst + i, word_at(pattern, i), 1));
  }
  return double_bytes(stream, dst, pattern_size, size);
}

rill_status gpu_fill(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *pattern,
                     size_t pattern_size, size_t count) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  const gpu_pointer to = GPU_POINTER(dst);
  unsigned char bytes[16];
  memcpy(bytes, pattern, pattern_size);
  if (pattern_size > 4) {
    const size_t all = pattern_size * count;
    pattern_size = shorten(bytes, pattern_size, 4);
    count = all / pattern_size;
  }
  gpu_result result;
  switch (pattern_size) {
    case 1:
      GPU_RUN(result, device, part->work_inside, fill_8, (to, bytes[0], count, part->native));
      return RILL__LIKELY(result == GPU_SUCCESS) ? RILL_OK : GPU_FAIL(device, result, fill_8);
    case 2:
      GPU_RUN(result, device, part->work_inside, fill_16, (to, half_at(bytes), count, part->native));
      return RILL__LIKELY(result == GPU_SUCCESS) ? RILL_OK : GPU_FAIL(device, result, fill_16);
    case 4:
      GPU_RUN(result, device, part->work_inside, fill_32, (to, (gpu_word)word_at(bytes, 0), count, part->native));
      return RILL__LIKELY(result == GPU_SUCCESS) ? RILL_OK : GPU_FAIL(device, result, fill_32);
    default: return fill_wide(stream, dst, dst_kind, bytes, pattern_size, count);
  }
}

/* ---- two dimensions ---- */

static rill_status fill_by_rows(struct rill__stream *stream, const struct rill__fill_2d *fill) {
  for (size_t row = 0; row < fill->height; row++) {
    RILL_TRY(gpu_fill(stream, (unsigned char *)fill->dst + row * fill->pitch, fill->dst_kind, fill->pattern,
                      fill->pattern_size, fill->width));
  }
  return RILL_OK;
}

/* Fills the first row and copies it, doubling the number of rows with each copy. */
static rill_status double_rows(struct rill__stream *stream, const struct rill__fill_2d *fill) {
  RILL_TRY(gpu_fill(stream, fill->dst, fill->dst_kind, fill->pattern, fill->pattern_size, fill->width));
  const size_t row_bytes = fill->width * fill->pattern_size;
  for (size_t done = 1; done < fill->height;) {
    const size_t n = fill->height - done < done ? fill->height - done : done;
    const struct rill__copy_3d copy = {
      .dst = (unsigned char *)fill->dst + done * fill->pitch,
      .src = fill->dst,
      .dst_kind = fill->dst_kind,
      .src_kind = fill->dst_kind,
      .width = row_bytes,
      .height = n,
      .depth = 1,
      .dst_pitch = fill->pitch,
      .src_pitch = fill->pitch,
    };
    RILL_TRY(n > 1 ? gpu_copy_3d(stream, &copy)
                   : gpu_memory_table.copy(stream, copy.dst, copy.dst_kind, copy.src, copy.src_kind, row_bytes));
    done += n;
  }
  return RILL_OK;
}

/* Fills `rows` rows starting at `to` with a pattern of 1, 2 or 4 bytes. */
static gpu_result fill_piece(const struct rill__fill_2d *fill, gpu_pointer to, size_t rows, gpu_stream_handle stream) {
  const unsigned char *const pattern = fill->pattern;
  switch (fill->pattern_size) {
    case 1: return GPU_CALL(fill_2d_8, (to, fill->pitch, pattern[0], fill->width, rows, stream));
    case 2: return GPU_CALL(fill_2d_16, (to, fill->pitch, half_at(pattern), fill->width, rows, stream));
    default: return GPU_CALL(fill_2d_32, (to, fill->pitch, word_at(pattern, 0), fill->width, rows, stream));
  }
}

/* Works in pieces, like fill_column. */
static rill_status fill_at_once(struct rill__stream *stream, const struct rill__fill_2d *fill) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  const char *const symbol = fill->pattern_size == 1   ? gpu_symbols.fill_2d_8
                             : fill->pattern_size == 2 ? gpu_symbols.fill_2d_16
                                                       : gpu_symbols.fill_2d_32;
  const size_t most = (size_t)1 << 24;
  for (size_t done = 0; done < fill->height;) {
    const size_t n = fill->height - done < most ? fill->height - done : most;
    const gpu_pointer to = GPU_POINTER((unsigned char *)fill->dst + done * fill->pitch);
    gpu_result result;
    GPU_CALL_ANYWHERE(result, device, part->work_inside, fill_piece(fill, to, n, part->native));
    if (RILL__UNLIKELY(result != GPU_SUCCESS)) return gpu_fail(device, result, symbol);
    done += n;
  }
  return RILL_OK;
}

/* Fills with patterns for which the vendor has no two-dimensional fill.  Rows of few patterns are filled as columns,
 * because copies of such narrow rows are not known to be faster. */
static rill_status fill_composed(struct rill__stream *stream, const struct rill__fill_2d *fill) {
  enum { FEW = 4 };
  bool done = false;
  RILL_TRY(try_kernel(stream, fill, &done));
  if (done) return RILL_OK;
  if (gpu_api.fill_2d_32 != NULL && fill->pattern_size > 4 && fill->width <= FEW) return fill_columns(stream, fill);
  if (gpu_api.fill_2d_32 == NULL && fill->dst_kind == RILL_MEMORY_UNKNOWN) {
    const unsigned char byte = ((const unsigned char *)fill->pattern)[0];
    const struct rill__fill_2d bytes = {
      fill->dst, fill->dst_kind, fill->pitch, fill->width * fill->pattern_size, fill->height, &byte, 1
    };
    RILL_TRY(fill_at_once(stream, &bytes)); /* as in fill_wide */
  }
  RILL_TRY(try_host_fill(stream, fill, &done));
  if (done) return RILL_OK;
  return may_double(stream, fill) ? double_rows(stream, fill) : fill_by_rows(stream, fill);
}

rill_status gpu_fill_2d(struct rill__stream *stream, const struct rill__fill_2d *request) {
  unsigned char bytes[16];
  memcpy(bytes, request->pattern, request->pattern_size);
  struct rill__fill_2d fill = *request;
  fill.pattern = bytes;
  fill.pattern_size = shorten(bytes, request->pattern_size, gpu_api.fill_2d_32 != NULL ? 4 : 1);
  fill.width = request->width * (request->pattern_size / fill.pattern_size);
  /* The vendors state this limit for copies, and none for fills.  Rows with such a pitch are few. */
  const size_t most = gpu_device_of(stream->base.device)->max_pitch;
  if (most != 0 && fill.pitch > most) return fill_by_rows(stream, &fill);
  const bool there = fill.pattern_size == 1 || (fill.pattern_size == 2 && gpu_api.fill_2d_16 != NULL) ||
                     (fill.pattern_size == 4 && gpu_api.fill_2d_32 != NULL);
  return there ? fill_at_once(stream, &fill) : fill_composed(stream, &fill);
}
