/* Sums, minima, maxima and dot products: launches passes of reduce.kernel.cu until one result is left. */
#include "rill_kernels.h"

#include "reduce.rill.h"

/* Launches one pass. y is used by dot products only. */
typedef rill_status pass(rill_stream stream, const rill_launch *launch, int64_t n, const void *x, const void *y,
                         void *out);

/* Launches all passes. The first pass reads the input; each later one reads the results of the pass before it. */
static rill_status reduce(rill_stream stream, pass *first, pass *later, size_t element_size, uint64_t n, const void *x,
                          const void *y, void *out) {
  const uint64_t tile = RILL_KERNELS_TILE_BYTES / element_size;
  uint64_t tiles = rill_kernels_parts(n, tile);
  rill_launch launch = rill_kernels_tiles(n, element_size);
  if (tiles <= 1) return first(stream, &launch, (int64_t)n, x, y, out);

  /* Scratch memory holds the results of the first pass, one per tile, followed by those of the second pass. Later
   * passes alternate between the two places. */
  void *scratch = NULL;
  const uint64_t second = rill_kernels_parts(tiles, tile);
  rill_status status = rill_alloc_async(stream, (size_t)(tiles + second) * element_size, &scratch);
  if (status != RILL_OK) return status;
  unsigned char *const places[] = { scratch, (unsigned char *)scratch + tiles * element_size };
  status = first(stream, &launch, (int64_t)n, x, y, places[0]);
  for (unsigned from = 0; status == RILL_OK && tiles > 1; from = 1 - from) {
    n = tiles;
    tiles = rill_kernels_parts(n, tile);
    launch = rill_kernels_tiles(n, element_size);
    status = later(stream, &launch, (int64_t)n, places[from], NULL, tiles == 1 ? out : places[1 - from]);
  }
  const rill_status freed = rill_free_async(stream, scratch);
  return status != RILL_OK ? status : freed;
}

#define PASS(NAME, T)                                                                                     \
  static rill_status NAME##_pass(rill_stream stream, const rill_launch *launch, int64_t n, const void *x, \
                                 const void *y, void *out) {                                              \
    (void)y;                                                                                              \
    return NAME##_launch(stream, launch, n, (const T *)x, (T *)out);                                      \
  }
#define REDUCTION(NAME, T)                                                              \
  PASS(NAME, T)                                                                         \
  rill_status rill_kernels_##NAME(rill_stream stream, uint64_t n, const T *x, T *out) { \
    return reduce(stream, NAME##_pass, NAME##_pass, sizeof *x, n, x, NULL, out);        \
  }
REDUCTION(sum_i32, int32_t)
REDUCTION(sum_f32, float)
REDUCTION(sum_f64, double)
REDUCTION(min_i32, int32_t)
REDUCTION(min_f32, float)
REDUCTION(min_f64, double)
REDUCTION(max_i32, int32_t)
REDUCTION(max_f32, float)
REDUCTION(max_f64, double)

#define DOT(SUFFIX, T)                                                                                            \
  static rill_status dot_##SUFFIX##_pass(rill_stream stream, const rill_launch *launch, int64_t n, const void *x, \
                                         const void *y, void *out) {                                              \
    return dot_##SUFFIX##_launch(stream, launch, n, (const T *)x, (const T *)y, (T *)out);                        \
  }                                                                                                               \
  rill_status rill_kernels_dot_##SUFFIX(rill_stream stream, uint64_t n, const T *x, const T *y, T *out) {         \
    return reduce(stream, dot_##SUFFIX##_pass, sum_##SUFFIX##_pass, sizeof *x, n, x, y, out);                     \
  }
DOT(f32, float)
DOT(f64, double)
