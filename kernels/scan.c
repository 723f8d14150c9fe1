/* Running sums: the sum of each tile (reduce.kernel.cu), the scan of these, and from there the scan of each tile. */
#include "rill_kernels.h"

#include "reduce.rill.h"
#include "scan.rill.h"

/* Calls itself with what is left after a pass: at most a 2048th, so it is soon at an end. */
#define SCAN(SUFFIX, T)                                                                                        \
  rill_status rill_kernels_scan_##SUFFIX(rill_stream stream, uint64_t n, bool exclusive, const T *x, T *out) { \
    const rill_launch launch = rill_kernels_tiles(n, sizeof *x);                                               \
    const uint64_t tiles = rill_kernels_parts(n, RILL_KERNELS_TILE_BYTES / sizeof *x);                         \
    if (tiles <= 1) return scan_##SUFFIX##_launch(stream, &launch, (int64_t)n, exclusive, x, NULL, out);       \
    void *scratch = NULL;                                                                                      \
    rill_status status = rill_alloc_async(stream, (size_t)tiles * sizeof *x, &scratch);                        \
    if (status != RILL_OK) return status;                                                                      \
    T *const offsets = scratch;                                                                                \
    status = sum_##SUFFIX##_launch(stream, &launch, (int64_t)n, x, offsets);                                   \
    if (status == RILL_OK) status = rill_kernels_scan_##SUFFIX(stream, tiles, true, offsets, offsets);         \
    if (status == RILL_OK) {                                                                                   \
      status = scan_##SUFFIX##_launch(stream, &launch, (int64_t)n, exclusive, x, offsets, out);                \
    }                                                                                                          \
    const rill_status freed = rill_free_async(stream, scratch);                                                \
    return status != RILL_OK ? status : freed;                                                                 \
  }
SCAN(i32, int32_t)
SCAN(f32, float)
SCAN(f64, double)
