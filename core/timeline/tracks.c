#include "core/timeline/tracks.h"

#include "core/object/error.h"
#include "core/sync/submit.h"
#include "core/timeline/arrows.h"
#include "core/timeline/clock.h"
#include "core/timeline/file.h"
#include "core/timeline/item.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
  BUCKETS = 256,
  KEPT_TRACKS = 1024,         /* if there are more, tracks without operations are freed */
  MAX_PENDING = 16384,        /* limit on operations; further operations are dropped */
  MANY_PENDING = 8192,        /* number of pending operations from which the thread of the trace starts early */
  FIRST_ITEMS = MANY_PENDING, /* records that a trace starts with */
  ITEMS_AT_ONCE = 64,
  BATCH = 128
};

struct track {
  struct track *next;
  uint64_t number; /* number of the stream */
  unsigned process;
  uint64_t trace; /* the trace in which the track was named */
  struct rill__trace_line line;
  bool harvested;
  uint32_t users;
  /* count of the stream's submissions up to the latest operation with an end event; if the count has not changed, the
   * next operation follows directly */
  uint64_t submitted;
  struct rill__trace_item *opened; /* the latest note that has not ended; linked by `outer` */
  struct rill__trace_item *first, **last;
  size_t count;
};

static pthread_mutex_t tracks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct track *tracks[BUCKETS];
static struct rill__trace_item *free_items; /* kept until the process ends */
static uint32_t track_count;
static _Atomic uint32_t pending;
static _Atomic uint64_t trace_number;

uint64_t rill__trace_number(void) { return atomic_load(&trace_number); }

bool rill__trace_has_many(void) {
  const uint32_t count = atomic_load_explicit(&pending, memory_order_relaxed);
  return count >= MANY_PENDING && count % BATCH == 0;
}

/* Adds unused records.  Call it under the lock. */
static void add_free_items(size_t count) {
  struct rill__trace_item *const more = malloc(count * sizeof *more);
  if (more == NULL) return;
  memset(more, 0, count * sizeof *more); /* so that the submitting thread has no page faults */
  for (size_t i = 0; i < count; i++) more[i].next = i + 1 < count ? &more[i + 1] : free_items;
  free_items = more;
}

void rill__trace_renew(void) {
  rill__arrows_renew();
  pthread_mutex_lock(&tracks_lock);
  if (free_items == NULL) add_free_items(FIRST_ITEMS);
  pthread_mutex_unlock(&tracks_lock);
  atomic_fetch_add(&trace_number, 1);
}

/* ---- under the lock ---- */

static struct track **find_track(uint64_t number) {
  struct track **link = &tracks[number % BUCKETS];
  while (*link != NULL && (*link)->number != number) link = &(*link)->next;
  return link;
}

/* Returns the stream's track; NULL if memory ran out. */
static struct track *track_of(const struct rill__stream *stream) {
  struct track **const link = find_track(stream->number);
  if (*link != NULL) return *link;
  struct track *const track = calloc(1, sizeof *track);
  if (track == NULL) return NULL;
  track->number = stream->number;
  track->process = rill__trace_process(stream->base.device);
  track->last = &track->first;
  *link = track;
  track_count++;
  return track;
}

/* Returns a record; NULL if memory ran out or the limit of pending operations is reached. */
static struct rill__trace_item *take_item(void) {
  if (atomic_load_explicit(&pending, memory_order_relaxed) >= MAX_PENDING) return NULL;
  if (free_items == NULL) add_free_items(ITEMS_AT_ONCE);
  struct rill__trace_item *const item = free_items;
  if (item == NULL) return NULL;
  free_items = item->next;
  rill__trace_item_cache(free_items); /* for the next operation */
  atomic_fetch_add_explicit(&pending, 1, memory_order_relaxed);
  item->next = item->outer = NULL;
  item->start = item->end = NULL;
  atomic_store(&item->open, false);
  item->arrow = 0;
  item->trace = rill__trace_number();
  return item;
}

static void add_to_track(struct track *track, struct rill__trace_item *item) {
  item->next = NULL;
  *track->last = item;
  track->last = &item->next;
  track->count++;
}

