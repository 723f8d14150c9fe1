/* backends/cpu/ipc: the files of exported memory. Every system call is made to fail, and well-formed handles are
 * forged. The linker replaces the system's functions with those below (meson.build). */
#include "core/device/ipc.h"
#include "core/memory/memory.h"
#include "core/tracking/ranges.h"
#include "support/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* size of an allocation, which is not a multiple of the page size, and the size rounded up */
static size_t page, size, rounded;

/* Same layout as in backends/cpu/ipc.c. */
struct shared_file {
  int32_t process, fd;
  uint64_t size, inode, chance;
  uint8_t zero[32];
};

/* ---- system calls that fail ---- */

static _Thread_local struct {
  unsigned left; /* number of calls up to the one that fails; 0 if none does */
  int code;
  const char *struck; /* name of the call that failed */
  unsigned opens;     /* number of calls of open so far */
} plan;

static void fail_call(unsigned nth, int code) {
  plan.left = nth;
  plan.code = code;
  plan.struck = NULL;
}

/* Returns the name of the call that failed, or NULL if there were fewer calls. */
static const char *failed_call(void) {
  plan.left = 0;
  return plan.struck;
}

static bool fails(const char *name) {
  plan.opens += strcmp(name, "open") == 0;
  if (plan.left == 0 || --plan.left > 0) return false;
  plan.struck = name;
  errno = plan.code;
  return true;
}

#define SYSTEM_CALL(type, name, symbol, parameters, ...) \
  type __real_##symbol parameters;                       \
  type __wrap_##symbol parameters;                       \
  type __wrap_##symbol parameters { return fails(name) ? (type)-1 : __real_##symbol(__VA_ARGS__); }
SYSTEM_CALL(ssize_t, "getrandom", getrandom, (void *p, size_t n, unsigned flags), p, n, flags)
SYSTEM_CALL(int, "memfd_create", memfd_create, (const char *name, unsigned flags), name, flags)
SYSTEM_CALL(int, "fstat", fstat64, (int fd, struct stat *out), fd, out)
SYSTEM_CALL(int, "fallocate", fallocate64, (int fd, int mode, off_t offset, off_t n), fd, mode, offset, n)
SYSTEM_CALL(int, "fcntl", fcntl64, (int fd, int command, long argument), fd, command, argument)
SYSTEM_CALL(void *, "mmap", mmap64, (void *p, size_t n, int protection, int flags, int fd, off_t offset), p, n,
            protection, flags, fd, offset)
SYSTEM_CALL(void *, "mremap", mremap, (void *p, size_t n, size_t new_n, int flags, void *at), p, n, new_n, flags, at)
SYSTEM_CALL(ssize_t, "readlink", readlink, (const char *path, char *out, size_t n), path, out, n)
SYSTEM_CALL(int, "open", open64, (const char *path, int flags, unsigned mode), path, flags, mode)

/* ---- resources of the process ---- */

struct held {
  unsigned files, mappings;
};

/* Counts descriptors and mappings of shared files. */
static struct held held_now(void) {
  static char text[4096];
  struct held held = { 0, 0 };
  FILE *file = fopen("/proc/self/maps", "re");
  assert_non_null(file);
  while (fgets(text, sizeof text, file) != NULL) held.mappings += strstr(text, "memfd:rill-") != NULL;
  (void)fclose(file);
  for (int fd = 0; fd < 512; fd++) held.files += fcntl(fd, F_GETFD) >= 0;
  return held;
}

static void assert_holds(struct held before) {
  const struct held now = held_now();
  assert_int_equal(now.files, before.files);
  assert_int_equal(now.mappings, before.mappings);
}

static unsigned char *new_memory(void) {
  unsigned char *p;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, size, &p));
  memset(p, 0x5c, size);
  return p;
}

static void assert_bytes(const unsigned char *p, unsigned char value) {
  for (size_t i = 0; i < size; i++) assert_int_equal(p[i], value);
}

/* Exports memory, and changes the handle so that another process seems to have exported it. */
static struct rill__ipc_bytes exported(void *p) {
  rill_ipc_handle handle;
  struct rill__ipc_bytes content;
  assert_ok(rill_memory_ipc_export(p, &handle));
  memcpy(&content, &handle, sizeof content);
  content.exporter ^= UINT64_C(1) << 40;
  return content;
}

static rill_status import(struct rill__ipc_bytes content, unsigned char **out) {
  rill_ipc_handle handle;
  void *p = &handle;
  content.check = rill__ipc_check(&content);
  memcpy(&handle, &content, sizeof handle);
  const rill_status status = rill_memory_ipc_import(dut.device, &handle, &p);
  if (status != RILL_OK) assert_null(p);
  *out = p;
  return status;
}

/* ---- each step fails ---- */

