/* Sharing between processes: memory and events lie in files without a name, which another process opens through the
 * exporter's /proc.  As with real drivers the exporting process itself cannot, and bytes that are no handle are
 * refused. */
#include "engine.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- files ---- */

enum { MOST_FILES = 512 }; /* the process may want some too */

bool fake_file_new(size_t size, struct fake_file *out) {
  struct stat status;
  const int fd = memfd_create("rill fake", MFD_CLOEXEC);
  void *p = MAP_FAILED;
  if (fd >= 0 && fd < MOST_FILES && ftruncate(fd, (off_t)size) == 0 && fstat(fd, &status) == 0)
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) {
    if (fd >= 0) (void)close(fd);
    return false;
  }
  *out = (struct fake_file){ .fd = fd, .address = p, .size = size, .inode = (uint64_t)status.st_ino };
  return true;
}

void fake_file_close(struct fake_file *file) {
  if (file->fd >= 0) (void)close(file->fd);
  file->fd = -1;
}

void fake_file_unmap(struct fake_file *file) {
  fake_file_close(file);
  (void)munmap(file->address, file->size);
}

enum { HANDLE_EVENT = 0x65766e74, HANDLE_MEMORY = 0x6d656d6f };

struct handle {
  uint32_t magic, process;
  int32_t fd, device;
  uint64_t size, inode;
  uint8_t zero[32];
};
_Static_assert(sizeof(struct handle) == FAKE_IPC_HANDLE, "the vendors' size");

static void write_handle(uint32_t magic, const struct fake_context *context, const struct fake_file *file, void *out) {
  const struct handle handle = { .magic = magic,
                                 .process = (uint32_t)getpid(),
                                 .fd = file->fd,
                                 .device = context->device->ordinal,
                                 .size = file->size,
                                 .inode = file->inode };
  memcpy(out, &handle, sizeof handle);
}