/* Takes the track for harvesting; NULL if another thread has it. */
static struct track *take_track(struct track *track) {
  if (track == NULL || track->harvested) return NULL;
  track->harvested = true;
  return track;
}

static void unlink_track(struct track *track) {
  RILL_ASSERT(track->users == 0 && track->first == NULL, "a track that is freed has no users and no operations");
  *find_track(track->number) = track->next;
  track_count--;
  free(track);
}

static void leave_track(struct track *track) {
  track->harvested = false;
  if (track->first == NULL && track->users == 0 && track_count > KEPT_TRACKS) unlink_track(track);
}

/* ---- submitting; call these without a lock ---- */

/* Recycles records and their events, which are of one device.  The lock is held for a few instructions, because
 * threads that submit need it. */
static void return_items(struct rill__trace_item *const items[], size_t count) {
  struct rill__event *events[2 * BATCH];
  RILL_ASSERT(count > 0 && count <= BATCH, "there is room for the events");
  for (size_t i = 0; i < count; i++) {
    events[2 * i] = items[i]->start;
    events[2 * i + 1] = items[i]->end;
    if (i > 0) items[i]->next = items[i - 1];
  }
  rill__trace_events_put(events, 2 * count);
  pthread_mutex_lock(&tracks_lock);
  RILL_ASSERT(atomic_load(&pending) >= count, "recycled items were counted as pending");
  items[0]->next = free_items;
  free_items = items[count - 1];
  atomic_fetch_sub_explicit(&pending, (uint32_t)count, memory_order_relaxed);
  pthread_mutex_unlock(&tracks_lock);
}

/* An operation that starts. */
struct starting {
  struct track *track;
  struct rill__trace_item *item;
};

/* Finds out how much the track knows about the work before the operation.  Call it under the lock. */
static void place_after(struct rill__trace_item *item, const struct track *track, struct rill__stream *stream) {
  const bool own = !atomic_load_explicit(&stream->foreign, memory_order_relaxed);
  const bool idle = rill__known_idle(stream) || rill__never_had_work(stream);
  item->before = rill__submission_count(&rill__core(stream)->work);
  item->exact = own && (idle || track->submitted == item->before);
  item->follows_before = item->exact && !idle;
}

static bool start_in_track(struct rill__stream *stream, struct starting *out) {
  const uint64_t trace = rill__trace_number();
  bool named = true;
  pthread_mutex_lock(&tracks_lock);
  struct track *const track = track_of(stream);
  struct rill__trace_item *const item = track != NULL ? take_item() : NULL;
  *out = (struct starting){ track, item };
  if (item != NULL) {
    track->users++;
    named = track->trace == trace;
    track->trace = trace;
    item->depth = track->opened != NULL ? track->opened->depth + 1 : 0;
    place_after(item, track, stream);
  }
  pthread_mutex_unlock(&tracks_lock);
  if (!named) {
    rill__trace_name_process(stream->base.device);
    rill__trace_name_track(rill__trace_process(stream->base.device), stream->number, rill__name_of(&stream->base).text);
  }
  if (item == NULL) rill__trace_file_drop();
  return item != NULL;
}

static bool record_now(struct rill__stream *stream, struct rill__event **event) {
  *event = rill__trace_event_take(stream->base.device);
  return *event != NULL && rill__record_unobserved(stream, *event, 0) == RILL_OK;
}

static void give_up(struct starting *starting) {
  pthread_mutex_lock(&tracks_lock);
  starting->track->users--;
  pthread_mutex_unlock(&tracks_lock);
  return_items(&starting->item, 1);
  rill__trace_file_drop();
}

struct rill__trace_item *rill__trace_begin(const struct rill__observed *what, uint64_t base, uint64_t now) {
  struct starting starting;
  struct rill__stream *const stream = what->stream;
  if (!start_in_track(stream, &starting)) return NULL;
  struct rill__trace_item *const item = starting.item;
  item->track = starting.track;
  item->base = base;
  rill__trace_describe(item, what, now);
  if (what->kind == RILL__OBSERVED_RECORD) return item;
  if (what->kind == RILL__OBSERVED_WAIT && item->exact) item->follows_before = true; /* it begins at its submission */
  if (base != 0 && (item->follows_before || record_now(stream, &item->start))) return item;
  give_up(&starting);
  return NULL;
}

