#include "core/tracking/guard_bytes.h"

#include "core/held/record.h"
#include "core/stream/stream.h"
#include "core/sync/streams.h"
#include "core/sync/submit.h"
#include "core/tracking/last_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = RILL__GUARDS_BATCH, FIRST_BYTES = 4096 };

/* ---- lists; call these under the lock ---- */

static void add_last(struct rill__guard_list *list, struct rill__guard *guard) {
  guard->next = NULL;
  guard->link = list->last;
  *list->last = guard;
  list->last = &guard->next;
  list->count++;
}

static void remove_guard(struct rill__guard_list *list, struct rill__guard *guard) {
  RILL_ASSERT(list->count > 0 && *guard->link == guard && (guard->next == NULL || guard->next->link == &guard->next),
              "a guard is in one list, whose links lead to it");
  *guard->link = guard->next;
  *(guard->next != NULL ? &guard->next->link : &list->last) = guard->link;
  list->count--;
}

static uint64_t kept_bytes_of(const struct rill__guard *guard) {
  return guard->size + RILL__FRONT_ZONE + RILL__RED_ZONE;
}

static void enter_kept(struct rill__guards *guards, struct rill__guard *guard) {
  RILL_ASSERT(guard->state == RILL__GUARD_LIVE, "a guard is LIVE before it is KEPT");
  remove_guard(&guards->live, guard);
  guard->state = RILL__GUARD_KEPT;
  add_last(&guards->kept, guard);
  guards->kept_bytes += kept_bytes_of(guard);
}

static void leave_kept(struct rill__guards *guards, struct rill__guard *guard) {
  rill__guards_assert_turn(guards);
  RILL_ASSERT(guard->state == RILL__GUARD_KEPT && guards->kept_bytes >= kept_bytes_of(guard),
              "all bytes of memory that is kept back are counted");
  remove_guard(&guards->kept, guard);
  guards->kept_bytes -= kept_bytes_of(guard);
  RILL_ASSERT(guards->kept.count > 0 || guards->kept_bytes == 0, "only memory that is kept back is counted");
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
  struct rill__guards *guards = rill__guards_of(guard->device);
  pthread_mutex_lock(&guards->lock);
  RILL_ASSERT(guard->state == RILL__GUARD_LIVE, "memory that is kept back is released, never dropped");
  remove_guard(&guards->live, guard);
  guard->state = RILL__GUARD_DROPPED;
  const bool used = guard->pins > 0;
  pthread_mutex_unlock(&guards->lock);
  if (!used) rill__guard_free(guard);
}

/* ---- comparing; call these in a turn ---- */