static const int codes[] = { ENOMEM, EMFILE, EACCES };

/* The first export of a process creates the number that identifies it; without random numbers the number is derived
 * from the time. */
static void distinguishes_processes_without_random_numbers(void) {
  unsigned char *p = new_memory(), *again;
  rill_ipc_handle handle;
  fail_call(8, EAGAIN);
  assert_ok(rill_memory_ipc_export(p, &handle));
  assert_string_equal(failed_call(), "getrandom");
  assert_fails(rill_memory_ipc_import(dut.device, &handle, (void **)&again), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("this process");
  assert_ok(import(exported(p), &again));
  assert_ok(rill_free(again));
  assert_ok(rill_free(p));
}

/* Makes call number `nth` fail; returns whether there were that many calls. */
static bool export_fails_at(unsigned nth, int code) {
  static const rill_ipc_handle zero;
  rill_ipc_handle handle;
  unsigned char *p = new_memory();
  const struct held before = held_now();
  spoil_last_error();
  fail_call(nth, code);
  const rill_status status = rill_memory_ipc_export(p, &handle);
  const char *struck = failed_call();
  if (struck == NULL) {
    assert_ok(status);
    assert_int_equal(held_now().files, before.files + 1);
  } else {
    assert_int_equal(status, code == ENOMEM ? RILL_ERROR_OUT_OF_MEMORY : RILL_ERROR_BACKEND);
    assert_says("rill_memory_ipc_export");
    assert_says(struck);
    assert_says(strerror(code));
    assert_memory_equal(&handle, &zero, sizeof zero);
    assert_holds(before);
    assert_bytes(p, 0x5c);
    assert_ok(rill_memory_ipc_export(p, &handle));
  }
  assert_bytes(p, 0x5c);
  assert_ok(rill_free(p));
  assert_holds(before);
  return struck != NULL;
}

/* I10 */
static void each_step_of_an_export_can_fail(void) {
  assert_false(export_fails_at(1000, ENOMEM)); /* create what is created only once per process */
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    unsigned nth = 1;
    while (export_fails_at(nth, codes[i])) nth++;
    assert_int_equal(nth, 8); /* getrandom, memfd_create, fstat, fallocate, fcntl, mmap, mremap */
  }
}

static bool import_fails_at(struct rill__ipc_bytes content, unsigned nth, int code) {
  unsigned char *p;
  const struct held before = held_now();
  spoil_last_error();
  fail_call(nth, code);
  const rill_status status = import(content, &p);
  const char *struck = failed_call();
  if (struck == NULL) {
    assert_ok(status);
    assert_int_equal(held_now().files, before.files); /* only the mapping of an import remains */
    assert_int_equal(held_now().mappings, before.mappings + 1);
    assert_bytes(p, 0x5c);
    assert_ok(rill_free(p));
  } else {
    assert_int_not_equal(status, RILL_OK);
    assert_says("rill_memory_ipc_import");
    assert_int_equal(status, strcmp(struck, "mmap") != 0 ? RILL_ERROR_NOT_FOUND
                             : code == ENOMEM            ? RILL_ERROR_OUT_OF_MEMORY
                                                         : RILL_ERROR_BACKEND);
  }
  assert_holds(before);
  return struck != NULL;
}

/* I10 */
static void each_step_of_an_import_can_fail(void) {
  unsigned char *p = new_memory();
  const struct rill__ipc_bytes content = exported(p);
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    unsigned nth = 1;
    while (import_fails_at(content, nth, codes[i])) nth++;
    assert_int_equal(nth, 6); /* readlink, open, fcntl, fstat, mmap */
  }
  assert_bytes(p, 0x5c);
  assert_ok(rill_free(p));
}

/* If memory stays shared after a failed free, it is not returned to the allocator. */
static void a_failed_free_can_be_retried(void) {
  unsigned char *p = new_memory(), *again;
  const struct held before = held_now();
  const struct rill__ipc_bytes content = exported(p);
  spoil_last_error();
  fail_call(1, ENOMEM);
  const rill_status status = rill_free(p);
  assert_string_equal(failed_call(), "mmap");
  assert_int_equal(status, RILL_ERROR_OUT_OF_MEMORY);
  assert_says("rill_free");
  assert_bytes(p, 0x5c);
  assert_ok(import(content, &again));
  assert_ok(rill_free(again));
  assert_ok(rill_free(p));
  assert_holds(before);
}

