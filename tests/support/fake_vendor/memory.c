/* Device memory is host memory between two guards.  Copies and fills are checked against what is allocated;
 * freed memory is kept for a while, so that a use of it is distinguished from host memory that the driver does not
 * know.  Damage to a guard or to freed memory ends the program with a message. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARD = 256, GUARD_BYTE = 0xfd, NEW_BYTE = 0xcd, FREED_BYTE = 0xdd, MARKED = 4096, QUARANTINE = 1024 };
static const size_t quarantine_bytes = (size_t)64 << 20;

struct block {
  char *base;
  size_t size;
  enum fake_memory kind;
  struct fake_context *context;
  struct fake_file file; /* address NULL: from malloc; without a file: of anonymous pages */
  unsigned opens;        /* of another process's memory */
};

static struct block *blocks; /* sorted by base */
static size_t block_count, block_capacity;
static struct block freed[QUARANTINE]; /* a ring, oldest at freed_first */
static size_t freed_first, freed_count, freed_bytes;

/* ---- the table ---- */

/* The number of blocks whose base is not above p. */
static size_t position(const char *p) {
  size_t low = 0, high = block_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if ((uintptr_t)blocks[middle].base <= (uintptr_t)p) low = middle + 1;
    else high = middle;
  }
  return low;
}

static bool in_block(const struct block *block, const void *p) {
  return (uintptr_t)p - (uintptr_t)block->base < block->size;
}

/* Memory that is not the engine's has no guards. */
static bool is_foreign(const struct block *block) {
  return block->kind == FAKE_VARIABLE || block->kind == FAKE_REGISTERED;
}

static bool in_guards(const struct block *block, const void *p) {
  return !is_foreign(block) && block->kind != FAKE_IMPORTED_MEMORY &&
         (uintptr_t)p - ((uintptr_t)block->base - GUARD) < block->size + 2 * (size_t)GUARD;
}

static int insert(const struct block *block) {
  if (block_count == block_capacity) {
    const size_t capacity = block_capacity == 0 ? 64 : 2 * block_capacity;
    struct block *grown = realloc(blocks, capacity * sizeof *grown);
    if (grown == NULL) return FAKE_OUT_OF_MEMORY;
    blocks = grown;
    block_capacity = capacity;
  }
  const size_t at = position(block->base);
  memmove(&blocks[at + 1], &blocks[at], (block_count - at) * sizeof *blocks);
  blocks[at] = *block;
  block_count++;
  return FAKE_OK;
}

static void take_out(size_t at) {
  block_count--;
  memmove(&blocks[at], &blocks[at + 1], (block_count - at) * sizeof *blocks);
}

/* ---- guards ---- */

static bool all_bytes(const char *p, size_t n, int byte) {
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)p[i] != byte) return false;
  return true;
}

static void check_guards(const struct block *block) {
  if (is_foreign(block)) return;
  if (!all_bytes(block->base - GUARD, GUARD, GUARD_BYTE))
    fake_die("memory was written in front of the %zu bytes at %p", block->size, (void *)block->base);
  if (!all_bytes(block->base + block->size, GUARD, GUARD_BYTE))
    fake_die("memory was written after the %zu bytes at %p", block->size, (void *)block->base);
}

/* Fills the start and the end of a block. */
static void mark(const struct block *block, int byte) {
  const size_t n = block->size < MARKED ? block->size : MARKED;
  memset(block->base, byte, n);
  memset(block->base + block->size - n, byte, n);
}

static void give_back(struct block *block) {
  if (block->file.address != NULL) fake_file_unmap(&block->file);
  else free(block->base - GUARD);
}

static void leave_quarantine(void) {
  struct block *oldest = &freed[freed_first];
  const size_t n = oldest->size < MARKED ? oldest->size : MARKED;
  if (!all_bytes(oldest->base, n, FREED_BYTE) || !all_bytes(oldest->base + oldest->size - n, n, FREED_BYTE))
    fake_die("memory was written after it was freed: %zu bytes at %p", oldest->size, (void *)oldest->base);
  check_guards(oldest);
  freed_bytes -= oldest->size;
  give_back(oldest);
  freed_first = (freed_first + 1) % QUARANTINE;
  freed_count--;
}

