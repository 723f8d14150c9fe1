/* Random programs of any public calls on objects that up to 30 threads share (mix.h describes how they are checked).
 *
 *     mix [--seed N] [--rounds N | --seconds N] [--threads N] [--operations N] [--only GROUP,...] [--timeout SECONDS]
 *         [--keep FILE] [--processes N] [--print]
 *
 * Each round has its own seed, which decides what no option fixes: the number of threads, streams and events, the kinds
 * of operations, and how often each kind occurs. A round that fails prints the command that repeats it; mix_shrink.py
 * removes the operations that the failure does not need. Groups are the second column of MIX_OPERATIONS, and "abandon".
 *
 * --keep: runs only the operations in the file, whose lines have a thread and a number. --processes: the number of
 * concurrent processes, whose seeds are a million apart; on a machine with many processors they reach states that one
 * process does not. --print: prints the program without running it. */
#include "mix_operations.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10 }; /* stack of a thread; small, because no call of rill may need a large stack */

static struct {
  uint64_t seed, seconds, rounds, timeout;
  unsigned threads, operations; /* 0: chosen by the seed */
  uint64_t processes;
  const char *only, *keep;
  bool print;
  char again[256]; /* the options that repeat a round, without the seed */
} options = { .seed = 1, .timeout = 60 };

static const struct {
  const char *name, *group;
  unsigned weight;
  void (*run)(struct worker *w, const struct operation *o);
} operations[] = {
#define ENTRY(name, group, weight) { #name, #group, weight, mix_do_##name },
  MIX_OPERATIONS(ENTRY)
#undef ENTRY
};

/* ---- programs ---- */

static bool is_in_list(const char *name, const char *list) {
  const size_t length = strlen(name);
  while (list != NULL && *list != '\0') {
    const size_t item = strcspn(list, ",");
    if (item == length && strncmp(list, name, length) == 0) return true;
    list += item + (list[item] == ',');
  }
  return false;
}

static bool is_wanted(const char *group) { return options.only == NULL || is_in_list(group, options.only); }

/* Chooses the weights of operations. Some rounds omit some operations and have many of others, which reaches states
 * that mixed rounds do not. */
static struct round choose_round(uint64_t seed) {
  struct round round = { .seed = seed };
  const bool wide = is_wanted("wide") && mix_hash(seed, 1) % 16 == 0;
  const unsigned threads = mix_hash(seed, 2) % 4 == 0 ? 1 : 2 + (unsigned)mix_hash(seed, 3) % (MIX_THREADS - 1);
  round.threads = options.threads != 0 ? options.threads : threads;
  round.operations = options.operations != 0 ? options.operations : 40 + 2400 / (round.threads + 1);
  round.streams = wide ? MIX_PLACES : 3 + (unsigned)mix_hash(seed, 4) % 8;
  round.events = 2 + (unsigned)mix_hash(seed, 5) % 6;
  round.delay_ns = (uint32_t)1 << mix_hash(seed, 8) % 21;
  round.abandons = is_wanted("abandon") && mix_hash(seed, 6) % 3 == 0;
  for (unsigned i = 0; i < MIX_OPERATION_COUNT; i++) {
    const uint64_t random = mix_hash(mix_hash(seed, 7), i);
    const bool rare = strcmp(operations[i].group, "full") == 0 || strcmp(operations[i].group, "native") == 0 ||
                      strcmp(operations[i].group, "import") == 0;
    const bool there = is_wanted(operations[i].group) && (rare ? random % 8 == 0 : random % 4 != 0);
    round.weights[i] = there ? operations[i].weight * (1 + (unsigned)(random >> 8) % 4) : 0;
  }
  if (!wide) round.weights[MIX_relay] = 0;
  if ((options.only == NULL && mix_hash(seed, 9) % 2 == 0) || !mix.has_graphs) {
    for (unsigned i = 0; i < MIX_OPERATION_COUNT; i++) {
      if (strcmp(operations[i].group, "graphs") == 0) round.weights[i] = 0;
    }
  }
  return round;
}

void mix_do(struct worker *w, const struct operation *o) { operations[o->what].run(w, o); }
bool mix_is_about_graphs(const struct operation *o) { return strcmp(operations[o->what].group, "graphs") == 0; }

