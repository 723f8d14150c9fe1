/* rill/device/host_regions.h: thread indices and synchronization as functions that rillcc replaces. Included by
 * rill/device/on_host.h.
 *
 * clang compiles a kernel as the program of one thread, which calls undefined functions with the prefix rill_ir_.
 * rillcc (rillcc_lib/regions.py) turns the LLVM IR into a function that runs a block. It splits the program into
 * regions at the synchronization points, and makes each region a loop over the threads. For a kernel that it cannot
 * split, it uses the functions with the prefix rill_fiber_ instead.
 */
#ifndef RILL_DEVICE_HOST_REGIONS_H
#define RILL_DEVICE_HOST_REGIONS_H

/* ---- functions that rillcc replaces ---- */

#define RILL_INDEX_ __attribute__((const, nothrow))
#define RILL_SYNC_ __attribute__((convergent, nothrow))

#define RILL_INDICES_(X, WHAT) X(WHAT##_x) X(WHAT##_y) X(WHAT##_z)
#define RILL_DECLARE_(NAME) RILL_INDEX_ unsigned rill_ir_##NAME();
extern "C" {
RILL_INDICES_(RILL_DECLARE_, thread)
RILL_INDICES_(RILL_DECLARE_, block)
RILL_INDICES_(RILL_DECLARE_, block_dim)
RILL_INDICES_(RILL_DECLARE_, grid_dim)
RILL_INDEX_ unsigned rill_ir_thread(); /* the thread's number in its block */
RILL_INDEX_ void *rill_ir_shared();    /* dynamic shared memory */

/* Starts the threads of the block. The arguments are the values of rill_ir_block_x and so on. */
RILL_SYNC_ void rill_ir_begin(unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              void *);
RILL_SYNC_ void rill_ir_barrier();
RILL_SYNC_ unsigned rill_ir_barrier_count(unsigned predicate);
RILL_SYNC_ void rill_ir_warp_sync(unsigned mask);
RILL_SYNC_ unsigned rill_ir_ballot(unsigned predicate, unsigned mask);
RILL_SYNC_ unsigned rill_ir_active();
RILL_SYNC_ unsigned rill_ir_shuffle32(unsigned value, unsigned kind, unsigned by, unsigned width, unsigned mask);
RILL_SYNC_ unsigned long long rill_ir_shuffle64(unsigned long long value, unsigned kind, unsigned by, unsigned width,
                                                unsigned mask);
/* Returns the result of `reduce` for the bits of the values of a warp, and the lanes of the mask that have a
 * value. */
RILL_SYNC_ unsigned rill_ir_reduce32(unsigned value, unsigned (*reduce)(const unsigned *, unsigned), unsigned mask);
RILL_SYNC_ unsigned long long rill_ir_reduce64(unsigned long long value,
                                               unsigned long long (*reduce)(const unsigned long long *, unsigned),
                                               unsigned mask);
}
#undef RILL_DECLARE_

/* ---- indices ---- */

