/* core/object/error.h: the texts of errors. */
#include "core/object/error.h"

#include "core/object/handle.h"
#include "support/testing.h"

static rill_error last_error(void) {
  rill_error error = RILL_ERROR_INIT;
  assert_int_equal(rill_last_error(&error), RILL_OK);
  return error;
}

static rill_status rill_example(int number) {
  RILL_ENTER();
  RILL_REQUIRE(number < 5, RILL_ERROR_OUT_OF_RANGE, "number is %d" RILL_HINT "pass less than %d", number, 5);
  return RILL_OK;
}

static void require_names_function_message_and_hint(void) {
  assert_int_equal(rill_example(4), RILL_OK);
  assert_int_equal(rill_example(6), RILL_ERROR_OUT_OF_RANGE);
  const rill_error error = last_error();
  assert_int_equal(error.status, RILL_ERROR_OUT_OF_RANGE);
  assert_string_equal(error.api, "rill_example");
  assert_string_equal(error.message, "number is 6");
  assert_string_equal(error.hint, "pass less than 5");
  assert_string_equal(error.object, "");
  assert_string_equal(error.native_name, "");
  assert_string_equal(rill_last_error_text(), "rill_example: number is 6; pass less than 5 (RILL_ERROR_OUT_OF_RANGE)");
}

static rill_status rill_vendor_example(void) {
  RILL_ENTER();
  return rill__fail_native(RILL_ERROR_BACKEND, 700, "ERROR_ILLEGAL_ADDRESS", "the driver refused");
}

/* C1.5 */
static void native_codes_are_reported(void) {
  assert_int_equal(rill_vendor_example(), RILL_ERROR_BACKEND);
  assert_int_equal(last_error().native_code, 700);
  assert_string_equal(last_error().native_name, "ERROR_ILLEGAL_ADDRESS");
  assert_says("700 ERROR_ILLEGAL_ADDRESS");
  assert_int_equal(rill_example(9), RILL_ERROR_OUT_OF_RANGE); /* the native code is not kept */
  assert_int_equal(last_error().native_code, 0);
  assert_string_equal(last_error().native_name, "");
}

static rill_status rill_try_example(void) {
  RILL_ENTER();
  RILL_TRY(rill__fail(RILL_ERROR_TIMEOUT, "inner"));
  return rill__fail(RILL_ERROR_INTERNAL, "not reached");
}

static void try_passes_a_failure_on(void) {
  assert_int_equal(rill_try_example(), RILL_ERROR_TIMEOUT);
  assert_string_equal(last_error().message, "inner");
}

/* An argument may be the text of the error that is being replaced. */
static void may_quote_the_last_error(void) {
  assert_int_equal(rill_example(7), RILL_ERROR_OUT_OF_RANGE);
  const rill_error error = last_error();
  assert_int_equal(rill__fail(RILL_ERROR_INTERNAL, "it said \"%s\"", error.message), RILL_ERROR_INTERNAL);
  assert_string_equal(last_error().message, "it said \"number is 7\"");
}

static void long_texts_are_truncated_and_terminated(void) {
  char text[5000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  assert_int_equal(rill__fail(RILL_ERROR_INTERNAL, "%s", text), RILL_ERROR_INTERNAL);
  assert_true(strlen(last_error().message) < sizeof text);
  assert_int_equal(rill__fail(RILL_ERROR_INTERNAL, "short" RILL_HINT "%s", text), RILL_ERROR_INTERNAL);
  assert_string_equal(last_error().message, "short");
  assert_true(strlen(last_error().hint) < sizeof text);
  assert_int_equal(rill__fail_native(RILL_ERROR_INTERNAL, 1, text, "short"), RILL_ERROR_INTERNAL);
  assert_true(strlen(rill_last_error_text()) < sizeof text);
}

TESTS_ONCE("core/object/error.h", TEST(require_names_function_message_and_hint), TEST(native_codes_are_reported),
           TEST(try_passes_a_failure_on), TEST(may_quote_the_last_error), TEST(long_texts_are_truncated_and_terminated))
