/* rill/device/host_check.h: the checker in images of rillcc --check. It finds races between the threads of a block,
 * barriers that not all threads reach, and accesses to memory that the kernel may not use. Included by the header
 * that runs kernels as fibers.
 *
 * The compiler's -fsanitize=thread calls a function before each memory access. These functions are defined here, and
 * the sanitizer's own library is not used. Between two barriers, two accesses of different threads to the same bytes
 * are a race if one is a write and not both are atomic, unless the threads call a function of their warp in between.
 * Writes of the same value are not a race, because CUDA allows them. rill's library knows which memory is valid.
 * rillcc_lib/sites.py creates the table that maps return addresses to source lines.
 *
 * A block runs on one worker, and its fibers switch only where they wait. The state is therefore thread-local and
 * needs no lock.
 */
#ifndef RILL_DEVICE_HOST_CHECK_H
#define RILL_DEVICE_HOST_CHECK_H

#include <stdio.h>

#ifdef __clang__
#define RILL_UNCHECKED_ __attribute__((disable_sanitizer_instrumentation))
#else
#define RILL_UNCHECKED_ __attribute__((no_sanitize("thread")))
#endif
#define RILL_UPDATE_BEGINS_(P, SIZE) (rill_check.update.at = (P), rill_check.update.size = (SIZE))
#define RILL_UPDATE_ENDS_() (rill_check.update.at = nullptr)
#define RILL_FRAME_ static_cast<void **>(__builtin_frame_address(0))

/* The return address of a call in the source. */
struct rill_check_site {
  const void *address;
  const char *file;
  uint64_t line;
};
extern "C" __attribute__((visibility("hidden"))) const rill_check_site rill_check_sites[];
extern "C" __attribute__((visibility("hidden"))) const uint64_t rill_check_site_count;

enum { RILL_CHECK_WRITES_ = 1, RILL_CHECK_ATOMIC_ = 2, RILL_CHECK_RECORDS_ = 4, RILL_CHECK_CELLS_ = 1 << 15 };

/* An access to some of the 8 bytes of a cell; empty if it has no site. */
struct rill_check_record {
  const rill_check_site *site;
  uint32_t in_warp; /* sequence number of the last warp function of the thread; 0: none */
  uint16_t thread;
  uint8_t kind, bytes;
};
/* The accesses since the last barrier. Earlier accesses cannot race any more. */
struct rill_check_cell {
  uintptr_t address;
  uint32_t block, barriers;
  rill_check_record records[RILL_CHECK_RECORDS_];
};
struct rill_check_meeting {
  const rill_check_site *site;
  uint32_t number, count, first;
};
static thread_local struct {
  rill_check_cell cells[RILL_CHECK_CELLS_];
  struct {
    const void *address;
    const rill_check_site *site;
  } known[1024]; /* cache of return addresses */
  uint32_t block, threads;
  uintptr_t stacks[RILL_CPU_MAX_THREADS]; /* start of each thread's stack */
  uint32_t barriers[RILL_CPU_MAX_THREADS], arrived[RILL_CPU_MAX_THREADS];
  uint32_t in_warp[RILL_CPU_MAX_THREADS], in_warp_before[RILL_CPU_MAX_THREADS]; /* _before: at the last arrival */
  rill_check_meeting barrier, warps[RILL_CPU_MAX_THREADS / 32];
  struct {
    const unsigned char *at;
    unsigned char old[8];
    rill_check_record first, second;
  } twice; /* a pending write over another thread's write: a race if it changes a byte */
  struct {
    const volatile void *at; /* NULL: none */
    size_t size;
  } update; /* the atomic function in progress, which uses compare-and-exchange */
} rill_check __asm__(RILL_CPU_CHECK_STATE);

/* ---- source lines ---- */

RILL_UNCHECKED_ static const rill_check_site *rill_check_find(const void *address) {
  auto &known = rill_check.known[reinterpret_cast<uintptr_t>(address) / 4 % 1024];
  if (known.address == address) return known.site;
  const rill_check_site *found = nullptr;
  for (uint64_t i = 0; i < rill_check_site_count; i++)
    if (rill_check_sites[i].address == address) found = &rill_check_sites[i];
  known = { address, found };
  return found;
}

