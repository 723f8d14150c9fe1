/* Structs that are passed to kernels, for C and for device code. */
#ifndef DIALECT_TYPES_H
#define DIALECT_TYPES_H

struct dialect_point {
  float x;
  short y;
  long long z;
};

typedef struct dialect_matrix {
  float values[3][2];
} dialect_matrix;

struct dialect_place {
  unsigned thread[3], block[3], block_size[3], grid_size[3];
};

#endif
