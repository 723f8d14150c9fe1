/* rill trace: executes the script next to the program, which runs the traced program and reads its timeline. */
#include "tool.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int trace_command(int argc, char **argv) {
  static const char script[] = "rill-trace";
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof script);
  (void)argc;
  if (length <= 0) {
    (void)complain("the location of this program is unknown: %s", strerror(errno));
    return EXIT_WORK;
  }
  path[length] = '\0';
  memcpy(strrchr(path, '/') + 1, script, sizeof script);
  argv[0] = path;
  (void)execv(path, argv);
  (void)complain("%s: %s", path, strerror(errno));
  return EXIT_WORK;
}
