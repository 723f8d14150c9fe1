/* scan.kernel.cu: prefix sums, in one pass over memory.
 *
 *   scan_i32 scan_f32 scan_f64   y[i] = x[0] + ... + x[i], without x[i] if `exclusive` is not 0
 *
 * Integers are summed modulo 2^32.
 *
 * Tiles are those of reduce.kernel.cu. On a GPU, each block processes one tile: it publishes the sum of its tile, waits
 * for the sum of all tiles before it, and writes its results. Blocks take their tiles in order from a counter, so a
 * block waits only for blocks that started before it. This cannot deadlock, however many blocks run at the same time
 * and in whatever order they start: the first block waits for no other, and a block that has started continues to run.
 * A GPU keeps a block resident until it ends, and on the CPU a waiting thread lets others run.
 *
 * Launch: one block of 256 threads for each tile (rill_kernels_tiles). `state` has rill_kernels_scan_state bytes, which
 * must all be 0 before each launch. It may be NULL if there is only one tile.
 * Limits: n must be at least 1. Arrays may have any alignment; multiples of 16 bytes are fastest. y may be x, but must
 * not overlap it otherwise.
 * Rounding: the order of the additions depends on n alone, so the result is bit-identical on every device. A group is
 * 32 tiles, and a row is 32 groups. The sum before an element is
 *
 *   the sum of all earlier rows + earlier groups of its row + earlier tiles of its group + earlier threads of its tile
 *   + earlier elements of its thread,
 *
 * added from left to right. The 16 elements (f64: 8) of a thread, the tiles of a group, the groups of a row, and the
 * rows are each summed from first to last. The threads of a tile are summed in 8 steps: in each, a thread adds the sum
 * of the thread that is 1, 2, 4 ... 128 before it. Prefix sums of nonnegative numbers may decrease by a rounding error
 * from one thread to the next.
 */
#include <rill/device/kernel.h>

#include "wide.h"

enum { FAN = 32 }; /* tiles per group, and groups per row */

/* ---- words that blocks exchange: each is 0 until it holds 32 bits of a value and a flag ---- */

template <class T> constexpr int WORDS = sizeof(T) / 4;

template <class T> static __device__ __forceinline__ void publish(uint64_t *words, ptrdiff_t place, T value) {
  uint32_t bits[WORDS<T>];
  memcpy(bits, &value, sizeof value);
  for (int i = 0; i < WORDS<T>; i++) atomicExch(&words[place * WORDS<T> + i], uint64_t(1) << 32 | bits[i]);
}

template <class T> static __device__ __forceinline__ T await(uint64_t *words, ptrdiff_t place) {
  uint32_t bits[WORDS<T>];
  for (int i = 0; i < WORDS<T>; i++) {
    uint64_t word;
    while ((word = atomicOr(&words[place * WORDS<T> + i], uint64_t(0))) == 0) rill_pause();
    bits[i] = static_cast<uint32_t>(word);
  }
  T value;
  memcpy(&value, bits, sizeof value);
  return value;
}

/* ---- a tile ---- */

#if RILL_ON_CPU

/* The first thread of a block does the work of all threads, in the same order as on a GPU. Of TILES_AT_ONCE blocks, the
 * first processes the tiles of all. It publishes the sums of these tiles before it waits for the sums of earlier tiles,
 * so it waits less often, and the tiles are still in the cache when they are read again. */
enum { TILES_AT_ONCE = 4 };

template <class SUM> static inline void publish_sum(unsigned tile, unsigned blocks, uint64_t *state, SUM sum) {
  const ptrdiff_t groups = (blocks - 1) / FAN + 1;
  publish(state + 16 + (2 * groups + 1) * WORDS<SUM>, tile, sum);
}

/* Returns the sum of all tiles before `tile`, whose own sum, `sum`, has been published. The last tile of a group
 * publishes the start of the next group. */
