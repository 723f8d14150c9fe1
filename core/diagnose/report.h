/* Reading what the threads have recorded (core/diagnose/record.h). */
#ifndef RILL_CORE_DIAGNOSE_REPORT_H
#define RILL_CORE_DIAGNOSE_REPORT_H

#include "core/diagnose/record.h"
#include "core/diagnose/text.h"

/* An operation as it was recorded. */
struct rill__operation_record {
  uint64_t stream; /* its id */
  uint64_t sequence, subject, words[3];
  uint64_t missing; /* operations of the stream before it that are not recorded any more */
  uint32_t kind;    /* enum rill__observed_kind, or RILL__RECORDED_SEEN */
  uint32_t shape[6];
  char label[RILL__ENTRY_LABEL + 1];
};

/* The operations of one recorder that are still there, oldest first, at most RILL__ENTRIES.  Any thread may read that
 * of any other. */
size_t rill__recorder_read(struct rill__recorder *recorder, const struct rill__device *device,
                           struct rill__operation_record *out);

/* The operations that are recorded of a device and not known to be complete: those of one stream one after another,
 * oldest first.  Inside an epoch. */
struct rill__operation_list {
  struct rill__operation_record *items;
  size_t count;
};
void rill__operations_pending(const struct rill__device *device, struct rill__operation_list *out);
void rill__operations_free(struct rill__operation_list *list);

/* "kernel "store", launch "step 3", 4 blocks of 32 threads". */
void rill__operation_describe(struct rill__text *text, const struct rill__operation_record *operation);

/* "stream "copy"", or that it has been released.  Inside an epoch. */
struct rill__name rill__stream_name(uint64_t id);

/* Lines, each after a newline, about the device's work since the last completion that was seen; nothing if there is
 * none.  Those that do not fit are counted in the last one. */
void rill__operations_report(const struct rill__device *device, struct rill__text *text);

#endif
