#include "core/pool_lanes.h"

#include "core/held/held.h"

#include <stdlib.h>
#include <string.h>

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
    const bool complete = rill__use_is_complete(&(const struct rill__use){ .event = event });
    rill__drop(&event->base);
    if (!complete) return;
    rill__lane_lock(lane);
    struct rill__use *mark = take_marks(lane, event);
    rill__lane_unlock(lane);
    rill__uses_free(mark);
  }
}

struct rill__stream *rill__lane_keep_stream(struct rill__lane *lane, uint64_t *number, bool *left) {
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
  struct rill__stream *stream = rill__lane_keep_stream(lane, &number, &left);
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
    struct rill__block **to = rill__uses_are_complete(block->uses) ? &complete : &waiting;
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
