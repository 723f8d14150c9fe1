/* core/diagnose/settings.h: the values of environment variables. */
#include "core/diagnose/settings.h"

#include "support/testing.h"

#include <signal.h>

/* The environment of a test: alternating names and values. */
static const char *variables[11];

static const char *get(const char *name) {
  for (size_t i = 0; variables[i] != NULL; i += 2) {
    if (strcmp(variables[i], name) == 0) return variables[i + 1];
  }
  return NULL;
}

static char complaint[1024];

static struct rill__settings parse_all(void) {
  struct rill__settings settings;
  rill__settings_parse(get, &settings, complaint, sizeof complaint);
  return settings;
}

static struct rill__settings parse(const char *name, const char *value) {
  memset(variables, 0, sizeof variables);
  variables[0] = name;
  variables[1] = value;
  return parse_all();
}

static void has_defaults(void) {
  memset(variables, 0, sizeof variables);
  const struct rill__settings settings = parse_all();
  assert_int_equal(settings.checks, 0);
  assert_true(settings.records);
  assert_int_equal(settings.deadline_ns, 0);
  assert_null(settings.timeline);
  assert_false(settings.timeline_nodes);
  assert_string_equal(complaint, "");
}

static void reads_lists_of_checks(void) {
  assert_int_equal(parse("RILL_CHECK", "comm").checks, RILL__CHECK_COMM);
  assert_int_equal(parse("RILL_CHECK", "memory,comm").checks, RILL__CHECK_COMM | RILL__CHECK_MEMORY);
  assert_int_equal(parse("RILL_CHECK", ",,comm,,").checks, RILL__CHECK_COMM);
  assert_int_equal(parse("RILL_CHECK", "").checks, 0);
  assert_string_equal(complaint, "");
}

static void names_unknown_checks(void) {
  assert_int_equal(parse("RILL_CHECK", "comms,memory,com").checks, RILL__CHECK_MEMORY);
  assert_non_null(strstr(complaint, "RILL_CHECK: \"comms\" is not a check; the checks are comm"));
  assert_non_null(strstr(complaint, "RILL_CHECK: \"com\" is not a check"));
  assert_non_null(strstr(complaint, " and order:precise\n"));
  assert_int_equal(parse("RILL_CHECK", "Comm").checks, 0);
  assert_non_null(strstr(complaint, "\"Comm\""));
  assert_int_equal(parse("RILL_CHECK", " comm").checks, 0);
  assert_non_null(strstr(complaint, "\" comm\""));
}

/* Even with many errors, the text stays within its buffer. */
static void complaints_are_bounded(void) {
  char list[8192] = "";
  for (size_t i = 0; i + 4 < sizeof list; i += 4) memcpy(list + i, "bad,", 5);
  (void)parse("RILL_CHECK", list);
  assert_int_equal(strlen(complaint), sizeof complaint - 1);
  char longest[4096];
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  (void)parse("RILL_CHECK", longest);
  assert_true(strlen(complaint) < 200);
}

static void reads_durations(void) {
  assert_int_equal(parse("RILL_DEADLINE", "30s").deadline_ns, UINT64_C(30000000000));
  assert_int_equal(parse("RILL_DEADLINE", "30").deadline_ns, UINT64_C(30000000000));
  assert_int_equal(parse("RILL_DEADLINE", "250ms").deadline_ns, 250000000);
  assert_int_equal(parse("RILL_DEADLINE", "2min").deadline_ns, UINT64_C(120000000000));
  assert_int_equal(parse("RILL_DEADLINE", "0").deadline_ns, 0);
  assert_int_equal(parse("RILL_DEADLINE", "").deadline_ns, 0);
  assert_string_equal(complaint, "");
  static const char *const bad[] = { "s", "-1s", "30 s", "1.5s", "30h", "20000000000s", "99999999999999999999" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(parse("RILL_DEADLINE", bad[i]).deadline_ns, 0);
    assert_non_null(strstr(complaint, "RILL_DEADLINE"));
    assert_non_null(strstr(complaint, bad[i]));
  }
}

