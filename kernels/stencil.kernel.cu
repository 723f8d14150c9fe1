/* stencil.kernel.cu: one step of a stencil, which replaces each point by a weighted sum of itself and its nearest
 * neighbours.
 *
 *   stencil5_f32 stencil5_f64   2D: y = center * x + near * ((left + right) + (up + down))
 *   stencil7_f32 stencil7_f64   3D: y = center * x + near * (((left + right) + (up + down)) + (below + above))
 *
 * Points are stored row after row (and plane after plane) without gaps. Points at the border, which lack a neighbour,
 * are copied.
 *
 * Launch: each thread computes 16 bytes of a row, in 2 rows of a plane (2D) or in the same row of 4 planes (3D). Blocks
 * are two-dimensional and may have any size; on a GPU use 64 x 4 threads. All blocks are in x: row after row, then
 * layer after layer (rill_kernels_stencil5, rill_kernels_stencil7).
 * Limits: all sizes must be at least 1. x and y must not overlap. Arrays may have any alignment and any width; arrays
 * that begin at multiples of 16 bytes and whose rows are multiples of 16 bytes are fastest.
 * Rounding: the sums in parentheses are rounded as written, center * x is rounded once, and the last product and its
 * addition are rounded once together (fma). The result is bit-identical on every device.
 */
#include <rill/device/kernel.h>

#include "wide.h"

enum { ROWS = 2, PLANES = 4 }; /* per thread; rill_kernels.h uses the same numbers */

static __device__ __forceinline__ float fused(float a, float b, float c) { return fmaf(a, b, c); }
static __device__ __forceinline__ double fused(double a, double b, double c) { return fma(a, b, c); }

/* The points of a block, clipped to the arrays: columns left ... right - 1, rows top ... bottom - 1 and planes front
 * ... back - 1. */
struct box {
  ptrdiff_t left, right, top, bottom, front, back;
};