/* Returns the innermost call in the source, outside these headers. */
RILL_UNCHECKED_ static const rill_check_site *rill_check_place(void **frame) {
  const rill_check_site *site = nullptr;
  for (int i = 0; i < 12 && site == nullptr && frame != nullptr; i++) {
    site = rill_check_find(frame[1]);
    void **const next = static_cast<void **>(frame[0]);
    frame = next > frame ? next : nullptr;
  }
  return site;
}

RILL_UNCHECKED_ static bool rill_check_same_place(const rill_check_site *a, const rill_check_site *b) {
  return a == b || (a != nullptr && b != nullptr && a->line == b->line && __builtin_strcmp(a->file, b->file) == 0);
}

RILL_UNCHECKED_ static uint32_t rill_check_thread() {
  return (RILL_HERE_(thread).z * RILL_HERE_(block_dim).y + RILL_HERE_(thread).y) * RILL_HERE_(block_dim).x +
         RILL_HERE_(thread).x;
}

/* ---- reports ----  */

struct rill_check_text {
  char name[48];
};
RILL_UNCHECKED_ static rill_check_text rill_check_name(uint32_t thread) {
  const uint32_t x = RILL_HERE_(block_dim).x, y = RILL_HERE_(block_dim).y;
  rill_check_text text;
  snprintf(text.name, sizeof text.name, "thread (%u, %u, %u)", thread % x, thread / x % y, thread / x / y);
  return text;
}

RILL_UNCHECKED_ static void rill_check_found(const rill_check_site *site, const char *text) {
  const uint32_t block[3] = { RILL_HERE_(block).x, RILL_HERE_(block).y, RILL_HERE_(block).z };
  rill_services->check_failed(site != nullptr ? site->file : "?",
                              site != nullptr ? static_cast<uint32_t>(site->line) : 0, block, text);
  __builtin_trap();
}

RILL_UNCHECKED_ static const char *rill_check_verb(const rill_check_record &record) {
  if (record.kind & RILL_CHECK_ATOMIC_) return "has an atomic operation on";
  return record.kind & RILL_CHECK_WRITES_ ? "writes" : "reads";
}

RILL_UNCHECKED_ static void rill_check_race(const rill_check_record &first, const rill_check_record &second) {
  char text[512];
  snprintf(text, sizeof text, "a race: %s %s what %s %s at %s:%u, with no barrier between",
           rill_check_name(second.thread).name, rill_check_verb(second), rill_check_name(first.thread).name,
           rill_check_verb(first), first.site->file, static_cast<unsigned>(first.site->line));
  rill_check_found(second.site, text);
}

/* Reports a race if the pending write has changed a byte. */
RILL_UNCHECKED_ static void rill_check_settle() {
  auto &twice = rill_check.twice;
  if (twice.at == nullptr) return;
  const unsigned char *const at = twice.at;
  twice.at = nullptr;
  for (unsigned i = 0; i < 8; i++)
    if ((twice.first.bytes & twice.second.bytes) >> i & 1 && at[i] != twice.old[i])
      rill_check_race(twice.first, twice.second);
}

/* ---- accesses ---- */

RILL_UNCHECKED_ static rill_check_cell *rill_check_cell_of(uintptr_t address, uint32_t barriers) {
  const uintptr_t hash = (address >> 3) * 0x9e3779b97f4a7c15u >> 20;
  rill_check_cell *cell = nullptr;
  for (unsigned i = 0; i < 32; i++) {
    cell = &rill_check.cells[(hash + i) % RILL_CHECK_CELLS_];
    const bool old = cell->block != rill_check.block || cell->barriers != barriers;
    if (!old && cell->address == address) return cell;
    if (old) break;
  }
  *cell = { address, rill_check.block, barriers, {} }; /* if all cells are in use, one is overwritten */
  return cell;
}

