/* Prefix sums: one launch, with a state that is filled with zeros first. */
#include "rill_kernels.h"

#include "scan.rill.h"

#define SCAN(SUFFIX, T)                                                                                        \
  rill_status rill_kernels_scan_##SUFFIX(rill_stream stream, uint64_t n, bool exclusive, const T *x, T *out) { \
    const rill_launch launch = rill_kernels_tiles(n, sizeof *x);                                               \
    const size_t bytes = (size_t)rill_kernels_scan_state(n, sizeof *x);                                        \
    if (bytes == 0) return scan_##SUFFIX##_launch(stream, &launch, (int64_t)n, exclusive, x, NULL, out);       \
    void *state = NULL;                                                                                        \
    rill_status status = rill_alloc_async(stream, bytes, &state);                                              \
    if (status != RILL_OK) return status;                                                                      \
    const uint8_t zero = 0;                                                                                    \
    status = rill_fill_async(stream, state, &zero, sizeof zero, bytes);                                        \
    if (status == RILL_OK) {                                                                                   \
      status = scan_##SUFFIX##_launch(stream, &launch, (int64_t)n, exclusive, x, state, out);                  \
    }                                                                                                          \
    const rill_status freed = rill_free_async(stream, state);                                                  \
    return status != RILL_OK ? status : freed;                                                                 \
  }
SCAN(i32, int32_t)
SCAN(f32, float)
SCAN(f64, double)
