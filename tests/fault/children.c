#include "children.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Reads until the other end is closed; returns false if the time is over first. */
static bool read_all(int from, char *text, size_t size) {
  const uint64_t end = now_ns() + CHILD_SECONDS * UINT64_C(1000) * MILLISECOND;
  size_t used = 0;
  for (;;) {
    char rest[512];
    struct pollfd ready = { .fd = from, .events = POLLIN };
    const uint64_t now = now_ns();
    if (now >= end) return false;
    if (poll(&ready, 1, (int)((end - now) / MILLISECOND) + 1) <= 0) continue;
    const ssize_t n = read(from, rest, sizeof rest);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    const size_t room = size - 1 - used;
    const size_t taken = (size_t)n < room ? (size_t)n : room;
    memcpy(text + used, rest, taken);
    used += taken;
    text[used] = '\0';
  }
}

/* The environment with `variables` in front: the first of a name counts. */
static char **make_environment(const char *const *variables, size_t count) {
  size_t have = 0;
  while (environ[have] != NULL) have++;
  char **all = calloc(have + count + 1, sizeof *all);
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    if (variables[i] != NULL) all[n++] = (char *)(uintptr_t)variables[i];
  }
  const size_t added = n;
  for (size_t i = 0; i < have; i++) {
    bool replaced = false;
    for (size_t j = 0; j < added; j++) {
      const size_t name = strcspn(all[j], "=") + 1;
      replaced = replaced || strncmp(all[j], environ[i], name) == 0;
    }
    if (!replaced) all[n++] = environ[i];
  }
  return all;
}

void run_child(const char *mode, const char *const *variables, size_t variable_count, struct child *child) {
  int ends[2];
  pid_t pid = -1;
  *child = (struct child){ .exit_code = -1 };
  assert_int_equal(pipe(ends), 0);
  posix_spawn_file_actions_t actions;
  assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO), 0);
  assert_int_equal(posix_spawn_file_actions_addclose(&actions, ends[0]), 0);
  assert_int_equal(posix_spawn_file_actions_addclose(&actions, ends[1]), 0);
  char **all = make_environment(variables, variable_count);
  char program[4096]; /* the link itself would be the checker, under one */
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  assert_true(length > 0);
  program[length] = '\0';
  char *const arguments[] = { program, (char *)(uintptr_t)mode, NULL };
  assert_int_equal(posix_spawn(&pid, program, &actions, NULL, arguments, all), 0);
  (void)posix_spawn_file_actions_destroy(&actions);
  free(all);
  (void)close(ends[1]);
  child->timed_out = !read_all(ends[0], child->output, sizeof child->output);
  if (child->timed_out) (void)kill(pid, SIGKILL);
  (void)close(ends[0]);
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (WIFEXITED(status)) child->exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) child->signal = WTERMSIG(status);
}

const char *child_end(const struct child *child) {
  static char text[64];
  if (child->timed_out) {
    (void)snprintf(text, sizeof text, "did not end within %d seconds", CHILD_SECONDS);
  } else if (child->signal != 0) {
    (void)snprintf(text, sizeof text, "ended by signal %d", child->signal);
  } else {
    (void)snprintf(text, sizeof text, "exit code %d", child->exit_code);
  }
  return text;
}

/* ---- modes ---- */

static void run_as_child(void **state) {
  static struct child child;
  const struct mode *mode = *state;
  run_child(mode->name, mode->variables, CHILD_VARIABLES, &child);
  if (child.exit_code == mode->exit_code) return;
  print_error("%s: %s\n%s\n", mode->name, child_end(&child), child.output);
  fail();
}

static int run_all(const char *subject, const struct mode *modes, size_t count) {
  struct CMUnitTest *list = calloc(count, sizeof *list);
  if (list == NULL) return 1;
  for (size_t i = 0; i < count; i++) {
    list[i].name = modes[i].name;
    list[i].test_func = run_as_child;
    list[i].initial_state = (void *)(uintptr_t)&modes[i];
  }
  const int failed = _cmocka_run_group_tests(subject, list, count, NULL, NULL);
  free(list);
  (void)printf("rill-tests: %zu passed, %d failed, 0 skipped\n", count - (size_t)failed, failed);
  return failed != 0;
}

int run_modes(const char *subject, int argc, char **argv, const struct mode *modes, size_t count) {
  if (argc < 2) return run_all(subject, modes, count);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(argv[1], modes[i].name) != 0) continue;
    const struct test one = { modes[i].name, modes[i].run };
    return run_once(subject, &one, 1);
  }
  (void)fprintf(stderr, "%s: there is no mode %s\n", subject, argv[1]);
  return 2;
}
