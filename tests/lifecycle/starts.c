/* How a process starts with rill: no library, no device, devices that are hidden, a library that refuses, the first
 * calls from 64 threads at once (C1.7, C1.9). */
#include "fault/children.h"
#include "life.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

/* ---- without a GPU ---- */

static const char *vendor(void) {
  const char *device = getenv("RILL_TEST_DEVICE");
  return device != NULL && strncmp(device, "hip", 3) == 0 ? "hip" : "cuda";
}

static bool has_vendor(void) {
  const char *device = getenv("RILL_TEST_DEVICE");
  return device != NULL && strcmp(device, "cpu") != 0;
}

/* Makes all first calls of a program when the vendor has no device. The text contains `reason`. */
static void check_no_device(const char *backend, const char *reason) {
  rill_device device = { 1 };
  int32_t count = 0;
  char name[16];
  assert_fails(rill_device_open(backend, &device), RILL_ERROR_NO_DEVICE);
  assert_true(rill_device_equal(device, RILL_NULL_DEVICE));
  if (reason != NULL) assert_says(reason);
  (void)snprintf(name, sizeof name, "%s:3", backend);
  assert_fails(rill_device_open(name, &device), RILL_ERROR_NO_DEVICE);
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  if (strlen(error.message) < 20) fail_msg("no reason: %s", error.message);
  assert_ok(rill_device_count(&count));
  assert_true(count >= 1);
  assert_ok(rill_device_get(count - 1, &device));
  use(device); /* the cpu is last */
  assert_ok(rill_device_open("cpu", &device));
  use(device);
}

/* The children's environment says why. */
static void no_device(void) { check_no_device(vendor(), getenv("RILL_TEST_REASON")); }

/* No GPU of any vendor: the first device is the cpu. */
static void falls_back_to_the_cpu(void) {
  rill_device device, cpu;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  assert_fails(rill_device_open("gpu", &device), RILL_ERROR_NO_DEVICE);
  assert_says("cuda");
  assert_says("hip");
  assert_ok(rill_device_open(NULL, &device));
  assert_ok(rill_device_open("cpu", &cpu));
  assert_true(rill_device_equal(device, cpu));
  assert_ok(rill_device_get_info(device, &info));
  assert_int_equal(info.backend, RILL_BACKEND_CPU);
  use(device);
}

/* Creates a directory of invalid libraries under all vendor names. */
static char directory[64];

static void make_directory(const char *target) {
  static const char *const names[] = { "libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5" };
  (void)snprintf(directory, sizeof directory, "%s", "/tmp/rill-lifecycle-XXXXXX");
  assert_non_null(mkdtemp(directory));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
    if (target != NULL) {
      assert_int_equal(symlink(target, path), 0);
      continue;
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    (void)fprintf(file, "not a library\n");
    assert_int_equal(fclose(file), 0);
  }
}

static void remove_directory(void) {
  static const char *const names[] = { "libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
    (void)unlink(path);
  }
  (void)rmdir(directory);
}

static bool child_passes(const char *mode, const char *const *variables, size_t count) {
  static struct child child;
  run_child(mode, variables, count, &child);
  if (child.exit_code == 0) return true;
  print_error("%s: %s\n%s\n", mode, child_end(&child), child.output);
  return false;
}

/* With `search` in front of the places where libraries are looked for. */
static void check_search(const char *search, const char *reason) {
  char path[128], why[64];
  (void)snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", search);
  (void)snprintf(why, sizeof why, "RILL_TEST_REASON=%s", reason);
  bool good = true;
  for (int i = 0; i < 2; i++) {
    const char *const variables[] = { path, why, i == 0 ? "RILL_TEST_DEVICE=cuda:0" : "RILL_TEST_DEVICE=hip:0" };
    good = child_passes("no_device", variables, 3) && good;
  }
  const char *const variables[] = { path, "RILL_DEVICE=" };
  good = child_passes("falls_back_to_the_cpu", variables, 2) && good;
  remove_directory();
  assert_true(good);
}

static bool is_built(const char *backend) {
  rill_device device;
  return rill_device_open(backend, &device) == RILL_OK || strstr(rill_last_error_text(), "not built in") == NULL;
}

/* The loader's message for files that are not libraries. */
static void files_that_are_not_libraries_are_refused(void) {
  if (!is_built("cuda") || !is_built("hip")) return;
  make_directory(NULL);
  check_search(directory, "file too short"); /* shorter than a library's first header */
}

/* A library without a single function of the vendor. */
static void unrelated_libraries_are_refused(void) {
  Dl_info info;
  void *address;
  uint32_t (*const function)(void) = rill_version;
  memcpy(&address, &function, sizeof address);
  if (!is_built("cuda") || !is_built("hip")) return;
  assert_int_not_equal(dladdr(address, &info), 0);
  make_directory(info.dli_fname);
  check_search(directory, "does not export");
}

