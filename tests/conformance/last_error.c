/* rill_last_error */
#include "support/testing.h"

static rill_error last_error(void) {
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  return error;
}

/* Its own failures do not replace the last error. */
static void refuses_misuse_and_keeps_the_error(void) {
  assert_fails(rill_device_get(-1, &(rill_device){ 0 }), RILL_ERROR_NOT_FOUND);
  assert_int_equal(rill_last_error(NULL), RILL_ERROR_INVALID_ARGUMENT);
  rill_error unsized = { 0, 0, 0, NULL, NULL, NULL, NULL, NULL };
  assert_int_equal(rill_last_error(&unsized), RILL_ERROR_INVALID_ARGUMENT);
  assert_string_equal(last_error().api, "rill_device_get");
}

/* C1.5, R6 */
static void reports_function_status_object_and_numbers(void) {
  rill_stream stream = new_stream("tells");
  assert_fails(rill_stream_record_event(stream, RILL_NULL_EVENT, 0), RILL_ERROR_INVALID_HANDLE);
  const rill_error error = last_error();
  assert_int_equal(error.struct_size, sizeof error);
  assert_int_equal(error.native_code, 0);
  assert_string_equal(error.native_name, "");
  assert_non_null(strstr(error.object, "tells"));

  assert_fails(rill_device_get(4321, &(rill_device){ 0 }), RILL_ERROR_NOT_FOUND);
  assert_non_null(strstr(last_error().message, "4321"));
  assert_string_equal(last_error().object, "");
}

/* C1.5: the text has the id of an object without a label. */
static void names_an_object_without_label_by_its_id(void) {
  rill_event event = new_event(NULL);
  assert_fails(rill_event_is_ready(event, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_true(last_error().object[0] != '\0');
}

/* C1.5, R1 */
static void success_leaves_it_unchanged(void) {
  rill_stream stream = new_stream("success");
  assert_fails(rill_device_get(-1, &(rill_device){ 0 }), RILL_ERROR_NOT_FOUND);
  const rill_error before = last_error();
  assert_ok(rill_stream_synchronize(stream));
  assert_true(is_complete(stream));
  assert_ok(rill_stream_release(RILL_NULL_STREAM)); /* C1.3 */
  const rill_error after = last_error();
  assert_memory_equal(&before, &after, sizeof before);
}

/* Q3, R5 */
static void pending_work_is_not_an_error(void) {
  rill_stream stream = new_stream("pending");
  assert_fails(rill_device_get(-1, &(rill_device){ 0 }), RILL_ERROR_NOT_FOUND);
  struct gate *gate = gate_close(stream);
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_string_equal(last_error().api, "rill_device_get");
}

static const char *sees_its_own_error_only(unsigned index, void *shared) {
  (void)shared;
  rill_error error = RILL_ERROR_INIT;
  REQUIRE_OK(rill_last_error(&error));
  REQUIRE(error.status == RILL_OK && error.api[0] == '\0' && error.message[0] == '\0' && error.object[0] == '\0');
  rill_device device;
  for (unsigned i = 0; i < 200; i++) {
    if (index % 2 == 0) {
      REQUIRE(rill_device_get(-1, &device) == RILL_ERROR_NOT_FOUND);
    } else {
      REQUIRE(rill_device_count(NULL) == RILL_ERROR_INVALID_ARGUMENT);
    }
    REQUIRE_OK(rill_last_error(&error));
    REQUIRE(strcmp(error.api, index % 2 == 0 ? "rill_device_get" : "rill_device_count") == 0);
  }
  return NULL;
}

/* C1.5, T5 */
static void each_thread_has_its_own_error(void) { run_threads(8, sees_its_own_error_only, NULL); }

static rill_status fill_error(void *output) { return rill_last_error(output); }

/* C1.4 */
static void fills_older_and_newer_structs(void) {
  assert_fails(rill_device_get(-1, &(rill_device){ 0 }), RILL_ERROR_NOT_FOUND);
  _Alignas(rill_error) unsigned char bytes[sizeof(rill_error) + 16];
  memset(bytes, 0xa5, sizeof bytes);
  const size_t older = offsetof(rill_error, native_code);
  memcpy(bytes, &older, sizeof older);
  assert_ok(fill_error(bytes));
  rill_status status;
  memcpy(&status, bytes + offsetof(rill_error, status), sizeof status);
  assert_int_equal(status, RILL_ERROR_NOT_FOUND);
  for (size_t i = older; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0xa5);

  memset(bytes, 0, sizeof bytes);
  const size_t newer = sizeof bytes;
  memcpy(bytes, &newer, sizeof newer);
  assert_ok(fill_error(bytes));
  for (size_t i = sizeof(rill_error); i < sizeof bytes; i++) assert_int_equal(bytes[i], 0);
}

TESTS_ON_EACH_DEVICE("rill_last_error", TEST(refuses_misuse_and_keeps_the_error),
                     TEST(reports_function_status_object_and_numbers), TEST(names_an_object_without_label_by_its_id),
                     TEST(success_leaves_it_unchanged), TEST(pending_work_is_not_an_error),
                     TEST(each_thread_has_its_own_error), TEST(fills_older_and_newer_structs))
