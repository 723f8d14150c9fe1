#include "core/tracking/frees.h"

enum { KEPT = 4096 };
static struct {
  uintptr_t begin;
  size_t size;
} latest_frees[KEPT]; /* free number n is at index n % KEPT */
static _Atomic uint64_t frees_counted;

uint64_t rill__frees_count(void) { return atomic_load(&frees_counted); }

void rill__frees_note(uintptr_t begin, size_t size) {
  const uint64_t number = atomic_load(&frees_counted) + 1;
  latest_frees[number % KEPT].begin = begin;
  latest_frees[number % KEPT].size = size;
  atomic_store(&frees_counted, number);
}

static uint64_t last_forgotten(uint64_t last) { return last > KEPT ? last - KEPT : 0; }

bool rill__frees_are_forgotten(uint64_t frees) { return frees < last_forgotten(atomic_load(&frees_counted)); }

/* Searches from the latest free, because the memory may have been freed several times. */
void rill__frees_find(uintptr_t p, uint64_t frees, struct rill__access *out) {
  const uint64_t last = atomic_load(&frees_counted);
  const uint64_t forgotten = last_forgotten(last);
  *out = (struct rill__access){ .what = RILL__ACCESS_RIGHT };
  for (uint64_t number = last; number > forgotten; number--) {
    const uintptr_t begin = latest_frees[number % KEPT].begin;
    const size_t size = latest_frees[number % KEPT].size;
    if (p - begin >= size) continue;
    out->what = number > frees ? RILL__ACCESS_LATE : RILL__ACCESS_FREED;
    out->begin = begin;
    out->size = size;
    return;
  }
}
