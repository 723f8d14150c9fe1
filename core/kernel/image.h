/* The contents of an image of kernels: its parts, each for one target, and its kernels with their arguments.
 *
 * Each module has its own, copied from a bundle or read from the bytes of an image that rillcc did not bundle.  Once it
 * is loaded, the module needs neither the bundle nor the bytes.
 *
 * Readers of formats are pure functions over arbitrary bytes.  They read nothing outside of them, trust no number in
 * them, and return NULL or a text that says what is wrong: a static text, or one with numbers that the image owns.  If
 * memory runs out, they set `no_memory` and either continue or return any text.
 *
 * Their running time is proportional to the number of bytes: no byte is read for more than one part, note or kernel. So
 * they reject overlaps and duplicate names.  `work` counts their steps, for tests.
 */
#ifndef RILL_CORE_KERNEL_IMAGE_H
#define RILL_CORE_KERNEL_IMAGE_H

#include <rill/bundle.h>
#include <rill/rill.h>

/* value of rill_bundle_kernel.arg_count if the image does not describe the arguments */
#define RILL__ARGS_UNKNOWN UINT32_MAX

/* The requirements of a kernel that its image specifies, besides the arguments; 0 if the image specifies none. */
struct rill__kernel_needs {
  uint32_t block[3]; /* the only block shape that the kernel can run in */
  uint32_t max_threads, warp_size;
  uint64_t static_shared;
};

struct rill__image {
  rill_bundle_image *parts; /* the data of the parts is not owned */
  rill_bundle_kernel *kernels;
  struct rill__kernel_needs *needs; /* one for each kernel */
  size_t part_count, kernel_count;
  uint32_t *by_name;    /* hash table of kernel numbers plus one; NULL if there are few kernels */
  uint32_t name_room;   /* size of the table, a power of two */
  uint64_t name_seed;   /* seed of the hashes, so that nobody can choose names that collide */
  char *fault;          /* the last text with numbers, or NULL */
  uint64_t work;        /* number of bytes, or of values of a few bytes, that readers have read */
  bool kernels_unknown; /* there may be kernels that the image does not list */
  bool no_memory;
};

#pragma GCC visibility push(hidden)

/* Add a part, kernel or argument, with a copy of its strings.  They return false and set no_memory if memory ran out.
 * An argument is added to the kernel that was added last, whose arguments then count as known. */
bool rill__image_add_part(struct rill__image *image, const char *backend, const char *target, const void *data,
                          size_t size);
bool rill__image_add_kernel(struct rill__image *image, const char *name, size_t length, uint32_t arg_count);
bool rill__image_add_arg(struct rill__image *image, const char *name, size_t length, uint32_t size);

/* Returns true if there is a kernel with that name. */
bool rill__image_has_kernel(const struct rill__image *image, const char *name, size_t length);
/* Adds a kernel that a reader has found, or returns a fault if there is one with that name. */
const char *rill__image_read_kernel(struct rill__image *image, const char *name, size_t length, uint32_t arg_count);

/* Formats and returns a text, which the image owns until the next call. */
const char *rill__image_fault(struct rill__image *image, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* A range of bytes of an image, such as a segment of notes or an entry; `number` identifies it in texts. */
struct rill__byte_range {
  uint64_t offset, size;
  size_t number;
};

/* Returns a fault if two of the ranges overlap; it calls them `what`.  Sorts the list. */
const char *rill__image_check_disjoint(struct rill__image *image, struct rill__byte_range *list, size_t count,
                                       const char *what);

/* Sets the byte offset of the argument that was added last. */
void rill__image_set_offset(struct rill__image *image, uint32_t offset);

/* Returns the number of the kernel with that name, or kernel_count if there is none. */
size_t rill__image_find(const struct rill__image *image, const char *name);

/* Adds a copy of a kernel of another image or of a bundle. */
bool rill__image_copy_kernel(struct rill__image *image, const rill_bundle_kernel *kernel,
                             const struct rill__kernel_needs *needs);

void rill__image_free(struct rill__image *image); /* frees what it points to */

/* Converts the symbol of a kernel, which C++ mangles (`_ZN4game4moveEPfi`), to the name in the source, with namespaces
 * and template arguments but without parameters: "game::move", "scale<float, 4>".  Returns false if the symbol is not
 * mangled, has a form that core/kernel/names.c does not know, or does not fit. */
bool rill__source_name(const char *symbol, char *out, size_t size);

#pragma GCC visibility pop

/* longer names are treated as damage */
enum { RILL__NAME_MAX = 4095 };

/* Returns true if the `n` bytes at `offset` are within `size`. */
static inline bool rill__inside(uint64_t size, uint64_t offset, uint64_t n) {
  return offset <= size && n <= size - offset;
}

#endif
