/* Sleep, wake, time, and the lock that this whole backend uses.
 *
 * The lock is a futex: free, held, or held with sleepers.  It spins briefly first, because critical sections are short:
 * nothing blocks and no user code runs while a lock is held.
 *
 * A fork can happen while other threads hold locks.  These threads do not exist in the child, so their locks are free
 * there: the word of a held lock contains the generation of the process, and the child increments the generation.
 */
#ifndef RILL_CPU_LOCK_H
#define RILL_CPU_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct cpu_lock {
  _Atomic uint32_t word; /* 0: free; generation | 1: held; generation | 2: held, others may sleep */
};

enum { CPU_LOCK_HELD = 1, CPU_LOCK_CONTENDED = 2, CPU_GENERATION_STEP = 4 };

extern _Atomic uint32_t rill__cpu_generation; /* a multiple of CPU_GENERATION_STEP */

void rill__cpu_lock_contended(struct cpu_lock *lock);

/* Sleeps while *word equals `value`, until woken or until `deadline`.  May return early. */
void rill__cpu_sleep(_Atomic uint32_t *word, uint32_t value, const struct timespec *deadline);
void rill__cpu_wake_one(_Atomic uint32_t *word);

/* Returns false if the lock is held. */
static inline bool cpu_try_acquire(struct cpu_lock *lock) {
  uint32_t free = 0;
  const uint32_t held = atomic_load_explicit(&rill__cpu_generation, memory_order_relaxed) | CPU_LOCK_HELD;
  return atomic_compare_exchange_strong_explicit(&lock->word, &free, held, memory_order_acquire, memory_order_relaxed);
}

static inline void cpu_acquire(struct cpu_lock *lock) {
  if (!cpu_try_acquire(lock)) rill__cpu_lock_contended(lock);
}

static inline void cpu_release(struct cpu_lock *lock) {
  const uint32_t word = atomic_exchange_explicit(&lock->word, 0, memory_order_release);
  if ((word & CPU_LOCK_CONTENDED) != 0) rill__cpu_wake_one(&lock->word);
}

/* Tells the processor that a loop polls. */
static inline void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory"); /* takes some time on every core, unlike yield */
#endif
}

/* Returns nanoseconds of the monotonic clock. */
static inline uint64_t cpu_now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline struct timespec cpu_timespec(uint64_t ns) {
  return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
}

#endif
