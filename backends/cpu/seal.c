/* Images that are not from a bundle: shared objects with rillcc's seal (rill/device/cpu_image.h). */
#include "backends/cpu/image.h"

#include <elf.h>
#include <rill/device/cpu_image.h>
#include <stdlib.h>
#include <string.h>

static uint32_t crc32_of(const unsigned char *data, size_t size) {
  static const uint32_t table[16] = { /* for 4 bits at a time, polynomial 0xedb88320 */
                                      0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                      0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                      0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c
  };
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < size; i++) {
    crc ^= data[i];
    crc = table[crc & 15] ^ crc >> 4;
    crc = table[crc & 15] ^ crc >> 4;
  }
  return ~crc;
}

const char *rill__cpu_recognize(const void *data, size_t size) {
  uint16_t type, machine;
  if (size < sizeof(Elf64_Ehdr) || memcmp(data, ELFMAG, SELFMAG) != 0) return NULL;
  memcpy(&type, (const char *)data + offsetof(Elf64_Ehdr, e_type), sizeof type);
  memcpy(&machine, (const char *)data + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
  if (type != ET_DYN) return NULL;
  switch (machine) {
    case EM_X86_64: return "a shared object for x86-64";
    case EM_AARCH64: return "a shared object for aarch64";
    case EM_RISCV: return "a shared object for RISC-V";
    case EM_PPC64: return "a shared object for PowerPC";
    default: return NULL;
  }
}

const char *rill__cpu_read_parts(const void *data, size_t size, struct rill__image *out) {
  rill_cpu_image_seal seal;
  _Static_assert(sizeof seal == 64 && offsetof(rill_cpu_image_seal, check) == 52, "no padding");
  if (size < sizeof(Elf64_Ehdr) + sizeof seal) return "it is too short to have a seal";
  const unsigned char *at = (const unsigned char *)data + (size - sizeof seal);
  memcpy(&seal, at, sizeof seal);
  if (memcmp(seal.magic, RILL_CPU_IMAGE_SEAL, sizeof seal.magic) != 0) {
    return "it does not end in rillcc's seal: it is truncated, or not made by rillcc";
  }
  if (seal.version != RILL_CPU_IMAGE_SEAL_VERSION) return "its seal is from a different version of rillcc";
  if (seal.size != size - sizeof seal) return "its length differs from the length in its seal";
  out->work += size;
  if (seal.check != crc32_of(data, size - sizeof seal + offsetof(rill_cpu_image_seal, check))) {
    return "its bytes do not match its seal";
  }
  if (memchr(seal.target, '\0', sizeof seal.target) == NULL) return "its seal names no target";
  return rill__image_add_part(out, "cpu", seal.target, data, seal.size) ? NULL : "no memory";
}

bool rill__cpu_seal(void **image, size_t *size, const char *target) {
  rill_cpu_image_seal seal = { .size = *size, .version = RILL_CPU_IMAGE_SEAL_VERSION };
  unsigned char *grown = realloc(*image, *size + sizeof seal);
  if (grown == NULL) return false;
  memcpy(seal.target, target, strnlen(target, sizeof seal.target - 1));
  memcpy(seal.magic, RILL_CPU_IMAGE_SEAL, sizeof seal.magic);
  memcpy(grown + *size, &seal, sizeof seal);
  seal.check = crc32_of(grown, *size + offsetof(rill_cpu_image_seal, check));
  memcpy(grown + *size, &seal, sizeof seal);
  *image = grown;
  *size += sizeof seal;
  return true;
}
