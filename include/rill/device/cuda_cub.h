/* rill/device/cuda_cub.h: CUB's classes for blocks and warps. With rillcc --cuda-names, <cub/cub.cuh> and its headers
 * for blocks and warps include this header; with nvcc they are NVIDIA's.
 *
 *     using reduce = cub::BlockReduce<float, 256>;
 *     __shared__ typename reduce::TempStorage temp;
 *     const float sum = reduce(temp).Sum(x[i]);     // in thread 0
 *
 *   BlockReduce  Sum Reduce: of a value or an array of each thread, of the first num_valid values; in thread 0
 *   BlockScan    InclusiveSum ExclusiveSum InclusiveScan ExclusiveScan: also with an initial value, the block's
 *                aggregate, or a function that returns the prefix of a block
 *   WarpReduce   Sum Reduce: among 1, 2, 4, 8, 16 or 32 lanes; in the first lane
 *   WarpScan     the functions of BlockScan for a value, and Broadcast
 *   BlockLoad BlockStore    Load Store: all algorithms but _STRIPED keep the items of a thread together
 *   Sum Max Min ArgMax ArgMin KeyValuePair
 *
 * Algorithm arguments are accepted and have no effect. Operations must be associative; the left operand comes from
 * the lower threads. All threads of the block, or all lanes of the warp, must make the call. Put a barrier
 * (__syncwarp for a warp) before the next use of the same TempStorage. A warp has 32 lanes, as in
 * rill/device/cuda_names.h.
 */
#ifndef RILL_DEVICE_CUDA_CUB_H
#define RILL_DEVICE_CUDA_CUB_H

#include <rill/device/cuda_names.h>

