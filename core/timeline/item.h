/* One operation in a trace: what it is called, and writing it (core/timeline/tracks.h). */
#ifndef RILL_CORE_TIMELINE_ITEM_H
#define RILL_CORE_TIMELINE_ITEM_H

#include "core/diagnose/observe.h"

#include <rill/diagnose.h>

enum { RILL__TRACE_LABEL_BYTES = 88 };

struct track;

struct rill__trace_item {
  struct rill__trace_item *next, *outer;
  struct track *track;             /* until it has been added to it */
  struct rill__event *start, *end; /* start NULL: it follows the operation before it, is a point, or `ran` */
  uint64_t base;
  uint64_t submitted; /* a time of the trace */
  uint64_t trace;     /* its number: what comes late is not written to the next one */
  uint64_t arrow;     /* a record: that begins here; a wait: that ends here; 0: none */
  uint64_t ran_until; /* `ran`: from `submitted` on */
  const char *name;   /* of a kernel, which lasts, or NULL: then the label is its name; of a note */
  uint32_t kind;      /* enum rill__observed_kind */
  bool follows_before, null_stream, pageable;
  bool open;   /* a note that has not ended */
  bool nested; /* a note that began while another one of the stream was open */
  bool failed; /* a note whose end could not be recorded */
  bool ran;    /* a note that the host has timed */
  union {
    struct {
      uint32_t grid[3], block[3], shared;
    } launch;
    struct {
      uint64_t bytes;
      uint32_t dst_kind, src_kind;
    } memory;
    rill_host_fn fn;
    struct {
      uint64_t number, bytes;
      uint32_t rank, ranks;
    } note;
  };
  char label[RILL__TRACE_LABEL_BYTES]; /* of the launch or object; "" if there is none */
};

/* What has been written of a track. */
struct rill__trace_line {
  unsigned process;
  uint64_t number;
  uint64_t begin, end; /* of the last bar */
  bool knows_end;
  uint64_t reached; /* knows_end: when the last operation ended, by its event */
};

void rill__trace_describe(struct rill__trace_item *item, const struct rill__observed *what, uint64_t now);
void rill__trace_describe_note(struct rill__trace_item *item, const rill_stream_note *note, uint64_t now);

/* Of an operation that is complete; under no lock. */
void rill__trace_write(struct rill__trace_line *line, const struct rill__trace_item *item);

#endif