/* Settings of the fake library, and the reason that each must produce. */
static void failures_of_initialization_are_reported(void) {
  const char *init = strcmp(vendor(), "cuda") == 0 ? "cuInit" : "hipInit";
  const char *count = strcmp(vendor(), "cuda") == 0 ? "cuDeviceGetCount" : "hipGetDeviceCount";
  const char *mask = strcmp(vendor(), "cuda") == 0 ? "CUDA_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES";
  char fail[96], masked[64], named[64], counted[64], started[64];
  if (!has_vendor()) return;
  (void)snprintf(fail, sizeof fail, "RILL_FAKE_FAIL=%s:1:999", count);
  (void)snprintf(masked, sizeof masked, "%s=-1", mask);
  (void)snprintf(named, sizeof named, "RILL_TEST_REASON=%s is \"-1\"", mask);
  (void)snprintf(counted, sizeof counted, "RILL_TEST_REASON=%s returned 999", count);
  (void)snprintf(started, sizeof started, "RILL_TEST_REASON=%s returned ", init);
  /* The last one is for HIP, which obeys the mask of CUDA where it has none of its own. */
  const char *const cases[][3] = {
    { "RILL_FAKE_DEVICES=0", NULL, NULL },
    { "RILL_FAKE_DEVICES=0", masked, named },
    { "RILL_FAKE_INIT=100", started, NULL },
    { "RILL_FAKE_INIT=999", started, NULL },
    { "RILL_FAKE_INIT=35", started, masked },
    { fail, counted, NULL },
    { "HIP_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=-1", "RILL_TEST_REASON=CUDA_VISIBLE_DEVICES is \"-1\"" },
  };
  const size_t count_of_cases = sizeof cases / sizeof *cases - (strcmp(vendor(), "hip") == 0 ? 0 : 1);
  bool good = true;
  for (size_t i = 0; i < count_of_cases; i++) good = child_passes("no_device", cases[i], 3) && good;
  assert_true(good);
}

/* The distribution's own library where there is one, without the fake: a device, or none with the reason. */
static void with_the_real_library(void) {
  rill_device device;
  static const char *const names[] = { "cuda", "hip" };
  for (int i = 0; i < 2; i++) {
    if (rill_device_open(names[i], &device) == RILL_OK) {
      use(device);
    } else {
      check_no_device(names[i], NULL);
    }
  }
}

static void the_real_library_works(void) {
  static const char *const variables[] = { "LD_LIBRARY_PATH=" };
  assert_true(child_passes("with_the_real_library", variables, 1));
}

/* ---- at once ---- */

/* Each thread makes a different first call. */
static const char *first_call(unsigned index, void *shared) {
  rill_device device;
  rill_stream stream;
  int32_t count = 0;
  const char *name = getenv("RILL_TEST_DEVICE");
  rill_error error = RILL_ERROR_INIT;
  (void)shared;
  switch (index % 8) {
    case 0: REQUIRE_OK(rill_device_count(&count)); break;
    case 1: REQUIRE_OK(rill_device_get(0, &device)); break;
    case 2: REQUIRE_OK(rill_device_open("cpu", &device)); break;
    case 3: REQUIRE_OK(rill_last_error(&error)); break;
    case 4: REQUIRE(rill_stream_synchronize(RILL_NULL_STREAM) == RILL_ERROR_INVALID_HANDLE); break;
    case 5: REQUIRE_OK(rill_event_release(RILL_NULL_EVENT)); break;
    case 6: REQUIRE(rill_last_error_text()[0] == '\0'); break;
    default: REQUIRE_OK(rill_free(NULL)); break;
  }
  REQUIRE_OK(rill_device_open(name != NULL ? name : "cpu", &device));
  REQUIRE_OK(rill_device_default_stream(device, &stream));
  use(device);
  REQUIRE_OK(rill_stream_synchronize(stream));
  return NULL;
}

static void first_calls_of_64_threads(void) { run_threads(64, first_call, NULL); }

/* Chance decides who is first: several processes. */
static void first_calls_may_be_made_at_once(void) {
  for (unsigned i = 0; i < scaled(10); i++) assert_true(child_passes("first_calls_of_64_threads", NULL, 0));
}

int main(int argc, char **argv) {
  static const struct mode children[] = { MODE(no_device), MODE(falls_back_to_the_cpu), MODE(with_the_real_library),
                                          MODE(first_calls_of_64_threads) };
  static const struct test tests[] = {
    TEST(files_that_are_not_libraries_are_refused), TEST(unrelated_libraries_are_refused),
    TEST(failures_of_initialization_are_reported),  TEST(the_real_library_works),
    TEST(first_calls_may_be_made_at_once),
  };
  if (argc > 1) return RUN_MODES("the start of a process", argc, argv, children);
  return RUN_ONCE("the start of a process", tests);
}
