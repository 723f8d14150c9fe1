/* Tests which vendor libraries are opened for which device, and which threads wait meanwhile (C1.7, C1.9, C2.1). Both
 * fake vendors are installed, with two devices each. */
#include "fake_control.h"
#include "fault/children.h"
#include "life.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what is opened ---- */

static bool is_loaded(const char *soname) {
  void *library = dlopen(soname, RTLD_NOW | RTLD_NOLOAD);
  if (library != NULL) (void)dlclose(library);
  return library != NULL;
}

static void check_loaded(const char *expected) {
  const bool cuda = is_loaded("libcuda.so.1"), hip = is_loaded("libamdhip64.so.7");
  if (cuda != (strstr(expected, "cuda") != NULL) || hip != (strstr(expected, "hip") != NULL))
    fail_msg("expected \"%s\"; cuda's library is %s, hip's is %s", expected, cuda ? "open" : "not open",
             hip ? "open" : "not open");
}

/* RILL_TEST_OPEN: a name; "NULL"; "#N": device number N; "count". */
static rill_status open_what_is_asked_for(rill_device *device) {
  const char *what = getenv("RILL_TEST_OPEN");
  int32_t count = 0;
  if (strcmp(what, "NULL") == 0) return rill_device_open(NULL, device);
  if (strcmp(what, "count") == 0) return rill_device_count(&count);
  if (what[0] == '#') return rill_device_get(atoi(what + 1), device);
  return rill_device_open(what, device);
}

/* RILL_TEST_GETS: the device that comes of it, or "". */
static void opens_one(void) {
  rill_device device = RILL_NULL_DEVICE, named;
  const char *gets = getenv("RILL_TEST_GETS");
  rill_error error = RILL_ERROR_INIT;
  check_loaded("");
  rill_event_options options = RILL_EVENT_OPTIONS_INIT;
  assert_int_equal(rill_event_create(RILL_NULL_DEVICE, &options, &(rill_event){ 0 }), RILL_ERROR_INVALID_HANDLE);
  check_loaded("");
  const rill_status status = open_what_is_asked_for(&device);
  check_loaded(getenv("RILL_TEST_LOADS"));
  assert_ok(rill_last_error(&error));
  if (status == RILL_OK) assert_int_equal(error.status, RILL_ERROR_INVALID_HANDLE); /* C1.5 */
  if (gets[0] == '\0') {
    assert_true(rill_device_equal(device, RILL_NULL_DEVICE));
    return;
  }
  assert_int_equal(status, RILL_OK);
  use(device);
  check_loaded(getenv("RILL_TEST_LOADS"));
  assert_ok(rill_device_open(gets, &named));
  assert_true(rill_device_equal(device, named));
}