static int map_file(const struct handle *handle, struct fake_file *out) {
  char path[64];
  struct stat status;
  (void)snprintf(path, sizeof path, "/proc/%u/fd/%d", handle->process, handle->fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return FAKE_INVALID_VALUE;
  void *p = MAP_FAILED;
  if (fstat(fd, &status) == 0 && (uint64_t)status.st_ino == handle->inode && (uint64_t)status.st_size == handle->size)
    p = mmap(NULL, handle->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  (void)close(fd);
  *out = (struct fake_file){ .fd = -1, .address = p, .size = handle->size, .inode = handle->inode };
  return p == MAP_FAILED ? FAKE_INVALID_VALUE : FAKE_OK;
}

/* What a handle says, for the current context. */
static int read_handle(uint32_t magic, const void *bytes, struct fake_context **context, struct handle *out) {
  static const uint8_t zero[sizeof out->zero];
  int code = fake_current_context(context);
  if (code == FAKE_OK) code = fake_context_check(*context);
  if (code != FAKE_OK) return code;
  memcpy(out, bytes, sizeof *out);
  if (out->magic != magic || memcmp(out->zero, zero, sizeof zero) != 0 || out->device != (*context)->device->ordinal ||
      out->process == 0)
    return FAKE_INVALID_VALUE;
  return out->process == (uint32_t)getpid() ? FAKE_INVALID_CONTEXT : FAKE_OK;
}

/* ---- memory ---- */

int fake_ipc_export_memory(const void *p, void *out) {
  struct fake_file file;
  struct fake_context *context;
  const int code = out == NULL ? FAKE_INVALID_VALUE : fake_memory_file(p, &file, &context);
  if (code == FAKE_OK) write_handle(HANDLE_MEMORY, context, &file, out);
  return code;
}

int fake_ipc_open_memory(const void *bytes, void **out) {
  struct fake_context *context;
  struct handle handle;
  struct fake_file file;
  int code = out == NULL ? FAKE_INVALID_VALUE : read_handle(HANDLE_MEMORY, bytes, &context, &handle);
  if (code != FAKE_OK || fake_memory_open_again(context, handle.inode, out)) return code;
  code = map_file(&handle, &file);
  if (code != FAKE_OK) return code;
  code = fake_memory_import(context, &file, out);
  if (code != FAKE_OK) fake_file_unmap(&file);
  return code;
}

/* ---- events ---- */

/* The records made so far by all processes, and the latest of them that is done.  Mappings outlive their event: work
 * that was submitted uses them. */
struct shared {
  _Atomic uint32_t recorded, done;
};

struct fake_shared_event {
  struct fake_file file;
  _Atomic unsigned refs;
};

static struct shared *shared_of(const struct fake_shared_event *event) { return event->file.address; }

struct point {
  struct fake_shared_event *event;
  uint32_t number;
};

static void release_event(struct fake_shared_event *event) {
  if (atomic_fetch_sub(&event->refs, 1) != 1) return;
  fake_file_unmap(&event->file);
  free(event);
}

static bool reached(const struct shared *shared, uint32_t number) {
  return (int32_t)(atomic_load(&shared->done) - number) >= 0;
}

static void mark_done(struct shared *shared, uint32_t number) {
  uint32_t done = atomic_load(&shared->done);
  while ((int32_t)(done - number) < 0 && !atomic_compare_exchange_weak(&shared->done, &done, number)) {
  }
  (void)syscall(SYS_futex, &shared->done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wait_until_done(struct shared *shared, uint32_t number) {
  while (!reached(shared, number)) {
    const uint32_t done = atomic_load(&shared->done);
    if ((int32_t)(done - number) < 0) (void)syscall(SYS_futex, &shared->done, FUTEX_WAIT, done, NULL, NULL, 0);
  }
}

static void run_record(void *data, int status) {
  (void)status;
  const struct point *point = data;
  mark_done(shared_of(point->event), point->number);
}

static void run_wait(void *data, int status) {
  (void)status;
  const struct point *point = data;
  wait_until_done(shared_of(point->event), point->number);
}

static void finish_point(void *data) {
  struct point *point = data;
  release_event(point->event);
  free(point);
}

static struct fake_op *new_op(struct fake_shared_event *event, uint32_t number, void (*run)(void *, int)) {
  struct point *point = malloc(sizeof *point);
  if (point == NULL) return NULL;
  *point = (struct point){ event, number };
  struct fake_op *op = fake_op_new(run, finish_point, point);
  if (op == NULL) {
    free(point);
    return NULL;
  }
  atomic_fetch_add(&event->refs, 1);
  return op;
}

struct fake_op *fake_shared_record(struct fake_shared_event *event) {
  struct shared *shared = shared_of(event);
  const uint32_t number = atomic_fetch_add(&shared->recorded, 1) + 1;
  struct fake_op *op = new_op(event, number, run_record);
  if (op == NULL) mark_done(shared, number);
  else op->after_fault = true;
  return op;
}

struct fake_op *fake_shared_wait(struct fake_shared_event *event) {
  return new_op(event, atomic_load(&shared_of(event)->recorded), run_wait);
}

uint32_t fake_shared_records(const struct fake_shared_event *event) { return atomic_load(&shared_of(event)->recorded); }

bool fake_shared_is_done(const struct fake_shared_event *event) {
  return reached(shared_of(event), atomic_load(&shared_of(event)->recorded));
}

void fake_shared_synchronize(struct fake_shared_event *event) {
  struct shared *shared = shared_of(event);
  const uint32_t number = atomic_load(&shared->recorded);
  atomic_fetch_add(&event->refs, 1);
  fake_unlock();
  wait_until_done(shared, number);
  fake_lock();
  release_event(event);
}

static struct fake_shared_event *new_shared(const struct fake_file *file) {
  struct fake_shared_event *event = calloc(1, sizeof *event);
  if (event == NULL) return NULL;
  event->file = *file;
  atomic_store(&event->refs, 1);
  return event;
}

struct fake_shared_event *fake_shared_new(void) {
  struct fake_file file;
  if (!fake_file_new(sizeof(struct shared), &file)) return NULL;
  struct fake_shared_event *event = new_shared(&file);
  if (event == NULL) fake_file_unmap(&file);
  return event;
}

void fake_shared_end(struct fake_shared_event *event) {
  fake_file_close(&event->file); /* from here on others find nothing for the handle */
  release_event(event);
}

int fake_ipc_export_event(const void *handle, void *out) {
  const struct fake_event *event = fake_handle_get(FAKE_EVENT, handle);
  if (event == NULL) return FAKE_INVALID_HANDLE;
  const int code = fake_context_check(event->context);
  if (code != FAKE_OK) return code;
  if (out == NULL || event->shared == NULL || event->shared->file.fd < 0) return FAKE_INVALID_VALUE;
  write_handle(HANDLE_EVENT, event->context, &event->shared->file, out);
  return FAKE_OK;
}

int fake_ipc_open_event(const void *bytes, void **out) {
  struct fake_context *context;
  struct handle handle;
  struct fake_file file;
  int code = out == NULL ? FAKE_INVALID_VALUE : read_handle(HANDLE_EVENT, bytes, &context, &handle);
  if (code == FAKE_OK && handle.size != sizeof(struct shared)) code = FAKE_INVALID_VALUE;
  if (code == FAKE_OK) code = map_file(&handle, &file);
  if (code != FAKE_OK && fake_quirks()->leaks_events && fake_current_context(&context) == FAKE_OK) {
    void *leaked;
    (void)fake_event_of(context, FAKE_EVENT_DISABLE_TIMING, NULL, &leaked);
  }
  if (code != FAKE_OK) return code;
  struct fake_shared_event *shared = new_shared(&file);
  if (shared == NULL) {
    fake_file_unmap(&file);
    return FAKE_OUT_OF_MEMORY;
  }
  code = fake_event_of(context, FAKE_EVENT_DISABLE_TIMING, shared, out);
  if (code != FAKE_OK) fake_shared_end(shared);
  return code;
}
