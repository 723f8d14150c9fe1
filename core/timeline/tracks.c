#include "core/timeline/tracks.h"

#include "core/object/error.h"
#include "core/sync/submit.h"
#include "core/timeline/clock.h"
#include "core/timeline/file.h"
#include "core/timeline/item.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
  BUCKETS = 256,
  KEPT_TRACKS = 1024,  /* if there are more, tracks without operations are freed */
  MAX_PENDING = 16384, /* limit on operations; further operations are dropped */
  MANY_PENDING = 8192, /* number of pending operations from which the thread of the trace starts early */
  ITEMS_AT_ONCE = 64,
  BATCH = 128,
  /* number of operations after which an idle stream, or a busy stream, is queried again */
  QUERY_IDLE = 4,
  QUERY_BUSY = 8,
  ARROWS = 4096
};

struct track {
  struct track *next;
  uint64_t number; /* number of the stream */
  uint64_t trace;  /* the trace in which the track was introduced */
  struct rill__trace_line line;
  bool harvested;
  uint32_t users;
  _Atomic uint32_t asking;
  /* operations of the stream when the latest one got its end event; the next operation then follows it directly */
  uint64_t submitted;
  /* number of operations for which the last answer is assumed to hold, so the driver is not queried; and that answer
   */
  _Atomic uint32_t queries_to_skip;
  _Atomic bool was_busy;
  struct rill__trace_item *latest; /* the latest operation with an end event; NULL if it was removed */
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

static uint64_t last_arrow;
static struct arrow {
  const struct rill__event *event;
  uint64_t number;
} arrows[ARROWS];

uint64_t rill__trace_number(void) { return atomic_load(&trace_number); }

bool rill__trace_has_many(void) {
  const uint32_t count = atomic_load_explicit(&pending, memory_order_relaxed);
  return count >= MANY_PENDING && count % BATCH == 0;
}

void rill__trace_renew(void) {
  pthread_mutex_lock(&tracks_lock);
  memset(arrows, 0, sizeof arrows);
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
  track->line =
      (struct rill__trace_line){ .process = rill__trace_process(stream->base.device), .number = stream->number };
  track->last = &track->first;
  *link = track;
  track_count++;
  return track;
}

/* Returns a record; NULL if memory ran out or the limit of pending operations is reached. */
static struct rill__trace_item *take_item(void) {
  if (atomic_load_explicit(&pending, memory_order_relaxed) >= MAX_PENDING) return NULL;
  if (free_items == NULL) {
    struct rill__trace_item *const more = calloc(ITEMS_AT_ONCE, sizeof *more);
    for (size_t i = 0; more != NULL && i < ITEMS_AT_ONCE; i++) {
      more[i].next = free_items;
      free_items = &more[i];
    }
  }
  struct rill__trace_item *const item = free_items;
  if (item == NULL) return NULL;
  free_items = item->next;
  atomic_fetch_add_explicit(&pending, 1, memory_order_relaxed);
  item->next = item->outer = NULL;
  item->start = item->end = NULL;
  item->open = item->nested = false;
  item->arrow = 0;
  item->trace = rill__trace_number();
  return item;
}

static void recycle_item(struct rill__trace_item *item) {
  RILL_ASSERT(atomic_load(&pending) > 0, "a recycled item was counted as pending");
  item->next = free_items;
  free_items = item;
  atomic_fetch_sub_explicit(&pending, 1, memory_order_relaxed);
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
  RILL_ASSERT(track->users == 0 && track->first == NULL && atomic_load(&track->asking) == 0,
              "a track that is freed has no users, no operations and no queries in progress");
  *find_track(track->number) = track->next;
  track_count--;
  free(track);
}

static void leave_track(struct track *track) {
  track->harvested = false;
  if (track->first == NULL && track->users == 0 && track_count > KEPT_TRACKS) unlink_track(track);
}

/* ---- submitting; call these without a lock ---- */

static void free_item(struct rill__trace_item *item) {
  struct rill__event *const events[] = { item->start, item->end };
  rill__trace_events_put(events, 2);
  pthread_mutex_lock(&tracks_lock);
  recycle_item(item);
  pthread_mutex_unlock(&tracks_lock);
}

/* An operation that starts.  `query`: the end event of the operation before it, if that end may also be the start of
 * this operation, which a query to the driver has to show.  The track then counts this thread in `asking`.  `busy`: the
 * stream is taken to be executing the operation before. */
struct starting {
  struct track *track;
  struct rill__trace_item *item;
  struct rill__event *query;
  bool busy;
};

/* Returns true if the end of the stream's latest operation may be the start of the next one: nothing was submitted in
 * between, and the operation is not known to be complete. */
static bool may_follow(const struct track *track, struct rill__stream *stream) {
  return track->latest != NULL && track->submitted == rill__submission_count(&rill__core(stream)->work) &&
         !atomic_load_explicit(&stream->foreign, memory_order_relaxed) && !rill__known_idle(stream);
}

static bool start_in_track(struct rill__stream *stream, bool timed, struct starting *out) {
  const uint64_t trace = rill__trace_number();
  bool introduced = true;
  pthread_mutex_lock(&tracks_lock);
  struct track *const track = track_of(stream);
  struct rill__trace_item *const item = track != NULL ? take_item() : NULL;
  *out = (struct starting){ track, item, NULL, false };
  if (item != NULL) {
    track->users++;
    introduced = track->trace == trace;
    track->trace = trace;
    const bool follows = timed && may_follow(track, stream);
    if (follows && atomic_load(&track->queries_to_skip) > 0) {
      atomic_fetch_sub(&track->queries_to_skip, 1);
      out->busy = atomic_load(&track->was_busy);
    } else if (follows) {
      out->query = track->latest->end;
      atomic_fetch_add(&track->asking, 1);
    }
  }
  pthread_mutex_unlock(&tracks_lock);
  if (!introduced) {
    rill__trace_introduce(rill__trace_process(stream->base.device), stream->base.device->name, stream->number,
                          rill__name_of(&stream->base).text);
  }
  if (item == NULL) rill__trace_file_drop();
  return item != NULL;
}

/* Returns true if the stream is still executing the operation before. */
static bool is_busy_with(const struct starting *starting) {
  bool ready = true;
  if (starting->query == NULL) return starting->busy;
  const rill_status status = RILL_DISPATCH(starting->query, event, is_ready, starting->query, &ready);
  const bool busy = status == RILL_OK && !ready;
  atomic_store(&starting->track->was_busy, busy);
  atomic_store(&starting->track->queries_to_skip, (busy ? QUERY_BUSY : QUERY_IDLE) - 1);
  atomic_fetch_sub(&starting->track->asking, 1);
  return busy;
}

static bool record_now(struct rill__stream *stream, struct rill__event **event) {
  *event = rill__trace_event_take(stream->base.device);
  return *event != NULL && rill__record_unobserved(stream, *event, 0) == RILL_OK;
}

static void give_up(struct starting *starting) {
  pthread_mutex_lock(&tracks_lock);
  starting->track->users--;
  pthread_mutex_unlock(&tracks_lock);
  free_item(starting->item);
  rill__trace_file_drop();
}

struct rill__trace_item *rill__trace_begin(const struct rill__observed *what, uint64_t now) {
  struct starting starting;
  struct rill__stream *const stream = what->stream;
  const bool timed = what->kind != RILL__OBSERVED_RECORD;
  if (what->kind > RILL__OBSERVED_UPLOAD || !start_in_track(stream, timed, &starting)) return NULL;
  struct rill__trace_item *const item = starting.item;
  item->track = starting.track;
  rill__trace_describe(item, what, now);
  item->follows_before = is_busy_with(&starting);
  if (!timed) return item;
  item->base = rill__trace_base(what->device);
  if (item->base != 0 && (item->follows_before || record_now(stream, &item->start))) return item;
  give_up(&starting);
  return NULL;
}

/* Returns the arrow from the last record of an event to the waits for it.  If two events share a place in the table,
 * the later one is used. */
static uint64_t arrow_of(const struct rill__observed *what) {
  if (what->kind != RILL__OBSERVED_RECORD && what->kind != RILL__OBSERVED_WAIT) return 0;
  const struct rill__event *const event = what->event.event;
  struct arrow *const arrow = &arrows[(uintptr_t)event / 64 % ARROWS];
  if (what->kind == RILL__OBSERVED_RECORD) *arrow = (struct arrow){ event, ++last_arrow };
  return arrow->event == event ? arrow->number : 0;
}

void rill__trace_end(const struct rill__observed *what, struct rill__trace_item *item, rill_status status) {
  struct rill__stream *const stream = what->stream;
  struct track *const track = item->track;
  const bool point = what->kind == RILL__OBSERVED_RECORD;
  if (status != RILL_OK || (!point && !record_now(stream, &item->end))) {
    struct starting starting = { track, item, NULL, false };
    give_up(&starting);
    return;
  }
  pthread_mutex_lock(&tracks_lock);
  item->arrow = arrow_of(what);
  add_to_track(track, item);
  const uint64_t submitted = rill__submission_count(&rill__core(stream)->work);
  if (!point) track->latest = item;
  if (!point || track->submitted + 1 == submitted) track->submitted = submitted; /* a record or wait takes no time */
  track->users--;
  pthread_mutex_unlock(&tracks_lock);
}

/* ---- notes ---- */

void rill__trace_note_begin(struct rill__stream *stream, const rill_stream_note *note) {
  struct starting starting;
  if (!start_in_track(stream, false, &starting)) return;
  struct rill__trace_item *const item = starting.item;
  item->track = starting.track;
  rill__trace_describe_note(item, note, rill__trace_now());
  item->base = rill__trace_base(stream->base.device);
  if (item->base == 0 || !record_now(stream, &item->start)) {
    give_up(&starting);
    return;
  }
  pthread_mutex_lock(&tracks_lock);
  item->open = true;
  item->nested = starting.track->opened != NULL;
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
  item->open = false;
  track->users--;
  pthread_mutex_unlock(&tracks_lock);
}

void rill__trace_note_ran(struct rill__stream *stream, const rill_stream_note *note, uint64_t begin, uint64_t end) {
  struct starting starting;
  if (!start_in_track(stream, false, &starting)) return;
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

/* Lists the operations of a track from its first one, up to a note that has not ended. */
static size_t list_items(struct track *track, struct rill__trace_item *items[BATCH]) {
  size_t count = 0;
  pthread_mutex_lock(&tracks_lock);
  for (struct rill__trace_item *item = track->first; item != NULL && !item->open && count < BATCH; item = item->next)
    items[count++] = item;
  pthread_mutex_unlock(&tracks_lock);
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

/* Removes the first operations, but not one whose end a thread is querying; returns the number removed. */
static size_t take_items(struct track *track, struct rill__trace_item *const items[BATCH], size_t count) {
  pthread_mutex_lock(&tracks_lock);
  for (size_t i = count; i-- > 0;) {
    if (items[i] != track->latest) continue;
    if (atomic_load(&track->asking) != 0) {
      count = i;
    } else {
      track->latest = NULL;
    }
  }
  for (size_t i = 0; i < count; i++) {
    RILL_ASSERT(track->harvested && track->first == items[i],
                "only the thread that harvests a track removes operations, in their order");
    track->first = items[i]->next;
  }
  if (track->first == NULL) track->last = &track->first;
  track->count -= count;
  pthread_mutex_unlock(&tracks_lock);
  return count;
}

static void return_items(struct rill__trace_item *const items[BATCH], size_t count) {
  struct rill__event *events[2 * BATCH];
  for (size_t i = 0; i < count; i++) {
    events[2 * i] = items[i]->start;
    events[2 * i + 1] = items[i]->end;
  }
  rill__trace_events_put(events, 2 * count);
  pthread_mutex_lock(&tracks_lock);
  for (size_t i = 0; i < count; i++) recycle_item(items[i]);
  pthread_mutex_unlock(&tracks_lock);
}

/* Writes some operations of a track that the caller has taken; returns the number written. */
static size_t harvest_some(struct track *track, bool wait) {
  struct rill__trace_item *items[BATCH] = { NULL };
  const uint64_t trace = rill__trace_number();
  const size_t listed = list_items(track, items);
  const size_t count = take_items(track, items, count_ended(items, listed, wait));
  for (size_t i = 0; i < count; i++) {
    if (items[i]->trace == trace) rill__trace_write(&track->line, items[i]);
  }
  if (count > 0) return_items(items, count);
  return count;
}

static void harvest_track(struct track *track, bool wait) {
  bool more = true;
  rill__errors_suspend();
  while (more) {
    const size_t count = harvest_some(track, wait);
    pthread_mutex_lock(&tracks_lock);
    more = count > 0 || (wait && track->first != NULL && !track->first->open);
    pthread_mutex_unlock(&tracks_lock);
    if (more && count == 0) (void)sched_yield(); /* a thread is querying the last one at this moment */
  }
  rill__errors_resume();
  pthread_mutex_lock(&tracks_lock);
  leave_track(track);
  pthread_mutex_unlock(&tracks_lock);
}

void rill__trace_harvest(bool wait) {
  if (atomic_load(&pending) == 0) return;
  for (uint32_t i = 0; i < BUCKETS; i++) {
    /* visits the tracks of a bucket in the order of their numbers, because other threads add and remove tracks during
     * the loop */
    uint64_t done = 0;
    for (;;) {
      struct track *next = NULL;
      pthread_mutex_lock(&tracks_lock);
      for (struct track *t = tracks[i]; t != NULL; t = t->next) {
        if (t->number > done && (next == NULL || t->number < next->number)) next = t;
      }
      if (next != NULL) done = next->number;
      struct track *const taken = take_track(next);
      pthread_mutex_unlock(&tracks_lock);
      if (next == NULL) break;
      if (taken != NULL) {
        harvest_track(taken, wait);
      } else if (wait) { /* another thread is harvesting it at the moment */
        done--;
        (void)sched_yield();
      }
    }
  }
}

/* ---- the end of a trace ---- */

/* Removes the first operation of a track that no thread is harvesting; NULL if there is none. */
static struct rill__trace_item *take_first(struct track *track) {
  struct rill__trace_item *const item = track->first;
  if (item == NULL || item->open || (item == track->latest && atomic_load(&track->asking) != 0)) return NULL;
  if (item == track->latest) track->latest = NULL;
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
      free_item(item);
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
  atomic_store(&pending, 0);
}
