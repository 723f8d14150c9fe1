/* Events in an event loop with poll(): one thread serves a pipe and two streams, and does not block on any of them.
 *
 * Each stream has an eventfd.  Loops with epoll or select work in the same way; see events_uv.c for libuv.
 */
#include <poll.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { STREAMS = 2, BATCHES = 4, COUNT = 1 << 20 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

static void check_that(int good, const char *what) {
  if (good) return;
  perror(what);
  exit(EXIT_FAILURE);
}

/* Submits the next batch to a stream, and makes rill signal the stream's eventfd when the batch is done. */
static void submit(rill_stream stream, rill_event done, int fd, uint32_t *device_memory, uint32_t *host_memory,
                   uint32_t value) {
  check(rill_fill_async(stream, device_memory, &value, sizeof value, COUNT));
  check(rill_copy_async(stream, host_memory, device_memory, COUNT * sizeof value));
  check(rill_stream_record_event(stream, done, 0));
  check(rill_event_notify_fd(done, fd));
}

int main(void) {
  rill_device device;
  rill_stream streams[STREAMS];
  rill_event done[STREAMS];
  void *device_memory[STREAMS], *host_memory[STREAMS];
  struct pollfd ready[STREAMS + 1];
  int pipe_ends[2], batches[STREAMS] = { 0 }, open = STREAMS + 1;
  check(rill_device_open(NULL, &device));
  check_that(pipe(pipe_ends) == 0, "pipe");
  ready[STREAMS] = (struct pollfd){ .fd = pipe_ends[0], .events = POLLIN };
  for (int i = 0; i < STREAMS; i++) {
    check(rill_stream_create(device, NULL, &streams[i]));
    check(rill_event_create(device, NULL, &done[i]));
    check(rill_alloc(device, COUNT * sizeof(uint32_t), RILL_MEMORY_DEVICE, &device_memory[i]));
    check(rill_alloc(device, COUNT * sizeof(uint32_t), RILL_MEMORY_PINNED, &host_memory[i]));
    ready[i] = (struct pollfd){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = POLLIN };
    check_that(ready[i].fd >= 0, "eventfd");
    submit(streams[i], done[i], ready[i].fd, device_memory[i], host_memory[i], 1);
  }
  check_that(write(pipe_ends[1], "x", 1) == 1, "write");

  while (open > 0) {
    check_that(poll(ready, STREAMS + 1, -1) > 0, "poll");
    for (int i = 0; i < STREAMS; i++) {
      uint64_t count = 0;
      if ((ready[i].revents & POLLIN) == 0) continue;
      check_that(read(ready[i].fd, &count, sizeof count) == (ssize_t)sizeof count, "read");
      bool reached = false;
      check(rill_event_is_ready(done[i], &reached)); /* fails if the work has failed */
      const uint32_t value = *(const uint32_t *)host_memory[i];
      (void)printf("stream %d: batch %u is done\n", i, value);
      if (!reached || value != (uint32_t)++batches[i]) return EXIT_FAILURE;
      if (batches[i] < BATCHES) {
        submit(streams[i], done[i], ready[i].fd, device_memory[i], host_memory[i], value + 1);
      } else {
        (void)close(ready[i].fd);
        ready[i].fd = -1; /* poll ignores it */
        open--;
      }
    }
    if ((ready[STREAMS].revents & POLLIN) != 0) {
      char byte;
      check_that(read(pipe_ends[0], &byte, 1) == 1, "read");
      (void)printf("the pipe: one byte\n");
      ready[STREAMS].fd = -1;
      open--;
    }
  }
  for (int i = 0; i < STREAMS; i++) {
    check(rill_free(host_memory[i]));
    check(rill_free(device_memory[i]));
    check(rill_event_release(done[i]));
    check(rill_stream_release(streams[i]));
  }
  return EXIT_SUCCESS;
}
