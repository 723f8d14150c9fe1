/* rill/comm.h: ranks that exchange data, on the devices of one machine or of many.
 *
 * A communicator joins ranks: each has one device, and each process holds the handles of its own ranks.  An operation
 * is work of a stream, as a copy is: it takes its place between the kernels, events order it, and the host does not
 * wait.  The bytes are moved by the engine that the device's vendor or the machine's owner provides: NCCL on NVIDIA
 * GPUs, RCCL on AMD GPUs, MPI between processes on CPUs.  Each is a library of its own that is opened when a
 * communicator is first asked for; this library, rill_comm, stands beside rill.  Between CPU ranks of one process it
 * moves the bytes itself ("local"), so such ranks need no other library.
 *
 *     rill_comm_id id;                                       // one process makes it, and passes it to the others
 *     rill_comm_id_create(device, &id);
 *     rill_comm comm;
 *     rill_comm_create(device, &id, ranks, rank, NULL, &comm); // every rank; returns when all have joined
 *     gradient_launch(stream, ...);
 *     rill_comm_all_reduce(comm, stream, sum, gradient, n, RILL_COMM_FLOAT, RILL_COMM_SUM);
 *     update_launch(stream, ...);
 *     rill_stream_synchronize(stream);
 *     rill_comm_release(comm);
 *
 * Every rank calls the same operations of a communicator in the same order, with the same count, type, operator and
 * root.  Operations that only make progress together (a send and the receive that answers it) go into a group:
 * rill_comm_group_begin, the operations, rill_comm_group_end.  rill/comm_mpi.h has what concerns MPI: communicators
 * from an MPI_Comm, the ranks that mpirun started, and who initialises it.
 *
 * On the CPU the ranks of a communicator are either all in one process (rill_comm_create_all, or threads that pass on
 * an id of rill_comm_id_create) or all in processes of their own (rill/comm_mpi.h).
 *
 * Deadlines.  With rill_comm_options.timeout_ns, an operation that has not finished within that time after its stream
 * reached it, or a fault that the engine notices, ends the communicator: its streams are failed, so that their next
 * synchronize fails with what happened, and every later call on the communicator fails with it.  Release it, and create
 * another one with a new id.  Work that such a stream was given after the operation runs on a GPU, on buffers of
 * unknown contents; on the CPU it is dropped, like held work whose event is released unrecorded.  Without a deadline
 * nothing watches: a rank that died is noticed in a later call of the communicator, or never.
 *
 * The report names the operation, its rank and its number among the operations of that rank (from 1 on).  If the ranks
 * that it waits for are in the same process, their names follow, with what they have not done.  Local ranks end
 * together: what ends the communicator of one is reported to all of them at once.
 *
 * Mismatches.  A rank may pass another count, type, operator or root, or call another operation.  Local ranks are
 * compared always: the call that differs fails with INVALID_ARGUMENT and both operations, and the communicator ends.
 * With MPI a receive that does not fit what was sent fails by itself, without a store.  What stays unnoticed: MPI and
 * NCCL do not compare collective operations, so two ranks with different counts may both return OK and have wrong sums,
 * or one may hang until its deadline; and NCCL does not compare messages.  RILL_CHECK=comm in the environment of all
 * ranks makes each operation wait until all have said what they do, and refuses what differs with the communicator
 * intact.
 *
 * Captures.  On a GPU an operation of a capturing stream becomes part of the graph, whose launches run it, if the
 * engine has had the stream before (an earlier operation, or rill_stream_native): else it is CAPTURE_ACTIVE.  All ranks
 * capture it in the same place, and launch their graphs equally often and in the same order as their other operations.
 * The communicator must outlive the execution objects; deadlines do not count for launches of graphs.  On the CPU the
 * operation is refused with UNSUPPORTED, and the capture goes on without it.
 *
 * What people get wrong:
 * - A count that differs between ranks is no error with MPI and NCCL: see Mismatches.
 * - A stream on a GPU becomes one whose native handle was given out (rill_stream_native): a stream that is held
 *   refuses the operation with NOT_READY, and once used it cannot be held.  On the CPU streams are held by the
 *   operations themselves, and the buffers must be memory that the host may touch.
 * - Communicators of one process that are used at the same time must be used in the same order in every process.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_COMM_H
#define RILL_COMM_H

#include <rill/base.h>
#include <rill/device.h>
#include <rill/options.h>
#include <rill/status.h>
#include <rill/stream.h>

RILL_EXTERN_C_BEGIN

/** One rank of a communicator, in the process that created it.  Counted. */
typedef struct {
  uint64_t id;
} rill_comm;
static const rill_comm RILL_NULL_COMM = { 0 };
static inline bool rill_comm_equal(rill_comm a, rill_comm b) {
  (void)RILL_NULL_COMM;
  return a.id == b.id;
}

