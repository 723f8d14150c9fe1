/* The flight recorder: each thread keeps the last operations that it submitted to streams, for error texts and reports.
 * RILL_RECORD=0 disables it.
 *
 * A recorder has 128 entries of 64 bytes.  Recording reads no clock, takes no lock and writes to no cache line of
 * another thread.  An entry has no pointer to anything that may be freed: objects are named by their ids, kernels by
 * names that are kept for the lifetime of the process, and labels are copied as far as they fit.
 *
 * Invariants
 * - A recorder is written only by the thread that has its record, and by no thread after that thread has ended.
 * - Entry number n is at index n % RILL__ENTRIES.  Its words are stored while `written` is n, and then `written`
 *   becomes n + 1.  A reader loads `written`, copies entries and loads `written` again; if the second value is w, all
 *   copied entries with numbers greater than w - RILL__ENTRIES are intact.  The thread may be replacing the entry
 *   before these.
 * - The number in a stream is the submission's count (core/object/completion.h), so the entries of all threads together
 *   are in the order of the stream, and missing entries are detected.
 */
#ifndef RILL_CORE_DIAGNOSE_RECORD_H
#define RILL_CORE_DIAGNOSE_RECORD_H

#include "core/diagnose/observe.h"

/* The kinds of entries are those of operations (enum rill__observed_kind) and this one: the work of a stream before a
 * number was seen complete. */
enum { RILL__RECORDED_SEEN = 0x40 };

/* `place` contains the kind, starting at 1, in the highest 8 bits, then the slot of the device, and the number in the
 * lowest 40 bits. */
enum { RILL__PLACE_KIND = 56, RILL__PLACE_DEVICE = 40 };
#define RILL__PLACE_SEQUENCE ((UINT64_C(1) << RILL__PLACE_DEVICE) - 1)

static inline uint64_t rill__place_of(const struct rill__device *device) {
  return (uint64_t)(rill__object_slot(&device->base) & 0xffff) << RILL__PLACE_DEVICE;
}

/* The completion cache of a new stream counts a submission that was never made (rill__completion_forget).  These
 * functions correct for it: the first operation has number 0, and the counts are of operations submitted and of
 * operations known to be complete. */
static inline void rill__stream_number_operations(struct rill__stream *stream) {
  rill__core(stream)->place = rill__place_of(stream->base.device) - 1;
}
static inline uint64_t rill__stream_submitted(struct rill__stream *stream) {
  return rill__submission_count(&rill__core(stream)->work) - 1;
}
static inline uint64_t rill__stream_known(struct rill__stream *stream) {
  const uint64_t known = rill__submission_known(&rill__core(stream)->work);
  return known > 0 ? known - 1 : 0;
}

/* ---- writing ---- */

static inline __attribute__((always_inline)) struct rill__entry *
rill__entry_begin(struct rill__recorder *recorder, uint64_t written, struct rill__stream *stream, uint32_t kind,
                  uint64_t sequence, uint64_t subject) {
  struct rill__entry *const entry = &recorder->entries[written % RILL__ENTRIES];
  RILL_ASSERT(sequence <= RILL__PLACE_SEQUENCE && kind < RILL__RECORDED_SEEN, "a place has room for its parts");
  atomic_thread_fence(memory_order_release); /* a reader that sees a word of this entry also sees `written` */
  atomic_store_explicit(&entry->stream, stream->base.id, memory_order_relaxed);
  atomic_store_explicit(&entry->place,
                        rill__core(stream)->place + sequence + ((uint64_t)(kind + 1) << RILL__PLACE_KIND),
                        memory_order_relaxed);
  atomic_store_explicit(&entry->subject, subject, memory_order_relaxed);
  return entry;
}

