/* Memory shared between processes (C5.4), that end, fork, or have another user or directory. For the CPU rill itself
 * keeps the promises; for a GPU the driver does, and the tests only require that nothing crashes. */
#include "support/peer.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 3000, NOBODY = 65534 };

static bool shares_memory(void) { return rill_device_supports(dut.device, RILL_FEATURE_IPC, NULL); }

static rill_status import(const rill_ipc_handle *handle, uint32_t **out) {
  void *p = &p;
  const rill_status status = rill_memory_ipc_import(dut.device, handle, &p);
  if (status != RILL_OK) assert_null(p);
  *out = p;
  return status;
}

static uint32_t *new_words(uint32_t value) {
  rill_stream stream = new_stream("filler");
  uint32_t *p;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, WORDS, &p));
  assert_ok(rill_fill_async(stream, p, &value, sizeof value, WORDS));
  assert_completes(stream);
  return p;
}

static void assert_words(const uint32_t *p, uint32_t value) {
  static uint32_t back[WORDS];
  rill_stream stream = new_stream("reader");
  assert_ok(rill_copy_async(stream, back, p, sizeof back));
  assert_completes(stream);
  for (size_t i = 0; i < WORDS; i++) assert_int_equal(back[i], value);
}

/* One of `value`, opened, read and closed. */
static void assert_opens(const rill_ipc_handle *handle, uint32_t value) {
  uint32_t *p;
  assert_ok(import(handle, &p));
  assert_words(p, value);
  assert_ok(rill_free(p));
}

/* Files that are named as what the CPU shares. */
static unsigned count_names(const char *path) {
  unsigned count = 0;
  DIR *directory = opendir(path);
  if (directory == NULL) return 0;
  for (const struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    const char *name = entry->d_name;
    count += strncmp(name, "rill-", 5) == 0 && strspn(name + 5, "0123456789abcdef") == 16 && strlen(name) == 21;
  }
  (void)closedir(directory);
  return count;
}

/* In every place where such files might remain. */
static unsigned count_files_left(void) {
  return count_names("/dev/shm") + count_names("/tmp") + count_names("/") + count_names(".");
}

/* ---- the exporter is killed ---- */

/* At any moment: while it exports, or between. */
static void child_exports_without_end(void) {
  for (;;) {
    rill_ipc_handle handle;
    uint32_t *p;
    assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, WORDS, &p));
    assert_ok(rill_memory_ipc_export(p, &handle));
    peer_send(peer_parent(), &handle, sizeof handle);
    assert_ok(rill_free(p));
  }
}

/* I9, I10 */
static void exporters_may_be_killed_at_any_moment(void) {
  if (!shares_memory()) return;
  for (unsigned round = 0; round < scaled(10); round++) {
    struct peer *peer = peer_start("child_exports_without_end");
    rill_ipc_handle handle;
    uint32_t *p;
    for (unsigned i = 0; i <= round; i++) peer_receive(peer, &handle, sizeof handle);
    peer_dies(peer);
    spoil_last_error();
    const rill_status status = import(&handle, &p);
    assert_int_not_equal(status, RILL_OK);
    assert_says("rill_memory_ipc_import");
    if (!dut.gpu) assert_int_equal(status, RILL_ERROR_NOT_FOUND);
  }
  assert_int_equal(count_files_left(), 0);
}

static void child_exports_and_waits(void) {
  rill_ipc_handle handle;
  uint32_t *p = new_words(61);
  assert_ok(rill_memory_ipc_export(p, &handle));
  peer_send(peer_parent(), &handle, sizeof handle);
  peer_awaits(peer_parent(), 'e');
}

/* No driver promises it. */
static void open_memory_outlives_its_exporter_on_the_cpu(void) {
  rill_ipc_handle handle;
  uint32_t *p, *again;
  if (dut.gpu) return;
  struct peer *peer = peer_start("child_exports_and_waits");
  peer_receive(peer, &handle, sizeof handle);
  assert_ok(import(&handle, &p));
  peer_dies(peer);
  assert_words(p, 61);
  assert_fails_in("rill_memory_ipc_import", import(&handle, &again), RILL_ERROR_NOT_FOUND);
  assert_says("has ended");
  assert_ok(rill_free(p));
}

/* ---- the importer ---- */

static void child_opens_from_elsewhere(void) {
  rill_ipc_handle handle;
  peer_receive(peer_parent(), &handle, sizeof handle);
  assert_int_equal(chdir("/proc"), 0);
  assert_int_equal(clearenv(), 0);
  assert_opens(&handle, 62);
  assert_int_equal(setenv("RILL_TEST_DEVICE", dut.name, 1), 0); /* no other device after this one */
}

static void neither_directory_nor_environment_matters(void) {
  rill_ipc_handle handle;
  if (!shares_memory()) return;
  struct peer *peer = peer_start("child_opens_from_elsewhere");
  uint32_t *p = new_words(62);
  assert_ok(rill_memory_ipc_export(p, &handle));
  peer_send(peer, &handle, sizeof handle);
  peer_ends(peer);
  assert_ok(rill_free(p));
}

/* The importer opened the memory and is killed; the exporter's memory stays. */
static void child_opens_and_waits(void) {
  rill_ipc_handle handle;
  uint32_t *p;
  peer_receive(peer_parent(), &handle, sizeof handle);
  assert_ok(import(&handle, &p));
  peer_tell(peer_parent(), 'o');
  peer_awaits(peer_parent(), 'e');
}

