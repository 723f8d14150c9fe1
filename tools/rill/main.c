/* The command line tool: what is on this machine, and one job that uses it. */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: rill info [--topology]\n"
    "       rill demo [PICTURE.png] [-o OUT.png] [--device NAME] [--streams N] [--tile N] [--timeline FILE.svg]\n"
    "                 [--ranks] [--passes N]\n"
    "       rill --version | --help\n"
    "\n"
    "rill info lists the devices of this machine, and why other backends have none; with --topology how its GPUs are\n"
    "joined (NVLink, XGMI, PCIe, NUMA), and which reaches the memory of which.\n"
    "\n"
    "rill demo filters a picture tile by tile: upload, kernels and download run on several streams that events\n"
    "alone keep in order.  It compares the result with a plain C filter and tells where the time went.\n"
    "\n"
    "  PICTURE.png          the picture to filter (default: one that comes with rill)\n"
    "  -o, --output FILE    where the filtered picture goes (default: rill-demo.png)\n"
    "  --device NAME        cuda:0, hip:1, gpu, cpu ... (default: $RILL_DEVICE, else the first GPU, else the cpu)\n"
    "  --streams N          1: one for all; 2: copies, kernels; 3 and more: upload, download, N - 2 for kernels\n"
    "                       (default: 4)\n"
    "  --tile N             edge of a tile in pixels, 16 to 4096 (default: 256)\n"
    "  --timeline FILE.svg  where the drawing of what ran when goes (default: the output's name with .svg)\n"
    "  --ranks              one of the processes that mpirun started: each filters a band of the picture on a device\n"
    "                       of its own, and exchanges the rows at the edges with its neighbours meanwhile\n"
    "  --passes N           with --ranks: how often the picture is filtered, 1 to 64 (default: 1)\n";

bool complain(const char *format, ...) {
  va_list list;
  va_start(list, format);
  (void)fputs("rill: ", stderr);
  (void)vfprintf(stderr, format, list);
  (void)fputc('\n', stderr);
  va_end(list);
  return false;
}

bool complain_of_rill(void) { return complain("%s", rill_last_error_text()); }

struct device_name device_name(const rill_device_info *info) {
  struct device_name name = { "cpu" };
  if (info->backend != RILL_BACKEND_CPU) {
    (void)snprintf(name.text, sizeof name.text, "%s:%d", info->backend == RILL_BACKEND_CUDA ? "cuda" : "hip",
                   (int)info->ordinal);
  }
  return name;
}

static int print(const char *text) { return fputs(text, stdout) >= 0 && fflush(stdout) == 0 ? 0 : EXIT_WORK; }

static int print_version(void) {
  const unsigned v = rill_version();
  char text[32];
  (void)snprintf(text, sizeof text, "rill %u.%u.%u\n", v >> 16, v >> 8 & 0xff, v & 0xff);
  return print(text);
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  if (strcmp(command, "info") == 0) return info_command(argc - 1, argv + 1);
  if (strcmp(command, "demo") == 0) return demo_command(argc - 1, argv + 1);
  if (strcmp(command, "--version") == 0) return print_version();
  if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) return print(help);
  if (command[0] == '\0') {
    (void)complain("a command is missing; usage: rill info | demo | --version | --help");
  } else {
    (void)complain("unknown command \"%s\"; usage: rill info | demo | --version | --help", command);
  }
  return EXIT_USAGE;
}
