/* rill/device/host_schedule.h: run-time functions for the loops that rillcc makes from the regions of a kernel.
 * Included by rill/device/host_regions.h.
 *
 * If it is not known that all threads of a block continue in the same region, the array `next` has the number of the
 * next region of each thread. The functions here select the region that runs next, and its threads.
 */
#ifndef RILL_DEVICE_HOST_SCHEDULE_H
#define RILL_DEVICE_HOST_SCHEDULE_H

/* Values in `next`: a region, with WAITS if the thread must wait for others before it continues, or ENDED. */
enum { RILL_SCHED_WAITS = 0x8000, RILL_SCHED_ACTS = 0x4000, RILL_SCHED_ENDED = 0xffff, RILL_SCHED_NUMBER = 0x3fff };
/* Conditions for entering a region: none (FREE), the block at any barrier, the lanes of a warp, or those lanes of the
 * warp that can arrive (ANY). TOGETHER: all threads must have arrived. */
enum {
  RILL_SCHED_FREE = 0,
  RILL_SCHED_BARRIER = 1,
  RILL_SCHED_WARP = 2,
  RILL_SCHED_WARP_ANY = 3,
  RILL_SCHED_TOGETHER = 8
};

extern "C" {
RILL_USED_ void rill_sched_begin(uint16_t *next, unsigned threads) {
  for (unsigned t = 0; t < threads; t++) next[t] = 0;
}

/* Returns the first thread from t on whose value is (or is not) `number`, or `threads` if there is none. */
static inline unsigned rill_sched_seek(const uint16_t *next, unsigned threads, unsigned t, unsigned number, bool is) {
  for (; t + 32 <= threads; t += 32) { /* vectors */
    bool found = false;
    for (unsigned l = 0; l < 32; l++) found |= (next[t + l] == number) == is;
    if (found) break;
  }
  while (t < threads && (next[t] == number) != is) t++;
  return t;
}

/* Finds the next contiguous range of threads from `from` on that have not exited. Returns 0 if there is none. */
RILL_USED_ unsigned rill_sched_find(const uint16_t *next, unsigned threads, unsigned from, unsigned *first,
                                    unsigned *end) {
  *first = rill_sched_seek(next, threads, from, RILL_SCHED_ENDED, false);
  *end = rill_sched_seek(next, threads, *first, RILL_SCHED_ENDED, true);
  return *first < *end;
}
RILL_USED_ void rill_sched_first(const uint16_t *next, unsigned threads, unsigned *first, unsigned *end,
                                 const bool *all) {
  *first = 0;
  *end = threads;
  if (!*all) rill_sched_find(next, threads, 0, first, end);
}
RILL_USED_ unsigned rill_sched_more(const uint16_t *next, unsigned threads, unsigned *first, unsigned *end,
                                    const bool *all) {
  return *all ? 0 : rill_sched_find(next, threads, *end, first, end);
}

/* Returns the number of threads that have not exited. */
RILL_USED_ unsigned rill_sched_left(const uint16_t *next, unsigned threads, bool *all) {
  unsigned left = 0;
  for (unsigned t = 0; t < threads; t++) left += next[t] != RILL_SCHED_ENDED;
  *all = left == threads;
  return left;
}

/* Returns the array that selects the threads that take part; nullptr selects all. */
RILL_USED_ const uint16_t *rill_sched_those(const uint16_t *next, const bool *all) { return *all ? nullptr : next; }
/* Returns whether the range consists of whole warps whose lanes are all in the same call. Lanes with different masks
 * may be in different iterations of a loop. Without masks, all lanes of the warp make the call. */
RILL_USED_ unsigned rill_sched_is_warps(unsigned first, unsigned end, unsigned threads, const uint32_t *masks) {
  if (first % 32 != 0 || (end % 32 != 0 && end != threads)) return 0;
  bool same = true;
  if (masks != nullptr)
    for (unsigned t = first; t < end; t++) same &= masks[t] == masks[t & ~31u];
  return same;
}
/* Returns whether the threads from first to end are whole warps and contain all threads that have not exited. */
RILL_USED_ unsigned rill_sched_full_warps(const uint16_t *next, unsigned threads, unsigned first, unsigned end,
                                          const bool *all) {
  if (first % 32 != 0 || end % 32 != 0) return 0;
  return *all || rill_sched_seek(next, threads, end, RILL_SCHED_ENDED, false) == threads;
}
RILL_USED_ void rill_sched_note(uint16_t *next, unsigned first, unsigned end, uint16_t number) {
  for (unsigned t = first; t < end; t++) next[t] = number;
}

static inline bool rill_sched_has(const uint16_t *those, unsigned t, unsigned number) {
  return those == nullptr || (number == RILL_SCHED_ENDED ? those[t] != number : those[t] == number);
}

/* Returns the lanes of a warp that take part, among the threads from first to end. */
static inline unsigned rill_sched_lanes(const uint16_t *those, unsigned warp, unsigned first, unsigned end,
                                        unsigned number) {
  const unsigned from = warp < first ? first - warp : 0, to = end - warp < 32 ? end - warp : 32;
  unsigned lanes = 0;
  if (those == nullptr) lanes = ~0u;
  else if (to == 32) /* vectors */
    for (unsigned l = 0; l < 32; l++) lanes |= (rill_sched_has(those + warp, l, number) ? 1u : 0u) << l;
  else
    for (unsigned l = from; l < to; l++) lanes |= (rill_sched_has(those + warp, l, number) ? 1u : 0u) << l;
  return lanes >> from << from & ~0u >> (32 - to);
}

RILL_USED_ void rill_sched_count(unsigned *result, unsigned each, unsigned first, unsigned end, const uint16_t *those,
                                 unsigned number, const unsigned *p, unsigned p_each) {
  unsigned count = 0;
  if (those == nullptr && p_each == 0) count = *p != 0 ? end - first : 0;
  else
    for (unsigned t = first; t < end; t++) count += rill_sched_has(those, t, number) && p[t * p_each] != 0;
  if (each == 0) *result = count;
  else
    for (unsigned t = first; t < end; t++)
      if (rill_sched_has(those, t, number)) result[t] = count;
}

RILL_USED_ void rill_sched_ballot(unsigned *result, unsigned, unsigned first, unsigned end, const uint16_t *those,
                                  unsigned number, const unsigned *p, unsigned p_each, const unsigned *, unsigned) {
  for (unsigned warp = first & ~31u; warp < end; warp += 32) {
    unsigned bits = 0;
    if (those == nullptr && warp >= first && end - warp >= 32) { /* vectors */
      for (unsigned l = 0; l < 32; l++) bits |= (p[(warp + l) * p_each] != 0 ? 1u : 0u) << l;
      for (unsigned l = 0; l < 32; l++) result[warp + l] = bits;
      continue;
    }
    for (unsigned t = warp < first ? first : warp; t < end && t < warp + 32; t++)
      if (rill_sched_has(those, t, number)) bits |= (p[t * p_each] != 0 ? 1u : 0u) << (t - warp);
    for (unsigned t = warp < first ? first : warp; t < end && t < warp + 32; t++)
      if (rill_sched_has(those, t, number)) result[t] = bits;
  }
}
RILL_USED_ void rill_sched_active(unsigned *result, unsigned each, unsigned first, unsigned end, const uint16_t *those,
                                  unsigned number) {
  const unsigned one = 1;
  rill_sched_ballot(result, each, first, end, those, number, &one, 0, nullptr, 0);
}
}

