/* The watches that a backend has to be queried about, in one line per stream.
 *
 * A wake-up costs the watcher about 3 us of processor time (a timed wait and two thread switches), and polling a line
 * costs one driver call, about 1 us.  If one line is polled every TICK, an event is notified with a median delay of
 * TICK / 2, and the watcher uses 4 us / TICK of a processor: 8 % for a TICK of 50 us.  With a share of one part in 24
 * the same line is polled every 96 us.  A TICK of 30 us uses up the share so soon that events are notified later, as
 * measured on an H100 (docs/guides/THREADS.md).  Therefore:
 * - A line is polled every TICK at first, and later at a fraction of the time that its first event has waited: one part
 *   in AGE_TICKS, or more with several lines, up to LONG.  Long waits cost little, and are late by at most that
 *   fraction.
 * - At most MAX_OLD lines that have waited long are polled at a time, so that they do not delay new ones.
 * - Over time the watcher uses one part in SHARE of a processor.  Unused time is saved, up to CREDIT_MAX_NS, for
 *   periods in which events are about to complete.  So in any second the watcher uses at most 1 / SHARE of a processor
 *   plus 0.8 %. */
#include "core/held/watch.h"

#include "core/device/life.h"
#include "core/sync/events.h"

#include <time.h>

enum { BUCKETS = 1024 };
static struct rill__watch *hashed[BUCKETS]; /* first watches of the lines that have a stream */
static struct rill__watch *poll_first;      /* first watches that no backend wakes; a polled one moves to the end */
static struct rill__watch **poll_end = &poll_first;
static size_t polled_count;
static uint64_t next_due; /* the earliest `due` of them, in ns */

enum { TICK = 50000, AGE_TICKS = 500, LONG = 1000000, MAX_OLD = 8, MAX_COUNTED = 8 };

/* The processor time that the watcher may still spend, in ns.  It grows by one part in SHARE of the time that passes.
 */
enum { SHARE = 24, CREDIT_MAX_NS = 8000000 };
static int64_t credit;
static uint64_t credited_at, spent_at;

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  (void)clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool rill__lines_wait(void) { return poll_first != NULL; }

void rill__lines_forget(void) {
  for (size_t i = 0; i < BUCKETS; i++) hashed[i] = NULL;
  poll_first = NULL;
  poll_end = &poll_first;
  polled_count = 0;
}

/* ---- lines ---- */

static struct rill__watch **line_bucket(uint64_t stream) { return &hashed[(stream ^ (stream >> 32)) % BUCKETS]; }

static struct rill__watch *find_line(uint64_t stream) {
  struct rill__watch *first = stream != 0 ? *line_bucket(stream) : NULL;
  while (first != NULL && first->line.stream != stream) first = first->line.next_hashed;
  return first;
}

/* Returns how long to wait, in ns, before polling again a line whose first watch has waited for `age`. */
static uint64_t period_of(uint64_t age) {
  const uint64_t part = age / AGE_TICKS * (polled_count < MAX_COUNTED ? polled_count : MAX_COUNTED);
  return part < TICK ? TICK : part < LONG ? part : LONG;
}

/* Makes the watch the first of its line, so that find_line finds it. */
static void open_line(struct rill__watch *first) {
  if (!first->backend_wakes) {
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    polled_count++;
    first->line.due = now + period_of(now - first->line.since);
    if (polled_count == 1 || first->line.due < next_due) next_due = first->line.due;
    first->line.next_line = NULL;
    first->line.link = poll_end;
    *poll_end = first;
    poll_end = &first->line.next_line;
  }
  if (first->line.stream == 0) return;
  struct rill__watch **const bucket = line_bucket(first->line.stream);
  first->line.next_hashed = *bucket;
  *bucket = first;
}

static void close_line(struct rill__watch *first) {
  if (first->line.link != NULL) {
    *first->line.link = first->line.next_line;
    *(first->line.next_line != NULL ? &first->line.next_line->line.link : &poll_end) = first->line.link;
    first->line.link = NULL;
    polled_count--;
  }
  if (first->line.stream == 0) return;
  struct rill__watch **link = line_bucket(first->line.stream);
  while (*link != first) link = &(*link)->line.next_hashed;
  *link = first->line.next_hashed;
}

/* Finds the line of a watch.  `stream` is 0 if the place is not known: the null handles stand for native streams that
 * depend on the thread, and a record by a graph or by other code has no known place.  A place is used only if no record
 * was made while it was read. */
static void find_place(struct rill__watch *watch) {
  struct rill__event *const point = watch->point;
  const struct rill__completion_query before = rill__query_completion(&rill__core(point)->work);
  const struct rill__recorded where = rill__event_recorded(point);
  const struct rill__completion_query after = rill__query_completion(&rill__core(point)->work);
  const bool same = before.quiet && after.quiet && before.own == after.own && before.started == after.started;
  watch->line.stream = 0;
  if (!same || where.stream == 0 || rill__event_is_shared(point)) return;
  const struct rill__stream *stream = rill__find(where.stream, RILL__STREAM);
  if (stream == NULL || (stream->imported && stream->native <= 2)) return;
  watch->line.stream = where.stream;
  watch->line.sequence = where.sequence;
}

