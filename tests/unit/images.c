/* The readers of image formats, which are pure functions over bytes and need no device. */
#include "support/images.h"
#include "core/device/registry.h"
#include "core/kernel/module.h"
#include "support/testing.h"

#include "gate.rill.h"

#include <elf.h>
#include <stdio.h>

static const struct rill__backend *backend_named(const char *name) {
  for (size_t i = 0; rill__backend_at(i) != NULL; i++) {
    if (strcmp(rill__backend_at(i)->name, name) == 0) return rill__backend_at(i);
  }
  return NULL;
}

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

enum { WORK_PER_BYTE = 32, WORK_AT_LEAST = 4096 };

static void assert_linear(const struct rill__image *image, size_t size) {
  if (image->work <= (uint64_t)WORK_PER_BYTE * size + WORK_AT_LEAST) return;
  fail_msg("%llu steps to read %zu bytes", (unsigned long long)image->work, size);
}

/* Reads an image as rill_module_load_image does, but without a device, and reads all of its parts. Returns NULL or the
 * fault, whose text `out` may own. `out` has the kernels of the last part. */
static const char *read_image(const struct rill__backend *backend, const void *data, size_t size,
                              struct rill__image *out) {
  char *copy = malloc(size + 1); /* followed by a zero byte, and nothing after that may be read */
  memcpy(copy, data, size);
  copy[size] = '\0';
  const char *fault = "not known";
  if (backend->module->recognize(copy, size) != NULL) fault = backend->module->read_parts(copy, size, out);
  assert_linear(out, size);
  for (size_t i = 0; fault == NULL && i < out->part_count; i++) {
    struct rill__image other = { .parts = NULL };
    struct rill__image *const image = i + 1 == out->part_count ? out : &other;
    assert_true(out->parts[i].size > 0);
    image->work = 0;
    fault = backend->module->read_kernels(&out->parts[i], image);
    assert_linear(image, out->parts[i].size);
    if (fault != NULL && image == &other) fault = rill__image_fault(out, "%s", fault);
    rill__image_free(&other);
  }
  free(copy);
  assert_false(out->no_memory);
  return fault;
}

static void read_and_forget(const struct rill__backend *backend, const void *data, size_t size) {
  struct rill__image image = { .parts = NULL };
  (void)read_image(backend, data, size, &image);
  rill__image_free(&image);
}

typedef void form_body(const struct rill__backend *backend, const struct image_form *form);

static void for_each_form(form_body *body) {
  static const char *const names[] = { "cuda", "hip", "cpu" };
  for (size_t i = 0; i < 3; i++) {
    const struct rill__backend *backend = backend_named(names[i]);
    if (backend == NULL) continue;
    struct image_forms *forms = image_forms_make(&gate_bundle, names[i]);
    for (size_t k = 0; k < forms->count; k++) body(backend, &forms->forms[k]);
    image_forms_free(forms);
  }
}

/* ---- valid images ---- */

static void check_form(const struct rill__backend *backend, const struct image_form *form) {
  struct rill__image image = { .parts = NULL };
  const char *fault = read_image(backend, form->data, form->size, &image);
  if (fault != NULL) fail_msg("%s %s: %s", form->what, form->target, fault);
  const size_t parts = image.part_count;
  assert_true(parts > 0);
  assert_string_equal(image.parts[parts - 1].target, form->target);
  assert_string_equal(image.parts[parts - 1].backend, backend->name);
  if (strcmp(backend->name, "cpu") == 0) {
    assert_true(image.kernels_unknown); /* until the image is loaded */
  } else {
    assert_int_equal(image.kernel_count, gate_bundle.kernel_count);
    for (size_t i = 0; i < gate_bundle.kernel_count; i++) {
      const rill_bundle_kernel *expected = &gate_bundle.kernels[i];
      const size_t found = rill__image_find(&image, expected->name);
      assert_int_not_equal(found, image.kernel_count);
      const rill_bundle_kernel *kernel = &image.kernels[found];
      if (strcmp(backend->name, "hip") != 0) {
        assert_true(kernel->arg_count == RILL__ARGS_UNKNOWN); /* the driver reports them */
        continue;
      }
      assert_int_equal(kernel->arg_count, expected->arg_count);
      for (uint32_t k = 0; k < kernel->arg_count; k++) assert_int_equal(kernel->args[k].size, expected->args[k].size);
      assert_true(image.needs[found].warp_size == 32 || image.needs[found].warp_size == 64);
      assert_true(image.needs[found].max_threads >= 64);
    }
  }
  rill__image_free(&image);
}

