/* rill_device_supports */
#include "support/testing.h"

/* C2.3: false, with the reason. */
static void bad_handles_support_nothing(void) {
  const uint64_t bad[] = { 0, 1, UINT64_MAX, new_stream("bad").id };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const char *why = NULL;
    assert_false(rill_device_supports((rill_device){ bad[i] }, RILL_FEATURE_POOL, &why));
    assert_non_null(why);
    assert_true(why[0] != '\0');
    assert_false(rill_device_supports((rill_device){ bad[i] }, RILL_FEATURE_POOL, NULL));
  }
}

static void unknown_features_are_unsupported(void) {
  const uint32_t unknown[] = { 0, RILL_FEATURE_END_, UINT32_MAX };
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    const char *why = NULL;
    assert_false(rill_device_supports(dut.device, unknown[i], &why));
    assert_non_null(why);
    assert_true(why[0] != '\0');
  }
}

/* C2.3 */
static void says_why_not(void) {
  for (uint32_t feature = RILL_FEATURE_PEER; feature < RILL_FEATURE_END_; feature++) {
    const char *why = NULL, *again = NULL;
    const bool supported = rill_device_supports(dut.device, feature, &why);
    assert_non_null(why);
    assert_int_equal(why[0] == '\0', supported);
    assert_int_equal(rill_device_supports(dut.device, feature, &again), supported);
    assert_string_equal(why, again);
    assert_int_equal(rill_device_supports(dut.device, feature, NULL), supported);
  }
}

/* G37 */
static void no_device_has_conditional_nodes(void) {
  const char *why = NULL;
  assert_false(rill_device_supports(dut.device, RILL_FEATURE_CONDITIONAL, &why));
  assert_non_null(strstr(why, "not every vendor"));
}

TESTS_ON_EACH_DEVICE("rill_device_supports", TEST(bad_handles_support_nothing), TEST(unknown_features_are_unsupported),
                     TEST(says_why_not), TEST(no_device_has_conditional_nodes))
