/* rill/device/host_reduce.h: reductions on the CPU, in which one thread combines the values of all threads. Included
 * by rill/device/reduce.h.
 *
 * A block stays on one worker thread, so the buffer for its values is thread-local, like shared memory. */
#ifndef RILL_DEVICE_HOST_REDUCE_H
#define RILL_DEVICE_HOST_REDUCE_H

enum { RILL_REDUCE_THREADS = 1024 };

/* Reduces COUNT values, a power of two, in the order of a balanced tree. */
#if RILL_REGIONS
/* Uses vectors explicitly, one of the even and one of the odd values, because clang does not vectorize this itself.
 * All functions are inlined, so the calling convention for vectors does not matter. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpsabi"
template <class Operation> struct rill_vectors_ : Operation {};
template <> struct rill_vectors_<rill_sum_> {
  template <class V> static __forceinline__ V of(V a, V b) { return a + b; }
};
/* Has the size of the vectors that were stored, because a load of a larger vector would stall (no store forwarding). A
 * vector has two halves of HALF values each. Processors exchange values within a half faster than between halves. */
template <class T> struct rill_vector_ {
  static constexpr int COUNT = 32 / sizeof(T), HALF = COUNT / 2;
  typedef T type __attribute__((vector_size(32)));
};
template <class Operation, class V, int... I>
static __forceinline__ V rill_reduce_inside_(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int COUNT = sizeof...(I), HALF = COUNT / 2;
  return rill_vectors_<Operation>::of(
      __builtin_shufflevector(a, b, (I / HALF * HALF + I % HALF * 2 % HALF + (I % HALF * 2 < HALF ? 0 : COUNT))...),
      __builtin_shufflevector(a, b,
                              (I / HALF * HALF + I % HALF * 2 % HALF + (I % HALF * 2 < HALF ? 0 : COUNT) + 1)...));
}
template <class Operation, class V, int... I>
static __forceinline__ V rill_reduce_across_(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int COUNT = sizeof...(I), HALF = COUNT / 2;
  return rill_vectors_<Operation>::of(__builtin_shufflevector(a, b, (I < HALF ? I : I + HALF)...),
                                      __builtin_shufflevector(a, b, (I < HALF ? I + HALF : I + COUNT)...));
}
template <class Operation, class T, class V, int... I>
static __forceinline__ T rill_reduce_pairs_(V values, std::integer_sequence<int, I...>) {
  if constexpr (sizeof...(I) == 1) {
    return Operation::of(values[0], values[1]);
  } else {
    const auto pairs = rill_vectors_<Operation>::of(__builtin_shufflevector(values, values, (2 * I)...),
                                                    __builtin_shufflevector(values, values, (2 * I + 1)...));
    return rill_reduce_pairs_<Operation, T>(pairs, std::make_integer_sequence<int, sizeof...(I) / 2>{});
  }
}
template <class Operation, class T, class V, int... I>
static __forceinline__ T rill_reduce_halves_(V values, std::integer_sequence<int, I...>) {
  constexpr int HALF = sizeof...(I);
  const auto sums = rill_vectors_<Operation>::of(__builtin_shufflevector(values, values, I...),
                                                 __builtin_shufflevector(values, values, (I + HALF)...));
  return rill_reduce_pairs_<Operation, T>(sums, std::make_integer_sequence<int, HALF / 2>{});
}
/* Reduces VECTORS vectors, a power of two and at most HALF, to one. Half 0 of the result has the lower half of each
 * vector, reduced to HALF / VECTORS values, and half 1 has the upper half of each. */
template <class Operation, class T, unsigned VECTORS, class F>
static __forceinline__ typename rill_vector_<T>::type rill_reduce_inner_(F vector, unsigned first) {
  if constexpr (VECTORS == 1) {
    return vector(first);
  } else {
    return rill_reduce_inside_<Operation>(rill_reduce_inner_<Operation, T, VECTORS / 2>(vector, first),
                                          rill_reduce_inner_<Operation, T, VECTORS / 2>(vector, first + VECTORS / 2),
                                          std::make_integer_sequence<int, rill_vector_<T>::COUNT>{});
  }
}
/* Returns vector number `number` of the sums of COUNT values each, one level up in a tree of such vectors, where level
 * 0 has the values themselves. */
