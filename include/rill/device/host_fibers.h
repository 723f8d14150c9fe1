/* rill/device/host_fibers.h: indices and synchronization of threads if each thread of a block with barriers runs on
 * its own stack. Included by rill/device/on_host.h. */
#ifndef RILL_DEVICE_HOST_FIBERS_H
#define RILL_DEVICE_HOST_FIBERS_H

/* 0 if the functions of the source do not use the indices, because setting them costs a store per thread. Checks need
 * the indices to name threads. */
#if !defined(RILL_HELPERS_READ_INDEX) || RILL_CHECK
#undef RILL_HELPERS_READ_INDEX
#define RILL_HELPERS_READ_INDEX 1
#endif

/* 1 if kernels run as loops, except a kernel that may reach a barrier according to RILL_MEETS_name; 0 if no kernel
 * runs as loops. */
#ifndef RILL_LOOPS
#define RILL_LOOPS 0
#endif

#if RILL_HELPERS_READ_INDEX
static thread_local uint3 threadIdx, blockIdx;
static thread_local dim3 blockDim, gridDim;
static thread_local void *rill_dynamic_shared;
#endif

#define RILL_BODY_(NAME, ...)                                                                                     \
  static __forceinline__ void NAME([[maybe_unused]] const uint3 threadIdx, [[maybe_unused]] const uint3 blockIdx, \
                                   [[maybe_unused]] const dim3 blockDim, [[maybe_unused]] const dim3 gridDim,     \
                                   [[maybe_unused]] void *const rill_dynamic_shared, ##__VA_ARGS__)
#define RILL_DYNAMIC_SHARED(TYPE, NAME) TYPE *const NAME = static_cast<TYPE *>(rill_dynamic_shared)

#if RILL_CHECK
#define RILL_HERE_(NAME) RILL_HERE_##NAME##_
#define RILL_HERE_thread_ threadIdx
#define RILL_HERE_block_ blockIdx
#define RILL_HERE_block_dim_ blockDim
static inline bool rill_check_is_own(uintptr_t at) {
  return at - reinterpret_cast<uintptr_t>(&threadIdx) < sizeof threadIdx ||
         at - reinterpret_cast<uintptr_t>(&blockIdx) < sizeof blockIdx ||
         at - reinterpret_cast<uintptr_t>(&blockDim) < sizeof blockDim ||
         at - reinterpret_cast<uintptr_t>(&gridDim) < sizeof gridDim;
}
#include <rill/device/host_check.h>
#endif

/* Restores the thread's indices after a service in which other threads of the block run. */
struct rill_keep_thread {
  const bool in_warp;
#if RILL_HELPERS_READ_INDEX
  const uint3 mine = threadIdx;
#endif
  uint64_t lanes = 0; /* the lanes that took part in a warp function together */
  explicit rill_keep_thread(bool in_warp_, uint64_t mask = ~0ull) : in_warp(in_warp_) {
    rill_check_arrive(in_warp, mask == ~0ull);
  }
  ~rill_keep_thread() {
#if RILL_HELPERS_READ_INDEX
    threadIdx = mine;
#endif
    rill_check_leave(in_warp, lanes);
  }
};

/* These functions remain calls in the compiled code, so that rillcc can tell which kernels cannot be loops. */
#ifdef __clang__
#define RILL_CALLED_ __attribute__((noinline))
#else
#define RILL_CALLED_ __attribute__((noipa))
#endif
RILL_CALLED_ static void rill_host_meet_barrier() {
  const rill_keep_thread keep(false);
  rill_services->barrier();
}
RILL_CALLED_ static int rill_host_meet_count(int p) {
  const rill_keep_thread keep(false);
  return static_cast<int>(rill_services->barrier_count(p != 0));
}
RILL_CALLED_ static const rill_cpu_warp *rill_host_meet_exchange(uint64_t value, uint64_t mask) {
  rill_keep_thread keep(true, mask);
  const rill_cpu_warp *const warp = rill_services->exchange_among(value, mask);
  keep.lanes = warp->live;
  return warp;
}
RILL_CALLED_ static uint64_t rill_host_meet_active() {
  rill_keep_thread keep(true, 0);
  return keep.lanes = rill_services->active(__builtin_return_address(0));
}
RILL_CALLED_ static unsigned rill_host_meet_lane() { return rill_services->lane(); }

static inline void __syncthreads() { rill_host_meet_barrier(); }
static inline int __syncthreads_count(int p) { return rill_host_meet_count(p); }
/* Exchanges a value among the lanes of a mask, or of the whole warp if the mask is ~0. */
static inline const rill_cpu_warp *rill_exchange(uint64_t value, uint64_t mask) {
  return rill_host_meet_exchange(value, mask);
}
static inline unsigned long long rill_ballot_among_(bool p, uint64_t mask) { return rill_exchange(p, mask)->nonzero; }
static inline void rill_warp_sync_among_(uint64_t mask) { rill_exchange(0, mask); }
static inline unsigned long long rill_active_() { return rill_host_meet_active(); }
static inline unsigned rill_lane() { return rill_host_meet_lane(); }
static inline unsigned rill_warp_size() { return rill_services->warp_size; }
static inline unsigned long long rill_ballot(bool p) { return rill_ballot_among_(p, ~0ull); }
static inline void rill_warp_sync() { rill_warp_sync_among_(~0ull); }

template <class T> static inline T rill_shuffle_from_(T v, unsigned lane, uint64_t mask) {
  static_assert(__is_trivially_copyable(T) && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8),
                "a trivially copyable value of 1, 2, 4 or 8 bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &v, sizeof v);
  const rill_cpu_warp *const warp = rill_exchange(bits, mask);
  if (lane < 64 && (warp->live >> lane & 1) != 0) __builtin_memcpy(&v, &warp->values[lane], sizeof v);
  return v;
}

/* ---- the loops over a block without barriers ---- */

static __forceinline__ void rill_host_enter_thread([[maybe_unused]] const uint3 &thread) {
#if RILL_HELPERS_READ_INDEX
  threadIdx = thread;
#endif
}

static __forceinline__ void rill_host_enter_block(const rill_cpu_block *block) {
  rill_services = block->grid->services;
#if RILL_HELPERS_READ_INDEX
  const rill_cpu_grid *const grid = block->grid;
  blockIdx = { block->index[0], block->index[1], block->index[2] };
  blockDim = { grid->block[0], grid->block[1], grid->block[2] };
  gridDim = { grid->grid[0], grid->grid[1], grid->grid[2] };
  rill_dynamic_shared = block->shared;
#endif
}

/* clang miscompiles vectorized conditional divisions whose operands are uniform. */
#if defined(__clang__) && !defined(RILL_VECTORIZE)
#define RILL_VECTORIZE_ _Pragma("clang loop vectorize(disable)")
#else
#define RILL_VECTORIZE_
#endif

/** The two forms of the kernel Body, a function with the hidden parameters followed by P. */
template <auto Body, class Tag = void, class Type = decltype(Body)> struct rill_host_forms;
template <auto Body, class Tag, class... P>
struct rill_host_forms<Body, Tag, void (*)(uint3, uint3, dim3, dim3, void *, P...)> {
  /* The arguments are parameters here so that they stay in registers through the loops. */
  static __forceinline__ void loop(const rill_cpu_block *block, P... args) {
    const rill_cpu_grid *const grid = block->grid;
    const uint3 index = { block->index[0], block->index[1], block->index[2] };
    const dim3 block_size(grid->block[0], grid->block[1], grid->block[2]);
    const dim3 grid_size(grid->grid[0], grid->grid[1], grid->grid[2]);
    void *const shared = block->shared;
    for (unsigned z = 0; z < block_size.z; z++)
      for (unsigned y = 0; y < block_size.y; y++) {
        RILL_VECTORIZE_
        for (unsigned x = 0; x < block_size.x; x++) {
          rill_host_enter_thread({ x, y, z });
          Body({ x, y, z }, index, block_size, grid_size, shared, args...);
        }
      }
  }
  template <size_t... I> static __forceinline__ void loop_with(const rill_cpu_block *block, std::index_sequence<I...>) {
    loop(block, rill_host_arg<P>(block, I)...);
  }
  static void run_block(const rill_cpu_block *block) {
    rill_host_enter_block(block);
    loop_with(block, std::index_sequence_for<P...>{});
  }

  template <size_t... I>
  static __forceinline__ void thread(const rill_cpu_block *block, const uint3 &index, std::index_sequence<I...>) {
    const rill_cpu_grid *const grid = block->grid;
    Body(index, { block->index[0], block->index[1], block->index[2] },
         dim3(grid->block[0], grid->block[1], grid->block[2]), dim3(grid->grid[0], grid->grid[1], grid->grid[2]),
         block->shared, rill_host_arg<P>(block, I)...);
  }
  static void run_thread(const rill_cpu_block *block, const uint32_t index[3]) {
    rill_host_enter_block(block);
    rill_host_enter_thread({ index[0], index[1], index[2] });
    rill_check_enter();
    thread(block, { index[0], index[1], index[2] }, std::index_sequence_for<P...>{});
  }

  static constexpr rill_cpu_kernel rill_kernel_(const char *name, bool meets) {
    return { name, RILL_LOOPS != 0 && !meets ? &run_block : nullptr, &run_thread, rill_host_sizes<P...>::list,
             sizeof...(P) };
  }
};

/** The two forms of a kernel without hidden parameters, which reads the variables. */
template <auto Body, class... P> struct rill_plain_body {
  static __forceinline__ void call(uint3, uint3, dim3, dim3, void *, P... args) { Body(args...); }
};
template <auto Body, class Tag, class... P>
struct rill_host_forms<Body, Tag, void (*)(P...)> : rill_host_forms<&rill_plain_body<Body, P...>::call, Tag> {};

extern "C" void __assert_fail(const char *expression, const char *file, RILL_ASSERT_LINE_ line,
                              const char *) RILL_ASSERT_THROWS_ {
#if RILL_HELPERS_READ_INDEX
  const uint32_t block[3] = { blockIdx.x, blockIdx.y, blockIdx.z },
                 thread[3] = { threadIdx.x, threadIdx.y, threadIdx.z };
  rill_services->assert_failed(expression, file, static_cast<uint32_t>(line), block, thread);
#else
  rill_services->assert_failed(expression, file, static_cast<uint32_t>(line), nullptr, nullptr);
#endif
  __builtin_trap();
}

#endif
