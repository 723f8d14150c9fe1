/* Structs that grow: the caller's struct may be older (shorter) or newer (longer) than this library's. */
#ifndef RILL_CORE_OBJECT_OPTIONS_H
#define RILL_CORE_OBJECT_OPTIONS_H

#include "core/object/error.h"

#include <rill/event.h>

/* Reads the caller's struct at `from` into `into`, which has `size` bytes and contains the defaults.  If `from` is
 * NULL, the defaults stay.  `what` is the struct's name. */
rill_status rill__options_read(void *into, size_t size, const void *from, const char *what);

/* Writes the first bytes of `from`, as many as the caller's struct has room for.  Does not change its struct_size. */
void rill__options_write(void *to, const void *from, size_t size);

/* Checks the struct_size of a struct that is to be written.  Fails for NULL. */
rill_status rill__options_check_output(const void *to, const char *what);

/* Reads and checks the options of an import.  `special`: the import is of one of the vendor's default streams. */
rill_status rill__import_options_read(rill_import_options *into, const rill_import_options *from, bool special);

#endif
