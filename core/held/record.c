#include "core/held/record.h"

#include "core/sync/submit.h"

rill_status rill__record_slowly(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  struct rill__recording recording;
  do {
    RILL_QUEUE_IF_HELD(stream, rill__held_record, event, flags);
    RILL_TRY(rill__recording_begin(&recording, stream, event));
  } while (recording.held);
  const rill_status status = rill__record_in_driver(stream, recording.target, flags);
  rill__recording_end(&recording, status);
  return status;
}

rill_status rill__wait_slowly(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  struct rill__event *point = NULL;
  rill_status status = RILL_OK;
  bool taken = false;
  RILL_TRY(rill__held_wait(stream, event, &point, &taken));
  if (taken || rill__known_complete(point)) return RILL_OK;
  RILL_SUBMIT(status, stream, stream, wait, stream, point, flags);
  return status;
}
