/* Simulates an older driver: hides functions.
 *
 * What dlsym finds is the table of symbols that the library brings along, mapped into memory.  Emptying the name
 * of an entry hides it; references inside the library were bound before (it is linked with -z now), and are by
 * number, not by name. */
#include "options.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct symbols {
  ElfW(Sym) * table;
  size_t count;
  const char *names;
};

/* The number of symbols stands in no header; the hash table that the loader uses tells. */
static size_t count_symbols(const uint32_t *hash) {
  const uint32_t bucket_count = hash[0], first = hash[1], bloom_words = hash[2];
  const uint32_t *buckets = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const uint32_t *chains = buckets + bucket_count;
  uint32_t last = 0;
  for (uint32_t i = 0; i < bucket_count; i++)
    if (buckets[i] > last) last = buckets[i];
  if (last < first) return first;
  while ((chains[last - first] & 1) == 0) last++;
  return (size_t)last + 1;
}

static bool own_symbols(struct symbols *out) {
  extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
  *out = (struct symbols){ .table = NULL };
  for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL;
       entry++) { /* addresses: the loader has relocated them */
    if (entry->d_tag == DT_SYMTAB) out->table = (ElfW(Sym) *)entry->d_un.d_ptr;
    else if (entry->d_tag == DT_STRTAB) out->names = (const char *)entry->d_un.d_ptr;
    else if (entry->d_tag == DT_GNU_HASH) out->count = count_symbols((const uint32_t *)entry->d_un.d_ptr);
  }
  return out->table != NULL && out->names != NULL && out->count != 0;
}

/* "cuMemAlloc" lists cuMemAlloc_v2 too. */
static bool is_listed(const char *list, const char *name) {
  const char *suffix = strstr(name, "_v");
  const size_t length = suffix != NULL ? (size_t)(suffix - name) : strlen(name);
  while (list != NULL && *list != '\0') {
    const size_t word = strcspn(list, ",");
    if (word == length && memcmp(list, name, word) == 0) return true;
    list += word + (list[word] == ',');
  }
  return false;
}

static void hide(ElfW(Sym) * symbol) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *start = (char *)((uintptr_t)symbol / page * page);
  const size_t size = (size_t)((char *)(symbol + 1) - start);
  if (mprotect(start, size, PROT_READ | PROT_WRITE) != 0) fake_die("cannot hide a function");
  symbol->st_name = 0;
  (void)mprotect(start, size, PROT_READ);
}

/* Runs before dlopen returns. */
__attribute__((constructor)) static void hide_missing(void) {
  const char *missing = fake_environment("MISSING");
  const int version = fake_options()->version;
  struct symbols symbols;
  if (!own_symbols(&symbols)) fake_die("cannot find the library's own symbols");
  for (size_t i = 1; i < symbols.count; i++) {
    const char *name = symbols.names + symbols.table[i].st_name;
    if (symbols.table[i].st_shndx != SHN_UNDEF && (is_listed(missing, name) || fake_first_version(name) > version))
      hide(&symbols.table[i]);
  }
}
