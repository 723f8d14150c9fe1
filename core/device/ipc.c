#include "core/device/ipc.h"

#include "core/device/life.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static const char ipc_magic[8] = { 'r', 'i', 'l', 'l', '-', 'i', 'p', 'c' };

_Static_assert(sizeof(struct rill__ipc_bytes) == sizeof(rill_ipc_handle) &&
                   offsetof(struct rill__ipc_bytes, check) == sizeof(rill_ipc_handle) - sizeof(uint64_t),
               "the struct has no padding, and the checksum is at its end");

/* Computes an FNV-1a hash.  Each step is a bijection, so a difference in a single byte is always detected. */
uint64_t rill__ipc_check(const struct rill__ipc_bytes *content) {
  const unsigned char *bytes = (const unsigned char *)content;
  uint64_t check = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < offsetof(struct rill__ipc_bytes, check); i++) {
    check = (check ^ bytes[i]) * UINT64_C(0x100000001b3);
  }
  return check;
}

/* Returns a number that no other process has: its id and a random number, since ids are not unique between containers.
 * A child of fork gets a new one. */
static uint64_t this_process(void) {
  static _Atomic uint64_t known;
  const uint64_t id = (uint32_t)getpid();
  uint64_t value = atomic_load(&known);
  while ((uint32_t)value != id) {
    uint32_t chance = 0;
    struct timespec now;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != (ssize_t)sizeof chance) {
      (void)clock_gettime(CLOCK_REALTIME, &now);
      chance = (uint32_t)now.tv_nsec ^ (uint32_t)now.tv_sec;
    }
    if (atomic_compare_exchange_strong(&known, &value, (uint64_t)chance << 32 | id)) return (uint64_t)chance << 32 | id;
  }
  return value;
}

static bool all_zero(const void *p, size_t size) {
  const unsigned char *bytes = p;
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

static void identify(const struct rill__device *device, uint8_t out[16]) {
  const rill_device_info *info = &device->info;
  memcpy(out, info->uuid, 16);
  if (all_zero(out, 16)) memcpy(out, info->pci_bus_id, 16);
}

void rill__ipc_write(struct rill__ipc_bytes *content, const struct rill__device *device, rill_ipc_handle *out) {
  memcpy(content->magic, ipc_magic, sizeof ipc_magic);
  content->version = RILL__IPC_VERSION;
  content->backend = (uint8_t)device->backend->id;
  content->native_size = sizeof content->native;
  identify(device, content->device);
  content->exporter = this_process();
  content->check = rill__ipc_check(content);
  memcpy(out, content, sizeof *out);
}

static const char *name_of_kind(uint8_t kind) {
  return kind == RILL__IPC_EVENT ? "an event" : kind == RILL__IPC_MEMORY ? "memory" : "something unknown";
}

/* Checks that the bytes were exported by some process with rill. */
static rill_status check_form(const struct rill__ipc_bytes *content) {
  RILL_REQUIRE(!all_zero(content, sizeof *content), RILL_ERROR_INVALID_ARGUMENT,
               "the handle contains only zeros: nothing was exported into it");
  RILL_REQUIRE(memcmp(content->magic, ipc_magic, sizeof ipc_magic) == 0, RILL_ERROR_INVALID_ARGUMENT,
               "the bytes are not a rill_ipc_handle, or the first of them are damaged" RILL_HINT
               "send all %zu bytes of the rill_ipc_handle",
               sizeof *content);
  const uint64_t check = rill__ipc_check(content);
  RILL_REQUIRE(content->check == check, RILL_ERROR_INVALID_ARGUMENT,
               "the handle is damaged or truncated: its checksum is %016llx, and %016llx was expected" RILL_HINT
               "send all %zu bytes of the rill_ipc_handle",
               (unsigned long long)content->check, (unsigned long long)check, sizeof *content);
  RILL_REQUIRE(content->version == RILL__IPC_VERSION, RILL_ERROR_UNSUPPORTED,
               "the handle has format version %u, but this library reads version %u" RILL_HINT
               "use the same version of rill in both processes",
               content->version, RILL__IPC_VERSION);
  const bool leads = content->lead == 0 || (content->lead < content->size && content->lead <= content->offset);
  RILL_REQUIRE(leads && content->native_size == sizeof content->native, RILL_ERROR_INVALID_ARGUMENT,
               "the handle is forged: it claims %u bytes before the allocation and %u native bytes", content->lead,
               content->native_size);
  return RILL_OK;
}

rill_status rill__ipc_read(const rill_ipc_handle *handle, const struct rill__device *device, uint8_t kind,
                           struct rill__ipc_bytes *out) {
  uint8_t identity[16];
  memcpy(out, handle, sizeof *out);
  RILL_TRY(check_form(out));
  RILL_REQUIRE(out->kind == kind, RILL_ERROR_INVALID_ARGUMENT,
               "the handle is for %s, not for %s" RILL_HINT
               "import memory with rill_memory_ipc_import, and an event with rill_event_ipc_import",
               name_of_kind(out->kind), name_of_kind(kind));
  const bool plausible = kind == RILL__IPC_MEMORY ? out->offset < out->size : out->size == 0 && out->offset == 0;
  RILL_REQUIRE(plausible, RILL_ERROR_INVALID_ARGUMENT,
               "the handle is forged: it claims %s at offset %llu of %llu bytes", name_of_kind(kind),
               (unsigned long long)out->offset, (unsigned long long)out->size);
  RILL_REQUIRE(out->backend == device->backend->id, RILL_ERROR_WRONG_BACKEND,
               "the handle was exported on backend %u, but %s belongs to backend %u (RILL_BACKEND_*)", out->backend,
               device->name, device->backend->id);
  identify(device, identity);
  RILL_REQUIRE(memcmp(out->device, identity, sizeof identity) == 0, RILL_ERROR_WRONG_DEVICE,
               "the handle was exported on the device with UUID %02x%02x%02x%02x..., but %s has UUID "
               "%02x%02x%02x%02x..." RILL_HINT
               "import it on the device that exported it; rill_device_get_info returns the UUID",
               out->device[0], out->device[1], out->device[2], out->device[3], device->name, identity[0], identity[1],
               identity[2], identity[3]);
  RILL_REQUIRE(
      out->exporter != this_process(), RILL_ERROR_INVALID_ARGUMENT,
      "the handle was exported by this process: no driver can open %s in the process that exported it" RILL_HINT
      "use the exported object itself; handles are for other processes",
      name_of_kind(kind));
  return RILL_OK;
}

rill_status rill__ipc_check_able(struct rill__device *device, uint32_t feature) {
  const char *const what = feature == RILL_FEATURE_IPC ? "memory" : "events";
  const char *why = "";
  RILL_TRY(rill__check_usable(device));
  RILL_REQUIRE(RILL_ASK(device, device, supports, device, feature, &why), RILL_ERROR_UNSUPPORTED,
               "%s of %s cannot be shared between processes: %s", what, device->name, why);
  return RILL_OK;
}
