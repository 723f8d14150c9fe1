/* Reading what the threads have recorded (core/diagnose/record.h). */
#ifndef RILL_CORE_DIAGNOSE_REPORT_H
#define RILL_CORE_DIAGNOSE_REPORT_H

#include "core/diagnose/record.h"
#include "core/diagnose/text.h"

/* A recorded operation. */
struct rill__operation_record {
  uint64_t stream; /* id of the stream */
  uint64_t sequence, subject, words[3];
  uint64_t missing; /* number of operations of the stream before it that are no longer recorded */
  uint32_t kind;    /* enum rill__observed_kind, or RILL__RECORDED_SEEN */
  uint32_t shape[6];
  char label[RILL__ENTRY_LABEL + 1];
};

/* Reads the operations that are still in a recorder, oldest first, at most RILL__ENTRIES.  Any thread may read any
 * recorder. */
size_t rill__recorder_read(struct rill__recorder *recorder, const struct rill__device *device,
                           struct rill__operation_record *out);

/* Returns the recorded operations of a device that are not known to be complete, grouped by stream, oldest first.  Call
 * it inside an epoch. */
struct rill__operation_list {
  struct rill__operation_record *items;
  size_t count;
};
void rill__operations_pending(const struct rill__device *device, struct rill__operation_list *out);
void rill__operations_free(struct rill__operation_list *list);

/* Appends a description: "kernel "store", launch "step 3", 4 blocks of 32 threads". */
void rill__operation_describe(struct rill__text *text, const struct rill__operation_record *operation);

/* Returns "stream "copy"", or that the stream was released.  Call it inside an epoch. */
struct rill__name rill__stream_name(uint64_t id);

/* Appends lines, each after a newline, about the device's work since the last completion that was seen; appends nothing
 * if there is none.  The last line counts the operations that do not fit. */
void rill__operations_report(const struct rill__device *device, struct rill__text *text);

#endif
