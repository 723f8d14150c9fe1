#include "core/pool_lanes.h"

#include "core/held.h"

#include <stdlib.h>
#include <string.h>

#define FOR_EACH_LANE(pool, lane)                                     \
  for (unsigned bucket_ = 0; bucket_ < RILL__LANE_BUCKETS; bucket_++) \
    for (struct rill__lane *lane = atomic_load(&(pool)->lanes[bucket_]); lane != NULL; lane = lane->next)

/* ---- uses ---- */

rill_status rill__pool_check_capture(struct rill__stream *stream) {
  if (RILL__LIKELY(!atomic_load_explicit(&stream->foreign, memory_order_relaxed))) return RILL_OK;
  bool capturing = false;
  RILL_TRY(RILL_DOOR(stream, stream, is_capturing, stream, &capturing));
  RILL_REQUIRE(
      !capturing, RILL_ERROR_CAPTURE_ACTIVE,
      "%s is capturing: a graph that is launched later would use memory that the pool has given to others" RILL_HINT
      "allocate before the capture",
      rill__name_of(&stream->base).text);
  return RILL_OK;
}

rill_status rill__use_new(struct rill__stream *stream, struct rill__use **out) {
  *out = NULL;
  struct rill__use *use = calloc(1, sizeof *use);
  RILL_REQUIRE(use != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to note where memory is used");
  rill_status status = rill__pool_check_capture(stream);
  if (status == RILL_OK) status = rill__event_create(stream->base.device, NULL, &use->event);
  if (status == RILL_OK) status = rill__stream_record(stream, use->event, 0);
  if (status != RILL_OK) {
    rill__uses_free(use);
    return status;
  }
  *out = use;
  return RILL_OK;
}

void rill__uses_free(struct rill__use *list) {
  while (list != NULL) {
    struct rill__use *use = list;
    list = use->next;
    if (use->event != NULL) rill__object_retire(&use->event->base);
    free(use);
  }
}

/* A device that is lost has no work: nothing uses memory any more. */
static bool is_complete(const struct rill__use *use) {
  bool ready = false;
  if (atomic_load(&use->event->base.device->lost) != RILL_OK) return true;
  rill__errors_aside();
  const bool known = rill__event_is_ready(rill__self, use->event, &ready) == RILL_OK;
  rill__errors_back();
  return known && ready;
}

static bool all_complete(const struct rill__use *list) {
  for (; list != NULL; list = list->next) {
    if (!is_complete(list)) return false;
  }
  return true;
}

/* Makes the stream wait for a use; false if it would have to be held for that: what holds the one stream may be waiting
 * for the other. */
static bool wait_for(struct rill__stream *stream, const struct rill__use *use) {
  if (atomic_load(&use->event->held_point) != NULL) return false;
  rill__errors_aside();
  const bool done = rill__stream_wait(stream, use->event) == RILL_OK;
  rill__errors_back();
  return done;
}

/* ---- life ---- */

/* A lane without a stream whose blocks any stream may use.  Under the pool's lock. */
static struct rill__lane *adopt(struct rill__pool *pool, struct rill__stream *stream) {
  struct rill__lane *lane = atomic_load(&pool->lanes[stream->number % RILL__LANE_BUCKETS]);
  for (; lane != NULL; lane = lane->next) {
    if (atomic_load(&lane->number) != 0) continue;
    rill__lane_lock(lane);
    const bool free = lane->stream == NULL && lane->done == lane->freed;
    if (free) {
      lane->stream = stream;
      atomic_store(&lane->number, stream->number);
    }
    rill__lane_unlock(lane);
    if (free) return lane;
  }
  return NULL;
}

static struct rill__lane *make(struct rill__pool *pool, struct rill__stream *stream) {
  const size_t size = (sizeof(struct rill__lane) + 63) / 64 * 64;
  struct rill__lane *lane = aligned_alloc(64, size);
  if (lane == NULL) return NULL;
  memset(lane, 0, size);
  lane->last_mark = &lane->marks;
  lane->pool = pool;
  lane->stream = stream;
  atomic_init(&lane->number, stream->number);
  _Atomic(struct rill__lane *) *bucket = &pool->lanes[stream->number % RILL__LANE_BUCKETS];
  lane->next = atomic_load(bucket);
  atomic_store_explicit(bucket, lane, memory_order_release);
  return lane;
}

rill_status rill__lane_get(struct rill__pool *pool, struct rill__stream *stream, struct rill__lane **out) {
  /* Lanes that a stream left behind first learn what is complete. */
  struct rill__lane *left = atomic_load(&pool->lanes[stream->number % RILL__LANE_BUCKETS]);
  for (; left != NULL; left = left->next) {
    if (atomic_load(&left->number) == 0) rill__lane_poll_marks(left, false);
  }
  pthread_mutex_lock(&pool->lock);
  /* A stream that is ending makes this known before it looks for its lane under this lock. */
  const bool closed = atomic_load(&stream->pools_closed);
  *out = rill__lane_find(pool, stream);
  if (*out == NULL && !closed) *out = adopt(pool, stream);
  if (*out == NULL && !closed) *out = make(pool, stream);
  pthread_mutex_unlock(&pool->lock);
  RILL_REQUIRE(!closed, RILL_ERROR_STALE_HANDLE, "stream is released while memory is allocated on it");
  RILL_REQUIRE(*out != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a stream's part of a pool");
  return RILL_OK;
}

/* Marks all frees so far on a stream that has left its lane, which keeps it until that has been possible. */
static void mark_the_end(struct rill__lane *lane, struct rill__stream *stream) {
  struct rill__use *mark = NULL;
  rill__lane_lock(lane);
  const uint64_t number = lane->freed;
  bool failed = lane->done < number;
  rill__lane_unlock(lane);
  rill__errors_aside();
  if (failed) failed = rill__use_new(stream, &mark) != RILL_OK;
  rill__errors_back();
  rill__lane_lock(lane);
  const bool over = !failed && lane->stream == stream && atomic_load(&lane->number) == 0;
  if (mark != NULL) rill__lane_add_mark(lane, mark, number);
  if (over) lane->stream = NULL;
  rill__lane_unlock(lane);
  if (over) rill__drop(&stream->base);
}

void rill__lane_end(struct rill__pool *pool, struct rill__stream *stream) {
  pthread_mutex_lock(&pool->lock);
  struct rill__lane *lane = rill__lane_find(pool, stream);
  if (lane != NULL) {
    rill__keep(&stream->base);
    rill__lane_lock(lane);
    atomic_store(&lane->number, 0);
    rill__lane_unlock(lane);
  }
  pthread_mutex_unlock(&pool->lock);
  if (lane != NULL) mark_the_end(lane, stream);
}

void rill__lanes_free(struct rill__pool *pool) {
  for (unsigned i = 0; i < RILL__LANE_BUCKETS; i++) {
    struct rill__lane *lane = atomic_load(&pool->lanes[i]);
    while (lane != NULL) {
      struct rill__lane *gone = lane;
      lane = lane->next;
      if (atomic_load(&gone->number) == 0 && gone->stream != NULL) rill__drop(&gone->stream->base);
      rill__uses_free(gone->marks);
      rill__heap_end(&gone->heap);
      free(gone);
    }
  }
}

/* ---- marks ---- */

void rill__lane_add_mark(struct rill__lane *lane, struct rill__use *mark, uint64_t number) {
  mark->number = number;
  mark->next = NULL;
  /* Another thread may have added a later one meanwhile: this one then marks a point that is later than it need be. */
  *lane->last_mark = mark;
  lane->last_mark = &mark->next;
  lane->mark_count++;
}

/* Takes out the marks up to and with `last`, which is complete.  Under the lock. */
static struct rill__use *take_marks(struct rill__lane *lane, const struct rill__event *event) {
  struct rill__use **link = &lane->marks;
  while (*link != NULL && (*link)->event != event) link = &(*link)->next;
  struct rill__use *mark = *link;
  if (mark == NULL) return NULL; /* another thread was first */
  *link = mark->next;
  if (mark->next == NULL) lane->last_mark = link;
  mark->next = NULL;
  lane->mark_count--;
  if (lane->done < mark->number) lane->done = mark->number;
  return mark;
}

static void take_complete_marks(struct rill__lane *lane) {
  for (;;) {
    rill__lane_lock(lane);
    struct rill__event *event = lane->marks != NULL ? lane->marks->event : NULL;
    if (event != NULL) rill__keep(&event->base);
    rill__lane_unlock(lane);
    if (event == NULL) return;
    const bool complete = is_complete(&(const struct rill__use){ .event = event });
    rill__drop(&event->base);
    if (!complete) return;
    rill__lane_lock(lane);
    struct rill__use *mark = take_marks(lane, event);
    rill__lane_unlock(lane);
    rill__uses_free(mark);
  }
}

/* The lane's stream, kept, if it can be asked or recorded on; with the number of the last free. */
static struct rill__stream *keep_stream(struct rill__lane *lane, uint64_t *number, bool *left) {
  rill__lane_lock(lane);
  struct rill__stream *stream = lane->stream;
  *number = lane->freed;
  *left = atomic_load(&lane->number) == 0;
  if (stream != NULL && (lane->done == lane->freed || !rill__keep_if_kept(&stream->base))) stream = NULL;
  rill__lane_unlock(lane);
  return stream;
}

static bool stream_is_complete(struct rill__stream *stream, bool ask) {
  bool complete = false, capturing = false;
  if (rill__is_held(stream)) return false;
  if (rill__known_idle(stream)) return true;
  if (!ask) return false;
  rill__errors_aside();
  if (RILL_DOOR(stream, stream, is_capturing, stream, &capturing) != RILL_OK || capturing ||
      RILL_DOOR(stream, stream, is_complete, stream, &complete) != RILL_OK) {
    complete = false;
  }
  rill__errors_back();
  /* What was submitted before the free may have been held then, and so not have been asked for. */
  return complete && !rill__is_held(stream);
}

void rill__lane_poll_marks(struct rill__lane *lane, bool ask) {
  uint64_t number = 0;
  bool left = false;
  take_complete_marks(lane);
  struct rill__stream *stream = keep_stream(lane, &number, &left);
  if (stream == NULL) return;
  const bool lost = atomic_load(&stream->base.device->lost) != RILL_OK;
  if (lost || stream_is_complete(stream, ask)) {
    rill__lane_lock(lane);
    if (lane->done < number) lane->done = number;
    rill__lane_unlock(lane);
  }
  if (left) mark_the_end(lane, stream);
  rill__drop(&stream->base);
}

/* ---- waiting blocks ---- */

void rill__lane_poll(struct rill__lane *lane) {
  rill__lane_lock(lane);
  struct rill__block *list = lane->waiting;
  lane->waiting = NULL;
  rill__lane_unlock(lane);
  struct rill__block *waiting = NULL, *complete = NULL;
  struct rill__use *dead = NULL;
  while (list != NULL) {
    struct rill__block *block = list;
    list = block->next;
    struct rill__block **to = all_complete(block->uses) ? &complete : &waiting;
    block->next = *to;
    *to = block;
  }
  if (waiting == NULL && complete == NULL) return;
  rill__lane_lock(lane);
  while (complete != NULL) {
    struct rill__block *block = complete;
    complete = block->next;
    struct rill__use **end = &block->uses;
    while (*end != NULL) end = &(*end)->next;
    *end = dead;
    dead = block->uses;
    rill__heap_give(&lane->heap, block, block->elsewhere ? 0 : block->freed);
  }
  while (waiting != NULL) {
    struct rill__block *block = waiting;
    waiting = block->next;
    block->next = lane->waiting;
    lane->waiting = block;
  }
  rill__lane_unlock(lane);
  rill__uses_free(dead);
}

/* ---- taking from other lanes ---- */

struct rill__block *rill__lanes_take_own_free(struct rill__pool *pool, const struct rill__stream *stream, bool large,
                                              size_t rounded) {
  const unsigned shift = large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT;
  FOR_EACH_LANE(pool, lane) {
    rill__lane_lock(lane);
    struct rill__block **link = &lane->waiting;
    for (; *link != NULL; link = &(*link)->next) {
      const struct rill__block *block = *link;
      if (block->elsewhere && block->user == stream->number && block->uses->next == NULL &&
          block->segment->shift == shift && rill__block_size(block) >= rounded) {
        break;
      }
    }
    struct rill__block *block = *link;
    if (block != NULL) {
      *link = block->next;
      block->state = RILL__BLOCK_TAKEN;
      /* What lies before the free, which only this stream is behind, stays with the block. */
      block->uses->inherited = true;
    }
    rill__lane_unlock(lane);
    if (block != NULL) return block;
  }
  return NULL;
}

/* Takes a whole segment out whose uses are complete. */
static struct rill__segment *take_whole(struct rill__lane *lane, bool large, size_t rounded) {
  const unsigned shift = large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT;
  struct rill__segment *segment = lane->heap.segments;
  while (segment != NULL && (segment->shift != shift || segment->allocation.size < rounded ||
                             !rill__segment_is_free(segment) || segment->whole->freed > lane->done)) {
    segment = segment->next;
  }
  if (segment != NULL) rill__heap_remove(segment);
  return segment;
}

struct rill__block *rill__lanes_take_complete(struct rill__pool *pool, struct rill__lane *own, bool large,
                                              size_t rounded, bool ask) {
  FOR_EACH_LANE(pool, lane) {
    if (lane == own) continue;
    if (ask) rill__lane_poll(lane);
    rill__lane_poll_marks(lane, ask);
    rill__lane_lock(lane);
    struct rill__segment *segment = take_whole(lane, large, rounded);
    struct rill__block *block = NULL;
    if (segment == NULL) block = rill__heap_take(&lane->heap, large, rounded, lane->done);
    rill__lane_unlock(lane);
    if (segment != NULL) {
      rill__lane_lock(own);
      rill__heap_add(&own->heap, segment, 0);
      block = rill__heap_take(&own->heap, large, rounded, 0);
      rill__lane_unlock(own);
    }
    if (block != NULL) return block;
  }
  return NULL;
}

static void give_back(struct rill__lane *lane, struct rill__block *block) {
  rill__lane_lock(lane);
  rill__heap_give(&lane->heap, block, block->freed);
  rill__lane_unlock(lane);
}

/* Makes the stream wait until the lane's frees up to `number` are made: for the first mark behind them, or one made
 * now. */
static bool wait_for_lane(struct rill__stream *stream, struct rill__lane *lane, uint64_t number) {
  uint64_t freed = 0;
  bool left = false;
  struct rill__stream *other = keep_stream(lane, &freed, &left);
  struct rill__event *event = NULL;
  rill__lane_lock(lane);
  bool done = number <= lane->done;
  for (struct rill__use *mark = lane->marks; mark != NULL && event == NULL; mark = mark->next) {
    if (mark->number >= number) event = mark->event;
  }
  if (event != NULL) rill__keep(&event->base);
  rill__lane_unlock(lane);
  if (!done && event != NULL) {
    done = wait_for(stream, &(const struct rill__use){ .event = event });
  } else if (!done && other != NULL && other != stream && !rill__is_held(other)) {
    struct rill__use *mark = NULL;
    rill__errors_aside();
    if (rill__use_new(other, &mark) == RILL_OK) {
      done = wait_for(stream, mark);
      rill__lane_lock(lane);
      rill__lane_add_mark(lane, mark, freed);
      rill__lane_unlock(lane);
    }
    rill__errors_back();
  }
  if (event != NULL) rill__drop(&event->base);
  if (other != NULL) rill__drop(&other->base);
  return done;
}

/* What the stream has been made to wait for stays with the block: a free on a third stream is not behind it. */
static bool inherit(struct rill__stream *stream, struct rill__block *block) {
  struct rill__use *use = NULL;
  rill__errors_aside();
  const bool made = rill__use_new(stream, &use) == RILL_OK;
  rill__errors_back();
  if (made) use->inherited = true;
  block->uses = use;
  return made;
}

/* A waiting block of the lane that is large enough; out of the list. */
static struct rill__block *take_waiting(struct rill__lane *lane, bool large, size_t rounded) {
  const unsigned shift = large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT;
  rill__lane_lock(lane);
  struct rill__block **link = &lane->waiting;
  while (*link != NULL && ((*link)->segment->shift != shift || rill__block_size(*link) < rounded)) {
    link = &(*link)->next;
  }
  struct rill__block *block = *link;
  if (block != NULL) *link = block->next;
  rill__lane_unlock(lane);
  return block;
}

static struct rill__block *take_waiting_and_wait(struct rill__lane *lane, struct rill__stream *stream, bool large,
                                                 size_t rounded) {
  struct rill__block *block = take_waiting(lane, large, rounded);
  if (block == NULL) return NULL;
  bool waits =
      block->elsewhere || atomic_load(&lane->number) == stream->number || wait_for_lane(stream, lane, block->freed);
  for (struct rill__use *use = block->uses; use != NULL && waits; use = use->next) waits = wait_for(stream, use);
  struct rill__use *uses = block->uses;
  if (waits && inherit(stream, block)) {
    block->state = RILL__BLOCK_TAKEN;
    rill__uses_free(uses);
    return block;
  }
  rill__lane_lock(lane);
  block->uses = uses;
  block->next = lane->waiting;
  lane->waiting = block;
  rill__lane_unlock(lane);
  return NULL;
}

struct rill__block *rill__lanes_take_and_wait(struct rill__pool *pool, struct rill__stream *stream, bool large,
                                              size_t rounded) {
  FOR_EACH_LANE(pool, lane) {
    struct rill__block *block = take_waiting_and_wait(lane, stream, large, rounded);
    if (block != NULL) return block;
    rill__lane_lock(lane);
    block = rill__heap_take(&lane->heap, large, rounded, UINT64_MAX);
    rill__lane_unlock(lane);
    if (block == NULL) continue;
    if (atomic_load(&lane->number) == stream->number) return block;
    if (wait_for_lane(stream, lane, block->freed) && inherit(stream, block)) return block;
    give_back(lane, block);
  }
  return NULL;
}

/* ---- giving memory back ---- */

struct rill__segment *rill__lanes_take_segments(struct rill__pool *pool, uint64_t enough) {
  struct rill__segment *list = NULL;
  uint64_t taken = 0;
  FOR_EACH_LANE(pool, lane) {
    rill__lane_poll(lane);
    rill__lane_poll_marks(lane, true);
    rill__lane_lock(lane);
    for (struct rill__segment *segment = lane->heap.segments, *next; segment != NULL && taken < enough;
         segment = next) {
      next = segment->next;
      if (!rill__segment_is_free(segment) || segment->whole->freed > lane->done) continue;
      rill__heap_remove(segment);
      taken += segment->allocation.size;
      segment->next = list;
      list = segment;
    }
    rill__lane_unlock(lane);
  }
  return list;
}
