#include "core/explain.h"

#include "core/device/backends.h"
#include "core/diagnose/calls.h"
#include "core/diagnose/settings.h"
#include "core/diagnose/waits.h"
#include "core/held/held.h"
#include "core/sync/streams.h"
#include "core/sync/submit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { OPERATIONS_SHOWN = 8 }; /* per stream */

static double seconds_since(uint64_t ns) { return (double)(rill__now() - ns) / 1e9; }

/* ---- streams ---- */

/* Returns whether the stream is complete, by a query to the driver unless the device is lost or the state is known.  A
 * stream that other code captures is not queried, because a query would break that capture. */
static bool is_complete_now(struct rill__stream *stream) {
  bool capturing = false, complete = false;
  if (rill__is_diverted(stream)) return false;
  if (rill__known_idle(stream)) return true;
  if (atomic_load(&stream->base.device->lost) != RILL_OK) return false;
  rill__errors_suspend();
  const struct rill__completion_query query = rill__query_completion(&rill__core(stream)->work);
  if (RILL_DISPATCH(stream, stream, is_capturing, stream, &capturing) != RILL_OK || capturing ||
      RILL_DISPATCH(stream, stream, is_complete, stream, &complete) != RILL_OK) {
    complete = false;
  }
  if (complete) (void)rill__completion_remember(&rill__core(stream)->work, &query);
  rill__errors_resume();
  return complete;
}

static void explain_operations(uint64_t id, const struct rill__operation_list *list, struct rill__text *text) {
  size_t shown = 0, more = 0;
  for (size_t i = 0; i < list->count; i++) {
    const struct rill__operation_record *const operation = &list->items[i];
    if (operation->stream != id) continue;
    if (shown++ >= OPERATIONS_SHOWN) {
      more++;
      continue;
    }
    if (operation->missing > 0)
      rill__text_add(text, "\n  %llu operations are no longer recorded", (unsigned long long)operation->missing);
    rill__text_add(text, "\n  %s operation %llu: ", shown == 1 ? "not known to be complete:" : "then",
                   (unsigned long long)operation->sequence + 1);
    rill__operation_describe(text, operation);
  }
  if (more > 0) rill__text_add(text, "\n  and %zu more", more);
}

/* Adds the running host calls of a stream, or those of graphs if `stream` is 0. */
static void explain_calls(uint64_t stream, const char *before, const char *after, struct rill__text *text) {
  struct rill__host_call_seen call;
  for (size_t i = 0; i < RILL__CALL_PLACES; i++) {
    if (!rill__call_at(i, &call) || call.stream != stream) continue;
    rill__text_add(text, "%sthe host call of the function %s%s has been running for %.1f s%s", before,
                   rill__function_name(call.fn).text, stream == 0 ? ", a node of a graph," : "",
                   seconds_since(call.since), after);
  }
}

/* Returns true if a graph that was launched on the stream may be running. */
static bool has_graph(uint64_t id, const struct rill__operation_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    if (list->items[i].stream == id && list->items[i].kind == RILL__OBSERVED_GRAPH) return true;
  }
  return false;
}

/* Describes one stream.  Call it inside an epoch. */
static void explain_one(struct rill__stream *stream, const struct rill__operation_list *list, struct rill__text *text) {
  rill__text_add(text, "%s", rill__name_of(&stream->base).text);
  if (rill__is_captured(stream)) rill__text_add(text, ": captures");
  if (is_complete_now(stream)) {
    rill__text_add(text, ": has no work\n");
    return;
  }
  rill__text_add(text, ": submitted operations: %llu, known to be complete: %llu",
                 (unsigned long long)rill__stream_submitted(stream), (unsigned long long)rill__stream_known(stream));
  if (!rill__settings()->records) rill__text_add(text, "\n  RILL_RECORD=0: the operations are not recorded");
  explain_operations(stream->base.id, list, text);
  explain_calls(stream->base.id, "\n  ", "", text);
  rill__held_explain(stream, text);
  rill__text_add(text, "\n");
}

/* ---- waits of the host ---- */

static void explain_wait(const struct rill__host_wait *wait, struct rill__text *text) {
  const double seconds = seconds_since(wait->since);
  const struct rill__object *object = rill__find(wait->object, (enum rill__kind)(wait->object >> 56));
  if (wait->freed != 0) {
    rill__text_add(text,
                   "a thread has been in rill_free of 0x%llx for %.1f s, waiting for work that may use the memory\n",
                   (unsigned long long)wait->freed, seconds);
    return;
  }
  rill__text_add(text, "a thread has been waiting for %s for %.1f s\n",
                 object != NULL ? rill__name_of(object).text : "a released object", seconds);
}

/* Adds the waits for one object, or for all objects of a device. */
static void explain_waits(uint64_t object, uint64_t device, struct rill__text *text) {
  for (struct rill__thread *thread = rill__threads_first(); thread != NULL; thread = thread->next) {
    struct rill__host_wait wait;
    if (!rill__host_wait_of(thread, &wait)) continue;
    if (wait.object == object || (object == device && wait.device == device)) explain_wait(&wait, text);
  }
}

/* ---- reports ---- */

static void end_epoch(bool entered) {
  if (entered) rill__leave(&rill__self);
}

static bool begin_epoch(void) {
  const bool outside = rill__is_outside_epochs();
  if (outside) rill__enter_epoch(rill__self);
  return outside;
}

