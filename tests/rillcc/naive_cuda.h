/* naive_cuda.h: executes kernels in CUDA's names the plainest way: each thread of a block has a stack of its own.
 *
 *     #include "naive_cuda.h"
 *     #include "kernels.cu"
 *     NAIVE_KERNEL(k0)    // int naive_k0(grid, block, args, order)
 *
 * It shares nothing with rill: not a header, not a function, not an algorithm. A barrier counts the threads that have
 * not returned. A function with a mask waits until all lanes of the mask that have not returned have called the same
 * function with the same mask. A shuffle from a lane that does not take part returns the caller's own value. Blocks run
 * one after another, so shared memory is static.
 */
#ifndef NAIVE_CUDA_H
#define NAIVE_CUDA_H

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include <limits>
#include <utility>

#define __global__ static
#define __device__
#define __noinline__
#define __constant__
#define __shared__ static
#define RILL_DYNAMIC_SHARED(TYPE, NAME) TYPE *const NAME = reinterpret_cast<TYPE *>(naive.dynamic_shared)
#define TO(TYPE, X) naive_to<TYPE>(X)

struct uint3 {
  unsigned x, y, z;
};
typedef uint3 dim3;

/* ---- threads ---- */

enum { NAIVE_WARP = 32, NAIVE_THREADS = 1024, NAIVE_STACK = 64 * 1024 };
enum naive_state { NAIVE_READY, NAIVE_AT_BARRIER, NAIVE_IN_WARP, NAIVE_RETURNED };
enum naive_result { NAIVE_DONE, NAIVE_DEADLOCK, NAIVE_MISUSE };

/* What threads that synchronize gave: one value each, and which of them took part. */
struct naive_given {
  uint64_t values[NAIVE_WARP];
  bool there[NAIVE_WARP];
};

struct naive_thread {
  ucontext_t start;
  jmp_buf here;
  bool started;
  alignas(16) unsigned char stack[NAIVE_STACK];
  uint3 index;
  naive_state state;
  int function; /* that it waits in: one number for each function of the dialect */
  unsigned mask;
  uint64_t value;
  naive_given given; /* by the lanes of the last function of its warp */
};

static struct {
  naive_thread threads[NAIVE_THREADS];
  unsigned count, current;
  jmp_buf scheduler;
  dim3 block, grid;
  uint3 block_index;
  void (*body)(void **);
  void **args;
  uint64_t barrier_values[NAIVE_THREADS];
  bool barrier_there[NAIVE_THREADS], misused;
  alignas(64) unsigned char dynamic_shared[64 * 1024];
} naive;

#define threadIdx (naive.threads[naive.current].index)
#define blockIdx (naive.block_index)
#define blockDim (naive.block)
#define gridDim (naive.grid)

static inline unsigned naive_lane() { return naive.current % NAIVE_WARP; }

/* Returns to the scheduler until it lets this thread run again. */
static inline void naive_pause(naive_state state) {
  naive_thread &self = naive.threads[naive.current];
  self.state = state;
  if (_setjmp(self.here) == 0) _longjmp(naive.scheduler, 1);
}

/* A stack serves one thread of a block after another. */
static void naive_main() {
  for (;;) {
    naive.body(naive.args);
    naive_pause(NAIVE_RETURNED);
  }
}

static inline void naive_resume(unsigned t) {
  naive_thread &thread = naive.threads[t];
  naive.current = t;
  if (_setjmp(naive.scheduler) != 0) return;
  if (thread.started) _longjmp(thread.here, 1);
  thread.started = true;
  getcontext(&thread.start);
  thread.start.uc_stack.ss_sp = thread.stack;
  thread.start.uc_stack.ss_size = NAIVE_STACK;
  makecontext(&thread.start, naive_main, 0);
  setcontext(&thread.start);
}

/* Waits for all threads of the block that have not returned. */
static inline void naive_barrier(int function, uint64_t value) {
  naive_thread &self = naive.threads[naive.current];
  self.function = function;
  self.value = value;
  naive_pause(NAIVE_AT_BARRIER);
}

/* Waits for the lanes of a mask; returns what they gave. */
static inline const naive_given &naive_exchange(int function, unsigned mask, uint64_t value) {
  naive_thread &self = naive.threads[naive.current];
  if ((mask >> naive_lane() & 1) == 0) naive.misused = true;
  self.function = function;
  self.mask = mask;
  self.value = value;
  naive_pause(NAIVE_IN_WARP);
  return self.given;
}

