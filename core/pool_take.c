/* Memory that other lanes have. */
#include "core/pool_lanes.h"

#include "core/held/held.h"

struct rill__block *rill__lanes_take_own_free(struct rill__pool *pool, const struct rill__stream *stream,
                                              const struct rill__wish *wish) {
  RILL__FOR_EACH_LANE(pool, lane) {
    rill__lane_lock(lane);
    struct rill__block **link = &lane->waiting;
    for (; *link != NULL; link = &(*link)->next) {
      const struct rill__block *block = *link;
      if (block->elsewhere && block->user == stream->number && block->uses->next == NULL &&
          rill__block_fits(block, wish)) {
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
static struct rill__segment *take_whole(struct rill__lane *lane, const struct rill__wish *wish) {
  const unsigned shift = wish->large ? RILL__LARGE_SHIFT : RILL__SMALL_SHIFT;
  struct rill__segment *segment = lane->heap.segments;
  while (segment != NULL && (segment->shift != shift || segment->allocation.size < wish->rounded ||
                             !rill__segment_is_free(segment) || segment->whole->freed > lane->done)) {
    segment = segment->next;
  }
  if (segment != NULL) rill__heap_remove(segment);
  return segment;
}

struct rill__block *rill__lanes_take_complete(struct rill__pool *pool, struct rill__lane *own,
                                              const struct rill__wish *wish, bool ask) {
  RILL__FOR_EACH_LANE(pool, lane) {
    if (lane == own) continue;
    if (ask) rill__lane_poll(lane);
    rill__lane_poll_marks(lane, ask);
    rill__lane_lock(lane);
    struct rill__segment *segment = take_whole(lane, wish);
    struct rill__block *block = NULL;
    if (segment == NULL) block = rill__heap_take(&lane->heap, wish, lane->done);
    rill__lane_unlock(lane);
    if (segment != NULL) {
      rill__lane_lock(own);
      rill__heap_add(&own->heap, segment, 0);
      block = rill__heap_take(&own->heap, wish, 0);
      rill__lane_unlock(own);
    }
    if (block != NULL) return block;
  }
  return NULL;
}

/* Makes the stream wait for a use; false if it would have to be held for that: what holds the one stream may be waiting
 * for the other. */
static bool wait_for(struct rill__stream *stream, const struct rill__use *use) {
  struct rill__event *point = NULL;
  if (rill__event_meaning(use->event, &point) == RILL__RECORD_HELD) return false;
  rill__errors_aside();
  const bool done = rill__stream_wait(stream, use->event) == RILL_OK;
  rill__errors_back();
  return done;
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
  struct rill__stream *other = rill__lane_keep_stream(lane, &freed, &left);
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
static struct rill__block *take_waiting(struct rill__lane *lane, const struct rill__wish *wish) {
  rill__lane_lock(lane);
  struct rill__block **link = &lane->waiting;
  while (*link != NULL && !rill__block_fits(*link, wish)) link = &(*link)->next;
  struct rill__block *block = *link;
  if (block != NULL) *link = block->next;
  rill__lane_unlock(lane);
  return block;
}

static struct rill__block *take_waiting_and_wait(struct rill__lane *lane, struct rill__stream *stream,
                                                 const struct rill__wish *wish) {
  struct rill__block *block = take_waiting(lane, wish);
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

struct rill__block *rill__lanes_take_and_wait(struct rill__pool *pool, struct rill__stream *stream,
                                              const struct rill__wish *wish) {
  RILL__FOR_EACH_LANE(pool, lane) {
    struct rill__block *block = take_waiting_and_wait(lane, stream, wish);
    if (block != NULL) return block;
    rill__lane_lock(lane);
    block = rill__heap_take(&lane->heap, wish, UINT64_MAX);
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
  RILL__FOR_EACH_LANE(pool, lane) {
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
