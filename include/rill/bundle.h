/* rill/bundle.h: the layout of bundles. C files that rillcc writes include it; other code does not need it.
 *
 * A bundle is constant data: one image for each target, and the kernels with their arguments, which are the same in
 * every image. `version` increases when the layout changes; a library refuses a newer bundle.
 */
#ifndef RILL_BUNDLE_H
#define RILL_BUNDLE_H

#include <rill/kernel.h>

#define RILL_BUNDLE_MAGIC UINT32_C(0x4c4c4952) /* "RILL", little endian */
#define RILL_BUNDLE_VERSION UINT32_C(1)

/** Machine code for one target. */
typedef struct rill_bundle_image {
  const char *backend; /**< "cuda", "hip" or "cpu" */
  const char *target;  /**< "sm_90", "ptx_80", "gfx90a", "x86-64-v3" */
  const void *data;    /**< cubin, zero-terminated PTX, AMD code object, or shared object */
  size_t size;         /**< bytes, including the terminating zero of PTX */
} rill_bundle_image;

/** One argument of a kernel. */
typedef struct rill_bundle_arg {
  const char *name;
  uint32_t size;   /**< bytes */
  uint32_t offset; /**< bytes, in a struct of all arguments; 0 in bundles of older compilers, where it was padding;
                        may include the flag RILL_BUNDLE_ARG_READS */
} rill_bundle_arg;

/** Flag in `offset`: the argument is a pointer to a const type, so the kernel only reads through it. */
#define RILL_BUNDLE_ARG_READS UINT32_C(0x80000000)

/** One kernel. */
typedef struct rill_bundle_kernel {
  const char *name;
  const rill_bundle_arg *args;
  uint32_t arg_count;
} rill_bundle_kernel;

struct rill_bundle {
  uint32_t magic, version;
  const char *name; /**< name of the source: "saxpy" */
  const rill_bundle_image *images;
  size_t image_count;
  const rill_bundle_kernel *kernels;
  size_t kernel_count;
};

#endif