/* Lets the lanes go on that have all arrived; returns whether there are any. */
static inline bool naive_release_warp(unsigned first) {
  bool released = false;
  for (unsigned l = 0; l < NAIVE_WARP && first + l < naive.count; l++) {
    const naive_thread &caller = naive.threads[first + l];
    if (caller.state != NAIVE_IN_WARP) continue;
    naive_given given = {};
    bool complete = true;
    for (unsigned k = 0; k < NAIVE_WARP && first + k < naive.count; k++) {
      const naive_thread &other = naive.threads[first + k];
      if ((caller.mask >> k & 1) == 0 || other.state == NAIVE_RETURNED) continue;
      given.there[k] = other.state == NAIVE_IN_WARP && other.mask == caller.mask && other.function == caller.function;
      given.values[k] = other.value;
      complete = complete && given.there[k];
    }
    if (!complete) continue;
    released = true;
    for (unsigned k = 0; k < NAIVE_WARP; k++) {
      if (!given.there[k]) continue;
      naive.threads[first + k].given = given;
      naive.threads[first + k].state = NAIVE_READY;
    }
  }
  return released;
}

/* Lets all threads continue if those that have not returned are at one barrier; returns whether they are. */
static inline bool naive_release_block() {
  int function = -1;
  for (unsigned t = 0; t < NAIVE_THREADS; t++) {
    const naive_thread &thread = naive.threads[t];
    naive.barrier_there[t] = t < naive.count && thread.state != NAIVE_RETURNED;
    naive.barrier_values[t] = thread.value;
    if (!naive.barrier_there[t]) continue;
    if (thread.state != NAIVE_AT_BARRIER || (function >= 0 && thread.function != function)) return false;
    function = thread.function;
  }
  for (unsigned t = 0; t < naive.count; t++) {
    if (naive.barrier_there[t]) naive.threads[t].state = NAIVE_READY;
  }
  return function >= 0;
}

/* Runs a block. Order 0: threads in order, each as far as it can; order 1: the last one first, and each warp as far as
 * it can. Dynamic shared memory that no thread has written differs between the two. */
static naive_result naive_run_block(int order) {
  memset(naive.dynamic_shared, order == 0 ? 0xa5 : 0x5a, sizeof naive.dynamic_shared);
  for (unsigned t = 0; t < naive.count; t++) {
    naive_thread &thread = naive.threads[t];
    thread.index = { t % naive.block.x, t / naive.block.x % naive.block.y, t / naive.block.x / naive.block.y };
    thread.state = NAIVE_READY;
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (unsigned i = 0; i < naive.count; i++) {
      const unsigned t = order == 0 ? i : naive.count - 1 - i, warp = t / NAIVE_WARP * NAIVE_WARP;
      if (naive.threads[t].state == NAIVE_READY) {
        naive_resume(t);
        moved = true;
      }
      if (order == 1 && t == warp && naive_release_warp(warp)) i -= naive.count - warp < 32 ? naive.count - warp : 32;
    }
    for (unsigned warp = 0; warp < naive.count; warp += NAIVE_WARP) moved |= naive_release_warp(warp);
    if (!moved) moved = naive_release_block();
  }
  bool returned = true;
  for (unsigned t = 0; t < naive.count; t++) returned = returned && naive.threads[t].state == NAIVE_RETURNED;
  for (unsigned t = 0; t < naive.count && !returned; t++) naive.threads[t].started = false;
  return !returned ? NAIVE_DEADLOCK : naive.misused ? NAIVE_MISUSE : NAIVE_DONE;
}

/* ---- functions of a block ---- */

enum { NAIVE_SYNC, NAIVE_COUNT, NAIVE_AND, NAIVE_OR, NAIVE_REDUCE };

/* How many threads that synchronize say `p`. */
static inline int naive_count_barrier(int function, bool p) {
  naive_barrier(function, p);
  int count = 0;
  for (unsigned t = 0; t < naive.count; t++) count += naive.barrier_there[t] && naive.barrier_values[t] != 0;
  return count;
}
static inline void __syncthreads() { naive_barrier(NAIVE_SYNC, 0); }
static inline int __syncthreads_count(int p) { return naive_count_barrier(NAIVE_COUNT, p != 0); }
static inline int __syncthreads_and(int p) { return naive_count_barrier(NAIVE_AND, p == 0) == 0; }
static inline int __syncthreads_or(int p) { return naive_count_barrier(NAIVE_OR, p != 0) > 0; }

/* ---- functions of a warp ---- */

enum { NAIVE_WARP_SYNC, NAIVE_ACTIVE, NAIVE_VOTE, NAIVE_SHUFFLE, NAIVE_MATCH, NAIVE_FOLD };

