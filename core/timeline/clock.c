/* The relation of a device's clock to the host's.
 *
 * A base is an event that a stream used for nothing else reaches immediately, so its time is known to within a few
 * microseconds.  Times of work are measured from the last base before the work, because drivers return intervals as
 * floats, which have an error below half a microsecond up to SPAN_NS, and because the clocks of driver and host drift
 * apart by a few microseconds per second.
 *
 * Invariant: `clocks_lock` is never held across a call of a backend.  A thread that creates a base for a device has set
 * `making` there, and only that thread changes the clock's stream and adds bases.
 */
#include "core/timeline/clock.h"

#include "core/object/error.h"
#include "core/stream/stream.h"
#include "core/sync/events.h"
#include "core/sync/streams.h"
#include "core/sync/submit.h"
#include "core/timeline/timeline.h"

#include <sched.h>
#include <time.h>

enum { DEVICES = 64, BASES = 64 };
/* Events that a device starts with, the number of spare ones below which more are created, and how many at a time:
 * while the thread of the trace creates them, threads that submit may wait for the driver. */
enum { FIRST_EVENTS = 8192, FEW_EVENTS = 4096, MORE_EVENTS = 1024 };
#define SPAN_NS UINT64_C(2000000000)
/* Time limits for the first base, without which nothing is timed, and for all others. */
#define FIRST_LIMIT_NS UINT64_C(1000000000)
#define LIMIT_NS UINT64_C(5000000)

struct base {
  struct rill__event *event; /* NULL if there is none */
  uint64_t ns;               /* in the host's clock */
};

struct device_clock {
  struct rill__device *device;
  struct rill__stream *stream;
  struct rill__event *spare; /* linked by next_spare */
  size_t spare_count;
  bool making;
  uint64_t last;  /* number of the last base, from 1 on; 0 if there is none */
  uint64_t tried; /* when a base was last requested, in the host's clock */
  struct base bases[BASES];
};

static pthread_mutex_t clocks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct device_clock clocks[DEVICES]; /* kept from one trace to the next, until the process ends */
static _Atomic uint64_t zero;