static void opens_no_more_than_it_needs(void) {
  static const struct {
    const char *what, *loads, *gets, *machine[2];
  } cases[] = {
    { "cpu", "", "cpu", { NULL } },
    { "cpu:1", "", "", { NULL } },
    { "nonsense", "", "", { NULL } },
    { "NULL", "", "cpu", { "RILL_DEVICE=cpu" } },
    { "cuda", "cuda", "cuda:0", { NULL } },
    { "cuda:1", "cuda", "cuda:1", { NULL } },
    { "cuda:2", "cuda", "", { NULL } },
    { "cuda:x", "", "", { NULL } },
    { "hip:0", "hip", "hip:0", { NULL } },
    { "NULL", "hip", "hip:1", { "RILL_DEVICE=hip:1" } },
    { "NULL", "cuda", "cuda:0", { NULL } },
    { "gpu", "cuda", "cuda:0", { NULL } },
    { "gpu:1", "cuda", "cuda:1", { NULL } },
    { "gpu:2", "cuda hip", "hip:0", { NULL } },
    { "gpu:4", "cuda hip", "", { NULL } },
    { "#0", "cuda", "cuda:0", { NULL } },
    { "#3", "cuda hip", "hip:1", { NULL } },
    { "#4", "cuda hip", "cpu", { NULL } },
    { "#5", "cuda hip", "", { NULL } },
    { "#-1", "cuda hip", "", { NULL } }, /* the text says how many there are */
    { "count", "cuda hip", "", { NULL } },
    { "NULL", "cuda hip", "hip:0", { "RILL_FAKE_CUDA_DEVICES=0" } },
    { "gpu", "cuda hip", "hip:0", { "RILL_FAKE_CUDA_INIT=100" } },
    { "NULL", "cuda hip", "cpu", { "RILL_FAKE_DEVICES=0" } },
    /* The second of two cannot be set up. */
    { "NULL", "cuda", "cuda:0", { "RILL_FAKE_CUDA_FAIL=cuDeviceGet:2:999" } },
    { "gpu:1", "cuda hip", "hip:0", { "RILL_FAKE_CUDA_FAIL=cuDeviceGet:2:999" } },
  };
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    static struct child child;
    char open[64], loads[64], gets[64];
    (void)snprintf(open, sizeof open, "RILL_TEST_OPEN=%s", cases[i].what);
    (void)snprintf(loads, sizeof loads, "RILL_TEST_LOADS=%s", cases[i].loads);
    (void)snprintf(gets, sizeof gets, "RILL_TEST_GETS=%s", cases[i].gets);
    const char *const variables[] = { open, loads, gets, cases[i].machine[0] };
    run_child("opens_one", variables, 4, &child);
    if (child.exit_code == 0) continue;
    print_error("%s, %s: %s\n%s\n", open, cases[i].machine[0] != NULL ? cases[i].machine[0] : "", child_end(&child),
                child.output);
    failed++;
  }
  assert_int_equal(failed, 0);
}

/* C2.1: a device's number and handle do not depend on which was asked for first. */
static void numbers_do_not_depend_on_the_order(void) {
  static const char *const backwards[] = { "cpu", "hip:1", "hip:0", "cuda:1", "cuda:0" };
  enum { COUNT = sizeof backwards / sizeof *backwards };
  rill_device device, first[COUNT];
  int32_t count = 0;
  for (int i = 0; i < COUNT; i++) assert_ok(rill_device_open(backwards[i], &first[i]));
  assert_ok(rill_device_count(&count));
  assert_int_equal(count, COUNT);
  for (int i = 0; i < COUNT; i++) {
    assert_ok(rill_device_get(COUNT - 1 - i, &device));
    assert_true(rill_device_equal(device, first[i]));
    use(device);
  }
}

/* ---- at once ---- */

enum { THREADS = 64 };
static const char *const names[] = { "cpu", "hip:1", "cuda:0", "gpu:3", "hip", "cuda:1", "gpu", NULL };
enum { NAMES = sizeof names / sizeof *names };

static const char *asks_first(unsigned index, void *shared) {
  rill_device *got = (rill_device *)shared + index;
  int32_t count = 0;
  REQUIRE_OK(rill_device_open(names[index % NAMES], got));
  use(*got);
  if (index / NAMES % 2 != 0) REQUIRE_OK(rill_device_count(&count));
  return NULL;
}

static void every_thread_opens_another_device(void) {
  static rill_device got[THREADS];
  static const int32_t numbers[NAMES] = { 4, 3, 0, 3, 2, 1, 0, 0 };
  run_threads(THREADS, asks_first, got);
  for (unsigned i = 0; i < THREADS; i++) {
    rill_device device;
    assert_ok(rill_device_get(numbers[i % NAMES], &device));
    assert_true(rill_device_equal(device, got[i]));
  }
}

static void first_queries_at_once(void) {
  for (unsigned i = 0; i < scaled(10); i++) {
    static struct child child;
    run_child("every_thread_opens_another_device", NULL, 0, &child);
    if (child.exit_code != 0) fail_msg("%s\n%s", child_end(&child), child.output);
  }
}

/* ---- while a vendor's library starts ---- */

static const char *open_cuda(unsigned index, void *shared) {
  rill_device *got = (rill_device *)shared + index;
  REQUIRE_OK(rill_device_open("cuda:0", got));
  return NULL;
}

static const struct rill_fake *wait_until_it_starts(void) {
  const struct rill_fake *fake;
  while ((fake = rill_fake_find("libcuda.so.1")) == NULL || fake->hanging() == 0) (void)sched_yield();
  return fake;
}