#define RILL_INDEX_OBJECT_(NAME, TYPE, WHAT)                                         \
  struct rill_##WHAT##_index {                                                       \
    __declspec(property(get = get_x)) unsigned x;                                    \
    __declspec(property(get = get_y)) unsigned y;                                    \
    __declspec(property(get = get_z)) unsigned z;                                    \
    static __forceinline__ unsigned get_x() { return rill_ir_##WHAT##_x(); }         \
    static __forceinline__ unsigned get_y() { return rill_ir_##WHAT##_y(); }         \
    static __forceinline__ unsigned get_z() { return rill_ir_##WHAT##_z(); }         \
    __forceinline__ operator uint3() const { return { get_x(), get_y(), get_z() }; } \
    __forceinline__ operator dim3() const { return { get_x(), get_y(), get_z() }; }  \
  };                                                                                 \
  static constexpr rill_##WHAT##_index NAME{};
RILL_INDEX_OBJECT_(threadIdx, uint3, thread)
RILL_INDEX_OBJECT_(blockIdx, uint3, block)
RILL_INDEX_OBJECT_(blockDim, dim3, block_dim)
RILL_INDEX_OBJECT_(gridDim, dim3, grid_dim)
#undef RILL_INDEX_OBJECT_

#define RILL_BODY_(NAME, ...) static inline void NAME(__VA_ARGS__)
#define RILL_DYNAMIC_SHARED(TYPE, NAME) TYPE *const NAME = static_cast<TYPE *>(rill_ir_shared())

/* ---- synchronization ---- */

static __forceinline__ void __syncthreads() { rill_ir_barrier(); }
static __forceinline__ int __syncthreads_count(int p) {
  return static_cast<int>(rill_ir_barrier_count(p != 0 ? 1 : 0));
}

static __forceinline__ unsigned rill_lane() { return rill_ir_thread() & 31; }
static __forceinline__ constexpr unsigned rill_warp_size() { return 32; }
/* Return the ballot of the lanes of a mask, and synchronize them. */
static __forceinline__ unsigned long long rill_ballot_among_(bool p, unsigned long long mask) {
  return rill_ir_ballot(p ? 1 : 0, static_cast<unsigned>(mask));
}
static __forceinline__ void rill_warp_sync_among_(unsigned long long mask) {
  rill_ir_warp_sync(static_cast<unsigned>(mask));
}
static __forceinline__ unsigned long long rill_active_() { return rill_ir_active(); }
static __forceinline__ unsigned long long rill_ballot(bool p) { return rill_ballot_among_(p, ~0ull); }
static __forceinline__ void rill_warp_sync() { rill_warp_sync_among_(~0ull); }

#define RILL_HAS_SHUFFLE_ 1
enum { RILL_SHUFFLE_FROM_ = 0, RILL_SHUFFLE_UP_ = 1, RILL_SHUFFLE_DOWN_ = 2, RILL_SHUFFLE_XOR_ = 3 };
/* Returns the source lane of a shuffle, or the lane itself if there is no source. */
static inline unsigned rill_shuffle_source(unsigned lane, unsigned kind, unsigned by, unsigned width) {
  if (width > 32) width = 32;
  const unsigned inside = lane & (width - 1), group = lane & ~(width - 1);
  switch (kind) {
    case RILL_SHUFFLE_FROM_: return by < width ? group + by : lane;
    case RILL_SHUFFLE_UP_: return by <= inside ? lane - by : lane;
    case RILL_SHUFFLE_DOWN_: return by < width - inside ? lane + by : lane;
    default: return by < width ? lane ^ by : lane;
  }
}

template <class T>
static __forceinline__ T rill_shuffle_(T v, unsigned kind, unsigned by, unsigned width, unsigned long long lanes) {
  const T own = v;
  const unsigned mask = static_cast<unsigned>(lanes);
  static_assert(__is_trivially_copyable(T) && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8),
                "a trivially copyable value of 1, 2, 4 or 8 bytes");
  if constexpr (sizeof(T) == 8) {
    unsigned long long bits;
    __builtin_memcpy(&bits, &v, sizeof v);
    bits = rill_ir_shuffle64(bits, kind, by, width, mask);
    __builtin_memcpy(&v, &bits, sizeof v);
  } else {
    unsigned bits = 0;
    __builtin_memcpy(&bits, &v, sizeof v);
    bits = rill_ir_shuffle32(bits, kind, by, width, mask);
    __builtin_memcpy(&v, &bits, sizeof v);
  }
  /* A lane outside the mask does not take part. */
  if (mask != ~0u && (mask >> rill_shuffle_source(rill_lane(), kind, by, width) & 1) == 0) return own;
  return v;
}

/* ---- a kernel that runs on fibers ---- */

static thread_local struct {
  uint3 thread, block, block_dim, grid_dim;
  void *shared;
} rill_here;

#if RILL_CHECK
#define RILL_HERE_(NAME) rill_here.NAME
static inline bool rill_check_is_own(uintptr_t at) {
  return at - reinterpret_cast<uintptr_t>(&rill_here) < sizeof rill_here;
}
#include <rill/device/host_check.h>
#endif

/* Restores the thread's indices after a service in which other threads of the block run. */
struct rill_keep_thread {
  const uint3 mine = rill_here.thread;
  const bool in_warp;
  uint64_t lanes = 0; /* the lanes that took part in a warp function together */
  explicit rill_keep_thread(bool in_warp_, uint64_t mask = ~0ull) : in_warp(in_warp_) {
    rill_check_arrive(in_warp, mask == ~0ull);
  }
  ~rill_keep_thread() {
    rill_here.thread = mine;
    rill_check_leave(in_warp, lanes);
  }
};

static inline void rill_fiber_enter(const rill_cpu_block *block, const uint32_t index[3]) {
  const rill_cpu_grid *const grid = block->grid;
  rill_services = grid->services;
  rill_here.thread = { index[0], index[1], index[2] };
  rill_here.block = { block->index[0], block->index[1], block->index[2] };
  rill_here.block_dim = { grid->block[0], grid->block[1], grid->block[2] };
  rill_here.grid_dim = { grid->grid[0], grid->grid[1], grid->grid[2] };
  rill_here.shared = block->shared;
  rill_check_enter();
}

/* Exchanges a value among the lanes of a mask, or of the whole warp if the mask is ~0. */
static inline const rill_cpu_warp *rill_fiber_exchange(uint64_t value, unsigned mask) {
  const uint64_t lanes = mask == ~0u ? ~0ull : mask;
  rill_keep_thread keep(true, lanes);
  const rill_cpu_warp *const warp = rill_services->exchange_among(value, lanes);
  keep.lanes = warp->live;
  return warp;
}

#define RILL_USED_ __attribute__((used, nothrow, visibility("hidden")))
#define RILL_FIBER_INDEX_(NAME)                                            \
  RILL_USED_ unsigned rill_fiber_##NAME##_x() { return rill_here.NAME.x; } \
  RILL_USED_ unsigned rill_fiber_##NAME##_y() { return rill_here.NAME.y; } \
  RILL_USED_ unsigned rill_fiber_##NAME##_z() { return rill_here.NAME.z; }
extern "C" {
RILL_FIBER_INDEX_(thread)
RILL_FIBER_INDEX_(block)
RILL_FIBER_INDEX_(block_dim)
RILL_FIBER_INDEX_(grid_dim)
#undef RILL_FIBER_INDEX_
RILL_USED_ unsigned rill_fiber_thread() {
  return (rill_here.thread.z * rill_here.block_dim.y + rill_here.thread.y) * rill_here.block_dim.x + rill_here.thread.x;
}
RILL_USED_ void *rill_fiber_shared() { return rill_here.shared; }
RILL_USED_ void rill_fiber_barrier() {
  const rill_keep_thread keep(false);
  rill_services->barrier();
}
RILL_USED_ unsigned rill_fiber_barrier_count(unsigned predicate) {
  const rill_keep_thread keep(false);
  return rill_services->barrier_count(predicate);
}
RILL_USED_ void rill_fiber_warp_sync(unsigned mask) { rill_fiber_exchange(0, mask); }
RILL_USED_ unsigned rill_fiber_ballot(unsigned predicate, unsigned mask) {
  return static_cast<unsigned>(rill_fiber_exchange(predicate, mask)->nonzero);
}
/* Not inlined, because its return address identifies the place at which lanes are active together. */
__attribute__((noinline)) RILL_USED_ unsigned rill_fiber_active() {
  rill_keep_thread keep(true, 0);
  keep.lanes = rill_services->active(__builtin_return_address(0));
  return static_cast<unsigned>(keep.lanes);
}
RILL_USED_ unsigned long long rill_fiber_shuffle64(unsigned long long value, unsigned kind, unsigned by, unsigned width,
                                                   unsigned mask) {
  const rill_cpu_warp *const warp = rill_fiber_exchange(value, mask);
  const unsigned from = rill_shuffle_source(rill_fiber_thread() & 31, kind, by, width);
  return (warp->live >> from & 1) != 0 ? warp->values[from] : value;
}
RILL_USED_ unsigned long long rill_fiber_reduce64(unsigned long long value,
                                                  unsigned long long (*reduce)(const unsigned long long *, unsigned),
                                                  unsigned mask) {
  const rill_cpu_warp *const warp = rill_fiber_exchange(value, mask);
  unsigned long long values[32];
  for (unsigned l = 0; l < 32; l++) values[l] = warp->values[l];
  return reduce(values, static_cast<unsigned>(warp->live));
}
RILL_USED_ unsigned rill_fiber_reduce32(unsigned value, unsigned (*reduce)(const unsigned *, unsigned), unsigned mask) {
  const rill_cpu_warp *const warp = rill_fiber_exchange(value, mask);
  unsigned values[32];
  for (unsigned l = 0; l < 32; l++) values[l] = static_cast<unsigned>(warp->values[l]);
  return reduce(values, static_cast<unsigned>(warp->live));
}
RILL_USED_ unsigned rill_fiber_shuffle32(unsigned value, unsigned kind, unsigned by, unsigned width, unsigned mask) {
  return static_cast<unsigned>(rill_fiber_shuffle64(value, kind, by, width, mask));
}
}

/* ---- the forms of a kernel ---- */

/* A plain number or pointer is read once per block. A struct is read by each thread, which has its own copy. */
template <class T> using rill_ir_arg = std::conditional_t<std::is_class_v<T> || std::is_union_v<T>, const T &, T>;

template <auto Body, class Tag = void, class Type = decltype(Body)> struct rill_host_forms;
template <auto Body, class Tag, class... P> struct rill_host_forms<Body, Tag, void (*)(P...)> {
  static __forceinline__ void begin(const rill_cpu_block *block, rill_ir_arg<P>... args) {
    const rill_cpu_grid *const grid = block->grid;
    rill_ir_begin(block->index[0], block->index[1], block->index[2], grid->block[0], grid->block[1], grid->block[2],
                  grid->grid[0], grid->grid[1], grid->grid[2], block->shared);
    Body(args...);
  }
  template <size_t... I>
  static __forceinline__ void block_with(const rill_cpu_block *block, std::index_sequence<I...>) {
    begin(block, rill_host_arg<P>(block, I)...);
  }
  static void run_block(const rill_cpu_block *block) {
    rill_services = block->grid->services;
    block_with(block, std::index_sequence_for<P...>{});
  }
  template <size_t... I>
  static __forceinline__ void thread_with(const rill_cpu_block *block, std::index_sequence<I...>) {
    Body(rill_host_arg<P>(block, I)...);
  }
  static void run_thread(const rill_cpu_block *block, const uint32_t index[3]) {
    rill_fiber_enter(block, index);
    thread_with(block, std::index_sequence_for<P...>{});
  }
  static constexpr rill_cpu_kernel rill_kernel_(const char *name, bool) {
    return { name, &run_block, &run_thread, rill_host_sizes<P...>::list, sizeof...(P) };
  }
};

extern "C" void __assert_fail(const char *expression, const char *file, RILL_ASSERT_LINE_ line,
                              const char *) RILL_ASSERT_THROWS_ {
  const uint32_t block[3] = { blockIdx.x, blockIdx.y, blockIdx.z },
                 thread[3] = { threadIdx.x, threadIdx.y, threadIdx.z };
  rill_services->assert_failed(expression, file, static_cast<uint32_t>(line), block, thread);
  __builtin_trap();
}

#include <rill/device/host_schedule.h>

#endif
