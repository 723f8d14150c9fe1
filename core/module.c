#include "core/kernel/module.h"

#include "core/device/life.h"
#include "core/kernel/global.h"
#include "core/object/origin.h"

rill_status rill_module_load_image(rill_device device, const void *data, size_t size, rill_module *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_MODULE;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(data != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", data == NULL ? "data" : "out");
  RILL_REQUIRE(size > 0, RILL_ERROR_INVALID_ARGUMENT, "size is 0");
  RILL_TRY(rill__device_activate(d));
  struct rill__module *module = NULL;
  RILL_TRY(rill__module_load_image(d, data, size, NULL, &module));
  out->id = module->base.id;
  rill__origin_note(&module->base);
  return RILL_OK;
}

rill_status rill_module_get_global(rill_module module, const char *symbol, void **p, size_t *size) {
  RILL_ENTER();
  if (p != NULL) *p = NULL;
  if (size != NULL) *size = 0;
  struct rill__module *m;
  RILL_RESOLVE(RILL__MODULE, module, "module", &m);
  RILL_REQUIRE(symbol != NULL && p != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", symbol == NULL ? "symbol" : "p");
  RILL_TRY(rill__check_usable(m->base.device));
  void *found = NULL;
  size_t bytes = 0;
  RILL_TRY(rill__global_find(m, symbol, &found, &bytes));
  *p = found;
  if (size != NULL) *size = bytes;
  return RILL_OK;
}

rill_status rill_module_native(rill_module module, uintptr_t *out) {
  RILL_ENTER();
  if (out != NULL) *out = 0;
  struct rill__module *m;
  RILL_RESOLVE(RILL__MODULE, module, "module", &m);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  if (m->base.device->backend->module->native != NULL) *out = RILL_ASK(m, module, native, m);
  return RILL_OK;
}

rill_status rill_bundle_preload(rill_device device, const rill_bundle *bundle) {
  RILL_ENTER();
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  return rill__bundle_preload(d, bundle);
}

rill_status rill_bundle_unload(const rill_bundle *bundle) {
  RILL_ENTER();
  RILL_TRY(rill__bundle_unload(bundle));
  return RILL_OK;
}
