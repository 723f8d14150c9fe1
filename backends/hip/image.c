/* Functions of the module table for images that are not from a bundle: they recognize the format and call its
 * reader. */
#include "backends/gpu/gpu.h"
#include "backends/hip/formats.h"

const char *gpu_recognize(const void *data, size_t size) {
  if (rill__hip_is_code_object(data, size)) return "an AMD code object";
  if (rill__hip_is_compressed_bundle(data, size)) return "a compressed clang offload bundle";
  return rill__hip_is_offload_bundle(data, size) ? "a clang offload bundle" : NULL;
}

const char *gpu_read_parts(const void *data, size_t size, struct rill__image *out) {
  char target[HIP_TARGET_SIZE];
  if (rill__hip_is_compressed_bundle(data, size)) {
    /* the same text as in tools/rillcc_lib/offload.py */
    return "compressed bundles (CCOB) are not supported: compile with --no-offload-compress, and without "
           "--offload-compress, which HIPCC_COMPILE_FLAGS_APPEND may contain";
  }
  if (rill__hip_is_offload_bundle(data, size)) return rill__hip_offload_parts(data, size, out);
  const char *fault = rill__hip_code_object_check(data, size, target, out);
  if (fault != NULL) return fault;
  return rill__image_add_part(out, GPU_BACKEND_NAME, target, data, size) ? NULL : "no memory";
}

const char *gpu_read_kernels(const rill_bundle_image *part, struct rill__image *out) {
  return rill__hip_code_object_kernels(part->data, part->size, out);
}
