/* rill demo in a build without libpng. */
#include "tool.h"

int demo_command(int argc, char **argv) {
  (void)argc;
  (void)argv;
  (void)complain("demo needs libpng to read and write PNG files, but this rill was built without it");
  return EXIT_WORK;
}
