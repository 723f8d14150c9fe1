/* rill_status_message */
#include "support/testing.h"

/* R2 */
static void has_a_sentence_for_every_status(void) {
#define CHECK(name, number, text) assert_string_equal(rill_status_message(number), text);
  RILL_STATUS_LIST(CHECK)
#undef CHECK
}

/* R2 */
static void answers_for_unknown_numbers(void) {
  const rill_status none[] = { -1, RILL_STATUS_END_, 9999, INT32_MIN, INT32_MAX };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_string_equal(rill_status_message(none[i]), "unknown status");
  }
}

TESTS_ONCE("rill_status_message", TEST(has_a_sentence_for_every_status), TEST(answers_for_unknown_numbers))
