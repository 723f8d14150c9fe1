#include "support/images.h"

#include <rill/device/cpu_image.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes ---- */

struct bytes {
  unsigned char *data;
  size_t size;
};

static void append(struct bytes *bytes, const void *data, size_t size) {
  bytes->data = realloc(bytes->data, bytes->size + size + 1);
  if (bytes->data == NULL) abort();
  if (size > 0) memcpy(bytes->data + bytes->size, data, size);
  bytes->size += size;
}

static void append_number(struct bytes *bytes, uint64_t value, size_t width) { append(bytes, &value, width); }

static void pad(struct bytes *bytes, size_t to) {
  while (bytes->size % to != 0) append(bytes, "", 1);
}

static void add(struct image_forms *forms, const char *what, const char *target, const void *data, size_t size) {
  if (forms->count == IMAGE_FORMS) abort();
  unsigned char *copy = malloc(size);
  if (copy == NULL) abort();
  memcpy(copy, data, size);
  forms->forms[forms->count++] = (struct image_form){ what, target, copy, size };
}

static const rill_bundle_image *next_image(const rill_bundle *bundle, const char *backend,
                                           const rill_bundle_image *last) {
  const rill_bundle_image *at = last == NULL ? bundle->images : last + 1;
  while (at < bundle->images + bundle->image_count && strcmp(at->backend, backend) != 0) at++;
  return at < bundle->images + bundle->image_count ? at : NULL;
}

static bool is_ptx(const rill_bundle_image *image) { return strncmp(image->target, "ptx", 3) == 0; }

/* ---- containers ---- */

/* A header, then for each image a header and its bytes. */
static void add_fatbin(struct image_forms *forms, const rill_bundle *bundle) {
  enum { ENTRY_HEADER = 64, CUBIN = 2, PTX = 1 };
  struct bytes entries = { NULL, 0 }, file = { NULL, 0 };
  const char *target = NULL;
  for (const rill_bundle_image *i = NULL; (i = next_image(bundle, "cuda", i)) != NULL; target = i->target) {
    const unsigned long number = strtoul(strpbrk(i->target, "0123456789"), NULL, 10);
    append_number(&entries, is_ptx(i) ? PTX : CUBIN, 2);
    append_number(&entries, 0x101, 2);
    append_number(&entries, ENTRY_HEADER, 4);
    append_number(&entries, (i->size + 7) / 8 * 8, 8);
    append_number(&entries, 0, 8); /* not compressed */
    append_number(&entries, is_ptx(i) ? UINT64_C(9) << 16 : UINT64_C(1) << 16 | 8, 4);
    append_number(&entries, number, 4);
    append_number(&entries, 0, 8); /* no name */
    append_number(&entries, 0x11, 8);
    append_number(&entries, 0, 8);
    append_number(&entries, 0, 8);
    append(&entries, i->data, i->size);
    pad(&entries, 8);
  }
  append_number(&file, 0xba55ed50, 4);
  append_number(&file, 1, 2);
  append_number(&file, 16, 2);
  append_number(&file, entries.size, 8);
  append(&file, entries.data, entries.size);
  if (target != NULL) add(forms, "fatbin", target, file.data, file.size);
  free(entries.data);
  free(file.data);
}

/* Clang's: the list of entries, then their bytes at multiples of 4096; the first is the host's and empty. */
static void add_offload_bundle(struct image_forms *forms, const rill_bundle *bundle) {
  static const char host[] = "host-x86_64-unknown-linux--", device[] = "hipv4-amdgcn-amd-amdhsa--";
  enum { ALIGNMENT = 4096 };
  struct bytes file = { NULL, 0 };
  uint64_t count = 1, at = ALIGNMENT;
  const char *target = NULL;
  for (const rill_bundle_image *i = NULL; (i = next_image(bundle, "hip", i)) != NULL; target = i->target) count++;
  append(&file, "__CLANG_OFFLOAD_BUNDLE__", 24);
  append_number(&file, count, 8);
  append_number(&file, at, 8);
  append_number(&file, 0, 8);
  append_number(&file, strlen(host), 8);
  append(&file, host, strlen(host));
  for (const rill_bundle_image *i = NULL; (i = next_image(bundle, "hip", i)) != NULL;) {
    append_number(&file, at, 8);
    append_number(&file, i->size, 8);
    append_number(&file, strlen(device) + strlen(i->target), 8);
    append(&file, device, strlen(device));
    append(&file, i->target, strlen(i->target));
    at += (i->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  for (const rill_bundle_image *i = NULL; (i = next_image(bundle, "hip", i)) != NULL;) {
    pad(&file, ALIGNMENT);
    append(&file, i->data, i->size);
  }
  if (target != NULL) add(forms, "offload bundle", target, file.data, file.size);
  free(file.data);
}

struct image_forms *image_forms_make(const rill_bundle *bundle, const char *backend) {
  struct image_forms *forms = calloc(1, sizeof *forms);
  if (forms == NULL) abort();
  const bool cuda = strcmp(backend, "cuda") == 0, hip = strcmp(backend, "hip") == 0;
  for (const rill_bundle_image *i = NULL; (i = next_image(bundle, backend, i)) != NULL;) {
    const bool ptx = cuda && is_ptx(i);
    add(forms, ptx ? "PTX" : cuda ? "cubin" : hip ? "code object" : "shared object", i->target, i->data, i->size);
    if (ptx) add(forms, "PTX without a zero", i->target, i->data, i->size - 1);
  }
  if (cuda) add_fatbin(forms, bundle);
  if (hip) add_offload_bundle(forms, bundle);
  return forms;
}

void image_forms_free(struct image_forms *forms) {
  for (size_t i = 0; i < forms->count; i++) free(forms->forms[i].data);
  free(forms);
}

/* ---- the seal of host images ---- */

static uint32_t crc32_of(const unsigned char *data, size_t size) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < size; i++) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; bit++) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

void image_seal(unsigned char *data, size_t size, const char *target) {
  rill_cpu_image_seal seal;
  unsigned char *end = data + size - sizeof seal;
  memcpy(&seal, end, sizeof seal);
  if (target != NULL) {
    memset(seal.target, 0, sizeof seal.target);
    memcpy(seal.target, target, strlen(target));
  }
  seal.size = size - sizeof seal;
  seal.version = RILL_CPU_IMAGE_SEAL_VERSION;
  memcpy(seal.magic, RILL_CPU_IMAGE_SEAL, sizeof seal.magic);
  memcpy(end, &seal, sizeof seal);
  seal.check = crc32_of(data, size - sizeof seal + offsetof(rill_cpu_image_seal, check));
  memcpy(end, &seal, sizeof seal);
}
