/* rill_stream_retain */
#include "support/testing.h"

static rill_status call_with_stream(uint64_t id) { return rill_stream_retain((rill_stream){ id }); }

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_retain", call_with_stream); }

/* C1.3, S14 */
static void counts_references(void) {
  rill_stream stream = new_stream("counted");
  assert_ok(rill_stream_retain(stream));
  assert_ok(rill_stream_retain(stream));
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_stream_release(stream));
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_STALE_HANDLE);
}

static const char *retains_and_releases(unsigned index, void *shared) {
  (void)index;
  const rill_stream stream = *(const rill_stream *)shared;
  for (unsigned i = 0; i < 500; i++) {
    REQUIRE_OK(rill_stream_retain(stream));
    REQUIRE_OK(rill_stream_release(stream));
  }
  return NULL;
}

static void counts_right_from_many_threads(void) {
  rill_stream stream = new_stream("shared");
  run_threads(8, retains_and_releases, &stream);
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_stream_release(stream));
  assert_fails(rill_stream_retain(stream), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_stream_retain", TEST(refuses_bad_handles), TEST(counts_references),
                     TEST(counts_right_from_many_threads))
