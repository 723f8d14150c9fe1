#include "core/tracking/guards.h"

#include "core/held/record.h"
#include "core/stream/stream.h"
#include "core/sync/streams.h"
#include "core/sync/submit.h"
#include "core/tracking/last_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The byte patterns.  Each is a large number if it is read as a float, and not a valid address if it is read as a
 * pointer. */
enum { OF_ZONE = 0xcb, OF_FREED = 0xde };
static const unsigned char of_zone = OF_ZONE, of_freed = OF_FREED;

enum { ZONE = RILL__RED_ZONE, BATCH = 128, BUFFER = BATCH * 2 * ZONE, FIRST_BYTES = 4096 };

struct list {
  struct rill__guard *first, **last;
  size_t count;
};

struct rill__guards {
  pthread_mutex_t turn, lock;
  _Atomic(const struct rill__thread *) turn_holder; /* the thread whose turn it is, or NULL */
  struct list live, kept;
  uint64_t kept_bytes;
  struct rill__stream *stream; /* for GPUs; created with the buffer in the first turn that needs them */
  unsigned char *buffer;       /* pinned memory */
  unsigned found;              /* number of mistakes not reported yet; `text` has as many as fit */
  char text[1100];
};

/* ---- lists; call these under the lock ---- */

static void add_last(struct list *list, struct rill__guard *guard) {
  guard->next = NULL;
  guard->link = list->last;
  *list->last = guard;
  list->last = &guard->next;
  list->count++;
}

static void remove_guard(struct list *list, struct rill__guard *guard) {
  RILL_ASSERT(list->count > 0 && *guard->link == guard && (guard->next == NULL || guard->next->link == &guard->next),
              "a guard is in one list, whose links lead to it");
  *guard->link = guard->next;
  *(guard->next != NULL ? &guard->next->link : &list->last) = guard->link;
  list->count--;
}

static uint64_t kept_bytes_of(const struct rill__guard *guard) { return guard->size + RILL__FRONT_ZONE + ZONE; }

static void enter_kept(struct rill__guards *guards, struct rill__guard *guard) {
  RILL_ASSERT(guard->state == RILL__GUARD_LIVE, "a guard is LIVE before it is KEPT");
  remove_guard(&guards->live, guard);
  guard->state = RILL__GUARD_KEPT;
  add_last(&guards->kept, guard);
  guards->kept_bytes += kept_bytes_of(guard);
}

static void leave_kept(struct rill__guards *guards, struct rill__guard *guard) {
  RILL_ASSERT(guard->state == RILL__GUARD_KEPT && guards->kept_bytes >= kept_bytes_of(guard),
              "all bytes of memory that is kept back are counted");
  remove_guard(&guards->kept, guard);
  guards->kept_bytes -= kept_bytes_of(guard);
}

static struct rill__guards *guards_of(const struct rill__device *device) { return rill__core(device)->guards; }

static void assert_turn(const struct rill__guards *guards) {
  RILL_ASSERT(atomic_load(&guards->turn_holder) == rill__self && rill__self != NULL,
              "only the thread whose turn it is compares guarded memory and takes it from the list");
  (void)guards;
}

/* ---- life ---- */

bool rill__guards_start(struct rill__device *device) {
  struct rill__guards *guards = calloc(1, sizeof *guards);
  if (guards == NULL) return false;
  (void)pthread_mutex_init(&guards->turn, NULL);
  (void)pthread_mutex_init(&guards->lock, NULL);
  guards->live.last = &guards->live.first;
  guards->kept.last = &guards->kept.first;
  rill__core(device)->guards = guards;
  atomic_fetch_add(&device->checked, 1);
  /* enables the check that follows when the host synchronizes */
  atomic_store(&rill__core(device)->pool_thresholds, true);
  return true;
}

