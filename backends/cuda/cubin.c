#include "backends/cuda/formats.h"
#include "backends/gpu/elf.h"

#include <stdio.h>

/* Flag in a function's st_other that marks it as a kernel. */
enum { ENTRY = 0x10 };

bool rill__cuda_is_cubin(const void *data, size_t size) { return gpu_elf_machine(data, size) == CUDA_ELF_MACHINE; }

/* Returns the number of the target.  Version 8 of the ABI moved it up by 8 bits.  The header does not say whether the
 * code is for one target only ("sm_90a"); the driver knows. */
static unsigned capability(const Elf64_Ehdr *header) {
  return header->e_ident[EI_ABIVERSION] >= 8 ? header->e_flags >> 8 & 0xff : header->e_flags & 0xff;
}

const char *rill__cuda_cubin_check(const void *data, size_t size, char target[CUDA_TARGET_SIZE],
                                   struct rill__image *image) {
  struct gpu_elf elf;
  const char *fault = gpu_elf_open(&elf, data, size, image);
  if (fault != NULL) return fault;
  if (elf.header.e_machine != CUDA_ELF_MACHINE) return "it is an ELF file for another machine";
  if (capability(&elf.header) < 10) return "it names no target";
  (void)snprintf(target, CUDA_TARGET_SIZE, "sm_%u", capability(&elf.header));
  return NULL;
}

static bool is_entry(const Elf64_Sym *symbol) {
  return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && (symbol->st_other & ENTRY) != 0;
}

static size_t all_of_name(const Elf64_Sym *symbol, const char *name, size_t length) {
  (void)symbol, (void)name;
  return length;
}

const char *rill__cuda_cubin_kernels(const void *data, size_t size, struct rill__image *out) {
  struct gpu_elf elf;
  const char *fault = gpu_elf_open(&elf, data, size, out);
  return fault != NULL ? fault : gpu_elf_read_kernels(&elf, SHT_SYMTAB, is_entry, all_of_name);
}