/* Shuffles whole warps whose lanes all pass the same arguments, as vectors. Returns the first thread after these
 * warps. The values have a margin of 32 values on either side (rillcc_lib/slots.py), which is read but not used. */
template <class T>
static inline unsigned rill_sched_shuffle_warps(T *__restrict result, unsigned first, unsigned end,
                                                const T *__restrict v, unsigned kind, unsigned by, unsigned width) {
  const unsigned count = (end - first) & ~31u;
  const ptrdiff_t away = by < 32 ? static_cast<ptrdiff_t>(by) : 0;
  result += first;
  v += first;
  if (kind == RILL_SHUFFLE_UP_) {
    for (unsigned t = 0; t < count; t++) {
      const T there = v[t - away], own = v[t];
      result[t] = by <= (t & (width - 1)) ? there : own;
    }
  } else if (kind == RILL_SHUFFLE_DOWN_) {
    for (unsigned t = 0; t < count; t++) {
      const T there = v[t + away], own = v[t];
      result[t] = by < width - (t & (width - 1)) ? there : own;
    }
  } else if (kind == RILL_SHUFFLE_XOR_ && by < width && (by & (by - 1)) == 0) {
    for (unsigned t = 0; t < count; t++) {
      const T above = v[t + away], below = v[t - away];
      result[t] = (t & by) != 0 ? below : above;
    }
  } else {
    unsigned sources[32];
    for (unsigned l = 0; l < 32; l++) sources[l] = rill_shuffle_source(l, kind, by, width);
    for (unsigned warp = 0; warp < count; warp += 32)
      for (unsigned l = 0; l < 32; l++) result[warp + l] = v[warp + sources[l]];
  }
  return first + count;
}

