/* An operation of a trace, and its lines in the file (core/timeline/tracks.h). */
#ifndef RILL_CORE_TIMELINE_ITEM_H
#define RILL_CORE_TIMELINE_ITEM_H

#include "core/diagnose/observe.h"

#include <rill/diagnose.h>

enum { RILL__TRACE_LABEL_BYTES = 88 };

struct track;

struct rill__trace_item {
  struct rill__trace_item *next, *outer;
  struct track *track; /* valid until it has been added to the track */
  /* start is NULL if the operation follows the one before it, is a record, or `ran`; end is NULL for a record, if
   * `ran`, and for a wait that ends when the record of its arrow is reached */
  struct rill__event *start, *end;
  uint64_t base;
  uint64_t submitted;  /* in the time of the trace */
  uint64_t trace;      /* number of the trace; an operation that completes late is not written to the next trace */
  uint64_t arrow;      /* for a record, the arrow that begins here; for a wait, the arrow that ends here; 0 if none */
  uint64_t before;     /* number of submissions to the stream before this one */
  uint64_t ran_until;  /* if `ran`: the operation ran from `submitted` until then */
  const char *name;    /* name of the kernel or note, which outlives them; NULL if `label` has the kernel's name */
  uint32_t kind;       /* enum rill__observed_kind */
  uint32_t depth;      /* number of notes of the stream that were open when the operation was submitted */
  bool follows_before; /* starts when the operation before it in the track has ended and it is submitted itself */
  bool exact;          /* at its submission, all work of the stream was in the track or complete */
  bool null_stream, pageable;
  _Atomic bool open; /* a note that has not ended */
  bool failed;       /* a note whose end could not be recorded */
  bool ran;          /* a note that was timed by the host */
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
  char label[RILL__TRACE_LABEL_BYTES]; /* label of the launch or object; "" if there is none */
};

enum { RILL__TRACE_DEPTH = 64 }; /* a deeper bar is drawn after the bar that contains it */

struct rill__trace_bar {
  uint64_t begin, end;
};

/* The state of a track in the file: what the next line depends on. */
struct rill__trace_line {
  unsigned process;
  uint64_t number;
  uint64_t trace;                                 /* number of the trace to which the state belongs */
  struct rill__trace_bar bars[RILL__TRACE_DEPTH]; /* the last bar of each depth; all zero if there is none */
  uint64_t last;                                  /* last ns of the bar that was written last; 0 if there is none */
  bool knows_end;
  uint64_t reached; /* valid if knows_end: when the last operation ended, according to its event */
};

void rill__trace_describe(struct rill__trace_item *item, const struct rill__observed *what, uint64_t now);
void rill__trace_describe_note(struct rill__trace_item *item, const rill_stream_note *note, uint64_t now);

/* Starts loading a record, which another processor wrote last, into this processor's cache; does nothing for NULL. */
void rill__trace_item_cache(const struct rill__trace_item *item);

/* Writes an operation that is complete.  Call it without a lock. */
void rill__trace_write(struct rill__trace_line *line, const struct rill__trace_item *item);

#endif
