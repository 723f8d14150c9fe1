/* rill_kernel_active_clusters */
#include "support/testing.h"

#include "launch.rill.h"

static const rill_launch pairs = { sizeof pairs, { 4, 1, 1 }, { 32, 1, 1 }, { 2, 1, 1 }, 0, 0, NULL, 0, NULL, 0, NULL };

static rill_status call_with_kernel(uint64_t id) {
  uint32_t clusters = 1;
  const rill_status status = rill_kernel_active_clusters((rill_kernel){ id }, &pairs, &clusters);
  assert_int_equal(clusters, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_kernels("rill_kernel_active_clusters", call_with_kernel); }

static void refuses_null(void) {
  uint32_t clusters = 1;
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  assert_fails(rill_kernel_active_clusters(kernel, &pairs, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_kernel_active_clusters(kernel, NULL, &clusters), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(clusters, 0);
}

/* C6.3, C1.8, L10 */
static void is_what_the_device_runs_at_once(void) {
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  uint32_t clusters = 1, per_unit = 0;
  const char *why = NULL;
  if (!rill_device_supports(dut.device, RILL_FEATURE_CLUSTER, &why)) {
    assert_fails(rill_kernel_active_clusters(kernel, &pairs, &clusters), RILL_ERROR_UNSUPPORTED);
    assert_int_equal(clusters, 0);
    assert_says(dut.name);
    assert_says(why);
    return;
  }
  assert_ok(rill_kernel_active_clusters(kernel, &pairs, &clusters));
  assert_ok(rill_kernel_occupancy(kernel, 32, 0, &per_unit));
  assert_true(clusters >= 1 && clusters <= per_unit * dut.info.compute_units / 2);
  rill_launch launch = pairs;
  launch.cluster = (rill_dim3){ 0, 0, 0 };
  assert_fails(rill_kernel_active_clusters(kernel, &launch, &clusters), RILL_ERROR_INVALID_ARGUMENT);
  launch = pairs;
  launch.cluster.x = 3; /* 4 blocks are not a multiple of 3 */
  assert_fails(rill_kernel_active_clusters(kernel, &launch, &clusters), RILL_ERROR_INVALID_ARGUMENT);
  launch = pairs;
  launch.grid.x = launch.cluster.x = 1024;
  assert_fails(rill_kernel_active_clusters(kernel, &launch, &clusters), RILL_ERROR_OUT_OF_RANGE);
  assert_int_equal(clusters, 0);
}

TESTS_ON_EACH_DEVICE("rill_kernel_active_clusters", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(is_what_the_device_runs_at_once))
