/* Threads record, release and watch events of their own, some on held streams, and compare with a model (C4.7): each
 * watch must be notified once, never before its point is reached, and with the status of its record. */
#include "support/testing.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { THREADS = 6, STREAMS = 3, EVENTS = 8, STEPS = 400, WATCHES = STEPS };

/* How a held stream was released. The records on it fail if the event was abandoned. */
enum outcome { OPEN, RECORDED, ABANDONED };
struct hold {
  enum outcome outcome;
};

/* A point in a stream: it is reached when the stream has executed this many host calls. */
struct point {
  _Atomic unsigned *passed; /* NULL: never recorded */
  unsigned number;
  const struct hold *hold; /* of a record on a held stream; else NULL */
};

struct watch {
  struct point point;
  _Atomic unsigned notified;
  rill_status status;
  _Atomic bool too_soon;
};

struct track {
  rill_stream stream;
  _Atomic unsigned passed;
  unsigned given;
  struct hold *hold; /* NULL if the stream is not held */
  rill_event never;  /* the event that holds the stream */
};

static void pass(void *user, rill_status status) {
  (void)status;
  (void)atomic_fetch_add((_Atomic unsigned *)user, 1);
}

static void note(void *user, rill_status status) {
  struct watch *const watch = user;
  const struct point *const point = &watch->point;
  watch->status = status;
  if (status == RILL_OK && point->passed != NULL && atomic_load(point->passed) < point->number)
    atomic_store(&watch->too_soon, true);
  (void)atomic_fetch_add(&watch->notified, 1);
}

static uint32_t next_random(uint32_t *state) { return (*state = *state * 1664525 + 1013904223) >> 8; }

static const char *end_hold(struct track *track, bool record) {
  if (track->hold == NULL) return NULL;
  track->hold->outcome = record ? RECORDED : ABANDONED;
  if (record) {
    rill_stream other;
    REQUIRE_OK(rill_device_default_stream(dut.device, &other));
    REQUIRE_OK(rill_stream_record_event(other, track->never, 0));
  }
  track->hold = NULL;
  REQUIRE_OK(rill_event_release(track->never));
  const rill_status status = rill_stream_synchronize(track->stream);
  REQUIRE(status == (record ? RILL_OK : RILL_ERROR_NOT_RECORDED));
  return NULL;
}

static const char *begin_hold(struct track *track, struct hold *hold) {
  if (track->hold != NULL) return NULL;
  REQUIRE_OK(rill_event_create(dut.device, NULL, &track->never));
  REQUIRE_OK(rill_stream_wait_event(track->stream, track->never, 0));
  hold->outcome = OPEN;
  track->hold = hold;
  return NULL;
}

static const char *record(struct track *track, rill_event event, struct point *point) {
  REQUIRE_OK(rill_stream_host_call(track->stream, pass, &track->passed));
  REQUIRE_OK(rill_stream_record_event(track->stream, event, 0));
  *point = (struct point){ &track->passed, ++track->given, track->hold };
  return NULL;
}

static const char *renew(rill_event *event, struct point *point) {
  REQUIRE_OK(rill_event_release(*event));
  REQUIRE_OK(rill_event_create(dut.device, NULL, event));
  *point = (struct point){ NULL, 0, NULL };
  return NULL;
}

static const char *await(const struct watch *watches, unsigned calls, int fd, uint64_t count) {
  const uint64_t until = now_ns() + TIMEOUT_NS;
  uint64_t got = 0, more = 0;
  while (got < count && now_ns() < until) {
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    if (poll(&ready, 1, 1000) == 1 && read(fd, &more, sizeof more) == (ssize_t)sizeof more) got += more;
  }
  REQUIRE(got == count);
  for (unsigned i = 0; i < calls; i++) {
    while (atomic_load(&watches[i].notified) == 0 && now_ns() < until) let_pass_ns(10000);
    REQUIRE(atomic_load(&watches[i].notified) == 1 && !atomic_load(&watches[i].too_soon));
    const struct hold *const hold = watches[i].point.hold;
    REQUIRE(watches[i].status == (hold != NULL && hold->outcome == ABANDONED ? RILL_ERROR_NOT_RECORDED : RILL_OK));
  }
  return NULL;
}

#define TRY(call)                     \
  do {                                \
    const char *const text_ = (call); \
    if (text_ != NULL) return text_;  \
  } while (0)

static const char *works(unsigned index, void *shared) {
  struct track tracks[STREAMS] = { 0 };
  rill_event events[EVENTS];
  struct point points[EVENTS] = { { 0 } };
  struct watch *const watches = calloc(WATCHES, sizeof *watches);
  struct hold *const holds = calloc(STEPS, sizeof *holds);
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  uint32_t state = index * 7919 + *(const uint32_t *)shared;
  unsigned calls = 0;
  uint64_t added = 0;
  REQUIRE(watches != NULL && holds != NULL && fd >= 0);
  for (unsigned i = 0; i < STREAMS; i++) REQUIRE_OK(rill_stream_create(dut.device, NULL, &tracks[i].stream));
  for (unsigned i = 0; i < EVENTS; i++) REQUIRE_OK(rill_event_create(dut.device, NULL, &events[i]));
  for (unsigned i = 0; i < STEPS; i++) {
    struct track *const track = &tracks[next_random(&state) % STREAMS];
    const unsigned e = next_random(&state) % EVENTS;
    switch (next_random(&state) % 16) {
      case 0: TRY(begin_hold(track, &holds[i])); break;
      case 1: TRY(end_hold(track, true)); break;
      case 2: TRY(end_hold(track, next_random(&state) % 2 != 0)); break;
      case 3: TRY(renew(&events[e], &points[e])); break;
      case 4:
      case 5:
      case 6:
      case 7:
        REQUIRE_OK(rill_event_notify_fd(events[e], fd));
        added++;
        break;
      case 8:
      case 9:
      case 10:
      case 11:
        watches[calls].point = points[e];
        REQUIRE_OK(rill_event_then(events[e], note, &watches[calls]));
        calls++;
        break;
      default: TRY(record(track, events[e], &points[e])); break;
    }
  }
  for (unsigned i = 0; i < STREAMS; i++) TRY(end_hold(&tracks[i], true));
  TRY(await(watches, calls, fd, added));
  for (unsigned i = 0; i < STREAMS; i++) REQUIRE_OK(rill_stream_synchronize(tracks[i].stream));
  for (unsigned i = 0; i < STREAMS; i++) REQUIRE_OK(rill_stream_release(tracks[i].stream));
  for (unsigned i = 0; i < EVENTS; i++) REQUIRE_OK(rill_event_release(events[i]));
  for (unsigned i = 0; i < calls; i++) REQUIRE(atomic_load(&watches[i].notified) == 1);
  (void)close(fd);
  free(watches);
  free(holds);
  return NULL;
}

static void watches_match_the_model(void) {
  for (unsigned round = 0; round < scaled(20); round++) {
    uint32_t seed = round * 104729 + 1;
    run_threads(THREADS, works, &seed);
  }
}

TESTS_ON_EACH_DEVICE("stress: watches", TEST(watches_match_the_model))
