#include "backends/cpu/cpu.h"
#include "backends/cpu/pages.h"
#include "backends/cpu/schedule.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum {
  ALIGNMENT = 256,
  INLINE_BYTES = 8192 /* a pageable source up to this size is stored in the operation */
};

/* If an address sanitizer is in the process, poisons the bytes that rounding added. */
typedef void poison_fn(const volatile void *p, size_t size);

static void poison(const char *p, size_t size) {
  static _Atomic(poison_fn *) found;
  static _Atomic bool looked;
  if (!atomic_load(&looked)) {
    union {
      void *symbol;
      poison_fn *function;
    } of = { dlsym(RTLD_DEFAULT, "__asan_poison_memory_region") };
    atomic_store(&found, of.function);
    atomic_store(&looked, true);
  }
  poison_fn *const function = atomic_load_explicit(&found, memory_order_relaxed);
  if (function != NULL) function(p, size);
}

static rill_status allocate(struct rill__device *device, size_t size, uint32_t kind, void **out) {
  /* Memory that can be shared with other processes needs whole pages (ipc.c). */
  const size_t alignment = kind == RILL_MEMORY_DEVICE ? rill__cpu_page_bytes() : ALIGNMENT;
  /* The system overcommits memory, so grants are limited to what exists. */
  if (size > device->info.memory_total) return RILL_ERROR_OUT_OF_MEMORY;
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  if (!rill__cpu_memory_grant(rounded)) return RILL_ERROR_OUT_OF_MEMORY;
  *out = aligned_alloc(alignment, rounded);
  if (*out == NULL) rill__cpu_memory_return(rounded);
  if (*out == NULL) return RILL_ERROR_OUT_OF_MEMORY;
  rill__cpu_memory_adjust(rounded, malloc_usable_size(*out)); /* a free returns this size */
  poison((const char *)*out + size, rounded - size);
  return RILL_OK;
}

/* Second check: refuses blocking calls inside a host call that core let through. */
rill_status rill__cpu_wait_for_all(struct rill__device *device) {
  if (RILL__UNLIKELY(rill__in_host_call)) return rill__fail_in_host_call();
  return rill__cpu_wait_status(device, rill__cpu_queues_synchronize(), 0);
}

static rill_status free_unused(struct rill__device *device, void *p, uint32_t kind) {
  (void)device;
  if (kind == RILL_MEMORY_DEVICE) RILL_TRY(rill__cpu_ipc_forget(p));
  rill__cpu_memory_return(malloc_usable_size(p));
  free(p);
  return RILL_OK;
}

static rill_status cpu_memory_free(struct rill__device *device, void *p, uint32_t kind) {
  RILL_TRY(rill__cpu_wait_for_all(device));
  return free_unused(device, p, kind);
}

/* Does nothing, because to this device all host memory is the same.  Unregistering waits like freeing. */
static rill_status cpu_memory_host_register(struct rill__device *device, void *p, size_t size) {
  (void)device, (void)p, (void)size;
  return RILL_OK;
}

static rill_status cpu_memory_host_unregister(struct rill__device *device, void *p) {
  (void)p;
  return rill__cpu_wait_for_all(device);
}

/* Does nothing: the device has one memory, so the data is there already. */
static rill_status cpu_memory_prefetch(struct rill__stream *stream, const void *p, size_t size) {
  (void)stream, (void)p, (void)size;
  return RILL_OK;
}

static rill_status cpu_memory_advise(struct rill__device *device, const void *p, size_t size, struct rill__device *at,
                                     uint32_t advice) {
  (void)device, (void)p, (void)size, (void)at, (void)advice;
  return RILL_OK;
}

/* ---- copies ---- */

struct copy {
  struct cpu_op op;
  char *dst;
  const char *src;
  size_t size;
  struct cpu_staged staged;
  bool reads_caller;         /* `src` is pageable memory, and the caller waits until it has been read */
  _Alignas(16) char bytes[]; /* copy of a small pageable source */
};