static void reads_every_form(void) { for_each_form(check_form); }

/* ---- damage ---- */

static void cut_off(const struct rill__backend *backend, const struct image_form *form) {
  const bool text = strncmp(form->what, "PTX", 3) == 0;
  const size_t step = form->size > 65536 ? 13 : 1;
  for (size_t size = 0; size < form->size; size += step) {
    struct rill__image image = { .parts = NULL };
    const char *fault = read_image(backend, form->data, size, &image);
    rill__image_free(&image);
    if (fault == NULL && !text) fail_msg("%zu of %zu bytes of a %s are read", size, form->size, form->what);
  }
}

static void refuses_every_truncation(void) { for_each_form(cut_off); }

/* Changes each byte near the start and the end, where the headers are. (For a sealed image each reading computes a
 * checksum of the whole image.) */
static void change_bytes(const struct rill__backend *backend, const struct image_form *form) {
  const size_t near = strcmp(backend->name, "cpu") == 0 ? 128 : 2048;
  for (size_t i = 0; i < form->size; i++) {
    if (i >= near && i + near < form->size) continue;
    static const unsigned char changes[] = { 0xff, 0x80, 0x01 };
    for (size_t k = 0; k < sizeof changes; k++) {
      form->data[i] ^= changes[k];
      read_and_forget(backend, form->data, form->size);
      form->data[i] ^= changes[k];
    }
  }
}

static void survives_every_changed_byte(void) { for_each_form(change_bytes); }

/* ---- containers ---- */

static const char *read_words(const char *name, const void *data, size_t size) {
  static char words[256];
  struct rill__image image = { .parts = NULL };
  const struct rill__backend *backend = backend_named(name);
  const char *fault = read_image(backend, data, size, &image);
  if (fault != NULL) (void)snprintf(words, sizeof words, "%s", fault);
  rill__image_free(&image);
  return fault != NULL ? words : NULL;
}

static void reads_text_as_it_is_written(void) {
  if (backend_named("cuda") == NULL) return;
  static const char text[] = "// .entry not_this(\n/* .target sm_10 */\n.version 8.0\n.target sm_90a, texmode_unified\n"
                             ".file 1 \".entry nor_this.cu\"\n.visible .entry one(.param .u32 one_param_0) {}\n"
                             ".entry\n\t$two$ ( ) { }\n.weak .func three() {}\n";
  struct rill__image image = { .parts = NULL };
  assert_null(read_image(backend_named("cuda"), text, sizeof text, &image));
  assert_int_equal(image.part_count, 1);
  assert_string_equal(image.parts[0].target, "ptx_90a");
  assert_int_equal(image.kernel_count, 2);
  assert_string_equal(image.kernels[0].name, "one");
  assert_string_equal(image.kernels[1].name, "$two$");
  rill__image_free(&image);
  assert_string_equal(read_words("cuda", ".version 8.0\n", 13), "it has no .target");
  assert_string_equal(read_words("cuda", ".version 8.0\n.target x", 22), "its .target is not sm_NN");
  assert_string_equal(read_words("cuda", ".version 8.0\n.target sm_80\n.entry (", 35), "an .entry has no name");
  assert_string_equal(read_words("cuda", ".version 8.0\0.target sm_80\n", 27), "it has a zero byte inside");
}

