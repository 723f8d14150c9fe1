/* products.h: matrix products by the vendor's library where there is one, else by rill's own kernels. */
#ifndef GPT2_PRODUCTS_H
#define GPT2_PRODUCTS_H

#include "rill_kernels.h"

typedef struct product_options {
  int own;  /* rill's own kernels in any case */
  int tf32; /* NVIDIA: products of numbers rounded to 11 bits, which tensor cores take */
} product_options;

typedef struct products {
  rill_stream stream;
  void *handle;    /* the vendor's; NULL: rill's own kernels */
  void *workspace; /* the library's, which may not allocate in a capture */
} products;

void products_open(products *p, rill_device device, rill_stream stream, const product_options *options);
void products_close(products *p);

/* c = alpha * a * b + beta * c of matrices in rows, `batch` times.  Takes no bias. */
void products_multiply(products *p, const rill_kernels_sgemm_problem *problem);

#endif
