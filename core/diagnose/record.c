/* The flight recorder: the functions that are not on the path of submissions. */
#include "core/diagnose/record.h"

#include <stdlib.h>
#include <string.h>

void rill__entry_label(struct rill__entry *entry, const char *label) {
  uint64_t words[RILL__ENTRY_LABEL / 8] = { 0 };
  memcpy(words, label, strnlen(label, sizeof words));
  for (size_t i = 0; i < RILL__ENTRY_LABEL / 8; i++) {
    atomic_store_explicit(&entry->label[i], words[i], memory_order_relaxed);
  }
}

void rill__record_seen(const struct rill__device *device, const struct rill__recorded *operation) {
  struct rill__thread *const self = rill__self;
  struct rill__recorder *const recorder = atomic_load_explicit(&self->recorder, memory_order_relaxed);
  if (recorder == NULL || operation->stream == 0) return;
  const uint64_t written = atomic_load_explicit(&recorder->written, memory_order_relaxed);
  struct rill__entry *const entry = &recorder->entries[written % RILL__ENTRIES];
  atomic_thread_fence(memory_order_release);
  atomic_store_explicit(&entry->stream, operation->stream, memory_order_relaxed);
  atomic_store_explicit(&entry->place,
                        rill__place_of(device) + operation->sequence +
                            ((uint64_t)(RILL__RECORDED_SEEN + 1) << RILL__PLACE_KIND),
                        memory_order_relaxed);
  rill__entry_end(recorder, written);
}

/* ---- names ---- */

enum { NAMES_MAX = 1 << 20, NAME_LISTS = 256 }; /* limit in bytes, for all names together */

/* Lists only grow, so neither reading nor adding needs a lock; two threads may add the same name. */
struct kept_name {
  struct kept_name *next;
  char text[];
};
static _Atomic(struct kept_name *) kept_names[NAME_LISTS];
static _Atomic size_t kept_bytes;

const char *rill__name_intern(const char *name) {
  const size_t size = strlen(name) + 1;
  size_t hash = 0;
  for (size_t i = 0; i + 1 < size; i++) hash = hash * 31 + (unsigned char)name[i];
  _Atomic(struct kept_name *) *const list = &kept_names[hash % NAME_LISTS];
  struct kept_name *first = atomic_load(list);
  for (const struct kept_name *kept = first; kept != NULL; kept = kept->next) {
    if (strcmp(kept->text, name) == 0) return kept->text;
  }
  if (atomic_fetch_add(&kept_bytes, size) + size > NAMES_MAX) {
    atomic_fetch_sub(&kept_bytes, size);
    return NULL;
  }
  struct kept_name *const added = malloc(sizeof *added + size);
  if (added == NULL) return NULL;
  memcpy(added->text, name, size);
  added->next = first;
  while (!atomic_compare_exchange_weak(list, &first, added)) added->next = first;
  return added->text;
}
