/* NCCL's functions as this library calls them; RCCL has the same ones.  They are declared here so that building needs
 * no vendor header; a test compares them with the vendor header if it is installed.  Communicator and stream handles
 * are void *, enumerations int. */
#ifndef RILL_COMM_GPU_COMM_H
#define RILL_COMM_GPU_COMM_H

#include <stddef.h>

struct gpu_comm_id {
  char internal[128];
};

enum {
  GPU_COMM_SUCCESS = 0,
  GPU_COMM_INVALID_ARGUMENT = 4,
  GPU_COMM_INVALID_USAGE = 5,
  GPU_COMM_IN_PROGRESS = 7,
};

/* Converts a type or operator: the vendors number both from 0, rill_comm from 1. */
static inline int gpu_comm_number(unsigned type_or_operator) { return (int)type_or_operator - 1; }

/* GPU_COMM_FN(field, name, required, result, parameters) */
#define GPU_COMM_FUNCTIONS                                                                                           \
  GPU_COMM_FN(get_version, ncclGetVersion, true, int, (int *version))                                                \
  GPU_COMM_FN(get_unique_id, ncclGetUniqueId, true, int, (struct gpu_comm_id * id))                                  \
  GPU_COMM_FN(init_rank, ncclCommInitRank, true, int, (void **comm, int ranks, struct gpu_comm_id id, int rank))     \
  GPU_COMM_FN(split, ncclCommSplit, false, int, (void *comm, int color, int key, void **out, void *config))          \
  GPU_COMM_FN(comm_ranks, ncclCommCount, true, int, (void *comm, int *ranks))                                        \
  GPU_COMM_FN(comm_rank, ncclCommUserRank, true, int, (void *comm, int *rank))                                       \
  GPU_COMM_FN(destroy, ncclCommDestroy, true, int, (void *comm))                                                     \
  GPU_COMM_FN(abort, ncclCommAbort, true, int, (void *comm))                                                         \
  GPU_COMM_FN(revoke, ncclCommRevoke, false, int, (void *comm, int flags))                                           \
  GPU_COMM_FN(get_error_string, ncclGetErrorString, true, const char *, (int result))                                \
  GPU_COMM_FN(get_last_error, ncclGetLastError, false, const char *, (void *comm))                                   \
  GPU_COMM_FN(get_async_error, ncclCommGetAsyncError, true, int, (void *comm, int *error))                           \
  GPU_COMM_FN(all_reduce, ncclAllReduce, true, int,                                                                  \
              (const void *src, void *dst, size_t count, int type, int op, void *comm, void *stream))                \
  GPU_COMM_FN(reduce, ncclReduce, true, int,                                                                         \
              (const void *src, void *dst, size_t count, int type, int op, int root, void *comm, void *stream))      \
  GPU_COMM_FN(broadcast, ncclBroadcast, true, int,                                                                   \
              (const void *src, void *dst, size_t count, int type, int root, void *comm, void *stream))              \
  GPU_COMM_FN(all_gather, ncclAllGather, true, int,                                                                  \
              (const void *src, void *dst, size_t count, int type, void *comm, void *stream))                        \
  GPU_COMM_FN(reduce_scatter, ncclReduceScatter, true, int,                                                          \
              (const void *src, void *dst, size_t count, int type, int op, void *comm, void *stream))                \
  GPU_COMM_FN(send, ncclSend, true, int,                                                                             \
              (const void *src, size_t count, int type, int peer, void *comm, void *stream))                         \
  GPU_COMM_FN(receive, ncclRecv, true, int, (void *dst, size_t count, int type, int peer, void *comm, void *stream)) \
  GPU_COMM_FN(group_start, ncclGroupStart, true, int, (void))                                                        \
  GPU_COMM_FN(group_end, ncclGroupEnd, true, int, (void))

#define GPU_COMM_FN(field, name, required, result, parameters) result(*field) parameters;
struct gpu_comm_api {
  GPU_COMM_FUNCTIONS
};
#undef GPU_COMM_FN

#endif