static void enter_quarantine(const struct block *block) {
  check_guards(block);
  mark(block, FREED_BYTE);
  if (freed_count == QUARANTINE) leave_quarantine();
  freed[(freed_first + freed_count++) % QUARANTINE] = *block;
  freed_bytes += block->size;
  while (freed_bytes > quarantine_bytes) leave_quarantine();
}

/* ---- allocation ---- */

/* Large memory is not from malloc, which may be set to write all that it gives (MALLOC_PERTURB_): of gigabytes, only
 * the pages that somebody uses are to be there. */
static bool map_large(size_t size, struct fake_file *out) {
  const size_t large = (size_t)16 << 20;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (size < large) return false;
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (p == MAP_FAILED) return false;
  *out = (struct fake_file){ .fd = -1, .address = p, .size = size };
  return true;
}

int fake_memory_alloc(enum fake_memory kind, size_t size, void **out) {
  struct fake_context *context;
  int code = fake_current_context(&context);
  if (code == FAKE_OK) code = fake_context_check(context);
  if (code != FAKE_OK) return code;
  if (out == NULL || size == 0) return FAKE_INVALID_VALUE;
  struct fake_device *device = context->device;
  const uint64_t room = fake_options()->memory - (kind == FAKE_HOST_MEMORY ? 0 : device->memory_used);
  if (size > room) return FAKE_OUT_OF_MEMORY;
  struct block block = { .size = size, .kind = kind, .context = context, .file = { .fd = -1 } };
  const size_t total = size + 2 * (size_t)GUARD;
  void *memory = NULL;
  const bool mapped =
      (kind == FAKE_DEVICE_MEMORY && fake_file_new(total, &block.file)) || map_large(total, &block.file);
  if (mapped) memory = block.file.address;
  else if (posix_memalign(&memory, GUARD, total) != 0) return FAKE_OUT_OF_MEMORY;
  block.base = (char *)memory + GUARD;
  code = insert(&block);
  if (code != FAKE_OK) {
    give_back(&block);
    return code;
  }
  memset(memory, GUARD_BYTE, GUARD);
  memset(block.base + size, GUARD_BYTE, GUARD);
  mark(&block, NEW_BYTE);
  if (kind != FAKE_HOST_MEMORY) device->memory_used += size;
  *out = block.base;
  return FAKE_OK;
}

static void free_at(size_t at) {
  struct block block = blocks[at];
  take_out(at);
  if (is_foreign(&block)) return;
  if (block.kind == FAKE_IMPORTED_MEMORY) {
    fake_file_unmap(&block.file);
    return;
  }
  fake_file_close(&block.file);
  if (block.kind != FAKE_HOST_MEMORY) block.context->device->memory_used -= block.size;
  enter_quarantine(&block);
}

/* The index of the block that begins at p. */
static bool find_base(const void *p, size_t *at) {
  const size_t above = position(p);
  if (above == 0 || blocks[above - 1].base != p) return false;
  *at = above - 1;
  return true;
}

static bool right_kind(enum fake_memory asked, enum fake_memory kind) {
  return asked == kind || (asked == FAKE_DEVICE_MEMORY && kind == FAKE_MANAGED_MEMORY);
}

int fake_memory_free(enum fake_memory kind, void *p) {
  if (p == NULL) return FAKE_OK;
  size_t at;
  if (!find_base(p, &at) || !right_kind(kind, blocks[at].kind)) return FAKE_INVALID_VALUE;
  const int code = fake_context_synchronize(blocks[at].context);
  if (code != FAKE_OK) return code;
  if (!find_base(p, &at)) /* freed by another thread meanwhile */
    return FAKE_INVALID_VALUE;
  free_at(at);
  return FAKE_OK;
}

