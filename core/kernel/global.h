/* Variables of modules. */
#ifndef RILL_CORE_KERNEL_GLOBAL_H
#define RILL_CORE_KERNEL_GLOBAL_H

#include "core/object/core.h"

/* Returns the address and size of a variable, which is in the map of allocations from then on; fails with NOT_FOUND and
 * a text. */
rill_status rill__global_find(struct rill__module *module, const char *symbol, void **p, size_t *size);

/* Removes the variables of a module that is being destroyed from the map. */
void rill__globals_forget(struct rill__module *module);

/* Lock and unlock the lists, around a fork. */
void rill__globals_lock(void);
void rill__globals_unlock(void);

#endif
