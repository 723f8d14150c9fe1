#include "core/sync/faults.h"

#include "core/diagnose/settings.h"
#include "core/sync/submit.h"

#include <stdio.h>
#include <unistd.h>

static void warn_once(_Atomic bool *warned, const struct rill__stream *stream, const char *does) {
  char line[256];
  if (atomic_exchange(warned, true)) return;
  const int length = snprintf(line, sizeof line,
                              "rill: RILL_CHECK=faults: %s %s: its operations are not synchronized one "
                              "by one\n",
                              rill__name_of(&stream->base).text, does);
  if (write(STDERR_FILENO, line, (size_t)length) < 0) return; /* standard error is closed */
}

void rill__faults_note_capture(const struct rill__stream *stream) {
  static _Atomic bool warned;
  if (rill__checks(RILL__CHECK_FAULTS)) warn_once(&warned, stream, "captures");
}

/* Synchronizes the stream, since a fault shows only when the host waits.  The submission may be inside an epoch, in
 * which nothing else in rill blocks.  Objects that other threads release meanwhile are then destroyed later. */
static rill_status synchronize(struct rill__stream *stream) {
  bool capturing = false;
  RILL_TRY(RILL_DISPATCH(stream, stream, is_capturing, stream, &capturing));
  if (capturing) return RILL_OK; /* other code is capturing it through the native handle */
  const struct rill__completion_query query = rill__query_completion(&rill__core(stream)->work);
  RILL_TRY(RILL_DISPATCH(stream, stream, synchronize, stream, RILL__FOREVER));
  rill__completion_remember(&rill__core(stream)->work, &query);
  return RILL_OK;
}

static bool may_fault(const struct rill__observed *what) {
  return what->kind <= RILL__OBSERVED_HOST_CALL || what->kind == RILL__OBSERVED_GRAPH;
}

static rill_status after(struct rill__observed *what, rill_status status) {
  static _Atomic bool warned;
  if (status != RILL_OK || rill__in_host_call || !may_fault(what)) return status;
  if (!what->held) return synchronize(what->stream);
  warn_once(&warned, what->stream, "is held");
  return RILL_OK;
}

const struct rill__observer rill__faults_observer = { .after = after };