template <class SUM> static inline SUM find_start(unsigned tile, unsigned blocks, uint64_t *state, SUM sum) {
  const ptrdiff_t group = tile / FAN, row = group / FAN * FAN, groups = (blocks - 1) / FAN + 1;
  const bool last = tile % FAN == FAN - 1;
  const ptrdiff_t known = last ? row : group;
  uint64_t *const starts = state + 16, *const of_groups = starts + (groups + 1) * WORDS<SUM>;
  uint64_t *const of_tiles = of_groups + groups * WORDS<SUM>;
  SUM tiles = 0, of_row = 0;
  for (ptrdiff_t i = group * FAN; i < tile; i++) tiles += await<SUM>(of_tiles, i);
  if (last) publish(of_groups, group, tiles + sum);
  for (ptrdiff_t i = row; i < group && last; i++) of_row += await<SUM>(of_groups, i);
  const SUM start = known == 0 ? SUM(0) : await<SUM>(starts, known);
  if (last) publish(starts, group + 1, start + (of_row + (tiles + sum)));
  return start + of_row + tiles;
}

/* The sums of the threads of a tile, where each sum includes the sums of the threads before it, computed in 8 steps as
 * on a GPU. */
template <class SUM> struct tile_sums {
  SUM at[2][TILE_THREADS];
  int from; /* index of the array that has the result */
};
template <class SUM> static inline void add_up(tile_sums<SUM> &sums) {
  int from = 0;
  for (int step = 1; step < TILE_THREADS; step *= 2) {
    SUM *const to = sums.at[1 - from];
    for (int thread = 0; thread < step; thread++) to[thread] = sums.at[from][thread];
    for (int thread = step; thread < TILE_THREADS; thread++)
      to[thread] = sums.at[from][thread - step] + sums.at[from][thread];
    from = 1 - from;
  }
  sums.from = from;
}

template <class T> constexpr int EACH = TILE_ROUNDS *wide<T>::COUNT; /* elements of a thread */

/* Sum and scan a tile that may be shorter than the others, one element at a time. `start` is the sum of all tiles
 * before it. */
template <class T, class SUM> static inline void sum_part(int count, const T *x, tile_sums<SUM> &sums) {
  for (int thread = 0; thread < TILE_THREADS; thread++) {
    SUM sum = 0;
    const int first = thread * EACH<T>;
    for (int k = first; k < first + EACH<T>; k++) sum += k < count ? static_cast<SUM>(x[k]) : SUM(0);
    sums.at[0][thread] = sum;
  }
}
template <class T, class SUM>
static inline void scan_part(int count, bool exclusive, const SUM *of_threads, SUM start, const T *x, T *y) {
  for (int first = 0; first < count; first += EACH<T>) {
    SUM running = start + (first == 0 ? SUM(0) : of_threads[first / EACH<T> - 1]);
    const int end = first + EACH<T> < count ? first + EACH<T> : count;
    for (int k = first; k < end; k++) {
      const SUM before = running;
      running += static_cast<SUM>(x[k]);
      y[k] = static_cast<T>(exclusive ? before : running);
    }
  }
}

#if defined(__clang__) || __GNUC__ >= 12
/* The vectors of a complete tile; each holds one element of each of several threads. The elements of the threads are
 * loaded as the rows of square matrices. Each square is transposed before the additions, and again before its results
 * are stored. */
template <class SUM> struct lanes {
  static constexpr int COUNT = 32 / sizeof(SUM);
  typedef SUM vector __attribute__((vector_size(32)));
  struct square {
    vector row[COUNT];
  };
};

/* Exchanges the upper right and the lower left quarter of each square of 2 * HALF rows. */
template <int HALF, class V, int... I>
static inline void exchange_quarters(V &upper, V &lower, std::integer_sequence<int, I...>) {
  constexpr int COUNT = sizeof...(I);
  const V first = upper, second = lower;
  upper = __builtin_shufflevector(first, second, ((I & HALF) != 0 ? COUNT + I - HALF : I)...);
  lower = __builtin_shufflevector(first, second, ((I & HALF) != 0 ? COUNT + I : I + HALF)...);
}
template <class SUM, int HALF = lanes<SUM>::COUNT / 2>
static inline void transpose(typename lanes<SUM>::square &square) {
  constexpr int COUNT = lanes<SUM>::COUNT;
  for (int i = 0; i < COUNT; i++)
    if ((i & HALF) == 0)
      exchange_quarters<HALF>(square.row[i], square.row[i + HALF], std::make_integer_sequence<int, COUNT>{});
  if constexpr (HALF > 1) transpose<SUM, HALF / 2>(square);
}

