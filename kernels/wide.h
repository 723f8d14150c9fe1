/* wide.h: code that the kernels of this folder share: 16-byte vectors, tiles, and the reduction of a tile.
 *
 * Include it only in kernel sources, after rill/device/kernel.h. No function here uses threadIdx or similar variables,
 * and none contains a barrier, so the host compiler can turn the kernels that call them into loops.
 */
#ifndef RILL_KERNELS_WIDE_H
#define RILL_KERNELS_WIDE_H

/* The index of this thread in a one-dimensional grid. It is signed and as wide as a pointer, so that the host compiler
 * can see that neighbouring threads access adjacent elements. */
#define GLOBAL_INDEX (static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x)

/** Holds 16 bytes of T, which a GPU loads and stores with one instruction. */
template <class T> struct alignas(16) wide {
  static constexpr int COUNT = 16 / sizeof(T);
  T at[COUNT];
};

/** Load and store a vector at an address that is a multiple of 16. The vector is copied as one object, which compilers
 *  turn into one instruction. */
template <class T> static __device__ __forceinline__ wide<T> load_wide(const T *p) {
  return *reinterpret_cast<const wide<T> *>(p);
}
template <class T> static __device__ __forceinline__ void store_wide(T *p, const wide<T> &value) {
#ifdef __clang__ /* clang would emit several stores for values that are in registers */
  typedef T vector __attribute__((vector_size(16)));
  vector all;
  __builtin_memcpy(&all, &value, sizeof all);
  *reinterpret_cast<vector *>(p) = all;
#else
  *reinterpret_cast<wide<T> *>(p) = value;
#endif
}

/** Returns whether all pointers are multiples of 16, so that vectors can be loaded and stored there. */
template <class... P> static __device__ __forceinline__ bool are_aligned(const P *...p) {
  return ((reinterpret_cast<uintptr_t>(p) | ...) & 15) == 0;
}

/** Loads the first `count` elements of a vector, or all if `count` is larger; the others are 0. */
template <class T> static __device__ __forceinline__ wide<T> load_part(const T *p, ptrdiff_t count, bool aligned) {
  if (aligned && count >= wide<T>::COUNT) return load_wide(p);
  wide<T> part;
  for (int k = 0; k < wide<T>::COUNT; k++) part.at[k] = k < count ? p[k] : T(0);
  return part;
}

/** Applies f to each element. */
template <class T, class F, class... In> static __device__ __forceinline__ wide<T> apply(F f, const wide<In> &...in) {
  wide<T> result;
  for (int k = 0; k < wide<T>::COUNT; k++) result.at[k] = f(in.at[k]...);
  return result;
}

/** Computes out[i] = f(in[i] ...) for the 16 bytes of elements that belong to `thread`, the index in the grid; skips
 *  indices from n on.  An array of in may be out, but no array may overlap it otherwise. */
#if RILL_ON_CPU
/* Iterations may run in any order: an element of out is also read by its own iteration only. */
template <class T, class F, class... In>
static inline void map_elements(ptrdiff_t count, F f, T *out, const In *...in) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (ptrdiff_t i = 0; i < count; i++) out[i] = f(in[i]...);
}

/* The first thread of a block does the work of all threads, whose elements are adjacent in memory. */
template <class T, class F, class... In>
static inline void map_wide(ptrdiff_t thread, ptrdiff_t n, F f, T *out, const In *...in) {
  if (threadIdx.x != 0) return;
  const ptrdiff_t first = thread * wide<T>::COUNT, most = static_cast<ptrdiff_t>(blockDim.x) * wide<T>::COUNT;
  map_elements(n - first < most ? n - first : most, f, out + first, (in + first)...);
}
#else
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
#endif

/* ---- tiles: a block of 256 threads reads 64 bytes per thread ---- */

constexpr int TILE_THREADS = 256, TILE_ROUNDS = 4;
template <class T> constexpr int TILE = TILE_THREADS *TILE_ROUNDS *wide<T>::COUNT; /* elements */

/** Folds this thread's elements of the tile that begins at index `base`: result = step(result, in[i] ...), beginning
 *  with `start`. Indices from n on are skipped.
 *
 *  The order is fixed: each element position of a 16-byte vector has its own result, which accumulates over the
 *  rounds. `join` then combines these results from first to last. Even a sum is therefore bit-identical on every
 *  device. */
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
