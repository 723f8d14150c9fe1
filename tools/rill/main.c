/* The command line tool: inspects, checks, measures and traces the devices of this machine. */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char help_of_info[] =
    "usage: rill info [DEVICE] [--json] | --topology\n"
    "\n"
    "Lists the devices of this machine, and explains why other backends have none.\n"
    "\n"
    "  DEVICE      show details of this device (cuda:0, hip:1, gpu, cpu ...): limits, PCI and NUMA, the vendor's\n"
    "              library, and each feature, with the reason if the device lacks it\n"
    "  --json      print the same as JSON, for one device or all\n"
    "  --topology  show how the GPUs are connected (NVLink, XGMI, PCIe, NUMA), and which can access which memory\n";

static const char help_of_demo[] =
    "usage: rill demo [PICTURE.png] [-o OUT.png] [--device NAME] [--streams N] [--tile N] [--timeline FILE.svg]\n"
    "                 [--graph] [--ranks] [--passes N]\n"
    "\n"
    "Filters a picture tile by tile: upload, kernels and download run on several streams, ordered only by\n"
    "events.  Compares the result with a plain C filter and prints where the time went.\n"
    "\n"
    "  PICTURE.png          the picture to filter (default: a picture installed with rill)\n"
    "  -o, --output FILE    write the filtered picture to FILE (default: rill-demo.png)\n"
    "  --device NAME        cuda:0, hip:1, gpu, cpu ... (default: $RILL_DEVICE, else the first GPU, else the cpu)\n"
    "  --streams N          1: one for everything; 2: copies, kernels; 3 or more: upload, download, N - 2 for kernels\n"
    "                       (default: 4)\n"
    "  --tile N             edge of a tile in pixels, 16 to 4096 (default: 256)\n"
    "  --timeline FILE.svg  write a drawing of the timeline to FILE.svg (default: the output's name with .svg)\n"
    "  --graph              then capture the same job as a graph, replay it, and print the time saved\n"
    "  --ranks              run as one of the processes that mpirun started: each filters a band of the picture on\n"
    "                       its own device, and meanwhile exchanges the rows at the edges with its neighbours\n"
    "  --passes N           with --ranks: filter the picture N times, 1 to 64 (default: 1)\n";

static const char help_of_doctor[] =
    "usage: rill doctor [AREA ...] [--json]\n"
    "\n"
    "Finds the reasons why devices do not work, and prints the command that fixes each.  The exit code is 1 if a\n"
    "device of this machine does not work; warnings do not change it.\n"
    "\n"
    "  AREA    cpu, cuda, hip, mpi or system (default: all)\n"
    "  --json  print the findings as JSON\n";

static const char help_of_bench[] =
    "usage: rill bench [SECTION ...] [--device NAME] [--quick] [--json]\n"
    "\n"
    "Measures a device and prints a table for each section.  Each figure is the best of several batches.\n"
    "\n"
    "  layer          the cost of rill calls, compared with the driver's own\n"
    "  copies         between pinned, pageable and device memory, 4 KiB to 256 MiB\n"
    "  stream         McCalpin's STREAM: copy, scale, add, triad\n"
    "  launches       launches per second, from 1 to 16 threads with a stream each\n"
    "  peers          copies between the device and the others of its backend\n"
    "  graphs         a chain of kernels on a stream and as a graph\n"
    "  --device NAME  cuda:0, hip:1, gpu, cpu ... (default: $RILL_DEVICE, else the first GPU, else the cpu)\n"
    "  --quick        run for about two seconds in total, with less memory, as a quick check\n"
    "  --json         print the figures as JSON\n";

static const char help_of_trace[] =
    "usage: rill trace [-o FILE.json] [--svg FILE.svg] [--summary] [--nodes] [--] PROGRAM [ARGUMENT...]\n"
    "       rill trace [-o FILE.json] [--svg FILE.svg] [--summary]\n"
    "\n"
    "Runs a program that uses rill, and writes a timeline of it for https://ui.perfetto.dev or chrome://tracing.  "
    "Without a\n"
    "program, reads an existing timeline.\n"
    "\n"
    "  -o, --output FILE.json  the timeline (default: rill-trace.json)\n"
    "  --svg FILE.svg          write a drawing of the timeline\n"
    "  --summary               print the time by kernel, copy and call, and why work did not overlap\n"
    "  --nodes                 time each graph node; the nodes then run one after another\n";

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

/* Returns the index of the command, or COMMANDS if there is none. */
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

/* Prints the help of one command, or of all. */
static int print_help(int argc, char **argv) {
  if (argc > 1) return misuse("help takes only one command; unexpected argument", argv[1]);
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
