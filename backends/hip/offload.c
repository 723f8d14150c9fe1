/* Clang's offload bundles: a magic text, the number of entries, and each entry's offset, size and name, such as
 * "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-".  The entry for the host is empty. */
#include "backends/hip/formats.h"

#include <stdlib.h>
#include <string.h>

static const char offload_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { MAGIC_SIZE = sizeof offload_magic - 1 };

struct entry {
  uint64_t offset, size, name_size;
};

bool rill__hip_is_offload_bundle(const void *data, size_t size) {
  return size >= MAGIC_SIZE && memcmp(data, offload_magic, MAGIC_SIZE) == 0;
}

bool rill__hip_is_compressed_bundle(const void *data, size_t size) { return size >= 4 && memcmp(data, "CCOB", 4) == 0; }

/* Returns true if an entry's name denotes code for these GPUs: "hip", an optional version, and the triple. */
static bool is_device_code(const char *name, size_t length) {
  static const char triple[] = "-amdgcn-amd-amdhsa-";
  return length > 3 && memcmp(name, "hip", 3) == 0 && memmem(name, length, triple, sizeof triple - 1) != NULL;
}

/* Lists the entries with code and their positions. */
static const char *list_entries(const char *bytes, size_t size, struct rill__byte_range *list, size_t *listed) {
  uint64_t count;
  size_t at = MAGIC_SIZE + sizeof count;
  *listed = 0;
  memcpy(&count, bytes + MAGIC_SIZE, sizeof count);
  for (size_t number = 0; number < count; number++) {
    struct entry entry;
    if (!rill__inside(size, at, sizeof entry)) return "it ends inside of the list of its entries";
    memcpy(&entry, bytes + at, sizeof entry);
    at += sizeof entry;
    if (!rill__inside(size, at, entry.name_size)) return "the name of an entry reaches past its end";
    if (!rill__inside(size, entry.offset, entry.size)) return "an entry reaches past its end";
    if (is_device_code(bytes + at, entry.name_size) && entry.size > 0)
      list[(*listed)++] = (struct rill__byte_range){ entry.offset, entry.size, number };
    at += entry.name_size;
  }
  return NULL;
}

static int compare_numbers(const void *a, const void *b) {
  const struct rill__byte_range *first = a, *second = b;
  return first->number < second->number ? -1 : first->number > second->number;
}

/* Refuses entries that overlap, because the same object would be read repeatedly. */
const char *rill__hip_offload_parts(const void *data, size_t size, struct rill__image *out) {
  const char *bytes = data;
  size_t count = 0;
  if (size < MAGIC_SIZE + sizeof(uint64_t)) return "it is shorter than its header";
  struct rill__byte_range *list = malloc((size / sizeof(struct entry) + 1) * sizeof *list);
  if (list == NULL) {
    out->no_memory = true;
    return "no memory";
  }
  out->work += size;
  const char *fault = list_entries(bytes, size, list, &count);
  if (fault == NULL) fault = rill__image_check_disjoint(out, list, count, "entries");
  if (count > 1) qsort(list, count, sizeof *list, compare_numbers);
  for (size_t i = 0; i < count && fault == NULL; i++) {
    char target[HIP_TARGET_SIZE];
    const char *const code = bytes + list[i].offset;
    fault = rill__hip_code_object_check(code, list[i].size, target, out);
    if (fault == NULL && !rill__image_add_part(out, "hip", target, code, list[i].size)) fault = "no memory";
  }
  free(list);
  return fault;
}