void rill__explain_stream(struct rill__stream *stream, struct rill__text *text) {
  struct rill__operation_list list;
  const bool entered = begin_epoch();
  rill__operations_pending(stream->base.device, &list);
  explain_one(stream, &list, text);
  if (has_graph(stream->base.id, &list)) explain_calls(0, "", "\n", text);
  explain_waits(stream->base.id, 0, text);
  rill__operations_free(&list);
  end_epoch(entered);
}

void rill__explain_device(struct rill__device *device, struct rill__text *text) {
  struct rill__operation_list list;
  size_t count = 0;
  struct rill__stream **const streams = rill__device_visit_streams(device, &count);
  const bool entered = begin_epoch();
  rill__text_add(text, "%s%s\n", device->name, atomic_load(&device->lost) != RILL_OK ? " is lost" : "");
  rill__operations_pending(device, &list);
  for (size_t i = 0; i < count; i++) explain_one(streams[i], &list, text);
  if (streams == NULL) rill__text_add(text, "its streams cannot be inspected now: try again\n");
  explain_calls(0, "", "\n", text);
  explain_waits(device->base.id, device->base.id, text);
  rill__operations_free(&list);
  end_epoch(entered);
  for (size_t i = 0; i < count; i++) rill__stream_leave(streams[i]);
  free(streams);
}

/* ---- RILL_DEADLINE and RILL_REPORT_SIGNAL ---- */

enum { REPORT_SIZE = 16384 };

static uint64_t deadline;   /* ns; 0: none */
static int request_fd = -1; /* an eventfd, to which the signal handler writes a request; -1 if there is none */
static pid_t reporter;      /* the process that runs the reporting thread; a child of fork has no such thread */

/* Writes the report with one call, so that lines of several threads do not mix. */
static void print_report(const struct rill__text *text) {
  const size_t length = text->length < text->size ? text->length : text->size - 1;
  if (write(STDERR_FILENO, text->room, length) < 0) return; /* standard error is closed */
}

static void report_wait(const struct rill__host_wait *wait) {
  char room[REPORT_SIZE];
  struct rill__text text = { room, sizeof room, 0 };
  rill__enter_epoch(rill__self);
  struct rill__device *const device = rill__find(wait->device, RILL__DEVICE);
  rill__leave(&rill__self);
  rill__text_add(&text, "rill: RILL_DEADLINE: a host wait is taking longer than %.1f s\n", (double)deadline / 1e9);
  if (device != NULL) rill__explain_device(device, &text);
  print_report(&text);
}

static void report_waits(void) {
  for (struct rill__thread *thread = rill__threads_first(); thread != NULL; thread = thread->next) {
    struct rill__host_wait wait;
    if (!rill__host_wait_of(thread, &wait) || rill__now() - wait.since < deadline) continue;
    if (atomic_exchange(&thread->wait.reported, wait.number) != wait.number) report_wait(&wait);
  }
}

static void report_devices(void) {
  const struct rill__backend *backend;
  for (size_t i = 0; (backend = rill__backend_at(i)) != NULL; i++) {
    struct rill__device *device;
    for (uint32_t n = 0; (device = rill__device_at(backend, n)) != NULL; n++) {
      char room[REPORT_SIZE];
      struct rill__text text = { room, sizeof room, 0 };
      if (!atomic_load(&device->active)) continue;
      rill__text_add(&text, "rill: RILL_REPORT_SIGNAL: ");
      rill__explain_device(device, &text);
      print_report(&text);
    }
  }
}

/* Checks the waits four times in the time that a wait may take, and whenever the signal asks for a report. */
static void *write_reports(void *unused) {
  const uint64_t pause = deadline / 4000000 + 1; /* ms */
  const int timeout = deadline == 0 ? -1 : pause < INT32_MAX ? (int)pause : INT32_MAX;
  while (rill__self != NULL || rill__thread_attach() != NULL) {
    struct pollfd ready = { .fd = request_fd, .events = POLLIN };
    uint64_t count = 0;
    const bool signaled = poll(&ready, 1, timeout) > 0 && read(request_fd, &count, sizeof count) > 0;
    if (deadline != 0) report_waits();
    if (signaled) report_devices();
  }
  return unused;
}

static void ask_for_report(int number) {
  const int error = errno;
  const uint64_t one = 1;
  (void)number;
  if (getpid() == reporter && write(request_fd, &one, sizeof one) < 0) errno = 0; /* a report is already requested */
  errno = error;
}

/* Installs the signal handler, unless the program has its own. */
static void handle_signal(int number) {
  struct sigaction action, before;
  memset(&action, 0, sizeof action);
  action.sa_handler = ask_for_report;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  if (sigaction(number, NULL, &before) != 0) return;
  if ((before.sa_flags & SA_SIGINFO) != 0 || (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)) {
    static const char line[] = "rill: RILL_REPORT_SIGNAL: the program handles that signal itself\n";
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0) return; /* standard error is closed */
    return;
  }
  (void)sigaction(number, &action, NULL);
}

void rill__reports_start(uint64_t deadline_ns, int report_signal) {
  pthread_t thread;
  sigset_t all, before;
  deadline = deadline_ns;
  reporter = getpid();
  request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's threads handle the signals */
  const bool started = request_fd >= 0 && pthread_create(&thread, NULL, write_reports, NULL) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!started) return;
  (void)pthread_detach(thread);
  if (report_signal != 0) handle_signal(report_signal);
}
