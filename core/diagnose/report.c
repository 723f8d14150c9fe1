#include "core/diagnose/report.h"

#include "core/diagnose/calls.h"

#include <string.h>
#include <sys/mman.h>

/* Limit on the entries of all threads in a report.  The memory comes directly from the system, which provides it page
 * by page. */
enum { OPERATIONS_MAX = 1 << 12 };
#define LIST_BYTES (OPERATIONS_MAX * sizeof(struct rill__operation_record))

/* ---- reading ---- */

static void read_entry(const struct rill__entry *entry, struct rill__operation_record *out, uint64_t *place) {
  uint64_t label[RILL__ENTRY_LABEL / 8];
  *place = atomic_load_explicit(&entry->place, memory_order_relaxed);
  out->stream = atomic_load_explicit(&entry->stream, memory_order_relaxed);
  out->subject = atomic_load_explicit(&entry->subject, memory_order_relaxed);
  out->sequence = *place & RILL__PLACE_SEQUENCE;
  out->kind = (uint32_t)(*place >> RILL__PLACE_KIND) - 1;
  memset(out->label, 0, sizeof out->label);
  if (out->kind == RILL__OBSERVED_LAUNCH) {
    for (int i = 0; i < 6; i++) out->shape[i] = atomic_load_explicit(&entry->shape[i], memory_order_relaxed);
  } else {
    for (int i = 0; i < 3; i++) out->words[i] = atomic_load_explicit(&entry->words[i], memory_order_relaxed);
    if (out->kind != RILL__OBSERVED_NOTE) return;
  }
  for (int i = 0; i < RILL__ENTRY_LABEL / 8; i++)
    label[i] = atomic_load_explicit(&entry->label[i], memory_order_relaxed);
  memcpy(out->label, label, sizeof label);
}

size_t rill__recorder_read(struct rill__recorder *recorder, const struct rill__device *device,
                           struct rill__operation_record *out) {
  uint64_t numbers[RILL__ENTRIES];
  size_t count = 0, kept = 0;
  const uint64_t written = atomic_load_explicit(&recorder->written, memory_order_acquire);
  const uint64_t first = written > RILL__ENTRIES ? written - RILL__ENTRIES : 0;
  for (uint64_t n = first; n < written; n++) {
    uint64_t place = 0;
    read_entry(&recorder->entries[n % RILL__ENTRIES], &out[count], &place);
    numbers[count] = n;
    if (((place ^ rill__place_of(device)) >> RILL__PLACE_DEVICE & 0xffff) == 0) count++;
  }
  atomic_thread_fence(memory_order_acquire);
  const uint64_t now = atomic_load_explicit(&recorder->written, memory_order_relaxed);
  for (size_t i = 0; i < count; i++) { /* drops entries that may have been replaced meanwhile */
    if (numbers[i] + RILL__ENTRIES <= now) continue;
    RILL_ASSERT(out[i].stream != 0 && (out[i].kind <= RILL__OBSERVED_NOTE || out[i].kind == RILL__RECORDED_SEEN),
                "an entry that was not replaced meanwhile is as it was written");
    out[kept++] = out[i];
  }
  return kept;
}

/* Returns the number of operations of a stream known to be complete, without what other threads have recorded. */
static uint64_t known_of(uint64_t id) {
  struct rill__stream *const stream = rill__find(id, RILL__STREAM);
  return stream != NULL ? rill__stream_known(stream) : 0;
}

static bool comes_before(const struct rill__operation_record *a, const struct rill__operation_record *b) {
  return a->stream != b->stream ? a->stream < b->stream : a->sequence < b->sequence;
}

/* Sorts in place and stably; the part of each recorder is almost sorted. */
static void sort_records(struct rill__operation_record *items, size_t count) {
  for (size_t gap = count > 64 ? 57 : 1; gap > 0; gap = gap > 1 ? 1 : 0) {
    for (size_t i = gap; i < count; i++) {
      const struct rill__operation_record moved = items[i];
      size_t at = i;
      for (; at >= gap && comes_before(&moved, &items[at - gap]); at -= gap) items[at] = items[at - gap];
      items[at] = moved;
    }
  }
}