rill_status rill__guard_new(struct rill__device *device, struct rill__guard **out) {
  struct rill__guard *guard = calloc(1, sizeof *guard);
  RILL_REQUIRE(guard != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to check an allocation");
  guard->device = device;
  rill__origin_take(&guard->origin);
  *out = guard;
  return RILL_OK;
}

void rill__guard_free(struct rill__guard *guard) {
  rill__last_uses_free(guard->pending);
  if (guard->stream != NULL) rill__unref(&guard->stream->base);
  free(guard);
}

void rill__guard_drop(struct rill__guard *guard) {
  struct rill__guards *guards = guards_of(guard->device);
  pthread_mutex_lock(&guards->lock);
  RILL_ASSERT(guard->state == RILL__GUARD_LIVE, "memory that is kept back is released, never dropped");
  remove_guard(&guards->live, guard);
  guard->state = RILL__GUARD_DROPPED;
  const bool used = guard->pins > 0;
  pthread_mutex_unlock(&guards->lock);
  if (!used) rill__guard_free(guard);
}

/* ---- reports of mistakes ---- */

const char *rill__memory_kind_name(uint32_t kind) {
  static const char *const names[] = { "memory", "device memory", "pinned memory", "managed memory",
                                       "registered memory" };
  return names[kind <= RILL_MEMORY_REGISTERED ? kind : 0];
}

/* Bytes that differ from a pattern: their number, and the first of them. */
struct difference {
  size_t count, first;
  unsigned char value;
};

static struct difference compare_bytes(const unsigned char *bytes, size_t size, unsigned char pattern) {
  struct difference found = { 0, 0, 0 };
  if (bytes[0] == pattern && memcmp(bytes, bytes + 1, size - 1) == 0) return found;
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] == pattern) continue;
    if (found.count++ > 0) continue;
    found.first = i;
    found.value = bytes[i];
  }
  return found;
}

/* Reports the bytes, `place` being where the first of them is.  Reports nothing if the guard has been dropped
 * meanwhile, because the memory may already have another owner. */
static void report_bytes(struct rill__guard *guard, const struct difference *found, const char *place,
                         const char *freed) {
  struct rill__guards *guards = guards_of(guard->device);
  char calls[700];
  guard->reported = true;
  rill__origin_write(&guard->origin, 4, "\n    ", "", calls, sizeof calls);
  const bool one = found->count == 1;
  pthread_mutex_lock(&guards->lock);
  if (guard->state == RILL__GUARD_DROPPED) {
    pthread_mutex_unlock(&guards->lock);
    return;
  }
  const size_t used = guards->found == 0 ? 0 : strlen(guards->text);
  char *const end = guards->text + used;
  const size_t room = sizeof guards->text - used;
  const int length =
      snprintf(end, room, "%s%zu byte%s %s written %s %zu bytes of %s%s%.60s%s at 0x%llx%s; %s is 0x%02x%s%s",
               used > 0 ? "\n" : "", found->count, one ? "" : "s", one ? "was" : "were", place, guard->size,
               rill__memory_kind_name(guard->kind), guard->label[0] != '\0' ? " of pool \"" : "", guard->label,
               guard->label[0] != '\0' ? "\"" : "", (unsigned long long)guard->begin, freed, one ? "it" : "the first",
               found->value, calls[0] != '\0' ? "\n  allocated at" : "", calls);
  if (length < 0 || ((size_t)length >= room && used > 0)) *end = '\0'; /* only complete reports, except for the first */
  guards->found++;
  pthread_mutex_unlock(&guards->lock);
}

/* Checks both zones.  A batch from a short list may contain the same guard twice. */
static void check_zones(struct rill__guard *guard, const unsigned char *front, const unsigned char *back) {
  char place[120];
  if (guard->reported) return;
  const struct difference before = compare_bytes(front, ZONE, of_zone), after = compare_bytes(back, ZONE, of_zone);
  if (after.count > 0) {
    (void)snprintf(place, sizeof place, "past the end, from offset %zu on, of", guard->size + after.first);
    report_bytes(guard, &after, place, "");
  }
  if (before.count > 0) {
    (void)snprintf(place, sizeof place, "before the start, from offset -%zu on, of", ZONE - before.first);
    report_bytes(guard, &before, place, "");
  }
}

static void check_content(struct rill__guard *guard, const unsigned char *bytes, size_t offset, size_t size) {
  char place[120];
  const struct difference found = compare_bytes(bytes, size, of_freed);
  if (found.count == 0) return;
  (void)snprintf(place, sizeof place, "from offset %zu on into", offset + found.first);
  report_bytes(guard, &found, place, ", after they were freed");
}

/* ---- memory ---- */

