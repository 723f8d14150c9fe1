/* Clang's bundles: a magic text, the number of entries, and for each where it is, how long, and its name, such as
 * "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-".  The entry for the host is empty. */
#include "backends/hip/formats.h"

#include <string.h>

static const char offload_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { MAGIC_SIZE = sizeof offload_magic - 1 };

struct entry {
  uint64_t offset, size, name_size;
};

bool hip_is_offload_bundle(const void *data, size_t size) {
  return size >= MAGIC_SIZE && memcmp(data, offload_magic, MAGIC_SIZE) == 0;
}

bool hip_is_compressed_bundle(const void *data, size_t size) { return size >= 4 && memcmp(data, "CCOB", 4) == 0; }

/* Whether an entry's name says that it is code for these GPUs: "hip", perhaps a version, and the triple. */
static bool is_device_code(const char *name, size_t length) {
  static const char triple[] = "-amdgcn-amd-amdhsa-";
  return length > 3 && memcmp(name, "hip", 3) == 0 && memmem(name, length, triple, sizeof triple - 1) != NULL;
}

const char *hip_offload_parts(const void *data, size_t size, struct rill__image *out) {
  const char *bytes = data;
  uint64_t count = 0;
  size_t at = MAGIC_SIZE + sizeof count;
  if (size < at) return "it ends before its header does";
  memcpy(&count, bytes + MAGIC_SIZE, sizeof count);
  for (; count > 0; count--) {
    struct entry entry;
    char target[HIP_TARGET_SIZE];
    if (!rill__inside(size, at, sizeof entry)) return "it ends inside of the list of its entries";
    memcpy(&entry, bytes + at, sizeof entry);
    at += sizeof entry;
    if (!rill__inside(size, at, entry.name_size)) return "the name of an entry reaches past its end";
    if (!rill__inside(size, entry.offset, entry.size)) return "an entry reaches past its end";
    if (is_device_code(bytes + at, entry.name_size) && entry.size > 0) {
      const char *fault = hip_code_object_check(bytes + entry.offset, entry.size, target);
      if (fault != NULL) return fault;
      if (!rill__image_add_part(out, "hip", target, bytes + entry.offset, entry.size)) return "no memory";
    }
    at += entry.name_size;
  }
  return NULL;
}