template <class Operation, class T, unsigned LEVEL>
static __forceinline__ typename rill_vector_<T>::type rill_reduce_level_(const T *values, unsigned number) {
  typedef typename rill_vector_<T>::type vector;
  constexpr unsigned COUNT = rill_vector_<T>::COUNT, HALF = rill_vector_<T>::HALF;
  if constexpr (LEVEL == 0) {
    vector all;
    memcpy(&all, values + number * COUNT, sizeof all);
    return all;
  } else {
    const auto below = [values](unsigned i) __attribute__((always_inline)) {
      return rill_reduce_level_<Operation, T, LEVEL - 1>(values, i);
    };
    return rill_reduce_across_<Operation>(rill_reduce_inner_<Operation, T, HALF>(below, number * COUNT),
                                          rill_reduce_inner_<Operation, T, HALF>(below, number * COUNT + HALF),
                                          std::make_integer_sequence<int, static_cast<int>(COUNT)>{});
  }
}
/* Reduces VECTORS vectors of one level. */
template <class Operation, class T, unsigned VECTORS, unsigned LEVEL = 0>
static __forceinline__ T rill_reduce_vectors_(const T *values) {
  constexpr unsigned COUNT = rill_vector_<T>::COUNT, HALF = rill_vector_<T>::HALF;
  if constexpr (VECTORS >= COUNT) {
    return rill_reduce_vectors_<Operation, T, VECTORS / COUNT, LEVEL + 1>(values);
  } else {
    static_assert(VECTORS == 1 || VECTORS == HALF,
                  "the last step reduces one vector, or the number for which halves are in order");
    const auto level = [values](unsigned i) __attribute__((always_inline)) {
      return rill_reduce_level_<Operation, T, LEVEL>(values, i);
    };
    const auto all = rill_reduce_inner_<Operation, T, VECTORS>(level, 0);
    if constexpr (VECTORS == 1) {
      return rill_reduce_pairs_<Operation, T>(all, std::make_integer_sequence<int, static_cast<int>(HALF)>{});
    } else {
      return rill_reduce_halves_<Operation, T>(all, std::make_integer_sequence<int, static_cast<int>(HALF)>{});
    }
  }
}
template <class Operation, unsigned COUNT, class T> static __forceinline__ T rill_reduce_power_(const T *values) {
  constexpr bool wraps = std::is_same_v<Operation, rill_sum_> && std::is_integral_v<T>;
  using number = typename std::conditional_t<wraps, std::make_unsigned<T>, std::enable_if<true, T>>::type;
  return static_cast<T>(rill_reduce_vectors_<Operation, number, COUNT / rill_vector_<number>::COUNT>(
      reinterpret_cast<const number *>(values)));
}
#pragma clang diagnostic pop
#else
template <class Operation, unsigned COUNT, class T> static __forceinline__ T rill_reduce_power_(const T *values) {
  if constexpr (COUNT == 1) {
    return values[0];
  } else {
    T half[COUNT / 2];
    for (unsigned i = 0; i < COUNT / 2; i++) half[i] = Operation::of(values[2 * i], values[2 * i + 1]);
    return rill_reduce_power_<Operation, COUNT / 2>(half);
  }
}
#endif

/* Reduces `count` values in the order of a balanced tree, in place. */
template <class Operation, class T> static inline T rill_reduce_each_(T *values, unsigned count) {
  for (; count > 1; count = (count + 1) / 2) {
    for (unsigned i = 0; i < count / 2; i++) values[i] = Operation::of(values[2 * i], values[2 * i + 1]);
    if (count % 2 != 0) values[count / 2] = values[count - 1];
  }
  return values[0];
}

/* Returns the same as rill_reduce_each_, but is faster if `count` is 256, the usual size of a block, or a multiple of
 * 32. */
