/* Variables of modules. */
#ifndef RILL_CORE_KERNEL_GLOBAL_H
#define RILL_CORE_KERNEL_GLOBAL_H

#include "core/object/core.h"

/* Address and size of a variable, which stands in the map of allocations from then on; NOT_FOUND with a text. */
rill_status rill__global_find(struct rill__module *module, const char *symbol, void **p, size_t *size);

/* Takes the variables of a module that ends out of the map. */
void rill__globals_forget(struct rill__module *module);

/* What fork must not happen in the middle of. */
void rill__globals_lock(void);
void rill__globals_unlock(void);

#endif
