/* dialect_masks.kernel.cu: CUDA's functions among the lanes that a mask names, and among the threads of a group.
 *
 * A grid of one block.  In case c, thread t has masks[c * threads + t], or takes no part if that is 0; the other arrays
 * are indexed alike.  A kernel writes its result r to out[(c * RESULTS + r) * threads + t].  Threads whose number is a
 * multiple of `drop` end at once, unless drop is 0.
 */
#include <rill/device/cuda_names.h>
#include <rill/device/kernel.h>

namespace cg = cooperative_groups;
typedef unsigned long long wide;

static __device__ bool ends_at_once(unsigned drop) { return drop != 0 && threadIdx.x % drop == 0; }
/* One of four labels, as numbers of which some differ in one bit alone. */
static __device__ unsigned label_of(wide value) { return static_cast<unsigned>(value >> 62); }
static __device__ float float_of(unsigned label) { return __uint_as_float((label & 1) << 31 | (label & 2) << 28); }

enum { CALLS = 23 };
/* Each function, called at one place by lanes that have different masks. */
RILL_KERNEL(mask_calls, unsigned drop, unsigned cases, const unsigned *masks, const unsigned *from,
            const unsigned long long *values, unsigned long long *out) {
  __shared__ unsigned shared[128];
  const unsigned t = threadIdx.x, threads = blockDim.x;
  if (ends_at_once(drop)) return;
  for (unsigned c = 0; c < cases; c++) {
    const unsigned at = c * threads + t, mask = masks[at];
    if (mask == 0) continue;
    const wide value = values[at];
    const unsigned v = static_cast<unsigned>(value), label = label_of(value), by = static_cast<unsigned>(value >> 32) & 31;
    const int i = static_cast<int>(v), lane = static_cast<int>(from[at]), width = 1 << c % 6;
    const wide far = static_cast<wide>(label) << 40;
    wide *o = out + c * CALLS * threads + t;
    const auto put = [&](wide result) {
      *o = result;
      o += threads;
    };
    int same = 0;
    put(__ballot_sync(mask, static_cast<int>(v & 1)));
    put(static_cast<unsigned>((__any_sync(mask, static_cast<int>(v & 2)) != 0) +
                              2 * (__all_sync(mask, static_cast<int>(v & 2)) != 0)));
    put(__shfl_sync(mask, value, lane));
    put(static_cast<unsigned>(__shfl_sync(mask, i, lane)));
    put(static_cast<wide>(__shfl_sync(mask, static_cast<double>(v), lane)));
    put(__float_as_uint(__shfl_sync(mask, float_of(label), lane)));
    put(static_cast<wide>(__shfl_sync(mask, static_cast<long long>(value), lane)));
    put(__shfl_sync(mask, v, lane, width));
    put(__shfl_up_sync(mask, v, by, width));
    put(__shfl_down_sync(mask, value, by, width));
    put(__shfl_xor_sync(mask, v, static_cast<int>(by), width));
    put(__shfl_xor_sync(mask, value, static_cast<int>(by)));
    put(__match_any_sync(mask, label));
    put(__match_any_sync(mask, static_cast<int>(label)));
    put(__match_any_sync(mask, far));
    put(__match_any_sync(mask, float_of(label)));
    put(__match_any_sync(mask, static_cast<double>(float_of(label))));
    put(__match_all_sync(mask, label, &same));
    put(static_cast<unsigned>(same != 0));
    put(__match_all_sync(mask, far, &same) + static_cast<wide>(same != 0));
    put(__match_all_sync(mask, static_cast<double>(float_of(label)), &same) + static_cast<wide>(same != 0));
    shared[t] = v;
    __syncwarp(mask);
    put(shared[(t & ~31u) + from[at]]);
    __syncwarp(mask);
    put(__activemask());
  }
}

enum { SUMS = 9 };
RILL_KERNEL(mask_reductions, unsigned drop, unsigned cases, const unsigned *masks, const unsigned *values,
            unsigned *out) {
  const unsigned t = threadIdx.x, threads = blockDim.x;
  if (ends_at_once(drop)) return;
  for (unsigned c = 0; c < cases; c++) {
    const unsigned mask = masks[c * threads + t], v = values[c * threads + t];
    if (mask == 0) continue;
    const int i = static_cast<int>(v);
    unsigned *const o = out + c * SUMS * threads + t;
    o[0 * threads] = __reduce_add_sync(mask, v);
    o[1 * threads] = static_cast<unsigned>(__reduce_add_sync(mask, i));
    o[2 * threads] = __reduce_min_sync(mask, v);
    o[3 * threads] = __reduce_max_sync(mask, v);
    o[4 * threads] = static_cast<unsigned>(__reduce_min_sync(mask, i));
    o[5 * threads] = static_cast<unsigned>(__reduce_max_sync(mask, i));
    o[6 * threads] = __reduce_and_sync(mask, v);
    o[7 * threads] = __reduce_or_sync(mask, v);
    o[8 * threads] = __reduce_xor_sync(mask, v);
  }
}

/* A mask that the compiler knows, of all lanes of a warp. */
RILL_KERNEL(mask_of_all, unsigned drop, const unsigned *values, unsigned *out) {
  const unsigned t = threadIdx.x, threads = blockDim.x;
  if (ends_at_once(drop)) return;
  const unsigned v = values[t];
  out[t] = __reduce_add_sync(~0u, v);
  out[threads + t] = static_cast<unsigned>(__reduce_min_sync(~0u, static_cast<int>(v)));
  out[2 * threads + t] = __reduce_xor_sync(0xffffffffu, v);
  out[3 * threads + t] = __match_any_sync(~0u, v & 3);
}

