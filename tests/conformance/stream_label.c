/* rill_stream_label */
#include "support/testing.h"

GETTER_TESTS(stream, rill_stream_label, const char *, new_stream("getter"))

static const char *label_of(rill_stream stream) {
  const char *label = NULL;
  assert_ok(rill_stream_label(stream, &label));
  assert_non_null(label);
  return label;
}

/* C3.4 */
static void is_the_label_that_was_given(void) {
  assert_string_equal(label_of(new_stream("upload")), "upload");
  assert_string_equal(label_of(new_stream("")), "");
  assert_string_equal(label_of(new_stream(NULL)), "");
  assert_string_equal(label_of(new_stream("several words, \"quotes\" and \xc3\xa9")),
                      "several words, \"quotes\" and \xc3\xa9");
}

/* C1.5: errors show the label of the stream. */
static void names_the_stream_in_errors(void) {
  assert_fails(rill_stream_priority(new_stream("upload"), NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_names("upload");
}

static void default_stream_has_one_or_none(void) {
  rill_stream standard;
  assert_ok(rill_device_default_stream(dut.device, &standard));
  (void)label_of(standard);
}

TESTS_ON_EACH_DEVICE("rill_stream_label", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_the_label_that_was_given), TEST(names_the_stream_in_errors),
                     TEST(default_stream_has_one_or_none))
