/* Modules and their kernels, as other files of core need them. */
#ifndef RILL_CORE_MODULE_H
#define RILL_CORE_MODULE_H

#include "core/backend.h"

/* The module of a bundle on a device, with a reference added. */
rill_status rill__module_load(struct rill__device *device, const rill_bundle *bundle, struct rill__module **out);

/* A new kernel of a module, with one reference. */
rill_status rill__module_kernel(struct rill__module *module, const char *name, struct rill__kernel **out);

/* The kernel that a reference means on a device, found or loaded; it is not the caller's to release. */
rill_status rill__ref_resolve(struct rill__device *device, const rill_kernel_ref *ref, struct rill__kernel **out);

#endif
