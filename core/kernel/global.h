/* Variables of modules. */
#ifndef RILL_CORE_KERNEL_GLOBAL_H
#define RILL_CORE_KERNEL_GLOBAL_H

#include "core/call.h"

/* Address and size of a variable, which stands in the map of allocations from then on; NOT_FOUND with a text. */
rill_status rill__global_find(struct rill__module *module, const char *symbol, void **p, size_t *size);

/* Takes the variables of a module that ends out of the map. */
void rill__globals_forget(struct rill__module *module);

#endif