template <class T>
static inline void rill_sched_shuffle(T *result, unsigned first, unsigned end, const uint16_t *those, unsigned number,
                                      const T *v, unsigned v_each, const unsigned *kind, const unsigned *by,
                                      unsigned by_each, const unsigned *width, unsigned width_each) {
  unsigned done = first;
  if (those == nullptr && v_each == 1 && by_each == 0 && width_each == 0 && first % 32 == 0)
    done = rill_sched_shuffle_warps(result, first, end, v, *kind, *by, *width < 32 ? *width : 32);
  for (unsigned warp = done & ~31u; warp < end; warp += 32) {
    const unsigned live = rill_sched_lanes(those, warp, done, end, number);
    if (live == 0) continue;
    if (live == ~0u && v_each == 1 && by_each == 0 && width_each == 0) {
      rill_sched_shuffle_warps(result, warp, warp + 32, v, *kind, *by, *width < 32 ? *width : 32);
      continue;
    }
    for (unsigned left = live; left != 0; left &= left - 1) {
      const unsigned l = static_cast<unsigned>(__builtin_ctz(left)), t = warp + l;
      const unsigned from = rill_shuffle_source(l, *kind, by[t * by_each], width[t * width_each]);
      result[t] = v[((live >> from & 1) != 0 ? warp + from : t) * v_each];
    }
  }
}
extern "C" {
RILL_USED_ void rill_sched_shuffle32(unsigned *result, unsigned, unsigned first, unsigned end, const uint16_t *those,
                                     unsigned number, const unsigned *v, unsigned v_each, const unsigned *kind,
                                     unsigned, const unsigned *by, unsigned by_each, const unsigned *width,
                                     unsigned width_each, const unsigned *, unsigned) {
  rill_sched_shuffle(result, first, end, those, number, v, v_each, kind, by, by_each, width, width_each);
}
RILL_USED_ void rill_sched_shuffle64(unsigned long long *result, unsigned, unsigned first, unsigned end,
                                     const uint16_t *those, unsigned number, const unsigned long long *v,
                                     unsigned v_each, const unsigned *kind, unsigned, const unsigned *by,
                                     unsigned by_each, const unsigned *width, unsigned width_each, const unsigned *,
                                     unsigned) {
  rill_sched_shuffle(result, first, end, those, number, v, v_each, kind, by, by_each, width, width_each);
}
}
/* Reduces the values of each lane's mask over the lanes that take part. Lanes of one warp may have different
 * masks. */