/** What ranks find each other by: plain bytes, to be sent as they are by any means.  Good for one communicator. */
typedef struct {
  uint8_t bytes[192];
} rill_comm_id;

/** Types of elements. */
enum {
  RILL_COMM_INT8 = 1,
  RILL_COMM_UINT8 = 2,
  RILL_COMM_INT32 = 3,
  RILL_COMM_UINT32 = 4,
  RILL_COMM_INT64 = 5,
  RILL_COMM_UINT64 = 6,
  RILL_COMM_HALF = 7, /**< rill_half of rill/device/half.h */
  RILL_COMM_FLOAT = 8,
  RILL_COMM_DOUBLE = 9,
  RILL_COMM_BFLOAT16 = 10 /**< rill_bfloat16 */
};

/** Operators.  Each is applied in an order that the engine chooses, for HALF and BFLOAT16 with rounding at any step. */
enum {
  RILL_COMM_SUM = 1,
  RILL_COMM_PRODUCT = 2,
  RILL_COMM_MAX = 3,
  RILL_COMM_MIN = 4,
  RILL_COMM_AVERAGE = 5 /**< the sum divided by the number of ranks; of integers rounded towards 0 */
};

#define RILL_COMM_NO_COLOR UINT32_MAX /**< in rill_comm_split: this rank joins none */
/** Options of rill_comm_create. */
typedef struct rill_comm_options {
  size_t struct_size;
  uint64_t timeout_ns; /**< for joining, and for each operation once its stream has come to it; 0: none */
  const char *label;   /**< copied; may be NULL */
} rill_comm_options;
#define RILL_COMM_OPTIONS_INIT \
  { sizeof(rill_comm_options), 0, NULL }
/** Options in place, in C and C++: rill_comm_create(d, &id, n, i, RILL_COMM_OPTIONS(.timeout_ns = 1000000000), &c). */
#define RILL_COMM_OPTIONS(...) RILL_OPTIONS_(rill_comm_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_comm_options, RILL_OPTIONS_FIELD_(timeout_ns) RILL_OPTIONS_FIELD_(label))
/** What a communicator is made of: rill_comm_get_info. */
typedef struct rill_comm_info {
  size_t struct_size; /**< kept as it is, on failure too */
  rill_device device;
  uint32_t ranks, rank;
  char engine[16];         /**< "nccl", "rccl", "mpi" or "local" */
  uint32_t engine_version; /**< 22809 is NCCL 2.28.9; of MPI its standard, 301 is 3.1; of "local" rill's */
  uint64_t timeout_ns;
} rill_comm_info;
#define RILL_COMM_INFO_INIT \
  { sizeof(rill_comm_info), { 0 }, 0, 0, "", 0, 0 }

/** The calling thread's last failure of a rill_comm_ function, and keeps it; rill's own is rill_last_error.
 *
 *  Errors:  INVALID_ARGUMENT (out is NULL or its struct_size is 0), which does not become the last error itself.
 *  Like:    rill_last_error, ncclGetLastError. */
RILL_API RILL_NODISCARD rill_status rill_comm_last_error(rill_error *out);

/** The same as one line, valid until this thread's next failing call; "" if there was none.  Never NULL.
 *
 *  Errors:  none.
 *  Like:    rill_last_error_text. */
RILL_API RILL_NODISCARD const char *rill_comm_last_error_text(void);

/* ---- joining ---- */

/** Makes the id of a communicator of devices like this one.  The process that makes it must live until all have
 *  joined.  On the CPU the id is for ranks of this process; rill_comm_mpi_world has the one for processes.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, UNSUPPORTED (no engine: what was tried, and the package to install),
 *           BACKEND.
 *  Like:    ncclGetUniqueId. */
RILL_API RILL_NODISCARD rill_status rill_comm_id_create(rill_device device, rill_comm_id *out);

