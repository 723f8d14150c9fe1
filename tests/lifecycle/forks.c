/* fork (C1.10): the child's GPU calls return NO_DEVICE and do not hang, its cpu device works, and the parent
 * continues. */
#include "fault/children.h"
#include "life.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_SECONDS = 20 };

/* Waits for a child that ends by itself, or by its alarm. */
static void reap(pid_t pid) {
  int status = 0;
  assert_true(pid > 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (WIFSIGNALED(status))
    fail_msg("the child was ended by signal %d: %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static pid_t fork_child(void) {
  (void)fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) (void)alarm(LIMIT_SECONDS);
  return pid;
}

/* A call on an object of the parent's GPU, or one that would make one. */
#define refuses(call)                                                                                             \
  do {                                                                                                            \
    const rill_status status_ = (call);                                                                           \
    if (status_ != RILL_ERROR_NO_DEVICE) {                                                                        \
      die("%s:%d: %s gave %s: %s", __FILE__, __LINE__, #call, rill_status_name(status_), rill_last_error_text()); \
    }                                                                                                             \
    if (strstr(rill_last_error_text(), "fork") == NULL) die("%s", rill_last_error_text());                        \
  } while (0)

static void no_call(void *user, rill_status status) { (void)user, (void)status; }

/* All kinds of calls on the parent's objects are refused, except getters and releases. */
static void refuses_all(struct leftovers *left) {
  rill_stream stream;
  rill_event event;
  bool out;
  uint64_t sizes[2];
  float ms;
  void *memory;
  uint32_t word = 0;
  refuses(rill_device_default_stream(life.device, &stream));
  refuses(rill_stream_create(life.device, NULL, &stream));
  refuses(rill_stream_import(life.device, 0, NULL, &stream));
  refuses(rill_event_create(life.device, NULL, &event));
  refuses(rill_alloc(life.device, 16, RILL_MEMORY_DEVICE, &memory));
  refuses(rill_device_get_memory(life.device, &sizes[0], &sizes[1]));
  refuses(rill_device_synchronize(life.device));
  refuses(rill_fill_async(left->stream, left->memory, &word, sizeof word, 1));
  refuses(rill_copy_async(left->stream, &word, left->memory, sizeof word));
  refuses(rill_stream_host_call(left->stream, no_call, NULL));
  refuses(rill_stream_record_event(left->stream, left->event, 0));
  if (left->never.id != 0) refuses(rill_stream_record_event(left->stream, left->never, 0));
  refuses(rill_stream_record_new_event(left->stream, NULL, &event));
  refuses(rill_stream_wait_event(left->waiting, left->event, 0));
  refuses(rill_stream_wait_stream(left->waiting, left->stream));
  refuses(rill_stream_wait_device(left->waiting, life.device));
  refuses(rill_stream_is_complete(left->stream, &out));
  refuses(rill_stream_is_capturing(left->stream, &out));
  refuses(rill_stream_synchronize(left->stream));
  refuses(rill_stream_synchronize_for(left->stream, 1));
  refuses(rill_stream_synchronize(left->held));
  refuses(rill_event_is_ready(left->event, &out));
  refuses(rill_event_synchronize(left->event));
  refuses(rill_event_synchronize_for(left->event, 1));
  rill_event timed = left->event;
  ignore(rill_event_elapsed_time(timed, timed, &ms));
  /* Getters work, and features are unsupported. */
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  const char *text = NULL;
  must(rill_device_get_info(life.device, &info));
  must(rill_stream_label(left->stream, &text));
  must(rill_event_is_recorded(left->event, &out));
  if (rill_device_supports(life.device, RILL_FEATURE_MANAGED, &text)) die("a feature of a GPU that cannot be used");
  refuses(rill_free(left->memory));
}

static void release_all(struct leftovers *left) {
  must(rill_event_release(left->event));
  must(rill_event_release(left->never));
  must(rill_stream_release(left->stream));
  must(rill_stream_release(left->waiting));
  must(rill_stream_release(left->held));
}

/* Calls that the child of a process that has used its device can make. */
static void child_of_a_user(struct leftovers *left) {
  if (life.gpu) refuses_all(left);
  release_all(left);
  use(life.cpu);
  use(life.cpu);
  must(rill_device_synchronize(life.cpu));
}

static void end_parent(struct leftovers *left) {
  open_gates();
  assert_ok(rill_stream_synchronize(left->stream));
  assert_ok(rill_stream_synchronize(left->waiting));
  release_all(left);
  assert_ok(rill_free(left->memory));
  use(life.device);
}

/* ---- modes ---- */

static void before_the_first_use(void) {
  const pid_t pid = fork_child();
  if (pid == 0) {
    life_begin();
    use(life.device);
    _exit(0);
  }
  reap(pid);
  life_begin();
  use(life.device);
}

/* The parent has only searched for devices. */
static void after_a_device_search(void) {
  if (THREADS_CHECKED) return;
  rill_device device;
  life_begin();
  const pid_t pid = fork_child();
  if (pid == 0) {
    rill_stream stream;
    if (life.gpu) refuses(rill_stream_create(life.device, NULL, &stream));
    must(rill_device_open("cpu", &device));
    use(device);
    _exit(0);
  }
  reap(pid);
  use(life.device);
}

/* No GPU has been requested yet: its library starts separately in the child and in the parent. */
static void after_the_cpu_alone(void) {
  if (THREADS_CHECKED) return;
  rill_device cpu;
  assert_ok(rill_device_open("cpu", &cpu));
  use(cpu);
  const pid_t pid = fork_child();
  if (pid == 0) {
    use(cpu);
    life_begin();
    use(life.device);
    _exit(0);
  }
  reap(pid);
  life_begin();
  use(life.device);
}

static void with_work_pending(void) {
  if (THREADS_CHECKED) return;
  struct leftovers left;
  life_begin();
  leave_leftovers(&left);
  const pid_t pid = fork_child();
  if (pid == 0) {
    child_of_a_user(&left);
    _exit(0);
  }
  reap(pid);
  end_parent(&left);
}

/* The child ends normally, while the parent's handles still exist. */
static void child_exits_in_order(void) {
  if (THREADS_CHECKED) return;
  struct leftovers left;
  life_begin();
  leave_leftovers(&left);
  const pid_t pid = fork_child();
  if (pid == 0) {
    use(life.cpu);
    open_gates(); /* its own copy: for streams of the cpu that are still waiting */
    exit(0);
  }
  reap(pid);
  end_parent(&left);
}

static void children_of_children(void) {
  if (THREADS_CHECKED) return;
  struct leftovers left;
  life_begin();
  leave_leftovers(&left);
  const pid_t pid = fork_child();
  if (pid == 0) {
    use(life.cpu);
    const pid_t inner = fork_child();
    if (inner == 0) {
      child_of_a_user(&left);
      _exit(0);
    }
    int status = 0;
    if (inner < 0 || waitpid(inner, &status, 0) != inner || status != 0) die("the grandchild failed: %d", status);
    use(life.cpu);
    _exit(0);
  }
  reap(pid);
  end_parent(&left);
}

/* The child's errors are its own. */
static void errors_stay_apart(void) {
  if (THREADS_CHECKED) return;
  life_begin();
  spoil_last_error();
  const pid_t pid = fork_child();
  if (pid == 0) {
    rill_error error = RILL_ERROR_INIT;
    must(rill_last_error(&error)); /* the thread's, as it was */
    if (error.status != RILL_ERROR_INVALID_ARGUMENT) die("the last error is %s", rill_last_error_text());
    use(life.cpu);
    if (life.gpu) {
      rill_stream stream;
      refuses(rill_stream_create(life.device, NULL, &stream));
    }
    _exit(0);
  }
  reap(pid);
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  assert_int_equal(error.status, RILL_ERROR_INVALID_ARGUMENT);
}

/* ---- from a process with many threads ---- */

static _Atomic bool stop;

static const char *keep_working(unsigned index, void *shared) {
  const struct leftovers *left = shared;
  while (!atomic_load(&stop)) {
    bool out;
    switch (index % 4) {
      case 0: use(life.device); break;
      case 1: use(life.cpu); break;
      case 2:
        REQUIRE_OK(rill_stream_is_complete(left->waiting, &out));
        REQUIRE_OK(rill_event_is_ready(left->event, &out));
        break;
      default: { /* held and released, again and again */
        rill_event event, inner;
        rill_stream held;
        REQUIRE_OK(rill_event_create(life.device, NULL, &event));
        REQUIRE_OK(rill_stream_create(life.device, NULL, &held));
        REQUIRE_OK(rill_stream_wait_event(held, event, 0));
        REQUIRE_OK(rill_stream_record_new_event(held, NULL, &inner));
        REQUIRE_OK(rill_event_release(event));
        REQUIRE_OK(rill_event_release(inner));
        ignore(rill_stream_synchronize(held)); /* NOT_RECORDED */
        REQUIRE_OK(rill_stream_release(held));
      }
    }
  }
  return NULL;
}

static void from_many_threads(void) {
  if (ADDRESSES_CHECKED || THREADS_CHECKED) return;
  enum { THREADS = 4, FORKS = 8 };
  struct leftovers left;
  life_begin();
  leave_leftovers(&left);
  open_gates();                              /* freeing memory waits for work */
  assert_ok(rill_event_release(left.never)); /* memory that is freed while a stream is held would pile up */
  left.never = RILL_NULL_EVENT;
  ignore(rill_stream_synchronize(left.held)); /* NOT_RECORDED */
  use(life.cpu);
  struct background *working = start_threads(THREADS, keep_working, &left);
  for (unsigned i = 0; i < scaled(FORKS); i++) {
    const pid_t pid = fork_child();
    if (pid == 0) {
      child_of_a_user(&left);
      _exit(0);
    }
    reap(pid);
  }
  atomic_store(&stop, true);
  join_threads(working);
  end_parent(&left);
}

/* ---- pools ---- */

struct pooled {
  rill_pool pool;
  rill_stream stream;
  uint32_t *live, *plain;
};

static void use_pool(rill_pool pool, uint32_t kind) {
  enum { WORDS = 5000 };
  rill_stream stream, other;
  uint32_t *p = NULL, *q = NULL, seen[2] = { 0, 0 };
  const uint32_t value = 90 + kind;
  must(rill_stream_create(life.cpu, NULL, &stream));
  must(rill_stream_create(life.cpu, NULL, &other));
  must(rill_pool_alloc_async(pool, stream, WORDS * sizeof *p, (void **)&p));
  must(rill_pool_alloc_aligned_async(pool, stream, WORDS * sizeof *q, 1 << 16, (void **)&q));
  must(rill_fill_async(stream, p, &value, sizeof value, WORDS));
  must(rill_copy_async(stream, q, p, WORDS * sizeof *p));
  must(rill_copy_async(stream, seen, q + WORDS - 1, sizeof *seen));
  must(rill_memory_record_use(p, other));
  must(rill_free_async(stream, p));
  must(rill_free_async(other, q));
  must(rill_stream_synchronize(stream));
  must(rill_stream_synchronize(other));
  if (seen[0] != value) die("a pool of kind %u gave %u, not %u", kind, seen[0], value);
  must(rill_stream_release(stream));
  must(rill_stream_release(other));
}

static const char *allocates(unsigned index, void *shared) {
  const struct pooled *pooled = shared;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(life.cpu, NULL, &stream));
  while (!atomic_load(&stop)) {
    void *p = NULL;
    REQUIRE_OK(rill_pool_alloc_async(pooled->pool, stream, (size_t)1000 << index, &p));
    REQUIRE_OK(rill_free_async(stream, p));
    REQUIRE_OK(rill_alloc(life.cpu, 3000, RILL_MEMORY_PINNED, &p));
    REQUIRE_OK(rill_free(p));
    REQUIRE_OK(rill_pool_trim(pooled->pool, 0));
  }
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

/* The parent's pool of the cpu, what is allocated in it, and new pools of each kind. */
static void child_of_an_allocator(struct pooled *pooled) {
  const uint32_t value = 4;
  uint32_t seen = 0;
  rill_stream stream;
  must(rill_stream_create(life.cpu, NULL, &stream));
  must(rill_fill_async(stream, pooled->live, &value, sizeof value, 100));
  must(rill_copy_async(stream, &seen, pooled->live + 99, sizeof seen));
  must(rill_stream_synchronize(stream));
  if (seen != value) die("%u in the child, not %u", seen, value);
  must(rill_free_async(stream, pooled->live));
  must(rill_free(pooled->plain));
  must(rill_stream_release(stream));
  use_pool(pooled->pool, 0);
  for (uint32_t kind = RILL_MEMORY_DEVICE; kind <= RILL_MEMORY_MANAGED; kind++) {
    rill_pool pool;
    must(rill_pool_create(life.cpu, RILL_POOL_OPTIONS(.kind = kind), &pool));
    use_pool(pool, kind);
    must(rill_pool_trim(pool, 0));
    must(rill_pool_release(pool));
  }
  must(rill_pool_release(pooled->pool));
  must(rill_device_synchronize(life.cpu));
}

/* C1.10: a pool lock that another thread held is free in the child. */
static void with_pools_in_use(void) {
  if (ADDRESSES_CHECKED || THREADS_CHECKED) return;
  enum { THREADS = 3, FORKS = 8 };
  struct pooled pooled;
  life_begin();
  assert_ok(rill_pool_create(life.cpu, NULL, &pooled.pool));
  assert_ok(rill_stream_create(life.cpu, NULL, &pooled.stream));
  assert_ok(rill_pool_alloc_async(pooled.pool, pooled.stream, 400, (void **)&pooled.live));
  assert_ok(rill_alloc_aligned(life.cpu, 400, 4096, RILL_MEMORY_DEVICE, (void **)&pooled.plain));
  struct background *working = start_threads(THREADS, allocates, &pooled);
  for (unsigned i = 0; i < scaled(FORKS); i++) {
    const pid_t pid = fork_child();
    if (pid == 0) {
      child_of_an_allocator(&pooled);
      _exit(0);
    }
    reap(pid);
  }
  atomic_store(&stop, true);
  join_threads(working);
  assert_ok(rill_free_async(pooled.stream, pooled.live));
  assert_ok(rill_free(pooled.plain));
  use_pool(pooled.pool, 0);
  assert_ok(rill_stream_release(pooled.stream));
  assert_ok(rill_pool_release(pooled.pool));
}

/* ---- graphs ---- */

enum { GRAPH_NODES = 24 };

struct graphed {
  rill_graph_exec exec;
  rill_graph_node first;
  uint32_t *cells; /* one for each node, pinned */
};

static const char *launches(unsigned index, void *shared) {
  const struct graphed *graphed = shared;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(life.cpu, NULL, &stream));
  for (uint32_t value = index; !atomic_load(&stop); value++) {
    REQUIRE_OK(rill_graph_exec_set_fill(graphed->exec, graphed->first, graphed->cells, &value, sizeof value, 1));
    REQUIRE_OK(rill_graph_launch(graphed->exec, stream));
    if (value % 64 == 0) REQUIRE_OK(rill_stream_synchronize(stream));
  }
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

/* The parent's execution object in its child: changed, launched, released. */
static void child_of_a_launcher(const struct graphed *graphed) {
  const uint32_t value = 12345;
  rill_stream stream;
  must(rill_stream_create(life.cpu, NULL, &stream));
  for (int i = 0; i < 3; i++) {
    graphed->cells[0] = graphed->cells[GRAPH_NODES - 1] = 0;
    must(rill_graph_exec_set_fill(graphed->exec, graphed->first, graphed->cells, &value, sizeof value, 1));
    must(rill_graph_launch(graphed->exec, stream));
    must(rill_stream_synchronize(stream));
    if (graphed->cells[0] != value) die("%u in the child, not %u", graphed->cells[0], value);
    if (graphed->cells[GRAPH_NODES - 1] != 7) die("%u at the end", graphed->cells[GRAPH_NODES - 1]);
  }
  must(rill_graph_exec_release(graphed->exec));
  must(rill_stream_release(stream));
}

/* C1.10: an execution object that another thread was launching or changing is intact and unlocked in the child. */
static void with_graphs_in_use(void) {
  if (ADDRESSES_CHECKED || THREADS_CHECKED) return;
  enum { THREADS = 3, FORKS = 24 };
  struct graphed graphed;
  rill_graph graph;
  const uint32_t value = 7;
  life_begin();
  assert_ok(rill_alloc(life.cpu, GRAPH_NODES * sizeof value, RILL_MEMORY_PINNED, (void **)&graphed.cells));
  assert_ok(rill_graph_create(life.cpu, &graph));
  for (int i = 0; i < GRAPH_NODES; i++) {
    rill_graph_node node;
    assert_ok(rill_graph_add_fill(graph, NULL, 0, graphed.cells + i, &value, sizeof value, 1, &node));
    if (i == 0) graphed.first = node;
  }
  assert_ok(rill_graph_instantiate(graph, &graphed.exec));
  struct background *working = start_threads(THREADS, launches, &graphed);
  for (unsigned i = 0; i < scaled(FORKS); i++) {
    const pid_t pid = fork_child();
    if (pid == 0) {
      child_of_a_launcher(&graphed);
      _exit(0);
    }
    reap(pid);
  }
  atomic_store(&stop, true);
  join_threads(working);
  assert_ok(rill_graph_exec_release(graphed.exec));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_free(graphed.cells));
}

/* Deferred frees of the parent happen in the child, which does not have the parent's held work. */
static void with_deferred_memory(void) {
  if (THREADS_CHECKED) return;
  rill_stream held, recorder;
  rill_event event;
  uint32_t *p;
  const uint32_t value = 4;
  life_begin();
  assert_ok(rill_stream_create(life.cpu, NULL, &held));
  assert_ok(rill_stream_create(life.cpu, NULL, &recorder));
  assert_ok(rill_event_create(life.cpu, NULL, &event));
  assert_ok(RILL_NEW(life.cpu, RILL_MEMORY_DEVICE, 100, &p));
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_fill_async(held, p, &value, sizeof value, 100));
  assert_ok(rill_free(p));
  const pid_t pid = fork_child();
  if (pid == 0) {
    use(life.cpu);
    must(rill_device_synchronize(life.cpu));
    _exit(0);
  }
  reap(pid);
  assert_ok(rill_stream_record_event(recorder, event, 0));
  assert_ok(rill_stream_synchronize(held));
  assert_ok(rill_event_release(event));
  assert_ok(rill_stream_release(held));
  assert_ok(rill_stream_release(recorder));
}

