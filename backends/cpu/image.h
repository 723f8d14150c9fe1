/* Shared objects that lie in memory, loaded as dlopen loads a file. */
#ifndef RILL_CPU_IMAGE_H
#define RILL_CPU_IMAGE_H

#include "core/backend.h"

#include <rill/device/cpu_image.h>

/* What is wrong with bytes that should be a shared object of this machine, or NULL. */
const char *rill__cpu_image_fault(const void *data, size_t size);

/* Loads a copy of `data`; `name` says in texts what for.  dlclose ends it; `kept` is then to be closed, if it is not
 * -1. */
rill_status rill__cpu_image_open(const char *name, const void *data, size_t size, void **library, int *kept);

/* The variables among the symbols of a shared object that is loaded at `base`; the list is to be freed, and has
 * their names.  False if there is no memory. */
struct cpu_variables {
  rill_cpu_variable *list;
  size_t count;
};
bool rill__cpu_variables_read(const void *data, size_t size, uintptr_t base, struct cpu_variables *out);

/* What an image whose kernels check themselves has in memory.  Variables at their addresses, and the
 * thread-local ones, which shared arrays are, at their offsets in a thread's block of them; both in order. */
struct cpu_object {
  uintptr_t begin;
  size_t size;
  const char *name; /* in the source */
};
struct cpu_object_list {
  struct cpu_object *objects;
  size_t count;
};
struct cpu_objects {
  struct cpu_object_list variables, locals;
  uintptr_t begin, end;             /* of the image */
  uintptr_t data_begin, data_end;   /* of what can be written, where variables are; */
  uintptr_t relro_begin, relro_end; /* but not here */
  size_t local_bytes;               /* of a thread's block */
  uintptr_t state;                  /* RILL_CPU_CHECK_STATE, among the locals */
  char *names;
};

/* NULL, or why not.  `free` takes one that is all zero, too. */
const char *rill__cpu_objects_read(const void *data, size_t size, uintptr_t base, struct cpu_objects *out);
void rill__cpu_objects_free(struct cpu_objects *objects);

/* Puts the seal after a shared object; `image` is from malloc.  False if there is no memory. */
bool rill__cpu_seal(void **image, size_t *size, const char *target);

/* stacks.c.  What a compiler's -fstack-usage says of an image: the bytes that a thread of any of its kernels needs, or
 * false, and why that has no bound or is too much; and where that is noted in the image. */
bool rill__cpu_stacks_read(const char *sizes, uint64_t *need, char *why, size_t why_size);
void rill__cpu_stacks_write(void *image, size_t size, uint64_t need);

/* Slots of the module table. */
const char *rill__cpu_recognize(const void *data, size_t size);
const char *rill__cpu_read_parts(const void *data, size_t size, struct rill__image *out);

#endif
