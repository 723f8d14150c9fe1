#include "backends/cpu/image.h"

#include "backends/cpu/fault.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u /* since Linux 6.3 */
#endif

/* The machine that this library is built for. */
#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#elif defined(__riscv)
enum { MACHINE = EM_RISCV };
#elif defined(__powerpc64__)
enum { MACHINE = EM_PPC64 };
#else
enum { MACHINE = EM_NONE }; /* the loader checks the machine */
#endif

/* ---- checking ---- */

enum { MAX_SEGMENTS = 256 }; /* because every lookup of a variable searches them all */

/* Detects a truncated image: the loader maps what the headers say without checking the file's size, and an access
 * beyond the end of the file would kill the process.  Returns what is wrong, or NULL. */
const char *rill__cpu_image_fault(const void *bytes, size_t size) {
  const unsigned char *data = bytes;
  ElfW(Ehdr) header;
  if (size < sizeof header) return "it is shorter than an ELF header";
  memcpy(&header, data, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "it is not an ELF file";
  if (header.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
    return "it has a different word size";
  if (header.e_type != ET_DYN) return "it is not a shared object";
  if (MACHINE != EM_NONE && header.e_machine != MACHINE) return "it is for another machine";
  if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum == 0) return "it has no program headers";
  if (header.e_phnum > MAX_SEGMENTS) return "it has more than 256 program headers";
  const size_t table = (size_t)header.e_phnum * sizeof(ElfW(Phdr));
  if (header.e_phoff > size || table > size - header.e_phoff) return "it is truncated";
  for (size_t i = 0; i < header.e_phnum; i++) {
    ElfW(Phdr) segment;
    memcpy(&segment, data + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_filesz > size || segment.p_offset > size - segment.p_filesz) return "it is truncated";
    if (segment.p_type == PT_LOAD && segment.p_memsz < segment.p_filesz) return "a segment has an impossible size";
  }
  /* The section headers are not used, but they come last: if they are cut off, the image was truncated. */
  const size_t sections = (size_t)header.e_shnum * header.e_shentsize;
  if (header.e_shoff != 0 && (header.e_shoff > size || sections > size - header.e_shoff)) return "it is truncated";
  return NULL;
}

/* ---- loading ---- */

enum { PATH_SIZE = 512 };

static bool write_image(int file, const char *data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(file, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= (size_t)written;
  }
  return true;
}

/* Writes a path to an open file.  No two paths are equal.  For a path that it knows, the loader returns the library
 * loaded before, which may stay loaded after dlclose.  The path encodes a counter in binary, "/" for 0 and "/./" for
 * 1. */
static void unique_path(int file, char *path, size_t size) {
  static _Atomic uint32_t last;
  const uint32_t count = atomic_fetch_add(&last, 1) + 1;
  char self[32] = "self";
  const ssize_t length = readlink("/proc/self", self, sizeof self - 1); /* a number lets a debugger open it */
  self[length > 0 ? (size_t)length : strlen("self")] = '\0';
  size_t used = (size_t)snprintf(path, size, "/proc/%s/fd", self);
  for (uint32_t left = count; left != 0; left >>= 1) {
    used += (size_t)snprintf(path + used, size - used, "%s", (left & 1) != 0 ? "/." : "/");
  }
  (void)snprintf(path + used, size - used, "/%d", file);
}

/* Copies the message of dlerror without the path in front, which means nothing to the user. */
static void loader_words(const char *path, char *text, size_t size) {
  const char *words = dlerror();
  if (words == NULL) words = "the loader gives no reason";
  const size_t length = strlen(path);
  if (strncmp(words, path, length) == 0 && words[length] == ':') words += length + 1 + (words[length + 1] == ' ');
  (void)snprintf(text, size, "%s", words);
}

/* Loads the image from memory.  `kept`: set to the file if its path has to stay valid; the caller closes it. */
static void *open_in_memory(const void *data, size_t size, int *kept, char *why, size_t why_size) {
  int file = memfd_create("rill kernels", MFD_CLOEXEC | MFD_EXEC);
  if (file < 0 && errno == EINVAL) file = memfd_create("rill kernels", MFD_CLOEXEC);
  void *library = NULL;
  if (file < 0 || !write_image(file, data, size)) {
    (void)snprintf(why, why_size, "memfd: %s", strerror(errno));
  } else {
    char path[160];
    unique_path(file, path, sizeof path);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) loader_words(path, why, why_size);
  }
  /* When an address sanitizer reports, a symbolizer opens the path.  If the file were closed and its descriptor reused
   * for a pipe, the symbolizer would block forever, so the file stays open. */
  if (library != NULL && rill__cpu_is_sanitized()) {
    *kept = file;
  } else if (file >= 0) {
    (void)close(file);
  }
  return library;
}

