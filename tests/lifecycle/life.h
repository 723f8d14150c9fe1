/* Shared by the programs on process lifetime: their device, work that stays pending, and messages for places where no
 * test runs any more, such as exit handlers.
 *
 * RILL_TEST_DEVICE names the device: "cpu", or one of a fake vendor library.
 */
#ifndef RILL_TESTS_LIFECYCLE_LIFE_H
#define RILL_TESTS_LIFECYCLE_LIFE_H

#include "support/testing.h"

/* Checkers of addresses and of threads have locks of their own, which other threads may hold when a process forks, and
 * the second one ends the children of processes with threads. */
#if defined(__SANITIZE_ADDRESS__)
enum { ADDRESSES_CHECKED = 1, THREADS_CHECKED = 0 };
#elif defined(__SANITIZE_THREAD__)
enum { ADDRESSES_CHECKED = 0, THREADS_CHECKED = 1 };
#elif defined(__has_feature)
enum { ADDRESSES_CHECKED = __has_feature(address_sanitizer), THREADS_CHECKED = __has_feature(thread_sanitizer) };
#else
enum { ADDRESSES_CHECKED = 0, THREADS_CHECKED = 0 };
#endif

struct life {
  rill_device device, cpu;
  bool gpu;
};
extern struct life life;

void life_begin(void);

/* Prints the problem, and ends the process with exit code 3 at once. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For any place and process: a call that must succeed. */
#define must(call)                                                                                  \
  do {                                                                                              \
    if ((call) != RILL_OK) die("%s:%d: %s: %s", __FILE__, __LINE__, #call, rill_last_error_text()); \
  } while (0)

/* Creates and uses one of each object on `device`, and checks the results. */
void use(rill_device device);

/* Work that blocks the stream until open_gates, or forever. Gates are closed from the start, and again after
 * close_gates. */
void close_gate(rill_stream stream);
void close_gates(void);
void open_gates(void);

/* Creates handles that are never released, with work blocked by a gate. */
struct leftovers {
  rill_stream stream, waiting, held;
  rill_event event, never;
  uint32_t *memory;
};
void leave_leftovers(struct leftovers *left);

#endif
