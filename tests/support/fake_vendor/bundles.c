/* Finds bundles in the program and its libraries, by the magic number that each begins with.
 *
 * A vendor's load function gets an image and nothing else; where that image came from, the host code of the same
 * kernels lies beside it.  Looking for it spares every test telling the fake about its bundles. */
#include "bundles.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

#if defined(__has_attribute)
#if __has_attribute(no_sanitize)
#define UNCHECKED __attribute__((no_sanitize("address", "thread")))
#endif
#endif
#ifndef UNCHECKED
#define UNCHECKED __attribute__((no_sanitize_address, no_sanitize_thread))
#endif

struct search {
  bool (*wanted)(const rill_bundle *bundle, void *data);
  void *data;
  const rill_bundle *found;
  uintptr_t start, end; /* is_loaded: what is asked for */
};

static int holds_range(struct dl_phdr_info *object, size_t size, void *data) {
  (void)size;
  const struct search *search = data;
  for (size_t i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && search->start >= start && search->end <= start + segment->p_memsz) return 1;
  }
  return 0;
}

/* Do these bytes belong to the program or a library? */
static bool is_loaded(const void *p, size_t n) {
  struct search search = { .start = (uintptr_t)p, .end = (uintptr_t)p + n };
  return p != NULL && search.end >= search.start && dl_iterate_phdr(holds_range, &search) != 0;
}

static bool is_bundle(const rill_bundle *bundle) {
  enum { MOST = 4096 };
  return bundle->version == RILL_BUNDLE_VERSION && bundle->image_count <= MOST && bundle->kernel_count <= MOST &&
         is_loaded(bundle->name, 1) && is_loaded(bundle->images, bundle->image_count * sizeof *bundle->images) &&
         is_loaded(bundle->kernels, bundle->kernel_count * sizeof *bundle->kernels);
}

/* Walks over all of a segment, what lies between its variables too. */
UNCHECKED static int look_into(struct dl_phdr_info *object, size_t size, void *data) {
  (void)size;
  struct search *search = data;
  for (size_t i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_R) == 0 || (segment->p_flags & PF_X) != 0) continue;
    const uintptr_t start = (object->dlpi_addr + segment->p_vaddr + 7) / 8 * 8;
    const uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;
    for (uintptr_t at = start; at + sizeof(rill_bundle) <= end; at += 8) {
      const rill_bundle *bundle = (const rill_bundle *)at;
      if (bundle->magic == RILL_BUNDLE_MAGIC && is_bundle(bundle) && search->wanted(bundle, search->data)) {
        search->found = bundle;
        return 1;
      }
    }
  }
  return 0;
}

const rill_bundle *fake_bundle_find(bool (*wanted)(const rill_bundle *bundle, void *data), void *data) {
  struct search search = { .wanted = wanted, .data = data };
  (void)dl_iterate_phdr(look_into, &search);
  return search.found;
}

struct image_search {
  const char *backend;
  const void *bytes;
  size_t size;
  const rill_bundle_image *found;
};

static bool has_image(const rill_bundle *bundle, void *data) {
  struct image_search *search = data;
  for (size_t i = 0; i < bundle->image_count; i++) {
    const rill_bundle_image *image = &bundle->images[i];
    if (strcmp(image->backend, search->backend) == 0 &&
        memmem(image->data, image->size, search->bytes, search->size) != NULL) {
      search->found = image;
      return true;
    }
  }
  return false;
}

const rill_bundle *fake_bundle_of_image(const char *backend, const void *bytes, size_t size,
                                        const rill_bundle_image **image) {
  struct image_search search = { .backend = backend, .bytes = bytes, .size = size };
  const rill_bundle *bundle = fake_bundle_find(has_image, &search);
  *image = search.found;
  return bundle;
}