static void reads_an_empty_fatbin(void) {
  if (backend_named("cuda") == NULL) return;
  const unsigned char file[16] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0 };
  unsigned char compressed[16 + 64 + 8] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 72 };
  struct rill__image image = { .parts = NULL };
  assert_null(read_image(backend_named("cuda"), file, sizeof file, &image));
  assert_int_equal(image.part_count, 0);
  unsigned char *entry = compressed + 16;
  entry[0] = 2, entry[4] = 64, entry[8] = 8, entry[16] = 5, entry[28] = 90, entry[41] = 0x80, entry[42] = 0x10;
  assert_null(read_image(backend_named("cuda"), compressed, sizeof compressed, &image));
  assert_int_equal(image.part_count, 1);
  assert_string_equal(image.parts[0].target, "sm_90a");
  assert_int_equal(image.parts[0].size, sizeof compressed); /* the driver decompresses it */
  assert_true(image.kernels_unknown);
  rill__image_free(&image);
  entry[16] = 9;
  assert_string_equal(read_words("cuda", compressed, sizeof compressed),
                      "an entry's compressed code is longer than the entry");
  entry[16] = 5, entry[8] = 9;
  assert_string_equal(read_words("cuda", compressed, sizeof compressed), "an entry reaches past its end");
}

static void refuses_compressed_bundles(void) {
  if (backend_named("hip") == NULL) return;
  const char *fault = read_words("hip", "CCOB\2\0\1\0", 8);
  assert_non_null(strstr(fault, "-no-offload-compress"));
}

/* The file consists only of a seal that starts like an ELF file. */
static void refuses_a_bare_seal(void) {
  unsigned char file[64] = "\177ELF\2\1\1";
  file[16] = 3, file[18] = 62;
  image_seal(file, sizeof file, NULL);
  assert_string_equal(read_words("cpu", file, sizeof file), "it is too short to have a seal");
}

/* ---- the best target ---- */

/* Returns how well a target fits the fake device, a gfx906. */
static uint32_t fit_of(const char *target) {
  const rill_bundle_image part = { "hip", target, "", 1 };
  rill_device device;
  assert_ok(rill_device_open("hip:0", &device));
  struct rill__device *d = rill__find(device.id, RILL__DEVICE);
  assert_non_null(d);
  return d->backend->module->fit(d, &part);
}

static void generic_targets_stand_for_others(void) {
  if (backend_named("hip") == NULL) return;
  assert_true(fit_of("gfx906") > fit_of("gfx9-generic"));
  assert_true(fit_of("gfx9-generic") > 0);
  static const char *const others[] = {
    "gfx9-4-generic", "gfx10-1-generic",     "gfx9",        "gfx90", "gfx9060", "gfx9-", "",
    "gfx90a",         "gfx9-generic:xnack+", "machine 0x2f"
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_int_equal(fit_of(others[i]), 0);
}

/* ---- images whose reading could take too long ---- */

/* An ELF file of `size` bytes with a given number of program headers and two sections: names and symbols. */
struct elf {
  unsigned char *data;
  size_t size, names, symbols;
};

static Elf64_Phdr *segments_of(struct elf *elf) { return (Elf64_Phdr *)(void *)(elf->data + sizeof(Elf64_Ehdr)); }
static Elf64_Sym *symbols_of(struct elf *elf) { return (Elf64_Sym *)(void *)(elf->data + elf->symbols); }

static struct elf make_elf(unsigned machine, size_t segments, size_t name_bytes, size_t symbols, size_t more) {
  struct elf elf = { .names = sizeof(Elf64_Ehdr) + segments * sizeof(Elf64_Phdr) + 3 * sizeof(Elf64_Shdr) };
  elf.symbols = (elf.names + name_bytes + 7) / 8 * 8;
  elf.size = elf.symbols + symbols * sizeof(Elf64_Sym) + more;
  elf.data = calloc(1, elf.size);
  Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)elf.data;
  memcpy(header->e_ident, ELFMAG, SELFMAG);
  header->e_ident[EI_CLASS] = ELFCLASS64;
  header->e_ident[EI_DATA] = ELFDATA2LSB;
  header->e_ident[EI_VERSION] = EV_CURRENT;
  header->e_type = ET_DYN;
  header->e_machine = (Elf64_Half)machine;
  header->e_flags = machine == EM_AMDGPU ? 0x3f : 90; /* gfx90a, sm_90 */
  header->e_ehsize = sizeof *header;
  header->e_phoff = sizeof *header;
  header->e_phentsize = sizeof(Elf64_Phdr);
  header->e_phnum = (Elf64_Half)segments;
  header->e_shoff = elf.names - 3 * sizeof(Elf64_Shdr);
  header->e_shentsize = sizeof(Elf64_Shdr);
  header->e_shnum = 3;
  header->e_shstrndx = 1;
  Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(elf.data + header->e_shoff);
  sections[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = elf.names, .sh_size = name_bytes };
  sections[2] = (Elf64_Shdr){
    .sh_type = SHT_SYMTAB, .sh_link = 1, .sh_offset = elf.symbols, .sh_size = symbols * sizeof(Elf64_Sym)
  };
  memset(elf.data + elf.names + 1, 'k', name_bytes - 2); /* one name from the first zero byte to the last */
  return elf;
}

