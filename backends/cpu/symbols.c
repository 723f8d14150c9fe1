/* The variables of an image that lists none: its symbols.  What rill_module_compile makes keeps them.
 *
 * A variable that the host may ask for is `__constant__` or `__device__`, outside namespaces, neither static nor const
 * (docs/KERNELS.md).  Its symbol is then the plain name: whatever is static or inside something is called "_Z...".
 * It lies where the image can be written, which neither constants nor the tables of kernels do. */
#include "backends/cpu/image.h"

#include <elf.h>
#include <link.h>
#include <rill/device/cpu_image.h>
#include <stdlib.h>
#include <string.h>

struct file {
  const unsigned char *data;
  size_t size;
  ElfW(Ehdr) header;
  ElfW(Shdr) symbols, strings;
};

static bool is_inside(const struct file *file, const ElfW(Shdr) * section) {
  return section->sh_offset <= file->size && section->sh_size <= file->size - section->sh_offset;
}

static bool read_section(const struct file *file, size_t index, ElfW(Shdr) * out) {
  const size_t offset = file->header.e_shoff + index * sizeof *out;
  if (index >= file->header.e_shnum || offset > file->size || sizeof *out > file->size - offset) return false;
  memcpy(out, file->data + offset, sizeof *out);
  return true;
}

/* Finds the table of symbols and that of their names, which ends in a zero. */
static bool find_tables(struct file *file) {
  if (file->header.e_shoff == 0 || file->header.e_shentsize != sizeof file->symbols) return false;
  for (size_t i = 1; read_section(file, i, &file->symbols); i++) {
    if (file->symbols.sh_type != SHT_SYMTAB) continue;
    return read_section(file, file->symbols.sh_link, &file->strings) && file->strings.sh_type == SHT_STRTAB &&
           is_inside(file, &file->symbols) && is_inside(file, &file->strings) && file->strings.sh_size != 0 &&
           file->data[file->strings.sh_offset + file->strings.sh_size - 1] == '\0';
  }
  return false;
}

/* The program headers were checked when the image was loaded. */
static bool is_writable(const struct file *file, const ElfW(Sym) * symbol) {
  bool writable = false;
  for (size_t i = 0; i < file->header.e_phnum; i++) {
    ElfW(Phdr) segment;
    memcpy(&segment, file->data + file->header.e_phoff + i * sizeof segment, sizeof segment);
    const bool holds = symbol->st_value >= segment.p_vaddr && symbol->st_size <= segment.p_memsz &&
                       symbol->st_value - segment.p_vaddr <= segment.p_memsz - symbol->st_size;
    if (holds && segment.p_type == PT_GNU_RELRO) return false;
    writable = writable || (holds && segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0);
  }
  return writable;
}

/* An identifier that is not the compiler's, nor this library's own. */
static bool is_symbol(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const bool reserved = name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
  return name[0] != '\0' && !reserved && name[strspn(name, letters)] == '\0' &&
         strcmp(name, RILL_CPU_IMAGE_SYMBOL) != 0;
}

/* The name of the symbol's variable, or NULL. */
static const char *variable_at(const struct file *file, size_t i, ElfW(Sym) * symbol) {
  memcpy(symbol, file->data + file->symbols.sh_offset + i * sizeof *symbol, sizeof *symbol);
  if ((symbol->st_info & 0xf) != STT_OBJECT || symbol->st_size == 0 || symbol->st_shndx == SHN_UNDEF ||
      symbol->st_shndx >= SHN_LORESERVE || symbol->st_name >= file->strings.sh_size)
    return NULL;
  const char *name = (const char *)file->data + file->strings.sh_offset + symbol->st_name;
  return is_symbol(name) && is_writable(file, symbol) ? name : NULL;
}

bool rill__cpu_variables_read(const void *data, size_t size, uintptr_t base, struct cpu_variables *out) {
  struct file file = { .data = data, .size = size };
  ElfW(Sym) symbol;
  memcpy(&file.header, data, sizeof file.header);
  *out = (struct cpu_variables){ .list = NULL };
  if (!find_tables(&file)) return true;
  const size_t symbols = file.symbols.sh_size / sizeof symbol;
  size_t count = 0, letters = 0;
  for (size_t i = 0; i < symbols; i++) {
    const char *name = variable_at(&file, i, &symbol);
    if (name == NULL) continue;
    letters += strlen(name) + 1;
    count++;
  }
  if (count == 0) return true;
  out->list = malloc(count * sizeof *out->list + letters); /* the names are after it */
  if (out->list == NULL) return false;
  char *text = (char *)&out->list[count];
  for (size_t i = 0; i < symbols; i++) {
    const char *name = variable_at(&file, i, &symbol);
    if (name == NULL) continue;
    const size_t length = strlen(name) + 1;
    void *address = (void *)(base + symbol.st_value);
    out->list[out->count++] = (rill_cpu_variable){ .name = text, .address = address, .size = symbol.st_size };
    memcpy(text, name, length);
    text += length;
  }
  return true;
}