template <class T> static inline uint64_t naive_bits(T v) {
  static_assert(sizeof v <= 8, "at most 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &v, sizeof v);
  return bits;
}
template <class T> static inline T naive_value(uint64_t bits) {
  T v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static inline void __syncwarp(unsigned mask = ~0u) { naive_exchange(NAIVE_WARP_SYNC, mask, 0); }
static inline unsigned naive_lanes(const naive_given &given, uint64_t lowest, uint64_t highest) {
  unsigned lanes = 0;
  for (unsigned l = 0; l < NAIVE_WARP; l++) {
    if (given.there[l] && given.values[l] >= lowest && given.values[l] <= highest) lanes |= 1u << l;
  }
  return lanes;
}
static inline unsigned __activemask() { return naive_lanes(naive_exchange(NAIVE_ACTIVE, ~0u, 1), 1, 1); }
static inline unsigned __ballot_sync(unsigned mask, int p) {
  return naive_lanes(naive_exchange(NAIVE_VOTE, mask, p != 0), 1, 1);
}
static inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
static inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }

/* The v of a lane; the caller's own if `from` is in another group than the caller, or takes no part. */
template <class T> static inline T naive_shuffle(unsigned mask, T v, int from, int lowest, int highest) {
  const naive_given &given = naive_exchange(NAIVE_SHUFFLE, mask, naive_bits(v));
  return from >= lowest && from <= highest && given.there[from] ? naive_value<T>(given.values[from]) : v;
}
#define NAIVE_GROUP(WIDTH)                 \
  const int lane = (int)naive_lane();      \
  const int lowest = lane / (WIDTH)*WIDTH; \
  const int highest = lowest + (WIDTH)-1
template <class T> static inline T __shfl_sync(unsigned mask, T v, int lane_of_group, int width = 32) {
  NAIVE_GROUP(width);
  return naive_shuffle(mask, v, lowest + (int)((unsigned)lane_of_group % (unsigned)width), lowest, highest);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  NAIVE_GROUP(width);
  return naive_shuffle(mask, v, lane - (int)by, lowest, highest);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  NAIVE_GROUP(width);
  return naive_shuffle(mask, v, lane + (int)by, lowest, highest);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32) {
  const int lane = (int)naive_lane(), highest = lane / width * width + width - 1;
  return naive_shuffle(mask, v, lane ^ with, 0, highest); /* it reaches into groups below */
}

template <class T> static inline unsigned __match_any_sync(unsigned mask, T v) {
  return naive_lanes(naive_exchange(NAIVE_MATCH, mask, naive_bits(v)), naive_bits(v), naive_bits(v));
}
template <class T> static inline unsigned __match_all_sync(unsigned mask, T v, int *all) {
  const naive_given &given = naive_exchange(NAIVE_MATCH, mask, naive_bits(v));
  const unsigned same = naive_lanes(given, naive_bits(v), naive_bits(v));
  *all = same == naive_lanes(given, 0, UINT64_MAX);
  return *all ? same : 0;
}

/* The balanced tree over the threads' numbers, without those that have returned; returns whether there are any. */
template <class T, class Fold>
static bool naive_tree(const uint64_t *values, const bool *there, unsigned from, unsigned size, T *result, Fold fold) {
  if (size == 1) {
    if (there[from]) *result = naive_value<T>(values[from]);
    return there[from];
  }
  T left, right;
  const bool has_left = naive_tree(values, there, from, size / 2, &left, fold);
  const bool has_right = naive_tree(values, there, from + size / 2, size / 2, &right, fold);
  if (has_left) *result = has_right ? fold(left, right) : left;
  else if (has_right) *result = right;
  return has_left || has_right;
}
template <class T, class Fold> static inline T naive_warp_tree(unsigned mask, T v, Fold fold) {
  const naive_given &given = naive_exchange(NAIVE_FOLD, mask, naive_bits(v));
  naive_tree(given.values, given.there, 0, NAIVE_WARP, &v, fold);
  return v;
}
template <class T, class Fold> static inline T naive_block_tree(T v, Fold fold) {
  naive_barrier(NAIVE_REDUCE, naive_bits(v));
  naive_tree(naive.barrier_values, naive.barrier_there, 0, NAIVE_THREADS, &v, fold);
  return v;
}
#define NAIVE_REDUCE_SYNC(NAME, TYPE, RESULT)                                       \
  static inline TYPE NAME(unsigned mask, TYPE v) {                                  \
    return naive_warp_tree(mask, v, [](TYPE a, TYPE b) -> TYPE { return RESULT; }); \
  }
NAIVE_REDUCE_SYNC(__reduce_add_sync, unsigned, a + b)
NAIVE_REDUCE_SYNC(__reduce_min_sync, unsigned, a < b ? a : b)
NAIVE_REDUCE_SYNC(__reduce_max_sync, unsigned, a > b ? a : b)
NAIVE_REDUCE_SYNC(__reduce_and_sync, unsigned, a &b)
NAIVE_REDUCE_SYNC(__reduce_or_sync, unsigned, a | b)
NAIVE_REDUCE_SYNC(__reduce_xor_sync, unsigned, a ^ b)
NAIVE_REDUCE_SYNC(__reduce_add_sync, int, (int)((unsigned)a + (unsigned)b))
NAIVE_REDUCE_SYNC(__reduce_min_sync, int, a < b ? a : b)
NAIVE_REDUCE_SYNC(__reduce_max_sync, int, a > b ? a : b)
#define NAIVE_TREES(NAME, RESULT)                                         \
  template <class T> static inline T rill_warp_##NAME(T v) {              \
    return naive_warp_tree(~0u, v, [](T a, T b) -> T { return RESULT; }); \
  }                                                                       \
  template <class T> static inline T rill_block_##NAME(T v) {             \
    return naive_block_tree(v, [](T a, T b) -> T { return RESULT; });     \
  }
