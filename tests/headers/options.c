/* RILL_STREAM_OPTIONS and related macros in C and, through options.cpp, in C++17: named fields are set, all others are
 * 0. */
#include <rill/comm.h>
#include <rill/rill.h>

#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                   \
  do {                                                     \
    if (!(condition)) {                                    \
      failures++;                                          \
      (void)printf("line %d: %s\n", __LINE__, #condition); \
    }                                                      \
  } while (0)

static bool same_stream(const rill_stream_options *o, int32_t priority, uint32_t policy, bool blocking,
                        const char *label) {
  return o->struct_size == sizeof *o && o->priority == priority && o->priority_policy == policy &&
         o->blocking == blocking &&
         (label == NULL ? o->label == NULL : o->label != NULL && strcmp(o->label, label) == 0);
}

static bool same_event(const rill_event_options *o, bool timing, bool blocking_sync, bool interprocess, bool signaled) {
  return o->struct_size == sizeof *o && o->timing == timing && o->blocking_sync == blocking_sync &&
         o->interprocess == interprocess && o->signaled == signaled;
}

static uint64_t limit_of(const rill_pool_options *o) { return o->struct_size == sizeof *o ? o->max_size : 0; }
static uint64_t timeout_of(const rill_comm_options *o) { return o->struct_size == sizeof *o ? o->timeout_ns : 0; }

static uint32_t shape_of(const rill_launch *l) {
  return l->struct_size == sizeof *l ? l->grid.x * 100 + l->grid.y * 10 + l->block.x : 0;
}

int main(void) {
  const char *const name = "copy";
  CHECK(same_stream(RILL_STREAM_OPTIONS(.label = name), 0, 0, false, "copy"));
  CHECK(same_stream(RILL_STREAM_OPTIONS(.priority = -1, .blocking = true), -1, 0, true, NULL));
  CHECK(same_stream(RILL_STREAM_OPTIONS(.priority = RILL_PRIORITY_HIGH, .priority_policy = RILL_PRIORITY_STRICT,
                                        .blocking = true, .label = name),
                    RILL_PRIORITY_HIGH, RILL_PRIORITY_STRICT, true, "copy"));
  CHECK(same_event(RILL_EVENT_OPTIONS(.timing = true), true, false, false, false));
  CHECK(same_event(RILL_EVENT_OPTIONS(.blocking_sync = true, .interprocess = true, .signaled = true, .label = "e"),
                   false, true, true, true));
  CHECK(limit_of(RILL_POOL_OPTIONS(.max_size = 1u << 20, .label = "pool")) == 1u << 20);
  CHECK(timeout_of(RILL_COMM_OPTIONS(.timeout_ns = 5)) == 5);
  CHECK(same_stream(RILL_STREAM_OPTIONS(.label = name, .priority = 3), 3, 0, false, "copy")); /* in any order */
  CHECK(shape_of(RILL_LAUNCH(.grid = rill_dim(4, 3, 2), .block = rill_dim(5, 1, 1))) == 435);
  CHECK(shape_of(RILL_LAUNCH(.grid = rill_dim(4, 3, 2), .block = rill_dim(5, 1, 1), .cluster = rill_dim(2, 1, 1),
                             .shared_mem_bytes = 64, .attributes = NULL, .attribute_count = 0, .constants = NULL,
                             .constant_count = 0, .label = "all")) == 435);
  return failures != 0;
}
