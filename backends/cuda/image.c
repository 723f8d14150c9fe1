/* Functions of the module table for images that are not from a bundle: they recognize the format and call its
 * reader. */
#include "backends/cuda/formats.h"
#include "backends/gpu/gpu.h"

const char *gpu_recognize(const void *data, size_t size) {
  if (rill__cuda_is_cubin(data, size)) return "a cubin";
  if (rill__cuda_is_fatbin(data, size)) return "a fatbin";
  return rill__cuda_is_ptx(data, size) ? "PTX" : NULL;
}

const char *gpu_read_parts(const void *data, size_t size, struct rill__image *out) {
  char target[CUDA_TARGET_SIZE];
  if (rill__cuda_is_fatbin(data, size)) return rill__cuda_fatbin_parts(data, size, out);
  const bool ptx = !rill__cuda_is_cubin(data, size);
  const char *fault = (ptx ? rill__cuda_ptx_check : rill__cuda_cubin_check)(data, size, target, out);
  if (fault != NULL) return fault;
  if (ptx) size = strnlen(data, size) + 1; /* core stores a zero after the bytes, in case they contain none */
  return rill__image_add_part(out, GPU_BACKEND_NAME, target, data, size) ? NULL : "no memory";
}

const char *gpu_read_kernels(const rill_bundle_image *part, struct rill__image *out) {
  if (rill__cuda_is_cubin(part->data, part->size)) return rill__cuda_cubin_kernels(part->data, part->size, out);
  if (rill__cuda_is_ptx(part->data, part->size)) return rill__cuda_ptx_kernels(part->data, part->size, out);
  out->kernels_unknown = true; /* compressed */
  return NULL;
}