struct operation mix_operation_at(unsigned thread, unsigned index) {
  const uint64_t first = mix_hash(mix_hash(mix.round.seed, thread), index), second = mix_hash(first, 1);
  struct operation o = {
    .a = first & 0xffff, .b = first >> 16 & 0xffff, .c = first >> 32 & 0xffff, .d = (uint32_t)second
  };
  unsigned total = 0;
  for (unsigned i = 0; i < MIX_OPERATION_COUNT; i++) total += mix.round.weights[i];
  unsigned at = total == 0 ? 0 : (unsigned)((second >> 32) % total);
  while (o.what + 1 < MIX_OPERATION_COUNT && at >= mix.round.weights[o.what]) at -= mix.round.weights[o.what++];
  return o;
}

void mix_print_operation(FILE *file, unsigned thread, unsigned index) {
  if (thread == mix.round.threads) {
    (void)fprintf(file, "main thread:");
    return;
  }
  const struct operation o = mix_operation_at(thread, index);
  (void)fprintf(file, "thread %u, operation %u: %s, stream %u, other stream %u, event %u, way %u, number %u\n", thread,
                index, operations[o.what].name, o.a % mix.round.streams, o.b % mix.round.streams,
                o.b % mix.round.events, o.c, o.d);
}

static bool *kept; /* by thread and operation; NULL: all operations are kept */

static void read_kept(void) {
  unsigned thread, index;
  FILE *file = fopen(options.keep, "r");
  assert_non_null(file);
  kept = calloc((size_t)MIX_THREADS * MIX_CALLS, sizeof *kept);
  while (fscanf(file, "%u %u", &thread, &index) == 2) {
    if (thread < MIX_THREADS && index < MIX_CALLS) kept[thread * MIX_CALLS + index] = true;
  }
  (void)fclose(file);
}

static bool is_kept(unsigned thread, unsigned index) { return kept == NULL || kept[thread * MIX_CALLS + index]; }

static void print_program(void) {
  for (unsigned t = 0; t < mix.round.threads; t++) {
    for (unsigned i = 0; i < mix.round.operations; i++) {
      if (is_kept(t, i)) mix_print_operation(stdout, t, i);
    }
  }
}

/* ---- unexpected ends ---- */

/* Prints the seed. Calls only functions that are safe in signal handlers. */
static void tell_seed(void) {
  char text[64] = "mix: seed ", digits[24];
  size_t length = strlen(text), count = 0;
  for (uint64_t left = mix.round.seed; left != 0 || count == 0; left /= 10) digits[count++] = (char)('0' + left % 10);
  while (count > 0) text[length++] = digits[--count];
  text[length++] = '\n';
  (void)!write(STDERR_FILENO, text, length);
}

static void crash(int signal_number) {
  tell_seed();
  (void)signal(signal_number, SIG_DFL);
  (void)raise(signal_number);
}

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void catch_ends(void) {
  static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
  const struct sigaction action = { .sa_handler = crash, .sa_flags = SA_ONSTACK };
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) (void)sigaction(signals[i], &action, NULL);
  if (__sanitizer_set_death_callback != NULL) __sanitizer_set_death_callback(tell_seed);
}

/* ---- threads ---- */

/* Interrupts a thread at a random moment and delays it while the others continue, sometimes for many of their
 * operations. */
static _Thread_local volatile sig_atomic_t was_struck, strikes;

static void stand_still(int signal_number) {
  (void)signal_number;
  strikes = (strikes + 1) % 16;
  for (int yields = strikes == 0 ? 400 : 40; yields > 0; yields--) (void)sched_yield(); /* does not change errno */
  was_struck = true;
}

static timer_t new_timer(void) {
  struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) abort();
  return timer;
}

static void strike_later(timer_t timer, uint64_t random) {
  const struct itimerspec at = { .it_value.tv_nsec = 1 + (long)(random % 60000) };
  was_struck = false;
  (void)timer_settime(timer, 0, &at, NULL);
}