/* If a call is using the memory, rill_free leaves the release to that call. */
static void memory_in_use_by_a_call_is_freed_after_it(void) {
  unsigned char *p = new_memory(), *again;
  rill_ipc_handle handle;
  const struct held before = held_now();
  const struct rill__ipc_bytes content = exported(p);
  struct rill__thread *const self = rill__enter("rill_memory_ipc_export");
  struct rill__allocation *allocation = rill__ranges_find(p);
  assert_true(rill__memory_hold(allocation) && rill__memory_hold(allocation));
  struct rill__thread *left = self;
  rill__leave(&left);
  assert_ok(rill_free(p));
  assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_memory_ipc_export(p, &handle), RILL_ERROR_NOT_FOUND);
  assert_false(rill__memory_hold(allocation));
  assert_true(rill__memory_drop(allocation));
  assert_bytes(p, 0x5c);
  assert_ok(import(content, &again));
  assert_ok(rill_free(again));
  assert_true(rill__memory_drop(allocation)); /* the last reference */
  assert_fails_in("rill_memory_ipc_import", import(content, &again), RILL_ERROR_NOT_FOUND);
  assert_holds(before);
}

static void exports_are_freed_in_any_order(void) {
  enum { COUNT = 3 };
  static const unsigned orders[][COUNT] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 }, { 1, 2, 0 } };
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    unsigned char *p[COUNT];
    const struct held before = held_now();
    for (unsigned j = 0; j < COUNT; j++) {
      p[j] = new_memory();
      (void)exported(p[j]);
    }
    for (unsigned j = 0; j < COUNT; j++) assert_ok(rill_free(p[orders[i][j]]));
    assert_holds(before);
  }
}

/* ---- stale and forged handles ---- */

/* I1, I9: a matching address and descriptor are not sufficient. */
static void freed_memory_is_not_found_in_its_successor(void) {
  unsigned char *first = new_memory(), *p;
  const struct held before = held_now();
  struct shared_file old_file, file;
  const struct rill__ipc_bytes old = exported(first);
  memcpy(&old_file, &old.native, sizeof old_file);
  assert_ok(rill_free(first));
  assert_fails_in("rill_memory_ipc_import", import(old, &p), RILL_ERROR_NOT_FOUND);
  unsigned char *second = new_memory();
  const struct rill__ipc_bytes new = exported(second);
  memcpy(&file, &new.native, sizeof file);
  assert_int_equal(file.fd, old_file.fd); /* the system uses the lowest free descriptor */
  assert_memory_not_equal(&old, &new, sizeof old);
  assert_fails_in("rill_memory_ipc_import", import(old, &p), RILL_ERROR_NOT_FOUND);
  assert_says("has freed the object, or is a different process");
  assert_ok(import(new, &p));
  assert_ok(rill_free(p));
  assert_ok(rill_free(second));
  struct held now = held_now();
  assert_int_equal(now.files, before.files);
  assert_int_equal(now.mappings, before.mappings);
}

static void import_forged(struct rill__ipc_bytes content, const struct shared_file *file, rill_status status) {
  unsigned char *p;
  memcpy(&content.native, file, sizeof *file);
  const struct held before = held_now();
  assert_fails_in("rill_memory_ipc_import", import(content, &p), status);
  assert_holds(before);
}

#define FORGED(field, value, status)          \
  do {                                        \
    struct shared_file forged_ = file;        \
    forged_.field = (value);                  \
    import_forged(content, &forged_, status); \
  } while (0)

/* I6, I8, I9 */
static void checks_every_native_field(void) {
  unsigned char *p = new_memory();
  const struct rill__ipc_bytes content = exported(p);
  struct shared_file file;
  memcpy(&file, &content.native, sizeof file);
  FORGED(process, 0, RILL_ERROR_INVALID_ARGUMENT);
  FORGED(process, -1, RILL_ERROR_INVALID_ARGUMENT);
  FORGED(process, INT32_MAX, RILL_ERROR_NOT_FOUND); /* no process has this id */
  FORGED(process, getppid(), RILL_ERROR_NOT_FOUND); /* an existing process, as after reuse of the id */
  FORGED(fd, -1, RILL_ERROR_INVALID_ARGUMENT);
  FORGED(fd, INT32_MAX, RILL_ERROR_NOT_FOUND);
  FORGED(size, 0, RILL_ERROR_INVALID_ARGUMENT);
  FORGED(size, file.size - page, RILL_ERROR_INVALID_ARGUMENT);
  FORGED(size, file.size + page, RILL_ERROR_INVALID_ARGUMENT);
  FORGED(size, UINT64_MAX, RILL_ERROR_INVALID_ARGUMENT);
  FORGED(inode, file.inode + 1, RILL_ERROR_NOT_FOUND);
  FORGED(chance, file.chance ^ 1, RILL_ERROR_NOT_FOUND);
  FORGED(zero[0], 1, RILL_ERROR_INVALID_ARGUMENT);
  FORGED(zero[31], 1, RILL_ERROR_INVALID_ARGUMENT);
  struct rill__ipc_bytes longer = content;
  longer.size = rounded + 1;
  import_forged(longer, &file, RILL_ERROR_INVALID_ARGUMENT);
  longer.size = page; /* the file is larger */
  import_forged(longer, &file, RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_free(p));
}