/* Returns true if the patterns have been written, which means that the guard's event is complete. */
static bool is_settled(struct rill__guard *guard) {
  struct rill__guards *guards = rill__guards_of(guard->device);
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

static bool is_compared(struct rill__guard *guard) { return guard->zoned && !guard->reported && is_settled(guard); }

static void compare_kept(struct rill__guards *guards, struct rill__guard *guard, size_t most) {
  if (!is_compared(guard)) return;
  rill__guards_compare_zones(guards, &guard, 1);
  if (guard->filled && !guard->reported) rill__guards_compare_content(guards, guard, most);
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
    rill__guards_compare_zones(guards, compared, some);
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
  rill__guards_assert_turn(guards);
  atomic_store(&guards->turn_holder, NULL);
  pthread_mutex_unlock(&guards->turn);
}

/* Waits for a comparison that started earlier and may still read memory that the caller is about to free. */
void rill__guards_wait_for_turn(struct rill__device *device) {
  if (!rill__is_guarded(device)) return;
  pthread_mutex_lock(&rill__guards_of(device)->turn);
  pthread_mutex_unlock(&rill__guards_of(device)->turn);
}

/* ---- live ---- */

static bool write_zones_now(struct rill__guard *guard) {
  struct rill__guards *guards = rill__guards_of(guard->device);
  if (rill__guard_is_of_host(guard)) return rill__guard_fill_zones(guards, guard);
  begin_turn(guards);
  const bool written = rill__guard_fill_zones(guards, guard);
  end_turn(guards);
  return written;
}

static bool write_zones_in_order(struct rill__guard *guard, struct rill__stream *stream) {
  rill__errors_suspend();
  const bool written = !rill__is_diverted(stream) && rill__guard_write_zones(guard, stream) == RILL_OK &&
                       rill__last_use_new(stream, &guard->pending) == RILL_OK;
  rill__errors_resume();
  return written;
}

void rill__guard_enter(struct rill__guard *guard, struct rill__stream *stream) {
  struct rill__guards *guards = rill__guards_of(guard->device);
  if (guard->zoned) guard->zoned = stream != NULL ? write_zones_in_order(guard, stream) : write_zones_now(guard);
  pthread_mutex_lock(&guards->lock);
  add_last(&guards->live, guard);
  pthread_mutex_unlock(&guards->lock);
}

static void set_zoned(struct rill__guard *guard, bool zoned) {
  struct rill__guards *guards = rill__guards_of(guard->device);
  begin_turn(guards);
  guard->zoned = zoned;
  end_turn(guards);
}

void rill__guard_suspend(struct rill__guard *guard) { set_zoned(guard, false); }
void rill__guard_resume(struct rill__guard *guard) { set_zoned(guard, write_zones_now(guard)); }

/* ---- freed ---- */

/* Returns true if everything pending for the memory precedes the stream's next operation. */
static bool is_ordered(struct rill__guard *guard, const struct rill__stream *stream) {
  struct rill__guards *guards = rill__guards_of(guard->device);
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
  struct rill__guards *guards = rill__guards_of(guard->device);
  struct rill__last_use *filled = NULL;
  if (!guard->zoned || rill__is_diverted(stream) || !has_room_to_keep(guards, guard)) return false;
  rill__errors_suspend();
  const bool kept = is_ordered(guard, stream) && rill__guard_write_content(guard, stream) == RILL_OK &&
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

bool rill__guard_end(struct rill__guard *guard, bool keeps) {
  struct rill__guards *guards = rill__guards_of(guard->device);
  struct rill__device *device = guard->device;
  /* Read before the turn ends: afterwards another thread may release a guard that is kept back. */
  const struct rill__object *const guard_pool = guard->pool;
  const uint32_t kind = guard->kind;
  begin_turn(guards);
  if (is_compared(guard)) rill__guards_compare_zones(guards, &guard, 1);
  keeps = keeps && guard->zoned && guard->size <= RILL__KEPT_BYTES / 4 && rill__guard_fill_content(guards, guard);
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
  rill__guards_assert_turn(guards);
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
  struct rill__guards *guards = rill__guards_of(device);
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
  struct rill__guards *guards = rill__guards_of(device);
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
  struct rill__guards *guards = rill__guards_of(device);
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
  struct rill__guards *guards = rill__guards_of(device);
  char text[sizeof guards->text];
  pthread_mutex_lock(&guards->lock);
  const unsigned found = guards->found;
  memcpy(text, guards->text, sizeof text);
  guards->found = 0;
  pthread_mutex_unlock(&guards->lock);
  RILL_REQUIRE(found == 0, RILL_ERROR_CHECK,
               "%s" RILL_HINT
               "run it on the CPU with kernels built with rillcc --check, which report the access with its source line",
               text);
  return RILL_OK;
}

void rill__guards_write_found(struct rill__device *device) {
  struct rill__guards *guards = rill__guards_of(device);
  char line[sizeof guards->text + 80];
  pthread_mutex_lock(&guards->lock);
  const int length = guards->found == 0 ? 0 : snprintf(line, sizeof line, "rill: %s: %s\n", device->name, guards->text);
  guards->found = 0;
  pthread_mutex_unlock(&guards->lock);
  if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0) return; /* standard error is closed */
}

void rill__guards_visit(struct rill__device *device, rill__visit_guard *visit, void *user) {
  struct rill__guards *guards = rill__guards_of(device);
  pthread_mutex_lock(&guards->lock);
  for (const struct rill__guard *guard = guards->live.first; guard != NULL; guard = guard->next) visit(guard, user);
  pthread_mutex_unlock(&guards->lock);
}

/* ---- fork ---- */

void rill__guards_lock(struct rill__device *device) {
  if (rill__guards_of(device) != NULL) pthread_mutex_lock(&rill__guards_of(device)->lock);
}

void rill__guards_unlock(struct rill__device *device) {
  if (rill__guards_of(device) != NULL) pthread_mutex_unlock(&rill__guards_of(device)->lock);
}

/* A guard that another thread was comparing stays pinned, so its struct is never freed in the child. */
void rill__guards_after_fork(struct rill__device *device) {
  if (rill__guards_of(device) == NULL) return;
  (void)pthread_mutex_init(&rill__guards_of(device)->turn, NULL);
  atomic_store(&rill__guards_of(device)->turn_holder, NULL);
}
