/* rill/device/host_reduce.h: reductions on the cpu: the threads write their values down, and one of them goes through
 * all.  Included by rill/device/reduce.h.
 *
 * A block stays on one worker thread, so the room for the values is thread-local, like shared memory. */
#ifndef RILL_DEVICE_HOST_REDUCE_H
#define RILL_DEVICE_HOST_REDUCE_H

enum { RILL_REDUCE_THREADS = 1024, RILL_REDUCE_WARPS = RILL_REDUCE_THREADS / 32 };

/* `there` is 1 for who takes part in the block's reduction, and all 0 between two. */
template <class T> struct rill_reduce_room {
  T values[RILL_REDUCE_THREADS], others[RILL_REDUCE_THREADS], of_warp[RILL_REDUCE_WARPS], of_block;
  unsigned char there[RILL_REDUCE_THREADS];
};
template <class T> static inline rill_reduce_room<T> *rill_reduce_room_() {
  static thread_local rill_reduce_room<T> room;
  return &room;
}

/* The tree over `count` values, with `spare` room for half of them. */
template <class Operation, class T> static inline T rill_reduce_all_(T *values, T *spare, unsigned count) {
  while (count > 1) {
    const unsigned pairs = count / 2;
    for (unsigned i = 0; i < pairs; i++) spare[i] = Operation::of(values[2 * i], values[2 * i + 1]);
    if (count % 2 != 0) spare[pairs] = values[count - 1];
    count -= pairs;
    T *const last = values;
    values = spare;
    spare = last;
  }
  return values[0];
}

template <class Operation, class T> static inline T rill_reduce_room_of_(rill_reduce_room<T> *room, unsigned threads) {
  unsigned count = 0;
  for (unsigned i = 0; i < threads; i++) count += room->there[i];
  if (count == threads) return rill_reduce_all_<Operation>(room->values, room->others, threads);
  unsigned char there[RILL_REDUCE_THREADS];
  memcpy(there, room->there, threads);
  return rill_reduce_some_<Operation>(room->values, there, threads);
}

static __forceinline__ unsigned rill_block_thread_() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

template <class Operation, class T> static inline T rill_warp_reduce_(T v) {
  rill_reduce_room<T> *const room = rill_reduce_room_<T>();
  const unsigned thread = rill_block_thread_(), lanes = rill_warp_size(), lane = thread % lanes, first = thread - lane;
  room->values[thread] = v;
  const unsigned long long live = rill_ballot(true);
  if (lane == static_cast<unsigned>(__builtin_ctzll(live))) {
    T *const values = room->values + first;
    if (live == ~0ull >> (64 - lanes)) {
      room->of_warp[first / 32] = rill_reduce_all_<Operation>(values, room->others + first, lanes);
    } else {
      unsigned char there[64];
      for (unsigned i = 0; i < lanes; i++) there[i] = live >> i & 1;
      room->of_warp[first / 32] = rill_reduce_some_<Operation>(values, there, lanes);
    }
  }
  rill_warp_sync();
  return room->of_warp[first / 32];
}

/* The lowest thread that is there goes through all.  Each takes its word back when all have read who that is. */
template <class Operation, class T> static inline T rill_block_reduce_(T v) {
  rill_reduce_room<T> *const room = rill_reduce_room_<T>();
  const unsigned thread = rill_block_thread_(), threads = blockDim.x * blockDim.y * blockDim.z;
  room->values[thread] = v;
  room->there[thread] = 1;
  __syncthreads();
  unsigned first = 0;
  while (room->there[first] == 0) first++;
  if (thread == first) room->of_block = rill_reduce_room_of_<Operation>(room, threads);
  __syncthreads();
  room->there[thread] = 0;
  return room->of_block;
}

#endif