/** Joins as rank number `rank` of `ranks`.  Blocks the calling thread until all have joined, or the deadline.  NULL
 * options are all defaults.
 *
 *  The ranks are processes, or threads of one process with a GPU each; one thread joins for several with
 *  rill_comm_create_all.  On the CPU they are threads of one process, or with an id of rill/comm_mpi.h all processes
 *  that mpirun started.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (an id that is none or damaged, of another process on the CPU, or used
 *           already by this rank), OUT_OF_RANGE (rank), WRONG_BACKEND (the id's), UNSUPPORTED (no engine), TIMEOUT,
 *           NO_DEVICE (in a child of fork), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    ncclCommInitRank. */
RILL_API RILL_NODISCARD rill_status rill_comm_create(rill_device device, const rill_comm_id *id, uint32_t ranks,
                                                     uint32_t rank, const rill_comm_options *options, rill_comm *out);

/** Joins `count` different GPUs of one backend in this process, rank i on devices[i]; no id is needed.  The CPU may be
 *  given several times.  All of `out` is set, on failure to null.
 *
 *  Errors:  those of rill_comm_create, OUT_OF_RANGE (count), WRONG_BACKEND (the devices'), INVALID_ARGUMENT (a GPU
 *           twice).
 *  Like:    ncclCommInitAll. */
RILL_API RILL_NODISCARD rill_status rill_comm_create_all(const rill_device *devices, uint32_t count,
                                                         const rill_comm_options *options, rill_comm *out);

/** Joins the ranks of `comm` that give the same `color`, each in a new communicator; ordered by `key`, among equal keys
 *  by their rank in `comm`.  Blocks until all ranks of `comm` have called, or the deadline of the options.  With
 *  RILL_COMM_NO_COLOR *out is null.  Ranks of one process call from a thread each.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a color above INT32_MAX), UNSUPPORTED (NCCL before 2.18),
 *           TIMEOUT, OUT_OF_MEMORY, BACKEND, and what ended `comm`.
 *  Like:    ncclCommSplit, MPI_Comm_split. */
