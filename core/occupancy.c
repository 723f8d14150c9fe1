#include "core/device/life.h"
#include "core/kernel/launch.h"

/* Checks a block of `threads` threads with `shared` bytes of dynamic shared memory. */
static rill_status check_block(struct rill__kernel *kernel, uint32_t threads, uint64_t shared) {
  RILL_REQUIRE(threads != 0, RILL_ERROR_INVALID_ARGUMENT, "kernel \"%s\": block_threads is 0", kernel->name);
  RILL_REQUIRE(threads <= kernel->max_threads, RILL_ERROR_OUT_OF_RANGE,
               "kernel \"%s\": a block of %u threads, but the limit is %u", kernel->name, threads, kernel->max_threads);
  return rill__launch_check_shared(kernel, shared);
}

rill_status rill_kernel_occupancy(rill_kernel kernel, uint32_t block_threads, size_t shared,
                                  uint32_t *blocks_per_unit) {
  RILL_ENTER();
  if (blocks_per_unit != NULL) *blocks_per_unit = 0;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_REQUIRE(blocks_per_unit != NULL, RILL_ERROR_INVALID_ARGUMENT, "blocks_per_unit is NULL");
  RILL_TRY(rill__check_usable(k->base.device));
  RILL_TRY(check_block(k, block_threads, shared));
  return RILL_DISPATCH(k, kernel, occupancy, k, block_threads, shared, blocks_per_unit);
}

rill_status rill_kernel_suggest_block(rill_kernel kernel, size_t shared, uint32_t limit, uint32_t *block_threads,
                                      uint32_t *blocks) {
  RILL_ENTER();
  if (block_threads != NULL) *block_threads = 0;
  if (blocks != NULL) *blocks = 0;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_REQUIRE(block_threads != NULL && blocks != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               block_threads == NULL ? "block_threads" : "blocks");
  RILL_TRY(rill__check_usable(k->base.device));
  RILL_TRY(rill__launch_check_shared(k, shared));
  const uint32_t most = limit == 0 || limit > k->max_threads ? k->max_threads : limit;
  uint32_t threads = 0, filling = 0;
  RILL_TRY(RILL_DISPATCH(k, kernel, suggest_block, k, shared, most, &threads, &filling));
  *block_threads = threads;
  *blocks = filling;
  return RILL_OK;
}

/* The more shared memory a block has, the fewer blocks run at a time.  The result is the largest size for which at
 * least `blocks_per_unit` blocks still run. */
rill_status rill_kernel_available_shared(rill_kernel kernel, uint32_t block_threads, uint32_t blocks_per_unit,
                                         size_t *shared) {
  RILL_ENTER();
  if (shared != NULL) *shared = 0;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_REQUIRE(shared != NULL, RILL_ERROR_INVALID_ARGUMENT, "shared is NULL");
  RILL_REQUIRE(blocks_per_unit != 0, RILL_ERROR_INVALID_ARGUMENT, "blocks_per_unit is 0");
  RILL_TRY(rill__check_usable(k->base.device));
  const uint64_t limit = k->base.device->info.shared_per_block_optin;
  const uint64_t most = limit > k->static_shared ? limit - k->static_shared : 0;
  RILL_TRY(check_block(k, block_threads, most));
  uint32_t blocks = 0;
  RILL_TRY(RILL_DISPATCH(k, kernel, occupancy, k, block_threads, 0, &blocks));
  RILL_REQUIRE(blocks >= blocks_per_unit, RILL_ERROR_OUT_OF_RANGE,
               "kernel \"%s\": a compute unit of %s runs %u blocks of %u threads at a time, not %u", k->name,
               k->base.device->name, blocks, block_threads, blocks_per_unit);
  uint64_t fits = 0, too_much = most + 1;
  while (too_much - fits > 1) {
    const uint64_t middle = fits + (too_much - fits) / 2;
    RILL_TRY(RILL_DISPATCH(k, kernel, occupancy, k, block_threads, middle, &blocks));
    if (blocks >= blocks_per_unit) {
      fits = middle;
    } else {
      too_much = middle;
    }
  }
  *shared = (size_t)fits;
  return RILL_OK;
}

rill_status rill_kernel_cooperative_blocks(rill_kernel kernel, uint32_t block_threads, size_t shared,
                                           uint32_t *blocks) {
  RILL_ENTER();
  if (blocks != NULL) *blocks = 0;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_REQUIRE(blocks != NULL, RILL_ERROR_INVALID_ARGUMENT, "blocks is NULL");
  RILL_TRY(rill__check_usable(k->base.device));
  RILL_TRY(check_block(k, block_threads, shared));
  uint64_t most = 0;
  RILL_TRY(rill__cooperative_blocks(k, block_threads, shared, &most));
  *blocks = most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
  return RILL_OK;
}

rill_status rill_kernel_active_clusters(rill_kernel kernel, const rill_launch *launch, uint32_t *clusters) {
  RILL_ENTER();
  if (clusters != NULL) *clusters = 0;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_REQUIRE(launch != NULL && clusters != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               launch == NULL ? "launch" : "clusters");
  struct rill__device *device = k->base.device;
  const char *why = "";
  RILL_REQUIRE(RILL_ASK(device, device, supports, device, RILL_FEATURE_CLUSTER, &why), RILL_ERROR_UNSUPPORTED,
               "rill_launch.cluster on %s: %s", device->name, why);
  rill_launch shape;
  RILL_TRY(rill__launch_read(&shape, launch));
  RILL_TRY(rill__check_usable(device));
  struct rill__launch l = { .kernel = k };
  RILL_TRY(rill__launch_check_shape(k, &shape, &l));
  RILL_REQUIRE(l.clustered, RILL_ERROR_INVALID_ARGUMENT,
               "launch->cluster is %u, %u, %u, which is not a cluster of several blocks", shape.cluster.x,
               shape.cluster.y, shape.cluster.z);
  RILL_REQUIRE(device->backend->kernel->active_clusters != NULL, RILL_ERROR_UNSUPPORTED,
               "%s does not report how many clusters run at a time", device->name);
  return RILL_DISPATCH(k, kernel, active_clusters, k, &l, clusters);
}
