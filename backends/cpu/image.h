/* Shared objects that lie in memory, loaded as dlopen loads a file. */
#ifndef RILL_CPU_IMAGE_H
#define RILL_CPU_IMAGE_H

#include "core/backend.h"

/* Loads a copy of `data`; what for is told by `name` in texts.  dlclose ends it. */
rill_status cpu_image_open(const char *name, const void *data, size_t size, void **library);

/* Puts the seal behind a shared object; `image` is from malloc.  False if there is no memory. */
bool cpu_seal(void **image, size_t *size, const char *target);

/* Slots of the module table. */
const char *cpu_recognize(const void *data, size_t size);
const char *cpu_read_parts(const void *data, size_t size, struct rill__image *out);

#endif
