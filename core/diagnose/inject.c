/* Fault injection: rules that make calls fail. */
#include "core/diagnose/inject.h"

#include "core/diagnose/observe.h"
#include "core/diagnose/settings.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct fault_word {
  const char *word;
  enum rill__fault_value value;
} fault_words[] = {
#define WORD_OF_CALL(table, slot, word) { word, RILL__FAULT_STATUS },
  RILL__CALL_LIST(WORD_OF_CALL)
#undef WORD_OF_CALL
#define WORD_OF_OTHERS(word, value) { word, value },
      RILL__FAULT_LIST(WORD_OF_OTHERS)
#undef WORD_OF_OTHERS
};
enum { FAULT_WORDS = sizeof fault_words / sizeof *fault_words };

/* ---- parsing ---- */

struct rules_reader {
  const char *text, *at; /* the complete text, and the part still to be read */
  char *why;
  size_t size;
};

static __attribute__((format(printf, 3, 4))) bool refuse_rule(struct rules_reader *reader, const char *at,
                                                              const char *format, ...) {
  const int used = snprintf(reader->why, reader->size, "character %zu: ", (size_t)(at - reader->text) + 1);
  if (used < 0 || (size_t)used >= reader->size) return false;
  va_list list;
  va_start(list, format);
  (void)vsnprintf(reader->why + used, reader->size - (size_t)used, format, list);
  va_end(list);
  return false;
}

static bool is_span(const char *begin, const char *end, const char *word) {
  return (size_t)(end - begin) == strlen(word) && memcmp(begin, word, (size_t)(end - begin)) == 0;
}

static int printed(const char *begin, const char *end) { return end - begin < 60 ? (int)(end - begin) : 60; }

static bool read_natural(const char **at, uint64_t *out) {
  const char *const begin = *at;
  *out = 0;
  for (; isdigit((unsigned char)**at); (*at)++) {
    if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, (uint64_t)(**at - '0'), out))
      return false;
  }
  return *at != begin;
}

/* Reads a decimal fraction from 0 to 1, independent of the locale. */
static bool read_chance(const char **at, uint64_t *of_2_32) {
  uint64_t units = 0;
  double fraction = 0, place = 1;
  if (!read_natural(at, &units)) return false;
  if (**at == '.') {
    for ((*at)++; isdigit((unsigned char)**at); (*at)++) fraction += (place /= 10) * (**at - '0');
  }
  if (units > 1 || (units == 1 && fraction > 0)) return false;
  *of_2_32 = (uint64_t)(((double)units + fraction) * 4294967296.0);
  return true;
}

/* Finds a status by its name in lower case without RILL_ERROR_, such as "out_of_memory". */
static bool find_status(const char *begin, const char *end, rill_status *out) {
  static const struct {
    const char *name;
    rill_status status;
  } statuses[] = {
#define STATUS_NAME(name, number, text) { #name, number },
    RILL_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
  };
  char name[64] = "ERROR_";
  const size_t length = (size_t)(end - begin), prefix = strlen(name);
  if (length >= sizeof name - prefix) return false;
  for (size_t i = 0; i < length; i++) {
    if (isupper((unsigned char)begin[i])) return false;
    name[prefix + i] = (char)toupper((unsigned char)begin[i]);
  }
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    if (strcmp(name, statuses[i].name) != 0) continue;
    *out = statuses[i].status;
    return true;
  }
  return false;
}

static bool refuse_word(struct rules_reader *reader, const char *begin, const char *end) {
  char list[1000];
  size_t used = 0;
  const char *last = "";
  for (size_t i = 0; i < FAULT_WORDS; i++) {
    if (strcmp(fault_words[i].word, last) == 0) continue;
    last = fault_words[i].word;
    const int length = snprintf(list + used, sizeof list - used, ", %s", last);
    if (length > 0 && (size_t)length < sizeof list - used) used += (size_t)length;
  }
  return refuse_rule(reader, begin, "\"%.*s\" is not a call; the calls are any%s", printed(begin, end), begin, list);
}

