/* rill_comm beside the same calls of NCCL or RCCL made plainly, on the same streams, in alternating batches.
 *
 *   comm_beside [--most BYTES] [--rounds N]       RILL_TEST_DEVICE=hip for RCCL
 *
 * A thread for each GPU.  For each operation and size there are rounds; in each one, a batch made plainly, one through
 * rill_comm, and one through rill_comm with a deadline, in turn first.  A batch is enqueued between two timing events
 * after all ranks have met.  Printed is the median of the rounds, of rank 0: microseconds for one operation on the
 * device, what the plain calls take of that, and how far the middle half of the plain batches lies apart; then the
 * host's microseconds for one call. */
#include "backends/comm/gpu_comm.h"
#include "ranks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { WAYS = 3, MOST_ROUNDS = 101 };
enum { PLAIN, RILL, WATCHED };
enum { ALL_REDUCE, ALL_GATHER, EXCHANGE, OPS };
static const char *const op_names[OPS] = { "all_reduce", "all_gather", "send+receive" };

static struct gpu_comm_api api;
static rill_device gpus[MAX_RANKS];
static rill_comm comms[MAX_RANKS], watched[MAX_RANKS];
static void *plain[MAX_RANKS];
static uint32_t ranks;
static size_t most = 256u << 20;
static unsigned rounds = 15;
static bool hip;
static pthread_barrier_t met;

struct worker {
  uint32_t rank;
  rill_stream stream;
  void *native;
  char *src, *dst;
  rill_event start, end;
  double device_us[WAYS][MOST_ROUNDS], host_us[WAYS][MOST_ROUNDS];
};

static _Noreturn void die(const char *what, const char *text) {
  (void)fprintf(stderr, "%s: %s\n", what, text);
  exit(EXIT_FAILURE);
}
#define CHECK(call) ((call) == RILL_OK ? (void)0 : die(#call, rill_last_error_text()))
#define CHECK_COMM(call) ((call) == RILL_OK ? (void)0 : die(#call, rill_comm_last_error_text()))
#define CHECK_PLAIN(call) ((call) == 0 ? (void)0 : die(#call, "failed"))

/* ---- one operation, in either way ---- */

/* `count` floats of this rank's. */
static void call_plainly(const struct worker *w, int op, size_t count) {
  const int type = gpu_comm_number(RILL_COMM_FLOAT), sum = gpu_comm_number(RILL_COMM_SUM);
  void *comm = plain[w->rank];
  if (op == ALL_REDUCE) CHECK_PLAIN(api.all_reduce(w->src, w->dst, count, type, sum, comm, w->native));
  if (op == ALL_GATHER) CHECK_PLAIN(api.all_gather(w->src, w->dst, count, type, comm, w->native));
  if (op != EXCHANGE) return;
  CHECK_PLAIN(api.group_start());
  CHECK_PLAIN(api.send(w->src, count, type, (int)((w->rank + 1) % ranks), comm, w->native));
  CHECK_PLAIN(api.receive(w->dst, count, type, (int)((w->rank + ranks - 1) % ranks), comm, w->native));
  CHECK_PLAIN(api.group_end());
}

static void call_through_rill(const struct worker *w, rill_comm comm, int op, size_t count) {
  const uint32_t type = RILL_COMM_FLOAT;
  if (op == ALL_REDUCE) CHECK_COMM(rill_comm_all_reduce(comm, w->stream, w->dst, w->src, count, type, RILL_COMM_SUM));
  if (op == ALL_GATHER) CHECK_COMM(rill_comm_all_gather(comm, w->stream, w->dst, w->src, count, type));
  if (op != EXCHANGE) return;
  CHECK_COMM(rill_comm_group_begin());
  CHECK_COMM(rill_comm_send(comm, w->stream, w->src, count, type, (w->rank + 1) % ranks));
  CHECK_COMM(rill_comm_receive(comm, w->stream, w->dst, count, type, (w->rank + ranks - 1) % ranks));
  CHECK_COMM(rill_comm_group_end());
}

static void run_batch(struct worker *w, int way, int op, size_t count, unsigned calls, unsigned round) {
  float ms = 0;
  (void)pthread_barrier_wait(&met);
  CHECK(rill_stream_record_event(w->stream, w->start, 0));
  const uint64_t begin = now_ns();
  for (unsigned i = 0; i < calls; i++) {
    if (way == PLAIN) call_plainly(w, op, count);
    else call_through_rill(w, way == RILL ? comms[w->rank] : watched[w->rank], op, count);
  }
  const uint64_t end = now_ns();
  CHECK(rill_stream_record_event(w->stream, w->end, 0));
  CHECK(rill_stream_synchronize(w->stream));
  CHECK(rill_event_elapsed_time(w->start, w->end, &ms));
  w->device_us[way][round] = (double)ms * 1e3 / calls;
  w->host_us[way][round] = (double)(end - begin) * 1e-3 / calls;
}

/* ---- the table ---- */

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_row(struct worker *w, int op, size_t bytes) {
  for (int way = 0; way < WAYS; way++) {
    qsort(w->device_us[way], rounds, sizeof(double), by_size);
    qsort(w->host_us[way], rounds, sizeof(double), by_size);
  }
  const double *us = w->device_us[PLAIN], middle = us[rounds / 2];
  (void)printf("%-12s %10zu %11.2f %11.2f %6.1f %% %11.2f %6.1f %% %5.1f %% %8.2f %8.2f %8.2f\n", op_names[op], bytes,
               middle, w->device_us[RILL][rounds / 2], 100 * middle / w->device_us[RILL][rounds / 2],
               w->device_us[WATCHED][rounds / 2], 100 * middle / w->device_us[WATCHED][rounds / 2],
               100 * (us[rounds * 3 / 4] - us[rounds / 4]) / middle, w->host_us[PLAIN][rounds / 2],
               w->host_us[RILL][rounds / 2], w->host_us[WATCHED][rounds / 2]);
  (void)fflush(stdout);
}

