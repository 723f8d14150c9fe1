/* Environment variables that enable checks, records and reports. */
#include "core/diagnose/settings.h"

#include "core/diagnose/inject.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORD(name, word) word,
static const char *const check_words[] = { RILL__CHECK_LIST(WORD) };
#undef WORD
enum { CHECK_WORDS = sizeof check_words / sizeof *check_words };

uint32_t rill__check_of(const char *word, size_t length) {
  for (size_t i = 0; i < CHECK_WORDS; i++) {
    if (strlen(check_words[i]) == length && memcmp(check_words[i], word, length) == 0) return UINT32_C(1) << i;
  }
  return 0;
}

/* ---- parsing ---- */

/* One line for each setting that could not be parsed. */
struct complaint {
  char *text;
  size_t size, used;
};

static __attribute__((format(printf, 2, 3))) void complain(struct complaint *complaint, const char *format, ...) {
  va_list list;
  va_start(list, format);
  const size_t left = complaint->size - complaint->used;
  const int length = vsnprintf(complaint->text + complaint->used, left, format, list);
  va_end(list);
  if (length > 0) complaint->used += (size_t)length < left ? (size_t)length : left - 1;
}

static void read_checks(const char *list, uint32_t *checks, struct complaint *complaint) {
  while (list != NULL && *list != '\0') {
    const size_t length = strcspn(list, ",");
    const uint32_t check = rill__check_of(list, length);
    *checks |= check;
    if (check == 0 && length > 0) {
      complain(complaint, "rill: RILL_CHECK: \"%.*s\" is not a check; the checks are ",
               (int)(length < 60 ? length : 60), list);
      for (size_t i = 0; i < CHECK_WORDS; i++) {
        complain(complaint, "%s%s", i == 0 ? "" : i + 1 == CHECK_WORDS ? " and " : ", ", check_words[i]);
      }
      complain(complaint, "\n");
    }
    list += length + (list[length] == ',');
  }
}

/* Parses a whole number of seconds, or of the unit that follows it. */
bool rill__settings_duration(const char *text, uint64_t *ns) {
  static const struct {
    const char *unit;
    uint64_t ns;
  } units[] = { { "", 1000000000 }, { "s", 1000000000 }, { "ms", 1000000 }, { "min", UINT64_C(60000000000) } };
  uint64_t number = 0, product = 0;
  const char *unit = text;
  for (; *unit >= '0' && *unit <= '9'; unit++) {
    if (__builtin_mul_overflow(number, 10, &number) ||
        __builtin_add_overflow(number, (uint64_t)(*unit - '0'), &number)) {
      return false;
    }
  }
  for (size_t i = 0; i < sizeof units / sizeof *units && unit != text; i++) {
    if (strcmp(unit, units[i].unit) != 0) continue;
    if (__builtin_mul_overflow(number, units[i].ns, &product)) return false;
    *ns = product;
    return true;
  }
  return false;
}

/* Parses the name of a signal, with or without SIG; returns 0 if it is not one of these. */
static int parse_signal(const char *text) {
  static const struct {
    const char *name;
    int number;
  } signals_known[] = { { "HUP", SIGHUP }, { "QUIT", SIGQUIT }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 } };
  if (strncmp(text, "SIG", 3) == 0) text += 3;
  for (size_t i = 0; i < sizeof signals_known / sizeof *signals_known; i++) {
    if (strcmp(text, signals_known[i].name) == 0) return signals_known[i].number;
  }
  return 0;
}

/* Parses a number of digits only; returns false if it is not a 64-bit number. */
static bool parse_number(const char *text, uint64_t *out) {
  uint64_t number = 0;
  if (*text == '\0') return false;
  for (; *text >= '0' && *text <= '9'; text++) {
    if (__builtin_mul_overflow(number, 10, &number) ||
        __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number)) {
      return false;
    }
  }
  if (*text != '\0') return false;
  *out = number;
  return true;
}

/* Parses "seed:N", or "seed", for which the clock provides an N that is short enough to type. */
static bool parse_schedule(const char *text, uint64_t *seed) {
  enum { CHOSEN = 1000000 };
  if (strncmp(text, "seed:", 5) == 0) return parse_number(text + 5, seed);
  if (strcmp(text, "seed") != 0) return false;
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  *seed = ((uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000) % CHOSEN;
  return true;
}

static const char *keep_text(const char *text) { return text != NULL && text[0] != '\0' ? strdup(text) : NULL; }

/* Parses a switch, which is `otherwise` if it is not set. */
static bool parse_switch(const char *name, const char *value, bool otherwise, struct complaint *complaint) {
  if (value == NULL || value[0] == '\0') return otherwise;
  if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
    complain(complaint, "rill: %s: \"%.60s\" is neither 0 nor 1\n", name, value);
    return otherwise;
  }
  return value[0] == '1';
}

void rill__settings_parse(const char *(*get)(const char *name), struct rill__settings *out, char *text, size_t size) {
  struct complaint complaint = { text, size, 0 };
  text[0] = '\0';
  *out = (struct rill__settings){ .checks = 0 };
  read_checks(get("RILL_CHECK"), &out->checks, &complaint);
  out->records = parse_switch("RILL_RECORD", get("RILL_RECORD"), true, &complaint);
  const char *const deadline = get("RILL_DEADLINE");
  if (deadline != NULL && deadline[0] != '\0' && !rill__settings_duration(deadline, &out->deadline_ns))
    complain(&complaint, "rill: RILL_DEADLINE: \"%.60s\" is not a time; write 30s, 500ms or 2min\n", deadline);
  const char *const signal = get("RILL_REPORT_SIGNAL");
  out->report_signal = signal != NULL ? parse_signal(signal) : 0;
  if (signal != NULL && signal[0] != '\0' && out->report_signal == 0)
    complain(&complaint, "rill: RILL_REPORT_SIGNAL: \"%.60s\" is not HUP, QUIT, USR1 or USR2\n", signal);
  const char *const faults = get("RILL_FAULT");
  if (faults != NULL && faults[0] != '\0') {
    struct rill__fault_rules rules;
    char why[1200];
    if (rill__fault_parse(faults, &rules, why, sizeof why)) {
      out->fault = keep_text(faults);
    } else {
      complain(&complaint, "rill: RILL_FAULT: %s\n", why);
    }
  }
  out->timeline = keep_text(get("RILL_TIMELINE"));
  out->timeline_nodes = parse_switch("RILL_TIMELINE_NODES", get("RILL_TIMELINE_NODES"), false, &complaint);
  const char *const schedule = get("RILL_CPU_SCHEDULE");
  if (schedule != NULL && schedule[0] != '\0') {
    out->schedules = parse_schedule(schedule, &out->schedule_seed);
    if (!out->schedules)
      complain(&complaint,
               "rill: RILL_CPU_SCHEDULE: \"%.60s\" is not a schedule; write seed:N with a number, or seed\n", schedule);
  }
}

/* ---- the settings of this process ---- */

static struct rill__settings settings;

static const char *trusted(const char *name) { return secure_getenv(name); }

static void read_settings(void) {
  RILL_WITHOUT_CANCEL();
  char complaint[2048];
  rill__settings_parse(trusted, &settings, complaint, sizeof complaint);
  if (!settings.records) rill__recorders_off();
  /* standard error is closed */
  if (complaint[0] != '\0' && write(STDERR_FILENO, complaint, strlen(complaint)) < 0) return;
}

const struct rill__settings *rill__settings(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, read_settings);
  return &settings;
}