/* Keeps the operations of a stream, which are sorted, that come after everything known to be complete. */
static size_t drop_complete(struct rill__operation_record *items, size_t count, struct rill__operation_record *out) {
  size_t kept = 0;
  uint64_t known = known_of(items[0].stream);
  for (size_t i = 0; i < count; i++) {
    if (items[i].kind == RILL__RECORDED_SEEN && items[i].sequence + 1 > known) known = items[i].sequence + 1;
  }
  uint64_t next = known;
  for (size_t i = 0; i < count; i++) {
    if (items[i].kind == RILL__RECORDED_SEEN || items[i].sequence < known) continue;
    out[kept] = items[i];
    out[kept].missing = out[kept].sequence > next ? out[kept].sequence - next : 0;
    next = out[kept++].sequence + 1;
  }
  return kept;
}

void rill__operations_pending(const struct rill__device *device, struct rill__operation_list *out) {
  size_t kept = 0;
  void *const room = mmap(NULL, LIST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *out = (struct rill__operation_list){ room == MAP_FAILED ? NULL : room, 0 };
  const struct rill__thread *thread = room == MAP_FAILED ? NULL : rill__threads_first();
  for (; thread != NULL && out->count + RILL__ENTRIES <= OPERATIONS_MAX; thread = thread->next) {
    struct rill__recorder *const recorder = atomic_load(&thread->recorder);
    if (recorder != NULL) out->count += rill__recorder_read(recorder, device, out->items + out->count);
  }
  sort_records(out->items, out->count);
  for (size_t i = 0, end; i < out->count; i = end) {
    for (end = i + 1; end < out->count && out->items[end].stream == out->items[i].stream;) end++;
    kept += drop_complete(out->items + i, end - i, out->items + kept);
  }
  out->count = kept;
}

void rill__operations_free(struct rill__operation_list *list) {
  if (list->items != NULL) (void)munmap(list->items, LIST_BYTES);
}

/* ---- describing ---- */

static void describe_size(struct rill__text *text, const uint32_t size[3], const char *one, const char *many) {
  if (size[1] == 1 && size[2] == 1) {
    rill__text_add(text, "%u %s", size[0], size[0] == 1 ? one : many);
  } else {
    rill__text_add(text, "%u x %u x %u %s", size[0], size[1], size[2], many);
  }
}

static void describe_launch(struct rill__text *text, const struct rill__operation_record *operation) {
  const char *const name = (const char *)(uintptr_t)operation->subject;
  rill__text_add(text, "kernel \"%.80s\", ", name != NULL ? name : "?");
  if (operation->label[0] != '\0') {
    const bool all = strlen(operation->label) < RILL__ENTRY_LABEL;
    rill__text_add(text, "launch \"%s%s\", ", operation->label, all ? "" : "...");
  }
  describe_size(text, operation->shape, "block", "blocks");
  rill__text_add(text, " of ");
  describe_size(text, operation->shape + 3, "thread", "threads");
}

static void describe_note(struct rill__text *text, const struct rill__operation_record *operation) {
  const char *const name = (const char *)(uintptr_t)operation->subject;
  const uint32_t rank = (uint32_t)operation->words[2], ranks = (uint32_t)(operation->words[2] >> 32);
  rill__text_add(text, "%.80s %llu", name != NULL ? name : "?", (unsigned long long)operation->words[0]);
  if (operation->label[0] != '\0') {
    const bool all = strlen(operation->label) < RILL__ENTRY_LABEL;
    rill__text_add(text, " of \"%s%s\"", operation->label, all ? "" : "...");
  }
  if (ranks > 0) rill__text_add(text, ", rank %u of %u", rank, ranks);
  rill__text_add(text, ", %llu bytes", (unsigned long long)operation->words[1]);
}

struct rill__name rill__stream_name(uint64_t id) {
  struct rill__name name;
  const struct rill__stream *const stream = rill__find(id, RILL__STREAM);
  if (stream != NULL) return rill__name_of(&stream->base);
  (void)snprintf(name.text, sizeof name.text, "stream 0x%llx, which was released", (unsigned long long)id);
  return name;
}

/* Describes a wait.  An internal event, or one that was destroyed, is described by the operation before its record. */
static void describe_wait(struct rill__text *text, const struct rill__operation_record *operation) {
  struct rill__event *const event = rill__find(operation->subject, RILL__EVENT);
  const unsigned long long number = operation->words[1] + 1;
  const bool given = event != NULL && rill__core(event)->given;
  rill__text_add(text, "wait for ");
  if (given) rill__text_add(text, "%s", rill__name_of(&event->base).text);
  if (operation->words[0] == 0) {
    if (!given) rill__text_add(text, "an event");
    return;
  }
  rill__text_add(text, given ? ", operation %llu of %s" : "operation %llu of %s", number,
                 rill__stream_name(operation->words[0]).text);
}

static void describe_record(struct rill__text *text, uint64_t id) {
  struct rill__event *const event = rill__find(id, RILL__EVENT);
  const bool given = event != NULL && rill__core(event)->given;
  if (given) rill__text_add(text, "record of %s", rill__name_of(&event->base).text);
  else rill__text_add(text, "mark for streams that wait for this one");
}

void rill__operation_describe(struct rill__text *text, const struct rill__operation_record *operation) {
  const unsigned long long subject = operation->subject;
  switch (operation->kind) {
    case RILL__OBSERVED_LAUNCH: describe_launch(text, operation); return;
    case RILL__OBSERVED_COPY:
      rill__text_add(text, "copy of %llu bytes from 0x%llx to 0x%llx", subject, (unsigned long long)operation->words[1],
                     (unsigned long long)operation->words[0]);
      return;
    case RILL__OBSERVED_FILL:
      rill__text_add(text, "fill of %llu bytes at 0x%llx", subject, (unsigned long long)operation->words[0]);
      return;
    case RILL__OBSERVED_PREFETCH:
      rill__text_add(text, "prefetch of %llu bytes at 0x%llx", subject, (unsigned long long)operation->words[0]);
      return;
    case RILL__OBSERVED_HOST_CALL:
      rill__text_add(text, "host call of the function %s", rill__function_name(subject).text);
      return;
    case RILL__OBSERVED_RECORD: describe_record(text, subject); return;
    case RILL__OBSERVED_WAIT: describe_wait(text, operation); return;
    case RILL__OBSERVED_NOTE: describe_note(text, operation); return;
    default: rill__text_add(text, operation->kind == RILL__OBSERVED_GRAPH ? "launch of a graph" : "upload of a graph");
  }
}

/* Reports one operation, after the number of missing ones before it. */
static void report_operation(struct rill__text *text, const struct rill__operation_record *operation) {
  const struct rill__name name = rill__stream_name(operation->stream);
  const unsigned long long number = operation->sequence + 1;
  if (operation->missing > 0) {
    rill__text_add(text, "\n%s: %llu operations before the next are no longer recorded", name.text,
                   (unsigned long long)operation->missing);
  }
  rill__text_add(text, "\n%s: operation %llu: ", name.text, number);
  rill__operation_describe(text, operation);
}

void rill__operations_report(const struct rill__device *device, struct rill__text *text) {
  enum { LAST_LINE = 48 };
  struct rill__operation_list list;
  rill__operations_pending(device, &list);
  if (list.count > 0) rill__text_add(text, "\nsince the last completion that was seen, oldest first:");
  for (size_t i = 0; i < list.count; i++) {
    const size_t before = text->length;
    report_operation(text, &list.items[i]);
    if (text->length + LAST_LINE < text->size) continue;
    text->length = before;
    rill__text_add(text, "\nand %zu more", list.count - i);
    break;
  }
  rill__operations_free(&list);
}