/* Checks that reading succeeds if `words` is NULL, or fails with a text that contains `words`. */
static void assert_read(const char *backend, struct elf *elf, const char *words) {
  const char *fault = read_words(backend, elf->data, elf->size);
  if (words == NULL && fault != NULL) fail_msg("it is refused: %s", fault);
  if (words != NULL && (fault == NULL || strstr(fault, words) == NULL)) {
    fail_msg("\"%s\", and not \"%s\"", fault != NULL ? fault : "nothing wrong", words);
  }
}

/* Each of many segments covers nearly the whole file, which consists of empty notes of 12 bytes. */
static void refuses_notes_that_overlap(void) {
  enum { SEGMENTS = 65000, BYTES = 4 << 20 };
  if (backend_named("hip") == NULL) return;
  struct elf elf = make_elf(EM_AMDGPU, SEGMENTS, 8, 0, BYTES);
  for (size_t i = 0; i < SEGMENTS; i++) {
    segments_of(&elf)[i] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = elf.symbols + 12 * i, .p_filesz = BYTES / 2 };
  }
  char words[128];
  (void)snprintf(words, sizeof words, "its segments of notes 0 (%d bytes at %zu) and 1 (%d bytes at %zu) overlap",
                 BYTES / 2, elf.symbols, BYTES / 2, elf.symbols + 12);
  assert_read("hip", &elf, words);
  for (size_t i = 0; i < SEGMENTS; i++) { /* segments without overlap are valid, in any order */
    const size_t k = i ^ 1;
    segments_of(&elf)[i] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = elf.symbols + 12 * k, .p_filesz = 12 };
  }
  assert_read("hip", &elf, NULL);
  free(elf.data);
}

/* Makes a clang offload bundle. If `apart`, each entry has its own code object; otherwise all entries share the first
 * one. */
static struct elf make_bundle(size_t entries, bool apart) {
  static const char name[] = "hipv4-amdgcn-amd-amdhsa--gfx90a";
  enum { NAME = sizeof name - 1 };
  struct elf object = make_elf(EM_AMDGPU, 1000, 8, 0, 0), file = { .size = 32 + entries * (24 + NAME) };
  const size_t first = file.size;
  for (size_t i = 0; i < 1000; i++) segments_of(&object)[i].p_type = PT_NULL;
  file.size += (apart ? entries : 1) * object.size;
  file.data = calloc(1, file.size);
  memcpy(file.data, "__CLANG_OFFLOAD_BUNDLE__", 24);
  memcpy(file.data + 24, &(uint64_t){ entries }, 8);
  for (size_t i = 0; i < entries; i++) {
    unsigned char *entry = file.data + 32 + i * (24 + NAME);
    const uint64_t numbers[3] = { first + (apart ? i * object.size : 0), object.size, NAME };
    memcpy(entry, numbers, sizeof numbers);
    memcpy(entry + sizeof numbers, name, NAME);
    memcpy(file.data + numbers[0], object.data, object.size);
  }
  free(object.data);
  return file;
}