static const char *wait_for_it(unsigned index, void *shared) {
  const struct leftovers *left = shared;
  switch (index) {
    case 0: REQUIRE_OK(rill_stream_synchronize(left->waiting)); break;
    case 1: REQUIRE_OK(rill_event_synchronize(left->event)); break;
    case 2: REQUIRE_OK(rill_stream_synchronize_for(left->stream, TIMEOUT_NS)); break;
    default: ignore(rill_stream_synchronize(left->held)); break; /* NOT_RECORDED at the end */
  }
  return NULL;
}

/* Threads of the parent block in waits that do not exist in the child. */
static void while_threads_wait(void) {
  if (THREADS_CHECKED) return;
  struct leftovers left;
  life_begin();
  leave_leftovers(&left);
  struct background *waiting = start_threads(4, wait_for_it, &left);
  for (int i = 0; i < 4; i++) {
    const pid_t pid = fork_child();
    if (pid == 0) {
      child_of_a_user(&left);
      _exit(0);
    }
    reap(pid);
  }
  open_gates();
  assert_ok(rill_event_release(left.never)); /* streams held for it fail, and its waiter returns */
  join_threads(waiting);
  left.never = RILL_NULL_EVENT;
  end_parent(&left);
}

static void *fork_here(void *argument) {
  struct leftovers *left = argument;
  const pid_t pid = fork_child();
  if (pid == 0) {
    child_of_a_user(left);
    _exit(0);
  }
  int status = -1;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) status = -1;
  return status == 0 ? NULL : argument;
}

/* The forking thread has not used rill, so it has no state in rill yet. */
static void from_a_fresh_thread(void) {
  if (THREADS_CHECKED) return;
  struct leftovers left;
  pthread_t thread;
  void *failed = NULL;
  life_begin();
  leave_leftovers(&left);
  assert_int_equal(pthread_create(&thread, NULL, fork_here, &left), 0);
  assert_int_equal(pthread_join(thread, &failed), 0);
  assert_null(failed);
  end_parent(&left);
}

int main(int argc, char **argv) {
  static const struct mode modes[] = {
    MODE(before_the_first_use), MODE(after_a_device_search), MODE(after_the_cpu_alone), MODE(with_work_pending),
    MODE(child_exits_in_order), MODE(children_of_children),  MODE(errors_stay_apart),   MODE(with_pools_in_use),
    MODE(with_deferred_memory), MODE(with_graphs_in_use),    MODE(from_many_threads),   MODE(while_threads_wait),
    MODE(from_a_fresh_thread),
  };
  return RUN_MODES("fork", argc, argv, modes);
}