NAIVE_TREES(sum, a + b)
NAIVE_TREES(min, a < b ? a : b)
NAIVE_TREES(max, a > b ? a : b)

/* ---- atomics, numbers ---- */

#define NAIVE_ATOMIC(NAME, RESULT)                                             \
  template <class T> static inline T NAME(T *p, std::enable_if_t<true, T> v) { \
    const T old = *p;                                                          \
    *p = (T)(RESULT);                                                          \
    return old;                                                                \
  }
NAIVE_ATOMIC(atomicAdd, old + v)
NAIVE_ATOMIC(atomicMax, old > v ? old : v)
NAIVE_ATOMIC(atomicOr, old | v)
NAIVE_ATOMIC(atomicXor, old ^ v)
static inline unsigned atomicCAS(unsigned *p, unsigned expected, unsigned v) {
  return *p == expected ? std::exchange(*p, v) : *p;
}

/* Towards zero, the nearest number of the type if the value is outside, 0 for a NaN; to fewer bits than 32 by way
 * of 32. */
template <class T, class F> static inline T naive_to(F x) {
  typedef std::conditional_t<sizeof(T) >= 4, T, std::conditional_t<std::is_signed_v<T>, int, unsigned>> wide;
  typedef std::numeric_limits<wide> limits;
  const double integer = isnan(x) ? 0 : trunc((double)x);
  if (integer >= (double)limits::max()) return (T)limits::max();
  return (T)(integer <= (double)limits::min() ? limits::min() : (wide)integer);
}

template <class T> static inline T min(T a, T b) { return a < b ? a : b; }
template <class T> static inline T max(T a, T b) { return a > b ? a : b; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
  return y;
}
static inline unsigned __float_as_uint(float x) { return (unsigned)naive_bits(x); }
static inline float __uint_as_float(unsigned x) {
  float v;
  memcpy(&v, &x, sizeof(v));
  return v;
}
static inline long long __double_as_longlong(double x) { return (long long)naive_bits(x); }

/* ---- the kernels of a source ---- */

template <auto Kernel> struct naive_kernel;
template <class... P, void (*Kernel)(P...)> struct naive_kernel<Kernel> {
  template <size_t... I> static void call(void **args, std::index_sequence<I...>) {
    Kernel(*static_cast<P *>(args[I])...);
  }
  static void run(void **args) { call(args, std::index_sequence_for<P...>{}); }
};

static inline int naive_run_grid(void (*run)(void **), const unsigned *grid, const unsigned *block, void **args,
                                 int order) {
  naive.body = run;
  naive.args = args;
  naive.misused = false;
  naive.grid = { grid[0], grid[1], grid[2] };
  naive.block = { block[0], block[1], block[2] };
  naive.count = block[0] * block[1] * block[2];
  const unsigned blocks = grid[0] * grid[1] * grid[2];
  for (unsigned i = 0; i < blocks; i++) {
    const unsigned b = order == 0 ? i : blocks - 1 - i;
    naive.block_index = { b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1] };
    const naive_result result = naive_run_block(order);
    if (result != NAIVE_DONE) return result;
  }
  return NAIVE_DONE;
}

#define NAIVE_KERNEL(NAME)                                                                           \
  extern "C" int naive_##NAME(const unsigned *grid, const unsigned *block, void **args, int order) { \
    return naive_run_grid(naive_kernel<&NAME>::run, grid, block, args, order);                       \
  }

#endif