/* Keeps two readers of the same bytes, from different warps if possible. */
RILL_UNCHECKED_ static void rill_check_keep(rill_check_cell *cell, const rill_check_record &now) {
  rill_check_record *place = nullptr, *reader = nullptr;
  unsigned readers = 0;
  for (auto &record : cell->records) {
    if (record.site == nullptr) {
      place = place == nullptr ? &record : place;
      continue;
    }
    if (record.thread == now.thread && record.kind == now.kind && record.bytes == now.bytes) return void(record = now);
    if (record.kind != 0) continue;
    readers += record.bytes == now.bytes;
    if (reader == nullptr || record.thread / 32 == now.thread / 32) reader = &record;
  }
  if (now.kind == 0 && readers >= 2) {
    if (reader->thread / 32 == now.thread / 32) *reader = now;
  } else if (place != nullptr || reader != nullptr) {
    *(place != nullptr ? place : reader) = now;
  }
}

RILL_UNCHECKED_ static void rill_check_bytes(uintptr_t address, const rill_check_record &now) {
  const uint32_t barriers = rill_check.barriers[now.thread];
  rill_check_cell *const cell = rill_check_cell_of(address, barriers);
  for (auto &record : cell->records) {
    if (record.site == nullptr || record.thread == now.thread || (record.bytes & now.bytes) == 0) continue;
    if (((record.kind | now.kind) & RILL_CHECK_WRITES_) == 0 || (record.kind & now.kind & RILL_CHECK_ATOMIC_) != 0)
      continue;
    if (record.thread / 32 == now.thread / 32 && record.in_warp < now.in_warp) continue;
    if (record.kind == RILL_CHECK_WRITES_ && now.kind == RILL_CHECK_WRITES_) {
      rill_check.twice.at = reinterpret_cast<const unsigned char *>(address);
      for (unsigned i = 0; i < 8; i++)
        if (now.bytes >> i & 1) rill_check.twice.old[i] = rill_check.twice.at[i];
      rill_check.twice.first = record;
      rill_check.twice.second = now;
    } else {
      rill_check_race(record, now);
    }
  }
  rill_check_keep(cell, now);
}

/* Checks an access before it happens. `of` and `how` are as in rill_cpu_services.access. */
RILL_UNCHECKED_ static void rill_check_memory(const volatile void *pointer, size_t size, const void *of,
                                              const rill_check_record &now, unsigned how) {
  const void *const at = const_cast<const void *>(pointer);
  const char *const fault = rill_services->access(at, size, of, &rill_check, how);
  if (fault == nullptr) return;
  char text[512];
  snprintf(text, sizeof text, "%s %s %llu byte%s at %p: %s", rill_check_name(now.thread).name, rill_check_verb(now),
           static_cast<unsigned long long>(size), size == 1 ? "" : "s", at, fault);
  rill_check_found(now.site, text);
}

/* Between the threads of a block, volatile accesses count as plain accesses. */
enum { RILL_CHECK_HOW_ = 15, RILL_CHECK_VOLATILE_ = 16 };
RILL_UNCHECKED_ static uint8_t rill_check_kind(unsigned how) {
  const bool writes = (how & (RILL_CPU_WRITES | RILL_CPU_UPDATES)) != 0;
  const bool atomic = (how & (RILL_CPU_UPDATES | RILL_CPU_POLLS)) != 0 && (how & RILL_CHECK_VOLATILE_) == 0;
  return static_cast<uint8_t>((writes ? RILL_CHECK_WRITES_ : 0) | (atomic ? RILL_CHECK_ATOMIC_ : 0));
}

RILL_UNCHECKED_ static void rill_check_access(const volatile void *pointer, size_t size, unsigned how, void **frame) {
  rill_check_settle();
  const uintptr_t at = reinterpret_cast<uintptr_t>(pointer);
  if (rill_check.threads == 0 || rill_check_is_own(at)) return;
  const uint32_t thread = rill_check_thread();
  if (at >= reinterpret_cast<uintptr_t>(frame) && at < rill_check.stacks[thread]) return; /* on its stack */
  rill_check_record now = { rill_check_place(frame), rill_check.in_warp[thread], static_cast<uint16_t>(thread),
                            rill_check_kind(how), 0 };
  if (now.site == nullptr) return; /* an access made by these headers */
  if (rill_check.update.at == nullptr) {
    rill_check_memory(pointer, size, nullptr, now, how & RILL_CHECK_HOW_);
  } else {
    rill_check_memory(pointer, size, nullptr, now, 0);
    rill_check_memory(rill_check.update.at, rill_check.update.size, nullptr, now, RILL_CPU_UPDATES);
  }
  for (uintptr_t cell = at & ~static_cast<uintptr_t>(7); cell < at + size; cell += 8) {
    now.bytes = 0;
    for (unsigned i = 0; i < 8; i++)
      if (cell + i >= at && cell + i < at + size) now.bytes = static_cast<uint8_t>(now.bytes | 1u << i);
    rill_check_bytes(cell, now);
  }
}