/* Finds the end of an operation that was submitted.  Returns false if the operation cannot be timed. */
static bool end_item(const struct rill__observed *what, struct rill__trace_item *item) {
  bool exact = false;
  if (what->kind == RILL__OBSERVED_RECORD) return true;
  if (what->kind == RILL__OBSERVED_WAIT) item->arrow = rill__arrow_find(what->event.event, &exact);
  return (exact && item->exact) || record_now(what->stream, &item->end);
}

void rill__trace_end(const struct rill__observed *what, struct rill__trace_item *item, rill_status status) {
  struct rill__stream *const stream = what->stream;
  struct track *const track = item->track;
  if (status != RILL_OK || !end_item(what, item)) {
    struct starting starting = { track, item };
    give_up(&starting);
    return;
  }
  pthread_mutex_lock(&tracks_lock);
  if (what->kind == RILL__OBSERVED_RECORD)
    item->arrow = rill__arrow_begin(what->event.event, stream->number, item->exact);
  add_to_track(track, item);
  const uint64_t submitted = rill__submission_count(&rill__core(stream)->work);
  const bool alone = item->exact && submitted == item->before + 1;
  if (item->end != NULL || alone) track->submitted = submitted;
  track->users--;
  pthread_mutex_unlock(&tracks_lock);
}

/* ---- notes ---- */

void rill__trace_note_begin(struct rill__stream *stream, const rill_stream_note *note) {
  struct starting starting;
  if (!start_in_track(stream, &starting)) return;
  struct rill__trace_item *const item = starting.item;
  item->track = starting.track;
  item->base = rill__trace_base(stream->base.device);
  rill__trace_describe_note(item, note, rill__trace_now());
  if (item->base == 0 || !record_now(stream, &item->start)) {
    give_up(&starting);
    return;
  }
  pthread_mutex_lock(&tracks_lock);
  atomic_store(&item->open, true);
  item->outer = starting.track->opened;
  starting.track->opened = item;
  add_to_track(starting.track, item);
  pthread_mutex_unlock(&tracks_lock); /* the note is a user of the track until it ends */
}

void rill__trace_note_end(struct rill__stream *stream) {
  pthread_mutex_lock(&tracks_lock);
  struct track *const track = *find_track(stream->number);
  struct rill__trace_item *const item = track != NULL ? track->opened : NULL;
  if (item != NULL) track->opened = item->outer;
  pthread_mutex_unlock(&tracks_lock);
  if (item == NULL) return; /* it began before the trace, or was dropped */
  struct rill__event *end = NULL;
  const bool recorded = record_now(stream, &end);
  pthread_mutex_lock(&tracks_lock);
  item->end = end;
  item->failed = !recorded;
  atomic_store(&item->open, false);
  track->users--;
  pthread_mutex_unlock(&tracks_lock);
}

void rill__trace_note_ran(struct rill__stream *stream, const rill_stream_note *note, uint64_t begin, uint64_t end) {
  struct starting starting;
  if (!start_in_track(stream, &starting)) return;
  rill__trace_describe_note(starting.item, note, begin);
  starting.item->ran = true;
  starting.item->ran_until = end;
  pthread_mutex_lock(&tracks_lock);
  add_to_track(starting.track, starting.item);
  starting.track->users--;
  pthread_mutex_unlock(&tracks_lock);
}

/* ---- writing what is complete ---- */

/* Returns true if the first `count` operations are complete or will never complete.  Only the last operation with an
 * event is queried. */
