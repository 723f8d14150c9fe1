/* Memory shared with other processes.
 *
 * Memory is private until it is exported.  Its bytes then move into an unnamed file, which is mapped in their place at
 * the same address.  Another process opens the file through /proc of this process, and closes it as soon as it is
 * mapped.  The file is therefore deleted once this process has freed the memory or ended, and no other process has the
 * file mapped.  The file's internal name contains a random number, which proves that it is the file to which the handle
 * refers.
 *
 * An allocation of kind DEVICE has whole pages (memory.c), so nothing else moves.
 */
#include "backends/cpu/cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The contents of a handle. */
struct shared_file {
  int32_t process, fd;
  uint64_t size; /* a multiple of the page size */
  uint64_t inode;
  uint64_t chance; /* random number in the file's name */
  uint8_t zero[32];
};
_Static_assert(sizeof(struct shared_file) == sizeof(struct rill__ipc_native),
               "struct shared_file has the size of core's native handle");

/* An exported allocation. */
struct export {
  void *p;
  struct shared_file file;
  struct export *next;
};

/* Hash table by address, so that freeing memory stays cheap with many exports.  The lists are valid at every moment,
 * because a fork may happen at any time. */
enum { LISTS = 1024 };
static struct cpu_lock exports_lock;
static _Atomic(struct export *) exports[LISTS];
static _Atomic size_t export_count;

static size_t whole_pages(size_t size) {
  return (size + rill__cpu_page_bytes() - 1) / rill__cpu_page_bytes() * rill__cpu_page_bytes();
}

