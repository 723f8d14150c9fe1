/* Events in the loop of libuv: a uv_poll_t watches an eventfd that rill signals when a batch is done.
 *
 * Built if libuv is found: cc events_uv.c $(pkg-config --cflags --libs rill libuv)
 */
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

enum { BATCHES = 4, COUNT = 1 << 20 };

struct worker {
  rill_stream stream;
  rill_event done;
  void *device_memory, *host_memory;
  uv_poll_t poll;
  int fd;
  uint32_t batch;
};

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

static void check_uv(int code) {
  if (code >= 0) return;
  (void)fprintf(stderr, "%s\n", uv_strerror(code));
  exit(EXIT_FAILURE);
}

static void submit(struct worker *worker) {
  worker->batch++;
  check(rill_fill_async(worker->stream, worker->device_memory, &worker->batch, sizeof worker->batch, COUNT));
  check(rill_copy_async(worker->stream, worker->host_memory, worker->device_memory, COUNT * sizeof worker->batch));
  check(rill_stream_record_event(worker->stream, worker->done, 0));
  check(rill_event_notify_fd(worker->done, worker->fd));
}

/* Runs on the loop's thread. */
static void batch_done(uv_poll_t *poll, int status, int events) {
  struct worker *const worker = poll->data;
  uint64_t count = 0;
  bool reached = false;
  check_uv(status);
  if ((events & UV_READABLE) == 0 || read(worker->fd, &count, sizeof count) != (ssize_t)sizeof count) return;
  check(rill_event_is_ready(worker->done, &reached)); /* fails if the work has failed */
  (void)printf("batch %u is done\n", *(const uint32_t *)worker->host_memory);
  if (!reached || *(const uint32_t *)worker->host_memory != worker->batch) exit(EXIT_FAILURE);
  if (worker->batch < BATCHES) {
    submit(worker);
  } else {
    uv_close((uv_handle_t *)poll, NULL);
  }
}

int main(void) {
  struct worker worker = { .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
  rill_device device;
  uv_loop_t loop;
  check(rill_device_open(NULL, &device));
  check(rill_stream_create(device, NULL, &worker.stream));
  check(rill_event_create(device, NULL, &worker.done));
  check(rill_alloc(device, COUNT * sizeof(uint32_t), RILL_MEMORY_DEVICE, &worker.device_memory));
  check(rill_alloc(device, COUNT * sizeof(uint32_t), RILL_MEMORY_PINNED, &worker.host_memory));
  check_uv(uv_loop_init(&loop));
  check_uv(uv_poll_init(&loop, &worker.poll, worker.fd));
  worker.poll.data = &worker;
  check_uv(uv_poll_start(&worker.poll, UV_READABLE, batch_done));
  submit(&worker);
  check_uv(uv_run(&loop, UV_RUN_DEFAULT)); /* until the last batch is done */
  check_uv(uv_loop_close(&loop));
  (void)close(worker.fd);
  check(rill_free(worker.host_memory));
  check(rill_free(worker.device_memory));
  check(rill_event_release(worker.done));
  check(rill_stream_release(worker.stream));
  return EXIT_SUCCESS;
}
