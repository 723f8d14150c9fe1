/* docs/guides/DIAGNOSE.md shows rill's output. Each sample here is a process that makes the mistake; its output must
 * appear on that page, except for addresses, times and the names of programs and functions. */
#include "children.h"
#include "vendor.h"

#include "gate.rill.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CHECKED = 1 };
#elif defined(__has_feature)
enum { CHECKED = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) };
#else
enum { CHECKED = 0 };
#endif

enum { ILLEGAL_ADDRESS = 700, TEXT_BYTES = 1 << 16 };

static rill_stream new_labeled(rill_device device, const char *label) {
  rill_stream stream;
  assert_ok(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = label), &stream));
  return stream;
}

static unsigned *new_words(rill_device device, uint32_t kind) {
  unsigned *words = NULL;
  assert_ok(RILL_NEW(device, kind, 1024, &words));
  return words;
}

static rill_status fill(rill_stream stream, void *memory, size_t bytes) {
  const uint32_t pattern = 1;
  return rill_fill_async(stream, memory, &pattern, sizeof pattern, bytes / sizeof pattern);
}

/* ---- the samples: each prints to standard error ---- */

static void unknown_check(void) { vendor_begin(); }

/* The message of a fault, and of its call alone. */
static void launch_wrongly(bool first) {
  rill_event event;
  rill_error error = RILL_ERROR_INIT;
  vendor_begin();
  const rill_stream stream = new_labeled(vendor.device, "work");
  unsigned *const memory = new_words(vendor.device, RILL_MEMORY_DEVICE);
  rill_launch shape = rill_launch_1d(1, 1);
  if (!first) {
    assert_ok(fill(stream, memory, 128));
    assert_ok(rill_stream_synchronize(stream));
    assert_ok(fill(stream, memory, 256));
    assert_ok(rill_stream_record_new_event(stream, RILL_EVENT_OPTIONS(.label = "middle"), &event));
  }
  shape.label = "step 3";
  vendor.fake->fault_next_launch(0, ILLEGAL_ADDRESS);
  rill_status status = set_flag_launch(stream, &shape, memory, 1);
  if (!first && status == RILL_OK) status = rill_stream_synchronize(stream);
  assert_int_equal(status, RILL_ERROR_DEVICE_LOST);
  assert_ok(rill_last_error(&error));
  (void)fprintf(stderr, "%s\n", first ? rill_last_error_text() : error.message);
}
static void a_fault(void) { launch_wrongly(false); }
static void a_fault_in_its_call(void) { launch_wrongly(true); }

static void never_ends(void *user, rill_status status) {
  (void)status;
  atomic_store((atomic_bool *)user, true);
  for (;;) (void)pause();
}

/* The report of the deadline comes from another thread, which ends the process in the end. */
static void a_hang(void) {
  static atomic_bool runs;
  rill_event event;
  vendor_begin();
  const rill_stream work = new_labeled(vendor.cpu, "work"), copies = new_labeled(vendor.cpu, "copy");
  unsigned *const memory = new_words(vendor.cpu, RILL_MEMORY_DEVICE);
  assert_ok(rill_event_create(vendor.cpu, RILL_EVENT_OPTIONS(.label = "uploaded"), &event));
  assert_ok(rill_stream_wait_event(work, event, 0));
  assert_ok(fill(work, memory, 4096));
  assert_ok(fill(work, memory, 4096));
  assert_ok(fill(copies, memory, 4096));
  assert_ok(rill_stream_note_begin(copies, RILL_STREAM_NOTE(.name = "all_reduce", .group = "rows", .number = 12,
                                                            .bytes = 4096, .rank = 1, .ranks = 4)));
  assert_ok(rill_stream_note_end(copies));
  assert_ok(rill_stream_host_call(copies, never_ends, &runs));
  while (!atomic_load(&runs)) (void)sched_yield();
  ignore(rill_stream_synchronize(work));
}

static void crashes(void *user, rill_status status) {
  (void)status;
  *(volatile int *)user = 1;
}

static void a_crash(void) {
  vendor_begin();
  const rill_stream stream = new_labeled(vendor.cpu, "copy");
  assert_ok(rill_stream_host_call(stream, crashes, NULL));
  ignore(rill_stream_synchronize(stream));
}

