/* Shared by the parts of growth: the benchmark's objects, and its rows. */
#ifndef RILL_TESTS_BENCH_GROWTH_H
#define RILL_TESTS_BENCH_GROWTH_H

#include <rill/rill.h>

#include <pthread.h>

enum { GROWTH_MOST = 10000, BYTES = 4096 };

struct other {
  rill_stream stream;
  rill_event event;
  void *memory;
};

extern struct bench {
  rill_device device;
  bool cpu, launches, constants, csv; /* a vendor library whose calls return at once has no variables */
  const char *name;
  rill_kernel five, add_step;
  rill_stream stream, next;
  rill_event event, pending;
  char *memory, *host;
  struct other others[GROWTH_MOST];
  size_t count;
  pthread_mutex_t gate; /* locked: closed */
} bench;

/* Ends the process with the failed call's name and error. */
void need(rill_status status, const char *what);
#define NEED(call) need((call), #call)

double now(void); /* ns */

/* A call that is timed in batches, with `count` other objects made before and taken away after. */
struct row {
  const char *name;
  void (*call)(void);
  void (*before)(size_t count), (*after)(size_t count);
  enum { HOST, KERNELS, CONSTANTS } needs;
  void (*prepare)(int i); /* before the calls of a batch, untimed; or NULL */
};

/* Work on as many objects at once: returns ns for each. */
struct each_row {
  const char *name;
  double (*time)(size_t count);
};

void make_none(size_t count);
void hold_others(size_t count); /* each other stream, for an event of its own, with a copy that is held */
void let_others_go(size_t count);

/* growth_graphs.c */
extern const struct row graph_rows[];
extern const size_t graph_row_count;
extern const struct each_row graph_each_rows[];
extern const size_t graph_each_row_count;

#endif