/* Reads the value after "=" that rules of the word have. */
static bool read_rule_value(struct rules_reader *reader, enum rill__fault_value kind, const char *end,
                            struct rill__fault_rule *rule) {
  const bool given = *reader->at == '=';
  const char *const begin = reader->at + given;
  reader->at = begin;
  switch (kind) {
    case RILL__FAULT_STATUS:
      rule->status = RILL_ERROR_BACKEND;
      if (given && !find_status(begin, end, &rule->status))
        return refuse_rule(reader, begin, "\"%.*s\" is not an error status such as out_of_memory", printed(begin, end),
                           begin);
      break;
    case RILL__FAULT_TIME: {
      char text[32];
      uint64_t ns = 0;
      (void)snprintf(text, sizeof text, "%.*s", (int)(end - begin < 31 ? end - begin : 31), begin);
      if (!rill__settings_duration(text, &ns) || ns > INT64_MAX)
        return refuse_rule(reader, begin, "\"%.*s\" is not a time; write =250ms or =2s", printed(begin, end), begin);
      rule->value = (int64_t)ns;
      break;
    }
    case RILL__FAULT_NUMBER: {
      const bool negative = *begin == '-';
      const char *at = begin + (negative || *begin == '+');
      uint64_t number = 0;
      if (!given || !read_natural(&at, &number) || at != end || number > INT32_MAX)
        return refuse_rule(reader, begin, "\"%.*s\" is not a number; write =+3 or =-1", printed(begin, end), begin);
      rule->value = negative ? -(int64_t)number : (int64_t)number;
      break;
    }
    case RILL__FAULT_NOTHING:
      if (given) return refuse_rule(reader, begin - 1, "a rule of %s has no \"=\"", rule->word);
      reader->at = end;
      break;
  }
  if (kind != RILL__FAULT_NOTHING) reader->at = end;
  return true;
}

/* Reads "3", "3+" or "p=0.01", and then the value. */
static bool read_when(struct rules_reader *reader, enum rill__fault_value kind, const char *end,
                      struct rill__fault_rule *rule) {
  const char *const begin = reader->at;
  if (strncmp(begin, "p=", 2) == 0) {
    reader->at += 2;
    if (!read_chance(&reader->at, &rule->chance))
      return refuse_rule(reader, begin + 2, "\"%.*s\" is not a probability from 0 to 1", printed(begin + 2, end),
                         begin + 2);
  } else {
    if (!read_natural(&reader->at, &rule->first) || rule->first == 0)
      return refuse_rule(reader, begin, "\"%.*s\" is neither the number of a call, from 1 on, nor p=0.01",
                         printed(begin, end), begin);
    rule->onwards = *reader->at == '+';
    reader->at += rule->onwards;
  }
  if (reader->at != end && *reader->at != '=')
    return refuse_rule(reader, reader->at, "\"%.*s\" is not expected after the number or probability",
                       printed(reader->at, end), reader->at);
  return read_rule_value(reader, kind, end, rule);
}

static bool read_rule(struct rules_reader *reader, const char *end, struct rill__fault_rule *rule) {
  const char *const begin = reader->at;
  const char *colon = end, *word_end = begin;
  while (colon > begin && *colon != ':') colon--; /* the last colon, because names of devices contain one */
  if (colon == begin)
    return refuse_rule(reader, begin, "\"%.*s\" is not a rule; write alloc:3=out_of_memory, record:p=0.01 or seed=1",
                       printed(begin, end), begin);
  while (word_end < colon && *word_end != '@') word_end++;
  enum rill__fault_value kind = RILL__FAULT_STATUS;
  bool found = is_span(begin, word_end, "any");
  for (size_t i = 0; i < FAULT_WORDS && !found; i++) {
    if (!is_span(begin, word_end, fault_words[i].word)) continue;
    found = true;
    rule->word = fault_words[i].word;
    kind = fault_words[i].value;
  }
  if (!found) return refuse_word(reader, begin, word_end);
  if (word_end != colon) {
    const char *const label = word_end + 1;
    if (label == colon || colon - label >= RILL__FAULT_LABEL)
      return refuse_rule(reader, label, "a label has 1 to %d bytes, but this one has %zu", RILL__FAULT_LABEL - 1,
                         (size_t)(colon - label));
    (void)snprintf(rule->label, sizeof rule->label, "%.*s", (int)(colon - label), label);
  }
  (void)snprintf(rule->text, sizeof rule->text, "%.*s", (int)(end - begin), begin);
  reader->at = colon + 1;
  return read_when(reader, kind, end, rule);
}

bool rill__fault_parse(const char *text, struct rill__fault_rules *out, char *why, size_t size) {
  struct rules_reader reader = { text, text, why, size };
  *out = (struct rill__fault_rules){ .seed = 1 };
  why[0] = '\0';
  while (*reader.at != '\0') {
    const char *const end = reader.at + strcspn(reader.at, ",");
    if (strncmp(reader.at, "seed=", 5) == 0) {
      const char *const number = reader.at + 5;
      reader.at = number;
      if (!read_natural(&reader.at, &out->seed) || reader.at != end)
        return refuse_rule(&reader, number, "\"%.*s\" is not a seed; write seed=1", printed(number, end), number);
    } else if (reader.at != end) {
      if (out->count == RILL__FAULT_RULES)
        return refuse_rule(&reader, reader.at, "more than %d rules", RILL__FAULT_RULES);
      if (!read_rule(&reader, end, &out->rules[out->count])) return false;
      out->count++;
    }
    reader.at = end + (*end == ',');
  }
  return true;
}

