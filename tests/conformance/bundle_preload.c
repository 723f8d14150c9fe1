/* rill_bundle_preload */
#include "support/testing.h"

#include "gate.rill.h"
#include "launch.rill.h"

#include <rill/bundle.h>

static const rill_launch one_thread = {
  sizeof one_thread, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

static rill_status call_with_device(uint64_t id) { return rill_bundle_preload((rill_device){ id }, &gate_bundle); }

static void refuses_bad_handles(void) { refuses_bad_devices("rill_bundle_preload", call_with_device); }

/* K1 */
static void refuses_invalid_bundles(void) {
  rill_bundle bundle = gate_bundle;
  assert_fails(rill_bundle_preload(dut.device, NULL), RILL_ERROR_INVALID_ARGUMENT);
  bundle.magic++;
  assert_fails(rill_bundle_preload(dut.device, &bundle), RILL_ERROR_INVALID_ARGUMENT);
  bundle = gate_bundle;
  bundle.image_count = 0;
  assert_fails(rill_bundle_preload(dut.device, &bundle), RILL_ERROR_NOT_FOUND);
  assert_says("is needed");
}

/* A kernel that the bundle lists but its image lacks is reported by this call, not by the first launch (K11). */
static void reports_missing_kernels(void) {
  const rill_bundle_kernel kernels[] = { gate_bundle.kernels[0], { "not_inside", NULL, 0 } };
  rill_bundle bundle = gate_bundle;
  bundle.kernels = kernels;
  bundle.kernel_count = 2;
  assert_fails(rill_bundle_preload(dut.device, &bundle), RILL_ERROR_NOT_FOUND);
  assert_says("not_inside");
  assert_ok(rill_bundle_unload(&bundle));
}

static void launch_and_check(rill_kernel_ref *ref, uint32_t value) {
  rill_stream stream = new_stream("stream");
  uint32_t *out = dut.memory;
  assert_ok(rill_stream_launch_ref(stream, ref, &one_thread, RILL_ARGS(value, out)));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], value);
}

/* C6.6 */
static void launches_by_reference_after_it(void) {
  rill_bundle bundle = launch_bundle;
  rill_kernel_ref ref = { &bundle, "store", { 0, 0 } };
  for (int i = 0; i < 3; i++) assert_ok(rill_bundle_preload(dut.device, &bundle)); /* repeated calls do nothing */
  launch_and_check(&ref, 5);
  assert_ok(rill_bundle_unload(&bundle));
}

/* C6.6: after the call, the images are not read again. */
static void moves_loading_out_of_the_first_launch(void) {
  rill_bundle bundle = launch_bundle;
  rill_kernel_ref ref = { &bundle, "store", { 0, 0 } };
  assert_ok(rill_bundle_preload(dut.device, &bundle));
  bundle.images = NULL;
  bundle.image_count = 0;
  launch_and_check(&ref, 9);
  assert_ok(rill_bundle_unload(&bundle));
}

/* A module that was loaded earlier is shared. */
static void shares_the_module(void) {
  rill_bundle bundle = gate_bundle;
  rill_module first, second;
  assert_ok(rill_module_load(dut.device, &bundle, &first));
  assert_ok(rill_bundle_preload(dut.device, &bundle));
  assert_ok(rill_module_load(dut.device, &bundle, &second));
  assert_int_equal(first.id, second.id);
  assert_ok(rill_module_release(first));
  assert_ok(rill_module_release(second));
  assert_ok(rill_bundle_unload(&bundle));
}

static const char *preloads(unsigned index, void *shared) {
  rill_bundle *bundle = shared;
  rill_kernel_ref ref = { bundle, "store", { 0, 0 } };
  uint32_t *out = dut.memory + index;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  if (index % 2 == 0) REQUIRE_OK(rill_bundle_preload(dut.device, bundle));
  REQUIRE_OK(rill_stream_launch_ref(stream, &ref, &one_thread, RILL_ARGS(index + 1, out)));
  REQUIRE_OK(rill_copy_async(stream, dut.host + index, out, sizeof *out));
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  REQUIRE(dut.host[index] == index + 1);
  return NULL;
}

/* K10 */
static void serves_many_threads(void) {
  rill_bundle bundle = launch_bundle;
  for (int i = 0; i < 5; i++) {
    run_threads(8, preloads, &bundle);
    assert_ok(rill_bundle_unload(&bundle));
  }
}

TESTS_ON_EACH_DEVICE("rill_bundle_preload", TEST(refuses_bad_handles), TEST(refuses_invalid_bundles),
                     TEST(reports_missing_kernels), TEST(launches_by_reference_after_it),
                     TEST(moves_loading_out_of_the_first_launch), TEST(shares_the_module), TEST(serves_many_threads))