static void copy_bytes_of(struct cpu_op *op, uint64_t first, uint64_t end) {
  const struct copy *copy = (const struct copy *)op;
  const size_t from = (size_t)first * CPU_PART_BYTES;
  const size_t to = end * CPU_PART_BYTES < copy->size ? (size_t)end * CPU_PART_BYTES : copy->size;
  memcpy(copy->dst + from, copy->src + from, to - from);
}

static bool run_copy(struct cpu_queue *queue, struct cpu_op *op) {
  const struct copy *copy = (const struct copy *)op;
  const uintptr_t dst = (uintptr_t)copy->dst, src = (uintptr_t)copy->src;
  const bool apart = dst > src ? dst - src >= copy->size : src - dst >= copy->size;
  if (copy->reads_caller && !rill__cpu_queue_begin_reading(queue)) return true;
  if (copy->size >= CPU_SHARE_BYTES && apart) {
    return rill__cpu_workers_share(queue, op, (copy->size + CPU_PART_BYTES - 1) / CPU_PART_BYTES, CPU_BY_PLACE,
                                   copy_bytes_of);
  }
  memmove(copy->dst, copy->src, copy->size);
  return true;
}

static void end_copy(struct cpu_op *op) { rill__cpu_unstage(&((struct copy *)op)->staged); }

/* A pageable source is read during the call: directly into the destination if the stream is idle, into staging memory
 * otherwise.  If work of the stream may still write the source, or too much is staged already, the call blocks until
 * the stream has read the source. */
static rill_status cpu_memory_copy(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *src,
                                   uint32_t src_kind, size_t n) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  const bool pageable = src_kind == RILL_MEMORY_UNKNOWN && !queue->collects; /* a graph reads the source when it runs */
  if ((pageable || n <= CPU_DIRECT_BYTES) && rill__cpu_queue_take(queue)) {
    memmove(dst, src, n);
    rill__cpu_queue_cancel(queue);
    return RILL_OK;
  }
  struct cpu_staged staged = { .pages = NULL };
  const bool stages = pageable && cpu_queue_is_settled(queue) && rill__cpu_stage(&staged, n, INLINE_BYTES);
  if (pageable && !stages && rill__in_host_call) return rill__fail_in_host_call();
  if (staged.pages != NULL) memcpy(staged.pages, src, n);
  const size_t kept = stages && staged.pages == NULL ? n : 0;
  struct copy *op = NULL;
  const rill_status status = rill__cpu_queue_begin(queue, sizeof *op + kept, &op);
  if (status != RILL_OK) {
    rill__cpu_unstage(&staged);
    return status;
  }
  op->op.run = run_copy;
  op->op.end = end_copy;
  op->dst = dst;
  op->size = n;
  op->staged = staged;
  /* Checked again, because other threads may have submitted work after the source was staged. */
  op->reads_caller = pageable && !(stages && cpu_queue_is_settled(queue));
  op->src = src;
  if (!op->reads_caller && staged.pages != NULL) op->src = staged.pages;
  if (!op->reads_caller && kept > 0) op->src = memcpy(op->bytes, src, kept);
  if (dst_kind == RILL_MEMORY_UNKNOWN) cpu_queue_unsettle(queue);
  const bool waits = op->reads_caller;
  const uint64_t number = rill__cpu_queue_commit(queue);
  if (waits) return rill__cpu_queue_wait_for_reading(queue, number);
  cpu_submitted(queue);
  return RILL_OK;
}

const struct rill__memory_table rill__cpu_memory_table = {
  .alloc = allocate,
  .free = cpu_memory_free,
  .free_unused = free_unused,
  .host_register = cpu_memory_host_register,
  .host_unregister = cpu_memory_host_unregister,
  .copy = cpu_memory_copy,
  .copy_3d = rill__cpu_copy_3d,
  .prefetch = cpu_memory_prefetch,
  .advise = cpu_memory_advise,
  .fill = rill__cpu_fill,
  .fill_2d = rill__cpu_fill_2d,
  .may_be_address = rill__cpu_may_be_address,
  .ipc_export = rill__cpu_ipc_export,
  .ipc_import = rill__cpu_ipc_import,
  .ipc_close = rill__cpu_ipc_close,
};
