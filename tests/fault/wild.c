/* Kernels of the cpu device that store where they must not (C2.6): the device is lost, and the process continues. Each
 * case is a process of its own. */
#include "children.h"

#include "gate.rill.h"
#include "wild.rill.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CHECKED = 1 };
#elif defined(__has_feature)
enum { CHECKED = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) };
#else
enum { CHECKED = 0 };
#endif

enum { BLOCKS = 64, BLOCK = 32, THREADS = BLOCKS * BLOCK, NOBODY = 1u << 30 };

/* ---- in the child ---- */

static rill_device device;
static rill_stream stream;
static unsigned *out;
static const char *label;

#define REQUIRE_OR_DIE(condition)                                                                          \
  do {                                                                                                     \
    if (!(condition)) {                                                                                    \
      (void)printf("%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, rill_last_error_text()); \
      (void)fflush(stdout);                                                                                \
      _exit(1);                                                                                            \
    }                                                                                                      \
  } while (0)
#define must(call) REQUIRE_OR_DIE((call) == RILL_OK)
#define is_lost(call) REQUIRE_OR_DIE((call) == RILL_ERROR_DEVICE_LOST)

static void begin(void) {
  void *p = NULL;
  must(rill_device_open("cpu", &device));
  must(rill_stream_create(device, NULL, &stream));
  must(rill_alloc(device, THREADS * sizeof *out, RILL_MEMORY_PINNED, &p));
  out = p;
  memset(out, 0, THREADS * sizeof *out);
}

static rill_launch shape(unsigned blocks) {
  rill_launch launch = rill_launch_1d((uint64_t)blocks * BLOCK, BLOCK);
  launch.label = label;
  return launch;
}

static rill_status store_at(rill_stream on, uintptr_t address) {
  const rill_launch launch = shape(BLOCKS);
  return store_launch(on, &launch, 100, (unsigned *)address, out);
}

static bool says(const char *text) { return strstr(rill_last_error_text(), text) != NULL; }

/* The device is lost, and every call reports the same cause; releases still work. */
static void check_lost(const char *const *texts) {
  char first[1024];
  bool answer = false;
  void *p = NULL;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_event event;
  rill_stream other;
  is_lost(rill_stream_synchronize(stream));
  (void)snprintf(first, sizeof first, "%s", rill_last_error_text());
  for (; *texts != NULL; texts++) REQUIRE_OR_DIE(says(*texts));
  is_lost(store_at(stream, (uintptr_t)out));
  is_lost(rill_stream_is_complete(stream, &answer));
  is_lost(rill_stream_synchronize_for(stream, 1000));
  is_lost(rill_device_synchronize(device));
  is_lost(rill_stream_create(device, NULL, &other));
  is_lost(rill_event_create(device, NULL, &event));
  is_lost(rill_alloc(device, 64, RILL_MEMORY_DEVICE, &p));
  is_lost(rill_copy_async(stream, out, out + 1, 4));
  is_lost(rill_stream_synchronize(stream));
  REQUIRE_OR_DIE(strcmp(first, rill_last_error_text()) == 0);
  must(rill_device_get_info(device, &info));
  must(rill_stream_release(stream));
}

static void check_fault(rill_status launched, const char *text, const char *more) {
  const char *const texts[] = { text, more, NULL };
  must(launched);
  check_lost(texts);
}

static void at_null_and_an_offset(void) {
  label = "step 3";
  const char *const texts[] = { "kernel \"store\", launch \"step 3\"", "unmapped memory, at 0x40", "[11 SIGSEGV]",
                                NULL };
  must(store_at(stream, 0x40));
  check_lost(texts);
}

/* Far from where the system maps anything by itself, such as the stack of a thread that starts meanwhile. */
static uintptr_t unmapped(void) {
  void *const far = (void *)(UINT64_C(1) << 44);
  void *page = mmap(far, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  REQUIRE_OR_DIE(page == far && munmap(page, 4096) == 0);
  return (uintptr_t)page;
}

static void at_unmapped_memory(void) { check_fault(store_at(stream, unmapped()), "\"store\"", "unmapped memory"); }

static void at_no_address(void) {
  check_fault(store_at(stream, (uintptr_t)1 << 60), "\"store\"", "that no memory can have");
}

static void at_a_read_only_page(void) {
  void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE_OR_DIE(page != MAP_FAILED);
  check_fault(store_at(stream, (uintptr_t)page), "\"store\"", "protected memory");
}

static void past_the_end_of_a_file(void) {
  FILE *file = tmpfile();
  REQUIRE_OR_DIE(file != NULL);
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  REQUIRE_OR_DIE(page != MAP_FAILED);
  check_fault(store_at(stream, (uintptr_t)page), "\"store\"", "SIGBUS");
}

static void in_a_function(void) {
  const rill_launch launch = shape(1);
  check_fault(store_in_function_launch(stream, &launch, (unsigned *)8), "\"store_in_function\"", " 0x8 ");
}

static void on_fibers(void) {
  const rill_launch launch = shape(4);
  must(store_on_fibers_launch(stream, &launch, NOBODY, out, out));
  must(rill_stream_synchronize(stream));
  check_fault(store_on_fibers_launch(stream, &launch, 7, (unsigned *)16, out), "\"store_on_fibers\"", " 0x10 ");
}

static void a_division_by_zero(void) {
  const rill_launch launch = shape(1);
  check_fault(divide_launch(stream, &launch, 1, 0, (int *)out), "\"divide\"", "by zero");
}

static void a_trap(void) {
  const rill_launch launch = shape(1);
  check_fault(stop_launch(stream, &launch, out), "\"stop\"", "a trap");
}

static void a_stack_that_overflows(void) {
  const rill_launch launch = shape(1);
  check_fault(overflow_launch(stream, &launch, 1u << 20, out), "\"overflow\"", "out of stack");
}

static void a_stack_of_a_fiber_that_overflows(void) {
  const rill_launch launch = shape(2);
  must(overflow_on_fibers_launch(stream, &launch, 8, out));
  must(rill_stream_synchronize(stream));
  check_fault(overflow_on_fibers_launch(stream, &launch, 1u << 20, out), "\"overflow_on_fibers\"", "out of stack");
}

/* ---- waiting threads, and later work ---- */

static _Atomic unsigned reported_lost, reported_other;
static void note(void *user, rill_status status) {
  (void)user;
  (void)atomic_fetch_add(status == RILL_ERROR_DEVICE_LOST ? &reported_lost : &reported_other, 1);
}

static unsigned flags[2]; /* flag, timed out */
static rill_status close_gate(rill_stream on) {
  const rill_launch one = rill_launch_1d(1, 1);
  return wait_for_flag_launch(on, &one, &flags[0], 1, TIMEOUT_NS, &flags[1]);
}
static void open_gate(void) { __atomic_store_n(&flags[0], 1, __ATOMIC_SEQ_CST); }

static rill_event mark;
static rill_stream endless, later;
static void *memory;
enum { WAITS = 8 };
static rill_status wait_in_some_way(unsigned way) {
  switch (way) {
    case 0: return rill_stream_synchronize(stream);
    case 1: return rill_event_synchronize(mark);
    case 2: return rill_device_synchronize(device);
    case 3: return rill_stream_synchronize_for(stream, TIMEOUT_NS);
    case 4: return rill_stream_synchronize(endless);
    case 5: return rill_event_synchronize_for(mark, TIMEOUT_NS);
    case 6: { /* a pageable source that the kernel in front may write */
      unsigned source = 1;
      return rill_copy_async(endless, out, &source, sizeof source);
    }
    default: return rill_free(memory);
  }
}

static _Atomic unsigned waiting;
static void *wait_for_the_end(void *way) {
  (void)atomic_fetch_add(&waiting, 1);
  const rill_status status = wait_in_some_way((unsigned)(uintptr_t)way);
  REQUIRE_OR_DIE(status == RILL_ERROR_DEVICE_LOST);
  return NULL;
}

static void await(_Atomic unsigned *count, unsigned number) {
  const uint64_t end = now_ns() + TIMEOUT_NS;
  while (atomic_load(count) < number && now_ns() < end) let_pass_ns(100000);
  REQUIRE_OR_DIE(atomic_load(count) == number);
}

/* Every waiting thread is woken, even for work that never ends. Host calls get the status, including those of streams
 * that wait for the faulting one; a stream whose kernel does not end delays only itself. */
static void all_who_wait_are_woken(void) {
  pthread_t threads[WAITS];
  rill_event after;
  must(rill_stream_create(device, NULL, &endless));
  must(rill_stream_create(device, NULL, &later));
  must(rill_event_create(device, NULL, &mark));
  must(rill_event_create(device, NULL, &after));
  must(rill_alloc(device, 4096, RILL_MEMORY_DEVICE, &memory));
  const rill_launch one = rill_launch_1d(1, 1);
  static unsigned never[2];
  must(wait_for_flag_launch(endless, &one, &never[0], 1, 100 * TIMEOUT_NS, &never[1]));
  must(close_gate(stream));
  must(store_at(stream, 0x40));
  for (int i = 0; i < 3; i++) must(rill_stream_host_call(stream, note, NULL));
  must(rill_stream_record_event(stream, mark, 0));
  must(rill_stream_wait_event(later, mark, 0));
  must(store_at(later, 0x40)); /* not run any more */
  must(rill_stream_host_call(later, note, NULL));
  must(rill_stream_record_event(endless, after, 0));
  must(rill_stream_wait_event(later, after, 0));
  must(rill_stream_host_call(later, note, NULL));
  for (uintptr_t i = 0; i < WAITS; i++)
    REQUIRE_OR_DIE(pthread_create(&threads[i], NULL, wait_for_the_end, (void *)i) == 0);
  await(&waiting, WAITS);
  let_pass_ns(20 * MILLISECOND); /* they probably sleep by now; if not, the test still passes */
  open_gate();
  for (int i = 0; i < WAITS; i++) REQUIRE_OR_DIE(pthread_join(threads[i], NULL) == 0);
  await(&reported_lost, 5);
  REQUIRE_OR_DIE(atomic_load(&reported_other) == 0);
  const char *const texts[] = { "\"store\"", "0x40", NULL };
  check_lost(texts);
  must(rill_stream_release(endless));
  must(rill_stream_release(later));
  must(rill_event_release(mark));
}

/* All workers fault at once, more than once: every host call gets the status. */
static void faults_of_many_workers(void) {
  enum { STREAMS = 40 };
  rill_stream streams[STREAMS];
  const rill_launch launch = shape(1000);
  must(close_gate(stream));
  must(rill_event_create(device, NULL, &mark));
  must(rill_stream_record_event(stream, mark, 0));
  for (int i = 0; i < STREAMS; i++) {
    must(rill_stream_create(device, NULL, &streams[i]));
    must(rill_stream_wait_event(streams[i], mark, 0));
    must(store_everywhere_launch(streams[i], &launch, (unsigned *)unmapped()));
    must(rill_stream_host_call(streams[i], note, NULL));
  }
  open_gate();
  await(&reported_lost, STREAMS);
  for (int i = 0; i < STREAMS; i++) is_lost(rill_stream_synchronize(streams[i]));
  for (int i = 0; i < STREAMS; i++) must(rill_stream_release(streams[i]));
  const char *const texts[] = { "\"store_everywhere\"", NULL };
  check_lost(texts);
}

/* ---- fork ---- */

static void reap(pid_t pid) {
  int status = 0;
  REQUIRE_OR_DIE(pid > 0 && waitpid(pid, &status, 0) == pid);
  REQUIRE_OR_DIE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The child of a process that has lost its cpu has one, and may lose it itself. */
static void a_fork_afterwards(void) {
  const char *const texts[] = { "0x40", NULL };
  must(store_at(stream, 0x40));
  check_lost(texts);
  (void)fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    begin();
    must(store_at(stream, (uintptr_t)out));
    must(rill_stream_synchronize(stream));
    REQUIRE_OR_DIE(out[THREADS - 1] == THREADS - 1);
    const char *const own[] = { "0x44", NULL };
    must(store_at(stream, 0x44));
    check_lost(own);
    exit(0);
  }
  reap(pid);
}

/* ---- handlers of others ---- */

static sigjmp_buf back;
static _Atomic unsigned handled;
static volatile sig_atomic_t wanted_address;

static void recover(int number, siginfo_t *info, void *context) {
  (void)number, (void)context;
  (void)atomic_fetch_add(&handled, 1);
  if ((uintptr_t)info->si_addr == (uintptr_t)wanted_address) siglongjmp(back, 1);
  _exit(3);
}

static struct sigaction earlier;
static void recover_or_pass_on(int number, siginfo_t *info, void *context) {
  if ((uintptr_t)info->si_addr == (uintptr_t)wanted_address) recover(number, info, context);
  if ((earlier.sa_flags & SA_SIGINFO) == 0) _exit(4);
  earlier.sa_sigaction(number, info, context);
}

static void set_handler(void (*handler)(int, siginfo_t *, void *)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  REQUIRE_OR_DIE(sigaction(SIGSEGV, &action, &earlier) == 0);
}

/* The thread's own fault goes to the handler that the program has for it. */
static void fault_here(void) {
  const unsigned before = atomic_load(&handled);
  wanted_address = 0x80;
  if (sigsetjmp(back, 1) == 0) *(volatile unsigned *)(uintptr_t)wanted_address = 1;
  wanted_address = 0;
  REQUIRE_OR_DIE(atomic_load(&handled) == before + 1);
}

static void a_handler_from_before(void) {
  const char *const texts[] = { "0x40", NULL };
  set_handler(recover);
  const rill_launch launch = shape(1);
  must(store_launch(stream, &launch, NOBODY, NULL, out)); /* now rill's is in front */
  must(rill_stream_synchronize(stream));
  for (int i = 0; i < 3; i++) fault_here();
  must(store_at(stream, 0x40));
  check_lost(texts);
  fault_here();
}

static void a_handler_from_afterwards(void) {
  const char *const texts[] = { "0x40", NULL };
  const rill_launch launch = shape(1);
  must(store_launch(stream, &launch, NOBODY, NULL, out));
  must(rill_stream_synchronize(stream));
  set_handler(recover_or_pass_on);
  fault_here();
  must(store_at(stream, 0x40));
  check_lost(texts);
  fault_here();
}

/* A signal that is sent, not raised by an instruction, has its usual effect. */
static void signals_that_are_sent(void) {
  const rill_launch launch = shape(1);
  (void)signal(SIGFPE, SIG_IGN);
  must(store_launch(stream, &launch, NOBODY, NULL, out));
  must(rill_stream_synchronize(stream));
  (void)raise(SIGFPE);
  (void)raise(SIGSEGV); /* ends the process */
  exit(1);
}

static void fault_in_host_call(void *user, rill_status status) {
  (void)status;
  *(volatile unsigned *)user = 1;
}

/* Not the device's fault: the process ends, as if rill had no handler. */
static void a_fault_of_a_host_call(void) {
  const rill_launch launch = shape(1);
  must(store_launch(stream, &launch, NOBODY, NULL, out));
  must(rill_stream_host_call(stream, fault_in_host_call, (void *)0x40));
  ignore(rill_stream_synchronize(stream));
  exit(1);
}

/* For a debugger: RILL_CPU_CATCH_FAULTS=0. */
static void nobody_catches(void) {
  must(store_at(stream, 0x40));
  ignore(rill_stream_synchronize(stream));
  exit(1);
}

/* With RILL_CHECK=faults the launch waits for its kernel. */
static void found_by_the_launch(void) {
  const rill_launch launch = shape(1);
  must(store_launch(stream, &launch, NOBODY, out, out));
  is_lost(store_at(stream, 0x40));
  REQUIRE_OR_DIE(says("store_launch") && says("\"store\"") && says("0x40"));
}

static void exit_afterwards(void) {
  must(store_at(stream, 0x40));
  is_lost(rill_stream_synchronize(stream));
  exit(7);
}

/* ---- in the parent ---- */

static const struct {
  const char *name;
  void (*run)(void);
  int exit_code, signal;
  const char *variable;
} cases[] = {
#define CASE(function) \
  { #function, function, 0, 0, NULL }
  CASE(at_null_and_an_offset),
  CASE(at_unmapped_memory),
  CASE(at_no_address),
  CASE(at_a_read_only_page),
  CASE(past_the_end_of_a_file),
  CASE(in_a_function),
  CASE(on_fibers),
  CASE(a_division_by_zero),
  CASE(a_trap),
  CASE(a_stack_that_overflows),
  CASE(a_stack_of_a_fiber_that_overflows),
  CASE(all_who_wait_are_woken),
  CASE(faults_of_many_workers),
  CASE(a_fork_afterwards),
  CASE(a_handler_from_before),
  CASE(a_handler_from_afterwards),
  { "signals_that_are_sent", signals_that_are_sent, -1, SIGSEGV, NULL },
  { "a_fault_of_a_host_call", a_fault_of_a_host_call, -1, SIGSEGV, NULL },
  { "nobody_catches", nobody_catches, -1, SIGSEGV, "RILL_CPU_CATCH_FAULTS=0" },
  { "found_by_the_launch", found_by_the_launch, 0, 0, "RILL_CHECK=faults" },
  { "exit_afterwards", exit_afterwards, 7, 0, NULL },
};
enum { CASES = sizeof cases / sizeof *cases };

static void run_case(void **state) {
  static struct child child;
  const size_t i = (size_t)(uintptr_t)*state;
  if (CHECKED) {
    print_message("a sanitizer has handlers of its own: RILL_CPU_CATCH_FAULTS\n");
    skip();
  }
  run_child(cases[i].name, &cases[i].variable, 1, &child);
  if (!child.timed_out && child.exit_code == cases[i].exit_code && child.signal == cases[i].signal) return;
  print_error("%s: %s\n%s\n", cases[i].name, child_end(&child), child.output);
  fail();
}

int main(int argc, char **argv) {
  struct CMUnitTest tests[CASES];
  memset(tests, 0, sizeof tests);
  for (size_t i = 0; i < CASES; i++) {
    if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
      begin();
      cases[i].run();
      return 0;
    }
    tests[i].name = cases[i].name;
    tests[i].test_func = run_case;
    tests[i].initial_state = (void *)(uintptr_t)i;
  }
  if (argc > 1) return 2;
  const int failed = _cmocka_run_group_tests("wild stores of the cpu", tests, CASES, NULL, NULL);
  (void)printf("rill-tests: %d passed, %d failed, 0 skipped\n", (int)CASES - failed, failed);
  return failed != 0;
}
