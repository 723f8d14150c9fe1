#include "core/timeline/arrows.h"

#include <string.h>

enum { EVENT_BITS = 12, TIMES = 16384 };

/* Guards all below; taken last, and never held across a call. */
static pthread_mutex_t arrows_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_arrow = 1; /* 0 and 1 are no arrows */
static struct arrow {
  const struct rill__event *event; /* never dereferenced */
  uint64_t id;                     /* id of the event; 0 for an internal event */
  uint64_t records;                /* number of records of the event when the arrow began */
  uint64_t number;
  bool exact;
} arrows[1 << EVENT_BITS];
static struct arrow_time {
  uint64_t arrow;
  uint64_t stream; /* 0 once the record has been reached */
  uint64_t ns;     /* when the record was reached */
  uint64_t from;   /* where the arrow starts in the file; 0: it does not */
} arrow_times[TIMES];

static struct arrow *place_of_event(const struct rill__event *event) {
  return &arrows[(uintptr_t)event * UINT64_C(0x9e3779b97f4a7c15) >> (64 - EVENT_BITS)];
}

uint64_t rill__arrow_begin(struct rill__event *event, uint64_t stream, bool exact) {
  const uint64_t records = rill__submission_count(&rill__core(event)->work);
  pthread_mutex_lock(&arrows_lock);
  const uint64_t number = ++last_arrow;
  *place_of_event(event) = (struct arrow){ event, event->base.id, records, number, exact };
  arrow_times[number % TIMES] = (struct arrow_time){ number, stream, 0, 0 };
  pthread_mutex_unlock(&arrows_lock);
  return number;
}

uint64_t rill__arrow_find(struct rill__event *event, bool *exact) {
  const uint64_t records = rill__submission_count(&rill__core(event)->work);
  pthread_mutex_lock(&arrows_lock);
  const struct arrow arrow = *place_of_event(event);
  pthread_mutex_unlock(&arrows_lock);
  const bool found = arrow.event == event && arrow.id == event->base.id && arrow.records == records &&
                     !atomic_load_explicit(&event->foreign, memory_order_relaxed);
  *exact = found && arrow.exact;
  return found ? arrow.number : 0;
}

/* Returns a copy of the arrow's time; all zero if it has been replaced. */
static struct arrow_time time_of_arrow(uint64_t arrow) {
  pthread_mutex_lock(&arrows_lock);
  const struct arrow_time time = arrow_times[arrow % TIMES];
  pthread_mutex_unlock(&arrows_lock);
  return time.arrow == arrow ? time : (struct arrow_time){ 0, 0, 0, 0 };
}

uint64_t rill__arrow_stream(uint64_t arrow) { return time_of_arrow(arrow).stream; }
uint64_t rill__arrow_when(uint64_t arrow) { return time_of_arrow(arrow).ns; }
uint64_t rill__arrow_from(uint64_t arrow) { return time_of_arrow(arrow).from; }

void rill__arrow_reached(uint64_t arrow, uint64_t ns, uint64_t from) {
  pthread_mutex_lock(&arrows_lock);
  struct arrow_time *const time = &arrow_times[arrow % TIMES];
  if (time->arrow == arrow) *time = (struct arrow_time){ arrow, 0, ns, from };
  pthread_mutex_unlock(&arrows_lock);
}

void rill__arrows_renew(void) {
  pthread_mutex_lock(&arrows_lock);
  memset(arrows, 0, sizeof arrows);
  pthread_mutex_unlock(&arrows_lock);
}

void rill__arrows_after_fork(void) {
  (void)pthread_mutex_init(&arrows_lock, NULL); /* another thread may have held it */
}