/* Loads the image from a new file in the folder.  `path`: the file, or "" if none was created. */
static void *open_from_file(const char *folder, const char *name, const void *data, size_t size, char path[PATH_SIZE],
                            char *why, size_t why_size) {
  const int length = snprintf(path, PATH_SIZE, "%s/%s-XXXXXX.so", folder, name);
  const int file = length < PATH_SIZE ? mkostemps(path, (int)strlen(".so"), O_CLOEXEC) : -1;
  if (file < 0) {
    (void)snprintf(why, why_size, "%s: %s", folder, length < PATH_SIZE ? strerror(errno) : "the path is too long");
    path[0] = '\0';
    return NULL;
  }
  void *library = NULL;
  if (!write_image(file, data, size)) {
    (void)snprintf(why, why_size, "%s: %s", folder, strerror(errno));
  } else {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) loader_words(path, why, why_size);
  }
  (void)close(file);
  return library;
}

/* Loads the image from a file that is removed at once, for systems without /proc, and for systems that do not execute
 * memory files. */
static void *open_temporary_file(const void *data, size_t size, char *why, size_t why_size) {
  const char *folder = getenv("TMPDIR");
  if (folder == NULL || folder[0] != '/') folder = "/tmp";
  char path[PATH_SIZE];
  void *const library = open_from_file(folder, "rill-kernels", data, size, path, why, why_size);
  if (path[0] != '\0') (void)unlink(path);
  return library;
}

/* Uses a file that is not removed, because a profiler reads function names from it after the process has ended. */
static rill_status open_and_keep(const char *folder, const char *name, const void *data, size_t size, void **library) {
  char path[PATH_SIZE], why[400] = "", file_name[64];
  RILL_REQUIRE(folder[0] == '/', RILL_ERROR_INVALID_ARGUMENT,
               "RILL_CPU_KEEP_IMAGES is \"%s\", which is not an absolute path", folder);
  (void)snprintf(file_name, sizeof file_name, "%s", name);
  for (char *c = file_name; (c = strchr(c, '/')) != NULL;) *c = '_';
  *library = open_from_file(folder, file_name, data, size, path, why, sizeof why);
  if (*library == NULL && path[0] != '\0') (void)unlink(path);
  RILL_REQUIRE(*library != NULL, RILL_ERROR_BACKEND,
               "image \"%s\" cannot be loaded from a kept file (RILL_CPU_KEEP_IMAGES): %s", name, why);
  return RILL_OK;
}

rill_status rill__cpu_image_open(const char *name, const void *data, size_t size, void **library, int *kept) {
  const char *fault = rill__cpu_image_fault(data, size);
  RILL_REQUIRE(fault == NULL, RILL_ERROR_BACKEND, "image \"%s\" of %zu bytes cannot be loaded: %s", name, size, fault);
  *kept = -1;
  const char *folder = getauxval(AT_SECURE) != 0 ? NULL : getenv("RILL_CPU_KEEP_IMAGES");
  if (folder != NULL && folder[0] != '\0') return open_and_keep(folder, name, data, size, library);
  char first[400] = "", second[400] = "";
  *library = open_in_memory(data, size, kept, first, sizeof first);
  if (*library == NULL) *library = open_temporary_file(data, size, second, sizeof second);
  if (*library != NULL) return RILL_OK;
  if (strcmp(first, second) == 0) {
    return rill__fail(RILL_ERROR_BACKEND, "image \"%s\" cannot be loaded: %s", name, first);
  }
  return rill__fail(RILL_ERROR_BACKEND, "image \"%s\" cannot be loaded: from memory: %s; from a file: %s", name, first,
                    second);
}