namespace cub {

/* ---- operations ---- */

struct Sum {
  template <class RillT> RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const {
    return static_cast<RillT>(a + b);
  }
};
struct Max {
  template <class RillT> RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const { return a < b ? b : a; }
};
struct Min {
  template <class RillT> RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const { return b < a ? b : a; }
};
template <class rill_key, class rill_value> struct KeyValuePair {
  rill_key key;
  rill_value value;
};
/* Among equal values, the pair with the lower key is selected. */
struct ArgMax {
  template <class RillT> RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const {
    return a.value < b.value || (!(b.value < a.value) && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class RillT> RILL_NAMED_ RillT operator()(const RillT &a, const RillT &b) const {
    return b.value < a.value || (!(a.value < b.value) && b.key < a.key) ? b : a;
  }
};

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

/* ---- shuffles of values of any size ---- */

enum { RILL_UP_, RILL_DOWN_, RILL_FROM_ };

template <bool rill_is_wide> struct rill_word_ { using type = unsigned; };
template <> struct rill_word_<true> { using type = unsigned long long; };
/* Shuffles a value as words, of 8 bytes if the size is a multiple of 8. */
template <int rill_kind, class RillT>
RILL_NAME_ RillT rill_shuffled_(unsigned mask, const RillT &v, unsigned by, int lanes) {
  using rill_word = typename rill_word_<sizeof(RillT) % 8 == 0>::type;
  constexpr unsigned count = (sizeof(RillT) + sizeof(rill_word) - 1) / sizeof(rill_word);
  rill_word words[count] = {};
  __builtin_memcpy(words, &v, sizeof v);
  for (unsigned i = 0; i < count; i++) {
    if constexpr (rill_kind == RILL_UP_) words[i] = rill_cuda_shfl_up_(mask, words[i], by, lanes);
    else if constexpr (rill_kind == RILL_DOWN_) words[i] = rill_cuda_shfl_down_(mask, words[i], by, lanes);
    else words[i] = rill_cuda_shfl_(mask, words[i], static_cast<int>(by), lanes);
  }
  RillT result = v;
  __builtin_memcpy(static_cast<void *>(&result), words, sizeof result);
  return result;
}

/* Storage in shared memory. It has no constructor, so TempStorage can be a member of a union. */
template <class RillT, unsigned rill_count> struct rill_room_ {
  alignas(RillT) unsigned char rill_bytes_[sizeof(RillT) * rill_count];
  RILL_NAMED_ RillT *rill_values_() { return reinterpret_cast<RillT *>(rill_bytes_); }
};

/* A group of `rill_lanes` lanes, of which the first `there` exist. */
template <unsigned rill_lanes> struct rill_group_ {
  static_assert(rill_lanes >= 1 && rill_lanes <= 32 && (rill_lanes & (rill_lanes - 1)) == 0,
                "a warp of 1, 2, 4, 8, 16 or 32 lanes");
  unsigned rill_lane_, rill_mask_;
  RILL_NAMED_ explicit rill_group_(unsigned there = rill_lanes)
      : rill_lane_(rill_cuda_lane_() & (rill_lanes - 1)),
        rill_mask_((~0u >> (32 - there)) << (rill_cuda_lane_() & ~(rill_lanes - 1))) {}

  template <int rill_kind, class RillT> RILL_NAMED_ RillT rill_move_(const RillT &v, unsigned by) const {
    return rill_shuffled_<rill_kind>(rill_mask_, v, by, static_cast<int>(rill_lanes));
  }
  /* Returns the reduction of the first `valid` lanes, in the first lane. */
  template <class RillT, class rill_operation>
  RILL_NAMED_ RillT rill_reduce_(RillT v, rill_operation operation, unsigned valid) const {
    for (unsigned by = 1; by < rill_lanes; by *= 2) {
      const RillT other = rill_move_<RILL_DOWN_>(v, by);
      if (rill_lane_ + by < valid) v = operation(v, other);
    }
    return v;
  }
  template <class RillT, class rill_operation> RILL_NAMED_ RillT rill_scan_(RillT v, rill_operation operation) const {
    for (unsigned by = 1; by < rill_lanes; by *= 2) {
      const RillT other = rill_move_<RILL_UP_>(v, by);
      if (rill_lane_ >= by) v = operation(other, v);
    }
    return v;
  }
};

template <class RillT, int rill_count, class rill_operation>
RILL_NAME_ RillT rill_reduce_items_(const RillT (&items)[rill_count], rill_operation operation) {
  RillT all = items[0];
  for (int i = 1; i < rill_count; i++) all = operation(all, items[i]);
  return all;
}

/* ---- warps ---- */

struct rill_nothing_ {
  unsigned char rill_byte_;
};

template <class RillT, int rill_lanes = 32, int rill_arch = 0> class WarpReduce {
  using rill_group = rill_group_<static_cast<unsigned>(rill_lanes)>;

public:
  using TempStorage = rill_nothing_;
  RILL_NAMED_ explicit WarpReduce(TempStorage &) {}

  template <class rill_operation> RILL_NAMED_ RillT Reduce(RillT v, rill_operation operation) {
    return rill_group().rill_reduce_(v, operation, static_cast<unsigned>(rill_lanes));
  }
  template <class rill_operation> RILL_NAMED_ RillT Reduce(RillT v, rill_operation operation, int valid) {
    return rill_group().rill_reduce_(v, operation, static_cast<unsigned>(valid));
  }
  RILL_NAMED_ RillT Sum(RillT v) { return Reduce(v, cub::Sum()); }
  RILL_NAMED_ RillT Sum(RillT v, int valid) { return Reduce(v, cub::Sum(), valid); }
};

template <class RillT, int rill_lanes = 32, int rill_arch = 0> class WarpScan {
  using rill_group = rill_group_<static_cast<unsigned>(rill_lanes)>;

public:
  using TempStorage = rill_nothing_;
  RILL_NAMED_ explicit WarpScan(TempStorage &) {}

  RILL_NAMED_ RillT Broadcast(RillT v, unsigned from) { return rill_group().template rill_move_<RILL_FROM_>(v, from); }

  template <class rill_operation> RILL_NAMED_ void InclusiveScan(RillT v, RillT &out, rill_operation operation) {
    out = rill_group().rill_scan_(v, operation);
  }
  template <class rill_operation>
  RILL_NAMED_ void InclusiveScan(RillT v, RillT &out, rill_operation operation, RillT &aggregate) {
    const RillT inclusive = rill_group().rill_scan_(v, operation);
    out = inclusive;
    aggregate = Broadcast(inclusive, static_cast<unsigned>(rill_lanes) - 1);
  }
  /* Without an initial value the first lane's exclusive result is undefined. */
  template <class rill_operation>
  RILL_NAMED_ void Scan(RillT v, RillT &inclusive, RillT &exclusive, rill_operation operation) {
    const rill_group group;
    const RillT all = group.rill_scan_(v, operation);
    exclusive = group.template rill_move_<RILL_UP_>(all, 1);
    inclusive = all;
  }
  template <class rill_operation>
  RILL_NAMED_ void Scan(RillT v, RillT &inclusive, RillT &exclusive, RillT initial, rill_operation operation) {
    RillT all = v, before = v;
    Scan(v, all, before, operation);
    inclusive = operation(initial, all);
    exclusive = rill_group().rill_lane_ == 0 ? initial : operation(initial, before);
  }
  template <class rill_operation> RILL_NAMED_ void ExclusiveScan(RillT v, RillT &out, rill_operation operation) {
    RillT all = v;
    Scan(v, all, out, operation);
  }
  template <class rill_operation>
  RILL_NAMED_ void ExclusiveScan(RillT v, RillT &out, RillT initial, rill_operation operation) {
    RillT all = v;
    Scan(v, all, out, initial, operation);
  }
  template <class rill_operation>
  RILL_NAMED_ void ExclusiveScan(RillT v, RillT &out, rill_operation operation, RillT &aggregate) {
    RillT all = v;
    Scan(v, all, out, operation);
    aggregate = Broadcast(all, static_cast<unsigned>(rill_lanes) - 1);
  }
  template <class rill_operation>
  RILL_NAMED_ void ExclusiveScan(RillT v, RillT &out, RillT initial, rill_operation operation, RillT &aggregate) {
    RillT all = v, before = v;
    Scan(v, all, before, operation);
    out = rill_group().rill_lane_ == 0 ? initial : operation(initial, before);
    aggregate = Broadcast(all, static_cast<unsigned>(rill_lanes) - 1);
  }
  RILL_NAMED_ void InclusiveSum(RillT v, RillT &out) { InclusiveScan(v, out, cub::Sum()); }
  RILL_NAMED_ void InclusiveSum(RillT v, RillT &out, RillT &aggregate) { InclusiveScan(v, out, cub::Sum(), aggregate); }
  RILL_NAMED_ void ExclusiveSum(RillT v, RillT &out) { ExclusiveScan(v, out, RillT{}, cub::Sum()); }
  RILL_NAMED_ void ExclusiveSum(RillT v, RillT &out, RillT &aggregate) {
    ExclusiveScan(v, out, RillT{}, cub::Sum(), aggregate);
  }
};

/* ---- blocks ---- */

/* The caller's position in a block of this shape. */
template <int rill_x, int rill_y, int rill_z> struct rill_place_ {
  static constexpr unsigned rill_threads_ = static_cast<unsigned>(rill_x) * rill_y * rill_z;
  static constexpr unsigned rill_warps_ = (rill_threads_ + 31) / 32;
  unsigned rill_thread_, rill_warp_, rill_there_; /* rill_there_: lanes of the warp that are in the block */
  RILL_NAMED_ rill_place_()
      : rill_thread_((threadIdx.z * rill_y + threadIdx.y) * rill_x + threadIdx.x), rill_warp_(rill_thread_ / 32),
        rill_there_(rill_warp_ + 1 < rill_warps_ ? 32 : rill_threads_ - 32 * (rill_warps_ - 1)) {}
};

template <class RillT, int rill_x, BlockReduceAlgorithm rill_algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int rill_y = 1,
          int rill_z = 1, int rill_arch = 0>
class BlockReduce {
  using rill_place = rill_place_<rill_x, rill_y, rill_z>;

public:
  using TempStorage = rill_room_<RillT, rill_place::rill_warps_>;
  RILL_NAMED_ explicit BlockReduce(TempStorage &temp) : rill_of_warp_(temp.rill_values_()) {}

  template <class rill_operation> RILL_NAMED_ RillT Reduce(RillT v, rill_operation operation, int num_valid) {
    const rill_place place;
    const unsigned valid = static_cast<unsigned>(num_valid), first = 32 * place.rill_warp_;
    const rill_group_<32> warp(place.rill_there_);
    const unsigned left = valid > first ? valid - first : 0;
    v = warp.rill_reduce_(v, operation, left < 32 ? left : 32);
    if (warp.rill_lane_ == 0) rill_of_warp_[place.rill_warp_] = v;
    __syncthreads();
    if (place.rill_thread_ == 0)
      for (unsigned i = 1; 32 * i < valid; i++) v = operation(v, rill_of_warp_[i]);
    return v;
  }
  template <class rill_operation> RILL_NAMED_ RillT Reduce(RillT v, rill_operation operation) {
    return Reduce(v, operation, static_cast<int>(rill_place::rill_threads_));
  }
  template <int rill_count, class rill_operation>
  RILL_NAMED_ RillT Reduce(RillT (&items)[rill_count], rill_operation operation) {
    return Reduce(rill_reduce_items_(items, operation), operation);
  }
  RILL_NAMED_ RillT Sum(RillT v) { return Reduce(v, cub::Sum()); }
  RILL_NAMED_ RillT Sum(RillT v, int num_valid) { return Reduce(v, cub::Sum(), num_valid); }
  template <int rill_count> RILL_NAMED_ RillT Sum(RillT (&items)[rill_count]) { return Reduce(items, cub::Sum()); }

private:
  RillT *rill_of_warp_;
};

/* The prefix of the first thread's values: none, a value, or the result of a function of the block's aggregate. */
struct rill_no_start_ {
  static constexpr bool rill_is_there_ = false;
};
template <class RillT> struct rill_start_ {
  static constexpr bool rill_is_there_ = true;
  RillT rill_value_;
};
template <class rill_prefix> struct rill_start_by_ {
  static constexpr bool rill_is_there_ = true;
  rill_prefix &rill_function_;
};

template <class RillT, int rill_x, BlockScanAlgorithm rill_algorithm = BLOCK_SCAN_RAKING, int rill_y = 1,
          int rill_z = 1, int rill_arch = 0>
class BlockScan {
  using rill_place = rill_place_<rill_x, rill_y, rill_z>;
  static constexpr unsigned rill_warps = rill_place::rill_warps_;
  template <int rill_count> using rill_items = RillT[rill_count];

public:
  using TempStorage = rill_room_<RillT, rill_warps + 1>; /* one value per warp, and the prefix */
  RILL_NAMED_ explicit BlockScan(TempStorage &temp) : rill_of_warp_(temp.rill_values_()) {}

#define RILL_AS_ARRAY_(V) reinterpret_cast<RillT(&)[1]>(V)
#define RILL_AS_IT_IS_(V) V
/* Defines scans for one value or an array per thread. Without an initial value thread 0's first exclusive result is
 * undefined. The aggregate does not include the initial value. */
#define RILL_SCAN_(NAME, INCLUSIVE, HEAD, IN, OUT, AS)                                                   \
  template <HEAD class rill_operation> RILL_NAMED_ void NAME(IN in, OUT out, rill_operation operation) { \
    rill_scan_<INCLUSIVE>(AS(in), AS(out), operation, rill_no_start_());                                 \
  }                                                                                                      \
  template <HEAD class rill_operation>                                                                   \
  RILL_NAMED_ void NAME(IN in, OUT out, rill_operation operation, RillT &aggregate) {                    \
    aggregate = rill_scan_<INCLUSIVE>(AS(in), AS(out), operation, rill_no_start_());                     \
  }                                                                                                      \
  template <HEAD class rill_operation, class rill_prefix>                                                \
  RILL_NAMED_ void NAME(IN in, OUT out, rill_operation operation, rill_prefix &prefix) {                 \
    rill_scan_<INCLUSIVE>(AS(in), AS(out), operation, rill_start_by_<rill_prefix>{ prefix });            \
  }                                                                                                      \
  template <HEAD class rill_operation>                                                                   \
  RILL_NAMED_ void NAME(IN in, OUT out, RillT initial, rill_operation operation) {                       \
    rill_scan_<INCLUSIVE>(AS(in), AS(out), operation, rill_start_<RillT>{ initial });                    \
  }                                                                                                      \
  template <HEAD class rill_operation>                                                                   \
  RILL_NAMED_ void NAME(IN in, OUT out, RillT initial, rill_operation operation, RillT &aggregate) {     \
    aggregate = rill_scan_<INCLUSIVE>(AS(in), AS(out), operation, rill_start_<RillT>{ initial });        \
  }
#define RILL_SUM_(NAME, INCLUSIVE, START, HEAD, IN, OUT, AS)                                          \
  template <HEAD class rill_sum = cub::Sum> RILL_NAMED_ void NAME(IN in, OUT out) {                   \
    rill_scan_<INCLUSIVE>(AS(in), AS(out), rill_sum(), START);                                        \
  }                                                                                                   \
  template <HEAD class rill_sum = cub::Sum> RILL_NAMED_ void NAME(IN in, OUT out, RillT &aggregate) { \
    aggregate = rill_scan_<INCLUSIVE>(AS(in), AS(out), rill_sum(), START);                            \
  }                                                                                                   \
  template <HEAD class rill_prefix> RILL_NAMED_ void NAME(IN in, OUT out, rill_prefix &prefix) {      \
    rill_scan_<INCLUSIVE>(AS(in), AS(out), cub::Sum(), rill_start_by_<rill_prefix>{ prefix });        \
  }
#define RILL_ITEMS_(COUNT) rill_items<COUNT> &
#define RILL_COUNT_ int rill_count,
  RILL_SCAN_(InclusiveScan, true, , RillT, RillT &, RILL_AS_ARRAY_)
  RILL_SCAN_(InclusiveScan, true, RILL_COUNT_, RILL_ITEMS_(rill_count), RILL_ITEMS_(rill_count), RILL_AS_IT_IS_)
  RILL_SCAN_(ExclusiveScan, false, , RillT, RillT &, RILL_AS_ARRAY_)
  RILL_SCAN_(ExclusiveScan, false, RILL_COUNT_, RILL_ITEMS_(rill_count), RILL_ITEMS_(rill_count), RILL_AS_IT_IS_)
  RILL_SUM_(InclusiveSum, true, rill_no_start_(), , RillT, RillT &, RILL_AS_ARRAY_)
  RILL_SUM_(InclusiveSum, true, rill_no_start_(), RILL_COUNT_, RILL_ITEMS_(rill_count), RILL_ITEMS_(rill_count),
            RILL_AS_IT_IS_)
  RILL_SUM_(ExclusiveSum, false, (rill_start_<RillT>{ RillT{} }), , RillT, RillT &, RILL_AS_ARRAY_)
  RILL_SUM_(ExclusiveSum, false, (rill_start_<RillT>{ RillT{} }), RILL_COUNT_, RILL_ITEMS_(rill_count),
            RILL_ITEMS_(rill_count), RILL_AS_IT_IS_)
#undef RILL_COUNT_
#undef RILL_ITEMS_
#undef RILL_SUM_
#undef RILL_SCAN_
#undef RILL_AS_IT_IS_
#undef RILL_AS_ARRAY_

private:
  RillT *rill_of_warp_;

  RILL_NAMED_ RillT rill_first_(rill_start_<RillT> start, const RillT &) { return start.rill_value_; }
  /* The first warp calls the function, and thread 0's result is the block's prefix. */
  template <class rill_prefix>
  RILL_NAMED_ RillT rill_first_(rill_start_by_<rill_prefix> start, const RillT &aggregate) {
    const rill_place place;
    if (place.rill_warp_ == 0) {
      const RillT prefix = start.rill_function_(aggregate);
      if (place.rill_thread_ == 0) rill_of_warp_[rill_warps] = prefix;
    }
    __syncthreads();
    return rill_of_warp_[rill_warps];
  }

  /* Returns the block's aggregate. */
  template <bool rill_inclusive, int rill_count, class rill_operation, class rill_start>
  RILL_NAMED_ RillT rill_scan_(RillT (&in)[rill_count], RillT (&out)[rill_count], rill_operation operation,
                               rill_start start) {
    const rill_place place;
    const rill_group_<32> warp(place.rill_there_);
    const RillT all = warp.rill_scan_(rill_reduce_items_(in, operation), operation);
    RillT before = warp.template rill_move_<RILL_UP_>(all, 1);
    if (warp.rill_lane_ == place.rill_there_ - 1) rill_of_warp_[place.rill_warp_] = all;
    __syncthreads();
    RillT aggregate = rill_of_warp_[0];
    for (unsigned i = 1; i < rill_warps; i++) {
      if (i == place.rill_warp_) before = warp.rill_lane_ == 0 ? aggregate : operation(aggregate, before);
      aggregate = operation(aggregate, rill_of_warp_[i]);
    }
    bool there = place.rill_thread_ != 0; /* true if a value precedes the thread's first value */
    if constexpr (rill_start::rill_is_there_) {
      const RillT first = rill_first_(start, aggregate);
      before = there ? operation(first, before) : first;
      there = true;
    }
    for (int i = 0; i < rill_count; i++) {
      const RillT upto = there ? operation(before, in[i]) : in[i];
      out[i] = rill_inclusive ? upto : before;
      before = upto;
      there = true;
    }
    return aggregate;
  }
};

/* ---- loads and stores of items ---- */

/* Returns the index of a thread's item among the items of the block. */
template <unsigned rill_threads, int rill_count, bool rill_striped>
RILL_NAME_ int rill_item_(unsigned thread, int item) {
  return rill_striped ? item * static_cast<int>(rill_threads) + static_cast<int>(thread)
                      : static_cast<int>(thread) * rill_count + item;
}

template <class RillT, int rill_x, int rill_count, BlockLoadAlgorithm rill_algorithm = BLOCK_LOAD_DIRECT,
          int rill_y = 1, int rill_z = 1, int rill_arch = 0>
class BlockLoad {
  using rill_place = rill_place_<rill_x, rill_y, rill_z>;
  RILL_NAME_ int rill_at_(int item) {
    constexpr bool striped = rill_algorithm == BLOCK_LOAD_STRIPED;
    return rill_item_<rill_place::rill_threads_, rill_count, striped>(rill_place().rill_thread_, item);
  }

public:
  using TempStorage = rill_nothing_;
  RILL_NAMED_ BlockLoad() {}
  RILL_NAMED_ explicit BlockLoad(TempStorage &) {}

  template <class rill_iterator> RILL_NAMED_ void Load(rill_iterator from, RillT (&items)[rill_count]) {
    for (int i = 0; i < rill_count; i++) items[i] = from[rill_at_(i)];
  }
  /* Items after the first `valid` items of the block keep their values. */
  template <class rill_iterator> RILL_NAMED_ void Load(rill_iterator from, RillT (&items)[rill_count], int valid) {
    for (int i = 0; i < rill_count; i++)
      if (rill_at_(i) < valid) items[i] = from[rill_at_(i)];
  }
  template <class rill_iterator, class rill_other>
  RILL_NAMED_ void Load(rill_iterator from, RillT (&items)[rill_count], int valid, rill_other otherwise) {
    for (int i = 0; i < rill_count; i++) items[i] = static_cast<RillT>(otherwise);
    Load(from, items, valid);
  }
};

template <class RillT, int rill_x, int rill_count, BlockStoreAlgorithm rill_algorithm = BLOCK_STORE_DIRECT,
          int rill_y = 1, int rill_z = 1, int rill_arch = 0>
class BlockStore {
  using rill_place = rill_place_<rill_x, rill_y, rill_z>;
  RILL_NAME_ int rill_at_(int item) {
    constexpr bool striped = rill_algorithm == BLOCK_STORE_STRIPED;
    return rill_item_<rill_place::rill_threads_, rill_count, striped>(rill_place().rill_thread_, item);
  }

public:
  using TempStorage = rill_nothing_;
  RILL_NAMED_ BlockStore() {}
  RILL_NAMED_ explicit BlockStore(TempStorage &) {}

  template <class rill_iterator> RILL_NAMED_ void Store(rill_iterator to, RillT (&items)[rill_count]) {
    for (int i = 0; i < rill_count; i++) to[rill_at_(i)] = items[i];
  }
  template <class rill_iterator> RILL_NAMED_ void Store(rill_iterator to, RillT (&items)[rill_count], int valid) {
    for (int i = 0; i < rill_count; i++)
      if (rill_at_(i) < valid) to[rill_at_(i)] = items[i];
  }
};

} // namespace cub

#endif
