/* Declarations shared by the parts of the command line tool. */
#ifndef RILL_TOOL_H
#define RILL_TOOL_H

#include <rill/rill.h>

/* Exit codes: the work failed, or the command line is invalid. */
enum { EXIT_WORK = 1, EXIT_USAGE = 2 };

/* Prints one line, "rill: ...", on stderr.  Returns false, so that a function can end with it. */
bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the text of rill's last error in the same way. */
bool complain_of_rill(void);

/* Returns the prefix of a backend's device names, or NULL if there is no such RILL_BACKEND_*. */
const char *backend_name(uint32_t backend);

/* The name that rill_device_open accepts for the device, such as "cuda:0". */
struct device_name {
  char text[24];
};
struct device_name device_name(const rill_device_info *info);

/* The result of rill_version as text, such as "0.1.0". */
struct version_text {
  char text[24];
};
struct version_text version_text(uint32_t version);

/* Prints the output of rill info --topology. Returns false after printing an error. */
bool print_topology(void);

/* The commands.  argv[0] is the command's own name; the result is the exit code. */
int info_command(int argc, char **argv);
int demo_command(int argc, char **argv);
int doctor_command(int argc, char **argv);
int bench_command(int argc, char **argv);
int trace_command(int argc, char **argv);

#endif
