#include "core/timeline/item.h"

#include "core/diagnose/record.h"
#include "core/timeline/arrows.h"
#include "core/timeline/clock.h"
#include "core/timeline/file.h"
#include "core/timeline/tracks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- called by the submitting thread: copy what may be destroyed later ---- */

static void keep_label(struct rill__trace_item *item, const char *label) {
  size_t length = label != NULL ? strnlen(label, sizeof item->label - 1) : 0;
  if (length == sizeof item->label - 1) { /* does not end inside a multi-byte character */
    while (length > 0 && (label[length] & 0xc0) == 0x80) length--;
  }
  if (length > 0) memcpy(item->label, label, length);
  item->label[length] = '\0';
}

/* Returns true for memory that a GPU's driver does not know; the host copies such memory to a staging buffer first. */
static bool is_pageable(struct rill__device *device, const void *p, uint32_t kind) {
  bool known = false;
  if (kind != RILL_MEMORY_UNKNOWN || device->backend->memory->is_known == NULL) return false;
  return RILL_DISPATCH(device, memory, is_known, device, p, &known) == RILL_OK && !known;
}

static void describe_kernel(struct rill__trace_item *item, const struct rill__launch *launch) {
  item->name = launch->kernel->lasting_name;
  keep_label(item, item->name != NULL ? launch->label : launch->kernel->name);
  memcpy(item->launch.grid, launch->grid, sizeof item->launch.grid);
  memcpy(item->launch.block, launch->block, sizeof item->launch.block);
  item->launch.shared = launch->shared_mem_bytes;
}

void rill__trace_describe(struct rill__trace_item *item, const struct rill__observed *what, uint64_t now) {
  const struct rill__stream *const stream = what->stream;
  const struct rill__object *object = NULL;
  item->kind = what->kind;
  item->submitted = now;
  item->null_stream = stream->imported && stream->native <= 1;
  item->pageable = item->ran = item->failed = false;
  item->label[0] = '\0';
  switch (what->kind) {
    case RILL__OBSERVED_LAUNCH: describe_kernel(item, what->launch); return;
    case RILL__OBSERVED_COPY:
      item->memory.bytes = (uint64_t)what->copy.width * what->copy.height * what->copy.depth;
      item->memory.dst_kind = what->copy.dst_kind;
      item->memory.src_kind = what->copy.src_kind;
      item->pageable = is_pageable(what->device, what->copy.dst, what->copy.dst_kind) ||
                       is_pageable(what->device, what->copy.src, what->copy.src_kind);
      return;
    case RILL__OBSERVED_FILL:
      item->memory.bytes = (uint64_t)what->fill.width * what->fill.height * what->fill.pattern_size;
      return;
    case RILL__OBSERVED_PREFETCH: item->memory.bytes = what->memory.size; return;
    case RILL__OBSERVED_HOST_CALL: item->fn = what->host_call.fn; return;
    case RILL__OBSERVED_WAIT: object = &what->event.event->base; break;
    case RILL__OBSERVED_GRAPH:
    case RILL__OBSERVED_UPLOAD: object = &what->exec->base; break;
    default: return;
  }
  keep_label(item, object->label);
}

void rill__trace_describe_note(struct rill__trace_item *item, const rill_stream_note *note, uint64_t now) {
  item->kind = RILL__OBSERVED_NOTE;
  item->submitted = now;
  item->follows_before = item->null_stream = item->pageable = item->ran = item->failed = false;
  item->name = rill__name_intern(note->name);
  item->note.number = note->number;
  item->note.bytes = note->bytes;
  item->note.rank = note->rank;
  item->note.ranks = note->ranks;
  keep_label(item, note->group);
}

void rill__trace_item_cache(const struct rill__trace_item *item) {
  enum { LINE_BYTES = 64 };
  for (size_t at = 0; item != NULL && at < sizeof *item; at += LINE_BYTES)
    __builtin_prefetch((const char *)item + at, 1);
}

/* ---- called by the writing thread ---- */