/* ---- polling ---- */

/* Queries the watch's point, and sets the status if the watch is over. */
static void query_watch(struct rill__watch *watch) {
  struct rill__event *const point = watch->point;
  bool ready = false;
  rill_status status = rill__check_usable(watch->device);
  if (status == RILL_OK) {
    ready = rill__known_complete(point);
    const struct rill__completion_query query = rill__query_completion(&rill__core(point)->work);
    const struct rill__recorded where = rill__event_recorded(point);
    if (!ready) status = RILL_DISPATCH(point, event, is_ready, point, &ready);
    if (ready && status == RILL_OK) rill__event_seen(point, &query, &where);
  }
  if (status == RILL_ERROR_CAPTURE_ACTIVE) return; /* a query would invalidate the capture: query later */
  watch->over = status != RILL_OK || ready;
  watch->status = status;
}

/* Returns true if the first watch of a line is over.  If it is not and the backend can wake it, asks the backend to do
 * so. */
static bool is_first_over(struct rill__watch *first) {
  if (first->backend_wakes) return false; /* the backend is going to wake it, or it has arrived */
  query_watch(first);
  if (first->over || first->point->base.device->backend->event->notify == NULL) return first->over;
  first->backend_wakes = true;
  if (RILL_ASK(first->point, event, notify, first->point, &first->waker)) return false;
  /* The backend does not wake for this point.  It may have completed since the query above, so query again. */
  first->backend_wakes = false;
  query_watch(first);
  return first->over;
}

/* Moves the watches of a line that are over to the end of a list. */
static struct rill__watch **query_line(struct rill__watch *first, struct rill__watch **end) {
  struct rill__watch *const last = first->line.last, *const head = first;
  close_line(first);
  while (first != NULL && is_first_over(first)) {
    struct rill__watch *const next = first->line.next;
    *end = first;
    end = &first->next;
    *end = NULL;
    first = next;
  }
  if (first == NULL) return end;
  first->line.previous = NULL;
  first->line.last = last;
  if (first != head) first->line.since = clock_ns(CLOCK_MONOTONIC);
  open_line(first);
  return end;
}

struct rill__watch **rill__lines_poll(struct rill__watch **end) {
  const uint64_t now = clock_ns(CLOCK_MONOTONIC);
  struct rill__watch *first = poll_first, *next;
  uint32_t old = 0;
  next_due = UINT64_MAX;
  for (size_t left = polled_count; left > 0; left--, first = next) { /* polled lines move to the end */
    next = first->line.next_line;
    const bool is_old = period_of(now - first->line.since) > TICK;
    if (first->line.due <= now && is_old && old++ >= MAX_OLD) first->line.due = now + TICK;
    if (first->line.due <= now) end = query_line(first, end);
    else if (first->line.due < next_due) next_due = first->line.due;
  }
  return end;
}

struct rill__watch **rill__lines_woken(struct rill__watch *watch, struct rill__watch **end) {
  RILL_ASK(watch->point, event, notified, watch->point, &watch->waker);
  watch->backend_wakes = false;
  struct rill__watch *const first = watch->line.stream != 0 ? find_line(watch->line.stream) : watch;
  return query_line(first, end);
}

struct rill__watch **rill__lines_add(struct rill__watch *watch, struct rill__watch **end) {
  find_place(watch);
  watch->line.since = clock_ns(CLOCK_MONOTONIC);
  struct rill__watch *const first = find_line(watch->line.stream);
  struct rill__watch *before = first != NULL ? first->line.last : NULL;
  while (before != NULL && before->line.sequence > watch->line.sequence) before = before->line.previous;
  watch->line.previous = before;
  watch->line.next = before != NULL ? before->line.next : first;
  if (watch->line.next != NULL) watch->line.next->line.previous = watch;
  if (before != NULL) {
    before->line.next = watch;
    if (first->line.last == before) first->line.last = watch;
    return end;
  }
  watch->line.last = first != NULL ? first->line.last : watch;
  if (first != NULL) close_line(first);
  open_line(watch);
  return query_line(watch, end);
}

/* Returns the time until the first line is due, or a longer time if the watcher has used more than its share. */
uint64_t rill__lines_pause(void) {
  const uint64_t now = clock_ns(CLOCK_MONOTONIC), spent = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  credit += (int64_t)((now - credited_at) / SHARE) - (int64_t)(spent - spent_at);
  credited_at = now;
  spent_at = spent;
  if (credit > CREDIT_MAX_NS) credit = CREDIT_MAX_NS;
  const uint64_t pause = next_due > now ? next_due - now : 0;
  const uint64_t owed = credit < 0 ? (uint64_t)-credit * SHARE : 0;
  return pause > owed ? pause : owed;
}
