/* The threads of a device that is the host itself. */
#include "core/backend.h"

enum { WORKERS_MOST = 1024 };

static rill_status check_has_workers(const struct rill__device *device) {
  RILL_REQUIRE(device->backend->device->get_workers != NULL, RILL_ERROR_UNSUPPORTED,
               "%s runs its work by itself, without threads of this process, in every version", device->name);
  return RILL_OK;
}

rill_status rill_device_set_workers(rill_device device, uint32_t count) {
  RILL_ENTER();
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(count <= WORKERS_MOST, RILL_ERROR_OUT_OF_RANGE, "%u workers, the limit is %d", count, WORKERS_MOST);
  RILL_TRY(check_has_workers(d));
  RILL_DOOR(d, device, set_workers, d, count);
  return RILL_OK;
}

rill_status rill_device_get_workers(rill_device device, uint32_t *out) {
  RILL_ENTER();
  if (out != NULL) *out = 0;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_TRY(check_has_workers(d));
  *out = RILL_DOOR(d, device, get_workers, d);
  return RILL_OK;
}
