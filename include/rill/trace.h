/* rill/trace.h: a timeline of what ran when.
 *
 * While a trace runs, every operation of every stream is timed, and a file grows that https://ui.perfetto.dev and
 * chrome://tracing open: a track for each stream and for each thread of the host, arrows from a record of an event to
 * the waits for it, the memory in use, and ranges that the program names.
 *
 *     rill_trace_start(RILL_TRACE_OPTIONS(.path = "step.json"));
 *     rill_range_push("step");
 *     ... work ...
 *     rill_range_pop();
 *     rill_trace_stop();
 *
 * `rill trace -o step.json -- program` does the same for a whole program that knows nothing of it, and so does
 * RILL_TIMELINE=step.json in the environment.
 *
 * The thing people get wrong: a trace is no benchmark.  Submitting an operation takes one or two microseconds longer,
 * so compare durations within a trace, and measure without.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_TRACE_H
#define RILL_TRACE_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

typedef struct rill_trace_options {
  size_t struct_size;
  const char *path;   /**< of the file, which is written over; NULL: "rill-trace.json" */
  uint64_t max_bytes; /**< of the file: what comes after that is counted only; 0: 1 GiB */
  bool graph_nodes;   /**< the nodes of a graph run one after another, each timed; false: a launch is one bar */
} rill_trace_options;
#define RILL_TRACE_OPTIONS_INIT \
  { sizeof(rill_trace_options), NULL, 0, false }
/** Options in place, in C and C++. */
#define RILL_TRACE_OPTIONS(...) RILL_OPTIONS_(rill_trace_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_trace_options,
                     RILL_OPTIONS_FIELD_(path) RILL_OPTIONS_FIELD_(max_bytes) RILL_OPTIONS_FIELD_(graph_nodes))

/** Starts a trace of all devices.  A process has one at a time.
 *
 *  A thread of the trace writes what has completed every 10 ms.  A program that crashes or is killed leaves a file that
 *  viewers read, without what completed in the last 10 ms.
 *
 *  Errors:  INVALID_ARGUMENT (options, a trace runs already, the file cannot be written; the text says why),
 *           OUT_OF_MEMORY (the thread cannot be started).
 *  Like:    cuProfilerStart, hipProfilerStart, which need a profiler. */
RILL_API RILL_NODISCARD rill_status rill_trace_start(const rill_trace_options *options);

/** Waits for the work that the trace has begun to time, and ends the file.
 *
 *  A trace that the program does not stop ends with the process, without waiting: what was not complete then is counted
 *  in the file.
 *
 *  Errors:  INVALID_ARGUMENT (no trace runs, or called in a host call), BACKEND (the disk was full).
 *  Like:    cuProfilerStop, hipProfilerStop. */
RILL_API rill_status rill_trace_stop(void);

/** Begins a range of the calling thread, which the trace shows with its name; ranges nest.  NVTX and ROCTX get it as
 *  well, if a profiler has set NVTX_INJECTION64_PATH, or the process has loaded libnvToolsExt.so.1,
 *  librocprofiler-sdk-roctx.so.1 or libroctx64.so.4.  Without these it costs some nanoseconds.
 *
 *  Errors:  INVALID_ARGUMENT (NULL).
 *  Like:    nvtxRangePushA, roctxRangePushA. */
RILL_API rill_status rill_range_push(const char *name);

/** Ends the calling thread's innermost range.
 *
 *  Errors:  INVALID_ARGUMENT (the thread has no range).
 *  Like:    nvtxRangePop, roctxRangePop. */
RILL_API rill_status rill_range_pop(void);

RILL_EXTERN_C_END

#endif