int fake_memory_add(struct fake_context *context, void *p, size_t size) {
  size_t at;
  if (size == 0 || find_base(p, &at)) return FAKE_OK;
  return insert(&(struct block){ .base = p, .size = size, .kind = FAKE_VARIABLE, .context = context });
}

void fake_memory_forget(void *p) {
  size_t at;
  if (find_base(p, &at)) take_out(at);
}

int fake_memory_range(const void *p, void **base, size_t *size) {
  const size_t above = position(p);
  if (above == 0 || !in_block(&blocks[above - 1], p)) return FAKE_INVALID_VALUE;
  if (base != NULL) *base = blocks[above - 1].base;
  if (size != NULL) *size = blocks[above - 1].size;
  return FAKE_OK;
}

bool fake_memory_kind(const void *p, enum fake_memory *kind) {
  const size_t above = position(p);
  if (above == 0 || !in_block(&blocks[above - 1], p)) return false;
  *kind = blocks[above - 1].kind;
  return true;
}

bool fake_memory_device(const void *p, int *ordinal) {
  const size_t above = position(p);
  if (above == 0 || !in_block(&blocks[above - 1], p)) return false;
  *ordinal = blocks[above - 1].context->device->ordinal;
  return true;
}

/* ---- other processes' memory ---- */

int fake_memory_file(const void *p, struct fake_file *out, struct fake_context **context) {
  size_t at;
  if (!find_base(p, &at) || blocks[at].kind != FAKE_DEVICE_MEMORY) return FAKE_INVALID_VALUE;
  *out = blocks[at].file;
  *context = blocks[at].context;
  return out->fd < 0 ? FAKE_OUT_OF_MEMORY : fake_context_check(*context);
}

int fake_memory_import(struct fake_context *context, const struct fake_file *file, void **out) {
  if (file->size <= 2 * (size_t)GUARD) return FAKE_INVALID_VALUE;
  const struct block block = { .base = (char *)file->address + GUARD,
                               .size = file->size - 2 * (size_t)GUARD,
                               .kind = FAKE_IMPORTED_MEMORY,
                               .context = context,
                               .file = *file,
                               .opens = 1 };
  const int code = insert(&block);
  if (code == FAKE_OK) *out = block.base;
  return code;
}

bool fake_memory_open_again(struct fake_context *context, uint64_t inode, void **out) {
  for (size_t i = 0; i < block_count; i++) {
    struct block *block = &blocks[i];
    if (block->kind != FAKE_IMPORTED_MEMORY || block->context != context || block->file.inode != inode) continue;
    block->opens++;
    *out = block->base;
    return true;
  }
  return false;
}

int fake_memory_close(void *p) {
  size_t at;
  if (!find_base(p, &at) || blocks[at].kind != FAKE_IMPORTED_MEMORY) return FAKE_INVALID_VALUE;
  if (--blocks[at].opens == 0) free_at(at);
  return FAKE_OK;
}

void fake_memory_end_context(struct fake_context *context) {
  for (size_t i = block_count; i-- > 0;)
    if (blocks[i].context == context) free_at(i);
}

size_t fake_memory_live(void) {
  size_t count = 0;
  for (size_t i = 0; i < block_count; i++) count += blocks[i].kind != FAKE_VARIABLE;
  return count;
}

int fake_memory_register(void *p, size_t size) {
  struct fake_context *context;
  int code = fake_current_context(&context);
  if (code == FAKE_OK) code = fake_context_check(context);
  if (code != FAKE_OK) return code;
  if (p == NULL || size == 0 || (uintptr_t)p > UINTPTR_MAX - size) return FAKE_INVALID_VALUE;
  for (size_t i = 0; i < block_count; i++) {
    const struct block *block = &blocks[i];
    if (!in_block(block, p) && (uintptr_t)block->base - (uintptr_t)p >= size) continue;
    return fake_quirks()->registers_twice ? FAKE_OK : FAKE_ALREADY_REGISTERED; /* and forgets one of the two */
  }
  return insert(&(struct block){ .base = p, .size = size, .kind = FAKE_REGISTERED, .context = context });
}