static void reads_rules_of_faults(void) {
  const char *const rules = parse("RILL_FAULT", "alloc:3=out_of_memory,record:p=0.01").fault;
  assert_string_equal(rules, "alloc:3=out_of_memory,record:p=0.01");
  assert_string_equal(complaint, "");
  free((void *)(uintptr_t)rules);
  assert_null(parse("RILL_FAULT", "").fault);
  assert_string_equal(complaint, "");
  assert_null(parse("RILL_FAULT", "fill:1,alloc:3=out_of").fault);
  assert_string_equal(complaint,
                      "rill: RILL_FAULT: character 16: \"out_of\" is not an error status such as out_of_memory\n");
}

static void reads_whether_to_record(void) {
  assert_false(parse("RILL_RECORD", "0").records);
  assert_true(parse("RILL_RECORD", "1").records);
  assert_true(parse("RILL_RECORD", "").records);
  assert_string_equal(complaint, "");
  assert_true(parse("RILL_RECORD", "no").records);
  assert_non_null(strstr(complaint, "RILL_RECORD: \"no\" is neither 0 nor 1"));
}

static void reads_signals(void) {
  assert_int_equal(parse("RILL_REPORT_SIGNAL", "USR2").report_signal, SIGUSR2);
  assert_int_equal(parse("RILL_REPORT_SIGNAL", "SIGQUIT").report_signal, SIGQUIT);
  assert_int_equal(parse("RILL_REPORT_SIGNAL", "").report_signal, 0);
  assert_string_equal(complaint, "");
  assert_int_equal(parse("RILL_REPORT_SIGNAL", "SEGV").report_signal, 0);
  assert_non_null(strstr(complaint, "RILL_REPORT_SIGNAL: \"SEGV\" is not HUP, QUIT, USR1 or USR2"));
}

static void copies_its_strings(void) {
  char timeline[] = "run.json";
  const struct rill__settings settings = parse("RILL_TIMELINE", timeline);
  timeline[0] = 'x'; /* setenv may overwrite the string */
  assert_string_equal(settings.timeline, "run.json");
  free((void *)(uintptr_t)settings.timeline);
  assert_true(parse("RILL_TIMELINE_NODES", "1").timeline_nodes);
}

static void reads_schedules(void) {
  const struct rill__settings settings = parse("RILL_CPU_SCHEDULE", "seed:18446744073709551615");
  assert_true(settings.schedules);
  assert_true(settings.schedule_seed == UINT64_MAX);
  assert_true(parse("RILL_CPU_SCHEDULE", "seed").schedules);
  assert_false(parse("RILL_CPU_SCHEDULE", "").schedules);
  assert_string_equal(complaint, "");
  assert_false(parse("RILL_CPU_SCHEDULE", "seed:18446744073709551616").schedules);
  assert_non_null(strstr(complaint, "RILL_CPU_SCHEDULE: \"seed:18446744073709551616\" is not a schedule"));
}

/* Replaces the C library's function at link time; that function returns NULL in a set-user-id program. */
char *__wrap_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name) {
  (void)name;
  return NULL;
}

static void set_user_id_programs_have_defaults(void) {
  assert_int_equal(setenv("RILL_CHECK", "comm", 1), 0);
  assert_int_equal(setenv("RILL_RECORD", "0", 1), 0);
  assert_int_equal(setenv("RILL_CPU_SCHEDULE", "seed:1", 1), 0);
  assert_false(rill__checks(RILL__CHECK_COMM));
  assert_true(rill__settings()->records);
  assert_false(rill__settings()->schedules);
}

TESTS_ONCE("settings", TEST(has_defaults), TEST(reads_lists_of_checks), TEST(names_unknown_checks),
           TEST(complaints_are_bounded), TEST(reads_durations), TEST(reads_rules_of_faults),
           TEST(reads_whether_to_record), TEST(reads_signals), TEST(copies_its_strings), TEST(reads_schedules),
           TEST(set_user_id_programs_have_defaults))
