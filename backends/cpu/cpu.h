/* The cpu backend: declarations shared by its files.
 *
 *   device.c   the device, and the backend as a whole      lock.h     lock, sleep, wake, time
 *   stream.c   streams and host calls                      queue.h    a stream's queue: queue.c, wait.c, queues.c
 *   event.c    events: marks in queues                     workers.h  the workers: workers.c, job.c, watch.c
 *   memory.c   allocation and contiguous copies            fault.h    kernels that fault
 *   copy_pitched.c   copies of rows and slices             fiber.h    threads of a block that synchronize
 *   fill.c     fills                                       pages.h    memory for staged data
 *   kernel.c   launches                                    image.h    shared objects from memory: seal, stack sizes
 *   module.c   images of kernels                           machine.c, quota.c   properties of the machine
 *   compile.c  run-time compilation by the host's compiler ipc.c      memory shared with other processes
 *   check.h    checks that a kernel accesses its own memory    accesses.h   which bytes a launch accesses
 *   symbols.c  reads the symbols of an image
 *   graph.c    graphs: nodes in chains, one operation for several nodes
 *   schedule.h   execution order chosen by a seed
 *   limit.c    memory size of the device, and settings from the environment
 */
#ifndef RILL_CPU_CPU_H
#define RILL_CPU_CPU_H

#include "backends/cpu/image.h"
#include "backends/cpu/workers.h"

/* A cooperative grid would need as many workers as it has blocks, because a worker runs a block to its end. */
#define CPU_NO_COOPERATIVE "the cpu backend runs blocks one after another on its workers, not all at once"

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

/* The last record is number `record`.  It is complete when `queue` has reached `number`, or immediately if `queue` is
 * NULL.  For a timing event, `time` belongs to record `timed`; a record that was superseded before it ran leaves no
 * time. */
struct cpu_event {
  struct cpu_lock lock;
  struct cpu_queue *queue; /* referenced; may be NULL */
  uint64_t number;
  uint64_t record, timed;
  uint64_t time; /* nanoseconds, monotonic clock */
};

struct cpu_module {
  void *library; /* handle from dlopen */
  int file;      /* file descriptor of the library, or -1 */
  const struct rill_cpu_image_table *image;
  struct cpu_variables variables; /* used if the image lists no variables */
  struct cpu_objects *objects;    /* for an image whose kernels check their accesses; NULL otherwise */
};

struct cpu_kernel {
  const struct rill_cpu_kernel *code;
  size_t stack;                      /* bytes per thread; 0 if unknown */
  const struct cpu_objects *objects; /* owned by the module */
  uint8_t facts;                     /* RILL_CPU_BLOCKS_NEVER_WAIT and others */
};

/* Part of an execution object (graph.c).  The nodes run in chains; the first chain runs in the stream's own queue. */
enum { CPU_CHAINS = 32 };
struct cpu_plan;
struct cpu_exec {
  struct cpu_plan *plan;
  struct cpu_queue *queues[CPU_CHAINS]; /* entry 0 is unused */
  struct cpu_queue *last;               /* queue of the last launch; referenced; NULL if none */
  uint64_t last_number;
};

static inline struct cpu_queue *cpu_queue_of(struct rill__stream *stream) {
  const struct cpu_stream *part = rill__part(stream);
  return part->queue;
}

/* Functions of the stream table that are implemented in event.c. */
rill_status rill__cpu_event_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags);
rill_status rill__cpu_event_wait(struct rill__stream *stream, struct rill__event *event, uint32_t flags);

/* Returns the queue of the event's current mark, with a reference, or NULL if the mark is complete. */
struct cpu_queue *rill__cpu_event_mark(struct rill__event *event, uint64_t *number);

/* rill__cpu_event_set_mark records the event without an operation of its own: operation `number` is the mark.  It
 * returns the number of the record, with which rill__cpu_event_stamp stores the record's time. */
uint64_t rill__cpu_event_set_mark(struct rill__event *event, struct cpu_queue *queue, uint64_t number);
void rill__cpu_event_stamp(struct rill__event *event, uint64_t record);

/* copy_pitched.c and fill.c: functions of the memory table. */
rill_status rill__cpu_copy_3d(struct rill__stream *stream, const struct rill__copy_3d *copy);
rill_status rill__cpu_fill(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *pattern,
                           size_t pattern_size, size_t count);