/* Descriptors of other files are not even opened. */
static void opens_no_other_descriptors(void) {
  unsigned char *p = new_memory();
  const struct rill__ipc_bytes content = exported(p);
  struct shared_file file;
  int ends[2];
  memcpy(&file, &content.native, sizeof file);
  const int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), device = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int plain = memfd_create("plain", MFD_CLOEXEC);
  assert_true(directory >= 0 && device >= 0 && plain >= 0 && pipe(ends) == 0);
  const int others[] = { directory, device, plain, ends[0], ends[1] };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct shared_file forged = file;
    forged.fd = others[i];
    const unsigned before = plan.opens;
    import_forged(content, &forged, RILL_ERROR_NOT_FOUND);
    assert_int_equal(plan.opens, before);
    (void)close(others[i]);
  }
  assert_ok(rill_free(p));
}

/* Creates a file with the right name that rill did not create, with `length` bytes and these seals. */
static int foreign_file(struct shared_file *file, uint64_t length, int seals) {
  char name[32];
  struct stat status;
  file->chance = UINT64_C(0x0123456789abcdef);
  (void)snprintf(name, sizeof name, "rill-%016llx", (unsigned long long)file->chance);
  file->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_true(file->fd >= 0 && ftruncate(file->fd, (off_t)length) == 0 && fcntl(file->fd, F_ADD_SEALS, seals) == 0);
  assert_int_equal(fstat(file->fd, &status), 0);
  file->inode = (uint64_t)status.st_ino;
  return file->fd;
}

/* A file that could shrink below its mapping is not mapped, because an access would kill the process. */
static void maps_nothing_that_can_shrink(void) {
  unsigned char *p = new_memory();
  const struct rill__ipc_bytes content = exported(p);
  struct shared_file file;
  memcpy(&file, &content.native, sizeof file);
  int fd = foreign_file(&file, rounded, 0); /* without a seal */
  import_forged(content, &file, RILL_ERROR_NOT_FOUND);
  assert_int_equal(ftruncate(fd, (off_t)page), 0); /* truncated, and then sealed */
  import_forged(content, &file, RILL_ERROR_NOT_FOUND);
  assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  import_forged(content, &file, RILL_ERROR_INVALID_ARGUMENT);
  assert_says("forged");
  (void)close(fd);
  fd = foreign_file(&file, rounded - 1, F_SEAL_SHRINK);
  import_forged(content, &file, RILL_ERROR_INVALID_ARGUMENT);
  (void)close(fd);
  fd = foreign_file(&file, rounded, F_SEAL_GROW);
  import_forged(content, &file, RILL_ERROR_NOT_FOUND);
  (void)close(fd);
  assert_ok(rill_free(p));
}

/* Fills the memory between the end of the allocation and the end of its page, as the allocator might have; the address
 * sanitizer must not check this. */
__attribute__((no_sanitize("address"))) static void fill_the_rest(volatile unsigned char *p) {
  for (size_t i = size; i < rounded; i++) p[i] = 0x77;
}

/* A shared file can be neither truncated nor extended, and contains nothing else of the exporting process. */
static void seals_what_it_shares(void) {
  unsigned char *p = new_memory(), *again;
  fill_the_rest(p);
  const struct rill__ipc_bytes content = exported(p);
  struct shared_file file;
  memcpy(&file, &content.native, sizeof file);
  assert_int_equal(ftruncate(file.fd, (off_t)page), -1);
  assert_int_equal(ftruncate(file.fd, (off_t)rounded * 2), -1);
  assert_int_equal(fcntl(file.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  assert_ok(import(content, &again));
  for (size_t i = size; i < rounded; i++) assert_int_equal(again[i], 0);
  assert_ok(rill_free(again));
  assert_ok(rill_free(p));
}

int main(void) {
  page = (size_t)sysconf(_SC_PAGESIZE);
  size = 2 * page + 100;
  rounded = 3 * page;
  static const struct test tests[] = {
    TEST(distinguishes_processes_without_random_numbers), /* must be first */
    TEST(each_step_of_an_export_can_fail),
    TEST(each_step_of_an_import_can_fail),
    TEST(a_failed_free_can_be_retried),
    TEST(memory_in_use_by_a_call_is_freed_after_it),
    TEST(exports_are_freed_in_any_order),
    TEST(freed_memory_is_not_found_in_its_successor),
    TEST(checks_every_native_field),
    TEST(opens_no_other_descriptors),
    TEST(maps_nothing_that_can_shrink),
    TEST(seals_what_it_shares),
  };
  return RUN_ON_EACH_DEVICE("backends/cpu/ipc", tests);
}
