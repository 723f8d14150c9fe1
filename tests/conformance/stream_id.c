/* rill_stream_id */
#include "support/testing.h"

GETTER_TESTS(stream, rill_stream_id, uint64_t, new_stream("getter"))

static uint64_t id_of(rill_stream stream) {
  uint64_t id = 0;
  assert_ok(rill_stream_id(stream, &id));
  return id;
}

static void never_changes(void) {
  rill_stream stream = new_stream("stream");
  const uint64_t id = id_of(stream);
  write_cell(stream, 0, 1);
  assert_completes(stream);
  assert_int_equal(id_of(stream), id);
}

/* C3.4: no other stream has this id, including streams that were destroyed. */
static void is_never_reused(void) {
  enum { STREAMS = 400 };
  static uint64_t ids[STREAMS];
  for (unsigned i = 0; i < STREAMS; i++) {
    rill_stream stream = new_stream(NULL);
    ids[i] = id_of(stream);
    if (i % 8 != 0) assert_ok(rill_stream_release(stream));
    for (unsigned j = 0; j < i; j++) assert_int_not_equal(ids[i], ids[j]);
  }
}

TESTS_ON_EACH_DEVICE("rill_stream_id", TEST(refuses_bad_handles), TEST(refuses_null_out), TEST(never_changes),
                     TEST(is_never_reused))
