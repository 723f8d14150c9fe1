/* What the environment asks rill to check, record and report: RILL_CHECK, RILL_RECORD, RILL_DEADLINE,
 * RILL_REPORT_SIGNAL, RILL_FAULT, RILL_TIMELINE and RILL_CPU_SCHEDULE.  Read once, before the first device is looked
 * for; ignored in a set-user-id program.  What cannot be understood is named on standard error, once, and counts as not
 * set. */
#ifndef RILL_CORE_DIAGNOSE_SETTINGS_H
#define RILL_CORE_DIAGNOSE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The words of RILL_CHECK, in alphabetical order: a check that is added gets a line here.  A word may have a colon. */
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
  uint64_t deadline_ns; /* of RILL_DEADLINE; 0: none */
  int report_signal;    /* of RILL_REPORT_SIGNAL; 0: none */
  const char *fault;    /* the rules of RILL_FAULT (core/diagnose/inject.h); NULL: none */
  const char *timeline; /* the file of RILL_TIMELINE; NULL: none */
  bool timeline_nodes;  /* RILL_TIMELINE_NODES is 1 */
  bool schedules;       /* RILL_CPU_SCHEDULE is set: the cpu device orders its work by `schedule_seed` */
  uint64_t schedule_seed;
};

/* The settings of this process; reads them if nobody has.  Any thread; not on a hot path. */
const struct rill__settings *rill__settings(void);

static inline bool rill__checks(enum rill__check check) { return (rill__settings()->checks & (uint32_t)check) != 0; }

/* The bit of a word of RILL_CHECK with `length` characters; 0 if there is none. */
uint32_t rill__check_of(const char *word, size_t length);

/* Reads a whole number of seconds, or of the unit after it: 30, 30s, 500ms, 2min.  False for any other text. */
bool rill__settings_duration(const char *text, uint64_t *ns);

/* Reads settings from what `get` returns for the names of the variables.  `complaint`: a line for each that cannot be
 * understood, "" if there is none. */
void rill__settings_parse(const char *(*get)(const char *name), struct rill__settings *out, char *complaint,
                          size_t size);

#endif
