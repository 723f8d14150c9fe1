/* Describes the memory at an address that a kernel accesses, for kernels that check their accesses. */
#include "core/memory/memory.h"
#include "core/tracking/frees.h"
#include "core/tracking/map.h"

/* Starts to record frees.  The first record is empty and only advances the count, because earlier frees were not
 * recorded. */
void rill__access_begin(struct rill__device *device) {
  rill__memory_lock();
  rill__frees_note(0, 0);
  rill__memory_unlock();
  atomic_fetch_add(&device->checked, 1);
}

void rill__access_end(struct rill__device *device) { atomic_fetch_sub(&device->checked, 1); }

static struct rill__access describe_range(const struct rill__allocation *allocation) {
  return (struct rill__access){ .what = RILL__ACCESS_RIGHT,
                                .begin = allocation->begin,
                                .size = allocation->size,
                                .kind = allocation->kind,
                                .variable = allocation->variable };
}

/* Returns true if `p` lies in an allocation, and describes it in `out`. */
static bool find_allocation(const struct rill__device *device, uintptr_t p, struct rill__access *out) {
  const struct rill__allocation *const found = rill__ranges_find((const void *)p);
  if (found == NULL) return false;
  *out = describe_range(found);
  if (found->pooled && !rill__pool_find(found, (const void *)p, &out->begin, &out->size)) return false;
  const bool of_host = found->kind == RILL_MEMORY_PINNED || found->kind == RILL_MEMORY_REGISTERED;
  if (!of_host && found->base.device->backend != device->backend) out->what = RILL__ACCESS_PEER;
  return true;
}

/* Stores an allocation in `out`, or the nearest one in a segment, if it is nearer to `p` than `out`. */
static void prefer(const struct rill__allocation *allocation, uintptr_t p, struct rill__access *out) {
  if (allocation == NULL) return;
  struct rill__access other = describe_range(allocation);
  if (allocation->pooled && !rill__pool_nearest(allocation, p, &other.begin, &other.size)) return;
  if (out->what == RILL__ACCESS_BESIDE &&
      rill__range_distance(out->begin, out->size, p) <= rill__range_distance(other.begin, other.size, p))
    return;
  *out = other;
  out->what = RILL__ACCESS_BESIDE;
}

/* Describes the nearest allocation, for an address that no allocation and no recorded free contains.  In a segment of a
 * pool memory may have been freed at the address while the kernel used it, because frees there do not wait for work; if
 * the records no longer show that, the access counts as LATE. */
static void find_nearest(uintptr_t p, uint64_t frees, struct rill__access *out) {
  const struct rill__allocation *const around = rill__ranges_find((const void *)p); /* a segment of a pool */
  if (around != NULL && rill__frees_are_forgotten(frees)) {
    out->what = RILL__ACCESS_LATE;
    return;
  }
  out->what = RILL__ACCESS_NOWHERE;
  prefer(around, p, out);
  prefer(rill__ranges_before(around != NULL ? around->begin : p), p, out);
  prefer(rill__ranges_after(around != NULL ? around->begin + around->size : p), p, out);
}

/* Describes the memory at `p`.  Holds the writers' lock, so that no memory that is found can be freed meanwhile. */
void rill__access_find(struct rill__device *device, uintptr_t p, uint64_t frees, struct rill__access *out) {
  rill__memory_lock();
  if (!find_allocation(device, p, out)) {
    rill__frees_find(p, frees, out);
    if (out->what == RILL__ACCESS_RIGHT) find_nearest(p, frees, out);
  }
  rill__memory_unlock();
}
