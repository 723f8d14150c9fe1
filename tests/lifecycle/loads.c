/* Loads the library at run time, and closes it again in any state (T12). Not linked with it: arguments are the
 * library's file and a mode. */
#include <rill/rill.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the process if a condition does not hold. */
#define need(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      (void)fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, last_error_text()); \
      _Exit(3);                                                                                    \
    }                                                                                              \
  } while (0)

static struct {
  void *library;
  const char *(*last_error_text)(void);
  rill_status (*device_open)(const char *name, rill_device *out);
  rill_status (*stream_create)(rill_device device, const rill_stream_options *options, rill_stream *out);
  rill_status (*stream_release)(rill_stream stream);
  rill_status (*stream_synchronize)(rill_stream stream);
  rill_status (*stream_host_call)(rill_stream stream, rill_host_fn fn, void *user);
  rill_status (*stream_record_new_event)(rill_stream stream, const rill_event_options *options, rill_event *out);
  rill_status (*event_release)(rill_event event);
} rill;

static const char *last_error_text(void) { return rill.last_error_text != NULL ? rill.last_error_text() : ""; }

static const char *path;

static void find(void *function, const char *name) {
  void *address = dlsym(rill.library, name);
  need(address != NULL);
  memcpy(function, &address, sizeof address);
}

static void load(void) {
  rill.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (rill.library == NULL) (void)fprintf(stderr, "%s\n", dlerror());
  need(rill.library != NULL);
  find(&rill.last_error_text, "rill_last_error_text");
  find(&rill.device_open, "rill_device_open");
  find(&rill.stream_create, "rill_stream_create");
  find(&rill.stream_release, "rill_stream_release");
  find(&rill.stream_synchronize, "rill_stream_synchronize");
  find(&rill.stream_host_call, "rill_stream_host_call");
  find(&rill.stream_record_new_event, "rill_stream_record_new_event");
  find(&rill.event_release, "rill_event_release");
}

static rill_device device(void) {
  const char *name = getenv("RILL_TEST_DEVICE");
  rill_device found;
  need(rill.device_open(name != NULL ? name : "cpu", &found) == RILL_OK);
  return found;
}

static void use(void) {
  rill_stream stream;
  rill_event event;
  need(rill.stream_create(device(), NULL, &stream) == RILL_OK);
  need(rill.stream_record_new_event(stream, NULL, &event) == RILL_OK);
  need(rill.stream_synchronize(stream) == RILL_OK);
  need(rill.event_release(event) == RILL_OK);
  need(rill.stream_release(stream) == RILL_OK);
}

/* ---- modes ---- */

static void again_and_again(void) {
  enum { TIMES = 100 };
  for (int i = 0; i < TIMES; i++) {
    load();
    use();
    need(dlclose(rill.library) == 0);
  }
}

static void unused(void) {
  load();
  need(dlclose(rill.library) == 0);
}

static _Atomic bool go_on;

static void *thread_of_the_program(void *argument) {
  _Atomic bool *started = argument;
  use();
  atomic_store(started, true);
  while (!atomic_load(&go_on)) (void)sched_yield();
  return NULL; /* its record in the library is freed here, after the library was closed */
}

static void stand_still(void *user, rill_status status) {
  (void)user, (void)status;
  while (!atomic_load(&go_on)) (void)sched_yield();
}

/* The library's own threads, and threads of the program that have used it, outlive the close. */
static void with_live_threads(void) {
  enum { THREADS = 4 };
  static _Atomic bool started[THREADS];
  pthread_t threads[THREADS];
  rill_stream stream;
  load();
  use();
  need(rill.stream_create(device(), NULL, &stream) == RILL_OK);
  need(rill.stream_host_call(stream, stand_still, NULL) == RILL_OK); /* one of them is busy */
  for (int i = 0; i < THREADS; i++) {
    need(pthread_create(&threads[i], NULL, thread_of_the_program, &started[i]) == 0);
    while (!atomic_load(&started[i])) (void)sched_yield();
  }
  need(dlclose(rill.library) == 0);
  atomic_store(&go_on, true);
  for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
  load(); /* the same one, with all that it had */
  need(rill.stream_synchronize(stream) == RILL_OK);
  need(rill.stream_release(stream) == RILL_OK);
  use();
}

static void closed_with_work_and_exit(void) {
  rill_stream stream;
  load();
  need(rill.stream_create(device(), NULL, &stream) == RILL_OK);
  need(rill.stream_host_call(stream, stand_still, NULL) == RILL_OK);
  need(dlclose(rill.library) == 0);
}

static void *load_in_thread(void *unused_argument) {
  (void)unused_argument;
  load();
  use();
  return NULL;
}

/* Loaded and closed by threads that end. */
static void by_a_thread_that_ends(void) {
  enum { TIMES = 20 };
  for (int i = 0; i < TIMES; i++) {
    pthread_t thread;
    need(pthread_create(&thread, NULL, load_in_thread, NULL) == 0);
    (void)pthread_join(thread, NULL);
    need(dlclose(rill.library) == 0);
  }
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } modes[] = {
    { "again_and_again", again_and_again },
    { "unused", unused },
    { "with_live_threads", with_live_threads },
    { "closed_with_work_and_exit", closed_with_work_and_exit },
    { "by_a_thread_that_ends", by_a_thread_that_ends },
  };
  if (argc != 3) {
    (void)fprintf(stderr, "usage: %s LIBRARY MODE\n", argv[0]);
    return 2;
  }
  path = argv[1];
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(argv[2], modes[i].name) != 0) continue;
    modes[i].run();
    return 0;
  }
  return 2;
}
