#include "backends/gpu/elf.h"
#include "backends/hip/formats.h"

#include <stdio.h>
#include <stdlib.h>

enum { NOTE_METADATA = 32 };

bool rill__hip_is_code_object(const void *data, size_t size) { return gpu_elf_machine(data, size) == HIP_ELF_MACHINE; }

/* ---- the note ---- */

/* Returns the description in one segment of notes; NULL if there is none. */
static const unsigned char *find_note(const unsigned char *at, uint64_t left, uint32_t *size) {
  static const char name[] = "AMDGPU";
  Elf64_Nhdr note;
  while (left >= sizeof note) {
    memcpy(&note, at, sizeof note);
    const uint64_t name_size = ((uint64_t)note.n_namesz + 3) / 4 * 4;
    const uint64_t note_bytes = sizeof note + name_size + ((uint64_t)note.n_descsz + 3) / 4 * 4;
    if (sizeof note + name_size + note.n_descsz > left) return NULL;
    if (note.n_type == NOTE_METADATA && note.n_namesz == sizeof name &&
        memcmp(at + sizeof note, name, sizeof name) == 0) {
      *size = note.n_descsz;
      return at + sizeof note + name_size;
    }
    if (note_bytes >= left) return NULL;
    at += note_bytes;
    left -= note_bytes;
  }
  return NULL;
}

/* Finds the description; `note` is NULL if there is none.  Refuses segments of notes that overlap, because the same
 * bytes would be read repeatedly. */
static const char *find_metadata(const struct gpu_elf *elf, const unsigned char **note, uint32_t *size) {
  struct rill__byte_range *notes = malloc(((size_t)elf->header.e_phnum + 1) * sizeof *notes);
  size_t count = 0;
  *note = NULL;
  if (notes == NULL) {
    elf->image->no_memory = true;
    return "no memory";
  }
  for (size_t i = 0; i < elf->header.e_phnum; i++) {
    const Elf64_Phdr segment = gpu_elf_segment(elf, i);
    if (segment.p_type == PT_NOTE && segment.p_filesz > 0)
      notes[count++] = (struct rill__byte_range){ segment.p_offset, segment.p_filesz, i };
  }
  const char *fault = rill__image_check_disjoint(elf->image, notes, count, "segments of notes");
  for (size_t i = 0; i < count && fault == NULL && *note == NULL; i++) {
    elf->image->work += notes[i].size;
    *note = find_note(elf->data + notes[i].offset, notes[i].size, size);
  }
  free(notes);
  return fault;
}

/* ---- the target ---- */

/* Numbers of the targets in e_flags. */
static const struct {
  unsigned char number;
  const char *name;
} machines[] = {
  { 0x20, "gfx600" },         { 0x21, "gfx601" },       { 0x22, "gfx700" },          { 0x23, "gfx701" },
  { 0x24, "gfx702" },         { 0x25, "gfx703" },       { 0x26, "gfx704" },          { 0x28, "gfx801" },
  { 0x29, "gfx802" },         { 0x2a, "gfx803" },       { 0x2b, "gfx810" },          { 0x2c, "gfx900" },
  { 0x2d, "gfx902" },         { 0x2e, "gfx904" },       { 0x2f, "gfx906" },          { 0x30, "gfx908" },
  { 0x31, "gfx909" },         { 0x32, "gfx90c" },       { 0x33, "gfx1010" },         { 0x34, "gfx1011" },
  { 0x35, "gfx1012" },        { 0x36, "gfx1030" },      { 0x37, "gfx1031" },         { 0x38, "gfx1032" },
  { 0x39, "gfx1033" },        { 0x3a, "gfx602" },       { 0x3b, "gfx705" },          { 0x3c, "gfx805" },
  { 0x3d, "gfx1035" },        { 0x3e, "gfx1034" },      { 0x3f, "gfx90a" },          { 0x40, "gfx940" },
  { 0x41, "gfx1100" },        { 0x42, "gfx1013" },      { 0x43, "gfx1150" },         { 0x44, "gfx1103" },
  { 0x45, "gfx1036" },        { 0x46, "gfx1101" },      { 0x47, "gfx1102" },         { 0x48, "gfx1200" },
  { 0x4a, "gfx1151" },        { 0x4b, "gfx941" },       { 0x4c, "gfx942" },          { 0x4e, "gfx1201" },
  { 0x4f, "gfx950" },         { 0x51, "gfx9-generic" }, { 0x52, "gfx10-1-generic" }, { 0x53, "gfx10-3-generic" },
  { 0x54, "gfx11-generic" },  { 0x55, "gfx1152" },      { 0x58, "gfx1153" },         { 0x59, "gfx12-generic" },
  { 0x5f, "gfx9-4-generic" },
};

/* Features required by a code object of version 4 or later: 2 is off, 3 is on. */
static const char *feature(uint32_t bits, const char *off, const char *on) {
  return (bits & 3) == 2 ? off : (bits & 3) == 3 ? on : "";
}

static void name_target(uint32_t flags, char target[HIP_TARGET_SIZE]) {
  for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
    if (machines[i].number != (flags & 0xff)) continue;
    (void)snprintf(target, HIP_TARGET_SIZE, "%s%s%s", machines[i].name, feature(flags >> 10, ":sramecc-", ":sramecc+"),
                   feature(flags >> 8, ":xnack-", ":xnack+"));
    return;
  }
  (void)snprintf(target, HIP_TARGET_SIZE, "machine 0x%x", flags & 0xff);
}

const char *rill__hip_code_object_check(const void *data, size_t size, char target[HIP_TARGET_SIZE],
                                        struct rill__image *image) {
  struct gpu_elf elf;
  const char *fault = gpu_elf_open(&elf, data, size, image);
  if (fault != NULL) return fault;
  if (elf.header.e_machine != HIP_ELF_MACHINE) return "it is an ELF file for another machine";
  if (elf.header.e_type != ET_DYN) return "it is not linked";
  uint32_t note_size = 0;
  const unsigned char *note = NULL;
  fault = find_metadata(&elf, &note, &note_size);
  target[0] = '\0';
  if (note != NULL) fault = rill__hip_metadata_read(note, note_size, target, image);
  if (fault == NULL && target[0] == '\0') name_target(elf.header.e_flags, target);
  return fault;
}

/* ---- kernels ---- */

static bool is_any(const Elf64_Sym *symbol) {
  (void)symbol;
  return true;
}

/* Returns the length of a kernel's name.  The name of its descriptor is the kernel's name followed by ".kd". */
static size_t without_suffix(const Elf64_Sym *symbol, const char *name, size_t length) {
  (void)symbol;
  return length > 3 && memcmp(name + length - 3, ".kd", 3) == 0 ? length - 3 : 0;
}

const char *rill__hip_code_object_kernels(const void *data, size_t size, struct rill__image *out) {
  struct gpu_elf elf;
  const unsigned char *note = NULL;
  uint32_t note_size = 0;
  const char *fault = gpu_elf_open(&elf, data, size, out);
  if (fault == NULL) fault = find_metadata(&elf, &note, &note_size);
  if (fault != NULL) return fault;
  if (note != NULL) return rill__hip_metadata_read(note, note_size, NULL, out);
  return gpu_elf_read_kernels(&elf, SHT_DYNSYM, is_any, without_suffix);
}
