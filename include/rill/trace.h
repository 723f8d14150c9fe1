/* rill/trace.h: records a timeline of a program.
 *
 * While a trace runs, every operation of every stream is timed and written to a file that https://ui.perfetto.dev
 * and chrome://tracing can open. The file has a track for each stream and each host thread, arrows from event
 * records to the operations after their waits, the memory in use, and ranges that the program names.
 *
 *     rill_trace_start(RILL_TRACE_OPTIONS(.path = "step.json"));
 *     rill_range_push("step");
 *     ... work ...
 *     rill_range_pop();
 *     rill_trace_stop();
 *
 * `rill trace -o step.json -- program` or RILL_TIMELINE=step.json in the environment traces a whole program without
 * changes.
 *
 * Pitfall: a trace is not a benchmark. Submitting an operation takes one or two microseconds longer. Compare
 * durations within a trace, and measure speed without it.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_TRACE_H
#define RILL_TRACE_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Options of rill_trace_start. */
typedef struct rill_trace_options {
  size_t struct_size;
  const char *path;   /**< path of the file, which is overwritten; NULL: "rill-trace.json" */
  uint64_t max_bytes; /**< maximum file size; later operations are only counted; 0: 1 GiB */
  bool graph_nodes;   /**< times each node of a graph, one after another; false: one bar per launch */
} rill_trace_options;
#define RILL_TRACE_OPTIONS_INIT \
  { sizeof(rill_trace_options), NULL, 0, false }
/** An options expression for C and C++. */
#define RILL_TRACE_OPTIONS(...) RILL_OPTIONS_(rill_trace_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_trace_options,
                     RILL_OPTIONS_FIELD_(path) RILL_OPTIONS_FIELD_(max_bytes) RILL_OPTIONS_FIELD_(graph_nodes))

/** Starts a trace of all devices. A process has at most one trace at a time.
 *
 *  A thread writes completed operations to the file, at least every 100 ms. If the program crashes or is killed,
 *  viewers can still read the file; operations of the last 100 ms are missing.
 *
 *  Errors:  INVALID_ARGUMENT (options; a trace is already running; the file cannot be written: the text says why),
 *           OUT_OF_MEMORY (the thread cannot be started).
 *  Like:    cuProfilerStart, hipProfilerStart, which need a profiler. */
RILL_API RILL_NODISCARD rill_status rill_trace_start(const rill_trace_options *options);

/** Waits for all work that is being traced, and completes the file.
 *
 *  A trace that the program does not stop ends at exit, without waiting. The file then states the number of
 *  incomplete operations.
 *
 *  Errors:  INVALID_ARGUMENT (no trace is running, or called in a host call), BACKEND (the disk was full).
 *  Like:    cuProfilerStop, hipProfilerStop. */
RILL_API rill_status rill_trace_stop(void);

/** Begins a named range of the calling thread in the trace. Ranges can be nested. The range is also passed to NVTX or
 *  ROCTX if a profiler has set NVTX_INJECTION64_PATH, or the process has loaded libnvToolsExt.so.1,
 *  librocprofiler-sdk-roctx.so.1 or libroctx64.so.4. Otherwise, and without a trace, the call costs a few
 *  nanoseconds.
 *
 *  Errors:  INVALID_ARGUMENT (NULL).
 *  Like:    nvtxRangePushA, roctxRangePushA. */
RILL_API rill_status rill_range_push(const char *name);

/** Ends the innermost range of the calling thread.
 *
 *  Errors:  INVALID_ARGUMENT (the thread has no open range).
 *  Like:    nvtxRangePop, roctxRangePop. */
RILL_API rill_status rill_range_pop(void);

RILL_EXTERN_C_END

#endif