static bool is_of_host(const struct rill__guard *guard) {
  return !guard->device->backend->gpu || guard->kind == RILL_MEMORY_PINNED;
}

static struct rill__fill_2d zones_of(const struct rill__guard *guard) {
  return (struct rill__fill_2d){ .dst = (void *)(guard->begin - ZONE),
                                 .dst_kind = guard->kind,
                                 .pitch = ZONE + guard->size,
                                 .width = ZONE,
                                 .height = 2,
                                 .pattern = &of_zone,
                                 .pattern_size = 1 };
}

static rill_status write_zones(const struct rill__guard *guard, struct rill__stream *stream) {
  const struct rill__fill_2d zones = zones_of(guard);
  rill_status status = RILL_OK;
  RILL__SUBMIT_UNOBSERVED(status, stream, memory, fill_2d, stream, &zones);
  return status;
}

static rill_status write_content(const struct rill__guard *guard, struct rill__stream *stream) {
  rill_status status = RILL_OK;
  RILL__SUBMIT_UNOBSERVED(status, stream, memory, fill, stream, (void *)guard->begin, guard->kind, &of_freed, 1,
                          guard->size);
  return status;
}

/* Makes sure that the device's own stream and buffer exist.  Call it in a turn.  Inside a host call nothing may wait
 * for a stream. */
static bool can_use_stream(struct rill__device *device) {
  struct rill__guards *guards = guards_of(device);
  assert_turn(guards);
  if (rill__in_host_call) return false;
  if (guards->stream == NULL && rill__stream_create(device, NULL, &guards->stream) == RILL_OK) {
    guards->stream->base.borrowed = true;
  }
  void *buffer = NULL;
  if (guards->buffer == NULL &&
      RILL_DISPATCH(device, memory, alloc, device, BUFFER, RILL_MEMORY_PINNED, &buffer) == RILL_OK) {
    guards->buffer = buffer;
  }
  return guards->stream != NULL && guards->buffer != NULL;
}

static bool wait_for_stream(const struct rill__guards *guards) {
  return RILL_DISPATCH(guards->stream, stream, synchronize, guards->stream, RILL__FOREVER) == RILL_OK;
}

/* Returns true if the patterns have been written, which means that the guard's event is complete. */
static bool is_settled(struct rill__guard *guard) {
  struct rill__guards *guards = guards_of(guard->device);
  pthread_mutex_lock(&guards->lock);
  struct rill__event *const event = guard->pending != NULL ? guard->pending->event : NULL;
  if (event != NULL) rill__ref(&event->base);
  pthread_mutex_unlock(&guards->lock);
  if (event == NULL) return true;
  const bool complete = rill__last_use_is_complete(event);
  struct rill__last_use *ended = NULL;
  struct rill__stream *stream = NULL;
  pthread_mutex_lock(&guards->lock);
  const bool same = guard->pending != NULL && guard->pending->event == event;
  if (complete && same) {
    ended = guard->pending;
    stream = guard->stream;
    guard->pending = NULL;
    guard->stream = NULL;
  }
  pthread_mutex_unlock(&guards->lock);
  rill__last_uses_free(ended);
  if (stream != NULL) rill__unref(&stream->base);
  rill__unref(&event->base);
  return complete && same;
}

/* ---- comparing; call these in a turn ---- */

static bool is_compared(struct rill__guard *guard) { return guard->zoned && !guard->reported && is_settled(guard); }

/* Submits a copy of a guard's zones to the buffer. */
static bool read_zones(struct rill__guards *guards, const struct rill__guard *guard, unsigned char *to) {
  const struct rill__fill_2d zones = zones_of(guard);
  const struct rill__copy_3d copy = { .dst = to,
                                      .src = zones.dst,
                                      .dst_kind = RILL_MEMORY_PINNED,
                                      .src_kind = zones.dst_kind,
                                      .width = ZONE,
                                      .height = 2,
                                      .depth = 1,
                                      .dst_pitch = ZONE,
                                      .src_pitch = zones.pitch };
  rill_status status = RILL_OK;
  RILL__SUBMIT_UNOBSERVED(status, guards->stream, memory, copy_3d, guards->stream, &copy);
  return status == RILL_OK;
}