RILL_API RILL_NODISCARD rill_status rill_comm_split(rill_comm comm, uint32_t color, uint32_t key,
                                                    const rill_comm_options *options, rill_comm *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_comm_retain(rill_comm comm);

/** Drops a reference; the last one ends the rank.  Never blocks; what was submitted still completes.  Zero: nothing.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    ncclCommDestroy. */
RILL_API rill_status rill_comm_release(rill_comm comm);

/** Ends the communicator for this rank: operations under way end without a result, their streams are failed if there
 *  is a deadline, and later calls fail.  Local ranks end with it, the others run into their deadlines.  Release it all
 *  the same.
 *
 *  MPI cannot take back what has started: the buffers of such operations must stay where they are.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, BACKEND.
 *  Threads: any, also while another thread is inside a call on the communicator; may block until the device has ended
 *           the operations.
 *  Like:    ncclCommAbort. */
RILL_API RILL_NODISCARD rill_status rill_comm_abort(rill_comm comm);

/** OK while the communicator works; else what ended it, at every call.  Asks the engine.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, TIMEOUT, BACKEND and whatever else ended it.
 *  Like:    ncclCommGetAsyncError. */
RILL_API RILL_NODISCARD rill_status rill_comm_validate(rill_comm comm);

/** Fills in what is known of the communicator.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    ncclCommCount, ncclCommUserRank, ncclCommCuDevice. */
RILL_API RILL_NODISCARD rill_status rill_comm_get_info(rill_comm comm, rill_comm_info *info);

/* ---- operations ----
 *
 * Work of `stream`, which is of the communicator's device.  `count` counts elements of `type`; 0 is OK: nothing
 * is moved, for any buffers.  Buffers may not overlap, unless the function says how it works in place.  Calls on one
 * communicator are ordered as they arrive. */

/** dst of every rank becomes src of all ranks, combined.  In place: dst is src.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE (the stream's), INVALID_ARGUMENT, OUT_OF_RANGE (size), NOT_READY
 *           (a held stream of a GPU), UNSUPPORTED (a capture on the CPU), CAPTURE_ACTIVE (a capture of a stream that
 *           the engine never had), OUT_OF_MEMORY, DEVICE_LOST, BACKEND, and what ended the communicator
 *           (rill_comm_validate).  The operations below fail in the same ways.
 *  Like:    ncclAllReduce, MPI_Iallreduce. */
RILL_API RILL_NODISCARD rill_status rill_comm_all_reduce(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                         size_t count, uint32_t type, uint32_t op);

/** dst of rank `root` becomes src of all ranks, combined; the others' dst is not looked at.  In place: dst is src.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (root).
 *  Like:    ncclReduce, MPI_Ireduce. */
RILL_API RILL_NODISCARD rill_status rill_comm_reduce(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                     size_t count, uint32_t type, uint32_t op, uint32_t root);

/** dst of every rank becomes src of rank `root`; the others' src is not looked at.  In place: dst is src.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (root).
 *  Like:    ncclBroadcast, MPI_Ibcast. */
RILL_API RILL_NODISCARD rill_status rill_comm_broadcast(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                        size_t count, uint32_t type, uint32_t root);

/** dst of every rank becomes src of rank 0, of rank 1, ..., `count` elements each.  In place: src is this rank's part
 *  of dst.
 *
 *  Errors:  those of rill_comm_all_reduce.
 *  Like:    ncclAllGather, MPI_Iallgather. */
RILL_API RILL_NODISCARD rill_status rill_comm_all_gather(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                         size_t count, uint32_t type);

/** src of every rank has a part of `count` elements for each rank; dst becomes this rank's parts of all ranks,
 *  combined.  In place: dst is this rank's part of src.
 *
 *  Errors:  those of rill_comm_all_reduce.
 *  Like:    ncclReduceScatter, MPI_Ireduce_scatter_block. */
RILL_API RILL_NODISCARD rill_status rill_comm_reduce_scatter(rill_comm comm, rill_stream stream, void *dst,
                                                             const void *src, size_t count, uint32_t type, uint32_t op);

/** src of every rank has a part of `count` elements for each rank; part i of dst becomes this rank's part of rank i.
 *  Not in place.
 *
 *  Errors:  those of rill_comm_all_reduce.
 *  Like:    ncclAlltoAll, MPI_Ialltoall. */
RILL_API RILL_NODISCARD rill_status rill_comm_all_to_all(rill_comm comm, rill_stream stream, void *dst, const void *src,
                                                         size_t count, uint32_t type);

/** Sends `count` elements to rank `peer`, which receives as many.  The stream may stand still until it does: a send
 *  and a receive of one stream that wait for each other's answer belong into a group.
 *
 *  Errors:  those of rill_comm_all_reduce, OUT_OF_RANGE (peer).
 *  Threads: any; sends to one peer are received in their order.
 *  Like:    ncclSend, MPI_Isend. */
RILL_API RILL_NODISCARD rill_status rill_comm_send(rill_comm comm, rill_stream stream, const void *src, size_t count,
                                                   uint32_t type, uint32_t peer);

/** Receives `count` elements that rank `peer` sends.
 *
 *  Errors:  those of rill_comm_send.
 *  Threads: any; sends of one peer are received in their order.
 *  Like:    ncclRecv, MPI_Irecv. */
RILL_API RILL_NODISCARD rill_status rill_comm_receive(rill_comm comm, rill_stream stream, void *dst, size_t count,
                                                      uint32_t type, uint32_t peer);

/** Makes later work of the stream wait until the streams of all ranks have come to their barrier.
 *
 *  Errors:  those of rill_comm_all_reduce.
 *  Like:    MPI_Ibarrier. */
RILL_API RILL_NODISCARD rill_status rill_comm_barrier(rill_comm comm, rill_stream stream);

/* ---- groups: each thread has its own ---- */

/** Begins a group of this thread: operations are checked and kept until rill_comm_group_end.  Groups may be nested;
 *  the outermost counts.  Operations of several communicators may be in it, of one backend.
 *
 *  Errors:  OUT_OF_MEMORY.
 *  Like:    ncclGroupStart. */
RILL_API RILL_NODISCARD rill_status rill_comm_group_begin(void);

/** Submits the operations of the group, which make progress together.  If one was refused when it was called, nothing
 *  is submitted, and that failure is given again.  Between begin and end an operation's handles must stay alive.
 *
 *  Errors:  INVALID_ARGUMENT (no group), those of the operations.
 *  Like:    ncclGroupEnd. */
RILL_API RILL_NODISCARD rill_status rill_comm_group_end(void);

RILL_EXTERN_C_END

#include <rill/comm_counts.h>

#endif