/* Returns whether another thread posts within the time. */
static bool is_posted_within(sem_t *post, uint64_t ns) {
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  ns += (uint64_t)until.tv_nsec;
  until.tv_sec += (time_t)(ns / (1000 * MILLISECOND));
  until.tv_nsec = (long)(ns % (1000 * MILLISECOND));
  return sem_timedwait(post, &until) == 0;
}

static sem_t thread_ended; /* posted by each thread when it ends */

static void *work(void *argument) {
  struct worker *w = argument;
  const stack_t stack = { .ss_sp = w->signal_stack, .ss_size = MIX_SIGNAL_STACK };
  stack_t before;
  (void)sigaltstack(&stack, &before); /* an overflow of the stack must also be reported */
  const timer_t timer = new_timer();
  was_struck = mix.round.threads > 1;
  for (unsigned i = 0; i < mix.round.operations && mix_has_room(w) && !atomic_load(&mix.failed); i++) {
    if (!is_kept(w->index, i)) continue;
    const struct operation o = mix_operation_at(w->index, i);
    if (was_struck) strike_later(timer, mix_hash(o.d, i));
    atomic_store_explicit(&w->operation, i, memory_order_relaxed);
    mix_do(w, &o);
    atomic_fetch_add_explicit(&mix.progress, 1, memory_order_relaxed);
  }
  (void)timer_delete(timer);
  atomic_store(&w->ended, true);
  (void)sigaltstack(&before, NULL);
  (void)sem_post(&thread_ended);
  return NULL;
}

/* Waits for the threads, and releases held streams when all threads are blocked. */
static void attend(void) {
  struct worker *main_worker = &mix.workers[mix.round.threads];
  uint64_t seen = 0, since = now_ns();
  for (unsigned left = mix.round.threads; left > 0;) {
    if (is_posted_within(&thread_ended, MILLISECOND / 2)) left--;
    const uint64_t progress = atomic_load_explicit(&mix.progress, memory_order_relaxed);
    if (progress != seen) {
      seen = progress;
      since = now_ns();
    } else if (now_ns() - since > 5 * MILLISECOND && mix_has_room(main_worker)) {
      mix_let_go(main_worker);
      since = now_ns();
    }
  }
}