static const char *place_name(uint32_t kind) {
  switch (kind) {
    case RILL_MEMORY_DEVICE: return "device";
    case RILL__MEMORY_PEER: return "peer";
    case RILL_MEMORY_MANAGED: return "managed";
    default: return "host";
  }
}

static void name_host_call(rill_host_fn fn, char *text, size_t size) {
  Dl_info info;
  void *address = NULL;
  memcpy(&address, &fn, sizeof address);
  const bool named = dladdr(address, &info) != 0 && info.dli_sname != NULL && info.dli_saddr == address;
  char name[RILL__TRACE_NAME_BYTES];
  rill__json_escape(name, sizeof name, named ? info.dli_sname : "host call");
  (void)snprintf(text, size, "\"cat\":\"host call\",\"name\":\"%s\",\"args\":{\"address\":\"%p\"", name, address);
}

static void name_object(const char *category, const char *name, const char *label, char *text, size_t size) {
  (void)snprintf(text, size, "\"cat\":\"%s\",\"name\":\"%s%s%s\",\"args\":{\"label\":\"%s\"", category, name,
                 label[0] != '\0' ? " " : "", label, label);
}

/* Writes category, name and arguments, without the end of the arguments. */
static void name_item(const struct rill__trace_item *item, char *text, size_t size) {
  char name[RILL__TRACE_NAME_BYTES], label[RILL__TRACE_NAME_BYTES];
  const unsigned long long bytes = item->memory.bytes;
  rill__json_escape(label, sizeof label, item->label);
  switch (item->kind) {
    case RILL__OBSERVED_LAUNCH:
      rill__json_escape(name, sizeof name, item->name != NULL ? item->name : item->label);
      (void)snprintf(
          text, size,
          "\"cat\":\"kernel\",\"name\":\"%s\",\"args\":{\"label\":\"%s\",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],"
          "\"shared\":%u",
          name, item->name != NULL ? label : "", item->launch.grid[0], item->launch.grid[1], item->launch.grid[2],
          item->launch.block[0], item->launch.block[1], item->launch.block[2], item->launch.shared);
      return;
    case RILL__OBSERVED_COPY:
      (void)snprintf(text, size, "\"cat\":\"copy\",\"name\":\"copy %s to %s\",\"args\":{\"bytes\":%llu,\"pageable\":%s",
                     place_name(item->memory.src_kind), place_name(item->memory.dst_kind), bytes,
                     item->pageable ? "true" : "false");
      return;
    case RILL__OBSERVED_FILL:
      (void)snprintf(text, size, "\"cat\":\"fill\",\"name\":\"fill\",\"args\":{\"bytes\":%llu", bytes);
      return;
    case RILL__OBSERVED_PREFETCH:
      (void)snprintf(text, size, "\"cat\":\"copy\",\"name\":\"prefetch\",\"args\":{\"bytes\":%llu", bytes);
      return;
    case RILL__OBSERVED_HOST_CALL: name_host_call(item->fn, text, size); return;
    case RILL__OBSERVED_WAIT: name_object("wait", "wait", label, text, size); return;
    case RILL__OBSERVED_NOTE:
      rill__json_escape(name, sizeof name, item->name != NULL ? item->name : "?");
      (void)snprintf(text, size,
                     "\"cat\":\"communication\",\"name\":\"%s\",\"args\":{\"group\":\"%s\",\"number\":%llu,"
                     "\"rank\":%u,\"ranks\":%u,\"bytes\":%llu",
                     name, label, (unsigned long long)item->note.number, item->note.rank, item->note.ranks,
                     (unsigned long long)item->note.bytes);
      return;
    default: name_object("graph", item->kind == RILL__OBSERVED_GRAPH ? "graph" : "upload", label, text, size); return;
  }
}

static void write_arrow(const struct rill__trace_line *line, char end, uint64_t arrow, uint64_t ns) {
  rill__trace_file_add("{\"ph\":\"%c\",\"cat\":\"order\",\"name\":\"event\",\"id\":%llu,\"pid\":%u,\"tid\":%llu,"
                       "\"ts\":" RILL__US_FORMAT "}",
                       end, (unsigned long long)arrow, line->process, (unsigned long long)line->number, RILL__US(ns));
}

