/* RILL_FAULT and rill_fault_set: rules that make calls of backends, or what other libraries name, fail.
 *
 * Invariants
 * - While there are rules for calls, RILL__CALLS_FAULTED of rill__calls_watched is set, and operations take the way
 * that is observed; else neither.
 * - Under the lock of the rules only that of the watched calls is taken (core/diagnose/observe.c), and under that none.
 */
#ifndef RILL_CORE_DIAGNOSE_INJECT_H
#define RILL_CORE_DIAGNOSE_INJECT_H

#include "core/object/core.h"

enum { RILL__FAULT_RULES = 32, RILL__FAULT_LABEL = 64, RILL__FAULT_TEXT = 192 };

/* Words of other libraries than core, which ask with rill_fault_is_due, and what a rule of one has after "=". */
enum rill__fault_value { RILL__FAULT_STATUS, RILL__FAULT_TIME, RILL__FAULT_NOTHING, RILL__FAULT_NUMBER };
#define RILL__FAULT_LIST(FAULT)          \
  FAULT("comm_late", RILL__FAULT_TIME)   \
  FAULT("comm_die", RILL__FAULT_NOTHING) \
  FAULT("comm_count", RILL__FAULT_NUMBER)

struct rill__fault_rule {
  const char *word;              /* of one of the two lists; NULL: any call */
  char label[RILL__FAULT_LABEL]; /* "": any */
  char text[96];                 /* the rule as it was written, or its beginning */
  uint64_t first;                /* the call that fails; 0: each by chance */
  bool onwards;                  /* and all after that */
  uint64_t chance;               /* of 2^32 */
  rill_status status;
  int64_t value; /* ns, or a number */
  uint64_t seen; /* calls that the rule was for */
};

struct rill__fault_rules {
  uint64_t seed;
  size_t count;
  struct rill__fault_rule rules[RILL__FAULT_RULES];
};

/* Reads a list of rules.  False if it cannot be understood: `why` says where, and what was expected. */
bool rill__fault_parse(const char *text, struct rill__fault_rules *out, char *why, size_t size);

/* Applies the rules of RILL_FAULT, once; what the program sets later replaces them. */
void rill__fault_start(void);
/* The rules are these from here on, and nothing has been counted. */
void rill__fault_replace(const struct rill__fault_rules *rules);
/* There are none; what has been injected still counts. */
void rill__fault_remove(void);
uint64_t rill__fault_injected(void);

/* Notes the text of a failure that the calling thread's call has just met, for texts that core writes instead of it;
 * and that text with "; " after it, "" if there was none in this call. */
struct rill__injected {
  char text[RILL__FAULT_TEXT + 2];
};
void rill__note_injected(const char *text);
struct rill__injected rill__injected(void);

/* The names by which a rule may have asked for a call. */
enum { RILL__FAULT_NAMES = 5 };

/* Whether the next call of `word` is to fail; counts it.  Names may be NULL.  `text` says which rule it was. */
bool rill__fault_due(const char *word, bool call, const char *const names[RILL__FAULT_NAMES], rill_status *status,
                     int64_t *value, char text[RILL__FAULT_TEXT]);

/* Whether there is such a word of another library. */
bool rill__fault_is_word(const char *word);

void rill__fault_lock(void); /* for fork */
void rill__fault_unlock(void);

#endif