static void run_threads_of_round(void) {
  pthread_t threads[MIX_THREADS];
  pthread_attr_t attributes;
  (void)pthread_attr_init(&attributes);
  (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
  for (unsigned i = 0; i < mix.round.threads; i++) {
    assert_int_equal(pthread_create(&threads[i], &attributes, work, &mix.workers[i]), 0);
  }
  attend();
  for (unsigned i = 0; i < mix.round.threads; i++) (void)pthread_join(threads[i], NULL);
  (void)pthread_attr_destroy(&attributes);
}

/* ---- the watchdog ---- */

static sem_t test_ended;

static void print_state(void) {
  (void)fprintf(stderr, "mix: nothing has ended for %llu s: seed %llu; again: mix --seed %llu --rounds 1%s\n",
                (unsigned long long)options.timeout, (unsigned long long)mix.round.seed,
                (unsigned long long)mix.round.seed, options.again);
  for (unsigned i = 0; i <= mix.round.threads; i++) {
    const struct worker *w = &mix.workers[i];
    if (!atomic_load(&w->ended)) mix_print_operation(stderr, i, atomic_load(&w->operation));
  }
  (void)fprintf(stderr, "\n");
  for (unsigned i = 0; i < atomic_load(&mix.stream_count); i++) {
    const unsigned taken = atomic_load(&mix.streams[i].host_calls), done = atomic_load(&mix.streams[i].reported);
    if (taken != done) (void)fprintf(stderr, "  stream %u: %u host calls accepted, %u reported\n", i, taken, done);
  }
}

static void *watch(void *nothing) {
  uint64_t seen = 0, since = now_ns();
  while (!is_posted_within(&test_ended, 50 * MILLISECOND)) {
    const uint64_t progress = atomic_load_explicit(&mix.progress, memory_order_relaxed);
    if (progress != seen) {
      seen = progress;
      since = now_ns();
    } else if (now_ns() - since > options.timeout * 1000 * MILLISECOND) {
      print_state();
      abort();
    }
  }
  return nothing;
}

/* ---- a round ---- */

static void make_objects(void) {
  struct worker *w = &mix.workers[mix.round.threads];
  for (unsigned i = 0; i < mix.round.streams; i++) {
    const rill_device device = mix.devices[i % mix.device_count];
    rill_stream stream;
    if (i < mix.device_count) { /* the default stream */
      assert_ok(rill_device_default_stream(device, &stream));
      struct object *o = mix_note_stream(stream, device);
      o->borrowed = true;
      atomic_store(&mix.stream_places[i], o);
    } else {
      atomic_store(&mix.stream_places[i], mix_new_stream(w, device, NULL));
    }
  }
  for (unsigned i = 0; i < mix.round.events; i++) {
    const rill_event_options none = RILL_EVENT_OPTIONS_INIT;
    atomic_store(&mix.event_places[i], mix_new_event(w, mix.devices[i % mix.device_count], &none));
  }
  for (unsigned i = 0; i < mix.device_count; i++) mix.rescue[i] = mix_new_stream(w, mix.devices[i], NULL);
  const uint32_t zero = 0;
  memset(mix.cells[1], 0, MIX_CELLS / 2 * MIX_WORDS * sizeof zero);
  assert_ok(rill_fill_async(stream_of(mix.rescue[0]), mix.cells[0], &zero, sizeof zero, MIX_CELLS / 2 * MIX_WORDS));
  assert_ok(rill_stream_synchronize(stream_of(mix.rescue[0])));
  assert_ok(rill_pool_create(mix.devices[0], NULL, &mix.pools[0]));
  assert_ok(rill_pool_create(mix.devices[0], RILL_POOL_OPTIONS(.max_size = 4 << 20), &mix.pools[1]));
}

/* Checks that the memory that a device keeps for all rounds is unchanged. */
static void clear(void) {
  memset(mix.streams, 0, MIX_STREAMS * sizeof *mix.streams);
  memset(mix.events, 0, atomic_load(&mix.event_count) * sizeof *mix.events);
  for (unsigned i = 0; i < MIX_THREADS + 1; i++) {
    struct worker *w = &mix.workers[i];
    memset(w->calls, 0, atomic_load(&w->count) * sizeof *w->calls);
    w->index = i;
    atomic_store(&w->count, 0);
    atomic_store(&w->ended, false);
  }
  atomic_store(&mix.stream_count, 0);
  atomic_store(&mix.event_count, 0);
  atomic_store(&mix.values, 0);
  atomic_store(&mix.reads, 0);
  memset(mix.graphs, 0, atomic_load(&mix.graph_count) * sizeof *mix.graphs);
  atomic_store(&mix.graph_count, 0);
  memset(mix.counters, 0, (3 * MIX_STREAMS + MIX_GRAPHS) * sizeof *mix.counters);
  for (unsigned i = 0; i < MIX_VALUES * MIX_WORDS; i++) mix.seen[i] = mix.pageable_seen[i] = MIX_UNSEEN;
}

/* Releases all held streams by recording or releasing events, then destroys all objects. */
static void finish(void) {
  struct worker *w = &mix.workers[mix.round.threads];
  for (unsigned i = 0; i < mix.round.events && mix.round.abandons; i++) {
    mix_release(w, atomic_exchange(&mix.event_places[i], NULL));
  }
  if (!mix.round.abandons) mix_let_go(w);
  for (unsigned i = 0; i < mix.round.streams && mix_has_room(w); i++) {
    struct object *stream = atomic_load(&mix.stream_places[i]);
    struct call *call = mix_begin(w, CALL_STREAM_DONE, stream, NULL);
    call->answer = MIX_END(call, rill_stream_synchronize(stream_of(stream)), mix_failed()) == RILL_OK;
    atomic_fetch_add(&mix.progress, 1);
  }
  for (unsigned i = 0; i < mix.device_count; i++) {
    assert_ok(rill_device_synchronize(mix.devices[i])); /* also waits for streams that were released */
    atomic_fetch_add(&mix.progress, 1);
  }
}

static void free_pieces(struct piece *piece) {
  while (piece != NULL) {
    struct piece *next = piece->next;
    if (rill_free(piece->words) != RILL_OK) mix_complain(NULL, "memory that is left: %s", rill_last_error_text());
    free(piece);
    piece = next;
  }
}

static void end_objects(void) {
  struct worker *w = &mix.workers[mix.round.threads];
  rill_pool_info info = RILL_POOL_INFO_INIT;
  mix_end_graphs(w);
  for (unsigned i = 0; i < mix.round.threads; i++) mix_unregister(&mix.workers[i]);
  for (unsigned i = 0; i < MIX_PIECES; i++) free_pieces(atomic_exchange(&mix.pieces[i], NULL));
  free_pieces(atomic_exchange(&mix.leftovers, NULL));
  for (unsigned i = 0; i < 2; i++) {
    assert_ok(rill_pool_get_info(mix.pools[i], &info));
    if (info.used != 0)
      mix_complain(NULL, "pool %u: %llu bytes are used of nobody's", i, (unsigned long long)info.used);
    assert_ok(rill_pool_release(mix.pools[i]));
  }
  for (unsigned i = 0; i < mix.round.events; i++) {
    struct object *event = atomic_exchange(&mix.event_places[i], NULL);
    if (event != NULL) mix_release(w, event);
  }
  for (unsigned i = 0; i < mix.round.streams; i++) mix_release(w, atomic_exchange(&mix.stream_places[i], NULL));
  for (unsigned i = 0; i < mix.device_count; i++) mix_release(w, mix.rescue[i]);
}

static void run_round(uint64_t seed) {
  mix.round = choose_round(seed);
  if (options.print) {
    print_program();
    return;
  }
  clear();
  make_objects();
  run_threads_of_round();
  finish();
  mix_check_history();
  end_objects();
  if (atomic_load(&mix.failed)) {
    fail_msg("seed %llu, %u threads, %u streams, %u events; again: mix --seed %llu --rounds 1%s",
             (unsigned long long)seed, mix.round.threads, mix.round.streams, mix.round.events, (unsigned long long)seed,
             options.again);
  }
}

/* ---- the test ---- */

static void allocate_all(void) {
  mix.devices[0] = dut.device;
  mix.devices[1] = dut.second;
  mix.device_count = dut.second.id != 0 ? 2 : 1;
  mix.has_graphs = true;
  for (unsigned i = 0; i < mix.device_count; i++) {
    mix.has_graphs &= rill_device_supports(mix.devices[i], RILL_FEATURE_GRAPH, NULL);
  }
  mix.streams = calloc(MIX_STREAMS, sizeof *mix.streams);
  mix.events = calloc(MIX_EVENTS, sizeof *mix.events);
  mix.graphs = calloc(MIX_GRAPHS, sizeof *mix.graphs);
  mix.pageable_seen = malloc(MIX_VALUES * MIX_WORDS * sizeof *mix.pageable_seen);
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, MIX_CELLS / 2 * MIX_WORDS, &mix.cells[0]));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, MIX_CELLS / 2 * MIX_WORDS, &mix.cells[1]));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, MIX_VALUES * MIX_WORDS, &mix.sources));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, MIX_VALUES * MIX_WORDS, &mix.seen));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, 3 * MIX_STREAMS + MIX_GRAPHS, &mix.counters));
  assert_ok(rill_alloc(dut.device, 24 << 20, RILL_MEMORY_DEVICE, &mix.pile));
  for (unsigned i = 0; i < MIX_THREADS + 1; i++) {
    mix.workers[i].calls = calloc(MIX_CALLS, sizeof *mix.workers[i].calls);
    mix.workers[i].page = aligned_alloc(4096, 4096);
    mix.workers[i].signal_stack = malloc(MIX_SIGNAL_STACK);
  }
}

