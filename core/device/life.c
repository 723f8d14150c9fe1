/* Activation and loss of devices. */
#include "core/device/life.h"

#include "core/diagnose/report.h"
#include "core/diagnose/settings.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

void (*_Atomic rill__device_lost_held)(struct rill__device *device);
bool (*_Atomic rill__device_watch)(struct rill__device *device);

/* Writes the operations in progress.  It runs inside an epoch, in which streams are found by their ids.  It allocates
 * nothing, because a kernel of the CPU backend may have been interrupted in the middle of malloc. */
static void describe_operations(struct rill__device *device) {
  struct rill__thread *const self = rill__self;
  struct rill__text text = { rill__core(device)->cause.operations, RILL__OPERATIONS_TEXT, 0 };
  const bool outside = rill__is_outside_epochs();
  if (self == NULL || text.room == NULL) return;
  if (outside) rill__enter_epoch(self);
  rill__operations_report(device, &text);
  if (outside) rill__leave(&self);
}

/* Returns true for the first thread, which writes the cause and then publishes it.  Other threads wait for these few
 * stores. */
static bool begin_loss(struct rill__device *device) {
  if (!atomic_exchange(&rill__core(device)->losing, true)) return true;
  while (atomic_load_explicit(&device->lost, memory_order_acquire) == RILL_OK) (void)sched_yield();
  return false;
}

rill_status rill__device_lost(struct rill__device *device, int32_t code, const char *name, const char *format, ...) {
  if (rill__self == NULL) (void)rill__thread_attach();
  if (begin_loss(device)) {
    va_list list;
    va_start(list, format);
    (void)vsnprintf(rill__core(device)->cause.text, sizeof rill__core(device)->cause.text, format, list);
    va_end(list);
    rill__core(device)->cause.code = code;
    describe_operations(device);
    (void)snprintf(rill__core(device)->cause.name, sizeof rill__core(device)->cause.name, "%s", name);
    atomic_store_explicit(&device->lost, RILL_ERROR_DEVICE_LOST, memory_order_release);
  }
  if (atomic_load(&rill__core(device)->held_streams) != 0) atomic_load (&rill__device_lost_held)(device);
  return rill__fail_lost(device);
}

void rill__device_close(struct rill__device *device, rill_status status, const char *text) {
  if (!begin_loss(device)) return;
  (void)snprintf(rill__core(device)->cause.text, sizeof rill__core(device)->cause.text, "%s", text);
  atomic_store_explicit(&device->lost, status, memory_order_release);
}

void rill__device_renew(struct rill__device *device) {
  if (rill__core(device)->cause.operations != NULL) rill__core(device)->cause.operations[0] = '\0';
  atomic_store(&rill__core(device)->losing, false);
  atomic_store(&device->lost, RILL_OK);
}

rill_status rill__fail_lost(struct rill__device *device) {
  const rill_status status = atomic_load_explicit(&device->lost, memory_order_acquire);
  if (status != RILL_ERROR_DEVICE_LOST)
    return rill__fail(status, "%s: %s", device->name, rill__core(device)->cause.text);
  const char *const operations = rill__core(device)->cause.operations;
  return rill__fail_native(status, rill__core(device)->cause.code, rill__core(device)->cause.name,
                           "%s is lost: %s%s" RILL_HINT
                           "the process cannot use this device again; restart the program, or use another device",
                           device->name, rill__core(device)->cause.text, operations != NULL ? operations : "");
}

_Atomic bool rill__is_shared;
_Atomic uint32_t rill__shared_vendors;

/* Starts the check once; a device whose activation fails afterwards stays checked. */
static rill_status watch_device(struct rill__device *device) {
  if (!rill__checks(RILL__CHECK_MEMORY) || rill__core(device)->guards != NULL) return RILL_OK;
  RILL_REQUIRE(atomic_load(&rill__device_watch)(device), RILL_ERROR_OUT_OF_MEMORY,
               "no host memory to check the memory of %s", device->name);
  return RILL_OK;
}

rill_status rill__device_activate(struct rill__device *device) {
  RILL_TRY(rill__check_usable(device));
  if (atomic_load_explicit(&device->active, memory_order_acquire)) return RILL_OK;
  rill_status status = RILL_OK;
  pthread_mutex_lock(&rill__core(device)->lock);
  if (!atomic_load(&device->active)) {
    status = watch_device(device);
    if (status == RILL_OK) status = RILL_DISPATCH(device, device, activate, device);
    if (status == RILL_OK) atomic_store_explicit(&device->active, true, memory_order_release);
  }
  pthread_mutex_unlock(&rill__core(device)->lock);
  return status;
}

rill_status rill__fail_other_backend(const struct rill__object *a, const struct rill__object *b) {
  return rill__fail(RILL_ERROR_WRONG_BACKEND,
                    "%s belongs to %s, but %s to %s" RILL_HINT "order work across backends with host waits",
                    rill__name_of(a).text, a->device->name, rill__name_of(b).text, b->device->name);
}

rill_status rill__fail_other_device(const struct rill__object *a, const struct rill__object *b) {
  RILL_TRY(rill__check_same_backend(a, b));
  return rill__fail(RILL_ERROR_WRONG_DEVICE, "%s belongs to %s, but %s to %s", rill__name_of(a).text, a->device->name,
                    rill__name_of(b).text, b->device->name);
}
