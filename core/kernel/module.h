/* Modules and their kernels, as other files of core need them. */
#ifndef RILL_CORE_KERNEL_MODULE_H
#define RILL_CORE_KERNEL_MODULE_H

#include "core/object/core.h"

/* ---- core/kernel/module.c ---- */

struct rill__module_source {
  const char *label;
  const rill_bundle *bundle;     /* NULL: none */
  const rill_bundle_image *part; /* what is loaded; not needed afterwards */
  struct rill__image *inside;    /* what it holds: goes over to the module, and is empty afterwards */
};

/* A new module, with one reference, that nobody else knows of. */
rill_status rill__module_new(struct rill__device *device, const struct rill__module_source *source,
                             struct rill__module **out);

/* The part that fits the device best; NULL if none does.  And the text of that. */
const rill_bundle_image *rill__module_best(struct rill__device *device, const rill_bundle_image *parts, size_t count);
rill_status rill__fail_no_part(struct rill__device *device, const char *what, const rill_bundle_image *parts,
                               size_t count);

/* Takes a reference away; the other ends the module, whose last one went. */
void rill__module_release(struct rill__module *module);
void rill__module_end(struct rill__module *module);

/* A new kernel of a module, with one reference. */
rill_status rill__module_kernel(struct rill__module *module, const char *name, struct rill__kernel **out);

/* ---- core/kernel/module_image.c ---- */

/* A new module of an image that no bundle holds; `label` names it in texts, NULL: its target does. */
rill_status rill__module_load_image(struct rill__device *device, const void *data, size_t size, const char *label,
                                    struct rill__module **out);

/* ---- core/kernel/bundle.c ---- */

/* The module of a bundle on a device, with a reference added. */
rill_status rill__module_load(struct rill__device *device, const rill_bundle *bundle, struct rill__module **out);

/* Loads it, with the kernels that references find later; and takes its modules and those kernels away. */
rill_status rill__bundle_preload(struct rill__device *device, const rill_bundle *bundle);
rill_status rill__bundle_unload(const rill_bundle *bundle);

/* No bundle finds this module any more. */
void rill__bundle_forget(struct rill__module *module);

/* The kernel that a reference means on a device, found or loaded; it is not the caller's to release. */
rill_status rill__ref_resolve(struct rill__device *device, const rill_kernel_ref *ref, struct rill__kernel **out);

/* What fork must not happen in the middle of. */
void rill__modules_lock(void);
void rill__modules_unlock(void);

#endif
