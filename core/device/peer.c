/* Access of devices to each other's memory. */
#include "core/device/peer.h"

#include "core/device/life.h"

static uint32_t peer_word(const struct rill__device *device) { return (uint32_t)device->info.ordinal / 64; }

static uint64_t peer_bit(const struct rill__device *device) {
  return UINT64_C(1) << (uint32_t)device->info.ordinal % 64;
}

bool rill__peer_can_access(struct rill__device *device, struct rill__device *memory_of, const char **why) {
  *why = "";
  if (device == memory_of) return true;
  *why = "the devices belong to different backends";
  if (device->backend != memory_of->backend) return false;
  *why = "devices of this backend do not access each other's memory";
  if (device->backend->device->can_access_peer == NULL) return false;
  *why = "rill does not track peer access for so many devices";
  if (peer_word(memory_of) >= sizeof rill__core(device)->peers / sizeof *rill__core(device)->peers) return false;
  return RILL_ASK(device, device, can_access_peer, device, memory_of, why);
}

static pthread_mutex_t peers_lock =
    PTHREAD_MUTEX_INITIALIZER; /* taken to change peers; no other lock is taken under it */

bool rill__peer_is_enabled(struct rill__device *device, struct rill__device *memory_of) {
  return (atomic_load(&rill__core(device)->peers[peer_word(memory_of)]) & peer_bit(memory_of)) != 0;
}

/* Sets the access for two devices that support it.  It runs outside epochs, because the driver may take a long time;
 * devices are never destroyed. */
rill_status rill__peer_set(struct rill__device *device, struct rill__device *memory_of, bool on) {
  RILL_TRY(rill__check_usable(device));
  /* This check creates no contexts and waits for nothing. */
  if (rill__peer_is_enabled(device, memory_of) == on) return RILL_OK;
  RILL_TRY(rill__device_activate(device));
  RILL_TRY(rill__device_activate(memory_of));
  pthread_mutex_lock(&peers_lock);
  rill_status status = RILL_OK;
  if (rill__peer_is_enabled(device, memory_of) != on) {
    status = RILL_DISPATCH(device, device, set_peer, device, memory_of, on);
    if (status == RILL_OK) atomic_fetch_xor(&rill__core(device)->peers[peer_word(memory_of)], peer_bit(memory_of));
  }
  pthread_mutex_unlock(&peers_lock);
  return status;
}