/* Publishes an entry, the one after `written`. */
static inline __attribute__((always_inline)) void rill__entry_end(struct rill__recorder *recorder, uint64_t written) {
  RILL_ASSERT(rill__self != NULL && atomic_load(&rill__self->recorder) == recorder,
              "only the thread that has a recorder's record writes to the recorder");
  RILL_ASSERT(atomic_load_explicit(&recorder->written, memory_order_relaxed) == written,
              "no other thread has written an entry meanwhile");
  atomic_store_explicit(&recorder->written, written + 1, memory_order_release);
}

/* Record an operation with two more words, and a launch with a label, which may be NULL. */
static inline __attribute__((always_inline)) void rill__record(struct rill__thread *self, struct rill__stream *stream,
                                                               uint32_t kind, uint64_t sequence, uint64_t subject,
                                                               uint64_t first, uint64_t second) {
  struct rill__recorder *const recorder = atomic_load_explicit(&self->recorder, memory_order_relaxed);
  if (RILL__UNLIKELY(recorder == NULL)) return;
  const uint64_t written = atomic_load_explicit(&recorder->written, memory_order_relaxed);
  struct rill__entry *const entry = rill__entry_begin(recorder, written, stream, kind, sequence, subject);
  atomic_store_explicit(&entry->words[0], first, memory_order_relaxed);
  atomic_store_explicit(&entry->words[1], second, memory_order_relaxed);
  rill__entry_end(recorder, written);
}

void rill__entry_label(struct rill__entry *entry, const char *label);

static inline __attribute__((always_inline)) void rill__record_launch(struct rill__thread *self,
                                                                      struct rill__stream *stream, uint64_t sequence,
                                                                      const struct rill__launch *launch) {
  struct rill__recorder *const recorder = atomic_load_explicit(&self->recorder, memory_order_relaxed);
  if (RILL__UNLIKELY(recorder == NULL)) return;
  const uint64_t written = atomic_load_explicit(&recorder->written, memory_order_relaxed);
  struct rill__entry *const entry = rill__entry_begin(recorder, written, stream, RILL__OBSERVED_LAUNCH, sequence,
                                                      (uintptr_t)launch->kernel->lasting_name);
  atomic_store_explicit(&entry->shape[0], launch->grid[0], memory_order_relaxed);
  atomic_store_explicit(&entry->shape[1], launch->grid[1], memory_order_relaxed);
  atomic_store_explicit(&entry->shape[2], launch->grid[2], memory_order_relaxed);
  atomic_store_explicit(&entry->shape[3], launch->block[0], memory_order_relaxed);
  atomic_store_explicit(&entry->shape[4], launch->block[1], memory_order_relaxed);
  atomic_store_explicit(&entry->shape[5], launch->block[2], memory_order_relaxed);
  if (RILL__LIKELY(launch->label == NULL)) {
    atomic_store_explicit(&entry->label[0], 0, memory_order_relaxed);
  } else {
    rill__entry_label(entry, launch->label);
  }
  rill__entry_end(recorder, written);
}

/* The place where an event was recorded last. */
struct rill__recorded {
  uint64_t stream; /* id of the stream; 0 if the place is not known */
  uint64_t sequence;
};
static inline struct rill__recorded rill__event_recorded(struct rill__event *event) {
  return (struct rill__recorded){ atomic_load_explicit(&rill__core(event)->recorded_on, memory_order_relaxed),
                                  atomic_load_explicit(&rill__core(event)->recorded_at, memory_order_relaxed) };
}

static inline void rill__event_note_record(struct rill__event *event, const struct rill__stream *stream,
                                           uint64_t sequence) {
  atomic_store_explicit(&rill__core(event)->recorded_on, stream->base.id, memory_order_relaxed);
  atomic_store_explicit(&rill__core(event)->recorded_at, sequence - 1, memory_order_relaxed);
}

/* Records that the work of a stream of the device was seen complete, up to and including the operation. */
void rill__record_seen(const struct rill__device *device, const struct rill__recorded *operation);

/* ---- names ---- */

/* Returns a copy of the name that exists for the lifetime of the process; equal names have the same copy.  Returns NULL
 * if memory ran out, or if all names together exceed 1 MiB. */
const char *rill__name_intern(const char *name);

#endif
