/* Contents of an image: names of kernels and their static shared memory.
 *
 * A vendor's load function gets a pointer and no length, so an image says itself how long it is.  It is copied
 * through the kernel, which answers EFAULT where a pointer into nothing would end the program, and everything in
 * the copy is checked against its size. */
#include "image.h"

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MACHINE_CUDA = 190, MACHINE_AMD = 224, CUDA_ENTRY = 0x10 /* in st_other */ };
static const size_t most_bytes = (size_t)256 << 20;

/* ---- copying memory that may be unmapped ---- */

/* Copies as many of the `n` bytes at `src` as are mapped. */
static size_t copy_mapped(void *dst, const void *src, size_t n) {
  const int fd = memfd_create("image", MFD_CLOEXEC);
  if (fd < 0) return 0;
  size_t done = 0;
  while (done < n) { /* the plain system call: sanitizers look into the buffers of write() */
    const long got = syscall(SYS_write, fd, (const char *)src + done, n - done);
    if (got <= 0) break;
    done += (size_t)got;
  }
  size_t back = 0;
  while (back < done) {
    const ssize_t got = pread(fd, (char *)dst + back, done - back, (off_t)back);
    if (got <= 0) break;
    back += (size_t)got;
  }
  (void)close(fd);
  return back;
}

/* A copy of exactly `n` bytes with a zero after it, or NULL. */
static unsigned char *copy_of(const void *src, size_t n) {
  if (n > most_bytes) return NULL;
  unsigned char *copy = malloc(n + 1);
  if (copy == NULL) return NULL;
  if (copy_mapped(copy, src, n) != n) {
    free(copy);
    return NULL;
  }
  copy[n] = 0;
  return copy;
}

/* A copy of a text with its zero, or NULL if there is no zero. */
static unsigned char *copy_of_text(const char *src, size_t *size) {
  enum { STEP = 4096 };
  unsigned char *copy = NULL;
  for (size_t n = 0; n < most_bytes; n += STEP) {
    unsigned char *grown = realloc(copy, n + STEP);
    if (grown == NULL) break;
    copy = grown;
    const size_t got = copy_mapped(copy + n, src + n, STEP);
    const unsigned char *end = memchr(copy + n, 0, got);
    if (end != NULL) {
      *size = (size_t)(end - copy) + 1;
      return copy;
    }
    if (got < STEP) break;
  }
  free(copy);
  return NULL;
}

/* ---- results ---- */

static bool add_kernel(struct fake_image *image, const char *name, size_t length, uint32_t shared) {
  struct fake_symbol *kernels = realloc(image->kernels, (image->kernel_count + 1) * sizeof *kernels);
  if (kernels == NULL) return false;
  image->kernels = kernels;
  char *copy = strndup(name, length);
  if (copy == NULL) return false;
  kernels[image->kernel_count++] = (struct fake_symbol){ .name = copy, .shared = shared };
  return true;
}

void fake_image_free(struct fake_image *image) {
  for (size_t i = 0; i < image->kernel_count; i++) free(image->kernels[i].name);
  free(image->kernels);
  free(image->data);
  *image = (struct fake_image){ .data = NULL };
}

/* ---- ELF: cubins and AMD code objects ---- */

struct elf {
  const unsigned char *data;
  size_t size;
  Elf64_Ehdr header;
};

static bool inside(size_t size, uint64_t offset, uint64_t n) { return offset <= size && n <= size - offset; }

static bool section_at(const struct elf *elf, size_t index, Elf64_Shdr *out) {
  if (index >= elf->header.e_shnum) return false;
  memcpy(out, elf->data + elf->header.e_shoff + index * sizeof *out, sizeof *out); /* inside: see whole_elf */
  return out->sh_type == SHT_NOBITS || inside(elf->size, out->sh_offset, out->sh_size);
}

/* A string of a string table, zero-terminated within it; "" if it is not. */
static const char *string_at(const struct elf *elf, size_t table, uint64_t offset) {
  Elf64_Shdr section;
  if (!section_at(elf, table, &section) || section.sh_type != SHT_STRTAB || offset >= section.sh_size) return "";
  const char *text = (const char *)elf->data + section.sh_offset + offset;
  return memchr(text, 0, section.sh_size - offset) != NULL ? text : "";
}

