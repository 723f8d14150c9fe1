#include "comm_control.h"
#include "fake_comm.h"

#include "fake_control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 32 };

pthread_mutex_t fake_comm_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_comm_changed = PTHREAD_COND_INITIALIZER;

static struct {
  const char *name; /* a literal of the caller */
  uint64_t calls;
} functions[FUNCTIONS];
static struct {
  char name[64];
  unsigned left; /* calls until it fails, that one included; 0: none does */
  int code;
} rule;
static bool blocking;

int fake_comm_enter(const char *function) {
  int code = GPU_COMM_SUCCESS;
  pthread_mutex_lock(&fake_comm_lock);
  for (int i = 0; i < FUNCTIONS; i++) {
    if (functions[i].name == NULL) functions[i].name = function;
    if (strcmp(functions[i].name, function) != 0) continue;
    functions[i].calls++;
    break;
  }
  if (rule.left != 0 && strcmp(rule.name, function) == 0 && --rule.left == 0) code = rule.code;
  if (code != GPU_COMM_SUCCESS) pthread_mutex_unlock(&fake_comm_lock);
  return code;
}

int fake_comm_leave(int code) {
  pthread_cond_broadcast(&fake_comm_changed);
  pthread_mutex_unlock(&fake_comm_lock);
  return code;
}

bool fake_comm_blocks(void) { return blocking; }

static void fail_call(const char *function, unsigned nth, int code) {
  pthread_mutex_lock(&fake_comm_lock);
  (void)snprintf(rule.name, sizeof rule.name, "%s", function);
  rule.left = nth;
  rule.code = code;
  (void)fake_comm_leave(0);
}

static void block_submissions(int on) {
  pthread_mutex_lock(&fake_comm_lock);
  blocking = on != 0;
  (void)fake_comm_leave(0);
}

static void clear(void) {
  fail_call("", 0, 0);
  block_submissions(0);
}

static uint64_t calls(const char *function) {
  uint64_t count = 0;
  pthread_mutex_lock(&fake_comm_lock);
  for (int i = 0; i < FUNCTIONS && functions[i].name != NULL; i++) {
    if (strcmp(functions[i].name, function) == 0) count = functions[i].calls;
  }
  (void)fake_comm_leave(0);
  return count;
}

__attribute__((visibility("default"))) const struct rill_fake_comm *rill_fake_comm_control(void);

const struct rill_fake_comm *rill_fake_comm_control(void) {
  static const struct rill_fake_comm table = {
    fail_call, block_submissions, clear, calls, fake_comm_live, fake_comm_kill,
  };
  return &table;
}

/* ---- the driver below ---- */

static const struct rill_fake *driver(void) {
  static const char *const names[] = { FAKE_COMM_DRIVERS };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const struct rill_fake *fake = rill_fake_find(names[i]);
    if (fake != NULL) return fake;
  }
  (void)fprintf(stderr, "the fake NCCL needs the fake driver\n");
  abort();
}

int fake_comm_current_device(void) { return driver()->current_device(); }
int fake_comm_device_of_stream(void *stream) { return driver()->device_of_stream(stream); }
int fake_comm_capture(void *stream, void (*run)(void *data, int status), void (*finish)(void *data), void *data) {
  return driver()->capture(stream, run, finish, data);
}
int fake_comm_enqueue(void *stream, void (*run)(void *data, int status), void *data) {
  return driver()->enqueue(stream, run, data);
}
