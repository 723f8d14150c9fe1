#include "life.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

struct life life;

void life_begin(void) {
  const char *name = getenv("RILL_TEST_DEVICE");
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  must(rill_device_open(name != NULL ? name : "cpu", &life.device));
  must(rill_device_open("cpu", &life.cpu));
  must(rill_device_get_info(life.device, &info));
  note_device(life.device);
  life.gpu = info.backend != RILL_BACKEND_CPU;
}

void die(const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  int size = vsnprintf(text, sizeof text - 1, format, list);
  va_end(list);
  if (size < 0 || size > (int)sizeof text - 2) size = (int)sizeof text - 2;
  text[size] = '\n';
  if (write(STDERR_FILENO, text, (size_t)size + 1) < 0) _exit(4);
  _exit(3);
}

static _Atomic bool gates_closed;

void use(rill_device device) {
  enum { WORDS = 16 };
  const uint32_t pattern = 0x01020304;
  uint32_t *memory = NULL, words[WORDS] = { 0 };
  rill_stream stream, other;
  rill_event event;
  must(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "used"), &stream));
  must(rill_stream_create(device, NULL, &other));
  must(RILL_NEW(device, RILL_MEMORY_DEVICE, WORDS, &memory));
  must(rill_fill_async(stream, memory, &pattern, sizeof pattern, WORDS));
  must(rill_stream_record_new_event(stream, NULL, &event));
  must(rill_stream_wait_event(other, event, 0));
  must(rill_copy_async(other, words, memory, sizeof words));
  must(rill_stream_synchronize(other));
  must(rill_event_synchronize(event));
  for (int i = 0; i < WORDS; i++) {
    if (words[i] != pattern) die("word %d is 0x%x", i, (unsigned)words[i]);
  }
  /* Freeing waits for all work of the device, and some tests have work that never ends. */
  if (!gates_closed) must(rill_free(memory));
  must(rill_event_release(event));
  must(rill_stream_release(stream));
  must(rill_stream_release(other));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static bool open;

static void stand_still(void *user, rill_status status) {
  (void)user, (void)status;
  pthread_mutex_lock(&lock);
  while (!open) (void)pthread_cond_wait(&opened, &lock);
  pthread_mutex_unlock(&lock);
}

void close_gate(rill_stream stream) {
  gates_closed = true;
  must(rill_stream_host_call(stream, stand_still, NULL));
}

void close_gates(void) {
  pthread_mutex_lock(&lock);
  open = false;
  pthread_mutex_unlock(&lock);
}

void open_gates(void) {
  gates_closed = false;
  pthread_mutex_lock(&lock);
  open = true;
  (void)pthread_cond_broadcast(&opened);
  pthread_mutex_unlock(&lock);
}

void leave_leftovers(struct leftovers *left) {
  const uint32_t pattern = 1;
  must(rill_stream_create(life.device, RILL_STREAM_OPTIONS(.label = "left"), &left->stream));
  must(rill_stream_create(life.device, NULL, &left->waiting));
  must(rill_stream_create(life.device, NULL, &left->held));
  must(rill_event_create(life.device, RILL_EVENT_OPTIONS(.label = "never"), &left->never));
  must(RILL_NEW(life.device, RILL_MEMORY_DEVICE, 16, &left->memory));
  close_gate(left->stream);
  must(rill_fill_async(left->stream, left->memory, &pattern, sizeof pattern, 16));
  must(rill_stream_record_new_event(left->stream, NULL, &left->event));
  must(rill_stream_wait_event(left->waiting, left->event, 0));
  must(rill_stream_wait_event(left->held, left->never, 0));
  must(rill_fill_async(left->held, left->memory, &pattern, sizeof pattern, 16));
}
