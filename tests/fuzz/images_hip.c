/* Images for the backend hip: those of the bundle, if kernels are compiled for AMD GPUs here, and some made by hand. */
#include "images.h"

#include <elf.h>
#include <string.h>

const char *const fuzz_images_backend = "hip";

/* The note of one kernel of two arguments, in the MessagePack form. */
static const char metadata[] = "\x82" /* a map of two */
                               "\xad"
                               "amdhsa.target"
                               "\xb9"
                               "amdgcn-amd-amdhsa--gfx90a"
                               "\xae"
                               "amdhsa.kernels"
                               "\x91" /* a list of one */
                               "\x86"
                               "\xa7"
                               ".symbol"
                               "\xa6"
                               "one.kd"
                               "\xb9"
                               ".group_segment_fixed_size"
                               "\xcd\x01\x00"
                               "\xb8"
                               ".max_flat_workgroup_size"
                               "\xcd\x04\x00"
                               "\xaf"
                               ".wavefront_size"
                               "\x40"
                               "\xb4"
                               ".reqd_workgroup_size"
                               "\x93\x08\x08\x01"
                               "\xa5"
                               ".args"
                               "\x92"
                               "\x84"
                               "\xa5"
                               ".name"
                               "\xa1"
                               "n"
                               "\xa7"
                               ".offset"
                               "\x00"
                               "\xa5"
                               ".size"
                               "\x04"
                               "\xab"
                               ".value_kind"
                               "\xa8"
                               "by_value"
                               "\x83"
                               "\xa7"
                               ".offset"
                               "\x08"
                               "\xa5"
                               ".size"
                               "\x08"
                               "\xab"
                               ".value_kind"
                               "\xae"
                               "hidden_block_x";

/* A code object: its note, `segments` of which only the first one says something, and its tables of names and symbols.
 */
static size_t make_code_object(uint8_t *out, size_t segments) {
  enum { NAME_SIZE = 8, SECTIONS = 3 };
  static const char names[] = "\0one.kd\0two.kd";
  const size_t text = sizeof metadata - 1, padded = (text + 3) / 4 * 4;
  const Elf64_Nhdr note = { sizeof "AMDGPU", (Elf64_Word)text, 32 };
  const size_t notes = sizeof(Elf64_Ehdr) + segments * sizeof(Elf64_Phdr) + SECTIONS * sizeof(Elf64_Shdr);
  const size_t strings = notes + sizeof note + NAME_SIZE + padded + (segments - 1) * sizeof note;
  const size_t symbols = (strings + sizeof names + 7) / 8 * 8, size = symbols + 2 * sizeof(Elf64_Sym);
  const Elf64_Ehdr header = {
    .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
    .e_type = ET_DYN,
    .e_machine = 224,
    .e_flags = 0x3f,
    .e_ehsize = sizeof header,
    .e_phoff = sizeof header,
    .e_phentsize = sizeof(Elf64_Phdr),
    .e_phnum = (Elf64_Half)segments,
    .e_shoff = notes - SECTIONS * sizeof(Elf64_Shdr),
    .e_shentsize = sizeof(Elf64_Shdr),
    .e_shnum = SECTIONS,
    .e_shstrndx = 1,
  };
  const Elf64_Shdr sections[SECTIONS] = {
    [1] = { .sh_type = SHT_STRTAB, .sh_offset = strings, .sh_size = sizeof names },
    [2] = { .sh_type = SHT_DYNSYM, .sh_link = 1, .sh_offset = symbols, .sh_size = 2 * sizeof(Elf64_Sym) },
  };
  const Elf64_Sym kernels[2] = { { .st_name = 1, .st_shndx = 1 }, { .st_name = 8, .st_shndx = 1 } };
  memset(out, 0, size);
  memcpy(out, &header, sizeof header);
  for (size_t i = 0; i < segments; i++) {
    const size_t first = sizeof note + NAME_SIZE + padded;
    const Elf64_Phdr segment = { .p_type = PT_NOTE,
                                 .p_offset = i == 0 ? notes : notes + first + (i - 1) * sizeof note,
                                 .p_filesz = i == 0 ? first : sizeof note };
    memcpy(out + sizeof header + i * sizeof segment, &segment, sizeof segment);
  }
  memcpy(out + header.e_shoff, sections, sizeof sections);
  memcpy(out + notes, &note, sizeof note);
  memcpy(out + notes + sizeof note, "AMDGPU", sizeof "AMDGPU");
  memcpy(out + notes + sizeof note + NAME_SIZE, metadata, text);
  memcpy(out + strings, names, sizeof names);
  memcpy(out + symbols, kernels, sizeof kernels);
  return size;
}

/* Clang's bundle of as many code objects. */
static size_t make_bundle(uint8_t *out, size_t entries) {
  static const char name[] = "hipv4-amdgcn-amd-amdhsa--gfx90a";
  enum { NAME_SIZE = sizeof name - 1, ENTRY_SIZE = 24 + NAME_SIZE };
  size_t size = 32 + entries * ENTRY_SIZE;
  memcpy(out, "__CLANG_OFFLOAD_BUNDLE__", 24);
  memcpy(out + 24, &(uint64_t){ entries }, 8);
  for (size_t i = 0; i < entries; i++) {
    const uint64_t object = make_code_object(out + size, 1), numbers[3] = { size, object, NAME_SIZE };
    memcpy(out + 32 + i * ENTRY_SIZE, numbers, sizeof numbers);
    memcpy(out + 32 + i * ENTRY_SIZE + sizeof numbers, name, NAME_SIZE);
    size += object;
  }
  return size;
}

size_t fuzz_images_by_hand(unsigned index, uint8_t *out) {
  switch (index) {
    case 0: return make_code_object(out, 1);
    case 1: return make_code_object(out, 40);
    case 2: return make_bundle(out, 3);
    default: return 0;
  }
}