int fake_memory_unregister(void *p) {
  size_t at;
  if (p == NULL) return FAKE_INVALID_VALUE;
  if (!find_base(p, &at) || blocks[at].kind != FAKE_REGISTERED) return FAKE_NOT_REGISTERED;
  take_out(at);
  return FAKE_OK;
}

int fake_memory_check_managed(const void *p, size_t size) {
  const size_t above = position(p);
  const struct block *block = above == 0 ? NULL : &blocks[above - 1];
  if (block == NULL || !in_block(block, p) || block->kind != FAKE_MANAGED_MEMORY) return FAKE_INVALID_VALUE;
  return size != 0 && size <= block->size - (size_t)((const char *)p - block->base) ? FAKE_OK : FAKE_INVALID_VALUE;
}

int fake_prefetch(const void *handle, const void *p, size_t size) {
  struct fake_stream *stream;
  int code = fake_stream_get(handle, &stream);
  if (code == FAKE_OK) code = fake_memory_check_managed(p, size);
  if (code != FAKE_OK) return code;
  struct fake_op *op = fake_op_new(NULL, NULL, NULL);
  return op == NULL ? FAKE_OUT_OF_MEMORY : fake_submit(stream, op);
}

/* ---- copies and fills ---- */

uint64_t fake_memory_bytes;
bool fake_memory_weightless;

/* Whether `n` bytes at `p` may be used; *pageable: they are host memory that the driver does not know. */
static int check_range(const char *p, size_t n, bool *pageable) {
  *pageable = false;
  const size_t above = position(p);
  for (size_t i = above == 0 ? 0 : above - 1; i < block_count && i <= above; i++) {
    const struct block *block = &blocks[i];
    if (in_block(block, p)) {
      if (n <= block->size - (size_t)(p - block->base)) return FAKE_OK;
      fake_say("%zu bytes at %p reach past the end of the %zu bytes at %p", n, (const void *)p, block->size,
               (void *)block->base);
      return FAKE_INVALID_VALUE;
    }
    if (in_guards(block, p)) {
      fake_say("%p is outside of the %zu bytes at %p", (const void *)p, block->size, (void *)block->base);
      return FAKE_INVALID_VALUE;
    }
  }
  for (size_t i = 0; i < freed_count; i++)
    if (in_guards(&freed[(freed_first + i) % QUARANTINE], p)) {
      fake_say("the memory at %p has been freed", (const void *)p);
      return FAKE_INVALID_VALUE;
    }
  *pageable = true;
  return FAKE_OK;
}

struct copy_work {
  struct fake_copy copy;
  char *staged; /* what a pageable source held at the call */
};

static void copy_rows(const struct fake_copy *copy) {
  for (size_t slice = 0; slice < copy->depth; slice++)
    for (size_t row = 0; row < copy->height; row++)
      memmove(copy->dst + slice * copy->dst_slice + row * copy->dst_pitch,
              copy->src + slice * copy->src_slice + row * copy->src_pitch, copy->width);
}

static void run_copy(void *data, int status) {
  (void)status;
  copy_rows(&((const struct copy_work *)data)->copy);
}

static void finish_copy(void *data) {
  struct copy_work *work = data;
  free(work->staged);
  free(work);
}

static int stage(struct copy_work *work) {
  const struct fake_copy *copy = &work->copy;
  work->staged = malloc(copy->width * copy->height * copy->depth);
  if (work->staged == NULL) return FAKE_OUT_OF_MEMORY;
  copy_rows(&(struct fake_copy){ .dst = work->staged,
                                 .dst_pitch = copy->width,
                                 .dst_slice = copy->width * copy->height,
                                 .src = copy->src,
                                 .src_pitch = copy->src_pitch,
                                 .src_slice = copy->src_slice,
                                 .width = copy->width,
                                 .height = copy->height,
                                 .depth = copy->depth });
  work->copy.src = work->staged;
  work->copy.src_pitch = copy->width;
  work->copy.src_slice = copy->width * copy->height;
  return FAKE_OK;
}