/* Loads the square whose first element is x[0], with an element of each thread in each row. */
template <class T, class SUM> static inline typename lanes<SUM>::square load_square(const T *x) {
  typename lanes<SUM>::square square;
  for (int i = 0; i < lanes<SUM>::COUNT; i++) memcpy(&square.row[i], x + i * EACH<T>, sizeof square.row[i]);
  transpose<SUM>(square);
  return square;
}

/* The results are stored at y later; until then the memory is brought into the cache. */
template <class T, class SUM> static inline void sum_complete(const T *x, const T *y, tile_sums<SUM> &sums) {
  constexpr int COUNT = lanes<SUM>::COUNT, SQUARES = EACH<T> / COUNT;
  for (int thread = 0; thread < TILE_THREADS; thread += COUNT) {
    typename lanes<SUM>::vector sum = {};
    for (int s = 0; s < SQUARES; s++) {
      const typename lanes<SUM>::square square = load_square<T, SUM>(x + thread * EACH<T> + s * COUNT);
      for (int i = 0; i < COUNT; i++) sum += square.row[i];
    }
    for (int i = 0; i < COUNT; i++) __builtin_prefetch(y + (thread + i) * EACH<T>, 1);
    memcpy(&sums.at[0][thread], &sum, sizeof sum);
  }
}
template <class T, class SUM>
static inline void scan_complete(bool exclusive, const SUM *of_threads, SUM start, const T *x, T *y) {
  constexpr int COUNT = lanes<SUM>::COUNT, SQUARES = EACH<T> / COUNT;
  SUM before[TILE_THREADS];
  before[0] = start + SUM(0);
  for (int thread = 1; thread < TILE_THREADS; thread++) before[thread] = start + of_threads[thread - 1];
  for (int thread = 0; thread < TILE_THREADS; thread += COUNT) {
    typename lanes<SUM>::vector running;
    memcpy(&running, &before[thread], sizeof running);
    for (int s = 0; s < SQUARES; s++) {
      const int first = thread * EACH<T> + s * COUNT;
      typename lanes<SUM>::square square = load_square<T, SUM>(x + first);
      for (int i = 0; i < COUNT; i++) {
        const typename lanes<SUM>::vector last = running;
        running += square.row[i];
        square.row[i] = exclusive ? last : running;
      }
      transpose<SUM>(square);
      for (int i = 0; i < COUNT; i++) memcpy(y + first + i * EACH<T>, &square.row[i], sizeof square.row[i]);
    }
  }
}
#else
template <class T, class SUM> static inline void sum_complete(const T *x, const T *, tile_sums<SUM> &sums) {
  sum_part(TILE<T>, x, sums);
}
template <class T, class SUM>
static inline void scan_complete(bool exclusive, const SUM *of_threads, SUM start, const T *x, T *y) {
  scan_part<T, SUM>(TILE<T>, exclusive, of_threads, start, x, y);
}
#endif

