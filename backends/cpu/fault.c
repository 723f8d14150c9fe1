#include "backends/cpu/fault.h"

#include "backends/cpu/fiber.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Compilers emit SIGILL traps for unreachable code and for __builtin_trap. */
static const struct {
  int number;
  const char *name;
} signals[] = {
  { SIGSEGV, "SIGSEGV" },
  { SIGBUS, "SIGBUS" },
  { SIGFPE, "SIGFPE" },
  { SIGILL, "SIGILL" },
};
enum { SIGNALS = sizeof signals / sizeof signals[0] };

static struct sigaction before[SIGNALS]; /* the previous handlers */

static int index_of(int number) {
  int i = 0;
  while (i < SIGNALS - 1 && signals[i].number != number) i++;
  return i;
}

/* ---- the handler ---- */

/* Takes the default action.  A faulting instruction runs again when the handler returns, and faults again; a signal
 * that a process sent has to be sent again. */
static void take_default_action(int number, siginfo_t *info) {
  struct sigaction as_usual;
  memset(&as_usual, 0, sizeof as_usual);
  as_usual.sa_handler = SIG_DFL;
  (void)sigaction(number, &as_usual, NULL);
  if (info->si_code <= 0) (void)syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), number, info);
}

static void pass_on(int number, siginfo_t *info, void *context) {
  const struct sigaction action = before[index_of(number)];
  const bool sent = info->si_code <= 0; /* not raised by an instruction */
  if ((action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN && sent) return;
  if ((action.sa_flags & SA_SIGINFO) == 0 && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
    take_default_action(number, info);
    return;
  }
  if ((action.sa_flags & (int)SA_RESETHAND) != 0) {
    struct sigaction as_usual;
    memset(&as_usual, 0, sizeof as_usual);
    as_usual.sa_handler = SIG_DFL;
    (void)sigaction(number, &as_usual, NULL);
  }
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(number, info, context);
  } else {
    action.sa_handler(number);
  }
}

static void handle(int number, siginfo_t *info, void *context) {
  struct cpu_worker *const worker = rill__cpu_worker_self();
  const bool inside = worker != NULL && atomic_load_explicit(&worker->inside, memory_order_relaxed) != NULL;
  if (inside && info->si_code > 0) {
    worker->fault.number = number;
    worker->fault.code = info->si_code;
    worker->fault.address = (uintptr_t)info->si_addr;
    rill__cpu_workers_park_faulted(worker);
  }
  pass_on(number, info, context);
}

/* ---- installing ---- */

static struct cpu_lock fault_lock;
static _Atomic bool ready; /* set when launches no longer have to prepare anything */
static _Atomic int wanted; /* 1: yes, -1: no, 0: not determined yet */

bool rill__cpu_is_sanitized(void) {
  static const char *const sanitizers[] = { "__asan_init", "__tsan_init", "__msan_init", "__hwasan_init" };
  for (size_t i = 0; i < sizeof sanitizers / sizeof sanitizers[0]; i++) {
    if (dlsym(RTLD_DEFAULT, sanitizers[i]) != NULL) return true;
  }
  return false;
}

static bool are_wanted(void) {
  int known = atomic_load_explicit(&wanted, memory_order_relaxed);
  if (known == 0) {
    const char *const option = getenv("RILL_CPU_CATCH_FAULTS");
    const bool refused = option != NULL && strcmp(option, "0") == 0;
    known = refused || rill__cpu_is_sanitized() ? -1 : 1;
    atomic_store_explicit(&wanted, known, memory_order_relaxed);
  }
  return known > 0;
}

/* Keeps the mask and the flags of the previous handler. */
static void install(int i) {
  struct sigaction action;
  if (sigaction(signals[i].number, NULL, &before[i]) != 0) return;
  if ((before[i].sa_flags & SA_SIGINFO) != 0 && before[i].sa_sigaction == handle)
    return; /* installed before the fork */
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handle;
  action.sa_mask = before[i].sa_mask;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | (before[i].sa_flags & (SA_NODEFER | SA_RESTART));
  (void)sigaction(signals[i].number, &action, NULL);
}

rill_status rill__cpu_faults_catch(void) {
  if (RILL__LIKELY(atomic_load_explicit(&ready, memory_order_acquire))) return RILL_OK;
  cpu_acquire(&fault_lock);
  rill_status status = RILL_OK;
  if (!atomic_load(&ready)) {
    if (are_wanted()) status = rill__cpu_workers_start_watcher();
    for (int i = 0; i < SIGNALS && status == RILL_OK && are_wanted(); i++) install(i);
    atomic_store_explicit(&ready, status == RILL_OK, memory_order_release);
  }
  cpu_release(&fault_lock);
  return status;
}

void rill__cpu_fault_stack(void *stack) {
  const stack_t own = { .ss_sp = stack, .ss_size = CPU_FAULT_STACK_BYTES };
  if (are_wanted()) (void)sigaltstack(&own, NULL);
}

void rill__cpu_faults_reset(void) { atomic_store(&ready, false); }

/* ---- reporting ---- */

static bool ran_out_of_stack(const struct cpu_worker *worker) {
  const uintptr_t address = worker->fault.address;
  return (address >= worker->stack_guard && address < worker->stack) || rill__cpu_fibers_guard(worker->fibers, address);
}

static const char *what_of(const struct cpu_worker *worker) {
  const int code = worker->fault.code;
  switch (worker->fault.number) {
    case SIGSEGV:
      if (code == SI_KERNEL) return "used an address that no memory can have";
      if (ran_out_of_stack(worker)) return "ran out of stack, at";
      return code == SEGV_ACCERR ? "used protected memory, at" : "used unmapped memory, at";
    case SIGBUS: return code == BUS_ADRALN ? "used a misaligned address," : "used memory past the end of its file, at";
    case SIGFPE:
      if (code == FPE_INTDIV) return "divided an integer by zero, at the instruction";
      return "raised an arithmetic exception, at the instruction";
    default: return "executed an invalid instruction or a trap,";
  }
}

struct cpu_name rill__cpu_name_of(const struct cpu_inside *inside) {
  struct cpu_name name;
  char kernel[64];
  const char *const label = inside->label;
  if (!rill__source_name(inside->kernel, kernel, sizeof kernel))
    (void)snprintf(kernel, sizeof kernel, "%.60s", inside->kernel);
  (void)snprintf(name.text, sizeof name.text, "kernel \"%s\"%s%.60s%s", kernel, label != NULL ? ", launch \"" : "",
                 label != NULL ? label : "", label != NULL ? "\"" : "");
  return name;
}

void rill__cpu_fault_report(const struct cpu_worker *worker) {
  const struct cpu_inside *const inside = atomic_load(&worker->inside);
  char address[32] = "";
  const int number = worker->fault.number;
  if (number != SIGSEGV || worker->fault.code != SI_KERNEL)
    (void)snprintf(address, sizeof address, " 0x%llx", (unsigned long long)worker->fault.address);
  (void)rill__device_lost(inside->device, number, signals[index_of(number)].name,
                          "%s %s%s (RILL_CPU_CATCH_FAULTS=0 lets a debugger see it)", rill__cpu_name_of(inside).text,
                          what_of(worker), address);
}