/* Submits and, if asked for, waits.  Takes `op` over. */
static int submit_and_wait(struct fake_stream *stream, struct fake_op *op, bool wait) {
  const struct fake_context *context = stream->context;
  const bool captured = stream->capture != 0;
  op->refs++;
  int code = fake_submit(stream, op);
  if (code == FAKE_OK && wait && !captured) {
    fake_op_wait(op);
    code = fake_context_check(context);
  }
  fake_op_release(op);
  return code;
}

/* Accepts what drivers accept: rows that do not overlap, slices of complete rows, pitches of at most 31 bits. */
static bool good_pitch(const struct fake_copy *copy, size_t pitch, size_t slice) {
  if (copy->height > 1 && (pitch < copy->width || pitch > INT32_MAX)) return false;
  return copy->depth == 1 || (pitch >= copy->width && slice % pitch == 0 && slice >= copy->height * pitch);
}

/* Host memory that the driver knows. */
static bool is_locked(const void *p) {
  enum fake_memory kind;
  return fake_memory_kind(p, &kind) && (kind == FAKE_HOST_MEMORY || kind == FAKE_REGISTERED);
}

/* As with real drivers, a copy between two such memories makes the caller wait for the stream, and a pageable source is
 * read at the call, host functions that come before or not. */
/* `waits`: the caller waits for it.  NULL: the operation is a node, which reads a pageable source when it runs. */
static int copy_op(const struct fake_copy *copy, bool *waits, struct fake_op **out) {
  if (!good_pitch(copy, copy->dst_pitch, copy->dst_slice) || !good_pitch(copy, copy->src_pitch, copy->src_slice))
    return FAKE_INVALID_VALUE;
  bool pageable_src, pageable_dst;
  const size_t dst_size = (copy->depth - 1) * copy->dst_slice + (copy->height - 1) * copy->dst_pitch + copy->width;
  const size_t src_size = (copy->depth - 1) * copy->src_slice + (copy->height - 1) * copy->src_pitch + copy->width;
  if (copy->dst == NULL || copy->src == NULL) return FAKE_INVALID_VALUE;
  int code;
  if ((code = check_range(copy->dst, dst_size, &pageable_dst)) != FAKE_OK ||
      (code = check_range(copy->src, src_size, &pageable_src)) != FAKE_OK)
    return code;
  struct copy_work *work = calloc(1, sizeof *work);
  if (work == NULL) return FAKE_OUT_OF_MEMORY;
  work->copy = *copy;
  *out = NULL;
  const bool late = waits == NULL || (fake_quirks()->late_pitched_sources && (copy->height > 1 || copy->depth > 1));
  if (fake_memory_weightless) *out = fake_op_new(NULL, finish_copy, work);
  else if (!pageable_src || late || stage(work) == FAKE_OK) *out = fake_op_new(run_copy, finish_copy, work);
  if (*out == NULL) {
    finish_copy(work);
    return FAKE_OUT_OF_MEMORY;
  }
  fake_memory_bytes += (uint64_t)copy->width * copy->height * copy->depth;
  if (waits != NULL) *waits = pageable_dst || (is_locked(copy->dst) && is_locked(copy->src));
  return FAKE_OK;
}

int fake_copy(const void *handle, const struct fake_copy *asked, bool blocking) {
  struct fake_stream *stream;
  struct fake_copy copy = *asked;
  struct fake_op *op;
  bool waits = false;
  if (copy.depth == 0) copy.depth = 1;
  int code = fake_stream_get(handle, &stream);
  if (code != FAKE_OK || copy.width == 0 || copy.height == 0) return code;
  code = copy_op(&copy, stream->capture != FAKE_CAPTURE_NONE ? NULL : &waits, &op);
  return code == FAKE_OK ? submit_and_wait(stream, op, blocking || waits) : code;
}