/* ---- starts and synchronization of threads ---- */

__attribute__((noinline)) RILL_UNCHECKED_ static void rill_check_enter() {
  const uint32_t thread = rill_check_thread();
  rill_check_settle();
  if (thread == 0) {
    rill_check.block++;
    rill_check.threads = RILL_HERE_(block_dim).x * RILL_HERE_(block_dim).y * RILL_HERE_(block_dim).z;
    rill_check.barrier = {};
    for (auto &warp : rill_check.warps) warp = {};
    for (uint32_t i = 0; i < rill_check.threads; i++)
      rill_check.barriers[i] = rill_check.arrived[i] = rill_check.in_warp[i] = rill_check.in_warp_before[i] = 0;
  }
  rill_check.stacks[thread] = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + 4096;
}

/* Notes that the calling thread has arrived at a barrier or at a function of its warp, after `number` earlier calls of
 * this kind. Reports an error if the first thread that arrived with this number waits at another place. */
RILL_UNCHECKED_ static void rill_check_meet(rill_check_meeting *meeting, uint32_t number, const char *what,
                                            void **frame) {
  const rill_check_site *const site = rill_check_place(frame);
  const uint32_t thread = rill_check_thread();
  if (meeting->count == 0 || meeting->number != number) *meeting = { site, number, 0, thread };
  meeting->count++;
  if (rill_check_same_place(site, meeting->site)) return;
  char text[512];
  snprintf(text, sizeof text, "%s waits in %s, %s in the one at %s:%u", rill_check_name(thread).name, what,
           rill_check_name(meeting->first).name, meeting->site != nullptr ? meeting->site->file : "?",
           meeting->site != nullptr ? static_cast<unsigned>(meeting->site->line) : 0);
  rill_check_found(site, text);
}

/* Called before a barrier or a function of the thread's warp. Lanes need to be at the same line only if all lanes
 * must take part. */
__attribute__((noinline)) RILL_UNCHECKED_ static void rill_check_arrive(bool in_warp, bool all_lanes) {
  const uint32_t thread = rill_check_thread();
  rill_check_settle();
  if (in_warp) {
    rill_check.in_warp_before[thread] = rill_check.in_warp[thread];
    if (!all_lanes) return;
    rill_check_meet(&rill_check.warps[thread / 32], rill_check.in_warp[thread], "a function of its warp", RILL_FRAME_);
  } else {
    rill_check.arrived[thread] = rill_check.barriers[thread] + 1;
    rill_check_meet(&rill_check.barrier, rill_check.barriers[thread], "a barrier", RILL_FRAME_);
  }
}

/* Called after a barrier or a warp function. `lanes` took part in the warp function together. Accesses before it are
 * ordered before accesses after it, so all these lanes continue with a number above their previous numbers. */
RILL_UNCHECKED_ static void rill_check_leave(bool in_warp, uint64_t lanes) {
  const uint32_t thread = rill_check_thread();
  if (in_warp) {
    uint32_t latest = 0;
    for (uint32_t lane = 0; lane < 32; lane++) {
      const uint32_t before = rill_check.in_warp_before[thread / 32 * 32 + lane];
      if ((lanes >> lane & 1) != 0 && before > latest) latest = before;
    }
    rill_check.in_warp[thread] = latest + 1;
    return;
  }
  const rill_check_meeting barrier = rill_check.barrier;
  const uint32_t number = rill_check.barriers[thread]++;
  if (barrier.count == 0 || barrier.number != number) return; /* not the first thread to continue */
  rill_check.barrier = {};
  if (barrier.count == rill_check.threads) return;
  uint32_t missing = 0;
  while (missing < rill_check.threads && rill_check.arrived[missing] == number + 1) missing++;
  char text[256];
  snprintf(text, sizeof text, "a barrier that %u of the block's %u threads reach: %s has ended before", barrier.count,
           rill_check.threads, rill_check_name(missing).name);
  rill_check_found(barrier.site, text);
}