static void a_missing_wait(void) {
  vendor_begin();
  const rill_stream io = new_labeled(vendor.cpu, "io"), compute = new_labeled(vendor.cpu, "compute");
  unsigned *const x = new_words(vendor.cpu, RILL_MEMORY_DEVICE), *const host =
                                                                     new_words(vendor.cpu, RILL_MEMORY_PINNED);
  assert_ok(rill_copy_async(io, host, x, 4096));
  assert_ok(fill(compute, x, 4096));
  assert_ok(rill_device_synchronize(vendor.cpu));
}

static const struct sample {
  const char *name, *variable;
  void (*run)(void);
  const char *last; /* of what it prints; what comes after that is not compared */
} samples[] = {
  { "unknown_check", "RILL_CHECK=fault", unknown_check, "\n" },
  { "a_fault", NULL, a_fault, "1 block of 1 thread\n" },
  { "a_fault_in_its_call", "RILL_CHECK=faults", a_fault_in_its_call, "(RILL_ERROR_DEVICE_LOST)\n" },
  { "a_hang", "RILL_DEADLINE=200ms", a_hang, "a thread has been waiting for stream \"work\" for 0.2 s\n" },
  { "a_crash", "RILL_CHECK=crash", a_crash, "SIGSEGV\n" },
  { "a_missing_wait", "RILL_CHECK=order", a_missing_wait, "before the fill\n" },
};
enum { SAMPLES = sizeof samples / sizeof *samples };

/* ---- comparing ---- */

static bool ends_word(char c) { return c == '\0' || c == ' ' || c == '\n'; }

/* Removes what differs between two runs: hexadecimal numbers with the file before "+", seconds, and the driver function
 * in which a fault was noticed. */
static void normalize(const char *from, char *to) {
  char *begin = to; /* of the word */
  while (*from != '\0') {
    if (from[0] == '0' && from[1] == 'x') {
      if (to > begin && to[-1] == '+') to = begin;
      *to++ = '#';
      from += 2 + strspn(from + 2, "0123456789abcdef");
    } else if (from[0] >= '0' && from[0] <= '9' && from[1] == '.' && strncmp(from + 3, " s", 2) == 0) {
      *to++ = '#';
      from += 3;
    } else if (strncmp(from, "(reported by ", 13) == 0) {
      *to++ = '#';
      from = strchr(from, ')');
    } else {
      *to = *from++;
      if (ends_word(*to)) begin = to + 1;
      to++;
    }
  }
  *to = '\0';
}

static const char *page(void) {
  static char text[TEXT_BYTES], normal[TEXT_BYTES];
  FILE *const file = fopen(RILL_TEST_PAGE, "r");
  assert_non_null(file);
  const size_t length = fread(text, 1, sizeof text - 1, file);
  assert_in_range(length, 1, sizeof text - 2); /* all of it */
  assert_int_equal(fclose(file), 0);
  text[length] = '\0';
  normalize(text, normal);
  return normal;
}

/* Output of the test harness about devices. */
static void drop_harness(char *text) {
  for (char *line; (line = strstr(text, "rill-device: ")) != NULL;) {
    char *const end = strchr(line, '\n');
    if (end == NULL) return;
    memmove(line, end + 1, strlen(end));
  }
}

static void check_sample(const struct sample *sample, const char *documented) {
  static struct child child;
  static char said[TEXT_BYTES];
  const char *const variables[] = { sample->variable };
  run_child(sample->name, variables, sample->variable != NULL ? 1 : 0, &child);
  drop_harness(child.output);
  char *const last = strstr(child.output, sample->last);
  if (last == NULL) fail_msg("%s says: %s", sample->name, child.output);
  last[strlen(sample->last)] = '\0';
  normalize(child.output, said);
  if (strstr(documented, said) == NULL) fail_msg("%s is not in the page; it says: %s", sample->name, child.output);
}

static void rill_prints_what_the_page_shows(void) {
  const char *const documented = page();
  for (size_t i = 0; i < SAMPLES; i++) {
    const bool crash = samples[i].run == a_crash;
    if (!crash || !CHECKED) check_sample(&samples[i], documented); /* a sanitizer has handlers of its own */
  }
}

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < SAMPLES; i++) {
    if (strcmp(argv[1], samples[i].name) != 0) continue;
    (void)alarm(3); /* one that hangs */
    samples[i].run();
    return 0;
  }
  static const struct mode modes[] = { MODE(rill_prints_what_the_page_shows) };
  return RUN_MODES("documented", argc, argv, modes);
}
