/* Checks of the memory that is passed to a call. */
#include "core/memory/memory.h"

rill_status rill__memory_check(const struct rill__stream *stream, const void *p, size_t n, const char *what,
                               uint32_t *kind) {
  const struct rill__allocation *allocation = rill__ranges_find(p);
  *kind = RILL_MEMORY_UNKNOWN;
  if (allocation == NULL) {
    RILL_REQUIRE((uintptr_t)p <= UINTPTR_MAX - n, RILL_ERROR_OUT_OF_RANGE,
                 "%s: %zu bytes at %p extend past the end of the address space", what, n, p);
    return RILL_OK;
  }
  uintptr_t begin = allocation->begin;
  size_t size = allocation->size;
  RILL_REQUIRE(!allocation->pooled || rill__pool_find(allocation, p, &begin, &size), RILL_ERROR_NOT_FOUND,
               "%s: %p lies in the memory of a pool, but is not allocated or has been freed", what, p);
  const bool registered = allocation->kind == RILL_MEMORY_REGISTERED;
  const size_t offset = (uintptr_t)p - begin;
  RILL_REQUIRE(n <= size - offset, RILL_ERROR_OUT_OF_RANGE,
               "%s: %zu bytes at offset %zu extend past the end of an allocation of %zu bytes", what, n, offset, size);
  if (allocation->base.device->backend == stream->base.device->backend) {
    const bool peer = allocation->kind == RILL_MEMORY_DEVICE && allocation->base.device != stream->base.device;
    *kind = registered ? (uint32_t)RILL_MEMORY_PINNED : peer ? (uint32_t)RILL__MEMORY_PEER : allocation->kind;
    return RILL_OK;
  }
  /* Pinned memory of another backend is ordinary host memory here. */
  RILL_REQUIRE(allocation->kind == RILL_MEMORY_PINNED || registered, RILL_ERROR_WRONG_BACKEND,
               "%s %p is memory of %s, which %s cannot access" RILL_HINT "copy through host memory", what, p,
               allocation->base.device->name, stream->base.device->name);
  return RILL_OK;
}

rill_status rill__memory_is_pageable(struct rill__device *device, const void *p, uint32_t kind, bool *out) {
  bool known = false;
  *out = kind == RILL_MEMORY_UNKNOWN;
  if (!*out || device->backend->memory->is_known == NULL) return RILL_OK;
  RILL_TRY(RILL_DISPATCH(device, memory, is_known, device, p, &known));
  *out = !known;
  return RILL_OK;
}

rill_status rill__memory_find_managed(const void *p, size_t size, struct rill__device **owner) {
  const struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_NOT_FOUND, "%p is not a rill allocation, or has been freed", p);
  RILL_REQUIRE(allocation->kind == RILL_MEMORY_MANAGED, RILL_ERROR_INVALID_ARGUMENT,
               "%p is memory of kind %u, not managed" RILL_HINT "allocate it with RILL_MEMORY_MANAGED", p,
               allocation->kind);
  uintptr_t begins = allocation->begin;
  size_t all = allocation->size;
  RILL_REQUIRE(!allocation->pooled || rill__pool_find(allocation, p, &begins, &all), RILL_ERROR_NOT_FOUND,
               "%p lies in the memory of a pool, but is not allocated or has been freed", p);
  const size_t offset = (uintptr_t)p - begins;
  RILL_REQUIRE(size <= all - offset, RILL_ERROR_OUT_OF_RANGE,
               "%zu bytes at offset %zu extend past the end of an allocation of %zu bytes", size, offset, all);
  *owner = allocation->base.device;
  return RILL_OK;
}

rill_status rill__memory_check_pattern(size_t size) {
  RILL_REQUIRE(size != 0 && size <= RILL__PATTERN_BYTES && (size & (size - 1)) == 0, RILL_ERROR_INVALID_ARGUMENT,
               "pattern_size %zu is not 1, 2, 4, 8 or 16", size);
  return RILL_OK;
}

void rill__memory_observe(void *p, struct rill__observed *what) {
  const struct rill__allocation *const allocation = rill__ranges_find(p);
  if (allocation == NULL) return;
  uintptr_t begin = allocation->begin;
  size_t size = allocation->size;
  if (allocation->pooled && !rill__pool_find(allocation, p, &begin, &size)) size = 0;
  what->device = allocation->base.device;
  what->memory.p = p;
  what->memory.size = size;
  what->memory.kind = allocation->kind;
}
