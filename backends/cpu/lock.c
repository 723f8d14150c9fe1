#include "backends/cpu/lock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS = 64 }; /* one or two microseconds */

_Atomic uint32_t rill__cpu_generation;

void rill__cpu_sleep(_Atomic uint32_t *word, uint32_t value, const struct timespec *deadline) {
  (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline, NULL, FUTEX_BITSET_MATCH_ANY);
}

void rill__cpu_wake_one(_Atomic uint32_t *word) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Returns true if no thread of this generation holds the lock. */
static bool is_free(uint32_t word, uint32_t generation) {
  return word == 0 || (word & ~(uint32_t)(CPU_GENERATION_STEP - 1)) != generation;
}

void rill__cpu_lock_contended(struct cpu_lock *lock) {
  const uint32_t generation = atomic_load_explicit(&rill__cpu_generation, memory_order_relaxed);
  for (int i = 0; i < SPINS; i++) {
    uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);
    if (is_free(word, generation) &&
        atomic_compare_exchange_strong_explicit(&lock->word, &word, generation | CPU_LOCK_HELD, memory_order_acquire,
                                                memory_order_relaxed)) {
      return;
    }
    cpu_relax();
  }
  /* A thread that slept cannot know whether others still sleep, so it takes the lock as contended. */
  const uint32_t contended = generation | CPU_LOCK_CONTENDED;
  for (;;) {
    uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);
    const bool free = is_free(word, generation);
    if (word != contended && !atomic_compare_exchange_strong_explicit(&lock->word, &word, contended,
                                                                      memory_order_acquire, memory_order_relaxed)) {
      continue;
    }
    if (free) return;
    rill__cpu_sleep(&lock->word, contended, NULL);
  }
}
