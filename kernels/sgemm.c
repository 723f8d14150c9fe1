/* Matrix products: the plain ones by sgemm, the others by sgemm_batched, which does the same. */
#include "rill_kernels.h"

#include "sgemm.rill.h"

rill_status rill_kernels_sgemm_many(rill_stream stream, const rill_kernels_sgemm_problem *p) {
  const int64_t m = (int64_t)p->m, n = (int64_t)p->n, k = (int64_t)p->k;
  const int64_t lda = (int64_t)p->lda, ldb = (int64_t)p->ldb, ldc = (int64_t)p->ldc;
  const rill_launch launch = rill_kernels_sgemm_batched(p->m, p->n, p->batch);
  if (p->batch == 1 && !p->transpose_a && !p->transpose_b && p->bias == NULL)
    return sgemm_launch(stream, &launch, m, n, k, p->alpha, p->a, lda, p->b, ldb, p->beta, p->c, ldc);
  return sgemm_batched_launch(stream, &launch, m, n, k, p->alpha, p->a, lda, (int64_t)p->stride_a, p->transpose_a, p->b,
                              ldb, (int64_t)p->stride_b, p->transpose_b, p->beta, p->c, ldc, (int64_t)p->stride_c,
                              p->bias);
}