/* I11 */
static void importers_may_be_killed(void) {
  rill_ipc_handle handle;
  if (!shares_memory()) return;
  struct peer *peer = peer_start("child_opens_and_waits");
  uint32_t *p = new_words(63);
  assert_ok(rill_memory_ipc_export(p, &handle));
  peer_send(peer, &handle, sizeof handle);
  peer_awaits(peer, 'o');
  peer_dies(peer);
  assert_words(p, 63);
  assert_ok(rill_free(p));
}

/* ---- permissions ---- */

static void child_is_refused(void) {
  rill_ipc_handle handle;
  uint32_t *p;
  peer_receive(peer_parent(), &handle, sizeof handle);
  if (geteuid() == 0) assert_int_equal(setgid(NOBODY) | setuid(NOBODY), 0);
  assert_fails_in("rill_memory_ipc_import", import(&handle, &p), RILL_ERROR_NOT_FOUND);
  assert_says("another user, or cannot be inspected");
}

/* As the superuser the test can create an importer of another user; otherwise it creates an exporter whose files cannot
 * be opened. */
static void others_cannot_open_what_the_cpu_shares(void) {
  rill_ipc_handle handle;
  if (dut.gpu) return;
  struct peer *peer = peer_start("child_is_refused");
  uint32_t *p = new_words(64);
  assert_ok(rill_memory_ipc_export(p, &handle));
  if (geteuid() != 0) assert_int_equal(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
  peer_send(peer, &handle, sizeof handle);
  peer_ends(peer);
  assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
  assert_ok(rill_free(p));
}

/* ---- fork ---- */

static void reap(pid_t pid) {
  int status = 0;
  assert_true(pid > 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

/* No asserts, which belong to the parent. */
static bool child_of_fork(const rill_ipc_handle *handle, uint32_t *p) {
  uint32_t *same;
  rill_ipc_handle own;
  if (dut.gpu) return import(handle, &same) == RILL_ERROR_NO_DEVICE && rill_memory_ipc_export(p, &own) != RILL_OK;
  /* It is another process: it may open what its parent exported, which it shares as well, and export it again. */
  if (p[0] != 65 || import(handle, &same) != RILL_OK) return false;
  same[0] = 66;
  if (p[0] != 66 || rill_free(same) != RILL_OK) return false;
  if (rill_memory_ipc_export(p, &own) != RILL_OK || memcmp(&own, handle, sizeof own) == 0) return false;
  if (import(&own, &same) != RILL_ERROR_INVALID_ARGUMENT) return false; /* its own now */
  if (rill_free(p) != RILL_OK) return false;
  return import(handle, &same) == RILL_OK && same[0] == 66 && rill_free(same) == RILL_OK; /* the parent's is there */
}

/* C1.10 */
static void a_forked_child_is_another_process(void) {
  rill_ipc_handle handle;
  if (!shares_memory()) return;
  uint32_t *p = new_words(65);
  assert_ok(rill_memory_ipc_export(p, &handle));
  (void)fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    (void)alarm(20);
    const bool right = child_of_fork(&handle, p);
    if (!right) (void)fprintf(stderr, "in the child of fork: %s\n", rill_last_error_text());
    _exit(!right);
  }
  reap(pid);
  if (!dut.gpu) assert_int_equal(p[0], 66);
  assert_ok(rill_free(p));
}

static void child_finds_nothing(void) {
  rill_ipc_handle handle;
  uint32_t *p;
  peer_receive(peer_parent(), &handle, sizeof handle);
  assert_fails_in("rill_memory_ipc_import", import(&handle, &p), RILL_ERROR_NOT_FOUND);
}

/* A surviving child keeps the file of memory that the parent freed, but no process finds it. */
static void a_forked_child_exposes_nothing(void) {
  rill_ipc_handle handle;
  int ends[2];
  char none;
  if (dut.gpu) return;
  struct peer *peer = peer_start("child_finds_nothing");
  uint32_t *p = new_words(67);
  assert_ok(rill_memory_ipc_export(p, &handle));
  assert_int_equal(pipe(ends), 0);
  (void)fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    (void)close(ends[1]);
    _exit((int)read(ends[0], &none, 1)); /* until the parent closes its end */
  }
  (void)close(ends[0]);
  assert_ok(rill_free(p));
  peer_send(peer, &handle, sizeof handle);
  peer_ends(peer);
  (void)close(ends[1]);
  reap(pid);
}

int main(int argc, char **argv) {
  static const struct test roles[] = { TEST(child_exports_without_end),  TEST(child_exports_and_waits),
                                       TEST(child_opens_from_elsewhere), TEST(child_opens_and_waits),
                                       TEST(child_is_refused),           TEST(child_finds_nothing) };
  static const struct test tests[] = {
    TEST(exporters_may_be_killed_at_any_moment),
    TEST(open_memory_outlives_its_exporter_on_the_cpu),
    TEST(neither_directory_nor_environment_matters),
    TEST(importers_may_be_killed),
    TEST(others_cannot_open_what_the_cpu_shares),
    TEST(a_forked_child_is_another_process),
    TEST(a_forked_child_exposes_nothing),
  };
  if (argc > 1) return PEER_MAIN(argv[1], roles);
  return RUN_ON_EACH_DEVICE("sharing between processes", tests);
}
