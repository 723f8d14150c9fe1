/* Tests that need their own process: a lost device stays lost, the environment is read once, exit ends everything.
 *
 * A program lists its modes and leaves the rest to run_modes.  Without an argument it runs itself once for each mode,
 * with a time limit; with a mode's name it runs that one:
 *
 *     int main(int argc, char **argv) {
 *       static const struct mode modes[] = { MODE(faults_at_a_launch), MODE_WITH(sees_no_device, "RILL_FAKE_DEVICES=0")
 * }; return RUN_MODES("faults", argc, argv, modes);
 *     }
 */
#ifndef RILL_TESTS_FAULT_CHILDREN_H
#define RILL_TESTS_FAULT_CHILDREN_H

#include "support/testing.h"

enum { CHILD_VARIABLES = 6, CHILD_OUTPUT = 16384, CHILD_SECONDS = 30 };

struct mode {
  const char *name;
  void (*run)(void);
  const char *variables[CHILD_VARIABLES]; /* "NAME=value" */
  int exit_code;                          /* what is right */
};
#define MODE(function) \
  { #function, function, { NULL }, 0 }
#define MODE_WITH(function, ...) \
  { #function, function, { __VA_ARGS__ }, 0 }
#define MODE_EXITS(function, code, ...) \
  { #function, function, { __VA_ARGS__ }, code }

int run_modes(const char *subject, int argc, char **argv, const struct mode *modes, size_t count);
#define RUN_MODES(subject, argc, argv, modes) \
  run_modes((subject), (argc), (argv), (modes), sizeof(modes) / sizeof *(modes))

/* Result of a run of this program with another argument. */
struct child {
  int exit_code; /* -1: none */
  int signal;    /* that ended it; 0: none */
  bool timed_out;
  char output[CHILD_OUTPUT]; /* stdout and stderr, the beginning */
};
void run_child(const char *mode, const char *const *variables, size_t variable_count, struct child *child);

/* In words; static. */
const char *child_end(const struct child *child);

#endif
