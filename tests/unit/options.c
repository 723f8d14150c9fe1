/* core/object/options.h: structs of callers that were compiled with older or newer headers. */
#include "core/object/options.h"

#include "support/testing.h"

struct today {
  size_t struct_size;
  uint32_t number, unused; /* no padding */
  const char *text;
};

static const struct today defaults = { sizeof defaults, 7, 0, "default" };

static void null_keeps_the_defaults(void) {
  struct today into = defaults;
  assert_int_equal(rill__options_read(&into, sizeof into, NULL, "today"), RILL_OK);
  assert_memory_equal(&into, &defaults, sizeof into);
}

static void reads_the_fields_that_exist(void) {
  struct today into = defaults;
  const struct today from = { sizeof from, 8, 0, "given" };
  assert_int_equal(rill__options_read(&into, sizeof into, &from, "today"), RILL_OK);
  assert_int_equal(into.number, 8);
  assert_string_equal(into.text, "given");
}

/* An older caller's struct ends before `text`; nothing past its end is checked. */
static void reads_a_shorter_struct(void) {
  const size_t size = offsetof(struct today, text);
  const struct today older = { size, 9, 0, NULL };
  unsigned char *from = malloc(size); /* the address sanitizer detects a read past the end */
  memcpy(from, &older, size);
  struct today into = defaults;
  assert_int_equal(rill__options_read(&into, sizeof into, from, "today"), RILL_OK);
  assert_int_equal(into.number, 9);
  assert_string_equal(into.text, "default");
  assert_int_equal(into.struct_size, sizeof into);
  free(from);
}

static void reads_a_longer_struct_without_unknown_fields(void) {
  struct {
    struct today known;
    uint64_t newer;
  } from = { { sizeof from, 10, 0, "given" }, 0 };
  struct today into = defaults;
  assert_int_equal(rill__options_read(&into, sizeof into, &from, "today"), RILL_OK);
  assert_int_equal(into.number, 10);
  assert_int_equal(into.struct_size, sizeof into);

  from.newer = 1;
  assert_int_equal(rill__options_read(&into, sizeof into, &from, "today"), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("today");
  assert_says("24"); /* the text has the offset of the byte and the known size */
}

static void refuses_invalid_sizes(void) {
  struct today into = defaults;
  for (size_t size = 0; size < sizeof(size_t); size++) {
    const struct today from = { size, 1, 0, NULL };
    assert_int_equal(rill__options_read(&into, sizeof into, &from, "today"), RILL_ERROR_INVALID_ARGUMENT);
    assert_memory_equal(&into, &defaults, sizeof into);
    assert_int_equal(rill__options_check_output(&from, "today"), RILL_ERROR_INVALID_ARGUMENT);
  }
  assert_int_equal(rill__options_check_output(NULL, "today"), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(rill__options_check_output(&defaults, "today"), RILL_OK);
}

static void writes_as_many_fields_as_fit(void) {
  const struct today from = { sizeof from, 11, 0, "written" };
  for (size_t size = sizeof(size_t); size <= sizeof from + 16; size++) {
    _Alignas(struct today) unsigned char to[sizeof from + 24];
    memset(to, 0xa5, sizeof to);
    memcpy(to, &size, sizeof size);
    rill__options_write(to, &from, sizeof from);
    const size_t end = size < sizeof from ? size : sizeof from;
    assert_memory_equal(to, &size, sizeof size);
    assert_memory_equal(to + sizeof size, (const unsigned char *)&from + sizeof size, end - sizeof size);
    for (size_t i = end; i < sizeof to; i++) assert_int_equal(to[i], 0xa5);
  }
}

TESTS_ONCE("core/object/options.h", TEST(null_keeps_the_defaults), TEST(reads_the_fields_that_exist),
           TEST(reads_a_shorter_struct), TEST(reads_a_longer_struct_without_unknown_fields),
           TEST(refuses_invalid_sizes), TEST(writes_as_many_fields_as_fit))