/* Compares the zones of up to BATCH guards.  Skips guards whose zones cannot be read. */
static void compare_zones(struct rill__guards *guards, struct rill__guard **batch, size_t count) {
  assert_turn(guards);
  size_t copies = 0;
  bool read = true;
  for (size_t i = 0; i < count && read; i++) {
    if (is_of_host(batch[i])) continue;
    read = (copies++ > 0 || can_use_stream(batch[i]->device)) &&
           read_zones(guards, batch[i], guards->buffer + 2 * ZONE * i);
  }
  if (copies > 0 && guards->stream != NULL && !rill__in_host_call) read &= wait_for_stream(guards);
  for (size_t i = 0; i < count; i++) {
    const unsigned char *const begin = (const unsigned char *)batch[i]->begin;
    if (is_of_host(batch[i])) check_zones(batch[i], begin - ZONE, begin + batch[i]->size);
    if (is_of_host(batch[i]) || !read) continue;
    const unsigned char *const copied = guards->buffer + 2 * ZONE * i;
    check_zones(batch[i], copied, copied + ZONE);
  }
}

static void compare_content(struct rill__guards *guards, struct rill__guard *guard, size_t most) {
  const size_t size = guard->size < most ? guard->size : most;
  if (is_of_host(guard)) {
    check_content(guard, (const unsigned char *)guard->begin, 0, size);
    return;
  }
  if (!can_use_stream(guard->device)) return;
  for (size_t offset = 0; offset < size && !guard->reported; offset += BUFFER) {
    const size_t n = size - offset < BUFFER ? size - offset : BUFFER;
    rill_status status = RILL_OK;
    RILL__SUBMIT_UNOBSERVED(status, guards->stream, memory, copy, guards->stream, guards->buffer, RILL_MEMORY_PINNED,
                            (const void *)(guard->begin + offset), guard->kind, n);
    if (status != RILL_OK || !wait_for_stream(guards)) return;
    check_content(guard, guards->buffer, offset, n);
  }
}

static void compare_kept(struct rill__guards *guards, struct rill__guard *guard, size_t most) {
  if (!is_compared(guard)) return;
  compare_zones(guards, &guard, 1);
  if (guard->filled && !guard->reported) compare_content(guards, guard, most);
}

/* Takes guards from the front of the list and moves them to its end. */
static size_t take_batch(struct rill__guards *guards, struct rill__guard **batch, size_t most) {
  size_t count = 0;
  pthread_mutex_lock(&guards->lock);
  while (count < most && guards->live.first != NULL) {
    struct rill__guard *guard = guards->live.first;
    remove_guard(&guards->live, guard);
    add_last(&guards->live, guard);
    guard->pins++;
    batch[count++] = guard;
  }
  pthread_mutex_unlock(&guards->lock);
  return count;
}

static void leave_batch(struct rill__guards *guards, struct rill__guard **batch, size_t count) {
  for (size_t i = 0; i < count; i++) {
    pthread_mutex_lock(&guards->lock);
    RILL_ASSERT(batch[i]->pins > 0, "a guard stays pinned while it is compared");
    const bool ends = --batch[i]->pins == 0 && batch[i]->state == RILL__GUARD_DROPPED;
    pthread_mutex_unlock(&guards->lock);
    if (ends) rill__guard_free(batch[i]);
  }
}

static void compare_live(struct rill__guards *guards) {
  struct rill__guard *batch[BATCH], *compared[BATCH];
  pthread_mutex_lock(&guards->lock);
  size_t left = guards->live.count;
  pthread_mutex_unlock(&guards->lock);
  while (left > 0) {
    const size_t count = take_batch(guards, batch, left < BATCH ? left : BATCH);
    size_t some = 0;
    for (size_t i = 0; i < count; i++) {
      if (is_compared(batch[i])) compared[some++] = batch[i];
    }
    compare_zones(guards, compared, some);
    leave_batch(guards, batch, count);
    left = count == 0 ? 0 : left - count;
  }
}

/* ---- turns ---- */

static void begin_turn(struct rill__guards *guards) {
  pthread_mutex_lock(&guards->turn);
  RILL_ASSERT(atomic_load(&guards->turn_holder) == NULL, "there is one turn at a time");
  atomic_store(&guards->turn_holder, rill__self);
  rill__errors_suspend(); /* a guard whose memory cannot be compared does not fail this call */
}