template <class T>
static __forceinline__ void
rill_sched_reduce(T *result, unsigned first, unsigned end, const uint16_t *those, unsigned number, const T *v,
                  unsigned v_each, T (*reduce)(const T *, unsigned), const unsigned *mask, unsigned mask_each) {
  const bool all = those == nullptr && v_each == 1 && mask_each == 0 && *mask == ~0u;
  for (unsigned warp = first & ~31u; warp < end; warp += 32) {
    const unsigned from = warp < first ? first : warp, to = end - warp < 32 ? end : warp + 32;
    if (all && to - from == 32) {
      const T reduced = reduce(v + warp, ~0u);
      for (unsigned l = 0; l < 32; l++) result[warp + l] = reduced;
      continue;
    }
    T values[32] = {};
    unsigned live = 0;
    for (unsigned t = from; t < to; t++) {
      live |= (rill_sched_has(those, t, number) ? 1u : 0u) << (t - warp);
      values[t - warp] = v[t * v_each];
    }
    for (unsigned left = live; left != 0;) {
      const unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
      const unsigned group = (mask[(warp + lane) * mask_each] | 1u << lane) & live;
      const T reduced = reduce(values, group);
      for (unsigned l = 0; l < 32; l++)
        if ((group & left) >> l & 1) result[warp + l] = reduced;
      left &= ~group;
    }
  }
}
extern "C" {
RILL_USED_ void rill_sched_reduce32(unsigned *result, unsigned, unsigned first, unsigned end, const uint16_t *those,
                                    unsigned number, const unsigned *v, unsigned v_each,
                                    unsigned (*const *reduce)(const unsigned *, unsigned), unsigned,
                                    const unsigned *mask, unsigned mask_each) {
  rill_sched_reduce(result, first, end, those, number, v, v_each, *reduce, mask, mask_each);
}
RILL_USED_ void rill_sched_reduce64(unsigned long long *result, unsigned, unsigned first, unsigned end,
                                    const uint16_t *those, unsigned number, const unsigned long long *v,
                                    unsigned v_each,
                                    unsigned long long (*const *reduce)(const unsigned long long *, unsigned), unsigned,
                                    const unsigned *mask, unsigned mask_each) {
  rill_sched_reduce(result, first, end, those, number, v, v_each, *reduce, mask, mask_each);
}

/* Releases threads whose condition is met. Returns the number of their region, or -1 in a deadlock. If several warps
 * wait in the same region, all of them are released. */
static int rill_sched_release(uint16_t *next, unsigned threads, const uint8_t *waits, const uint32_t *masks) {
  bool all_wait = true, same = true;
  int any = -1, released = -1;
  for (unsigned warp = 0; warp < threads; warp += 32) {
    const unsigned lanes = threads - warp < 32 ? threads - warp : 32;
    unsigned live = 0;
    for (unsigned l = 0; l < lanes; l++) live |= (next[warp + l] != RILL_SCHED_ENDED ? 1u : 0u) << l;
    for (unsigned left = live; left != 0;) {
      const unsigned l = static_cast<unsigned>(__builtin_ctz(left)), at = next[warp + l];
      if (any >= 0 && static_cast<unsigned>(any) != at) same = false;
      any = static_cast<int>(at);
      unsigned there = 0;
      for (unsigned k = 0; k < lanes; k++) there |= (next[warp + k] == at ? 1u : 0u) << k;
      const unsigned kind = waits[at & RILL_SCHED_NUMBER];
      if (kind != RILL_SCHED_BARRIER) all_wait = false;
      const bool masked = masks != nullptr && kind == RILL_SCHED_WARP;
      for (unsigned rest = masked ? there : 0; rest != 0; rest &= rest - 1) { /* only these have stored a mask */
        const unsigned k = static_cast<unsigned>(__builtin_ctz(rest));
        if (masks[warp + k] != masks[warp + l]) there &= ~(1u << k); /* is in another call or iteration */
      }
      left &= ~there;
      if (kind != RILL_SCHED_WARP && kind != RILL_SCHED_WARP_ANY) continue;
      const unsigned wanted = kind == RILL_SCHED_WARP_ANY ? 0 : masked ? live & masks[warp + l] : live;
      if ((wanted & ~there) != 0) continue;
      if (released >= 0 && static_cast<unsigned>(released) != at) continue;
      released = static_cast<int>(at);
      for (unsigned k = 0; k < lanes; k++)
        if (there >> k & 1) next[warp + k] = static_cast<uint16_t>(at & ~RILL_SCHED_WAITS);
      break;
    }
  }
  if (released >= 0) return (released & RILL_SCHED_NUMBER) | RILL_SCHED_ACTS;
  if (any < 0 || !(all_wait || (same && (waits[any & RILL_SCHED_NUMBER] & RILL_SCHED_TOGETHER)))) return -1;
  for (unsigned t = 0; t < threads; t++)
    if (next[t] != RILL_SCHED_ENDED) next[t] = static_cast<uint16_t>(next[t] & ~RILL_SCHED_WAITS);
  return (any & RILL_SCHED_NUMBER) | RILL_SCHED_ACTS;
}

/* Called by each function that divides integers, before it returns (rillcc_lib/divisions.py). Has no effect on
 * AArch64, where a division by zero raises no exception. */
RILL_USED_ void rill_check_division(bool by_zero) {
  if (!by_zero) return;
#if defined(__x86_64__)
  unsigned quotient = 1, remainder = 0;
  __asm__ volatile("divl %2" : "+a"(quotient), "+d"(remainder) : "r"(0)); /* raises the exception */
#endif
}

/* Selects the region that runs next and its first range of threads. Returns ENDED if no threads are left. */
RILL_USED_ unsigned rill_sched_next(uint16_t *next, unsigned threads, const uint8_t *waits, const uint32_t *masks,
                                    unsigned *first, unsigned *end, bool *all) {
  int found = -1;
  unsigned left = 0, waiting = 0;
  for (unsigned t = 0; t < threads; t++) {
    left += next[t] != RILL_SCHED_ENDED;
    waiting += (next[t] & RILL_SCHED_WAITS) != 0;
  }
  if (waiting < threads) {
    unsigned t = 0;
    while ((next[t] & RILL_SCHED_WAITS) != 0) t++;
    found = next[t];
  }
  *all = left == threads;
  if (left == 0) return RILL_SCHED_ENDED;
  if (found < 0) found = rill_sched_release(next, threads, waits, masks);
  if (found < 0) {
    unsigned at_barrier = 0;
    for (unsigned t = 0; t < threads; t++)
      at_barrier += next[t] != RILL_SCHED_ENDED && waits[next[t] & RILL_SCHED_NUMBER] % 8 == RILL_SCHED_BARRIER;
    rill_services->waits_for_ever(at_barrier, left - at_barrier);
    __builtin_trap();
  }
  const unsigned number = static_cast<unsigned>(found) & RILL_SCHED_NUMBER;
  *first = rill_sched_seek(next, threads, 0, number, true);
  *end = rill_sched_seek(next, threads, *first, number, false);
  return static_cast<unsigned>(found);
}
}

#endif
