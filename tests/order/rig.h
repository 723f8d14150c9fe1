/* Shared by programs with and without a missing wait: streams, events and memory, and the code that runs them. */
#ifndef RILL_TESTS_ORDER_RIG_H
#define RILL_TESTS_ORDER_RIG_H

#include "support/testing.h"

enum { N = 4096, HALF = N / 2 };

/* Objects of every program: `a` and `b` are streams of the device; the memory is unused. */
struct rig {
  bool right; /* the program has its wait */
  rill_stream a, b, c;
  rill_event event, other;
  char *device, *device2, *pinned, *pinned2;
  const char *name;
};

static const uint8_t zero;

static inline void fill(rill_stream stream, void *p, size_t size) {
  assert_ok(rill_fill_async(stream, p, &zero, 1, size));
}
static inline void copy(rill_stream stream, void *to, const void *from, size_t size) {
  assert_ok(rill_copy_async(stream, to, from, size));
}
static inline void record(rill_stream stream, rill_event event) {
  assert_ok(rill_stream_record_event(stream, event, 0));
}
static inline void wait(rill_stream stream, rill_event event) { assert_ok(rill_stream_wait_event(stream, event, 0)); }
static inline void order_after(rill_stream later, rill_stream earlier) {
  assert_ok(rill_stream_wait_stream(later, earlier));
}
static inline void synchronize(rill_stream stream) { assert_ok(rill_stream_synchronize(stream)); }

static inline char *new_of_pool(rill_stream stream) {
  void *p = NULL;
  assert_ok(rill_alloc_async(stream, N, &p));
  return p;
}

rill_graph_exec graph_of_fill(void *p);

struct planted {
  const char *name;
  void (*run)(struct rig *r);
  const char *says; /* in the report */
};

#define PLANTED(name, says) \
  { #name, name, says }
/* Fails unless the program is reported, and its corrected form is not. */
void run_bug(const struct planted *bug, bool right);

#endif
