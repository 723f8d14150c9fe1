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

/* Which of the two matrices is given as its transpose. */
typedef enum product_form { A_B, A_BT, AT_B } product_form;

/* c = factor * a * b, of `count` matrices each, one after another and row after row: c is m x n, and each of its
 * elements a sum of k products. */
typedef struct product {
  product_form form;
  int count, m, n, k;
  float factor;
  const float *a, *b;
  float *c;
} product;

void products_multiply(products *p, const product *product);

#endif
