/* Shared by the tests of traces: a trace file and its contents. */
#ifndef RILL_TESTS_CONFORMANCE_TRACES_H
#define RILL_TESTS_CONFORMANCE_TRACES_H

#include "support/testing.h"

#include <stdio.h>
#include <unistd.h>

static char trace_path[64];

/* Returns the path of this process's trace file, which read_trace removes. */
static inline const char *path_of_trace(void) {
  (void)snprintf(trace_path, sizeof trace_path, "/tmp/rill-trace-test-%ld.json", (long)getpid());
  return trace_path;
}

static inline void start_trace(void) { assert_ok(rill_trace_start(RILL_TRACE_OPTIONS(.path = path_of_trace()))); }

/* Returns the contents of the file, which the caller frees, and removes the file. */
static inline char *read_trace(void) {
  FILE *file = fopen(trace_path, "r");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  const long size = ftell(file);
  assert_true(size >= 0);
  rewind(file);
  char *text = malloc((size_t)size + 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)size, file), size);
  text[size] = '\0';
  assert_int_equal(fclose(file), 0);
  assert_int_equal(remove(trace_path), 0);
  return text;
}

static inline unsigned count_of(const char *text, const char *pattern) {
  unsigned count = 0;
  for (const char *at = strstr(text, pattern); at != NULL; at = strstr(at + 1, pattern)) count++;
  return count;
}

/* Checks that the file is complete. */
static inline void assert_complete(const char *text) {
  assert_int_equal(strncmp(text, "[\n", 2), 0);
  const size_t length = strlen(text);
  if (count_of(text, "\"dropped\":0,\"unfinished\":0}}\n]\n") != 1)
    fail_msg("the trace ends with: %s", text + (length > 400 ? length - 400 : 0));
}

#endif
