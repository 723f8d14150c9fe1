/* Reads the symbols of an image: its variables, if the image lists none, and the objects in memory of an image that
 * checks its kernels.  rill_module_compile and rillcc keep these symbols.
 *
 * A variable that the host can look up is `__constant__` or `__device__`, outside namespaces, and neither static nor
 * const (docs/reference/KERNELS.md).  Its symbol is the plain name, while static and nested variables have names that
 * start with "_Z".  It lies in writable memory, unlike constants and the tables of kernels.
 */
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

/* Finds the symbol table and its string table, and checks that the latter ends in a zero. */
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

/* Returns whether the symbol lies in writable memory.  The program headers were checked when the image was loaded. */
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

/* Returns true for an identifier that is reserved neither by the compiler nor by this library. */
static bool is_symbol(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const bool reserved = name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
  return name[0] != '\0' && !reserved && name[strspn(name, letters)] == '\0' &&
         strcmp(name, RILL_CPU_IMAGE_SYMBOL) != 0;
}

/* Returns the name of the symbol's variable, or NULL. */
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
  out->list = malloc(count * sizeof *out->list + letters); /* followed by the names */
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

/* ---- objects of an image that checks itself ---- */

static size_t thread_local_bytes(const struct file *file) {
  for (size_t i = 0; i < file->header.e_phnum; i++) {
    ElfW(Phdr) segment;
    memcpy(&segment, file->data + file->header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_TLS) return segment.p_memsz;
  }
  return 0;
}

static void widen(uintptr_t *begin, uintptr_t *end, uintptr_t from, size_t size) {
  if (*end == 0 || from < *begin) *begin = from;
  if (from + size > *end) *end = from + size;
}

static void find_segments(const struct file *file, uintptr_t base, struct cpu_objects *out) {
  for (size_t i = 0; i < file->header.e_phnum; i++) {
    ElfW(Phdr) segment;
    memcpy(&segment, file->data + file->header.e_phoff + i * sizeof segment, sizeof segment);
    const uintptr_t from = base + segment.p_vaddr;
    const bool loads = segment.p_type == PT_LOAD;
    if (loads) widen(&out->begin, &out->end, from, segment.p_memsz);
    if (loads && (segment.p_flags & PF_W) != 0) widen(&out->data_begin, &out->data_end, from, segment.p_memsz);
    if (segment.p_type == PT_GNU_RELRO) widen(&out->relro_begin, &out->relro_end, from, segment.p_memsz);
  }
}

/* Returns true if `rest` can follow the last identifier of a mangled name: "E", or a discriminator such as "_0". */
static bool ends_name(const char *rest) {
  if (*rest == 'E') rest++;
  if (*rest == '_') rest += 1 + strspn(rest + 1, "0123456789_");
  return *rest == '\0' || *rest == '.';
}

/* Returns the last identifier of a symbol and its length: "s" of "_ZZL11rill_body_kPfE1s". */
static const char *identifier_of(const char *symbol, size_t *length) {
  const size_t all = strlen(symbol);
  *length = all;
  if (strncmp(symbol, "_Z", 2) != 0) return symbol;
  for (const char *at = symbol; *at != '\0'; at++) {
    char *name = NULL;
    const unsigned long letters = *at >= '1' && *at <= '9' ? strtoul(at, &name, 10) : 0;
    if (letters == 0 || letters > all - (size_t)(name - symbol) || !ends_name(name + letters)) continue;
    *length = letters;
    return name;
  }
  return symbol;
}

static const char *object_symbol(const struct file *file, size_t i, ElfW(Sym) * symbol) {
  memcpy(symbol, file->data + file->symbols.sh_offset + i * sizeof *symbol, sizeof *symbol);
  const unsigned type = symbol->st_info & 0xf;
  const bool is_object = (type == STT_OBJECT || type == STT_TLS) && symbol->st_size != 0 &&
                         symbol->st_shndx != SHN_UNDEF && symbol->st_name < file->strings.sh_size;
  return is_object ? (const char *)file->data + file->strings.sh_offset + symbol->st_name : NULL;
}

static int by_begin(const void *a, const void *b) {
  const uintptr_t first = ((const struct cpu_object *)a)->begin, second = ((const struct cpu_object *)b)->begin;
  return first < second ? -1 : first > second;
}

/* Allocates memory for the largest possible number of objects, and for all characters of their names. */
static bool make_room(const struct file *file, struct cpu_objects *out) {
  const size_t symbols = file->symbols.sh_size / sizeof(ElfW(Sym));
  size_t letters = 1;
  for (size_t i = 0; i < symbols; i++) {
    ElfW(Sym) symbol;
    const char *const name = object_symbol(file, i, &symbol);
    if (name != NULL) letters += strlen(name) + 1;
  }
  out->variables.objects = calloc(symbols + 1, sizeof *out->variables.objects);
  out->locals.objects = calloc(symbols + 1, sizeof *out->locals.objects);
  out->names = malloc(letters);
  return out->variables.objects != NULL && out->locals.objects != NULL && out->names != NULL;
}

/* Adds an object.  `text`: room for its name; returns the room that is left. */
static char *add_object(struct cpu_object_list *list, uintptr_t begin, size_t size, const char *symbol, char *text) {
  size_t length = 0;
  const char *const name = identifier_of(symbol, &length);
  memcpy(text, name, length);
  text[length] = '\0';
  list->objects[list->count++] = (struct cpu_object){ begin, size, text };
  return text + length + 1;
}

const char *rill__cpu_objects_read(const void *data, size_t size, uintptr_t base, struct cpu_objects *out) {
  struct file file = { .data = data, .size = size };
  bool has_state = false;
  memcpy(&file.header, data, sizeof file.header);
  *out = (struct cpu_objects){ .begin = 0 };
  if (!find_tables(&file)) return "it has no symbols";
  if (!make_room(&file, out)) return "no host memory for the list of its variables";
  out->local_bytes = thread_local_bytes(&file);
  find_segments(&file, base, out);
  char *text = out->names;
  for (size_t i = 0; i < file.symbols.sh_size / sizeof(ElfW(Sym)); i++) {
    ElfW(Sym) symbol;
    const char *const name = object_symbol(&file, i, &symbol);
    if (name == NULL) continue;
    const bool local = (symbol.st_info & 0xf) == STT_TLS;
    if (local && strcmp(name, RILL_CPU_CHECK_STATE) == 0) {
      has_state = true; /* no kernel accesses it */
      out->state = symbol.st_value;
      continue;
    }
    text = add_object(local ? &out->locals : &out->variables, (local ? 0 : base) + symbol.st_value, symbol.st_size,
                      name, text);
  }
  qsort(out->variables.objects, out->variables.count, sizeof *out->variables.objects, by_begin);
  qsort(out->locals.objects, out->locals.count, sizeof *out->locals.objects, by_begin);
  return has_state ? NULL : "it has no symbol \"" RILL_CPU_CHECK_STATE "\"";
}

void rill__cpu_objects_free(struct cpu_objects *objects) {
  free(objects->variables.objects);
  free(objects->locals.objects);
  free(objects->names);
}
