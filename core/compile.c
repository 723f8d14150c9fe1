#include "core/kernel/compile.h"

#include "core/object/options.h"
#include "core/object/origin.h"

const char *rill_compile_log(void) { return rill__compile_log(); }

rill_status rill_module_compile(rill_device device, const char *source, const rill_compile_options *options,
                                rill_module *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_MODULE;
  rill__compile_log_clear();
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(source != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               source == NULL ? "source" : "out");
  rill_compile_options o = RILL_COMPILE_OPTIONS_INIT;
  RILL_TRY(rill__options_read(&o, sizeof o, options, "rill_compile_options"));
  RILL_TRY(rill__compile_check_options(&o));
  RILL_TRY(rill__compile_check_device(d));
  rill__leave(&self); /* devices live until the process ends, and compiling takes a long time */
  struct rill__module *module = NULL;
  RILL_TRY(rill__compile(d, source, &o, &module));
  out->id = module->base.id;
  rill__origin_note(&module->base);
  return RILL_OK;
}