static bool have_ended(struct rill__trace_item *const items[BATCH], size_t count, bool wait) {
  bool ready = true;
  while (count > 0 && items[count - 1]->end == NULL) count--;
  if (count == 0) return true;
  const struct rill__trace_item *const item = items[count - 1];
  const rill_status status = wait ? RILL_DISPATCH(item->end, event, synchronize, item->end, RILL__FOREVER)
                                  : RILL_DISPATCH(item->end, event, is_ready, item->end, &ready);
  return status != RILL_OK || ready;
}

/* An operation may not be writable yet although it is complete: a note that has not ended, and a wait whose arrow
 * begins at a record that has not been written.  Returns that record's arrow, BY_NOTE, or 0. */
enum { BY_NOTE = 1 }; /* smaller than any arrow */
static uint64_t blocked_by(const struct rill__trace_item *item) {
  if (atomic_load(&item->open)) return BY_NOTE;
  const bool points = item->kind == RILL__OBSERVED_WAIT && item->arrow != 0 && item->trace == rill__trace_number();
  return points && rill__arrow_stream(item->arrow) != 0 ? item->arrow : 0;
}

/* Lists the operations of a track from its first one, up to a note or one that is blocked, so that the last one in the
 * list ends last.  Only the thread that harvests the track removes operations, so those that are in the track now stay
 * linked without the lock. */
static size_t list_items(struct track *track, struct rill__trace_item *items[BATCH]) {
  size_t count = 0;
  pthread_mutex_lock(&tracks_lock);
  struct rill__trace_item *item = track->first;
  const size_t there = track->count < BATCH ? track->count : BATCH;
  pthread_mutex_unlock(&tracks_lock);
  while (count < there && blocked_by(item) == 0) {
    items[count++] = item;
    if (item->kind == RILL__OBSERVED_NOTE) break; /* it may end after operations that follow it */
    if (count < there)
      rill__trace_item_cache(item = item->next); /* a thread may be linking another operation to the last one */
  }
  return count;
}

/* Returns the number of listed operations that have ended: queries all of them first, and then searches by
 * bisection. */
static size_t count_ended(struct rill__trace_item *const items[BATCH], size_t count, bool wait) {
  if (have_ended(items, count, wait)) return count;
  size_t ended = 0;
  while (ended + 1 < count) { /* the first `ended` have ended, the first `count` have not */
    const size_t middle = ended + (count - ended) / 2;
    if (have_ended(items, middle, false)) {
      ended = middle;
    } else {
      count = middle;
    }
  }
  return ended;
}

/* Removes the first operations. */
static void take_items(struct track *track, struct rill__trace_item *const items[BATCH], size_t count) {
  pthread_mutex_lock(&tracks_lock);
  RILL_ASSERT(track->harvested && track->first == items[0] && track->count >= count,
              "only the thread that harvests a track removes operations, in their order");
  track->first = items[count - 1]->next;
  if (track->first == NULL) track->last = &track->first;
  track->count -= count;
  pthread_mutex_unlock(&tracks_lock);
}

/* Writes some operations of a track that the caller has taken; returns the number written. */
static size_t harvest_some(struct track *track, bool wait) {
  struct rill__trace_item *items[BATCH] = { NULL };
  const uint64_t trace = rill__trace_number();
  const size_t count = count_ended(items, list_items(track, items), wait);
  if (count == 0) return 0;
  take_items(track, items, count);
  for (size_t i = 0; i < count; i++) {
    if (items[i]->trace == trace) {
      if (track->line.trace != trace)
        track->line = (struct rill__trace_line){ .process = track->process, .number = track->number, .trace = trace };
      rill__trace_write(&track->line, items[i]);
    } else if (items[i]->kind == RILL__OBSERVED_RECORD) {
      rill__arrow_reached(items[i]->arrow, 0, 0);
    }
  }
  return_items(items, count);
  return count;
}

/* Writes what is complete of a track that the caller has taken; returns what its first operation is blocked by. */
static uint64_t harvest_track(struct track *track, bool wait, bool *wrote) {
  rill__errors_suspend();
  while (harvest_some(track, wait) > 0) *wrote = true;
  rill__errors_resume();
  pthread_mutex_lock(&tracks_lock);
  const struct rill__trace_item *const first = track->first;
  pthread_mutex_unlock(&tracks_lock);
  const uint64_t arrow = first != NULL ? blocked_by(first) : 0;
  pthread_mutex_lock(&tracks_lock);
  leave_track(track);
  pthread_mutex_unlock(&tracks_lock);
  return arrow;
}

