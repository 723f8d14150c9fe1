/* The command line tool: what is on this machine, and one job that uses it. */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char help_of_info[] =
    "usage: rill info [DEVICE] [--json] | --topology\n"
    "\n"
    "Lists the devices of this machine, and why other backends have none.\n"
    "\n"
    "  DEVICE      all about this one (cuda:0, hip:1, gpu, cpu ...): limits, PCI and NUMA, the vendor's library, and\n"
    "              each feature with the reason why the device lacks it\n"
    "  --json      the same for one device or for all, for scripts\n"
    "  --topology  how the GPUs are joined (NVLink, XGMI, PCIe, NUMA), and which reaches the memory of which\n";

static const char help_of_demo[] =
    "usage: rill demo [PICTURE.png] [-o OUT.png] [--device NAME] [--streams N] [--tile N] [--timeline FILE.svg]\n"
    "                 [--graph] [--ranks] [--passes N]\n"
    "\n"
    "Filters a picture tile by tile: upload, kernels and download run on several streams that events alone keep in\n"
    "order.  Compares the result with a plain C filter and tells where the time went.\n"
    "\n"
    "  PICTURE.png          the picture to filter (default: one that comes with rill)\n"
    "  -o, --output FILE    where the filtered picture goes (default: rill-demo.png)\n"
    "  --device NAME        cuda:0, hip:1, gpu, cpu ... (default: $RILL_DEVICE, else the first GPU, else the cpu)\n"
    "  --streams N          1: one for all; 2: copies, kernels; 3 and more: upload, download, N - 2 for kernels\n"
    "                       (default: 4)\n"
    "  --tile N             edge of a tile in pixels, 16 to 4096 (default: 256)\n"
    "  --timeline FILE.svg  where the drawing of what ran when goes (default: the output's name with .svg)\n"
    "  --graph              then captures the same job as a graph, replays it, and tells what that saves\n"
    "  --ranks              one of the processes that mpirun started: each filters a band of the picture on a device\n"
    "                       of its own, and exchanges the rows at the edges with its neighbours meanwhile\n"
    "  --passes N           with --ranks: how often the picture is filtered, 1 to 64 (default: 1)\n";

static const char help_of_doctor[] =
    "usage: rill doctor [AREA ...] [--json]\n"
    "\n"
    "Looks for what stops devices from working, and prints the command that mends it.  The exit code is 1 if a device\n"
    "that the machine has does not work; warnings leave it at 0.\n"
    "\n"
    "  AREA    cpu, cuda, hip, mpi or system (default: all)\n"
    "  --json  the findings for scripts\n";

static const char help_of_bench[] =
    "usage: rill bench [SECTION ...] [--device NAME] [--quick] [--json]\n"
    "\n"
    "Measures a device, a table for each section.  Each figure is the best of several batches.\n"
    "\n"
    "  layer          what calls of rill cost beside the driver's own\n"
    "  copies         between pinned, pageable and device memory, 4 KiB to 256 MiB\n"
    "  stream         McCalpin's STREAM: copy, scale, add, triad\n"
    "  launches       launches a second, from 1 to 16 threads with a stream each\n"
    "  peers          copies between the device and the others of its backend\n"
    "  graphs         a chain of kernels on a stream and as a graph\n"
    "  --device NAME  cuda:0, hip:1, gpu, cpu ... (default: $RILL_DEVICE, else the first GPU, else the cpu)\n"
    "  --quick        about two seconds in all, with less memory: to see that it works\n"
    "  --json         the figures for scripts\n";

static const char help_of_trace[] =
    "usage: rill trace [-o FILE.json] [--svg FILE.svg] [--summary] [--nodes] [--] PROGRAM [ARGUMENT...]\n"
    "       rill trace [-o FILE.json] [--svg FILE.svg] [--summary]\n"
    "\n"
    "Runs a program that uses rill, and writes a timeline of it for https://ui.perfetto.dev or chrome://tracing.  "
    "Without a\n"
    "program, reads a timeline that is there.\n"
    "\n"
    "  -o, --output FILE.json  the timeline (default: rill-trace.json)\n"
    "  --svg FILE.svg          a drawing of it\n"
    "  --summary               prints where the time went, by kernel, copy and call, and why things did not overlap\n"
    "  --nodes                 times each node of graphs, whose nodes then run one after another\n";

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

const char *backend_name(uint32_t backend) {
#define NAME(constant, number, name) \
  if (backend == (number)) return name;
  RILL_BACKEND_LIST(NAME)
#undef NAME
  return NULL;
}

struct device_name device_name(const rill_device_info *info) {
  struct device_name name = { "cpu" };
  if (info->backend != RILL_BACKEND_CPU) {
    (void)snprintf(name.text, sizeof name.text, "%s:%d", backend_name(info->backend), (int)info->ordinal);
  }
  return name;
}

static int print(const char *text) { return fputs(text, stdout) >= 0 && fflush(stdout) == 0 ? 0 : EXIT_WORK; }

struct version_text version_text(uint32_t version) {
  struct version_text text;
  (void)snprintf(text.text, sizeof text.text, "%u.%u.%u", version >> 16, version >> 8 & 0xff, version & 0xff);
  return text;
}

static int print_version(void) {
  char text[32];
  (void)snprintf(text, sizeof text, "rill %s\n", version_text(rill_version()).text);
  return print(text);
}

static const struct {
  const char *name, *help;
  int (*run)(int argc, char **argv);
} commands[] = {
  { "info", help_of_info, info_command },    { "demo", help_of_demo, demo_command },
  { "trace", help_of_trace, trace_command }, { "doctor", help_of_doctor, doctor_command },
  { "bench", help_of_bench, bench_command },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const char *usage(void) {
  static char text[256];
  size_t used = (size_t)snprintf(text, sizeof text, "usage: rill");
  for (int i = 0; i < COMMANDS; i++) {
    used += (size_t)snprintf(text + used, sizeof text - used, " %s |", commands[i].name);
  }
  (void)snprintf(text + used, sizeof text - used, " help [COMMAND] | --version");
  return text;
}

/* The command's number, or COMMANDS. */
static int find_command(const char *name) {
  int i = 0;
  while (i < COMMANDS && strcmp(commands[i].name, name) != 0) i++;
  return i;
}

static bool asks_for_help(const char *argument) {
  return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int misuse(const char *what, const char *argument) {
  (void)complain("%s \"%s\"; %s", what, argument, usage());
  return EXIT_USAGE;
}

/* Of one command, or of all. */
static int print_help(int argc, char **argv) {
  if (argc > 1) return misuse("help takes one command, not also", argv[1]);
  if (argc == 1) {
    const int i = find_command(argv[0]);
    return i < COMMANDS ? print(commands[i].help) : misuse("unknown command", argv[0]);
  }
  int failed =
      print(usage()) |
      print("\n\nLists, checks and measures the devices that rill can use, and traces programs that use it.\n");
  for (int i = 0; i < COMMANDS; i++) failed |= print("\n") | print(commands[i].help);
  return failed;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    (void)complain("a command is missing; %s", usage());
    return EXIT_USAGE;
  }
  const char *command = argv[1];
  if (strcmp(command, "help") == 0 || asks_for_help(command)) return print_help(argc - 2, argv + 2);
  if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0) return print_version();
  const int i = find_command(command);
  if (i == COMMANDS) return misuse("unknown command", command);
  for (int j = 2; j < argc && strcmp(argv[j], "--") != 0; j++) {
    if (asks_for_help(argv[j])) return print(commands[i].help);
  }
  return commands[i].run(argc - 1, argv + 1);
}
