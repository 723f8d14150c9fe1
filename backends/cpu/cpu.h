/* The cpu backend: what its files know of each other.
 *
 *   device.c   the device, and the backend as a whole      lock.h     lock, sleep, wake, time
 *   stream.c   streams and host calls                      queue.h    a stream's queue: queue.c, wait.c, queues.c
 *   event.c    events: marks in queues                     workers.h  the workers: workers.c, job.c, watch.c
 *   memory.c   allocation, and copies of a line            fault.h    kernels that fault
 *   copy_pitched.c   copies of rows and slices             fiber.h    threads of a block that meet barriers
 *   fill.c     fills                                       pages.h    memory for what is on its way
 *   kernel.c   launches                                    image.h    shared objects from memory: their seal, stacks
 *   module.c   images of kernels                           machine.c, quota.c   what the system tells
 *   compile.c  the host's compiler, at run time            ipc.c      memory shared with other processes
 *   check.h    whether what a kernel accesses is its own   accesses.h   which bytes a launch accesses
 *   symbols.c  what the symbols of an image tell
 *   graph.c    graphs: their nodes in chains, one operation for many
 *   schedule.h   an order of operations that a seed decides
 *   limit.c    how much memory the device has, and settings of the environment
 */
#ifndef RILL_CPU_CPU_H
#define RILL_CPU_CPU_H

#include "backends/cpu/image.h"
#include "backends/cpu/workers.h"

/* A grid that waits for all of its blocks needs as many workers at a time, and a worker runs block after block. */
#define CPU_NO_COOPERATIVE "the cpu backend runs blocks one after another on its workers, not all at a time"

extern const struct rill__backend rill__cpu_backend;
extern const struct rill__stream_table rill__cpu_stream_table;
extern const struct rill__event_table rill__cpu_event_table;
extern const struct rill__memory_table rill__cpu_memory_table;
extern const struct rill__module_table rill__cpu_module_table;
extern const struct rill__kernel_table rill__cpu_kernel_table;
extern const struct rill__graph_table rill__cpu_graph_table;

/* The backend's parts of the objects. */
struct cpu_stream {
  struct cpu_queue *queue;
};

/* The record that counts is `record`; it is complete when `queue` has reached `number`, or at once if `queue` is
 * NULL.  Timing events have their time in `time` if `timed` is that record: one that was superseded before its turn
 * came leaves no time. */
struct cpu_event {
  struct cpu_lock lock;
  struct cpu_queue *queue; /* retained */
  uint64_t number;
  uint64_t record, timed;
  uint64_t time; /* nanoseconds of the monotonic clock */
};

struct cpu_module {
  void *library; /* of dlopen */
  int file;      /* of the library, or -1 */
  const struct rill_cpu_image_table *image;
  struct cpu_variables variables; /* if the image lists none */
  struct cpu_objects *objects;    /* of one whose kernels check what they access; NULL: they do not */
};

struct cpu_kernel {
  const struct rill_cpu_kernel *code;
  size_t stack;                      /* bytes that a thread of it needs; 0 if unknown */
  const struct cpu_objects *objects; /* its module's */
  enum cpu_sharing sharing;          /* of its blocks */
};

/* Of an execution object (graph.c).  The nodes run in chains, the first of them in the queue of the stream. */
enum { CPU_CHAINS = 32 };
struct cpu_plan;
struct cpu_exec {
  struct cpu_plan *plan;
  struct cpu_queue *queues[CPU_CHAINS]; /* but for the first */
  struct cpu_queue *last;               /* where the last launch ended; retained; NULL: there was none */
  uint64_t last_number;
};

static inline struct cpu_queue *cpu_queue_of(struct rill__stream *stream) {
  const struct cpu_stream *part = rill__part(stream);
  return part->queue;
}

/* Slots of the stream table that belong to events. */
rill_status rill__cpu_event_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags);
rill_status rill__cpu_event_wait(struct rill__stream *stream, struct rill__event *event, uint32_t flags);

/* Where the event's mark is now, with the queue retained; NULL if it is complete. */
struct cpu_queue *rill__cpu_event_mark(struct rill__event *event, uint64_t *number);

/* Records without an operation: the mark is operation `number`.  Gives the number of the record; and notes its time. */
uint64_t rill__cpu_event_set_mark(struct rill__event *event, struct cpu_queue *queue, uint64_t number);
void rill__cpu_event_stamp(struct rill__event *event, uint64_t record);