/* Does the same for the track of a stream; waits for another thread that is harvesting it. */
static uint64_t harvest_stream(uint64_t stream, bool wait, bool *wrote) {
  for (;;) {
    pthread_mutex_lock(&tracks_lock);
    struct track *const track = *find_track(stream), *const taken = take_track(track);
    pthread_mutex_unlock(&tracks_lock);
    if (taken != NULL) return harvest_track(taken, wait, wrote);
    if (track == NULL) return 0;
    (void)sched_yield();
  }
}

/* Writes the record of an arrow or, if it is blocked, a record that blocks it directly or indirectly.  Returns true if
 * something was written.  The loop terminates: a wait that blocks a record came before it, so its arrow has a smaller
 * number. */
static bool harvest_record(uint64_t arrow, bool wait) {
  bool wrote = false;
  while (arrow > BY_NOTE) {
    const uint64_t stream = rill__arrow_stream(arrow);
    const uint64_t before = stream != 0 ? harvest_stream(stream, wait, &wrote) : 0;
    if (rill__arrow_stream(arrow) == 0) return true;
    RILL_ASSERT(before < arrow, "a record is blocked by an earlier one");
    arrow = before;
  }
  return wrote;
}

/* Writes what is complete of a stream. */
static void harvest_with_records(uint64_t stream, bool wait) {
  uint64_t arrow = 0;
  do {
    bool wrote = false;
    arrow = harvest_stream(stream, wait, &wrote);
  } while (arrow > BY_NOTE && harvest_record(arrow, wait));
}

void rill__trace_harvest(bool wait) {
  if (atomic_load(&pending) == 0) return;
  for (uint32_t i = 0; i < BUCKETS; i++) {
    /* visits the tracks of a bucket in the order of their numbers, because tracks are added and removed meanwhile */
    uint64_t done = 0;
    for (;;) {
      uint64_t next = 0;
      pthread_mutex_lock(&tracks_lock);
      for (const struct track *t = tracks[i]; t != NULL; t = t->next) {
        if (t->number > done && (next == 0 || t->number < next)) next = t->number;
      }
      pthread_mutex_unlock(&tracks_lock);
      if (next == 0) break;
      harvest_with_records(next, wait);
      done = next;
    }
  }
}

/* ---- the end of a trace ---- */

/* Removes the first operation of a track that no thread is harvesting; NULL if there is none. */
static struct rill__trace_item *take_first(struct track *track) {
  struct rill__trace_item *const item = track->first;
  if (item == NULL || atomic_load(&item->open)) return NULL;
  track->first = item->next;
  if (track->first == NULL) track->last = &track->first;
  track->count--;
  return item;
}

uint64_t rill__trace_forget(void) {
  uint64_t forgotten = 0;
  for (uint32_t i = 0; i < BUCKETS; i++) {
    struct rill__trace_item *item = NULL;
    do {
      pthread_mutex_lock(&tracks_lock);
      for (struct track *t = tracks[i]; t != NULL && item == NULL; t = t->next) {
        if (!t->harvested) item = take_first(t);
      }
      for (struct track *t = tracks[i], *next; t != NULL && item == NULL; t = next) {
        next = t->next;
        if (t->first == NULL && t->users == 0 && !t->harvested) unlink_track(t);
      }
      pthread_mutex_unlock(&tracks_lock);
      if (item == NULL) break;
      return_items(&item, 1);
      item = NULL;
      forgotten++;
    } while (true);
  }
  return forgotten;
}

void rill__trace_tracks_after_fork(void) {
  pthread_mutex_init(&tracks_lock, NULL); /* another thread may have held it */
  for (uint32_t i = 0; i < BUCKETS; i++) tracks[i] = NULL;
  free_items = NULL;
  track_count = 0;
  rill__arrows_after_fork();
  atomic_store(&pending, 0);
}
