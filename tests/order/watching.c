#include "order/watching.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int before, file;
static char text[65536];

void watch_begin(void) {
  (void)fflush(stderr);
  before = dup(STDERR_FILENO);
  file = memfd_create("stderr", 0);
  assert_true(before >= 0 && file >= 0);
  assert_true(dup2(file, STDERR_FILENO) == STDERR_FILENO);
}

const char *watch_end(void) {
  (void)fflush(stderr);
  assert_true(dup2(before, STDERR_FILENO) == STDERR_FILENO);
  const ssize_t size = pread(file, text, sizeof text - 1, 0);
  text[size > 0 ? size : 0] = '\0';
  (void)close(before);
  (void)close(file);
  return text;
}