static unsigned calls_for(size_t bytes) { return bytes <= 1u << 20 ? 100 : bytes <= 16u << 20 ? 30 : 6; }

static void *work(void *argument) {
  struct worker *w = argument;
  const rill_device device = gpus[w->rank];
  uintptr_t native = 0;
  CHECK(rill_stream_create(device, NULL, &w->stream));
  CHECK(rill_stream_native(w->stream, &native));
  w->native = (void *)native;
  CHECK(rill_alloc(device, most, RILL_MEMORY_DEVICE, (void **)&w->src));
  CHECK(rill_alloc(device, most * ranks, RILL_MEMORY_DEVICE, (void **)&w->dst));
  CHECK(rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true), &w->start));
  CHECK(rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true), &w->end));
  for (int op = 0; op < OPS; op++) {
    for (size_t bytes = 1024; bytes <= most; bytes *= 4) {
      const size_t count = bytes / sizeof(float);
      for (int way = 0; way < WAYS; way++) run_batch(w, way, op, count, 5, 0);
      for (unsigned round = 0; round < rounds; round++) {
        for (int i = 0; i < WAYS; i++)
          run_batch(w, (int)((round + (unsigned)i) % WAYS), op, count, calls_for(bytes), round);
      }
      if (w->rank == 0) print_row(w, op, bytes);
    }
  }
  (void)rill_event_release(w->start);
  (void)rill_event_release(w->end);
  (void)rill_stream_release(w->stream);
  CHECK(rill_free(w->src));
  CHECK(rill_free(w->dst));
  return NULL;
}

/* ---- the plain communicators ---- */

static void open_plainly(const char *library) {
  void *opened = dlopen(library, RTLD_NOW);
  if (opened == NULL) die(library, dlerror());
#define GPU_COMM_FN(field, name, required, result, parameters) *(void **)&api.field = dlsym(opened, #name);
  GPU_COMM_FUNCTIONS
#undef GPU_COMM_FN
}

/* As a program of the vendor's would: the driver's current device, then the engine's call. */
static void *join_plainly(void *argument) {
  const uint32_t rank = *(uint32_t *)argument;
  static struct gpu_comm_id id;
  if (rank == 0) CHECK_PLAIN(api.get_unique_id(&id));
  (void)pthread_barrier_wait(&met);
  int (*set_context)(void *) = NULL, (*set_device)(int) = NULL;
  if (!hip) {
    rill_stream stream;
    uintptr_t context = 0;
    CHECK(rill_device_default_stream(gpus[rank], &stream));
    CHECK(rill_stream_context(stream, &context));
    *(void **)&set_context = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxSetCurrent");
    CHECK_PLAIN(set_context((void *)context));
  } else {
    static const char *const names[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5" };
    void *driver = NULL;
    for (int i = 0; i < 3 && driver == NULL; i++) driver = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    *(void **)&set_device = dlsym(driver, "hipSetDevice");
    CHECK_PLAIN(set_device((int)rank));
  }
  CHECK_PLAIN(api.init_rank(&plain[rank], (int)ranks, id, (int)rank));
  return NULL;
}

static void read_arguments(int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--most") == 0) most = strtoull(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--rounds") == 0) rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
  }
  if (most < 1024 || rounds < 1 || rounds > MOST_ROUNDS) die("usage", "comm_beside [--most BYTES] [--rounds N]");
}

int main(int argc, char **argv) {
  static struct worker workers[MAX_RANKS];
  pthread_t threads[MAX_RANKS];
  const char *backend = getenv("RILL_TEST_DEVICE");
  hip = backend != NULL && strcmp(backend, "hip") == 0;
  read_arguments(argc, argv);
  ranks = find_devices(gpus);
  if (ranks < 2) {
    (void)printf("%u GPUs: nothing to compare\n", ranks);
    return EXIT_SUCCESS;
  }
  rill_comm_info info = RILL_COMM_INFO_INIT;
  CHECK_COMM(rill_comm_create_all(gpus, ranks, NULL, comms));
  CHECK_COMM(rill_comm_create_all(gpus, ranks, RILL_COMM_OPTIONS(.timeout_ns = TIMEOUT_NS), watched));
  CHECK_COMM(rill_comm_get_info(comms[0], &info));
  open_plainly(hip ? "librccl.so.1" : "libnccl.so.2");
  (void)pthread_barrier_init(&met, NULL, ranks);
  for (uint32_t i = 0; i < ranks; i++) {
    workers[i].rank = i;
    if (pthread_create(&threads[i], NULL, join_plainly, &workers[i].rank) != 0) die("a thread", "none");
  }
  for (uint32_t i = 0; i < ranks; i++) (void)pthread_join(threads[i], NULL);
  (void)printf("%u GPUs, %s %u; %u rounds; spread: the middle half of the plain batches\n\n", ranks, info.engine,
               info.engine_version, rounds);
  (void)printf("%-12s %10s %11s %11s %8s %11s %8s %7s %8s %8s %8s\n", "", "bytes", "plain us", "rill us", "plain/",
               "deadline us", "plain/", "spread", "host", "rill", "deadline");
  for (uint32_t i = 0; i < ranks; i++) {
    if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) die("a thread", "none");
  }
  for (uint32_t i = 0; i < ranks; i++) (void)pthread_join(threads[i], NULL);
  for (uint32_t i = 0; i < ranks; i++) {
    (void)rill_comm_release(comms[i]);
    (void)rill_comm_release(watched[i]);
    CHECK_PLAIN(api.destroy(plain[i]));
  }
  return EXIT_SUCCESS;
}