/* ---- functions that the compiler calls ---- */

/* Called before an access to a variable that rillcc knows. `of` is an address in the variable. */
extern "C" __attribute__((used, noinline, visibility("hidden"))) RILL_UNCHECKED_ void
rill_check_variable(const volatile void *at, uint64_t size, const void *of, unsigned kind) {
  if (rill_check.threads == 0) return;
  const rill_check_record now = { rill_check_place(RILL_FRAME_), 0, static_cast<uint16_t>(rill_check_thread()),
                                  static_cast<uint8_t>(kind), 0 };
  if (now.site != nullptr) rill_check_memory(at, size, of, now, 0);
}

#define RILL_HOOK_(TYPE, NAME, SYMBOL, ...)                                     \
  __attribute__((used, noinline, visibility("hidden")))                         \
  RILL_UNCHECKED_ TYPE rill_hook_##NAME(__VA_ARGS__) __asm__("__tsan_" SYMBOL); \
  RILL_UNCHECKED_ TYPE rill_hook_##NAME(__VA_ARGS__)
#define RILL_ACCESS_HOOK_(NAME, SIZE, HOW) \
  RILL_HOOK_(void, NAME, #NAME, const void *at) { rill_check_access(at, SIZE, HOW, RILL_FRAME_); }
#define RILL_ACCESS_HOOKS_(PREFIX, SIZE)                                                      \
  RILL_ACCESS_HOOK_(PREFIX##read##SIZE, SIZE, RILL_CPU_READS)                                 \
  RILL_ACCESS_HOOK_(PREFIX##write##SIZE, SIZE, RILL_CPU_WRITES)                               \
  RILL_ACCESS_HOOK_(PREFIX##volatile_read##SIZE, SIZE, RILL_CPU_POLLS | RILL_CHECK_VOLATILE_) \
  RILL_ACCESS_HOOK_(PREFIX##volatile_write##SIZE, SIZE, RILL_CPU_UPDATES | RILL_CHECK_VOLATILE_)
#define RILL_ATOMIC_HOOK_(T, BITS, NAME, HOW, ...)                                             \
  RILL_HOOK_(T, atomic##BITS##_##NAME, "atomic" #BITS "_" #NAME, volatile T *p, __VA_ARGS__) { \
    rill_check_access(p, sizeof(T), (HOW), RILL_FRAME_);
#define RILL_FETCH_HOOK_(T, BITS, NAME)                                                         \
  RILL_ATOMIC_HOOK_(T, BITS, NAME, RILL_CPU_UPDATES | (v == 0 ? RILL_CPU_POLLS : 0u), T v, int) \
  return __atomic_##NAME(p, v, __ATOMIC_SEQ_CST);                                               \
  }
#define RILL_ATOMIC_HOOKS_(T, BITS)                                                                                 \
  RILL_HOOK_(T, atomic##BITS##_load, "atomic" #BITS "_load", const volatile T *p, int) {                            \
    rill_check_access(p, sizeof(T), RILL_CPU_POLLS, RILL_FRAME_);                                                   \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                    \
  }                                                                                                                 \
  RILL_ATOMIC_HOOK_(T, BITS, exchange, RILL_CPU_UPDATES | RILL_CPU_POLLS, T v, int)                                 \
  return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                                 \
  RILL_HOOK_(void, atomic##BITS##_store, "atomic" #BITS "_store", volatile T *p, T v, int) {                        \
    rill_check_access(p, sizeof(T), RILL_CPU_UPDATES, RILL_FRAME_);                                                 \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                       \
  }                                                                                                                 \
  RILL_FETCH_HOOK_(T, BITS, fetch_add)                                                                              \
  RILL_FETCH_HOOK_(T, BITS, fetch_sub)                                                                              \
  RILL_FETCH_HOOK_(T, BITS, fetch_and)                                                                              \
  RILL_FETCH_HOOK_(T, BITS, fetch_or)                                                                               \
  RILL_FETCH_HOOK_(T, BITS, fetch_xor)                                                                              \
  RILL_HOOK_(int, atomic##BITS##_compare_exchange_strong, "atomic" #BITS "_compare_exchange_strong", volatile T *p, \
             T *expected, T v, int, int) {                                                                          \
    rill_check_access(p, sizeof(T), RILL_CPU_UPDATES | RILL_CPU_POLLS, RILL_FRAME_);                                \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                  \
  }                                                                                                                 \
  RILL_HOOK_(int, atomic##BITS##_compare_exchange_weak, "atomic" #BITS "_compare_exchange_weak", volatile T *p,     \
             T *expected, T v, int, int) {                                                                          \
    rill_check_access(p, sizeof(T), RILL_CPU_UPDATES | RILL_CPU_POLLS, RILL_FRAME_);                                \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                  \
  }                                                                                                                 \
  RILL_ATOMIC_HOOK_(T, BITS, compare_exchange_val, RILL_CPU_UPDATES | RILL_CPU_POLLS, T expected, T v, int, int)    \
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                          \
  return expected;                                                                                                  \
  }

extern "C" {
RILL_ACCESS_HOOKS_(, 1)
RILL_ACCESS_HOOKS_(, 2)
RILL_ACCESS_HOOKS_(, 4)
RILL_ACCESS_HOOKS_(, 8)
RILL_ACCESS_HOOKS_(, 16)
RILL_ACCESS_HOOKS_(unaligned_, 2)
RILL_ACCESS_HOOKS_(unaligned_, 4)
RILL_ACCESS_HOOKS_(unaligned_, 8)
RILL_ACCESS_HOOKS_(unaligned_, 16)
RILL_ATOMIC_HOOKS_(uint8_t, 8)
RILL_ATOMIC_HOOKS_(uint16_t, 16)
RILL_ATOMIC_HOOKS_(uint32_t, 32)
RILL_ATOMIC_HOOKS_(uint64_t, 64)
RILL_HOOK_(void, init, "init", void) {}
RILL_HOOK_(void, func_entry, "func_entry", void *) {}
RILL_HOOK_(void, func_exit, "func_exit", void) {}
RILL_HOOK_(void, thread_fence, "atomic_thread_fence", int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
RILL_HOOK_(void, signal_fence, "atomic_signal_fence", int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
RILL_HOOK_(void, read_range, "read_range", const void *at, size_t size) {
  rill_check_access(at, size, RILL_CPU_READS, RILL_FRAME_);
}
RILL_HOOK_(void, write_range, "write_range", void *at, size_t size) {
  rill_check_access(at, size, RILL_CPU_WRITES, RILL_FRAME_);
}
RILL_HOOK_(void *, memcpy, "memcpy", void *to, const void *from, size_t size) {
  rill_check_access(from, size, RILL_CPU_READS, RILL_FRAME_);
  rill_check_access(to, size, RILL_CPU_WRITES, RILL_FRAME_);
  return __builtin_memcpy(to, from, size);
}
RILL_HOOK_(void *, memmove, "memmove", void *to, const void *from, size_t size) {
  rill_check_access(from, size, RILL_CPU_READS, RILL_FRAME_);
  rill_check_access(to, size, RILL_CPU_WRITES, RILL_FRAME_);
  return __builtin_memmove(to, from, size);
}
RILL_HOOK_(void *, memset, "memset", void *to, int value, size_t size) {
  rill_check_access(to, size, RILL_CPU_WRITES, RILL_FRAME_);
  return __builtin_memset(to, value, size);
}
}
#undef RILL_HOOK_
#undef RILL_ACCESS_HOOK_
#undef RILL_ACCESS_HOOKS_
#undef RILL_ATOMIC_HOOK_
#undef RILL_FETCH_HOOK_
#undef RILL_ATOMIC_HOOKS_

#endif
