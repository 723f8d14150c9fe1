/* Other code of the process that uses the vendor's library: code that was loaded after rill had opened the library, and
 * the vendor's runtime in code that was loaded before.  A runtime opens the library when the program first calls it. */
#include "backends/gpu/gpu.h"

#include <link.h>
#include <stdlib.h>

enum { SEARCHED_MOST = 64 << 20 }; /* larger segments contain kernels */

/* The objects that were loaded when rill had opened the library.  Written once, in the search for devices. */
static struct {
  uintptr_t *addresses;
  size_t count, room;
} known;

/* ---- before ---- */

static int count_object(struct dl_phdr_info *info, size_t size, void *count) {
  (void)info, (void)size;
  ++*(size_t *)count;
  return 0;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (known.count == known.room) return 1;
  known.addresses[known.count++] = info->dlpi_addr;
  return 0;
}

void gpu_users_note(void) {
  size_t count = 0;
  (void)dl_iterate_phdr(count_object, &count);
  known.addresses = calloc(count + 1, sizeof *known.addresses);
  if (known.addresses == NULL) return; /* libraries that are loaded later are not noticed */
  known.room = count + 1;
  (void)dl_iterate_phdr(note_object, NULL);
}

/* ---- after ---- */

struct search_text {
  char text[32];
};

/* "libcuda.so": code that is linked to the library, or opens it, contains this text. */
static struct search_text stem_of_library(void) {
  static const char *const names[] = { GPU_LIBRARIES };
  struct search_text stem = { "" };
  (void)snprintf(stem.text, sizeof stem.text, "%.*s", (int)(strstr(names[0], ".so") - names[0] + 3), names[0]);
  return stem;
}

/* The vendor's runtime contains this text; "" if the library is the runtime. */
static struct search_text text_of_runtime(void) {
  static const char *const parts[] = { GPU_RUNTIME_TEXT };
  struct search_text runtime;
  (void)snprintf(runtime.text, sizeof runtime.text, "%s%s", parts[0], parts[1]);
  return runtime;
}

/* Returns true for the library itself and for others that it or rill opens. */
static bool is_part_of_driver(const char *path) {
  static const char *const prefixes[] = { GPU_OWN_LIBRARIES };
  const char *const slash = strrchr(path, '/'), *const name = slash != NULL ? slash + 1 : path;
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
  }
  return false;
}

static bool was_known(uintptr_t address) {
  for (size_t i = 0; i < known.count; i++) {
    if (known.addresses[i] == address) return true;
  }
  return false;
}

static bool contains(const struct dl_phdr_info *info, const char *text) {
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *const segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & (PF_R | PF_W)) != PF_R || segment->p_filesz > SEARCHED_MOST)
      continue;
    if (memmem((const void *)(info->dlpi_addr + segment->p_vaddr), segment->p_filesz, text, strlen(text)) != NULL)
      return true;
  }
  return false;
}

struct later {
  struct search_text stem, runtime;
  unsigned long long *adds; /* number of objects ever loaded, at the last search */
  bool found;
};

static int look_at_object(struct dl_phdr_info *info, size_t size, void *data) {
  struct later *const later = data;
  if (size < offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds) return 1;
  if (info->dlpi_adds == *later->adds) return 1; /* nothing has been loaded since the last search */
  if (is_part_of_driver(info->dlpi_name)) return 0;
  const char *const text = was_known(info->dlpi_addr) ? later->runtime.text : later->stem.text;
  later->found = text[0] != '\0' && contains(info, text);
  return later->found ? 1 : 0;
}

static int note_adds(struct dl_phdr_info *info, size_t size, void *adds) {
  if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds)
    *(unsigned long long *)adds = info->dlpi_adds;
  return 1;
}

bool gpu_has_later_users(void) {
  static unsigned long long searched;
  unsigned long long adds = 0;
  struct later later = { .stem = stem_of_library(), .runtime = text_of_runtime(), .adds = &searched };
  if (known.room == 0) return false; /* the library is not open */
  (void)dl_iterate_phdr(note_adds, &adds);
  (void)dl_iterate_phdr(look_at_object, &later);
  searched = adds; /* from before the search, so that libraries loaded during the search are searched next time */
  return later.found;
}
