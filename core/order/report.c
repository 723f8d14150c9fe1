#include "core/order/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

void rill__order_say(struct rill__order_text *text, const char *format, ...) {
  char line[600];
  va_list list;
  va_start(list, format);
  const int length = vsnprintf(line, sizeof line, format, list);
  va_end(list);
  if (length <= 0) return;
  const size_t size = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
  if (text->room - text->used < size) {
    const size_t room = 2 * text->room + size + 1000;
    char *larger = realloc(text->text, room);
    if (larger == NULL) return;
    text->text = larger;
    text->room = room;
  }
  memcpy(text->text + text->used, line, size);
  text->used += size;
}

struct words {
  char text[200];
};

/* Returns a name such as: stream "a" */
static struct words name_stream(const struct rill__order_op *op) {
  struct words words;
  if (op->label[0] != '\0') {
    (void)snprintf(words.text, sizeof words.text, "stream \"%s\"", op->label);
  } else {
    (void)snprintf(words.text, sizeof words.text, "stream %" PRIu64, op->stream);
  }
  return words;
}

/* Returns a name such as: kernel "scale", or: copy of 64 bytes */
static struct words name_op(const struct rill__order_op *op) {
  struct words words;
  const bool named = op->name[0] != '\0', sized = op->size != 0;
  int used = snprintf(words.text, sizeof words.text, "%s", op->what);
  if (named) used += snprintf(words.text + used, sizeof words.text - (size_t)used, " \"%s\"", op->name);
  if (sized) {
    (void)snprintf(words.text + used, sizeof words.text - (size_t)used, " of %" PRIu64 " byte%s", op->size,
                   op->size == 1 ? "" : "s");
  }
  return words;
}

static struct words place_op(const struct rill__order_op *op) {
  struct words words, what = name_op(op);
  if (op->stream == 0) return what;
  (void)snprintf(words.text, sizeof words.text, "%.110s on %.80s", what.text, name_stream(op).text);
  return words;
}

/* ---- findings that were already reported ---- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
  const unsigned char *const bytes = data;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static uint64_t hash_op(uint64_t hash, const struct rill__order_op *op) {
  if (op == NULL) return hash;
  hash = hash_bytes(hash, op->what, strlen(op->what) + 1);
  hash = hash_bytes(hash, op->name, strlen(op->name) + 1);
  if (op->label[0] == '\0') hash = hash_bytes(hash, &op->stream, sizeof op->stream);
  return hash_bytes(hash, op->label, strlen(op->label) + 1);
}

static uint64_t hash_finding(const struct rill__order_finding *finding) {
  const bool flags[] = { finding->certain, finding->after_free, finding->earlier_write, finding->later_write };
  uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), flags, sizeof flags);
  return hash_op(hash_op(hash, finding->earlier), finding->later);
}

/* Returns true if the finding is new, and remembers it. */
static bool is_new(struct rill__order_text *text, uint64_t hash) {
  enum { MAX_FINDINGS = 1000 };
  for (size_t i = 0; i < text->reported_count; i++) {
    if (text->reported[i] == hash) return false;
  }
  if (text->reported_count == MAX_FINDINGS) {
    if (!text->limit_reported)
      rill__order_say(text, "rill: RILL_CHECK=order: %d findings were reported; further findings are not reported\n",
                      MAX_FINDINGS);
    text->limit_reported = true;
    return false;
  }
  if (text->reported_count == text->reported_capacity) {
    const size_t room = text->reported_capacity == 0 ? 16 : 2 * text->reported_capacity;
    uint64_t *larger = realloc(text->reported, room * sizeof *larger);
    if (larger == NULL) return false;
    text->reported = larger;
    text->reported_capacity = room;
  }
  text->reported[text->reported_count++] = hash;
  return true;
}

/* ---- findings ---- */

static void advise_free(struct rill__order_text *text, const struct rill__order_finding *finding) {
  const struct rill__order_op *const use = finding->earlier, *const end = finding->later;
  if (end->stream == 0) {
    rill__order_say(text, "; synchronize with %s before the free, or note the use with rill_memory_record_use\n",
                    name_stream(use).text);
  } else {
    rill__order_say(text, "; make %s wait for %s after the %s, or note the use with rill_memory_record_use\n",
                    name_stream(end).text, name_stream(use).text, use->what);
  }
}

/* Appends advice on what to add to the program. */
static void advise(struct rill__order_text *text, const struct rill__order_finding *finding) {
  const struct rill__order_op *const earlier = finding->earlier, *const later = finding->later;
  if (later->stream == 0) {
    rill__order_say(text,
                    "; synchronize with %s, or with an event recorded there after the %s, before the host continues\n",
                    name_stream(earlier).text, earlier->what);
  } else {
    rill__order_say(text, "; record an event on %s after the %s, and make %s wait for it before the %s\n",
                    name_stream(earlier).text, earlier->what, name_stream(later).text, later->what);
  }
}

static void describe_use_after_free(struct rill__order_text *text, const struct rill__order_finding *finding) {
  rill__order_say(text, "%s %s memory that was freed", place_op(finding->later).text,
                  finding->later_write ? "writes" : "reads");
  if (finding->earlier != NULL) rill__order_say(text, " by the %s", place_op(finding->earlier).text);
  rill__order_say(text, ": %zu bytes at 0x%" PRIxPTR "; free it after its last use\n", finding->size, finding->begin);
}

void rill__order_describe(struct rill__order_text *text, const struct rill__order_finding *finding) {
  if (!is_new(text, hash_finding(finding))) return;
  rill__order_say(text, "rill: RILL_CHECK=order: %s", finding->certain ? "" : "possible: ");
  if (finding->after_free) {
    describe_use_after_free(text, finding);
    return;
  }
  rill__order_say(text, "%s is not ordered after the %s", place_op(finding->later).text,
                  place_op(finding->earlier).text);
  rill__order_say(text, ": the %s %s and the %s %s %zu byte%s at 0x%" PRIxPTR, finding->earlier->what,
                  finding->earlier_write ? "writes" : "reads", finding->later->what,
                  finding->later_write ? "writes" : "reads", finding->size, finding->size == 1 ? "" : "s",
                  finding->begin);
  if (finding->later_kind == RILL__TOUCH_FREE) {
    advise_free(text, finding);
  } else {
    advise(text, finding);
  }
}