static _Atomic(struct export *) *list_of(const void *p) {
  return &exports[(uintptr_t)p / rill__cpu_page_bytes() * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

static struct export *find_export(const void *p) {
  struct export *export = atomic_load(list_of(p));
  while (export != NULL && export->p != p) export = export->next;
  return export;
}

static void take_export_out(const struct export *export) {
  _Atomic(struct export *) *const list = list_of(export->p);
  struct export *before = atomic_load(list);
  if (before == export) {
    atomic_store(list, export->next);
  } else {
    while (before->next != export) before = before->next;
    before->next = export->next;
  }
  (void)atomic_fetch_sub(&export_count, 1);
}

static void name_file(uint64_t chance, char name[32]) {
  (void)snprintf(name, 32, "rill-%016llx", (unsigned long long)chance);
}

/* ---- the exporting process ---- */

static rill_status fail_system(const char *call) {
  const int code = errno;
  return rill__fail(code == ENOMEM || code == ENOSPC ? RILL_ERROR_OUT_OF_MEMORY : RILL_ERROR_BACKEND,
                    "sharing memory between processes: %s: %s", call, strerror(code));
}

/* Maps the file, copies the `used` bytes at `p` into it, and moves the mapping to `p`.  Bytes after `used` are not
 * copied, because they may belong to other allocations.  The length is sealed, so that no process can cut off another's
 * mapping. Returns NULL, or the name of the call that failed. */
static const char *replace_by_file(int fd, void *p, size_t used) {
  const size_t size = whole_pages(used);
  if (fallocate(fd, 0, 0, (off_t)size) != 0)
    return "fallocate"; /* fails here if memory is short, instead of SIGBUS at an access */
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return "fcntl";
  void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return "mmap";
  memcpy(mapped, p, used);
  if (mremap(mapped, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p) return NULL;
  const int code = errno;
  (void)munmap(mapped, size);
  errno = code;
  return "mremap";
}

static rill_status move_into_file(void *p, size_t size, struct shared_file *file) {
  struct stat status;
  char name[32];
  if (getrandom(&file->chance, sizeof file->chance, 0) != (ssize_t)sizeof file->chance) return fail_system("getrandom");
  name_file(file->chance, name);
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return fail_system("memfd_create");
  const char *failed = fstat(fd, &status) != 0 ? "fstat" : replace_by_file(fd, p, size);
  if (failed != NULL) {
    const rill_status result = fail_system(failed);
    (void)close(fd);
    return result;
  }
  file->fd = fd;
  file->inode = (uint64_t)status.st_ino;
  return RILL_OK;
}

static struct export *add_export(void *p, size_t size) {
  struct export *export = calloc(1, sizeof *export);
  if (export == NULL) return NULL;
  export->p = p;
  export->file.fd = -1;
  export->file.size = whole_pages(size);
  export->next = atomic_load(list_of(p));
  (void)atomic_fetch_add(&export_count, 1);
  atomic_store(list_of(p), export);
  return export;
}

/* Exports the memory.  The export is listed before anything is mapped, so that `forget` undoes it in the child of a
 * fork that happens meanwhile.  In that child, exporting again restarts an export that has no file. */
static rill_status export_once(void *p, size_t size, struct export **out) {
  struct export *const known = find_export(p);
  struct export *export = known;
  if (known == NULL || known->file.fd < 0) {
    if (known == NULL) export = add_export(p, size);
    RILL_REQUIRE(export != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to share %zu bytes", size);
    const rill_status status = move_into_file(p, size, &export->file);
    if (status != RILL_OK && known == NULL) {
      take_export_out(export);
      free(export);
    }
    RILL_TRY(status);
  }
  *out = export;
  return RILL_OK;
}

rill_status rill__cpu_ipc_export(struct rill__device *device, void *p, size_t size, struct rill__ipc_native *out) {
  struct export *export = NULL;
  cpu_acquire(&exports_lock);
  const struct export *const known = find_export(p);
  const bool moves = known == NULL || known->file.fd < 0;
  cpu_release(&exports_lock);
  /* Pending work that writes the memory would write to the old pages. */
  if (moves) RILL_TRY(rill__cpu_wait_for_all(device));
  cpu_acquire(&exports_lock);
  const rill_status status = export_once(p, size, &export);
  if (status == RILL_OK) {
    export->file.process = (int32_t)getpid();
    memcpy(out, &export->file, sizeof *out);
  }
  cpu_release(&exports_lock);
  return status;
}

/* Restores private pages, which the allocator expects.  If that fails, the memory stays shared and is not returned to
 * the allocator. */
rill_status rill__cpu_ipc_forget(void *p) {
  if (atomic_load(&export_count) == 0) return RILL_OK;
  rill_status status = RILL_OK;
  cpu_acquire(&exports_lock);
  struct export *export = find_export(p);
  if (export != NULL) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(p, export->file.size, PROT_READ | PROT_WRITE, flags, -1, 0) == p) {
      take_export_out(export);
    } else {
      status = fail_system("mmap");
    }
  }
  cpu_release(&exports_lock);
  if (export == NULL || status != RILL_OK) return status;
  RILL_WITHOUT_CANCEL();
  if (export->file.fd >= 0) (void)close(export->file.fd);
  free(export);
  return RILL_OK;
}

/* ---- the importing process ---- */

static rill_status cpu_fail_open(const struct shared_file *file, const char *why) {
  return rill__fail(RILL_ERROR_NOT_FOUND,
                    "the exported object cannot be opened: process %d %s" RILL_HINT
                    "keep the exported object until the other processes have opened and closed it",
                    (int)file->process, why);
}

/* Compares the name before opening, because opening some other file may have side effects. */
static rill_status open_file(const struct shared_file *file, int *fd) {
  char path[64], name[32], expected[64], link[64];
  (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)file->process, (int)file->fd);
  name_file(file->chance, name);
  (void)snprintf(expected, sizeof expected, "/memfd:%s (deleted)", name);
  const ssize_t length = readlink(path, link, sizeof link - 1);
  if (length < 0) {
    return cpu_fail_open(file, errno == EACCES ? "belongs to another user, or cannot be inspected"
                                               : "has ended, or has freed the object");
  }
  link[length] = '\0';
  if (strcmp(link, expected) != 0) return cpu_fail_open(file, "has freed the object, or is a different process");
  *fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  return *fd >= 0 ? RILL_OK : cpu_fail_open(file, "cannot be accessed from this process");
}

static rill_status map_file(int fd, const struct shared_file *file, size_t size, void **out) {
  struct stat status;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 || (uint64_t)status.st_ino != file->inode) {
    return cpu_fail_open(file, "has freed the object, or is a different process");
  }
  RILL_REQUIRE((uint64_t)status.st_size == file->size && whole_pages(size) == file->size, RILL_ERROR_INVALID_ARGUMENT,
               "the handle is forged: it claims %zu bytes, but the file has %llu", size,
               (unsigned long long)status.st_size);
  void *p = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) return fail_system("mmap");
  *out = p;
  return RILL_OK;
}

rill_status rill__cpu_ipc_import(struct rill__device *device, const struct rill__ipc_native *from, size_t size,
                                 void **out) {
  static const uint8_t zero[sizeof((struct shared_file *)0)->zero];
  struct shared_file file;
  int fd = -1;
  (void)device;
  memcpy(&file, from, sizeof file);
  RILL_REQUIRE(memcmp(file.zero, zero, sizeof zero) == 0 && file.process > 0 && file.fd >= 0 && size <= file.size,
               RILL_ERROR_INVALID_ARGUMENT,
               "the handle is forged: it names file %d of process %d, and claims %zu bytes of a file of %llu",
               (int)file.fd, (int)file.process, size, (unsigned long long)file.size);
  RILL_WITHOUT_CANCEL();
  RILL_TRY(open_file(&file, &fd));
  const rill_status status = map_file(fd, &file, size, out);
  (void)close(fd);
  return status;
}

rill_status rill__cpu_ipc_close(struct rill__device *device, void *p, size_t size) {
  RILL_TRY(rill__cpu_wait_for_all(device));
  (void)munmap(p, whole_pages(size));
  return RILL_OK;
}