/* copy_pitched.c and fill.c: slots of the memory table. */
rill_status rill__cpu_copy_3d(struct rill__stream *stream, const struct rill__copy_3d *copy);
rill_status rill__cpu_fill(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *pattern,
                           size_t pattern_size, size_t count);
rill_status rill__cpu_fill_2d(struct rill__stream *stream, const struct rill__fill_2d *fill);

/* Of copies and fills. */
enum {
  CPU_DIRECT_BYTES = 32 * 1024,  /* less than waking a worker costs: done at the call if the stream is idle */
  CPU_SHARE_BYTES = 1024 * 1024, /* from here on several workers do it, ... */
  CPU_PART_BYTES = 256 * 1024    /* ... each a part of this size */
};

/* How a host wait ends: OK, TIMEOUT, or what the device was lost to. */
rill_status rill__cpu_wait_status(struct rill__device *device, bool reached, uint64_t ns);

/* quota.c: how many processors the control groups leave to this process, UINT32_MAX if they say nothing.  `system` is
 * where the files of the system are: "" but in tests. */
uint32_t rill__cpu_quota_read(const char *system);
uint64_t rill__cpu_memory_quota_read(const char *system); /* bytes, UINT64_MAX if they say nothing */

/* Waits for all work of the device, outside host calls. */
rill_status rill__cpu_wait_for_all(struct rill__device *device);

/* limit.c: the memory of the device.  The total is fixed when the device is set up; what has been granted counts
 * against it.  grant: false if it is too much. */
void rill__cpu_memory_set_up(void);
uint64_t rill__cpu_memory_total(void);
uint64_t rill__cpu_memory_free_bytes(void);
bool rill__cpu_memory_grant(uint64_t bytes);
void rill__cpu_memory_return(uint64_t bytes);
void rill__cpu_memory_adjust(uint64_t from, uint64_t to); /* of a grant: it turned out to be so much */

/* A size as RILL_CPU_MEMORY has it: "2GiB", "512M", "1000000".  False if it is none or 0. */
bool rill__cpu_parse_size(const char *text, uint64_t *bytes);

/* Says on standard error that a setting of the environment is none, and what is used instead. */
void rill__cpu_warn_of_setting(const char *name, const char *text, const char *instead);

/* ipc.c: slots of the memory table, and what comes before memory of kind DEVICE is freed. */
rill_status rill__cpu_ipc_export(struct rill__device *device, void *p, size_t size, struct rill__ipc_native *out);
rill_status rill__cpu_ipc_import(struct rill__device *device, const struct rill__ipc_native *from, size_t size,
                                 void **out);
rill_status rill__cpu_ipc_close(struct rill__device *device, void *p, size_t size);
rill_status rill__cpu_ipc_forget(void *p);

/* compile.c: slots of the module table, and whether there is a compiler. */
bool rill__cpu_can_compile(const char **why);
rill_status rill__cpu_compiler(struct rill__device *device, char *identity, size_t size);
rill_status rill__cpu_compile(struct rill__device *device, const struct rill__compile *request,
                              struct rill__compiled *result);

/* machine.c */
void rill__cpu_processors_read(void); /* when the device is set up */
uint32_t rill__cpu_count(void);       /* processors that this process may use */
void rill__cpu_run_anywhere(void);    /* on any of these: the calling thread, whoever started it */
size_t rill__cpu_page_bytes(void);
void rill__cpu_name_read(char *name, size_t size);
uint32_t rill__cpu_clock_read(void); /* kHz; 0 if unknown */

/* Whether a number may be the address of something in this process. */
bool rill__cpu_may_be_address(uint64_t number);

/* Bytes of memory that this process may use: the machine's, or what control groups and limits of the process leave. */
uint64_t rill__cpu_memory_read(void);

/* The greatest of "x86-64", "x86-64-v2" ... that this processor is, counted from 1; 0 on other machines. */
uint32_t rill__cpu_x86_level(void);
/* 1 for "x86-64" ... 4 for "x86-64-v4", 0 for anything else. */
uint32_t rill__cpu_x86_level_of(const char *target);
/* Reads RILL_CPU_LEVEL, the highest level to use.  If it names no level, says so and uses the machine's highest. */
void rill__cpu_x86_level_read(void);

/* The machine in the words of a target: "x86-64-v3", "aarch64". */
void rill__cpu_target(char *text, size_t size);

#endif
