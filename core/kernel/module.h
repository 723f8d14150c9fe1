/* Modules and their kernels, for other files of core. */
#ifndef RILL_CORE_KERNEL_MODULE_H
#define RILL_CORE_KERNEL_MODULE_H

#include "core/object/core.h"

/* ---- core/kernel/module.c ---- */

struct rill__module_source {
  const char *label;
  const rill_bundle *bundle;     /* NULL if there is none */
  const rill_bundle_image *part; /* the part to load; not needed afterwards */
  struct rill__image *inside;    /* contents of the image; moved to the module, and empty afterwards */
};

/* Creates a module, with one reference, that no other thread knows. */
rill_status rill__module_new(struct rill__device *device, const struct rill__module_source *source,
                             struct rill__module **out);

/* Returns the part that fits the device best, or NULL if none does. */
const rill_bundle_image *rill__module_best(struct rill__device *device, const rill_bundle_image *parts, size_t count);
/* Fails because no part fits the device. */
rill_status rill__fail_no_part(struct rill__device *device, const char *what, const rill_bundle_image *parts,
                               size_t count);

/* Drops a reference. */
void rill__module_release(struct rill__module *module);
/* Ends a module whose last reference was dropped. */
void rill__module_end(struct rill__module *module);

/* Creates a kernel of a module, with one reference. */
rill_status rill__module_kernel(struct rill__module *module, const char *name, struct rill__kernel **out);

/* ---- core/kernel/module_image.c ---- */

/* Creates a module from an image that is in no bundle.  `label`: its name in messages; NULL: its target. */
rill_status rill__module_load_image(struct rill__device *device, const void *data, size_t size, const char *label,
                                    struct rill__module **out);

/* ---- core/kernel/bundle.c ---- */

/* Returns the module of a bundle on a device, with a reference. */
rill_status rill__module_load(struct rill__device *device, const rill_bundle *bundle, struct rill__module **out);

/* Loads a bundle, with the kernels that references will find. */
rill_status rill__bundle_preload(struct rill__device *device, const rill_bundle *bundle);
/* Removes the modules of a bundle and those kernels. */
rill_status rill__bundle_unload(const rill_bundle *bundle);

/* Removes a module from the list in which modules are looked up by their bundle. */
void rill__bundle_forget(struct rill__module *module);

/* Returns the kernel of a reference on a device, which is looked up or loaded.  The caller must not release it. */
rill_status rill__ref_resolve(struct rill__device *device, const rill_kernel_ref *ref, struct rill__kernel **out);

/* Lock and unlock the list of modules, around a fork. */
void rill__modules_lock(void);
void rill__modules_unlock(void);

#endif
