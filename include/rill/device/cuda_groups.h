/* rill/device/cuda_groups.h: blocks, tiles and other groups from CUDA's cooperative groups. Included by
 * rill/device/cuda_names.h. */
#ifndef RILL_DEVICE_CUDA_GROUPS_H
#define RILL_DEVICE_CUDA_GROUPS_H

namespace cooperative_groups {

struct thread_block {
  RILL_NAMED_ void sync() const { __syncthreads(); }
  RILL_NAMED_ dim3 group_index() const { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  RILL_NAMED_ dim3 thread_index() const { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  RILL_NAMED_ dim3 dim_threads() const { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  RILL_NAMED_ dim3 group_dim() const { return dim_threads(); }
  RILL_NAMED_ unsigned thread_rank() const {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  RILL_NAMED_ unsigned num_threads() const { return blockDim.x * blockDim.y * blockDim.z; }
  RILL_NAMED_ unsigned size() const { return num_threads(); }
};
RILL_NAME_ thread_block this_thread_block() { return {}; }

/* A tile of `rill_lanes` consecutive threads of a warp: 1, 2, 4, 8, 16 or 32. */
template <unsigned rill_lanes, class rill_parent = void> struct thread_block_tile {
  static_assert(rill_lanes >= 1 && rill_lanes <= 32 && (rill_lanes & (rill_lanes - 1)) == 0,
                "1, 2, 4, 8, 16 or 32 lanes");
  thread_block_tile() = default;
  /* Converts a tile with a known parent to a tile with any parent. */
  template <class rill_other> RILL_NAMED_ thread_block_tile(const thread_block_tile<rill_lanes, rill_other> &) {}
  RILL_NAMED_ unsigned rill_first_() const { return rill_cuda_lane_() & ~(rill_lanes - 1); }
  RILL_NAMED_ unsigned rill_mask_() const { return (~0u >> (32 - rill_lanes)) << rill_first_(); }
  RILL_NAMED_ void sync() const { rill_cuda_sync_(rill_mask_()); }
  RILL_NAMED_ unsigned thread_rank() const { return rill_cuda_lane_() & (rill_lanes - 1); }
  RILL_NAMED_ static constexpr unsigned size() { return rill_lanes; }
  RILL_NAMED_ static constexpr unsigned num_threads() { return rill_lanes; }
  RILL_NAMED_ unsigned meta_group_rank() const { return this_thread_block().thread_rank() / rill_lanes; }
  RILL_NAMED_ unsigned meta_group_size() const { return (this_thread_block().size() + rill_lanes - 1) / rill_lanes; }
  template <class RillT> RILL_NAMED_ RillT shfl(RillT v, int from) const {
    return rill_cuda_shfl_(rill_mask_(), v, from, static_cast<int>(rill_lanes));
  }
  template <class RillT> RILL_NAMED_ RillT shfl_up(RillT v, int by) const {
    return rill_cuda_shfl_up_(rill_mask_(), v, static_cast<unsigned>(by), static_cast<int>(rill_lanes));
  }
  template <class RillT> RILL_NAMED_ RillT shfl_down(RillT v, int by) const {
    return rill_cuda_shfl_down_(rill_mask_(), v, static_cast<unsigned>(by), static_cast<int>(rill_lanes));
  }
  template <class RillT> RILL_NAMED_ RillT shfl_xor(RillT v, int by) const {
    return rill_cuda_shfl_xor_(rill_mask_(), v, by, static_cast<int>(rill_lanes));
  }
  RILL_NAMED_ int any(int p) const { return rill_cuda_any_(rill_mask_(), p != 0); }
  RILL_NAMED_ int all(int p) const { return rill_cuda_all_(rill_mask_(), p != 0); }
  RILL_NAMED_ unsigned ballot(int p) const { return rill_cuda_ballot_(rill_mask_(), p != 0) >> rill_first_(); }
  template <class RillT> RILL_NAMED_ unsigned match_any(RillT v) const {
    return rill_cuda_match_any_(rill_mask_(), v) >> rill_first_();
  }
  template <class RillT> RILL_NAMED_ unsigned match_all(RillT v, int &all) const {
    return rill_cuda_match_all_(rill_mask_(), v, &all) >> rill_first_();
  }
};
template <unsigned rill_lanes, class rill_parent>
RILL_NAME_ thread_block_tile<rill_lanes, rill_parent> tiled_partition(const rill_parent &) {
  return {};
}

/* The threads of a warp that are active together where the group is created. */
struct coalesced_group {
  unsigned rill_mask_;
  /* Returns the lane of the thread with a rank in the group, or the caller's lane if there is no such thread. */
  RILL_NAMED_ int rill_lane_of_(unsigned rank) const {
    unsigned rest = rill_mask_;
    for (; rank > 0 && rest != 0; rank--) rest &= rest - 1;
    return rest != 0 ? __ffs(static_cast<int>(rest)) - 1 : static_cast<int>(rill_cuda_lane_());
  }
  RILL_NAMED_ void sync() const { rill_cuda_sync_(rill_mask_); }
  RILL_NAMED_ unsigned num_threads() const { return static_cast<unsigned>(__popc(rill_mask_)); }
  RILL_NAMED_ unsigned size() const { return num_threads(); }
  RILL_NAMED_ unsigned thread_rank() const {
    return static_cast<unsigned>(__popc(rill_mask_ & ((1u << rill_cuda_lane_()) - 1)));
  }
  RILL_NAMED_ unsigned meta_group_rank() const { return 0; }
  RILL_NAMED_ unsigned meta_group_size() const { return 1; }
  template <class RillT> RILL_NAMED_ RillT shfl(RillT v, unsigned from) const {
    return rill_cuda_shfl_(rill_mask_, v, rill_lane_of_(from));
  }
  template <class RillT> RILL_NAMED_ RillT shfl_up(RillT v, unsigned by) const {
    const unsigned rank = thread_rank();
    return shfl(v, rank < by ? rank : rank - by);
  }
  template <class RillT> RILL_NAMED_ RillT shfl_down(RillT v, unsigned by) const { return shfl(v, thread_rank() + by); }
  RILL_NAMED_ int any(int p) const { return rill_cuda_any_(rill_mask_, p != 0); }
  RILL_NAMED_ int all(int p) const { return rill_cuda_all_(rill_mask_, p != 0); }
  /* Converts a mask of lanes to a mask of ranks in the group. */
  RILL_NAMED_ unsigned rill_ranks_(unsigned lanes) const {
    unsigned ranks = 0, rank = 0;
    for (unsigned rest = rill_mask_; rest != 0; rest &= rest - 1, rank++)
      ranks |= (lanes & rest & (0 - rest)) != 0 ? 1u << rank : 0;
    return ranks;
  }
  RILL_NAMED_ unsigned ballot(int p) const { return rill_ranks_(rill_cuda_ballot_(rill_mask_, p != 0)); }
  template <class RillT> RILL_NAMED_ unsigned match_any(RillT v) const {
    return rill_ranks_(rill_cuda_match_any_(rill_mask_, v));
  }
  template <class RillT> RILL_NAMED_ unsigned match_all(RillT v, int &all) const {
    return rill_ranks_(rill_cuda_match_all_(rill_mask_, v, &all));
  }
};
RILL_NAME_ coalesced_group coalesced_threads() { return { rill_cuda_active_() }; }

RILL_NAME_ coalesced_group rill_as_coalesced_(const coalesced_group &group) { return group; }
template <unsigned rill_lanes, class rill_parent>
RILL_NAME_ coalesced_group rill_as_coalesced_(const thread_block_tile<rill_lanes, rill_parent> &tile) {
  return { tile.rill_mask_() };
}
/* Returns the threads of a tile or group that pass the same predicate. Threads that have exited are in no group. */
template <class rill_group> RILL_NAME_ coalesced_group binary_partition(const rill_group &group, bool p) {
  const unsigned mask = rill_as_coalesced_(group).rill_mask_;
  const unsigned those = rill_cuda_ballot_(mask, p), others = rill_cuda_ballot_(mask, !p);
  return { p ? those : others };
}
template <class rill_group, class RillT>
RILL_NAME_ coalesced_group labeled_partition(const rill_group &group, RillT label) {
  return { rill_cuda_match_any_(rill_as_coalesced_(group).rill_mask_, label) };
}

/* Any of these groups: a block, or threads of a warp. */
struct thread_group {
  unsigned rill_mask_; /* 0: the block */
  RILL_NAMED_ explicit thread_group(unsigned mask) : rill_mask_(mask) {}
  RILL_NAMED_ thread_group(const thread_block &) : rill_mask_(0) {}
  RILL_NAMED_ thread_group(const coalesced_group &group) : rill_mask_(group.rill_mask_) {}
  template <unsigned rill_lanes, class rill_parent>
  RILL_NAMED_ thread_group(const thread_block_tile<rill_lanes, rill_parent> &tile) : rill_mask_(tile.rill_mask_()) {}
  RILL_NAMED_ void sync() const {
    if (rill_mask_ == 0) __syncthreads();
    else rill_cuda_sync_(rill_mask_);
  }
  RILL_NAMED_ unsigned num_threads() const {
    return rill_mask_ == 0 ? this_thread_block().size() : coalesced_group{ rill_mask_ }.size();
  }
  RILL_NAMED_ unsigned size() const { return num_threads(); }
  RILL_NAMED_ unsigned thread_rank() const {
    return rill_mask_ == 0 ? this_thread_block().thread_rank() : coalesced_group{ rill_mask_ }.thread_rank();
  }
};
/* Returns the tile of `lanes` threads of the group (a power of two up to 32) that contains the caller. */
RILL_NAME_ thread_group tiled_partition(const thread_group &group, unsigned lanes) {
  const unsigned mask = group.rill_mask_ == 0 ? ~0u : group.rill_mask_;
  const unsigned tile = coalesced_group{ mask }.thread_rank() / lanes;
  unsigned rank = 0, those = 0;
  for (unsigned rest = mask; rest != 0; rest &= rest - 1, rank++)
    if (rank / lanes == tile) those |= rest & (0 - rest);
  return thread_group(those);
}

/* All threads of a launch, which can be counted but not synchronized. */
struct grid_group {
  RILL_NAMED_ unsigned long long num_blocks() const {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  RILL_NAMED_ unsigned long long block_rank() const {
    return (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  RILL_NAMED_ dim3 group_dim() const { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  RILL_NAMED_ unsigned long long num_threads() const { return num_blocks() * this_thread_block().size(); }
  RILL_NAMED_ unsigned long long size() const { return num_threads(); }
  RILL_NAMED_ unsigned long long thread_rank() const {
    return block_rank() * this_thread_block().size() + this_thread_block().thread_rank();
  }
};
RILL_NAME_ grid_group this_grid() { return {}; }

/* ---- functions for any group ---- */

template <class rill_group> RILL_NAME_ void sync(const rill_group &group) { group.sync(); }
template <class RillT> struct plus {
  RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const { return a + b; }
};
template <class RillT> struct less {
  RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const { return b < a ? b : a; }
};
template <class RillT> struct greater {
  RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const { return a < b ? b : a; }
};
template <class RillT> struct bit_and {
  RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const { return a & b; }
};
template <class RillT> struct bit_or {
  RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const { return a | b; }
};
template <class RillT> struct bit_xor {
  RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const { return a ^ b; }
};
/** Reduces the values of a tile. All lanes get the same result. */
template <unsigned rill_lanes, class rill_parent, class RillT, class rill_operation>
RILL_NAME_ RillT reduce(const thread_block_tile<rill_lanes, rill_parent> &tile, RillT v, rill_operation operation) {
  for (unsigned by = rill_lanes / 2; by > 0; by /= 2) v = operation(v, tile.shfl_xor(v, static_cast<int>(by)));
  return v;
}
template <class RillT, class rill_operation>
RILL_NAME_ RillT reduce(const coalesced_group &group, RillT v, rill_operation operation) {
  RillT all = group.shfl(v, 0);
  for (unsigned rank = 1; rank < group.size(); rank++) all = operation(all, group.shfl(v, rank));
  return all;
}

} // namespace cooperative_groups

#endif