static uint64_t read_clock(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t rill__trace_now(void) { return read_clock() - atomic_load(&zero); }

uint64_t rill__trace_time(uint64_t ns) {
  const uint64_t from = atomic_load(&zero);
  return ns > from ? ns - from : 0;
}

void rill__trace_now_is_zero(void) { atomic_store(&zero, read_clock()); }

/* Returns the device's clock, or NULL if there are too many devices.  Call it under the lock. */
static struct device_clock *clock_of(struct rill__device *device) {
  for (int i = 0; i < DEVICES; i++) {
    if (clocks[i].device == NULL) clocks[i].device = device;
    if (clocks[i].device == device) return &clocks[i];
  }
  return NULL;
}

static struct rill__event *new_event(struct rill__device *device) {
  struct rill__event *event = NULL;
  if (rill__event_new(device, NULL, &event) != RILL_OK) return NULL;
  event->timing = true;
  event->owned = RILL_DISPATCH(event, event, create, event) == RILL_OK;
  if (event->owned) return event;
  rill__unref(&event->base);
  return NULL;
}

struct rill__event *rill__trace_event_take(struct rill__device *device) {
  pthread_mutex_lock(&clocks_lock);
  struct device_clock *clock = clock_of(device);
  struct rill__event *event = clock != NULL ? clock->spare : NULL;
  if (event != NULL) {
    clock->spare = rill__core(event)->next_spare;
    clock->spare_count--;
  }
  pthread_mutex_unlock(&clocks_lock);
  if (event == NULL) event = new_event(device);
  if (event != NULL) atomic_store_explicit(&rill__core(event)->work.owner, rill__self, memory_order_relaxed);
  return event;
}

void rill__trace_events_put(struct rill__event *const *events, size_t count) {
  struct rill__event *first = NULL, *last = NULL;
  size_t linked = 0;
  for (size_t i = 0; i < count; i++) {
    if (events[i] == NULL) continue;
    RILL_ASSERT(first == NULL || first->base.device == events[i]->base.device, "these events belong to one device");
    rill__core(events[i])->next_spare = first;
    first = events[i];
    if (last == NULL) last = first;
    linked++;
  }
  if (first == NULL) return;
  pthread_mutex_lock(&clocks_lock);
  struct device_clock *const clock = clock_of(first->base.device);
  RILL_ASSERT(clock != NULL, "a device that has events also has a clock");
  rill__core(last)->next_spare = clock->spare;
  clock->spare = first;
  clock->spare_count += linked;
  pthread_mutex_unlock(&clocks_lock);
}

static struct rill__stream *new_stream(struct rill__device *device) {
  struct rill__stream *stream = NULL;
  if (rill__stream_new(device, NULL, &stream) != RILL_OK) return NULL;
  stream->owned = RILL_DISPATCH(stream, stream, create, stream) == RILL_OK;
  if (stream->owned) {
    rill__stream_list(stream);
    return stream;
  }
  rill__unref(&stream->base);
  return NULL;
}

/* Records the event and polls until it is complete; `*ns` is that time, with an error of up to half of `*apart`.
 * Returns false if this takes too long. */
static bool reach_event(struct rill__event *event, struct rill__stream *stream, uint64_t limit, uint64_t *ns,
                        uint64_t *apart) {
  uint64_t before = read_clock(), now = before;
  const uint64_t end = before + limit;
  bool ready = false;
  rill_status status = rill__record_unobserved(stream, event, 0);
  while (status == RILL_OK && !ready && now < end) {
    before = now;
    status = RILL_DISPATCH(event, event, is_ready, event, &ready);
    now = read_clock();
  }
  *apart = now - before;
  *ns = before + *apart / 2;
  return ready;
}

/* Returns the complete event, or NULL.  The time is inaccurate if the thread is interrupted between two polls, so the
 * best of several attempts is used. */
static struct rill__event *reach_base(struct rill__device *device, struct rill__stream *stream, uint64_t limit,
                                      uint64_t *ns) {
  enum { ATTEMPTS = 8, CLOSE_NS = 20000 };
  struct rill__event *best = NULL;
  uint64_t best_apart = UINT64_MAX;
  for (int i = 0; i < ATTEMPTS && best_apart > CLOSE_NS; i++) {
    struct rill__event *event = rill__trace_event_take(device);
    uint64_t at = 0, apart = 0;
    if (event == NULL) break;
    if (!reach_event(event, stream, limit, &at, &apart)) {
      rill__unref(&event->base); /* the driver may not have reached it yet */
      break;
    }
    if (apart < best_apart) {
      struct rill__event *const worse = best;
      best = event;
      best_apart = apart;
      *ns = at;
      event = worse;
    }
    rill__trace_events_put(&event, 1);
  }
  return best;
}

/* Creates events in advance, because creating an event costs more than recording it. */
static void make_spare_events(struct rill__device *device, int wanted) {
  enum { AT_ONCE = 64 };
  struct rill__event *made[AT_ONCE];
  for (int i = 0; i < wanted; i += AT_ONCE) {
    size_t count = 0;
    while (count < AT_ONCE && (made[count] = new_event(device)) != NULL) count++;
    rill__trace_events_put(made, count);
    if (count < AT_ONCE) return;
  }
}

static void make_base(struct rill__device *device, struct device_clock *clock) {
  const uint64_t limit = clock->last == 0 ? FIRST_LIMIT_NS : LIMIT_NS;
  uint64_t ns = 0;
  if (clock->last == 0) make_spare_events(device, FIRST_EVENTS);
  if (clock->stream == NULL) clock->stream = new_stream(device);
  struct rill__event *event = clock->stream != NULL ? reach_base(device, clock->stream, limit, &ns) : NULL;
  struct rill__event *old = NULL;
  pthread_mutex_lock(&clocks_lock);
  clock->tried = read_clock();
  if (event != NULL) {
    struct base *base = &clock->bases[++clock->last % BASES];
    old = base->event;
    *base = (struct base){ event, ns };
  }
  clock->making = false;
  pthread_mutex_unlock(&clocks_lock);
  rill__trace_events_put(&old, 1);
}

uint64_t rill__trace_base(struct rill__device *device) {
  pthread_mutex_lock(&clocks_lock);
  struct device_clock *clock = clock_of(device);
  while (clock != NULL && clock->last == 0 && clock->making) { /* another thread is creating the first base */
    pthread_mutex_unlock(&clocks_lock);
    (void)sched_yield();
    pthread_mutex_lock(&clocks_lock);
  }
  uint64_t last = clock != NULL ? clock->last : 0;
  const bool make = clock != NULL && last == 0;
  if (make) clock->making = true;
  pthread_mutex_unlock(&clocks_lock);
  if (!make) return last;
  make_base(device, clock);
  rill__timeline_handle_exit();
  pthread_mutex_lock(&clocks_lock);
  last = clock->last;
  pthread_mutex_unlock(&clocks_lock);
  return last;
}

void rill__trace_clocks_renew(void) {
  for (int i = 0; i < DEVICES; i++) {
    struct device_clock *const clock = &clocks[i];
    pthread_mutex_lock(&clocks_lock);
    struct rill__device *const device = clock->device;
    const bool known = device != NULL && clock->last != 0 && !clock->making;
    const bool old =
        known && read_clock() - clock->tried > SPAN_NS; /* after a failed attempt, waits before the next one */
    const bool few = known && clock->spare_count < FEW_EVENTS;
    if (old) clock->making = true;
    pthread_mutex_unlock(&clocks_lock);
    if (device == NULL) return;
    if (few && atomic_load(&device->lost) == RILL_OK) make_spare_events(device, MORE_EVENTS);
    if (old) make_base(device, clock);
  }
}

bool rill__trace_time_of(struct rill__event *event, uint64_t base, uint64_t *ns) {
  struct rill__device *device = event->base.device;
  float ms = 0;
  pthread_mutex_lock(&clocks_lock);
  struct device_clock *clock = clock_of(device);
  /* The oldest base is not used, because another thread may be replacing it. */
  const bool known = clock != NULL && base != 0 && clock->last - base < BASES - 1;
  const struct base from = known ? clock->bases[base % BASES] : (struct base){ NULL, 0 };
  pthread_mutex_unlock(&clocks_lock);
  if (!known || RILL_DISPATCH(event, event, elapsed, from.event, event, &ms) != RILL_OK) return false;
  const int64_t at = (int64_t)(from.ns - atomic_load(&zero)) + (int64_t)((double)ms * 1e6);
  *ns = at > 0 ? (uint64_t)at : 0;
  return true;
}

void rill__trace_clock_after_fork(void) {
  pthread_mutex_init(&clocks_lock, NULL);
  for (int i = 0; i < DEVICES; i++) clocks[i] = (struct device_clock){ .device = NULL };
}