template <class T, class SUM>
static inline void scan(unsigned blocks, ptrdiff_t n, bool exclusive, const T *x, uint64_t *state, T *y) {
  if (threadIdx.x != 0 || blockIdx.x % TILES_AT_ONCE != 0) return;
  const unsigned first = state == nullptr ? 0 : static_cast<unsigned>(atomicAdd(state, uint64_t(TILES_AT_ONCE)));
  const int tiles = blocks - first < TILES_AT_ONCE ? static_cast<int>(blocks - first) : TILES_AT_ONCE;
  tile_sums<SUM> sums[TILES_AT_ONCE];
  SUM starts[TILES_AT_ONCE];
  for (int i = 0; i < tiles; i++) {
    const ptrdiff_t base = static_cast<ptrdiff_t>(first + i) * TILE<T>;
    if (n - base >= TILE<T>) sum_complete<T, SUM>(x + base, y + base, sums[i]);
    else sum_part<T, SUM>(static_cast<int>(n - base), x + base, sums[i]);
    add_up(sums[i]);
    if (state != nullptr) publish_sum(first + i, blocks, state, sums[i].at[sums[i].from][TILE_THREADS - 1]);
  }
  for (int i = 0; i < tiles; i++) {
    const SUM sum = sums[i].at[sums[i].from][TILE_THREADS - 1];
    starts[i] = state == nullptr ? SUM(0) : find_start(first + i, blocks, state, sum);
  }
  for (int i = 0; i < tiles; i++) {
    const ptrdiff_t base = static_cast<ptrdiff_t>(first + i) * TILE<T>;
    const SUM *const of_threads = sums[i].at[sums[i].from];
    if (n - base >= TILE<T>) scan_complete<T, SUM>(exclusive, of_threads, starts[i], x + base, y + base);
    else scan_part<T, SUM>(static_cast<int>(n - base), exclusive, of_threads, starts[i], x + base, y + base);
  }
}

#else

/* Shared memory of a block. 16 bytes of padding follow the 64 bytes of each thread, so that threads that each read
 * their own elements do not cause bank conflicts. */
template <class T, class SUM> struct tile_memory {
  wide<T> fours[TILE_THREADS * (TILE_ROUNDS + 1)];
  SUM sums[2][TILE_THREADS], before[FAN], start, group_start;
  unsigned tile;
};
static __device__ __forceinline__ constexpr int padded(int i) { return i + i / TILE_ROUNDS; }

/* A tile in memory. */
template <class T> struct place {
  const T *x;
  T *y;
  ptrdiff_t n;   /* elements from here to the end of the array */
  bool complete; /* the tile has all its elements, and both pointers are aligned */
};

/* Load and store the i-th 16 bytes of a tile. */
template <class T> static __device__ __forceinline__ wide<T> get_four(const place<T> &p, int i) {
  const ptrdiff_t at = i * wide<T>::COUNT;
  return p.complete ? load_wide(p.x + at) : load_part(p.x + at, p.n - at, false);
}
template <class T> static __device__ __forceinline__ void put_four(const place<T> &p, int i, const wide<T> &four) {
  const ptrdiff_t at = i * wide<T>::COUNT;
  if (p.complete) {
    store_wide(p.y + at, four);
    return;
  }
  for (int k = 0; k < wide<T>::COUNT; k++)
    if (at + k < p.n) p.y[at + k] = four.at[k];
}

/* Sets memory.start to the sum of all tiles before the block's tile; `sum` is the sum of that tile itself.
 *
 * The block of the last tile of a group has the sums of all tiles of the group, and publishes their total. It also adds
 * the totals of the earlier groups of the row to the start of the row, and publishes the start of the next group. The
 * other blocks therefore wait for only one start each. */
template <class T, class SUM>
static __device__ __forceinline__ void find_start(int thread, unsigned blocks, uint64_t *state, SUM sum,
                                                  tile_memory<T, SUM> &memory) {
  const ptrdiff_t group = memory.tile / FAN, row = group / FAN * FAN, groups = (blocks - 1) / FAN + 1;
  const int tile_place = static_cast<int>(memory.tile % FAN), group_place = static_cast<int>(group - row);
  const bool last = tile_place == FAN - 1;
  uint64_t *const starts = state + 16, *const of_groups = starts + (groups + 1) * WORDS<SUM>;
  uint64_t *const of_tiles = of_groups + groups * WORDS<SUM>;
  if (thread == 0) publish(of_tiles, memory.tile, sum);
  if (thread < tile_place) memory.before[thread] = await<SUM>(of_tiles, group * FAN + thread);
  __syncthreads();
  SUM tiles = 0, of_row = 0;
  if (thread == 0) {
    for (int i = 0; i < tile_place; i++) tiles += memory.before[i];
    if (last) publish(of_groups, group, tiles + sum);
  }
  __syncthreads();
  if (last && thread < group_place) memory.before[thread] = await<SUM>(of_groups, row + thread);
  if (thread == FAN) {
    const ptrdiff_t known = last ? row : group;
    memory.group_start = known == 0 ? SUM(0) : await<SUM>(starts, known);
  }
  __syncthreads();
  if (thread != 0) return;
  if (last) {
    for (int i = 0; i < group_place; i++) of_row += memory.before[i];
    publish(starts, group + 1, memory.group_start + (of_row + (tiles + sum)));
  }
  memory.start = memory.group_start + of_row + tiles;
}

