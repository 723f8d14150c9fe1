/* The checks, records and reports that the environment requests: RILL_CHECK, RILL_RECORD, RILL_DEADLINE,
 * RILL_REPORT_SIGNAL, RILL_FAULT, RILL_TIMELINE and RILL_CPU_SCHEDULE.  The variables are read once, before the first
 * search for devices, and are ignored in a set-user-id program.  A value that cannot be parsed is reported on standard
 * error once, and is treated as not set. */
#ifndef RILL_CORE_DIAGNOSE_SETTINGS_H
#define RILL_CORE_DIAGNOSE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The words of RILL_CHECK in alphabetical order; a new check needs a line here.  A word may contain a colon. */
#define RILL__CHECK_LIST(CHECK) \
  CHECK(COMM, "comm")           \
  CHECK(CRASH, "crash")         \
  CHECK(FAULTS, "faults")       \
  CHECK(MEMORY, "memory")       \
  CHECK(ORDER, "order")         \
  CHECK(ORDER_ALL, "order:all") \
  CHECK(ORDER_PRECISE, "order:precise")

enum rill__check {
#define RILL__CHECK_NUMBER(name, word) RILL__CHECK_##name##_INDEX,
  RILL__CHECK_LIST(RILL__CHECK_NUMBER)
#undef RILL__CHECK_NUMBER
#define RILL__CHECK_BIT(name, word) RILL__CHECK_##name = 1 << RILL__CHECK_##name##_INDEX,
      RILL__CHECK_LIST(RILL__CHECK_BIT)
#undef RILL__CHECK_BIT
};

struct rill__settings {
  uint32_t checks;      /* RILL__CHECK_* */
  bool records;         /* RILL_RECORD is not 0 */
  uint64_t deadline_ns; /* from RILL_DEADLINE; 0: none */
  int report_signal;    /* from RILL_REPORT_SIGNAL; 0: none */
  const char *fault;    /* rules of RILL_FAULT (core/diagnose/inject.h); NULL: none */
  const char *timeline; /* file of RILL_TIMELINE; NULL: none */
  bool timeline_nodes;  /* RILL_TIMELINE_NODES is 1 */
  bool schedules;       /* RILL_CPU_SCHEDULE is set: the CPU device orders its work by `schedule_seed` */
  uint64_t schedule_seed;
};

/* Returns the settings of this process, after reading them if necessary.  May be called by any thread, but is not
 * fast. */
const struct rill__settings *rill__settings(void);

static inline bool rill__checks(enum rill__check check) { return (rill__settings()->checks & (uint32_t)check) != 0; }

/* Returns the bit of a word of RILL_CHECK with `length` characters, or 0 if there is no such word. */
uint32_t rill__check_of(const char *word, size_t length);

/* Parses a whole number of seconds, or of the unit that follows it: 30, 30s, 500ms, 2min.  Returns false for any other
 * text. */
bool rill__settings_duration(const char *text, uint64_t *ns);

/* Parses the values that `get` returns for the names of the variables.  `complaint`: receives a line for each invalid
 * value, or "". */
void rill__settings_parse(const char *(*get)(const char *name), struct rill__settings *out, char *complaint,
                          size_t size);

#endif
