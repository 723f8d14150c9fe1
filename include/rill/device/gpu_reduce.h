/* rill/device/gpu_reduce.h: reductions on GPUs, by shuffles and shared memory.  Included by rill/device/reduce.h. */
#ifndef RILL_DEVICE_GPU_REDUCE_H
#define RILL_DEVICE_GPU_REDUCE_H

/* After each step all lanes of a group of 2 * step lanes have the same result for the group. */
template <class Operation, class T>
static __device__ __forceinline__ T rill_reduce_lanes_(T v, unsigned long long live) {
  const unsigned lane = rill_lane(), lanes = rill_warp_size();
  if (live == ~0ull >> (64 - lanes)) {
    for (unsigned step = 1; step < lanes; step *= 2) {
      const T other = rill_value_of_(v, lane ^ step);
      v = (lane & step) != 0 ? Operation::of(other, v) : Operation::of(v, other);
    }
    return v;
  }
  for (unsigned step = 1; step < lanes; step *= 2) {
    /* Every lane of the other group has the result of that group. */
    unsigned from = lane ^ step;
    const unsigned first = from & ~(step - 1);
    if ((live >> from & 1) == 0)
      for (from = first; from < first + step && (live >> from & 1) == 0;) from++;
    const bool there = from < first + step;
    const T other = rill_value_of_(v, there ? from : lane);
    if (there) v = (lane & step) != 0 ? Operation::of(other, v) : Operation::of(v, other);
  }
  return v;
}
template <class Operation, class T> static __device__ __forceinline__ T rill_warp_reduce_(T v) {
  return rill_reduce_lanes_<Operation>(v, rill_ballot(true));
}

/* The results of the warps are read between the two barriers, and the block's result after the second barrier. The
 * next call therefore overwrites nothing that is still read. */
template <class Operation, class T> static __device__ inline T rill_block_reduce_(T v) {
  __shared__ T of_warp[32], of_block;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z, lanes = rill_warp_size(), lane = rill_lane();
  const unsigned warps = (threads + lanes - 1) / lanes, warp = thread / lanes;
  const unsigned long long live = rill_ballot(true);
  const bool lowest = (live & ((1ull << lane) - 1)) == 0;
  v = rill_reduce_lanes_<Operation>(v, live);
  if (lowest) of_warp[warp] = v;
  if (static_cast<unsigned>(__syncthreads_count(1)) == threads) {
    /* If there are several warps, the first warp has all its lanes. */
    if (warp == 0) {
      T sum = of_warp[lane < warps ? lane : 0];
      for (unsigned step = 1; step < warps; step *= 2) {
        const T other = rill_value_of_(sum, lane ^ step);
        if ((lane ^ step) < warps) sum = (lane & step) != 0 ? Operation::of(other, sum) : Operation::of(sum, other);
      }
      if (lane == 0) of_block = sum;
    }
    __syncthreads();
    return of_block;
  }
  /* Some threads have exited, possibly whole warps. */
  unsigned live_warps = 0, first = 0;
  for (unsigned i = 0; i < warps; i++) live_warps |= (__syncthreads_or(warp == i) != 0 ? 1u : 0u) << i;
  while ((live_warps >> first & 1) == 0) first++;
  if (warp == first && lowest) {
    unsigned char there[32];
    for (unsigned i = 0; i < warps; i++) there[i] = live_warps >> i & 1;
    of_block = rill_reduce_some_<Operation>(of_warp, there, warps);
  }
  __syncthreads();
  return of_block;
}

#endif