/* Scans one tile. SUM is T, except for integers, which are summed as unsigned numbers because those wrap around. */
template <class T, class SUM>
static __device__ __forceinline__ void scan(unsigned blocks, ptrdiff_t n, bool exclusive, const T *x, uint64_t *state,
                                            T *y) {
  __shared__ tile_memory<T, SUM> memory;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    memory.tile = state == nullptr ? 0 : static_cast<unsigned>(atomicAdd(state, uint64_t(1)));
    memory.start = 0;
  }
  __syncthreads();
  const ptrdiff_t base = static_cast<ptrdiff_t>(memory.tile) * TILE<T>;
  const place<T> here = { x + base, y + base, n - base, n - base >= TILE<T> && are_aligned(x, y) };
  for (int r = 0; r < TILE_ROUNDS; r++) {
    const int i = r * TILE_THREADS + thread;
    memory.fours[padded(i)] = get_four(here, i);
  }
  __syncthreads();
  const int first = thread * TILE_ROUNDS;
  SUM sum = 0;
  for (int i = first; i < first + TILE_ROUNDS; i++) {
    const wide<T> four = memory.fours[padded(i)];
    for (int k = 0; k < wide<T>::COUNT; k++) sum += static_cast<SUM>(four.at[k]);
  }
  memory.sums[0][thread] = sum;
  __syncthreads();
  int from = 0;
  for (int step = 1; step < TILE_THREADS; step *= 2) {
    const SUM mine = memory.sums[from][thread];
    memory.sums[1 - from][thread] = thread < step ? mine : memory.sums[from][thread - step] + mine;
    from = 1 - from;
    __syncthreads();
  }
  if (state != nullptr) find_start(thread, blocks, state, memory.sums[from][TILE_THREADS - 1], memory);
  __syncthreads();
  SUM running = memory.start + (thread == 0 ? SUM(0) : memory.sums[from][thread - 1]);
  for (int i = first; i < first + TILE_ROUNDS; i++) {
    wide<T> four = memory.fours[padded(i)];
    for (int k = 0; k < wide<T>::COUNT; k++) {
      const SUM before = running;
      running += static_cast<SUM>(four.at[k]);
      four.at[k] = static_cast<T>(exclusive ? before : running);
    }
    memory.fours[padded(i)] = four;
  }
  __syncthreads();
  for (int r = 0; r < TILE_ROUNDS; r++) {
    const int i = r * TILE_THREADS + thread;
    put_four(here, i, memory.fours[padded(i)]);
  }
}

#endif

/* The number of blocks that fit on a multiprocessor, which has room for 2048 threads with compute capability 8.0, 9.0
 * and 10.0, and for at least 1024 with others. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ % 100 == 0
#define SCAN_BLOCKS 8
#else
#define SCAN_BLOCKS 4
#endif

#define SCAN(SUFFIX, T, SUM)                                                                                 \
  RILL_KERNEL_BOUNDED(RILL_MIN_BLOCKS(TILE_THREADS, SCAN_BLOCKS), scan_##SUFFIX, int64_t n, int exclusive, const T *x, \
                      uint64_t *state, T *y) {                                                               \
    scan<T, SUM>(gridDim.x, n, exclusive != 0, x, state, y);                                                 \
  }
SCAN(i32, int32_t, uint32_t)
SCAN(f32, float, float)
SCAN(f64, double, double)
