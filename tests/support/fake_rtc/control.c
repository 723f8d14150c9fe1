#include "fake_rtc.h"
#include "rtc_control.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { FUNCTIONS = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of these */
static struct {
  const char *name; /* a literal of the caller */
  uint64_t calls;
} functions[FUNCTIONS];
static struct {
  char name[64];
  unsigned left; /* calls until it fails, that one included; 0: none does */
  int code;
} rule;
static size_t programs;
static char options[4096]; /* of the last compile, a line end after each */

int rtc_enter(const char *function) {
  int code = RTC_OK;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < FUNCTIONS; i++) {
    if (functions[i].name == NULL) functions[i].name = function;
    if (strcmp(functions[i].name, function) != 0) continue;
    functions[i].calls++;
    break;
  }
  if (rule.left != 0 && strcmp(rule.name, function) == 0 && --rule.left == 0) code = rule.code;
  pthread_mutex_unlock(&lock);
  return code;
}

void rtc_count(int change) {
  pthread_mutex_lock(&lock);
  programs = change > 0 ? programs + 1 : programs - 1;
  pthread_mutex_unlock(&lock);
}

void rtc_note_options(const char *const *list, int count) {
  pthread_mutex_lock(&lock);
  options[0] = '\0';
  for (int i = 0; i < count; i++) {
    (void)strncat(options, list[i], sizeof options - strlen(options) - 2);
    (void)strcat(options, "\n");
  }
  pthread_mutex_unlock(&lock);
}

static bool had_option(const char *option) {
  char line[256];
  (void)snprintf(line, sizeof line, "%s\n", option);
  pthread_mutex_lock(&lock);
  const bool had = strstr(options, line) != NULL;
  pthread_mutex_unlock(&lock);
  return had;
}

static void fail_call(const char *function, unsigned nth, int code) {
  pthread_mutex_lock(&lock);
  (void)snprintf(rule.name, sizeof rule.name, "%s", function);
  rule.left = nth;
  rule.code = code;
  pthread_mutex_unlock(&lock);
}

static void clear(void) { fail_call("", 0, RTC_OK); }

static uint64_t count_calls(const char *function) {
  uint64_t calls = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < FUNCTIONS && functions[i].name != NULL; i++) {
    if (strcmp(functions[i].name, function) == 0) calls = functions[i].calls;
  }
  pthread_mutex_unlock(&lock);
  return calls;
}

static size_t count_live(void) {
  pthread_mutex_lock(&lock);
  const size_t count = programs;
  pthread_mutex_unlock(&lock);
  return count;
}

__attribute__((visibility("default"))) const struct rill_fake_rtc *rill_fake_rtc_control(void);
const struct rill_fake_rtc *rill_fake_rtc_control(void) {
  static const struct rill_fake_rtc control = {
    .fail_call = fail_call, .clear = clear, .calls = count_calls, .live = count_live, .had_option = had_option
  };
  return &control;
}
