/* RILL_FAULT and rill_fault_set: rules that make calls of backends fail, or operations of other libraries, which those
 * libraries name.
 *
 * Invariants
 * - While there are rules for calls, RILL__CALLS_FAULTED is set in rill__calls_watched and operations take the observed
 *   path; without such rules, fault injection requires neither.
 * - Under the lock of the rules only the lock of the watched calls is taken (core/diagnose/observe.c), and no lock is
 *   taken under that one.
 */
#ifndef RILL_CORE_DIAGNOSE_INJECT_H
#define RILL_CORE_DIAGNOSE_INJECT_H

#include "core/object/core.h"

enum { RILL__FAULT_RULES = 32, RILL__FAULT_LABEL = 64, RILL__FAULT_TEXT = 192 };

/* Words of libraries other than core, which query with rill_fault_is_due, and the kind of value that their rules have
 * after "=". */
enum rill__fault_value { RILL__FAULT_STATUS, RILL__FAULT_TIME, RILL__FAULT_NOTHING, RILL__FAULT_NUMBER };
#define RILL__FAULT_LIST(FAULT)          \
  FAULT("comm_late", RILL__FAULT_TIME)   \
  FAULT("comm_die", RILL__FAULT_NOTHING) \
  FAULT("comm_count", RILL__FAULT_NUMBER)

struct rill__fault_rule {
  const char *word;              /* a word of one of the two lists; NULL: any call */
  char label[RILL__FAULT_LABEL]; /* "": any label */
  char text[96];                 /* the rule as written, or its beginning */
  uint64_t first;                /* number of the call that fails; 0: each call fails with a probability */
  bool onwards;                  /* all later calls fail also */
  uint64_t chance;               /* probability, in units of 2^-32 */
  rill_status status;
  int64_t value; /* in ns, or a number */
  uint64_t seen; /* number of calls that the rule applied to */
};

struct rill__fault_rules {
  uint64_t seed;
  size_t count;
  struct rill__fault_rule rules[RILL__FAULT_RULES];
};

/* Parses a list of rules.  Returns false if it is invalid; `why` then says where, and what was expected. */
bool rill__fault_parse(const char *text, struct rill__fault_rules *out, char *why, size_t size);

/* Applies the rules of RILL_FAULT once; rules that the program sets later replace them. */
void rill__fault_start(void);
/* Replaces all rules and resets the counts. */
void rill__fault_replace(const struct rill__fault_rules *rules);
/* Removes all rules; the number of injected faults is kept. */
void rill__fault_remove(void);
uint64_t rill__fault_injected(void);

/* rill__note_injected stores the text of an injected failure in the calling thread's current call, for messages that
 * core writes instead of that text.  rill__injected returns the stored text followed by "; ", or "" if there is none
 * for this call. */
struct rill__injected {
  char text[RILL__FAULT_TEXT + 2];
};
void rill__note_injected(const char *text);
struct rill__injected rill__injected(void);

/* number of names by which a rule may select a call */
enum { RILL__FAULT_NAMES = 5 };

/* Counts a call of `word` and returns true if it has to fail.  Names may be NULL.  `text` receives the rule. */
bool rill__fault_due(const char *word, bool call, const char *const names[RILL__FAULT_NAMES], rill_status *status,
                     int64_t *value, char text[RILL__FAULT_TEXT]);

/* Returns true if another library has such a word. */
bool rill__fault_is_word(const char *word);

void rill__fault_lock(void); /* called around a fork */
void rill__fault_unlock(void);

#endif