rill_status rill__cpu_fill_2d(struct rill__stream *stream, const struct rill__fill_2d *fill);

/* Sizes that decide how copies and fills run. */
enum {
  CPU_DIRECT_BYTES = 32 * 1024,  /* up to this size, done in the call if the stream is idle: cheaper than a wakeup */
  CPU_SHARE_BYTES = 1024 * 1024, /* from this size on, split between workers ... */
  CPU_PART_BYTES = 256 * 1024    /* ... in parts of this size */
};

/* Returns the status of a host wait: OK, TIMEOUT, or the status with which the device was lost. */
rill_status rill__cpu_wait_status(struct rill__device *device, bool reached, uint64_t ns);

/* quota.c: returns the number of processors that the control groups grant to this process, UINT32_MAX if unlimited.
 * `system`: root of the system's files; "" except in tests. */
uint32_t rill__cpu_quota_read(const char *system);
uint64_t rill__cpu_memory_quota_read(const char *system); /* returns bytes; UINT64_MAX if unlimited */

/* Waits for all work of the device except host calls. */
rill_status rill__cpu_wait_for_all(struct rill__device *device);

/* limit.c: memory accounting of the device.  The total is fixed when the device is initialized, and grants are
 * subtracted from it.  rill__cpu_memory_grant returns false if too little is left. */
void rill__cpu_memory_set_up(void);
uint64_t rill__cpu_memory_total(void);
uint64_t rill__cpu_memory_free_bytes(void);
bool rill__cpu_memory_grant(uint64_t bytes);
void rill__cpu_memory_return(uint64_t bytes);
void rill__cpu_memory_adjust(uint64_t from, uint64_t to); /* changes the size of a grant */

/* Parses a size in the form of RILL_CPU_MEMORY: "2GiB", "512M", "1000000".  Returns false if it is invalid or 0. */
bool rill__cpu_parse_size(const char *text, uint64_t *bytes);

/* Warns on standard error that an environment variable is invalid, and says what is used instead. */
void rill__cpu_warn_of_setting(const char *name, const char *text, const char *instead);

/* ipc.c: functions of the memory table.  rill__cpu_ipc_forget is called before memory of kind DEVICE is freed. */
rill_status rill__cpu_ipc_export(struct rill__device *device, void *p, size_t size, struct rill__ipc_native *out);
rill_status rill__cpu_ipc_import(struct rill__device *device, const struct rill__ipc_native *from, size_t size,
                                 void **out);
rill_status rill__cpu_ipc_close(struct rill__device *device, void *p, size_t size);
rill_status rill__cpu_ipc_forget(void *p);

/* compile.c: functions of the module table.  rill__cpu_can_compile returns true if a compiler was found. */
bool rill__cpu_can_compile(const char **why);
rill_status rill__cpu_compiler(struct rill__device *device, char *identity, size_t size);
rill_status rill__cpu_compile(struct rill__device *device, const struct rill__compile *request,
                              struct rill__compiled *result);

/* machine.c */
void rill__cpu_processors_read(void); /* called when the device is initialized */
uint32_t rill__cpu_count(void);       /* number of processors that this process may use */
void rill__cpu_run_anywhere(void); /* lets the calling thread run on all these processors, despite inherited affinity */
size_t rill__cpu_page_bytes(void);
void rill__cpu_name_read(char *name, size_t size);
uint32_t rill__cpu_clock_read(void); /* kHz; 0 if unknown */

/* Returns false if the number cannot be an address in this process. */
bool rill__cpu_may_be_address(uint64_t number);

/* Returns the bytes of memory that this process may use: the machine's memory, reduced by control groups and process
 * limits. */
uint64_t rill__cpu_memory_read(void);

/* Returns the highest x86-64 level that the processor supports, 1 for "x86-64", 2 for "x86-64-v2" and so on; 0 on other
 * machines. */
uint32_t rill__cpu_x86_level(void);
/* Returns 1 for "x86-64" ... 4 for "x86-64-v4", and 0 for anything else. */
uint32_t rill__cpu_x86_level_of(const char *target);
/* Reads RILL_CPU_LEVEL, the highest level to use.  If it names no level, prints a warning and uses the machine's
 * highest. */
void rill__cpu_x86_level_read(void);

/* Writes the machine's target name: "x86-64-v3", "aarch64". */
void rill__cpu_target(char *text, size_t size);

#endif
