#include "core/diagnose/crash.h"

#include "core/diagnose/calls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A host call to be named if it crashes; exists from its submission to its end. */
struct guarded_call {
  rill_host_fn fn;
  void *user;
  char text[480]; /* the line to write, up to the signal's name */
};

static _Thread_local const struct guarded_call *guarded_now __attribute__((tls_model("initial-exec")));

/* ---- host calls of graphs ---- */

/* A function that a graph calls on a stream.  Entries are added at launches and never freed, so that the handler can
 * read the list; a program that launches more functions on more streams gets no names for the rest.
 *
 * Invariant: the list only grows, at its head, and an entry does not change once it is in the list.  An entry is added
 * to the list in which it was not found, so a function and a stream have one entry. */
struct graph_call {
  struct graph_call *next;
  uint64_t fn, stream;
  char text[480];
};
enum { GRAPH_CALLS = 1024 };

static _Atomic(struct graph_call *) graph_calls;

/* Searches the list from an entry on, for a function on a stream, or on any stream if `stream` is 0. */
static const struct graph_call *find_graph_call(const struct graph_call *at, uint64_t fn, uint64_t stream) {
  while (at != NULL && (at->fn != fn || (stream != 0 && at->stream != stream))) at = at->next;
  return at;
}

/* ---- the handler ---- */

static const struct {
  int number;
  const char *name;
} crashes[] = {
  { SIGSEGV, "SIGSEGV\n" }, { SIGBUS, "SIGBUS\n" },   { SIGFPE, "SIGFPE\n" },
  { SIGILL, "SIGILL\n" },   { SIGABRT, "SIGABRT\n" },
};
enum { CRASHES = sizeof crashes / sizeof *crashes };

static struct sigaction handlers_before[CRASHES];

static size_t crash_of(int number) {
  size_t i = 0;
  while (i < CRASHES - 1 && crashes[i].number != number) i++;
  return i;
}

static void write_crash(const char *text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) return; /* standard error is closed */
}

/* Restores the default action.  The faulting instruction runs again when the handler returns, and abort sends its
 * signal again.  A signal that another thread or process has sent is sent again here. */
static void end_by_default(int number, siginfo_t *info) {
  struct sigaction usual;
  memset(&usual, 0, sizeof usual);
  usual.sa_handler = SIG_DFL;
  (void)sigaction(number, &usual, NULL);
  if (info->si_code <= 0 && number != SIGABRT)
    (void)syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), number, info);
}

/* Returns the line for the host call that this thread is running.  If a graph's function was launched on several
 * streams, the line names the stream that was the last to launch the function for the first time. */
static const char *line_of_crash(void) {
  struct rill__host_call_seen call;
  if (guarded_now != NULL) return guarded_now->text;
  const struct graph_call *const known =
      rill__call_own(&call) ? find_graph_call(atomic_load(&graph_calls), call.fn, 0) : NULL;
  return known != NULL ? known->text : "rill: RILL_CHECK=crash: a host call of a graph crashed: ";
}

static void name_crash(int number, siginfo_t *info, void *context) {
  const size_t i = crash_of(number);
  const struct sigaction *const action = &handlers_before[i];
  if (rill__in_host_call) {
    write_crash(line_of_crash());
    write_crash(crashes[i].name);
  }
  if ((action->sa_flags & SA_SIGINFO) != 0) {
    action->sa_sigaction(number, info, context);
  } else if (action->sa_handler == SIG_IGN && info->si_code <= 0) {
    return;
  } else if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN) {
    end_by_default(number, info);
  } else {
    action->sa_handler(number);
  }
}

/* Installs the handlers, with the flags and masks that the previous handlers requested. */
static void install_handlers(void) {
  for (size_t i = 0; i < CRASHES; i++) {
    struct sigaction action;
    if (sigaction(crashes[i].number, NULL, &handlers_before[i]) != 0) continue;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = name_crash;
    action.sa_mask = handlers_before[i].sa_mask;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (handlers_before[i].sa_flags & (SA_NODEFER | SA_RESTART));
    (void)sigaction(crashes[i].number, &action, NULL);
  }
}

void rill__crash_start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, install_handlers);
}

/* ---- calls ---- */

static void run_guarded(void *user, rill_status status) {
  struct guarded_call *const call = user;
  const struct guarded_call *const outer = guarded_now;
  guarded_now = call;
  rill__call_is_of(call->fn);
  call->fn(call->user, status);
  guarded_now = outer;
  free(call);
}

static void note_graph_call(const struct rill__observed *what, rill_host_fn fn) {
  static _Atomic unsigned count;
  const uint64_t address = rill__function_address(fn), stream = what->stream->base.id;
  struct graph_call *first = atomic_load(&graph_calls), *call = NULL;
  while (find_graph_call(first, address, stream) == NULL) {
    if (call == NULL && atomic_load(&count) < GRAPH_CALLS) call = malloc(sizeof *call);
    if (call == NULL) return;
    call->next = first;
    call->fn = address;
    call->stream = stream;
    (void)snprintf(call->text, sizeof call->text,
                   "rill: RILL_CHECK=crash: host call %s of a graph, launched on %s on %s, crashed: ",
                   rill__function_symbol(address).text, rill__name_of(&what->stream->base).text, what->device->name);
    if (!atomic_compare_exchange_weak(&graph_calls, &first, call)) continue;
    RILL_ASSERT(find_graph_call(call->next, address, stream) == NULL, "a function and a stream have one entry");
    atomic_fetch_add(&count, 1);
    return;
  }
  free(call); /* another thread was faster */
}

static rill_status note_graph(const struct rill__observed *what) {
  for (uint32_t i = 0; i < what->exec->count; i++) {
    const struct rill__operation *const operation = what->exec->steps[i].operation;
    if (operation->kind == RILL_NODE_HOST_CALL) note_graph_call(what, operation->host_call.fn);
  }
  return RILL_OK;
}

/* ---- submissions ---- */

/* Prepares the line for a host call, or for those of a graph.  If memory runs out, the call runs without a name. */
static rill_status guard_call(struct rill__observed *what) {
  if (what->kind == RILL__OBSERVED_GRAPH) return note_graph(what);
  if (what->kind != RILL__OBSERVED_HOST_CALL) return RILL_OK;
  struct guarded_call *const call = malloc(sizeof *call);
  if (call == NULL) return RILL_OK;
  call->fn = what->host_call.fn;
  call->user = what->host_call.user;
  (void)snprintf(call->text, sizeof call->text, "rill: RILL_CHECK=crash: host call %s of %s on %s crashed: ",
                 rill__function_symbol(rill__function_address(call->fn)).text, rill__name_of(&what->stream->base).text,
                 what->device->name);
  what->host_call.through = run_guarded;
  what->host_call.through_user = what->host_call.guarded = call;
  return RILL_OK;
}

/* Frees the struct of a call that was refused, because nothing will run. */
static rill_status forget_refused(struct rill__observed *what, rill_status status) {
  if (what->kind == RILL__OBSERVED_HOST_CALL && status != RILL_OK) free(what->host_call.guarded);
  return status;
}

const struct rill__observer rill__crash_observer = { guard_call, forget_refused };
