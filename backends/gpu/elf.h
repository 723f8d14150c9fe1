/* Reads a 64-bit little-endian ELF file in memory; the bytes may be arbitrary.
 *
 * gpu_elf_open checks that headers, sections and segments lie within the bytes, because the vendors' loaders get no
 * length and trust these numbers.  Everything else is read through functions that check their arguments.
 */
#ifndef RILL_BACKENDS_GPU_ELF_H
#define RILL_BACKENDS_GPU_ELF_H

#include "core/backend.h"

#include <elf.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "images are read as numbers of a little-endian machine"
#endif

struct gpu_elf {
  const unsigned char *data;
  size_t size;
  struct rill__image *image; /* counts the work */
  Elf64_Ehdr header;
};

/* Returns the machine of an ELF file; 0 for other files. */
static inline unsigned gpu_elf_machine(const void *data, size_t size) {
  uint16_t machine = 0;
  if (size < offsetof(Elf64_Ehdr, e_version) || memcmp(data, ELFMAG, SELFMAG) != 0) return 0;
  memcpy(&machine, (const char *)data + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
  return machine;
}

/* Return section and segment headers; the index has to be less than e_shnum or e_phnum. */
static inline Elf64_Shdr gpu_elf_section(const struct gpu_elf *elf, size_t i) {
  Elf64_Shdr section;
  memcpy(&section, elf->data + elf->header.e_shoff + i * sizeof section, sizeof section);
  return section;
}

static inline Elf64_Phdr gpu_elf_segment(const struct gpu_elf *elf, size_t i) {
  Elf64_Phdr segment;
  memcpy(&segment, elf->data + elf->header.e_phoff + i * sizeof segment, sizeof segment);
  return segment;
}

static inline const char *gpu_elf_check_sections(const struct gpu_elf *elf) {
  const Elf64_Ehdr *h = &elf->header;
  if (h->e_shnum == 0) return "it has no sections";
  if (h->e_shentsize != sizeof(Elf64_Shdr)) return "its section headers have an impossible size";
  if (!rill__inside(elf->size, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr))) {
    return "it ends before its section headers";
  }
  elf->image->work += (uint64_t)h->e_shnum * sizeof(Elf64_Shdr);
  for (size_t i = 0; i < h->e_shnum; i++) {
    const Elf64_Shdr section = gpu_elf_section(elf, i);
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    if (!rill__inside(elf->size, section.sh_offset, section.sh_size)) return "a section reaches past its end";
    if (section.sh_type == SHT_STRTAB && section.sh_size > 0 &&
        elf->data[section.sh_offset + section.sh_size - 1] != '\0')
      return "a table of names is not terminated";
  }
  if (h->e_shstrndx >= h->e_shnum || gpu_elf_section(elf, h->e_shstrndx).sh_type != SHT_STRTAB) {
    return "it has no section names";
  }
  return NULL;
}

static inline const char *gpu_elf_check_segments(const struct gpu_elf *elf) {
  const Elf64_Ehdr *h = &elf->header;
  if (h->e_phnum == 0) return NULL;
  if (h->e_phentsize != sizeof(Elf64_Phdr)) return "its program headers have an impossible size";
  if (!rill__inside(elf->size, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr))) {
    return "it ends before its program headers";
  }
  elf->image->work += (uint64_t)h->e_phnum * sizeof(Elf64_Phdr);
  for (size_t i = 0; i < h->e_phnum; i++) {
    const Elf64_Phdr segment = gpu_elf_segment(elf, i);
    if (!rill__inside(elf->size, segment.p_offset, segment.p_filesz)) return "a segment reaches past its end";
    if (segment.p_type == PT_LOAD && segment.p_memsz < segment.p_filesz) return "a segment has an impossible size";
  }
  return NULL;
}

/* Returns NULL, or what is wrong. */
static inline const char *gpu_elf_open(struct gpu_elf *elf, const void *data, size_t size, struct rill__image *image) {
  *elf = (struct gpu_elf){ .data = data, .size = size, .image = image };
  if (size < sizeof elf->header) return "it is shorter than its header";
  memcpy(&elf->header, data, sizeof elf->header);
  const Elf64_Ehdr *h = &elf->header;
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) return "it is not an ELF file";
  if (h->e_ident[EI_CLASS] != ELFCLASS64) return "it is not a 64-bit ELF file";
  if (h->e_ident[EI_DATA] != ELFDATA2LSB) return "it is not a little-endian ELF file";
  if (h->e_ident[EI_VERSION] != EV_CURRENT) return "its ELF version is unknown";
  if (h->e_ehsize != sizeof *h) return "its header has an impossible size";
  const char *fault = gpu_elf_check_sections(elf);
  return fault != NULL ? fault : gpu_elf_check_segments(elf);
}

/* Returns a zero-terminated string of section number `table`; NULL if there is none. */
static inline const char *gpu_elf_string(const struct gpu_elf *elf, size_t table, uint64_t offset) {
  if (table >= elf->header.e_shnum) return NULL;
  const Elf64_Shdr section = gpu_elf_section(elf, table);
  if (section.sh_type != SHT_STRTAB || offset >= section.sh_size) return NULL;
  return (const char *)elf->data + section.sh_offset + offset; /* ends with a zero, as gpu_elf_open checked */
}

/* Adds the kernels among the defined and named symbols of the first section of type `table`.  `name_length` returns the
 * length of a kernel's name without the part that marks it as a kernel, or 0 if the symbol is not a kernel.  Names may
 * share bytes, but all names together must not be longer than the file. */
typedef size_t gpu_elf_name_length(const Elf64_Sym *symbol, const char *name, size_t length);
static inline const char *gpu_elf_read_kernels(const struct gpu_elf *elf, uint32_t table,
                                               bool (*may_be_kernel)(const Elf64_Sym *symbol),
                                               gpu_elf_name_length *name_length) {
  size_t i = 0;
  while (i < elf->header.e_shnum && gpu_elf_section(elf, i).sh_type != table) i++;
  if (i == elf->header.e_shnum) return NULL;
  const Elf64_Shdr section = gpu_elf_section(elf, i);
  uint64_t name_bytes = 0, count = 0;
  elf->image->work += section.sh_size;
  for (uint64_t at = 0; rill__inside(section.sh_size, at, sizeof(Elf64_Sym)); at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    memcpy(&symbol, elf->data + section.sh_offset + at, sizeof symbol);
    const char *name = gpu_elf_string(elf, section.sh_link, symbol.st_name);
    if (name == NULL) return "a symbol's name lies outside of the table of names";
    if (name[0] == '\0' || symbol.st_shndx == SHN_UNDEF || !may_be_kernel(&symbol)) continue;
    const size_t length = strnlen(name, RILL__NAME_MAX + 1);
    name_bytes += length;
    count++;
    elf->image->work += length;
    if (length > RILL__NAME_MAX) return "a symbol's name is too long";
    if (name_bytes > elf->size) {
      return rill__image_fault(elf->image,
                               "the names of its first %llu symbols have %llu bytes, but the file has only %zu",
                               (unsigned long long)count, (unsigned long long)name_bytes, elf->size);
    }
    const size_t kept = name_length(&symbol, name, length);
    const char *fault = kept > 0 ? rill__image_read_kernel(elf->image, name, kept, RILL__ARGS_UNKNOWN) : NULL;
    if (fault != NULL) return fault;
  }
  return NULL;
}

#endif
