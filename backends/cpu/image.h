/* Shared objects in memory, loaded like files with dlopen. */
#ifndef RILL_CPU_IMAGE_H
#define RILL_CPU_IMAGE_H

#include "core/backend.h"

#include <rill/device/cpu_image.h>

/* Returns the reason why the bytes are not a shared object for this machine, or NULL. */
const char *rill__cpu_image_fault(const void *data, size_t size);

/* Loads a copy of `data`.  `name`: for error messages.  The caller closes the library with dlclose, and then `kept`, a
 * file descriptor or -1. */
rill_status rill__cpu_image_open(const char *name, const void *data, size_t size, void **library, int *kept);

/* Reads the variables from the symbols of a shared object that is loaded at `base`.  The caller frees the list, which
 * also holds the names.  Returns false if memory ran out. */
struct cpu_variables {
  rill_cpu_variable *list;
  size_t count;
};
bool rill__cpu_variables_read(const void *data, size_t size, uintptr_t base, struct cpu_variables *out);

/* The objects in memory of an image whose kernels check themselves.  Variables have their addresses; thread-local
 * variables, which implement shared arrays, have their offsets in a thread's block.  Both lists are sorted. */
struct cpu_object {
  uintptr_t begin;
  size_t size;
  const char *name; /* as written in the source */
};
struct cpu_object_list {
  struct cpu_object *objects;
  size_t count;
};
struct cpu_objects {
  struct cpu_object_list variables, locals;
  uintptr_t begin, end;             /* range of the image */
  uintptr_t data_begin, data_end;   /* writable range, which holds the variables ... */
  uintptr_t relro_begin, relro_end; /* ... except for this range, read-only after relocation */
  size_t local_bytes;               /* size of a thread's block of thread-local variables */
  uintptr_t state;                  /* offset of RILL_CPU_CHECK_STATE in that block */
  char *names;
};

/* Returns NULL, or the reason for the failure.  rill__cpu_objects_free accepts an object that is all zero. */
const char *rill__cpu_objects_read(const void *data, size_t size, uintptr_t base, struct cpu_objects *out);
void rill__cpu_objects_free(struct cpu_objects *objects);

/* Appends the seal to a shared object.  `image`: from malloc, and may be moved.  Returns false if memory ran out. */
bool rill__cpu_seal(void **image, size_t *size, const char *target);

/* stacks.c: rill__cpu_stacks_read reads the output of a compiler's -fstack-usage, and returns the bytes of stack that a
 * thread of any kernel of the image needs.  Returns false with a reason if there is no bound or too much is needed.
 * The second function stores the value in the image. */
bool rill__cpu_stacks_read(const char *sizes, uint64_t *need, char *why, size_t why_size);
void rill__cpu_stacks_write(void *image, size_t size, uint64_t need);

/* Functions of the module table. */
const char *rill__cpu_recognize(const void *data, size_t size);
const char *rill__cpu_read_parts(const void *data, size_t size, struct rill__image *out);

#endif
