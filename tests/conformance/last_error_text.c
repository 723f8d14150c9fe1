/* rill_last_error_text */
#include "support/testing.h"

static const char *has_no_text_yet(unsigned index, void *shared) {
  (void)index, (void)shared;
  REQUIRE(strcmp(rill_last_error_text(), "") == 0);
  bool capturing;
  REQUIRE(rill_stream_is_capturing(RILL_NULL_STREAM, &capturing) != RILL_OK);
  REQUIRE(strcmp(rill_last_error_text(), "") != 0);
  return NULL;
}

/* C1.5 */
static void is_empty_until_a_call_of_the_thread_fails(void) { run_threads(2, has_no_text_yet, NULL); }

/* C1.5, R6 */
static void is_one_line_with_function_object_and_status(void) {
  rill_stream stream = new_stream("a label");
  assert_fails(rill_stream_wait_event(stream, RILL_NULL_EVENT, 0), RILL_ERROR_INVALID_HANDLE);
  const char *text = rill_last_error_text();
  assert_true(strncmp(text, "rill_stream_wait_event: ", 24) == 0);
  assert_non_null(strstr(text, "a label"));
  assert_non_null(strstr(text, "RILL_ERROR_INVALID_HANDLE"));
  assert_null(strchr(text, '\n'));
}

static void holds_message_and_hint(void) {
  rill_event never = new_event("never");
  rill_event other = new_event("other");
  float ms;
  assert_fails(rill_event_elapsed_time(never, other, &ms), RILL_ERROR_TIMING_DISABLED);
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  assert_non_null(strstr(rill_last_error_text(), error.message));
  assert_non_null(strstr(rill_last_error_text(), error.hint));
  assert_true(error.hint[0] != '\0');
}

/* A label may be longer than the text. */
static void survives_long_names(void) {
  char label[5000];
  memset(label, 'x', sizeof label - 1);
  label[sizeof label - 1] = '\0';
  rill_stream stream = new_stream(label);
  assert_fails(rill_stream_priority(stream, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("xxxxxxxx");
  rill_device device;
  assert_fails(rill_device_open(label, &device), RILL_ERROR_NOT_FOUND);
}

TESTS_ON_EACH_DEVICE("rill_last_error_text", TEST(is_empty_until_a_call_of_the_thread_fails),
                     TEST(is_one_line_with_function_object_and_status), TEST(holds_message_and_hint),
                     TEST(survives_long_names))