static void free_all(void) {
  for (unsigned i = 0; i < MIX_THREADS + 1; i++) {
    free(mix.workers[i].calls);
    free(mix.workers[i].page);
    free(mix.workers[i].signal_stack);
  }
  free(mix.streams);
  free(mix.events);
  free(mix.graphs);
  free(mix.pageable_seen);
  void *const memory[] = { mix.cells[0], mix.cells[1], mix.sources, mix.seen, mix.counters, mix.pile };
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) assert_ok(rill_free(memory[i]));
}

static void any_calls_in_any_order(void) {
  const uint64_t seconds = options.seconds != 0 ? options.seconds : scaled(UNDER_RACE_DETECTOR ? 15 : 4);
  const uint64_t end = now_ns() + seconds * 1000 * MILLISECOND;
  pthread_t watchdog;
  if (options.keep != NULL) read_kept();
  if (!options.print) allocate_all();
  (void)signal(SIGUSR1, stand_still);
  catch_ends();
  (void)sem_init(&thread_ended, 0, 0);
  (void)sem_init(&test_ended, 0, 0);
  assert_int_equal(pthread_create(&watchdog, NULL, watch, NULL), 0);
  uint64_t round = 0;
  for (; options.rounds != 0 ? round < options.rounds : now_ns() < end; round++) run_round(options.seed + round);
  (void)sem_post(&test_ended);
  (void)pthread_join(watchdog, NULL);
  if (!options.print) free_all();
  print_message("mix on %s: seeds %llu to %llu\n", dut.name, (unsigned long long)options.seed,
                (unsigned long long)(options.seed + round - 1));
}

