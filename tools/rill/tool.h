/* What the parts of the command line tool share. */
#ifndef RILL_TOOL_H
#define RILL_TOOL_H

#include <rill/rill.h>

/* Exit codes: the work failed, or the command line made no sense. */
enum { EXIT_WORK = 1, EXIT_USAGE = 2 };

/* Prints one line, "rill: ...", on stderr.  Returns false, so that a function can end with it. */
bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with the text of rill's last error. */
bool complain_of_rill(void);

/* What the names of a backend's devices begin with; NULL if there is no such RILL_BACKEND_*. */
const char *backend_name(uint32_t backend);

/* "cuda:0": what rill_device_open takes for the device. */
struct device_name {
  char text[24];
};
struct device_name device_name(const rill_device_info *info);

/* "0.1.0": what rill_version returns. */
struct version_text {
  char text[24];
};
struct version_text version_text(uint32_t version);

/* What rill info --topology prints; false if it failed and complained. */
bool print_topology(void);

/* The commands.  argv[0] is the command's own name; the result is the exit code. */
int info_command(int argc, char **argv);
int demo_command(int argc, char **argv);
int doctor_command(int argc, char **argv);
int bench_command(int argc, char **argv);
int trace_command(int argc, char **argv);

#endif