static void end_turn(struct rill__guards *guards) {
  rill__errors_resume();
  assert_turn(guards);
  atomic_store(&guards->turn_holder, NULL);
  pthread_mutex_unlock(&guards->turn);
}

/* Waits for a comparison that started earlier and may still read memory that the caller is about to free. */
void rill__guards_wait_for_turn(struct rill__device *device) {
  if (!rill__is_guarded(device)) return;
  pthread_mutex_lock(&guards_of(device)->turn);
  pthread_mutex_unlock(&guards_of(device)->turn);
}

/* ---- live ---- */

/* Writes the zones at once; no work may use the memory. */
static bool write_zones_now(struct rill__guard *guard) {
  struct rill__guards *guards = guards_of(guard->device);
  if (is_of_host(guard)) {
    memset((void *)(guard->begin - ZONE), OF_ZONE, ZONE);
    memset((void *)(guard->begin + guard->size), OF_ZONE, ZONE);
    return true;
  }
  begin_turn(guards);
  const bool written =
      can_use_stream(guard->device) && write_zones(guard, guards->stream) == RILL_OK && wait_for_stream(guards);
  end_turn(guards);
  return written;
}

static bool write_zones_in_order(struct rill__guard *guard, struct rill__stream *stream) {
  rill__errors_suspend();
  const bool written = !rill__is_diverted(stream) && write_zones(guard, stream) == RILL_OK &&
                       rill__last_use_new(stream, &guard->pending) == RILL_OK;
  rill__errors_resume();
  return written;
}

void rill__guard_enter(struct rill__guard *guard, struct rill__stream *stream) {
  struct rill__guards *guards = guards_of(guard->device);
  if (guard->zoned) guard->zoned = stream != NULL ? write_zones_in_order(guard, stream) : write_zones_now(guard);
  pthread_mutex_lock(&guards->lock);
  add_last(&guards->live, guard);
  pthread_mutex_unlock(&guards->lock);
}

static void set_zoned(struct rill__guard *guard, bool zoned) {
  struct rill__guards *guards = guards_of(guard->device);
  begin_turn(guards);
  guard->zoned = zoned;
  end_turn(guards);
}

void rill__guard_suspend(struct rill__guard *guard) { set_zoned(guard, false); }
void rill__guard_resume(struct rill__guard *guard) { set_zoned(guard, write_zones_now(guard)); }

/* ---- freed ---- */

/* Returns true if everything pending for the memory precedes the stream's next operation. */
static bool is_ordered(struct rill__guard *guard, const struct rill__stream *stream) {
  struct rill__guards *guards = guards_of(guard->device);
  pthread_mutex_lock(&guards->lock);
  const bool own = guard->pending != NULL && guard->pending->stream == stream->number;
  pthread_mutex_unlock(&guards->lock);
  return own || is_settled(guard);
}

static bool has_room_to_keep(struct rill__guards *guards, const struct rill__guard *guard) {
  pthread_mutex_lock(&guards->lock);
  const bool room = guards->kept.count < 2 * (size_t)RILL__KEPT_GUARDS &&
                    guards->kept_bytes + kept_bytes_of(guard) <= 2 * (uint64_t)RILL__KEPT_BYTES;
  pthread_mutex_unlock(&guards->lock);
  return room;
}

bool rill__guard_keep_in_order(struct rill__guard *guard, struct rill__stream *stream) {
  struct rill__guards *guards = guards_of(guard->device);
  struct rill__last_use *filled = NULL;
  if (!guard->zoned || rill__is_diverted(stream) || !has_room_to_keep(guards, guard)) return false;
  rill__errors_suspend();
  const bool kept = is_ordered(guard, stream) && write_content(guard, stream) == RILL_OK &&
                    rill__last_use_new(stream, &filled) == RILL_OK;
  rill__errors_resume();
  if (!kept) return false;
  /* The event stands for work of this stream, which must exist until the event is complete. */
  rill__ref(&stream->base);
  pthread_mutex_lock(&guards->lock);
  struct rill__last_use *const before = guard->pending;
  guard->pending = filled;
  guard->stream = stream;
  guard->filled = true;
  enter_kept(guards, guard);
  pthread_mutex_unlock(&guards->lock);
  rill__last_uses_free(before);
  return true;
}