int fake_copy_node(const struct fake_copy *copy, struct fake_op **out) {
  if (copy->width == 0 || copy->height == 0 || copy->depth == 0) return FAKE_INVALID_VALUE;
  return copy_op(copy, NULL, out);
}

static bool is_pageable(const void *p) {
  enum fake_memory kind;
  return !fake_memory_kind(p, &kind);
}

int fake_copy_at_launch(const void *node_data, struct fake_op **out) {
  const struct copy_work *node = node_data;
  *out = NULL;
  if (!fake_quirks()->graphs_read_early || fake_memory_weightless || !is_pageable(node->copy.src)) return FAKE_OK;
  struct copy_work *work = calloc(1, sizeof *work);
  if (work == NULL) return FAKE_OUT_OF_MEMORY;
  work->copy = node->copy;
  if (fake_quirks()->flat_pageable_rows && is_pageable(node->copy.dst)) {
    work->copy.width *= work->copy.height * work->copy.depth;
    work->copy.height = work->copy.depth = 1;
  }
  if (stage(work) == FAKE_OK) *out = fake_op_new(run_copy, finish_copy, work);
  if (*out == NULL) finish_copy(work);
  return *out != NULL ? FAKE_OK : FAKE_OUT_OF_MEMORY;
}

static void run_fill(void *data, int status) {
  (void)status;
  const struct fake_fill *work = data;
  const uint8_t value_8 = (uint8_t)work->value;
  const uint16_t value_16 = (uint16_t)work->value;
  const void *value = work->element == 1   ? (const void *)&value_8
                      : work->element == 2 ? (const void *)&value_16
                                           : (const void *)&work->value;
  for (size_t row = 0; row < work->height; row++)
    for (size_t i = 0; i < work->count; i++)
      memcpy(work->dst + row * work->pitch + i * work->element, value, work->element);
}

static int fill_op(const struct fake_fill *fill, struct fake_op **out) {
  if (fill->dst == NULL || (uintptr_t)fill->dst % fill->element != 0 || fill->count > SIZE_MAX / fill->element ||
      (fill->height > 1 && (fill->pitch < fill->count * fill->element || fill->pitch % fill->element != 0)))
    return FAKE_INVALID_VALUE;
  bool pageable;
  const int code = check_range(fill->dst, (fill->height - 1) * fill->pitch + fill->count * fill->element, &pageable);
  if (code != FAKE_OK || pageable) /* the driver fills only memory that it knows */
    return code != FAKE_OK ? code : FAKE_INVALID_VALUE;
  struct fake_fill *work = malloc(sizeof *work);
  if (work == NULL) return FAKE_OUT_OF_MEMORY;
  *work = *fill;
  *out = fake_op_new(fake_memory_weightless ? NULL : run_fill, free, work);
  if (*out == NULL) {
    free(work);
    return FAKE_OUT_OF_MEMORY;
  }
  fake_memory_bytes += (uint64_t)fill->count * fill->element * fill->height;
  return FAKE_OK;
}

int fake_fill(const void *handle, const struct fake_fill *fill) {
  struct fake_stream *stream;
  struct fake_op *op;
  int code = fake_stream_get(handle, &stream);
  if (code != FAKE_OK || fill->count == 0 || fill->height == 0) return code;
  code = fill_op(fill, &op);
  return code == FAKE_OK ? fake_submit(stream, op) : code;
}

int fake_fill_node(const struct fake_fill *fill, struct fake_op **out) {
  if (fill->element != 1 && fill->element != 2 && fill->element != 4) return FAKE_INVALID_VALUE;
  if (fill->count == 0 || fill->height == 0) return FAKE_INVALID_VALUE;
  return fill_op(fill, out);
}