static __device__ __forceinline__ ptrdiff_t lesser(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

static __device__ __forceinline__ box find_box(int64_t width, int64_t height, int64_t depth, ptrdiff_t columns,
                                               ptrdiff_t rows, ptrdiff_t planes) {
  const unsigned across = static_cast<unsigned>((width + columns - 1) / columns);
  const unsigned along = static_cast<unsigned>((height + rows - 1) / rows);
  const unsigned row = blockIdx.x / across;
  const ptrdiff_t left = blockIdx.x % across * columns, top = row % along * rows, front = row / along * planes;
  return { left, lesser(left + columns, width), top, lesser(top + rows, height), front, lesser(front + planes, depth) };
}

#if RILL_ON_CPU

/* The first thread of a block does the work of all threads, because the host compiler optimizes plain loops along rows
 * best. */
template <class T>
static void do_row(const box &box, ptrdiff_t width, ptrdiff_t plane, bool border, T center, T near, const T *x,
                   T *__restrict__ y) {
  ptrdiff_t i = box.left;
  const ptrdiff_t end = border ? i : lesser(box.right, width - 1);
  if (i == 0 && i < end) y[0] = x[0], i++;
  if (plane == 0) {
    for (; i < end; i++) y[i] = fused(near, (x[i - 1] + x[i + 1]) + (x[i - width] + x[i + width]), center * x[i]);
  } else {
    for (; i < end; i++) {
      const T flat = (x[i - 1] + x[i + 1]) + (x[i - width] + x[i + width]);
      y[i] = fused(near, flat + (x[i - plane] + x[i + plane]), center * x[i]);
    }
  }
  for (; i < box.right; i++) y[i] = x[i];
}

#define STENCIL(SUFFIX, T)                                                                                           \
  RILL_KERNEL(stencil5_##SUFFIX, int64_t width, int64_t height, T center, T near, const T *x, T *y) {                \
    if (threadIdx.x != 0 || threadIdx.y != 0) return;                                                                \
    const box box = find_box(width, height, 1, blockDim.x * wide<T>::COUNT, blockDim.y * ROWS, 1);                   \
    for (ptrdiff_t j = box.top; j < box.bottom; j++)                                                                 \
      do_row<T>(box, width, 0, j == 0 || j == height - 1, center, near, x + j * width, y + j * width);               \
  }                                                                                                                  \
  RILL_KERNEL(stencil7_##SUFFIX, int64_t width, int64_t height, int64_t depth, T center, T near, const T *x, T *y) { \
    if (threadIdx.x != 0 || threadIdx.y != 0) return;                                                                \
    const box box = find_box(width, height, depth, blockDim.x * wide<T>::COUNT, blockDim.y, PLANES);                 \
    for (ptrdiff_t k = box.front; k < box.back; k++)                                                                 \
      for (ptrdiff_t j = box.top; j < box.bottom; j++) {                                                             \
        const bool border = j == 0 || j == height - 1 || k == 0 || k == depth - 1;                                   \
        const ptrdiff_t row = (k * height + j) * width;                                                              \
        do_row<T>(box, width, width * height, border, center, near, x + row, y + row);                               \
      }                                                                                                              \
  }

#else

/* 16 bytes of a row, starting at column `i`. */
struct part {
  ptrdiff_t i, width;
  bool aligned;
};

template <class T> static __device__ __forceinline__ wide<T> load(const T *row, const part &part) {
  return load_part(row + part.i, part.width - part.i, part.aligned);
}

template <class T> static __device__ __forceinline__ void store(T *row, const part &part, const wide<T> &value) {
  if (part.aligned) return store_wide(row + part.i, value);
  for (int k = 0; k < wide<T>::COUNT; k++)
    if (part.i + k < part.width) row[part.i + k] = value.at[k];
}

template <class T> static __device__ __forceinline__ wide<T> add(const wide<T> &a, const wide<T> &b) {
  return apply<T>([](T left, T right) { return left + right; }, a, b);
}

/* Returns left + right for each point. */
template <class T>
static __device__ __forceinline__ wide<T> add_sides(const T *row, const part &part, const wide<T> &mid) {
  constexpr int COUNT = wide<T>::COUNT;
  const T left = part.i > 0 ? row[part.i - 1] : T(0);
  const T right = part.i + COUNT < part.width ? row[part.i + COUNT] : T(0);
  wide<T> sums;
  for (int k = 0; k < COUNT; k++) sums.at[k] = (k > 0 ? mid.at[k - 1] : left) + (k < COUNT - 1 ? mid.at[k + 1] : right);
  return sums;
}

/* Returns the new points. Points in the first and last columns are unchanged. */
template <class T>
static __device__ __forceinline__ wide<T> step(const part &part, T center, T near, const wide<T> &mid,
                                               const wide<T> &sums) {
  wide<T> result = apply<T>([=](T m, T sum) { return fused(near, sum, center * m); }, mid, sums);
  if (part.i == 0) result.at[0] = mid.at[0];
  for (int k = 0; k < wide<T>::COUNT; k++)
    if (part.i + k == part.width - 1) result.at[k] = mid.at[k];
  return result;
}

/* Each kernel loads the next row or plane before it computes the current one. */
#define STENCIL(SUFFIX, T)                                                                                           \
  RILL_KERNEL(stencil5_##SUFFIX, int64_t width, int64_t height, T center, T near, const T *x, T *y) {                \
    const box box = find_box(width, height, 1, blockDim.x * wide<T>::COUNT, blockDim.y * ROWS, 1);                   \
    const ptrdiff_t i = box.left + threadIdx.x * wide<T>::COUNT, first = box.top + threadIdx.y * ROWS;               \
    const part part = { i, width, width % wide<T>::COUNT == 0 && are_aligned(x, y) };                                \
    if (i >= width || first >= height) return;                                                                       \
    wide<T> up = load(x + (first > 0 ? first - 1 : first) * width, part), mid = load(x + first * width, part);       \
    for (ptrdiff_t j = first; j < first + ROWS && j < height; j++) {                                                 \
      const T *const row = x + j * width;                                                                            \
      const bool border = j == 0 || j == height - 1;                                                                 \
      const wide<T> down = load(j + 1 < height ? row + width : row, part);                                           \
      const wide<T> sums = add(add_sides(row, part, mid), add(up, down));                                            \
      store(y + j * width, part, border ? mid : step(part, center, near, mid, sums));                                \
      up = mid;                                                                                                      \
      mid = down;                                                                                                    \
    }                                                                                                                \
  }                                                                                                                  \
  RILL_KERNEL(stencil7_##SUFFIX, int64_t width, int64_t height, int64_t depth, T center, T near, const T *x, T *y) { \
    const box box = find_box(width, height, depth, blockDim.x * wide<T>::COUNT, blockDim.y, PLANES);                 \
    const ptrdiff_t i = box.left + threadIdx.x * wide<T>::COUNT, j = box.top + threadIdx.y, plane = width * height;  \
    const part part = { i, width, width % wide<T>::COUNT == 0 && are_aligned(x, y) };                                \
    if (i >= width || j >= height) return;                                                                           \
    const T *row = x + box.front * plane + j * width;                                                                \
    wide<T> below = load(box.front > 0 ? row - plane : row, part), mid = load(row, part);                            \
    for (ptrdiff_t k = box.front; k < box.back; k++, row += plane) {                                                 \
      const bool border = j == 0 || j == height - 1 || k == 0 || k == depth - 1;                                     \
      const wide<T> above = load(k + 1 < depth ? row + plane : row, part);                                           \
      const wide<T> rows = border ? mid : add(load(row - width, part), load(row + width, part));                     \
      const wide<T> sums = add(add(add_sides(row, part, mid), rows), add(below, above));                             \
      store(y + (row - x), part, border ? mid : step(part, center, near, mid, sums));                                \
      below = mid;                                                                                                   \
      mid = above;                                                                                                   \
    }                                                                                                                \
  }

#endif

STENCIL(f32, float)
STENCIL(f64, double)