/* Fills memory that no work uses.  Call it in a turn. */
static bool fill_content(struct rill__guards *guards, const struct rill__guard *guard) {
  if (is_of_host(guard)) {
    memset((void *)guard->begin, OF_FREED, guard->size);
    return true;
  }
  return can_use_stream(guard->device) && write_content(guard, guards->stream) == RILL_OK && wait_for_stream(guards);
}

bool rill__guard_end(struct rill__guard *guard, bool keeps) {
  struct rill__guards *guards = guards_of(guard->device);
  struct rill__device *device = guard->device;
  /* Read before the turn ends: afterwards another thread may release a guard that is kept back. */
  const struct rill__object *const guard_pool = guard->pool;
  const uint32_t kind = guard->kind;
  begin_turn(guards);
  if (is_compared(guard)) compare_zones(guards, &guard, 1);
  keeps = keeps && guard->zoned && guard->size <= RILL__KEPT_BYTES / 4 && fill_content(guards, guard);
  if (keeps) {
    pthread_mutex_lock(&guards->lock);
    guard->filled = true;
    enter_kept(guards, guard);
    pthread_mutex_unlock(&guards->lock);
  }
  end_turn(guards);
  if (keeps && guard_pool != NULL) {
    rill__guards_trim(device, RILL__WAITS_FOR_NOTHING);
  } else if (keeps) {
    rill__guards_trim(device, kind == RILL_MEMORY_DEVICE ? RILL__WAITS_FOR_DEVICE : RILL__WAITS_FOR_ALL);
  }
  return keeps;
}

/* Selects the memory to release: everything beyond the limit, or everything (`all`), of one pool or of all. */
struct release {
  bool all;
  const struct rill__object *pool; /* NULL: memory of every pool, and of rill_alloc */
  enum rill__guard_wait wait;
};

static bool may_release(const struct rill__guard *guard, const struct release *release) {
  if (release->pool != NULL && guard->pool != release->pool) return false;
  if (guard->pool != NULL || guard->device->backend->memory->free_unused != NULL) return true;
  return release->wait >= (guard->kind == RILL_MEMORY_DEVICE ? RILL__WAITS_FOR_DEVICE : RILL__WAITS_FOR_ALL);
}

/* Removes one guard, at or after `*at`, and advances `*at`; returns NULL if there is none.  Call it in a turn. */
static struct rill__guard *take_kept_guard(struct rill__guards *guards, struct rill__guard **at,
                                           const struct release *release) {
  assert_turn(guards);
  for (struct rill__guard *guard; (guard = *at) != NULL;) {
    pthread_mutex_lock(&guards->lock);
    const bool over =
        release->all || guards->kept_bytes > RILL__KEPT_BYTES || guards->kept.count > (size_t)RILL__KEPT_GUARDS;
    pthread_mutex_unlock(&guards->lock);
    if (!over) return NULL;
    const bool taken = may_release(guard, release) && is_settled(guard);
    if (taken) compare_kept(guards, guard, SIZE_MAX);
    pthread_mutex_lock(&guards->lock);
    *at = guard->next;
    if (taken) leave_kept(guards, guard);
    pthread_mutex_unlock(&guards->lock);
    if (taken) return guard;
  }
  return NULL;
}

static void release_guards(struct rill__guard *list) {
  while (list != NULL) {
    struct rill__guard *const guard = list;
    list = guard->next;
    guard->release(guard);
    rill__guard_free(guard);
  }
}

static bool release_kept(struct rill__device *device, const struct release *release) {
  struct rill__guards *guards = guards_of(device);
  struct rill__guard *list = NULL, **last = &list;
  RILL_WITHOUT_CANCEL();
  if (rill__in_host_call) return false;
  begin_turn(guards);
  pthread_mutex_lock(&guards->lock);
  struct rill__guard *at = guards->kept.first;
  pthread_mutex_unlock(&guards->lock);
  for (struct rill__guard *guard; (guard = take_kept_guard(guards, &at, release)) != NULL;) {
    *last = guard;
    last = &guard->next;
    guard->next = NULL;
  }
  end_turn(guards);
  const bool any = list != NULL;
  rill__errors_suspend();
  release_guards(list);
  rill__errors_resume();
  return any;
}

