/* hipRTC for tests: what comes out is an ELF file with the kernels as its symbols, and nothing else. */
#include "fake_rtc.h"

#pragma GCC visibility push(default)
#include "backends/hip/hip_api.h"
#pragma GCC visibility pop

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rtc_program *program_of(hiprtcProgram program) { return (struct rtc_program *)(void *)program; }

const char *hiprtcGetErrorString(hiprtcResult result) {
  switch ((int)result) {
    case RTC_OK: return "HIPRTC_SUCCESS";
    case RTC_NO_MEMORY: return "HIPRTC_ERROR_OUT_OF_MEMORY";
    case RTC_BAD_INPUT: return "HIPRTC_ERROR_INVALID_INPUT";
    case RTC_BAD_PROGRAM: return "HIPRTC_ERROR_INVALID_PROGRAM";
    case RTC_BAD_OPTION: return "HIPRTC_ERROR_INVALID_OPTION";
    case RTC_HAS_ERRORS: return "HIPRTC_ERROR_COMPILATION";
    default: return "Invalid HIPRTC error code";
  }
}

hiprtcResult hiprtcVersion(int *major, int *minor) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (hiprtcResult)refused;
  *major = 7;
  *minor = 1;
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcCreateProgram(hiprtcProgram *out, const char *source, const char *name, int count,
                                 const char **headers, const char **names) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (hiprtcResult)refused;
  struct rtc_program *program = NULL;
  const int result = rtc_create(&program, source, name, count, headers, names);
  if (result == RTC_OK) *out = (hiprtcProgram)(void *)program;
  return (hiprtcResult)result;
}

hiprtcResult hiprtcDestroyProgram(hiprtcProgram *program) {
  const int refused = rtc_enter(__func__), result = rtc_destroy((struct rtc_program **)(void *)program);
  return (hiprtcResult)(refused != RTC_OK ? refused : result);
}

static long hip_version(void) {
  const char *version = getenv("RILL_FAKE_VERSION");
  return version != NULL ? strtol(version, NULL, 10) : 70253211;
}

/* As the compilers of RILL_FAKE_VERSION: those of 7 have options that earlier ones call unknown, and for an option of
 * LLVM that there is none any more in version 8, LLVM ends the process. */
static bool knows(const char *option) {
  if (strcmp(option, "-amdgpu-sdwa-peephole=0") == 0 && hip_version() >= 80000000) exit(1);
  if (strcmp(option, "-mllvm") == 0 || strcmp(option, "-amdgpu-sdwa-peephole=0") == 0) return true;
  return hip_version() >= 70000000 &&
         (strcmp(option, "-fatomic-fine-grained-memory") == 0 || strcmp(option, "-fatomic-remote-memory") == 0);
}

static int refuse(struct rtc_program *program, const char *option) {
  static const char format[] = "error: unknown argument: '%s'\n";
  const size_t size = sizeof format + strlen(option);
  free(program->log);
  program->log = malloc(size);
  if (program->log != NULL) (void)snprintf(program->log, size, format, option);
  return RTC_HAS_ERRORS;
}

hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int count, const char **options) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (hiprtcResult)refused;
  const char **words = calloc((size_t)count + 1, sizeof *words);
  int n = 0, result = RTC_OK;
  for (int i = 0; i < count; i++) {
    const char *option = options[i];
    const bool target = strncmp(option, "--offload-arch=gfx", 18) == 0;
    const bool shared = strncmp(option, "-D", 2) == 0 || strncmp(option, "-U", 2) == 0 ||
                        strncmp(option, "-ffp-contract=", 14) == 0 || strcmp(option, "-std=c++17") == 0 ||
                        strcmp(option, "-std=c++20") == 0 || strcmp(option, "-g") == 0;
    if (!target && !shared && !knows(option)) result = refuse(program_of(program), option);
    if (shared) words[n++] = option;
  }
  rtc_note_options(options, count);
  if (result == RTC_OK) result = rtc_preprocess(program_of(program), words, n);
  free(words);
  return (hiprtcResult)result;
}

hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram program, size_t *size) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (hiprtcResult)refused;
  const char *log = program_of(program)->log;
  *size = (log != NULL ? strlen(log) : 0) + 1;
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcGetProgramLog(hiprtcProgram program, char *log) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (hiprtcResult)refused;
  (void)strcpy(log, program_of(program)->log != NULL ? program_of(program)->log : "");
  return HIPRTC_SUCCESS;
}

/* ---- the file: header, section headers, symbols, strings ---- */

enum { MACHINE_AMD = 224, GFX90A = 0x3f, ABI_HSA = 64, SECTIONS = 3 };

struct layout {
  size_t kernels, symbols, strings, size; /* how many, and where each part begins */
};

static struct layout lay_out(const struct rtc_program *program) {
  struct layout layout = { .symbols = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr) };
  for (const char *at = program->kernels; *at != '\0'; at += strcspn(at, "\n") + 1) layout.kernels++;
  layout.strings = layout.symbols + (1 + layout.kernels) * sizeof(Elf64_Sym);
  layout.size = layout.strings + 1 + strlen(program->kernels) + layout.kernels * strlen(".kd"); /* a line end, a zero */
  return layout;
}

hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, size_t *size) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (hiprtcResult)refused;
  if (program_of(program)->kernels == NULL) return (hiprtcResult)RTC_BAD_PROGRAM;
  *size = lay_out(program_of(program)).size;
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcGetCode(hiprtcProgram program, char *code) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (hiprtcResult)refused;
  if (program_of(program)->kernels == NULL) return (hiprtcResult)RTC_BAD_PROGRAM;
  const struct layout layout = lay_out(program_of(program));
  memset(code, 0, layout.size);
  Elf64_Ehdr header = { .e_type = ET_DYN,
                        .e_machine = MACHINE_AMD,
                        .e_version = EV_CURRENT,
                        .e_shoff = sizeof header,
                        .e_flags = GFX90A,
                        .e_ehsize = sizeof header,
                        .e_shentsize = sizeof(Elf64_Shdr),
                        .e_shnum = SECTIONS,
                        .e_shstrndx = 2 };
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_OSABI] = ABI_HSA;
  const Elf64_Shdr sections[SECTIONS] = {
    { .sh_type = SHT_NULL },
    { .sh_type = SHT_DYNSYM,
      .sh_offset = layout.symbols,
      .sh_size = layout.strings - layout.symbols,
      .sh_link = 2,
      .sh_info = 1,
      .sh_addralign = 8,
      .sh_entsize = sizeof(Elf64_Sym) },
    { .sh_type = SHT_STRTAB, .sh_offset = layout.strings, .sh_size = layout.size - layout.strings, .sh_addralign = 1 },
  };
  memcpy(code, &header, sizeof header);
  memcpy(code + sizeof header, sections, sizeof sections);
  size_t symbol_at = layout.symbols + sizeof(Elf64_Sym), string_at = layout.strings + 1;
  for (const char *name = program_of(program)->kernels; *name != '\0';) {
    const size_t length = strcspn(name, "\n");
    const Elf64_Sym symbol = { .st_name = (Elf64_Word)(string_at - layout.strings),
                               .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                               .st_shndx = 1 };
    memcpy(code + symbol_at, &symbol, sizeof symbol);
    memcpy(code + string_at, name, length);
    memcpy(code + string_at + length, ".kd", 4);
    symbol_at += sizeof symbol;
    string_at += length + 4;
    name += length + 1;
  }
  return HIPRTC_SUCCESS;
}