/* Reads the numeric value of an option. */
static bool read_number(const char *name, uint64_t *out, int argc, char **argv, int *i) {
  if (strcmp(argv[*i], name) != 0 || *i + 1 >= argc) return false;
  *out = strtoull(argv[++*i], NULL, 10);
  return true;
}

static bool read_options(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const int first = i;
    uint64_t number = 0;
    const bool seed = read_number("--seed", &options.seed, argc, argv, &i);
    if (seed || read_number("--rounds", &options.rounds, argc, argv, &i) ||
        read_number("--seconds", &options.seconds, argc, argv, &i) ||
        read_number("--processes", &options.processes, argc, argv, &i))
      continue;
    if (strcmp(argv[i], "--print") == 0) {
      options.print = true;
      continue;
    }
    if (read_number("--threads", &number, argc, argv, &i))
      options.threads = number > MIX_THREADS ? MIX_THREADS : (unsigned)number;
    else if (read_number("--operations", &number, argc, argv, &i))
      options.operations = number > MIX_CALLS ? MIX_CALLS : (unsigned)number;
    else if (read_number("--timeout", &options.timeout, argc, argv, &i)) continue;
    else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) options.only = argv[++i];
    else if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc) options.keep = argv[++i];
    else return false;
    const size_t used = strlen(options.again);
    (void)snprintf(options.again + used, sizeof options.again - used, " %s %s", argv[first], argv[i]);
  }
  return true;
}

/* Runs this program again in several processes; returns the exit code of the last one that failed. */
static int run_processes(int argc, char **argv) {
  int result = 0;
  char **arguments = calloc((size_t)argc + 5, sizeof *arguments), seed[32];
  memcpy(arguments, argv, (size_t)argc * sizeof *arguments);
  memcpy(arguments + argc, (char *[]){ "--processes", "1", "--seed", seed },
         4 * sizeof *arguments); /* options given later replace earlier ones */
  for (uint64_t i = 0; i < options.processes; i++) {
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)(options.seed + i * 1000000));
    const pid_t process = fork();
    if (process == 0) {
      (void)execv("/proc/self/exe", arguments);
      _exit(127);
    }
    if (process < 0) result = 1;
  }
  for (int status; wait(&status) > 0;) {
    if (status != 0) result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  free(arguments);
  return result;
}

int main(int argc, char **argv) {
  static const struct test tests[] = { TEST(any_calls_in_any_order) };
  if (!read_options(argc, argv)) {
    (void)fprintf(stderr,
                  "usage: mix [--seed N] [--rounds N | --seconds N] [--threads N] [--operations N] [--only GROUP,...]\n"
                  "           [--timeout SECONDS] [--keep FILE] [--processes N] [--print]\n");
    return 2;
  }
  if (options.processes > 1) return run_processes(argc, argv);
  if (options.print) {
    options.rounds = 1;
    any_calls_in_any_order();
    return 0;
  }
  return RUN_ON_EACH_DEVICE("stress: mix", tests);
}