/* One thread starts the library, and only threads that request its devices wait. */
static void other_devices_need_not_wait(void) {
  enum { WAITING = 3 };
  rill_device got[WAITING], device;
  struct background *waiting = start_threads(WAITING, open_cuda, got);
  const struct rill_fake *fake = wait_until_it_starts();
  assert_ok(rill_device_open("cpu", &device));
  use(device);
  assert_ok(rill_device_open("hip:1", &device));
  use(device);
  assert_int_equal(fake->hanging(), 1);
  fake->clear();
  join_threads(waiting);
  assert_int_equal(fake->calls("cuInit"), 1);
  for (int i = 0; i < WAITING; i++) assert_true(rill_device_equal(got[0], got[i]));
  use(got[0]);
}

/* C1.10: the child's query is answered, and its other devices work. */
static void a_fork_during_a_library_start(void) {
  if (THREADS_CHECKED) return;
  rill_device got, device;
  struct background *waiting = start_threads(1, open_cuda, &got);
  const struct rill_fake *fake = wait_until_it_starts();
  const pid_t pid = fork();
  if (pid == 0) {
    (void)alarm(CHILD_SECONDS);
    if (rill_device_open("cuda:0", &device) != RILL_ERROR_NO_DEVICE) die("cuda:0: %s", rill_last_error_text());
    if (strstr(rill_last_error_text(), "fork") == NULL) die("%s", rill_last_error_text());
    must(rill_device_open("cpu", &device));
    use(device);
    must(rill_device_open("hip:0", &device)); /* no GPU had been requested */
    use(device);
    _exit(0);
  }
  int status = -1;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  fake->clear();
  join_threads(waiting);
  use(got);
}

/* ---- a fork while a vendor's call has a lock of rill's, and the vendor's own handlers ---- */

static _Atomic bool forking;
static void fork_begins(void) { atomic_store(&forking, true); }

static const char *first_use(unsigned index, void *shared) {
  rill_stream stream;
  (void)index;
  REQUIRE_OK(rill_device_default_stream(*(rill_device *)shared, &stream));
  return NULL;
}

static const char *let_it_go_on(unsigned index, void *shared) {
  const struct rill_fake *fake = shared;
  (void)index;
  while (!atomic_load(&forking)) (void)sched_yield();
  for (int i = 0; i < 1000; i++) (void)sched_yield(); /* gives the handlers time to take locks that they should not */
  fake->clear();
  return NULL;
}

/* Calls of the vendor wait while the process forks, so the forking thread must first wait for calls in progress. */
static void a_fork_while_a_device_starts(void) {
  if (THREADS_CHECKED) return;
  rill_device device;
  assert_ok(rill_device_open("cpu", &device));
  assert_ok(rill_device_open("cuda:0", &device));
  struct background *using = start_threads(1, first_use, &device);
  const struct rill_fake *fake = wait_until_it_starts();
  struct background *helping = start_threads(1, let_it_go_on, (void *)(uintptr_t)fake);
  assert_int_equal(pthread_atfork(fork_begins, NULL, NULL), 0);
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  int status = -1;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  join_threads(using);
  join_threads(helping);
  use(device);
}

int main(int argc, char **argv) {
  static const struct mode modes[] = {
    MODE(numbers_do_not_depend_on_the_order),
    MODE_WITH(other_devices_need_not_wait, "RILL_FAKE_HANG=cuInit"),
    MODE_WITH(a_fork_during_a_library_start, "RILL_FAKE_HANG=cuInit"),
    MODE_WITH(a_fork_while_a_device_starts, "RILL_FAKE_HANG=cuDevicePrimaryCtxRetain"),
  };
  static const struct mode children[] = { MODE(opens_one), MODE(every_thread_opens_another_device) };
  static const struct test tests[] = { TEST(opens_no_more_than_it_needs), TEST(first_queries_at_once) };
  for (int i = 0; argc > 1 && i < 2; i++) {
    if (strcmp(argv[1], children[i].name) == 0) return RUN_MODES("the search for devices", argc, argv, children);
  }
  const int failed = RUN_MODES("the search for devices", argc, argv, modes);
  return argc > 1 ? failed : failed | RUN_ONCE("the search for devices", tests);
}