template <class Operation, class T> static inline T rill_reduce_all_(T *values, unsigned count) {
  if (count == 256) return rill_reduce_power_<Operation, 256>(values);
  if (count % 32 != 0) return rill_reduce_each_<Operation>(values, count);
  T sums[RILL_REDUCE_THREADS / 32];
  for (unsigned i = 0; i < count / 32; i++) sums[i] = rill_reduce_power_<Operation, 32>(values + 32 * i);
  return rill_reduce_each_<Operation>(sums, count / 32);
}

/* ---- a warp ---- */

#if RILL_REGIONS
/* Reduces values that are passed as bits. */
template <class Operation, class T, class BITS> static BITS rill_reduce_lanes_(const BITS *bits, unsigned live) {
  T reduced;
  BITS result = 0;
  if (live == ~0u) {
    reduced = rill_reduce_power_<Operation, 32>(reinterpret_cast<const T *>(bits)); /* copies the values */
  } else {
    T values[32];
    unsigned char there[32];
    memcpy(values, bits, sizeof values);
    for (unsigned i = 0; i < 32; i++) there[i] = live >> i & 1;
    reduced = rill_reduce_some_<Operation>(values, there, 32);
  }
  memcpy(&result, &reduced, sizeof reduced);
  return result;
}

template <class Operation, class T> static __forceinline__ T rill_warp_reduce_(T v) {
  std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned> bits;
  memcpy(&bits, &v, sizeof v);
  if constexpr (sizeof(T) == 8)
    bits = rill_ir_reduce64(bits, &rill_reduce_lanes_<Operation, T, unsigned long long>, ~0u);
  else bits = rill_ir_reduce32(bits, &rill_reduce_lanes_<Operation, T, unsigned>, ~0u);
  memcpy(&v, &bits, sizeof v);
  return v;
}
static __forceinline__ unsigned rill_block_thread_() { return rill_ir_thread(); }
#else
template <class Operation, class T> static inline T rill_warp_reduce_(T v) {
  uint64_t bits = 0;
  memcpy(&bits, &v, sizeof v);
  const rill_cpu_warp *const warp = rill_exchange(bits, ~0ull);
  T values[64];
  unsigned char there[64];
  for (unsigned i = 0; i < 64; i++) {
    memcpy(&values[i], &warp->values[i], sizeof v);
    there[i] = warp->live >> i & 1;
  }
  return rill_reduce_some_<Operation>(values, there, rill_warp_size());
}
static inline unsigned rill_block_thread_() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
#endif

/* ---- a block ---- */

/* `there` is 1 for threads that take part, and all 0 between two reductions. */
template <class T> struct rill_reduce_room {
  T values[RILL_REDUCE_THREADS], of_block;
  unsigned char there[RILL_REDUCE_THREADS];
};
template <class T> static inline rill_reduce_room<T> *rill_reduce_room_() {
  static thread_local rill_reduce_room<T> room;
  return &room;
}

/* The result is read after the last barrier. The next call overwrites it only after its first barrier. */
template <class Operation, class T> static inline T rill_block_reduce_(T v) {
  rill_reduce_room<T> *const room = rill_reduce_room_<T>();
  const unsigned thread = rill_block_thread_(), threads = blockDim.x * blockDim.y * blockDim.z;
  room->values[thread] = v;
  if (static_cast<unsigned>(__syncthreads_count(1)) == threads) {
    if (thread == 0) room->of_block = rill_reduce_all_<Operation>(room->values, threads);
    __syncthreads();
    return room->of_block;
  }
  /* Some threads have exited. The lowest remaining thread reduces the values. Each thread clears its flag once all
   * threads have found the lowest thread. */
  room->there[thread] = 1;
  __syncthreads();
  unsigned first = 0;
  while (room->there[first] == 0) first++;
  if (thread == first) {
    unsigned char there[RILL_REDUCE_THREADS];
    memcpy(there, room->there, threads);
    room->of_block = rill_reduce_some_<Operation>(room->values, there, threads);
  }
  __syncthreads();
  room->there[thread] = 0;
  return room->of_block;
}

#endif