/* Lanes that are in different functions at a time, some of them more often than others: what each does is its role. */
RILL_KERNEL(mask_branches, unsigned drop, unsigned cases, const unsigned *masks, const unsigned *roles,
            const unsigned *from, const unsigned *values, unsigned *out) {
  const unsigned t = threadIdx.x, threads = blockDim.x;
  if (ends_at_once(drop)) return;
  for (unsigned c = 0; c < cases; c++) {
    const unsigned at = c * threads + t, mask = masks[at], role = roles[at], v = values[at];
    const int lane = static_cast<int>(from[at]);
    unsigned result = 0;
    if (role == 1) {
      for (unsigned k = 0; k < 3; k++) result = 31 * result + __reduce_add_sync(mask, v + k);
    } else if (role == 2) {
      result = __shfl_sync(mask, v, lane);
    } else if (role == 3) {
      for (unsigned k = 0; k < 5; k++) result = 31 * result + __ballot_sync(mask, static_cast<int>(v >> k & 1));
    } else if (role == 4) {
      for (unsigned k = 0; k < 2; k++) result = 31 * result + __match_any_sync(mask, v >> k & 3);
    } else if (role == 5) {
      result = static_cast<unsigned>(__reduce_max_sync(mask, static_cast<int>(v)));
      result = 31 * result + __shfl_sync(mask, result ^ v, lane);
    }
    out[at] = result;
  }
}

enum { FACTS = 14 };
/* What a thread sees of its group: the group's lanes first. */
template <class group_type> static __device__ void tell(const group_type &group, wide value, wide *out, unsigned threads) {
  const unsigned lane = threadIdx.x & 31, v = static_cast<unsigned>(value), label = label_of(value);
  unsigned lanes = 0, last = 0, ascends = 1;
  for (unsigned rank = 0; rank < group.size(); rank++) {
    const unsigned other = group.shfl(lane, static_cast<int>(rank));
    lanes |= 1u << other;
    ascends &= rank == 0 || other > last ? 1u : 0u;
    last = other;
  }
  const auto put = [&](wide result) {
    *out = result;
    out += threads;
  };
  int same = 0;
  put(lanes);
  put(ascends);
  put(group.size());
  put(group.thread_rank());
  put(group.ballot(static_cast<int>(v & 1)));
  put(static_cast<unsigned>((group.any(static_cast<int>(v & 2)) != 0) + 2 * (group.all(static_cast<int>(v & 2)) != 0)));
  put(group.shfl_up(value, 1));
  put(group.shfl_down(v, 2));
  put(cg::reduce(group, v, cg::plus<unsigned>()));
  put(static_cast<unsigned>(cg::reduce(group, static_cast<int>(v), cg::greater<int>())));
  put(cg::reduce(group, v, cg::bit_xor<unsigned>()));
  put(group.match_any(label));
  put(group.match_all(label, same));
  put(static_cast<unsigned>(same != 0));
  group.sync();
}

/* The threads that come together in a branch. */
RILL_KERNEL(mask_coalesced, unsigned drop, unsigned cases, const unsigned *roles, const unsigned long long *values,
            unsigned long long *out) {
  const unsigned t = threadIdx.x, threads = blockDim.x;
  if (ends_at_once(drop)) return;
  for (unsigned c = 0; c < cases; c++) {
    wide *const o = out + c * FACTS * threads + t;
    const wide value = values[c * threads + t];
    if (roles[c * threads + t] < 3) {
      tell(cg::coalesced_threads(), value, o, threads);
    } else if (roles[c * threads + t] == 3) {
      const cg::coalesced_group group = cg::coalesced_threads();
      o[0] = cg::reduce(group, 1u << (t & 31), cg::bit_or<unsigned>());
      o[threads] = cg::reduce(group, static_cast<unsigned>(value), cg::plus<unsigned>());
    }
    __syncwarp(); /* else a group may have threads that are in another case */
  }
}

/* Tiles, and groups that they are divided into. */
template <unsigned LANES>
static __device__ void tell_of_tiles(unsigned cases, const wide *values, const unsigned *roles, wide *out) {
  const unsigned t = threadIdx.x, threads = blockDim.x;
  const cg::thread_block_tile<LANES> tile = cg::tiled_partition<LANES>(cg::this_thread_block());
  for (unsigned c = 0; c < cases; c++) {
    const wide value = values[c * threads + t];
    const unsigned role = roles[c * threads + t];
    wide *const o = out + c * 3 * FACTS * threads + t;
    tell(tile, value, o, threads);
    tell(cg::binary_partition(tile, role < 3), value, o + FACTS * threads, threads);
    tell(cg::labeled_partition(tile, role), value, o + 2 * FACTS * threads, threads);
  }
}
#define TILES(LANES)                                                                                                  \
  RILL_KERNEL(mask_tiles_##LANES, unsigned cases, const unsigned long long *values, const unsigned *roles,            \
              unsigned long long *out) {                                                                              \
    tell_of_tiles<LANES>(cases, values, roles, out);                                                                  \
  }
TILES(4)
TILES(32)
#ifdef EVERY_INSTANCE /* tests/levels: these take long to compile */
TILES(2)
TILES(8)
TILES(16)
#endif
