#include "core/tracking/guard_bytes.h"

#include "core/held/record.h"
#include "core/stream/stream.h"
#include "core/sync/submit.h"

#include <stdio.h>
#include <string.h>

/* The byte patterns.  As a float, double or half they are negative numbers between -4e13 and -2, whose bits change if 1
 * is added, so additions to this memory are noticed.  As a pointer they are not a valid address. */
enum { OF_ZONE = 0xc1, OF_FREED = 0xc2 };
static const unsigned char of_zone = OF_ZONE, of_freed = OF_FREED;

enum { ZONE = RILL__RED_ZONE, BUFFER = RILL__GUARDS_BATCH * 2 * ZONE };

/* ---- reports of mistakes ---- */

const char *rill__memory_kind_name(uint32_t kind) {
  static const char *const names[] = { "memory", "device memory", "pinned memory", "managed memory",
                                       "registered memory" };
  return names[kind <= RILL_MEMORY_REGISTERED ? kind : 0];
}

/* Bytes that differ from a pattern: their number, and the first of them. */
struct difference {
  size_t count, first;
  unsigned char value;
};

static struct difference compare_bytes(const unsigned char *bytes, size_t size, unsigned char pattern) {
  struct difference found = { 0, 0, 0 };
  if (bytes[0] == pattern && memcmp(bytes, bytes + 1, size - 1) == 0) return found;
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] == pattern) continue;
    if (found.count++ > 0) continue;
    found.first = i;
    found.value = bytes[i];
  }
  return found;
}

/* Reports the bytes; `place` says where the first of them is.  Reports nothing if the guard has been dropped meanwhile,
 * because the memory may already have another owner. */
static void report_bytes(struct rill__guard *guard, const struct difference *found, const char *place,
                         const char *freed) {
  struct rill__guards *guards = rill__guards_of(guard->device);
  char calls[700], caller[200];
  guard->reported = true;
  rill__origin_write(&guard->origin, 4, "\n    ", "", calls, sizeof calls);
  rill__origin_write(&guard->origin, 1, " (allocated at ", ")", caller, sizeof caller);
  const bool one = found->count == 1;
  pthread_mutex_lock(&guards->lock);
  if (guard->state == RILL__GUARD_DROPPED) {
    pthread_mutex_unlock(&guards->lock);
    return;
  }
  const size_t used = guards->found == 0 ? 0 : strlen(guards->text);
  char *const end = guards->text + used;
  const size_t room = sizeof guards->text - used;
  const int length =
      snprintf(end, room, "%s%zu byte%s %s written %s %zu bytes of %s%s%.60s%s at 0x%llx%s%s; %s is 0x%02x%s%s",
               used > 0 ? "\n" : "", found->count, one ? "" : "s", one ? "was" : "were", place, guard->size,
               rill__memory_kind_name(guard->kind), guard->label[0] != '\0' ? " of pool \"" : "", guard->label,
               guard->label[0] != '\0' ? "\"" : "", (unsigned long long)guard->begin, freed, caller,
               one ? "it" : "the first", found->value, calls[0] != '\0' ? "\n  allocated at" : "", calls);
  if (length < 0 || ((size_t)length >= room && used > 0)) *end = '\0'; /* only complete reports, except for the first */
  guards->found++;
  pthread_mutex_unlock(&guards->lock);
}

/* Checks both zones.  A batch from a short list may contain the same guard twice. */
static void check_zones(struct rill__guard *guard, const unsigned char *front, const unsigned char *back) {
  char place[120];
  if (guard->reported) return;
  const struct difference before = compare_bytes(front, ZONE, of_zone), after = compare_bytes(back, ZONE, of_zone);
  if (after.count > 0) {
    (void)snprintf(place, sizeof place, "past the end, from offset %zu on, of", guard->size + after.first);
    report_bytes(guard, &after, place, "");
  }
  if (before.count > 0) {
    (void)snprintf(place, sizeof place, "before the start, from offset -%zu on, of", ZONE - before.first);
    report_bytes(guard, &before, place, "");
  }
}

static void check_content(struct rill__guard *guard, const unsigned char *bytes, size_t offset, size_t size) {
  char place[120];
  const struct difference found = compare_bytes(bytes, size, of_freed);
  if (found.count == 0) return;
  (void)snprintf(place, sizeof place, "from offset %zu on into", offset + found.first);
  report_bytes(guard, &found, place, ", after they were freed");
}

/* ---- memory ---- */

bool rill__guard_is_of_host(const struct rill__guard *guard) {
  return !guard->device->backend->gpu || guard->kind == RILL_MEMORY_PINNED;
}

static struct rill__fill_2d zones_of(const struct rill__guard *guard) {
  return (struct rill__fill_2d){ .dst = (void *)(guard->begin - ZONE),
                                 .dst_kind = guard->kind,
                                 .pitch = ZONE + guard->size,
                                 .width = ZONE,
                                 .height = 2,
                                 .pattern = &of_zone,
                                 .pattern_size = 1 };
}

rill_status rill__guard_write_zones(const struct rill__guard *guard, struct rill__stream *stream) {
  const struct rill__fill_2d zones = zones_of(guard);
  rill_status status = RILL_OK;
  RILL__SUBMIT_UNOBSERVED(status, stream, memory, fill_2d, stream, &zones);
  return status;
}