/* Reads header and section headers to learn how long the image is, then copies it. */
static bool whole_elf(const void *src, struct elf *elf) {
  Elf64_Ehdr *header = &elf->header;
  if (copy_mapped(header, src, sizeof *header) != sizeof *header) return false;
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shnum == 0 || header->e_shoff > most_bytes)
    return false;
  const size_t table = header->e_shnum * sizeof(Elf64_Shdr);
  Elf64_Shdr *sections = (Elf64_Shdr *)copy_of((const char *)src + header->e_shoff, table);
  if (sections == NULL) return false;
  size_t size = header->e_shoff + table;
  bool good = true;
  for (size_t i = 0; i < header->e_shnum && good; i++) {
    if (sections[i].sh_type == SHT_NULL || sections[i].sh_type == SHT_NOBITS) continue;
    good = inside(most_bytes, sections[i].sh_offset, sections[i].sh_size);
    if (good && sections[i].sh_offset + sections[i].sh_size > size) size = sections[i].sh_offset + sections[i].sh_size;
  }
  free(sections);
  elf->size = size;
  elf->data = good ? copy_of(src, size) : NULL;
  return elf->data != NULL;
}

/* The size of ".nv.shared.NAME"; newer ones begin with 1 KiB that is the system's own. */
static uint32_t cuda_shared(const struct elf *elf, const char *kernel) {
  enum { SYSTEM = 1024 };
  static const char prefix[] = ".nv.shared.";
  Elf64_Shdr section;
  for (size_t i = 1; section_at(elf, i, &section); i++) {
    const char *name = string_at(elf, elf->header.e_shstrndx, section.sh_name);
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || strcmp(name + sizeof prefix - 1, kernel) != 0) continue;
    const uint64_t size = section.sh_size >= SYSTEM ? section.sh_size - SYSTEM : section.sh_size;
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
  }
  return 0;
}

/* The first field of the kernel descriptor that "NAME.kd" labels. */
static uint32_t amd_shared(const struct elf *elf, const Elf64_Sym *symbol) {
  Elf64_Shdr section;
  uint32_t size = 0;
  if (!section_at(elf, symbol->st_shndx, &section) || section.sh_type == SHT_NOBITS ||
      symbol->st_value < section.sh_addr || !inside(section.sh_size, symbol->st_value - section.sh_addr, sizeof size))
    return 0;
  memcpy(&size, elf->data + section.sh_offset + (symbol->st_value - section.sh_addr), sizeof size);
  return size;
}

static bool take_symbol(const struct elf *elf, const Elf64_Sym *symbol, const char *name, struct fake_image *image) {
  const size_t length = strlen(name);
  if (symbol->st_shndx == SHN_UNDEF || length == 0) return true;
  if (elf->header.e_machine == MACHINE_CUDA)
    return ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || (symbol->st_other & CUDA_ENTRY) == 0 ||
           add_kernel(image, name, length, cuda_shared(elf, name));
  return length <= 3 || strcmp(name + length - 3, ".kd") != 0 ||
         add_kernel(image, name, length - 3, amd_shared(elf, symbol));
}

static int read_elf(const void *src, unsigned machine, struct fake_image *image) {
  struct elf elf = { .size = 0 };
  if (!whole_elf(src, &elf)) return FAKE_INVALID_IMAGE;
  image->data = (unsigned char *)(uintptr_t)elf.data;
  image->size = elf.size;
  if (elf.header.e_machine != machine) return FAKE_INVALID_IMAGE;
  const uint32_t table = machine == MACHINE_CUDA ? SHT_SYMTAB : SHT_DYNSYM;
  Elf64_Shdr section;
  bool found = false;
  for (size_t i = 1; i < elf.header.e_shnum; i++) {
    if (!section_at(&elf, i, &section)) return FAKE_INVALID_IMAGE;
    if (section.sh_type != table) continue;
    found = true;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      memcpy(&symbol, elf.data + section.sh_offset + at, sizeof symbol);
      if (!take_symbol(&elf, &symbol, string_at(&elf, section.sh_link, symbol.st_name), image))
        return FAKE_OUT_OF_MEMORY;
    }
  }
  return found ? FAKE_OK : FAKE_INVALID_IMAGE;
}

/* ---- clang's bundle of several AMD code objects ---- */

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";

/* Does "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+" name this target? */
static bool names_target(const char *entry, const char *target) {
  const char *found = strstr(entry, target);
  const char end = found == NULL ? 'x' : found[strlen(target)];
  return found != NULL && found != entry && found[-1] == '-' && (end == '\0' || end == ':');
}

