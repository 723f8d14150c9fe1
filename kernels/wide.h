/* wide.h: what the kernels of the set share: 16 bytes at a time, tiles, and sums of a tile.
 *
 * Included by kernel sources alone, after rill/device/kernel.h.  No function here uses threadIdx and the like, or
 * has a barrier: so the host compiler can make loops of the kernels that call it.
 */
#ifndef RILL_KERNELS_WIDE_H
#define RILL_KERNELS_WIDE_H

/* This thread's number in a grid of one dimension.  Signed and as wide as a pointer: the host compiler then sees that
 * neighbours are neighbours in memory. */
#define GLOBAL_INDEX (static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x)

/** 16 bytes of T, which a GPU loads and stores with one instruction. */
template <class T> struct alignas(16) wide {
  static constexpr int COUNT = 16 / sizeof(T);
  T at[COUNT];
};

/** Loads and stores at 16-byte addresses.  A copy of the whole is what compilers make one instruction of. */
template <class T> static __device__ __forceinline__ wide<T> load_wide(const T *p) {
  return *reinterpret_cast<const wide<T> *>(p);
}
template <class T> static __device__ __forceinline__ void store_wide(T *p, const wide<T> &value) {
#ifdef __clang__ /* which makes several stores of values that it has in registers */
  typedef T vector __attribute__((vector_size(16)));
  vector all;
  __builtin_memcpy(&all, &value, sizeof all);
  *reinterpret_cast<vector *>(p) = all;
#else
  *reinterpret_cast<wide<T> *>(p) = value;
#endif
}

/** Whether all of them can be read and written 16 bytes at a time. */
template <class... P> static __device__ __forceinline__ bool are_aligned(const P *...p) {
  return ((reinterpret_cast<uintptr_t>(p) | ...) & 15) == 0;
}

/** The first `count` of what 16 bytes hold, or all; 0 for the others. */
template <class T> static __device__ __forceinline__ wide<T> load_part(const T *p, ptrdiff_t count, bool aligned) {
  if (aligned && count >= wide<T>::COUNT) return load_wide(p);
  wide<T> part;
  for (int k = 0; k < wide<T>::COUNT; k++) part.at[k] = k < count ? p[k] : T(0);
  return part;
}

/** f of the elements one by one. */
template <class T, class F, class... In> static __device__ __forceinline__ wide<T> apply(F f, const wide<In> &...in) {
  wide<T> result;
  for (int k = 0; k < wide<T>::COUNT; k++) result.at[k] = f(in.at[k]...);
  return result;
}

/** out[i] = f(in[i] ...) for the 16 bytes of elements that belong to `thread`, as far as they are below n. */
template <class T, class F, class... In>
static __device__ __forceinline__ void map_wide(ptrdiff_t thread, ptrdiff_t n, F f, T *out, const In *...in) {
  const ptrdiff_t first = thread * wide<T>::COUNT;
  if (first + wide<T>::COUNT <= n && are_aligned(out, in...)) {
    store_wide(out + first, apply<T>(f, load_wide(in + first)...));
    return;
  }
  for (int k = 0; k < wide<T>::COUNT; k++)
    if (first + k < n) out[first + k] = f(in[first + k]...);
}

/* ---- tiles: what a block of 256 threads reads at once, 64 bytes a thread ---- */

constexpr int TILE_THREADS = 256, TILE_ROUNDS = 4;
template <class T> constexpr int TILE = TILE_THREADS *TILE_ROUNDS *wide<T>::COUNT; /* elements */

/** Folds the elements below n of the tile that begins at `base` and that are this thread's: each result is
 *  step(result so far, in[i] ...), from `start`.
 *
 *  The order is fixed: of each 16 bytes every element goes into a result of its own, over the rounds, and then
 *  `join` makes one of these, from the first to the last.  So even a sum is the same everywhere to the last bit. */
template <class T, class Step, class Join, class... In>
static __device__ __forceinline__ T fold_tile(ptrdiff_t base, int thread, ptrdiff_t n, T start, Step step, Join join,
                                              const In *...in) {
  constexpr int COUNT = wide<T>::COUNT;
  wide<T> results;
  for (int k = 0; k < COUNT; k++) results.at[k] = start;
  const ptrdiff_t first = base + thread * COUNT;
  constexpr ptrdiff_t ROUND = TILE_THREADS * COUNT;
  if (base + TILE<T> <= n && are_aligned(in...)) {
    for (int r = 0; r < TILE_ROUNDS; r++) results = apply<T>(step, results, load_wide(in + first + r * ROUND)...);
  } else {
    for (int r = 0; r < TILE_ROUNDS; r++)
      for (int k = 0; k < COUNT; k++) {
        const ptrdiff_t i = first + r * ROUND + k;
        if (i < n) results.at[k] = step(results.at[k], in[i]...);
      }
  }
  T result = results.at[0];
  for (int k = 1; k < COUNT; k++) result = join(result, results.at[k]);
  return result;
}

#endif
