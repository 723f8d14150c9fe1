/* rill_status_name */
#include "support/testing.h"

/* C1.6, R2 */
static void names_every_status(void) {
#define CHECK(name, number, text) assert_string_equal(rill_status_name(number), "RILL_" #name);
  RILL_STATUS_LIST(CHECK)
#undef CHECK
}

/* R2 */
static void answers_for_unknown_numbers(void) {
  const rill_status none[] = { -1, RILL_STATUS_END_, 9999, INT32_MIN, INT32_MAX };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_string_equal(rill_status_name(none[i]), "RILL_ERROR_?");
  }
}

/* C1.6: programs that were compiled with older headers rely on these numbers. */
static void numbers_never_change(void) {
  const rill_status numbers[] = { RILL_OK,
                                  RILL_ERROR_INVALID_ARGUMENT,
                                  RILL_ERROR_OUT_OF_RANGE,
                                  RILL_ERROR_INVALID_HANDLE,
                                  RILL_ERROR_STALE_HANDLE,
                                  RILL_ERROR_WRONG_DEVICE,
                                  RILL_ERROR_WRONG_BACKEND,
                                  RILL_ERROR_NO_DEVICE,
                                  RILL_ERROR_NOT_FOUND,
                                  RILL_ERROR_OUT_OF_MEMORY,
                                  RILL_ERROR_UNSUPPORTED,
                                  RILL_ERROR_TIMING_DISABLED,
                                  RILL_ERROR_NOT_RECORDED,
                                  RILL_ERROR_NOT_READY,
                                  RILL_ERROR_TIMEOUT,
                                  RILL_ERROR_CAPTURE_ACTIVE,
                                  RILL_ERROR_CAPTURE_INVALID,
                                  RILL_ERROR_DEVICE_LOST,
                                  RILL_ERROR_BACKEND,
                                  RILL_ERROR_INTERNAL,
                                  RILL_ERROR_CHECK };
  assert_int_equal(sizeof numbers / sizeof *numbers, RILL_STATUS_END_); /* a new status must be added to this list */
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) assert_int_equal(numbers[i], i);
}

TESTS_ONCE("rill_status_name", TEST(names_every_status), TEST(answers_for_unknown_numbers), TEST(numbers_never_change))
