/* Matrix products: launches sgemm for a single plain product with large tiles, and otherwise sgemm_batched or
 * sgemm_batched_64. All three compute the same bits. */
#include "rill_kernels.h"

#include "sgemm.rill.h"

/* Estimates whether tiles of 64 x 64 finish sooner than tiles of 128 x 128, from the number of rounds in which the
 * compute units process all tiles. A compute unit of a GPU runs two large tiles at the same time. A small tile takes
 * 0.3 of the time of a large one. */
static rill_status are_small_better(rill_stream stream, uint64_t large, uint64_t small, bool *out) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_device device;
  rill_status status = rill_stream_device(stream, &device);
  if (status == RILL_OK) status = rill_device_get_info(device, &info);
  if (status != RILL_OK) return status;
  const uint64_t units = info.compute_units, at_once = info.backend == RILL_BACKEND_CPU ? 1 : 2;
  const uint64_t large_turns = rill_kernels_parts(large, at_once * units) * at_once;
  *out = small > 0 && 10 * large_turns > 3 * rill_kernels_parts(small, units);
  return RILL_OK;
}

rill_status rill_kernels_sgemm_many(rill_stream stream, const rill_kernels_sgemm_problem *p) {
  const int64_t m = (int64_t)p->m, n = (int64_t)p->n, k = (int64_t)p->k;
  const int64_t lda = (int64_t)p->lda, ldb = (int64_t)p->ldb, ldc = (int64_t)p->ldc;
  const rill_launch large = rill_kernels_sgemm_batched(p->m, p->n, p->batch);
  const rill_launch small = rill_kernels_sgemm_batched_64(p->m, p->n, p->batch);
  bool by_small = false;
  const rill_status status = are_small_better(stream, large.grid.x, small.grid.x, &by_small);
  if (status != RILL_OK) return status;
  if (!by_small && p->batch == 1 && !p->transpose_a && !p->transpose_b && p->bias == NULL)
    return sgemm_launch(stream, &large, m, n, k, p->alpha, p->a, lda, p->b, ldb, p->beta, p->c, ldc);
  return (by_small ? sgemm_batched_64_launch : sgemm_batched_launch)(
      stream, by_small ? &small : &large, m, n, k, p->alpha, p->a, lda, (int64_t)p->stride_a, p->transpose_a, p->b, ldb,
      (int64_t)p->stride_b, p->transpose_b, p->beta, p->c, ldc, (int64_t)p->stride_c, p->bias);
}
