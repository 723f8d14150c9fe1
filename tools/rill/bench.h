/* rill bench: figures of one device, a table for each section. */
#ifndef RILL_TOOL_BENCH_H
#define RILL_TOOL_BENCH_H

#include "json.h"

#include <rill/rill.h>

enum { BENCH_COLUMNS = 5 };

struct bench {
  rill_device device;
  rill_device_info info;
  rill_kernel kernel;   /* stream_copy_f32; null if there are no kernels for the device */
  char no_kernels[512]; /* why there are no kernels; "" if there are */
  bool quick;
  uint64_t budget_ns; /* per figure */
  struct json *json;  /* NULL for text tables */
};

/* ---- measuring ---- */

struct bench_task {
  bool (*work)(void *user);  /* runs or submits one operation; false after printing an error */
  bool (*drain)(void *user); /* waits for the submitted operations */
  void *user;
  bool timed_drain; /* true: include the wait, to measure the device; false: measure the calls */
};

/* Returns the time of one operation in the best batch, in ns. Returns false if an operation failed. */
bool bench_measure(const struct bench *bench, const struct bench_task *task, double *ns);

uint64_t bench_now(void); /* ns */

/* ---- printing ---- */

struct bench_section {
  const char *name, *unit;
  const char *columns[BENCH_COLUMNS]; /* up to the first NULL; in JSON with underscores for spaces */
};
void bench_begin(const struct bench *bench, const struct bench_section *section);
/* NAN stands for a value that does not exist. */
void bench_row(const struct bench *bench, const struct bench_section *section, const char *what, const double *values);
void bench_end(const struct bench *bench, const char *left_out); /* why there are no rows, or NULL */

/* ---- the sections: false if an operation failed ---- */

bool bench_layer(const struct bench *bench);
bool bench_copies(const struct bench *bench);
bool bench_stream(const struct bench *bench);
bool bench_launches(const struct bench *bench);
bool bench_peers(const struct bench *bench);
bool bench_graphs(const struct bench *bench);

/* ---- shared by the sections ---- */

/* A launch of one thread that copies one number. */
struct bench_launch {
  rill_stream stream;
  rill_kernel kernel;
  rill_launch shape;
  float *memory;
  int64_t n;
  rill_arg args[3];
};
bool bench_launch_open(const struct bench *bench, struct bench_launch *launch);
void bench_launch_close(struct bench_launch *launch);
bool bench_launch_once(void *launch);
bool bench_launch_drain(void *launch);

#endif
