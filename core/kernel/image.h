/* What an image of kernels holds: its parts, each of one target, and its kernels with their arguments.
 *
 * A module has one of these of its own, copied from a bundle or read from the bytes of an image that rillcc did not
 * bundle, and needs neither the bundle nor the bytes once it is loaded.
 *
 * Readers of formats are pure functions over bytes that may be anything.  They look at nothing outside of them, trust
 * no number in them, and return NULL or what is wrong: a static text, or one with numbers that the image keeps.  Where
 * memory runs out they note it in `no_memory`, and go on or return any text.
 *
 * What they do is in proportion to the bytes: no byte is read for more than one part, note or kernel.  So they refuse
 * what overlaps, and names that are there twice.  `work` counts what they do, for tests. */
#ifndef RILL_CORE_KERNEL_IMAGE_H
#define RILL_CORE_KERNEL_IMAGE_H

#include <rill/bundle.h>
#include <rill/rill.h>

/* In rill_bundle_kernel.arg_count: the image does not tell. */
#define RILL__ARGS_UNKNOWN UINT32_MAX

/* What an image says of a kernel beside its arguments; 0 where it says nothing. */
struct rill__kernel_needs {
  uint32_t block[3]; /* the only shape of a block that it runs in */
  uint32_t max_threads, warp_size;
  uint64_t static_shared;
};

struct rill__image {
  rill_bundle_image *parts; /* their data belong to others */
  rill_bundle_kernel *kernels;
  struct rill__kernel_needs *needs; /* of each kernel */
  size_t part_count, kernel_count;
  uint32_t *by_name;    /* a table of kernels, by number plus one; NULL while there are few */
  uint32_t name_room;   /* its size, a power of two */
  uint64_t name_seed;   /* of hashes, so that nobody chooses names that meet in the table */
  char *fault;          /* the last text with numbers, or NULL */
  uint64_t work;        /* bytes, or values of a few bytes, that readers have looked at */
  bool kernels_unknown; /* there may be others than the image tells */
  bool no_memory;
};

#pragma GCC visibility push(hidden)

/* Each adds a copy of its strings; false, and no_memory, if there is no memory for it.  An argument belongs to the
 * kernel that was added last, which then has known ones. */
bool rill__image_add_part(struct rill__image *image, const char *backend, const char *target, const void *data,
                          size_t size);
bool rill__image_add_kernel(struct rill__image *image, const char *name, size_t length, uint32_t arg_count);
bool rill__image_add_arg(struct rill__image *image, const char *name, size_t length, uint32_t size);

/* Whether there is a kernel of that name; and adds one that a reader has found, or returns a fault if there is. */
bool rill__image_has_kernel(const struct rill__image *image, const char *name, size_t length);
const char *rill__image_read_kernel(struct rill__image *image, const char *name, size_t length, uint32_t arg_count);

/* Returns the text, which the image keeps until the next one. */
const char *rill__image_fault(struct rill__image *image, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Bytes of an image: its note segment, or entry, of that number. */
struct rill__stretch {
  uint64_t offset, size;
  size_t number;
};

/* A fault if two overlap, in which they are called `what`.  Puts the list in order. */
const char *rill__image_check_apart(struct rill__image *image, struct rill__stretch *list, size_t count,
                                    const char *what);

/* Where the argument that was added last lies among the others, in bytes. */
void rill__image_set_offset(struct rill__image *image, uint32_t offset);

/* The number of a kernel; kernel_count if there is none of that name. */
size_t rill__image_find(const struct rill__image *image, const char *name);

/* Adds a kernel as another image, or a bundle, has it. */
bool rill__image_copy_kernel(struct rill__image *image, const rill_bundle_kernel *kernel,
                             const struct rill__kernel_needs *needs);

void rill__image_free(struct rill__image *image); /* what it points to */

/* An image knows a kernel by its symbol, which C++ mangles: `_ZN4game4moveEPfi`.  Writes the name in the source, with
 * namespaces and template arguments: "game::move", "scale<float, 4>".  Parameters are left out.  False if the symbol is
 * not mangled, has a form that is not known here, or does not fit: core/kernel/names.c. */
bool rill__source_name(const char *symbol, char *out, size_t size);

#pragma GCC visibility pop

/* A name longer than this is taken for damage. */
enum { RILL__NAME_MOST = 4095 };

/* Are the `n` bytes from `offset` within `size`? */
static inline bool rill__inside(uint64_t size, uint64_t offset, uint64_t n) {
  return offset <= size && n <= size - offset;
}

#endif
