/* products.h: matrix products by the vendor's library if it is available, otherwise by rill's own kernels. */
#ifndef GPT2_PRODUCTS_H
#define GPT2_PRODUCTS_H

#include "rill_kernels.h"

typedef struct product_options {
  int own;  /* always use rill's own kernels */
  int tf32; /* NVIDIA: round factors to 11 bits, for tensor cores */
} product_options;

typedef struct products {
  rill_stream stream;
  void *handle;    /* the vendor's handle; NULL for rill's own kernels */
  void *workspace; /* for the library, which must not allocate in a capture */
} products;

void products_open(products *p, rill_device device, rill_stream stream, const product_options *options);
void products_close(products *p);

/* Selects which of the two matrices is passed transposed. */
typedef enum product_form { A_B, A_BT, AT_B } product_form;

/* Computes c = factor * a * b for `count` contiguous matrices in row-major order. c is m x n, and each element is a
 * sum of k products. */
typedef struct product {
  product_form form;
  int count, m, n, k;
  float factor;
  const float *a, *b;
  float *c;
} product;

void products_multiply(products *p, const product *product);

#endif
