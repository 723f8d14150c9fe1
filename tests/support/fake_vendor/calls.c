/* The way into every entry point: one lock, counted calls, calls made to fail or to hang. */
#include "calls.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One `fail` or `hang`. */
struct rule {
  char name[64]; /* "*": any */
  uint64_t nth;  /* calls to go until it strikes; 0: every one */
  bool onwards;  /* from then on, not once */
  bool hang;
  int code;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct rule rules[64];
static size_t rule_count;
static uint64_t rules_cleared; /* times */
static unsigned hanging;
static uint64_t total;
static struct fake_call *calls;
static bool initialized, environment_read;
static _Atomic bool forked;
static _Thread_local bool in_host_function;

void fake_lock(void) { (void)pthread_mutex_lock(&lock); }

void fake_unlock(void) { (void)pthread_mutex_unlock(&lock); }

void fake_wait(pthread_cond_t *condition) { (void)pthread_cond_wait(condition, &lock); }

void fake_set_initialized(void) { initialized = true; }

void fake_set_in_host_function(bool inside) { in_host_function = inside; }

static void print(const char *format, va_list arguments) {
  char text[512];
  (void)vsnprintf(text, sizeof text, format, arguments);
  (void)fprintf(stderr, "%s: %s\n", fake_vendor.library, text);
}

void fake_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
}

void fake_die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
  abort();
}

/* "cuMemAlloc_v2" is "cuMemAlloc" to tests. */
static bool same_name(const char *wanted, const char *function) {
  const size_t length = strlen(wanted);
  if (strcmp(wanted, "*") == 0) return true;
  return strncmp(function, wanted, length) == 0 &&
         (function[length] == '\0' || strncmp(function + length, "_v", 2) == 0);
}

static void add_rule(const struct rule *rule) {
  if (rule_count == sizeof rules / sizeof *rules) fake_die("more than %zu calls to fail or to hang", rule_count);
  rules[rule_count++] = *rule;
}

/* "cuEventRecord:3:700" or "cuEventRecord:3+:700". */
static void add_fail_text(char *text) {
  struct rule rule = { .onwards = false };
  char *nth = strchr(text, ':'), *code = nth == NULL ? NULL : strchr(nth + 1, ':');
  if (code == NULL) fake_die("RILL_FAKE_FAIL: \"%s\": expected name:nth:code", text);
  *nth++ = *code++ = '\0';
  char *end;
  rule.nth = strtoull(nth, &end, 10);
  rule.onwards = *end == '+';
  rule.code = atoi(code);
  (void)snprintf(rule.name, sizeof rule.name, "%s", text);
  add_rule(&rule);
}

static void add_hang_text(char *text) {
  struct rule rule = { .hang = true };
  (void)snprintf(rule.name, sizeof rule.name, "%s", text);
  add_rule(&rule);
}

static void for_each_word(const char *list, void (*use)(char *word)) {
  char *copy = list == NULL ? NULL : strdup(list), *rest = NULL;
  for (char *word = copy == NULL ? NULL : strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
    use(word);
  free(copy);
}

static void read_environment(void) {
  environment_read = true;
  for_each_word(fake_environment("FAIL"), add_fail_text);
  for_each_word(fake_environment("HANG"), add_hang_text);
}

static void hang(void) {
  const uint64_t since = rules_cleared;
  hanging++;
  while (rules_cleared == since) fake_wait(&released);
  hanging--;
}

static int apply_rules(const char *function) {
  int code = FAKE_OK;
  bool hangs = false;
  for (size_t i = 0; i < rule_count; i++) {
    struct rule *rule = &rules[i];
    if (!same_name(rule->name, function)) continue;
    if (rule->nth > 1) {
      rule->nth--;
      continue;
    }
    hangs |= rule->hang;
    if (code == FAKE_OK) code = rule->code;
    if (rule->nth == 1 && !rule->onwards) rules[i--] = rules[--rule_count];
  }
  if (hangs) hang();
  return code;
}

int fake_enter(struct fake_call *call) {
  if (atomic_load_explicit(&forked, memory_order_relaxed)) return FAKE_NOT_INITIALIZED;
  if (in_host_function) return FAKE_NOT_PERMITTED;
  fake_lock();
  if (!environment_read) read_environment();
  if (!call->known) {
    call->known = true;
    call->safety = fake_safety_of(call->name);
    call->next = calls;
    calls = call;
  }
  call->count++;
  total++;
  int code = rule_count == 0 ? FAKE_OK : apply_rules(call->name);
  if (code == FAKE_OK && fake_vendor.needs_init && !initialized && !call->free_of_init) code = FAKE_NOT_INITIALIZED;
  if (code == FAKE_OK) code = fake_capture_check(call->safety);
  return code == FAKE_OK ? FAKE_OK : fake_leave(code);
}

int fake_leave(int code) {
  fake_unlock();
  if (fake_options()->yields) (void)sched_yield();
  return code;
}

void fake_calls_fail(const char *function, unsigned nth, int code) {
  struct rule rule = { .nth = nth, .code = code };
  (void)snprintf(rule.name, sizeof rule.name, "%s", function);
  fake_lock();
  add_rule(&rule);
  fake_unlock();
}

void fake_calls_hang(const char *function) {
  struct rule rule = { .hang = true };
  (void)snprintf(rule.name, sizeof rule.name, "%s", function);
  fake_lock();
  add_rule(&rule);
  fake_unlock();
}

unsigned fake_calls_hanging(void) {
  fake_lock();
  const unsigned n = hanging;
  fake_unlock();
  return n;
}

void fake_calls_clear(void) {
  fake_lock();
  environment_read = true;
  rule_count = 0;
  rules_cleared++;
  (void)pthread_cond_broadcast(&released);
  fake_unlock();
}

uint64_t fake_calls_count(const char *function) {
  uint64_t n = 0;
  fake_lock();
  for (const struct fake_call *call = calls; call != NULL; call = call->next)
    if (same_name(function, call->name)) n += call->count;
  fake_unlock();
  return n;
}

void fake_calls_print(void) {
  fake_lock();
  for (const struct fake_call *call = calls; call != NULL; call = call->next)
    fake_say("%8llu calls of %s", (unsigned long long)call->count, call->name);
  fake_unlock();
}

/* As with AMD's runtime, calls wait while the process forks.  Threads and their work are not in the child: nothing of
 * the driver is usable there. */
static void after_fork_in_child(void) {
  atomic_store(&forked, true);
  fake_unlock();
}

__attribute__((constructor)) static void start(void) {
  (void)pthread_atfork(fake_lock, fake_unlock, after_fork_in_child);
}
