/* rill/device/host_split.h: what rillcc's text of a kernel that is split at its barriers uses.
 * Included by rill/device/on_host.h.
 *
 * Such a kernel is a function that runs a whole block: between two barriers stands a loop over the threads.  The
 * threads of one such loop share nothing that one of them writes but by atomics (anything else is a race, on a GPU
 * too), yet no compiler is told so: private variables in memory, and races that happen to be harmless, would break.
 * Compilers find out by themselves, if need be with a look at the addresses at run time.
 */
#ifndef RILL_DEVICE_HOST_SPLIT_H
#define RILL_DEVICE_HOST_SPLIT_H

#include <type_traits>

/* A block has at most as many threads; a thread keeps at most as many bytes across barriers, so that a block's
 * fit onto the stack of a worker. */
#define RILL_SPLIT_THREADS RILL_CPU_MAX_THREADS
#define RILL_SPLIT_BYTES 1024

static __forceinline__ void rill_host_enter_thread([[maybe_unused]] const uint3 &thread) {
#if RILL_HELPERS_READ_INDEX
  threadIdx = thread;
#endif
}

/** How many threads a block has; and the compiler's knowledge that it is not many. */
static __forceinline__ ptrdiff_t rill_split_threads(const dim3 &size) {
  if (size.x > RILL_SPLIT_THREADS || size.y > RILL_SPLIT_THREADS || size.z > RILL_SPLIT_THREADS)
    __builtin_unreachable();
  return static_cast<ptrdiff_t>(size.x) * size.y * size.z;
}

/** Which threads of a row take part. */
struct rill_split_range {
  unsigned first, end;
};

/** Those with T(x) < bound. */
template <class T, class Bound> static __forceinline__ rill_split_range rill_split_below(unsigned size, Bound bound) {
  static_assert(std::is_integral_v<Bound>, "an integer");
  if (static_cast<T>(size - 1) < bound) return { 0, size };
  return { 0, bound > 0 ? static_cast<unsigned>(bound) : 0 };
}

/** Those with T(x) == bound. */
template <class T, class Bound> static __forceinline__ rill_split_range rill_split_at(unsigned size, Bound bound) {
  static_assert(std::is_integral_v<Bound>, "an integer");
  const unsigned x = static_cast<unsigned>(bound);
  return { x, x < size && static_cast<T>(x) == bound ? x + 1 : 0 };
}

template <class T>
inline constexpr bool rill_split_is_plain =
    std::is_trivially_copyable_v<T> &&std::is_trivially_default_constructible_v<T>;

template <class T> static __forceinline__ void rill_split_store(T &to, const T &from) {
  if constexpr (std::is_array_v<T>) __builtin_memcpy(&to, &from, sizeof to);
  else to = from;
}

/** Makes a mask that of what is around; nullptr: all. */
static inline void rill_split_set(unsigned char *mask, const unsigned char *around, ptrdiff_t threads) {
  for (ptrdiff_t t = 0; t < threads; t++) mask[t] = around != nullptr ? around[t] : 1;
}

static inline bool rill_split_any(const unsigned char *mask, ptrdiff_t threads) {
  unsigned char any = 0;
  for (ptrdiff_t t = 0; t < threads; t++) any |= mask[t];
  return any != 0;
}

#endif