rill_status rill__guard_write_content(const struct rill__guard *guard, struct rill__stream *stream) {
  rill_status status = RILL_OK;
  RILL__SUBMIT_UNOBSERVED(status, stream, memory, fill, stream, (void *)guard->begin, guard->kind, &of_freed, 1,
                          guard->size);
  return status;
}

/* Makes sure that the device's own stream and buffer exist.  Call it in a turn.  Inside a host call nothing may wait
 * for a stream. */
static bool can_use_stream(struct rill__device *device) {
  struct rill__guards *guards = rill__guards_of(device);
  rill__guards_assert_turn(guards);
  if (rill__in_host_call) return false;
  if (guards->stream == NULL && rill__stream_create(device, NULL, &guards->stream) == RILL_OK) {
    guards->stream->base.borrowed = true;
  }
  void *buffer = NULL;
  if (guards->buffer == NULL &&
      RILL_DISPATCH(device, memory, alloc, device, BUFFER, RILL_MEMORY_PINNED, &buffer) == RILL_OK) {
    guards->buffer = buffer;
  }
  return guards->stream != NULL && guards->buffer != NULL;
}

static bool wait_for_stream(const struct rill__guards *guards) {
  return RILL_DISPATCH(guards->stream, stream, synchronize, guards->stream, RILL__FOREVER) == RILL_OK;
}

/* ---- writing at once; for memory that only the device can write, call these in a turn ---- */

bool rill__guard_fill_zones(struct rill__guards *guards, const struct rill__guard *guard) {
  if (rill__guard_is_of_host(guard)) {
    memset((void *)(guard->begin - ZONE), OF_ZONE, ZONE);
    memset((void *)(guard->begin + guard->size), OF_ZONE, ZONE);
    return true;
  }
  return can_use_stream(guard->device) && rill__guard_write_zones(guard, guards->stream) == RILL_OK &&
         wait_for_stream(guards);
}

bool rill__guard_fill_content(struct rill__guards *guards, const struct rill__guard *guard) {
  if (rill__guard_is_of_host(guard)) {
    memset((void *)guard->begin, OF_FREED, guard->size);
    return true;
  }
  return can_use_stream(guard->device) && rill__guard_write_content(guard, guards->stream) == RILL_OK &&
         wait_for_stream(guards);
}

/* ---- comparing; call these in a turn ---- */

/* Submits a copy of a guard's zones to the buffer. */
static bool read_zones(struct rill__guards *guards, const struct rill__guard *guard, unsigned char *to) {
  const struct rill__fill_2d zones = zones_of(guard);
  const struct rill__copy_3d copy = { .dst = to,
                                      .src = zones.dst,
                                      .dst_kind = RILL_MEMORY_PINNED,
                                      .src_kind = zones.dst_kind,
                                      .width = ZONE,
                                      .height = 2,
                                      .depth = 1,
                                      .dst_pitch = ZONE,
                                      .src_pitch = zones.pitch };
  rill_status status = RILL_OK;
  RILL__SUBMIT_UNOBSERVED(status, guards->stream, memory, copy_3d, guards->stream, &copy);
  return status == RILL_OK;
}

void rill__guards_compare_zones(struct rill__guards *guards, struct rill__guard **batch, size_t count) {
  rill__guards_assert_turn(guards);
  size_t copies = 0;
  bool read = true;
  for (size_t i = 0; i < count && read; i++) {
    if (rill__guard_is_of_host(batch[i])) continue;
    read = (copies++ > 0 || can_use_stream(batch[i]->device)) &&
           read_zones(guards, batch[i], guards->buffer + i * 2 * ZONE);
  }
  if (copies > 0 && guards->stream != NULL && !rill__in_host_call) read &= wait_for_stream(guards);
  for (size_t i = 0; i < count; i++) {
    const unsigned char *const begin = (const unsigned char *)batch[i]->begin;
    if (rill__guard_is_of_host(batch[i])) check_zones(batch[i], begin - ZONE, begin + batch[i]->size);
    if (rill__guard_is_of_host(batch[i]) || !read) continue;
    const unsigned char *const copied = guards->buffer + i * 2 * ZONE;
    check_zones(batch[i], copied, copied + ZONE);
  }
}

void rill__guards_compare_content(struct rill__guards *guards, struct rill__guard *guard, size_t most) {
  const size_t size = guard->size < most ? guard->size : most;
  if (rill__guard_is_of_host(guard)) {
    check_content(guard, (const unsigned char *)guard->begin, 0, size);
    return;
  }
  if (!can_use_stream(guard->device)) return;
  for (size_t offset = 0; offset < size && !guard->reported; offset += BUFFER) {
    const size_t n = size - offset < BUFFER ? size - offset : BUFFER;
    rill_status status = RILL_OK;
    RILL__SUBMIT_UNOBSERVED(status, guards->stream, memory, copy, guards->stream, guards->buffer, RILL_MEMORY_PINNED,
                            (const void *)(guard->begin + offset), guard->kind, n);
    if (status != RILL_OK || !wait_for_stream(guards)) return;
    check_content(guard, guards->buffer, offset, n);
  }
}