static void write_bar(const struct rill__trace_line *line, const struct rill__trace_item *item,
                      const struct rill__trace_bar *bar) {
  char text[512];
  name_item(item, text, sizeof text);
  rill__trace_file_add("{\"ph\":\"X\",\"pid\":%u,\"tid\":%llu,\"ts\":" RILL__US_FORMAT ",\"dur\":" RILL__US_FORMAT
                       ",%s,\"submitted\":" RILL__US_FORMAT "%s}}",
                       line->process, (unsigned long long)line->number, RILL__US(bar->begin),
                       RILL__US(bar->end - bar->begin), text, RILL__US(item->submitted),
                       item->null_stream ? ",\"null_stream\":true" : "");
}

/* Finds when the operation started and ended; returns false if that is not known. */
static bool find_times(struct rill__trace_line *line, const struct rill__trace_item *item, uint64_t *begin,
                       uint64_t *end) {
  if (item->ran) {
    *begin = item->submitted;
    *end = item->ran_until;
    return true;
  }
  const uint64_t before = line->reached;
  const bool knows_before = line->knows_end;
  if (item->kind == RILL__OBSERVED_WAIT && item->end == NULL) {
    *begin = knows_before && before > item->submitted ? before : item->submitted;
    *end = rill__arrow_when(item->arrow);
    if (*end < *begin) *end = *begin;
    line->reached = *end;
    line->knows_end = true;
    return true;
  }
  line->knows_end = !item->failed && rill__trace_time_of(item->end, item->base, end);
  if (!line->knows_end) return false;
  line->reached = *end;
  *begin = knows_before && before > item->submitted ? before : item->submitted;
  return item->follows_before || rill__trace_time_of(item->start, item->base, begin);
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Places a bar.  Times have an error of a few tenths of a microsecond, but viewers drop a bar that overlaps another one
 * of its track in part, and draw a bar without length inside the next one.  So a bar is at least 1 ns long, and is
 * moved after the last bar of its depth and into the bar that contains it; if no room is left there, after that bar. */
static const struct rill__trace_bar *place_bar(struct rill__trace_line *line, uint32_t depth, uint64_t begin,
                                               uint64_t end) {
  struct rill__trace_bar *bar = &line->bars[depth < RILL__TRACE_DEPTH ? depth : RILL__TRACE_DEPTH - 1];
  while (bar > line->bars && larger(begin, bar->end) >= bar[-1].end) bar--;
  begin = larger(begin, bar->end);
  if (bar > line->bars) {
    begin = larger(begin, bar[-1].begin);
    if (end > bar[-1].end) end = bar[-1].end;
  }
  *bar = (struct rill__trace_bar){ begin, larger(end, begin + 1) };
  RILL_ASSERT(bar == line->bars || (bar[-1].begin <= bar->begin && bar->end <= bar[-1].end),
              "a bar is inside the bar that contains it");
  line->last = bar->end - 1;
  return bar;
}

/* A viewer attaches the start of an arrow to the bar that contains it and its end to the next bar of the track.  It
 * drops an arrow whose end is not after its start, and turns an arrow around if its second bar begins before its first
 * one, as the bar of a wait often does.  So an arrow leads from the end of the bar before the record to the end of the
 * wait, and is drawn to the operation after the wait. */
void rill__trace_write(struct rill__trace_line *line, const struct rill__trace_item *item) {
  uint64_t begin = 0, end = 0;
  if (item->kind == RILL__OBSERVED_RECORD) {
    if (line->last != 0) write_arrow(line, 's', item->arrow, line->last);
    rill__arrow_reached(item->arrow, line->knows_end ? larger(line->reached, item->submitted) : item->submitted,
                        line->last);
    return;
  }
  if (!find_times(line, item, &begin, &end)) {
    rill__trace_file_drop();
    return;
  }
  const uint64_t from = item->arrow != 0 ? rill__arrow_from(item->arrow) : 0;
  write_bar(line, item, place_bar(line, item->depth, begin, from != 0 ? larger(end, from + 2) : end));
  if (from != 0 && line->last > from) write_arrow(line, 'f', item->arrow, line->last);
}
