/* A program for rill trace.  Its argument names the mistake to make, or what else to do. */
#include <rill/rill.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 1 << 20, ROUNDS = 20, GROUPS = 3, NAME = 100 };

#define TRY(call)                                            \
  do {                                                       \
    if ((call) != RILL_OK) {                                 \
      (void)fprintf(stderr, "%s\n", rill_last_error_text()); \
      exit(1);                                               \
    }                                                        \
  } while (0)

static const char *mistake;
static bool makes(const char *name) { return strcmp(mistake, name) == 0; }

static void work_hard(void *user, rill_status status) {
  volatile unsigned *count = user;
  (void)status;
  for (unsigned i = 0; i < 3000000; i++) *count = *count + 1;
}

static void copy_and_fill(rill_stream stream, void *device_memory, const void *host_memory) {
  const unsigned zero = 0;
  TRY(rill_copy_async(stream, device_memory, host_memory, BYTES));
  TRY(rill_fill_async(stream, device_memory, &zero, sizeof zero, BYTES / sizeof zero));
}

/* Notes operations of other code that contain operations, with names that are too long. */
static void note_groups(rill_stream stream, void *device_memory, const void *host_memory) {
  char name[2 * NAME + 1];
  for (int i = 0; i < NAME; i++) memcpy(name + 2 * i, "\u00e9", 2);
  name[2 * NAME] = '\0';
  TRY(rill_range_push(name));
  for (int group = 0; group < GROUPS; group++) {
    TRY(rill_stream_note_begin(stream, RILL_STREAM_NOTE(.name = "group", .group = name)));
    for (int i = 0; i < GROUPS; i++) {
      TRY(rill_stream_note_begin(stream, RILL_STREAM_NOTE(.name = "part")));
      copy_and_fill(stream, device_memory, host_memory);
      TRY(rill_stream_note_end(stream));
    }
    TRY(rill_stream_note_end(stream));
    copy_and_fill(stream, device_memory, host_memory);
  }
  TRY(rill_range_pop());
}

/* Waits until the trace has written complete operations, which it does by itself. */
static void wait_for_file(void) {
  static char text[1 << 20];
  unsigned fills = 0;
  const time_t limit = time(NULL) + 20;
  while (fills <= 5 && time(NULL) < limit) {
    FILE *const file = fopen(getenv("RILL_TIMELINE"), "r");
    if (file == NULL) continue;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    fills = 0;
    for (const char *at = text; (at = strstr(at, "\"cat\":\"fill\"")) != NULL; at++) fills++;
  }
}

int main(int argc, char **argv) {
  static unsigned counted;
  mistake = argc > 1 ? argv[1] : "none";
  rill_device device;
  rill_stream streams[2];
  rill_event event;
  void *device_memory = NULL, *pinned = NULL;
  void *const pageable = calloc(1, BYTES);
  TRY(rill_device_open(NULL, &device));
  TRY(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "first"), &streams[0]));
  TRY(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "second"), &streams[1]));
  TRY(rill_event_create(device, RILL_EVENT_OPTIONS(.label = "ready"), &event));
  TRY(rill_alloc(device, BYTES, RILL_MEMORY_DEVICE, &device_memory));
  TRY(rill_alloc(device, BYTES, RILL_MEMORY_PINNED, &pinned));
  memset(pinned, 0, BYTES);
  if (makes("only memory")) return 0;
  if (makes("notes")) note_groups(streams[0], device_memory, pinned);
  TRY(rill_range_push("rounds"));
  for (int i = 0; i < ROUNDS; i++) {
    copy_and_fill(streams[i % 2], device_memory, makes("pageable") ? pageable : pinned);
    TRY(rill_stream_record_event(streams[i % 2], event, 0));
    TRY(rill_stream_wait_event(streams[(i + 1) % 2], event, 0));
    if (makes("crash") && i == ROUNDS / 2) {
      TRY(rill_device_synchronize(device));
      wait_for_file();
      abort();
    }
  }
  TRY(rill_range_pop());
  if (makes("long host call")) TRY(rill_stream_host_call(streams[0], work_hard, &counted));
  TRY(rill_device_synchronize(device));
  TRY(rill_free(device_memory));
  TRY(rill_free(pinned));
  TRY(rill_event_release(event));
  for (int i = 0; i < 2; i++) TRY(rill_stream_release(streams[i]));
  free(pageable);
  return makes("exit code") ? 7 : 0;
}