void rill__guards_trim(struct rill__device *device, enum rill__guard_wait wait) {
  (void)release_kept(device, &(struct release){ .wait = wait });
}

bool rill__guards_flush(struct rill__device *device, const struct rill__object *pool, enum rill__guard_wait wait) {
  return release_kept(device, &(struct release){ .all = true, .pool = pool, .wait = wait });
}

void rill__guards_yield(struct rill__device *device, const struct rill__object *pool,
                        void (*take)(struct rill__guard *guard)) {
  struct rill__guards *guards = guards_of(device);
  struct rill__guard *list = NULL;
  begin_turn(guards);
  pthread_mutex_lock(&guards->lock);
  for (struct rill__guard *guard = guards->kept.first, *next; guard != NULL; guard = next) {
    next = guard->next;
    if (guard->pool != pool || guard->pending == NULL) continue;
    leave_kept(guards, guard);
    guard->next = list;
    list = guard;
  }
  pthread_mutex_unlock(&guards->lock);
  end_turn(guards);
  while (list != NULL) {
    struct rill__guard *const guard = list;
    list = guard->next;
    take(guard);
  }
}

/* ---- checking ---- */

rill_status rill__guards_check_(struct rill__device *device, bool all) {
  struct rill__guards *guards = guards_of(device);
  RILL_WITHOUT_CANCEL();
  if (atomic_load(&device->lost) != RILL_OK) return RILL_OK;
  begin_turn(guards);
  compare_live(guards);
  pthread_mutex_lock(&guards->lock);
  struct rill__guard *guard = guards->kept.first; /* no other thread removes it during this turn */
  pthread_mutex_unlock(&guards->lock);
  while (guard != NULL) {
    compare_kept(guards, guard, all ? SIZE_MAX : FIRST_BYTES);
    pthread_mutex_lock(&guards->lock);
    guard = guard->next;
    pthread_mutex_unlock(&guards->lock);
  }
  end_turn(guards);
  rill__guards_trim(device, all ? RILL__WAITS_FOR_DEVICE : RILL__WAITS_FOR_NOTHING);
  return rill__guards_report(device);
}

rill_status rill__guards_report(struct rill__device *device) {
  struct rill__guards *guards = guards_of(device);
  char text[sizeof guards->text];
  pthread_mutex_lock(&guards->lock);
  const unsigned found = guards->found;
  memcpy(text, guards->text, sizeof text);
  guards->found = 0;
  pthread_mutex_unlock(&guards->lock);
  RILL_REQUIRE(found == 0, RILL_ERROR_CHECK,
               "%s" RILL_HINT "run it on the CPU with kernels built by rillcc --check, which name the access", text);
  return RILL_OK;
}

void rill__guards_write_found(struct rill__device *device) {
  struct rill__guards *guards = guards_of(device);
  char line[sizeof guards->text + 80];
  pthread_mutex_lock(&guards->lock);
  const int length = guards->found == 0 ? 0 : snprintf(line, sizeof line, "rill: %s: %s\n", device->name, guards->text);
  guards->found = 0;
  pthread_mutex_unlock(&guards->lock);
  if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0) return; /* standard error is closed */
}

void rill__guards_visit(struct rill__device *device, rill__visit_guard *visit, void *user) {
  struct rill__guards *guards = guards_of(device);
  pthread_mutex_lock(&guards->lock);
  for (const struct rill__guard *guard = guards->live.first; guard != NULL; guard = guard->next) visit(guard, user);
  pthread_mutex_unlock(&guards->lock);
}

/* ---- fork ---- */

void rill__guards_lock(struct rill__device *device) {
  if (guards_of(device) != NULL) pthread_mutex_lock(&guards_of(device)->lock);
}

void rill__guards_unlock(struct rill__device *device) {
  if (guards_of(device) != NULL) pthread_mutex_unlock(&guards_of(device)->lock);
}

/* A guard that another thread was comparing stays pinned, so its struct is never freed in the child. */
void rill__guards_after_fork(struct rill__device *device) {
  if (guards_of(device) == NULL) return;
  (void)pthread_mutex_init(&guards_of(device)->turn, NULL);
  atomic_store(&guards_of(device)->turn_holder, NULL);
}
