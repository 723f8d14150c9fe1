/* Measures how long rill takes to notify the host of a completed event, and the cost of waiting events.
 *
 *   watches [device]
 *
 * With 1, 100 and 1,000 events waiting, on one stream and on 8: from the moment
 * that lets the stream complete the event to the return of poll() on the
 * eventfd, the median of ROUNDS; and the processor time of rill's watcher, as a
 * share of one processor, while nothing but waiting happens.
 *
 * On the CPU the moment is the end of a host call. On a GPU it is a store to
 * the flag that a kernel polls, because a driver takes tens of microseconds to
 * notice that a host call has ended; the figure includes the end of the kernel.
 * The last column is the same time for a thread that queries the event in a
 * loop, below which no notification can be. */
#include "gate.rill.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <rill/rill.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 201, MOST = 1000, STREAMS = 8 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  (void)clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static _Atomic uint64_t ended;
static sem_t opened;

static void sleep_ns(uint64_t ns) { (void)nanosleep(&(struct timespec){ 0, (long)ns }, NULL); }

static uint64_t pause_ns;

static void end_after_pause(void *user, rill_status status) {
  (void)user;
  (void)status;
  sleep_ns(pause_ns);
  atomic_store(&ended, clock_ns(CLOCK_MONOTONIC));
}

/* Sets the flag of the kernel that stands before the event, for each post of `submitted`. */
static sem_t submitted;
static void *end_kernels(void *flag) {
  for (;;) {
    while (sem_wait(&submitted) != 0) continue;
    sleep_ns(pause_ns);
    atomic_store(&ended, clock_ns(CLOCK_MONOTONIC));
    atomic_store_explicit((_Atomic unsigned *)flag, 1, memory_order_release);
  }
  return NULL;
}

static void wait_for_opening(void *user, rill_status status) {
  (void)user;
  (void)status;
  while (sem_wait(&opened) != 0) continue;
}

/* Makes a stream wait: a GPU's by a kernel, since a driver may run one host
 * call at a time. */
static void close_gate(rill_stream stream, bool gpu, unsigned *words) {
  const rill_launch launch = rill_launch_1d(1, 1);
  if (gpu) {
    check(wait_for_flag_launch(stream, &launch, words, 1, UINT64_C(60000000000), words + 1));
  } else {
    check(rill_stream_host_call(stream, wait_for_opening, NULL));
  }
}

/* What rill's watcher has used of processors, in ns. */
static uint64_t watcher_ns(void) {
  unsigned long long sum = 0;
  DIR *const tasks = opendir("/proc/self/task");
  const struct dirent *task;
  while (tasks != NULL && (task = readdir(tasks)) != NULL) {
    char path[300], name[32] = "";
    unsigned long long ns = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    const bool watcher = fgets(name, sizeof name, file) != NULL && strncmp(name, "rill-watch", 10) == 0;
    (void)fclose(file);
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
    if (!watcher || (file = fopen(path, "r")) == NULL) continue;
    if (fscanf(file, "%llu", &ns) == 1) sum += ns;
    (void)fclose(file);
  }
  if (tasks != NULL) (void)closedir(tasks);
  return sum;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* One event at a time, each a millisecond or so away. If `fd` is -1, a loop queries the event instead. */
static double median_us(rill_device device, rill_stream stream, unsigned *words, bool gpu, int fd) {
  static double times[ROUNDS];
  rill_event event;
  check(rill_event_create(device, NULL, &event));
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t count = 0;
    bool ready = false;
    pause_ns = 200000 + (uint64_t)i * 7919 % 1000000;
    words[0] = words[1] = 0;
    if (gpu) close_gate(stream, true, words);
    else check(rill_stream_host_call(stream, end_after_pause, NULL));
    check(rill_stream_record_event(stream, event, 0));
    if (fd >= 0) check(rill_event_notify_fd(event, fd));
    if (gpu) (void)sem_post(&submitted);
    if (fd >= 0 && poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1) != 1) exit(EXIT_FAILURE);
    while (fd < 0 && !ready) check(rill_event_is_ready(event, &ready));
    times[i] = (double)(clock_ns(CLOCK_MONOTONIC) - atomic_load(&ended)) / 1e3;
    if (fd >= 0 && read(fd, &count, sizeof count) < 0) exit(EXIT_FAILURE);
  }
  check(rill_event_release(event));
  qsort(times, ROUNDS, sizeof *times, by_size);
  return times[ROUNDS / 2];
}

int main(int argc, char **argv) {
  static rill_event events[MOST];
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_stream stream, gated[STREAMS];
  const int fd = eventfd(0, EFD_CLOEXEC), waiting = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  (void)sem_init(&opened, 0, 0);
  (void)sem_init(&submitted, 0, 0);
  check(rill_device_open(argc > 1 ? argv[1] : NULL, &device));
  check(rill_device_get_info(device, &info));
  check(rill_stream_create(device, NULL, &stream));
  const bool gpu = info.backend != RILL_BACKEND_CPU;
  unsigned *words = NULL;
  check(rill_alloc(device, 4 * sizeof *words, RILL_MEMORY_PINNED, (void **)&words));
  pthread_t ender;
  if (gpu && pthread_create(&ender, NULL, end_kernels, words + 2) != 0) return EXIT_FAILURE;
  (void)printf("%s: %d rounds\n%8s %8s %14s %14s %14s\n", info.name, ROUNDS, "waiting", "streams", "median, us",
               "processor, %", "query loop, us");
  for (int streams = 1; streams <= STREAMS; streams += STREAMS - 1) {
    for (int count = 1; count <= MOST; count = count == 1 ? 100 : count * 10) {
      for (int i = 0; i < streams; i++) check(rill_stream_create(device, NULL, &gated[i]));
      words[0] = words[1] = 0;
      for (int i = 0; i < streams; i++) close_gate(gated[i], gpu, words);
      for (int i = 0; i < count; i++) {
        check(rill_stream_record_new_event(gated[i % streams], NULL, &events[i]));
        check(rill_event_notify_fd(events[i], waiting));
      }
      const uint64_t from = watcher_ns(), start = clock_ns(CLOCK_MONOTONIC);
      for (int i = 0; i < 10; i++) sleep_ns(100000000);
      const double share = 100.0 * (double)(watcher_ns() - from) / (double)(clock_ns(CLOCK_MONOTONIC) - start);
      const double median = median_us(device, stream, words + 2, gpu, fd);
      const double least = median_us(device, stream, words + 2, gpu, -1);
      (void)printf("%8d %8d %14.1f %14.2f %14.1f\n", count, streams, median, share, least);
      atomic_store_explicit((_Atomic unsigned *)words, 1, memory_order_release);
      for (int i = 0; i < streams && !gpu; i++) (void)sem_post(&opened);
      for (int i = 0; i < streams; i++) check(rill_stream_synchronize(gated[i]));
      for (int i = 0; i < count; i++) check(rill_event_release(events[i]));
      for (int i = 0; i < streams; i++) check(rill_stream_release(gated[i]));
    }
  }
  check(rill_stream_release(stream));
  check(rill_free(words));
  return EXIT_SUCCESS;
}
