/* A library that uses the vendor's library and is loaded after rill's first device was opened may synchronize by
 * itself, so from then on nothing on a GPU is certain.  The same holds for a program that contains CUDA's runtime. */
#include "order/rig.h"
#include "order/watching.h"

#include <dlfcn.h>
#include <string.h>

/* Two fills of the same memory on two streams; returns what rill says. */
static const char *race(const char *label) {
  const rill_stream a = new_stream(label), b = new_stream(label);
  void *device = NULL;
  assert_ok(rill_alloc(dut.device, N, RILL_MEMORY_DEVICE, &device));
  watch_begin();
  fill(a, device, N);
  fill(b, device, N);
  assert_ok(rill_device_synchronize(dut.device));
  const char *const said = watch_end();
  assert_ok(rill_free(device));
  return said;
}

#ifndef LATER_RUNTIME
static void load(const char *name) {
  void *const library = dlopen(name, RTLD_NOW);
  if (library == NULL) fail_msg("%s", dlerror());
}

static void later_users_make_findings_possible(void) {
  assert_non_null(strstr(race("alone"), "is not ordered after the fill"));
  load(LATER_OTHER);
  assert_non_null(strstr(race("beside a library"), "is not ordered after the fill"));
  load(LATER_USER);
  const char *const said = race("beside a user");
  if (dut.gpu) assert_string_equal(said, "");
  if (!dut.gpu) assert_non_null(strstr(said, "is not ordered after the fill"));
}

TESTS_ON_EACH_DEVICE("RILL_CHECK=order, libraries loaded later", TEST(later_users_make_findings_possible))

#else
/* What a statically linked runtime contains. */
const char *later_runtime_text(void);
const char *later_runtime_text(void) { return "cudaErrorInvalidDeviceFunction"; }

static void a_linked_runtime_makes_findings_possible(void) {
  const bool cuda = dut.info.backend == RILL_BACKEND_CUDA;
  const char *const said = race("beside a runtime");
  if (cuda) assert_string_equal(said, "");
  if (!cuda) assert_non_null(strstr(said, "is not ordered after the fill"));
}

TESTS_ON_EACH_DEVICE("RILL_CHECK=order, a linked runtime", TEST(a_linked_runtime_makes_findings_possible))
#endif
