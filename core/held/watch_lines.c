/* The watches that a backend has to be queried about, in one line per stream. */
#include "core/held/watch.h"

#include "core/device/life.h"
#include "core/sync/events.h"

#include <time.h>

enum { BUCKETS = 1024 };
static struct rill__watch *hashed[BUCKETS]; /* first watches of the lines that have a stream */
static struct rill__watch *asked_for;       /* first watches that no backend wakes */
static uint64_t changed_at;                 /* when a watch was last added or found over, in ns */

/* The processor time that the watcher may still spend, in ns.  It grows by one part in SHARE of the time that passes.
 */
enum { SHARE = 25, CREDIT_MAX_NS = 2000000 };
static int64_t credit;
static uint64_t credited_at, spent_at;

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  (void)clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool rill__lines_wait(void) { return asked_for != NULL; }

void rill__lines_forget(void) {
  for (size_t i = 0; i < BUCKETS; i++) hashed[i] = NULL;
  asked_for = NULL;
}

/* ---- lines ---- */

static struct rill__watch **line_bucket(uint64_t stream) { return &hashed[(stream ^ (stream >> 32)) % BUCKETS]; }

static struct rill__watch *find_line(uint64_t stream) {
  struct rill__watch *first = stream != 0 ? *line_bucket(stream) : NULL;
  while (first != NULL && first->line.stream != stream) first = first->line.next_hashed;
  return first;
}

/* Makes the watch the first of its line, so that find_line finds it. */
static void open_line(struct rill__watch *first) {
  if (!first->answers) {
    first->line.next_line = asked_for;
    first->line.link = &asked_for;
    if (asked_for != NULL) asked_for->line.link = &first->line.next_line;
    asked_for = first;
  }
  if (first->line.stream == 0) return;
  struct rill__watch **const bucket = line_bucket(first->line.stream);
  first->line.next_hashed = *bucket;
  *bucket = first;
}

static void close_line(struct rill__watch *first) {
  if (first->line.link != NULL) {
    *first->line.link = first->line.next_line;
    if (first->line.next_line != NULL) first->line.next_line->line.link = first->line.link;
    first->line.link = NULL;
  }
  if (first->line.stream == 0) return;
  struct rill__watch **link = line_bucket(first->line.stream);
  while (*link != first) link = &(*link)->line.next_hashed;
  *link = first->line.next_hashed;
}

/* `stream` is 0 if the place is not known: the null handles stand for native streams that depend on the thread, and a
 * record by a graph or by other code has no known place. */
static void find_place(struct rill__watch *watch) {
  struct rill__event *const point = watch->point;
  const struct rill__question before = rill__completion_ask(&rill__core(point)->work);
  const struct rill__recorded where = rill__event_recorded(point);
  const struct rill__question after = rill__completion_ask(&rill__core(point)->work);
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
static void ask_for(struct rill__watch *watch) {
  struct rill__event *const point = watch->point;
  bool ready = false;
  rill_status status = rill__check_usable(watch->device);
  if (status == RILL_OK) {
    ready = rill__known_complete(point);
    const struct rill__question asked = rill__completion_ask(&rill__core(point)->work);
    const struct rill__recorded where = rill__event_recorded(point);
    if (!ready) status = RILL_DISPATCH(point, event, is_ready, point, &ready);
    if (ready && status == RILL_OK) rill__event_seen(point, &asked, &where);
  }
  if (status == RILL_ERROR_CAPTURE_ACTIVE) return; /* a query would invalidate the capture: query later */
  watch->over = status != RILL_OK || ready;
  watch->status = status;
}

/* Returns true if the first watch of a line is over.  If it is not and the backend can wake it, asks the backend to do
 * so. */
static bool is_first_over(struct rill__watch *first) {
  if (first->answers) return false; /* the backend is going to wake it, or it has arrived */
  ask_for(first);
  if (first->over || first->point->base.device->backend->event->notify == NULL) return first->over;
  first->answers = true;
  if (RILL_ASK(first->point, event, notify, first->point, &first->waker)) return false;
  /* The backend does not wake for this point.  It may have completed since the query above, so query again. */
  first->answers = false;
  ask_for(first);
  return first->over;
}

/* Moves the watches of a line that are over to the end of a list. */
static struct rill__watch **ask_line(struct rill__watch *first, struct rill__watch **end) {
  struct rill__watch *const last = first->line.last;
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
  open_line(first);
  return end;
}

struct rill__watch **rill__lines_ask(struct rill__watch **end) {
  struct rill__watch **const before = end;
  for (struct rill__watch *first = asked_for, *next; first != NULL; first = next) {
    /* opening a line puts its new first watch at the head of the list, before this position */
    next = first->line.next_line;
    end = ask_line(first, end);
  }
  if (end != before) changed_at = clock_ns(CLOCK_MONOTONIC);
  return end;
}

struct rill__watch **rill__lines_woken(struct rill__watch *watch, struct rill__watch **end) {
  RILL_ASK(watch->point, event, notified, watch->point, &watch->waker);
  watch->answers = false;
  struct rill__watch *const first = watch->line.stream != 0 ? find_line(watch->line.stream) : watch;
  return ask_line(first, end);
}

struct rill__watch **rill__lines_add(struct rill__watch *watch, struct rill__watch **end) {
  find_place(watch);
  changed_at = clock_ns(CLOCK_MONOTONIC);
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
  return ask_line(watch, end);
}

/* Returns a short pause right after something has happened, because the next point is probably near, and a longer one
 * the longer nothing happens; above MOST the pause is one part in 10,000 of the time since the last change, up to LONG.
 * The credit limits the watcher to one part in SHARE of a processor over time. */
uint64_t rill__lines_pause(void) {
  enum { LEAST = 10000, MOST = 70000, LONG = 1000000 };
  const uint64_t now = clock_ns(CLOCK_MONOTONIC), spent = clock_ns(CLOCK_THREAD_CPUTIME_ID), age = now - changed_at;
  credit += (int64_t)((now - credited_at) / SHARE) - (int64_t)(spent - spent_at);
  credited_at = now;
  spent_at = spent;
  if (credit > CREDIT_MAX_NS) credit = CREDIT_MAX_NS;
  uint64_t pause = age / 8;
  if (pause < LEAST) pause = LEAST;
  if (pause > MOST) pause = age / 10000 > LONG ? LONG : age / 10000 > MOST ? age / 10000 : MOST;
  const uint64_t owed = credit < 0 ? (uint64_t)-credit * SHARE : 0;
  return pause > owed ? pause : owed;
}
