/* rill demo in a build without libpng. */
#include "tool.h"

int demo_command(int argc, char **argv) {
  (void)argc;
  (void)argv;
  (void)complain("demo reads and writes PNG files, and this rill was built without libpng");
  return EXIT_WORK;
}
