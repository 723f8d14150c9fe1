/* Occupancy: how much of a device a kernel can use. */
#include "core/device/life.h"
#include "core/kernel/launch.h"

rill_status rill__cooperative_blocks(struct rill__kernel *kernel, uint32_t threads, uint64_t shared, uint64_t *blocks) {
  struct rill__device *device = kernel->base.device;
  const char *why = "";
  uint32_t per_unit = 0;
  RILL_REQUIRE(RILL_ASK(device, device, supports, device, RILL_FEATURE_COOPERATIVE, &why), RILL_ERROR_UNSUPPORTED,
               "a cooperative launch on %s: %s", device->name, why);
  RILL_TRY(RILL_DISPATCH(kernel, kernel, occupancy, kernel, threads, shared, &per_unit));
  *blocks = (uint64_t)per_unit * device->info.compute_units;
  return RILL_OK;
}
