/* Which devices reach each other's memory. */
#include "core/device/life.h"

static uint32_t word_of(const struct rill__device *device) { return (uint32_t)device->info.ordinal / 64; }
static uint64_t bit_of(const struct rill__device *device) { return UINT64_C(1) << (uint32_t)device->info.ordinal % 64; }

static bool can_access(struct rill__device *device, struct rill__device *memory_of, const char **why) {
  *why = "";
  if (device == memory_of) return true;
  *why = "the devices are of two backends";
  if (device->backend != memory_of->backend) return false;
  *why = "devices of this backend do not reach each other's memory";
  if (device->backend->device->can_access_peer == NULL) return false;
  *why = "more devices than rill can keep track of";
  if (word_of(memory_of) >= sizeof device->peers / sizeof *device->peers) return false;
  return RILL_DOOR(device, device, can_access_peer, device, memory_of, why);
}

bool rill_device_can_access_peer(rill_device device, rill_device memory_of, const char **why) {
  const char *reason = "the handle is no device";
  bool answer = false;
  struct rill__thread *const self __attribute__((cleanup(rill__leave))) = rill__enter(__func__);
  struct rill__device *d = self == NULL ? NULL : rill__find(device.id, RILL__DEVICE);
  struct rill__device *m = self == NULL ? NULL : rill__find(memory_of.id, RILL__DEVICE);
  if (d != NULL && m != NULL) answer = can_access(d, m, &reason);
  if (why != NULL) *why = reason;
  return answer;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who change peers; nothing else waits for it */

static bool is_on(struct rill__device *device, struct rill__device *memory_of) {
  return (atomic_load(&device->peers[word_of(memory_of)]) & bit_of(memory_of)) != 0;
}

/* For two devices that can.  Both live for ever, so this runs outside epochs: the driver may take its time. */
static rill_status set_peer(struct rill__device *device, struct rill__device *memory_of, bool on) {
  RILL_TRY(rill__check_usable(device));
  if (is_on(device, memory_of) == on) return RILL_OK; /* without making contexts, and without a wait */
  RILL_TRY(rill__device_activate(device));
  RILL_TRY(rill__device_activate(memory_of));
  pthread_mutex_lock(&lock);
  rill_status status = RILL_OK;
  if (is_on(device, memory_of) != on) {
    status = RILL_DOOR(device, device, set_peer, device, memory_of, on);
    if (status == RILL_OK) atomic_fetch_xor(&device->peers[word_of(memory_of)], bit_of(memory_of));
  }
  pthread_mutex_unlock(&lock);
  return status;
}

rill_status rill_device_enable_peer(rill_device device, rill_device memory_of) {
  RILL_ENTER();
  struct rill__device *d, *m;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_RESOLVE(RILL__DEVICE, memory_of, "memory_of", &m);
  RILL_TRY(rill__check_same_backend(&d->base, &m->base));
  if (d == m) return RILL_OK;
  const char *why = "";
  RILL_REQUIRE(can_access(d, m, &why), RILL_ERROR_UNSUPPORTED,
               "memory_of: %s cannot reach the memory of %s, in any version: %s" RILL_HINT
               "copies between them work all the same",
               d->name, m->name, why);
  rill__leave(&self);
  return set_peer(d, m, true);
}

rill_status rill_device_disable_peer(rill_device device, rill_device memory_of) {
  RILL_ENTER();
  struct rill__device *d, *m;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_RESOLVE(RILL__DEVICE, memory_of, "memory_of", &m);
  RILL_TRY(rill__check_same_backend(&d->base, &m->base));
  const char *why = "";
  if (d == m || !can_access(d, m, &why)) return RILL_OK; /* nothing can be on */
  rill__leave(&self);
  return set_peer(d, m, false);
}

rill_status rill_device_is_peer_enabled(rill_device device, rill_device memory_of, bool *out) {
  RILL_ENTER();
  if (out != NULL) *out = false;
  struct rill__device *d, *m;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_RESOLVE(RILL__DEVICE, memory_of, "memory_of", &m);
  RILL_TRY(rill__check_same_backend(&d->base, &m->base));
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  *out = d == m || (word_of(m) < sizeof d->peers / sizeof *d->peers && is_on(d, m));
  return RILL_OK;
}
