/* Fatbins.  NVIDIA does not document the format, but it has not changed since CUDA 5: a header with the size of what
 * follows, then entries, each a header with the size of the code after it.  Entries of unknown kinds are left to the
 * driver. */
#include "backends/cuda/formats.h"

#include <stdio.h>
#include <string.h>

enum { MAGIC = (int)0xba55ed50u, KIND_PTX = 1, KIND_CUBIN = 2 };

struct file_header {
  uint32_t magic;
  uint16_t version, header_size;
  uint64_t size; /* bytes after the header */
};

struct entry_header {
  uint16_t kind, version;
  uint32_t header_size;
  uint64_t size; /* bytes after the header */
  uint32_t compressed_size, unknown;
  uint16_t minor, major;
  uint32_t target; /* for example 90 */
  uint32_t name_offset, name_size;
  uint64_t flags;
};

/* Flags: the code is compressed, is for exactly this target ("sm_90a"), is for the target's family ("sm_100f"). */
static const uint64_t compressed = 0x1000 | 0x2000 | 0x8000, for_target = 0x100000, for_family = 0x200000;

bool rill__cuda_is_fatbin(const void *data, size_t size) {
  uint32_t magic = 0;
  if (size < sizeof magic) return false;
  memcpy(&magic, data, sizeof magic);
  return magic == (uint32_t)MAGIC;
}

/* Adds the part of one entry.  Its code is the `size` bytes at `code`. */
static const char *add_entry(const struct entry_header *entry, const char *code, size_t size, const void *file,
                             size_t file_size, struct rill__image *out) {
  char target[CUDA_TARGET_SIZE];
  const char *fault = NULL;
  out->work += sizeof *entry;
  if (entry->kind != KIND_PTX && entry->kind != KIND_CUBIN) return NULL;
  const bool ptx = entry->kind == KIND_PTX;
  const bool packed = entry->compressed_size != 0 || (entry->flags & compressed) != 0;
  if (!ptx && !packed) {
    fault = rill__cuda_cubin_check(code, size, target, out);
  } else if (ptx && !packed && memchr(code, '\0', size) != NULL) {
    size = strnlen(code, size) + 1;
    fault = rill__cuda_ptx_check(code, size, target, out);
  } else {
    code = file;
    size = file_size;
  }
  if (fault != NULL) return fault;
  const char *only = (entry->flags & for_target) != 0 ? "a" : (entry->flags & for_family) != 0 ? "f" : "";
  (void)snprintf(target, sizeof target, "%s_%u%s", ptx ? "ptx" : "sm", entry->target, only);
  return rill__image_add_part(out, "cuda", target, code, size) ? NULL : "no memory";
}

const char *rill__cuda_fatbin_parts(const void *data, size_t size, struct rill__image *out) {
  struct file_header file;
  if (size < sizeof file) return "it is shorter than its header";
  memcpy(&file, data, sizeof file);
  if (file.version != 1) return "its version is unknown";
  if (file.header_size < sizeof file || !rill__inside(size, file.header_size, file.size)) {
    return "its header says that it is longer";
  }
  const char *at = (const char *)data + file.header_size;
  uint64_t left = file.size;
  while (left > 0) {
    struct entry_header entry;
    if (left < sizeof entry) return "it ends inside of an entry's header";
    memcpy(&entry, at, sizeof entry);
    if (entry.header_size < sizeof entry || !rill__inside(left, entry.header_size, entry.size)) {
      return "an entry reaches past its end";
    }
    if (entry.compressed_size > entry.size) return "an entry's compressed code is longer than the entry";
    if (!rill__inside(entry.header_size + entry.size, entry.name_offset, entry.name_size)) {
      return "an entry's name lies outside of it";
    }
    const char *fault = add_entry(&entry, at + entry.header_size, entry.size, data, size, out);
    if (fault != NULL) return fault;
    at += entry.header_size + entry.size;
    left -= entry.header_size + entry.size;
  }
  return NULL;
}
