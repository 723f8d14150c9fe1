#include "core/diagnose/crash.h"

#include "core/diagnose/calls.h"

#include <dlfcn.h>
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
  char text[320]; /* the line to write, up to the signal's name */
};

static _Thread_local const struct guarded_call *guarded_now __attribute__((tls_model("initial-exec")));

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

static void name_crash(int number, siginfo_t *info, void *context) {
  const size_t i = crash_of(number);
  const struct sigaction *const action = &handlers_before[i];
  if (rill__in_host_call) {
    write_crash(guarded_now != NULL ? guarded_now->text : "rill: RILL_CHECK=crash: a host call of a graph crashed: ");
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

/* Names the function by its symbol if the program exports it, and otherwise by its offset in its file, for
 * addr2line. */
static void describe_function(rill_host_fn fn, char *text, size_t size) {
  Dl_info info;
  void *address = NULL;
  memcpy(&address, &fn, sizeof address);
  if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
    (void)snprintf(text, size, "%p", address);
  } else if (info.dli_sname != NULL && info.dli_saddr == address) {
    (void)snprintf(text, size, "%.80s", info.dli_sname);
  } else {
    (void)snprintf(text, size, "%.80s+0x%zx", info.dli_fname, (size_t)((char *)address - (char *)info.dli_fbase));
  }
}

/* Prepares the line for a host call.  If memory runs out, the call runs without a name. */
static rill_status guard_call(struct rill__observed *what) {
  char function[112];
  if (what->kind != RILL__OBSERVED_HOST_CALL) return RILL_OK;
  struct guarded_call *const call = malloc(sizeof *call);
  if (call == NULL) return RILL_OK;
  call->fn = what->host_call.fn;
  call->user = what->host_call.user;
  describe_function(call->fn, function, sizeof function);
  (void)snprintf(call->text, sizeof call->text, "rill: RILL_CHECK=crash: host call %s of %s on %s crashed: ", function,
                 rill__name_of(&what->stream->base).text, what->device->name);
  what->host_call.through = run_guarded;
  what->host_call.through_user = call;
  return RILL_OK;
}

/* Frees the struct of a call that was refused, because nothing will run. */
static rill_status forget_refused(struct rill__observed *what, rill_status status) {
  if (what->kind == RILL__OBSERVED_HOST_CALL && status != RILL_OK && what->host_call.through != NULL) {
    free(what->host_call.through_user);
  }
  return status;
}

const struct rill__observer rill__crash_observer = { guard_call, forget_refused };