/* ---- the rules of this process ---- */

static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two variables below */
static struct rill__fault_rules active_rules;
static uint64_t faults_injected;
static _Atomic bool has_rules; /* may be read without the lock */

void rill__fault_lock(void) { pthread_mutex_lock(&rules_lock); }
void rill__fault_unlock(void) { pthread_mutex_unlock(&rules_lock); }

static void use_rules(const struct rill__fault_rules *rules, uint64_t injected) {
  bool calls = false;
  for (size_t i = 0; i < rules->count; i++) calls = calls || rules->rules[i].status != RILL_OK;
  rill__fault_lock();
  active_rules = *rules;
  faults_injected = injected;
  atomic_store(&has_rules, rules->count > 0);
  rill__calls_watch(RILL__CALLS_FAULTED, calls);
  rill__fault_unlock();
}

static void use_environment(void) {
  const char *const text = rill__settings()->fault;
  struct rill__fault_rules rules;
  char why[8];
  if (text != NULL && rill__fault_parse(text, &rules, why, sizeof why)) use_rules(&rules, 0);
}

void rill__fault_start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, use_environment);
}

void rill__fault_replace(const struct rill__fault_rules *rules) {
  rill__fault_start();
  use_rules(rules, 0);
}

void rill__fault_remove(void) {
  const struct rill__fault_rules none = { .count = 0 };
  use_rules(&none, rill__fault_injected());
}

uint64_t rill__fault_injected(void) {
  rill__fault_start();
  rill__fault_lock();
  const uint64_t count = faults_injected;
  rill__fault_unlock();
  return count;
}

/* ---- calls ---- */

void rill__note_injected(const char *text) {
  struct rill__thread *const self = rill__self != NULL ? rill__self : rill__thread_attach();
  if (self == NULL) return;
  (void)snprintf(self->injected, sizeof self->injected, "%s", text);
  self->injected_at = self->handles;
}

struct rill__injected rill__injected(void) {
  const struct rill__thread *const self = rill__self;
  struct rill__injected injected = { "" };
  if (self != NULL && self->injected_at == self->handles && self->injected[0] != '\0')
    (void)snprintf(injected.text, sizeof injected.text, "%s; ", self->injected);
  return injected;
}

static bool has_name(const struct rill__fault_rule *rule, const char *const names[RILL__FAULT_NAMES]) {
  if (rule->label[0] == '\0') return true;
  for (size_t i = 0; i < RILL__FAULT_NAMES; i++) {
    if (names[i] != NULL && strcmp(names[i], rule->label) == 0) return true;
  }
  return false;
}

/* Returns the next 32-bit number of the generator (a Weyl sequence, mixed). */
static uint64_t next_chance(uint64_t *seed) {
  uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
  x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
  return x >> 32;
}

/* Counts the call and returns true if the rule makes it fail.  All rules draw from the same generator, each only for
 * the calls that it applies to. */
static bool rule_applies(struct rill__fault_rule *rule, uint64_t *seed) {
  rule->seen++;
  if (rule->first == 0) return next_chance(seed) < rule->chance;
  return rule->onwards ? rule->seen >= rule->first : rule->seen == rule->first;
}

bool rill__fault_due(const char *word, bool call, const char *const names[RILL__FAULT_NAMES], rill_status *status,
                     int64_t *value, char text[RILL__FAULT_TEXT]) {
  bool due = false;
  if (!atomic_load_explicit(&has_rules, memory_order_relaxed)) return false;
  rill__fault_lock();
  for (size_t i = 0; i < active_rules.count; i++) {
    struct rill__fault_rule *const rule = &active_rules.rules[i];
    if (rule->word == NULL ? !call : strcmp(rule->word, word) != 0) continue;
    if (!has_name(rule, names) || !rule_applies(rule, &active_rules.seed) || due) continue;
    due = true;
    faults_injected++;
    *status = rule->status;
    *value = rule->value;
    (void)snprintf(text, RILL__FAULT_TEXT, "injected by RILL_FAULT: rule \"%s\", call %llu of %s", rule->text,
                   (unsigned long long)rule->seen, rule->word != NULL ? rule->word : "any");
  }
  rill__fault_unlock();
  return due;
}

bool rill__fault_is_word(const char *word) {
  for (size_t i = 0; i < FAULT_WORDS; i++) {
    if (fault_words[i].value != RILL__FAULT_STATUS && strcmp(fault_words[i].word, word) == 0) return true;
  }
  return false;
}