static void refuses_entries_that_overlap(void) {
  if (backend_named("hip") == NULL) return;
  struct elf one = make_bundle(20000, false), all = make_bundle(20, true);
  assert_read("hip", &one, "its entries ");
  assert_read("hip", &one, " overlap");
  assert_read("hip", &all, NULL);
  free(one.data);
  free(all.data);
}

/* Makes a cubin whose kernels have names that start `step` bytes apart in the same text. */
static struct elf make_cubin(size_t kernels, size_t name_bytes, size_t step) {
  struct elf elf = make_elf(EM_CUDA, 0, name_bytes, kernels, 0);
  for (size_t i = 0; i < kernels; i++) {
    symbols_of(&elf)[i] = (Elf64_Sym){ .st_name = (Elf64_Word)(1 + i * step),
                                       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                       .st_other = 0x10,
                                       .st_shndx = 1 };
  }
  return elf;
}

static void refuses_duplicate_names(void) {
  if (backend_named("cuda") == NULL) return;
  struct elf equal = make_cubin(400000, 4000, 0);
  assert_read("cuda", &equal, "its kernels 1 and 2 have the same name, \"kkk");
  free(equal.data);
  struct elf ends = make_cubin(3900, 4000, 1); /* each name is a suffix of the previous one */
  assert_read("cuda", &ends, "symbols have ");
  free(ends.data);
  struct elf few = make_cubin(20, 30, 1);
  assert_read("cuda", &few, NULL);
  free(few.data);
}

/* A kernel that is declared before it is defined is counted once. */
static void reads_declarations_of_kernels(void) {
  static const char text[] = ".version 7.0\n.target sm_70\n.entry one();\n.entry two() {}\n.entry one() {}\n";
  struct rill__image image = { .parts = NULL };
  if (backend_named("cuda") == NULL) return;
  assert_null(read_image(backend_named("cuda"), text, sizeof text, &image));
  assert_int_equal(image.kernel_count, 2);
  rill__image_free(&image);
}

/* Each kernel has its own name, and each must be found. */
static void finds_each_of_many_kernels(void) {
  struct rill__image image = { .parts = NULL };
  char name[16];
  for (size_t i = 0; i < 5000; i++) {
    const size_t length = (size_t)snprintf(name, sizeof name, "kernel%zu", i);
    assert_false(rill__image_has_kernel(&image, name, length));
    assert_null(rill__image_read_kernel(&image, name, length, RILL__ARGS_UNKNOWN));
    assert_true(rill__image_has_kernel(&image, name, length));
    assert_non_null(rill__image_read_kernel(&image, "kernel0", 7, RILL__ARGS_UNKNOWN));
  }
  for (size_t i = 0; i < 5000; i++) {
    (void)snprintf(name, sizeof name, "kernel%zu", i);
    assert_int_equal(rill__image_find(&image, name), i);
  }
  assert_int_equal(rill__image_find(&image, "kernel"), 5000);
  assert_int_equal(rill__image_find(&image, "kernel5000"), 5000);
  rill__image_free(&image);
}

TESTS_ONCE("image formats", TEST(reads_every_form), TEST(refuses_every_truncation), TEST(survives_every_changed_byte),
           TEST(reads_text_as_it_is_written), TEST(reads_an_empty_fatbin), TEST(refuses_compressed_bundles),
           TEST(refuses_a_bare_seal), TEST(generic_targets_stand_for_others), TEST(refuses_notes_that_overlap),
           TEST(refuses_entries_that_overlap), TEST(refuses_duplicate_names), TEST(reads_declarations_of_kernels),
           TEST(finds_each_of_many_kernels))