static int find_in_bundle(const char *src, const char *target, const void **out) {
  struct {
    uint64_t offset, size, name_size;
  } entry;
  uint64_t count;
  if (copy_mapped(&count, src + sizeof bundle_magic - 1, sizeof count) != sizeof count || count > 1024)
    return FAKE_INVALID_IMAGE;
  const char *at = src + sizeof bundle_magic - 1 + sizeof count;
  for (uint64_t i = 0; i < count; i++) {
    char name[128] = "";
    if (copy_mapped(&entry, at, sizeof entry) != sizeof entry || entry.name_size >= sizeof name ||
        entry.offset > most_bytes || copy_mapped(name, at + sizeof entry, entry.name_size) != entry.name_size)
      return FAKE_INVALID_IMAGE;
    if (names_target(name, target)) {
      *out = src + entry.offset;
      return FAKE_OK;
    }
    at += sizeof entry + entry.name_size;
  }
  return FAKE_NO_BINARY;
}

/* ---- CUDA's file of several ---- */

static const uint32_t fatbin_magic = 0xba55ed50;

/* The entry that a device of this target runs: the latest machine code, or else PTX.  Nothing compressed. */
static int find_in_fatbin(const char *src, const char *target, const void **out) {
  struct {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;
  } file;
  struct {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed_size, unknown, language, target;
  } entry;
  if (copy_mapped(&file, src, sizeof file) != sizeof file || file.size > most_bytes) return FAKE_INVALID_IMAGE;
  const unsigned own = (unsigned)strtoul(strpbrk(target, "0123456789"), NULL, 10);
  unsigned best = 0;
  for (uint64_t at = file.header_size; at < file.header_size + file.size; at += entry.header_size + entry.size) {
    if (copy_mapped(&entry, src + at, sizeof entry) != sizeof entry || entry.header_size == 0 ||
        entry.size > most_bytes)
      return FAKE_INVALID_IMAGE;
    const bool code = entry.kind == 2 && entry.target / 10 == own / 10, ptx = entry.kind == 1;
    const unsigned fit = (code ? 10000 : 0) + entry.target;
    if (entry.compressed_size != 0 || (!code && !ptx) || entry.target > own || fit <= best) continue;
    best = fit;
    *out = src + at + entry.header_size;
  }
  return best != 0 ? FAKE_OK : FAKE_NO_BINARY;
}

/* ---- PTX ---- */

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/* Bytes of the variables that a kernel declares in its body: ".shared .align 4 .b8 name[1024]". */
static uint32_t ptx_shared(const char *body, const char *end) {
  static const char declaration[] = ".shared .align ";
  uint32_t sum = 0;
  for (const char *at = body; (at = strstr(at, declaration)) != NULL && at < end; at += sizeof declaration - 1) {
    const char *size = strchr(at, '[');
    if (size != NULL && size < strchr(at, ';')) sum += (uint32_t)strtoul(size + 1, NULL, 10);
  }
  return sum;
}

static int read_ptx(const char *src, struct fake_image *image) {
  image->data = copy_of_text(src, &image->size);
  if (image->data == NULL || strstr((const char *)image->data, ".version") == NULL) return FAKE_INVALID_IMAGE;
  static const char entry[] = ".entry";
  const char *at = (const char *)image->data;
  while ((at = strstr(at, entry)) != NULL) {
    at += sizeof entry - 1;
    at += strspn(at, " \t\n");
    size_t length = 0;
    while (is_name(at[length])) length++;
    const char *next = strstr(at, entry), *end = next != NULL ? next : at + strlen(at);
    if (length != 0 && !add_kernel(image, at, length, ptx_shared(at, end))) return FAKE_OUT_OF_MEMORY;
  }
  return FAKE_OK;
}

int fake_image_read(const void *data, const char *backend, const char *target, struct fake_image *out) {
  const bool cuda = strcmp(backend, "cuda") == 0;
  char start[sizeof bundle_magic] = "";
  *out = (struct fake_image){ .data = NULL };
  (void)copy_mapped(start, data, sizeof start - 1);
  int code = FAKE_OK;
  if (!cuda && memcmp(start, bundle_magic, sizeof bundle_magic - 1) == 0) {
    code = find_in_bundle(data, target, &data);
    memcpy(start, ELFMAG, SELFMAG);
  }
  if (cuda && memcmp(start, &fatbin_magic, sizeof fatbin_magic) == 0) {
    code = find_in_fatbin(data, target, &data);
    if (code == FAKE_OK) (void)copy_mapped(start, data, sizeof start - 1);
  }
  if (code == FAKE_OK && memcmp(start, ELFMAG, SELFMAG) == 0)
    code = read_elf(data, cuda ? MACHINE_CUDA : MACHINE_AMD, out);
  else if (code == FAKE_OK) code = cuda && start[0] != '\0' ? read_ptx(data, out) : FAKE_INVALID_IMAGE;
  if (code != FAKE_OK) fake_image_free(out);
  return code;
}
