/* What rill_comm declares of NCCL, beside NVIDIA's own header: this compiles only if they agree, and what is required
 * is in the library if that is here. */
#include "backends/comm/gpu_comm.h"

#include <dlfcn.h>
#include <nccl.h>
#include <rill/comm.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Each function of ours calls the vendor's with its own parameters: the numbers of them, and pointers and numbers, are
 * the compiler's to compare.  Enumerations and handles are cast. */
#define COMM ((ncclComm_t)comm)
#define STREAM ((cudaStream_t)stream)
#define TYPE ((ncclDataType_t)type)
#define OP ((ncclRedOp_t)op)

static int get_version(int *version) { return (int)ncclGetVersion(version); }
static int get_unique_id(struct gpu_comm_id *id) { return (int)ncclGetUniqueId((ncclUniqueId *)id); }
static int init_rank(void **comm, int ranks, struct gpu_comm_id id, int rank) {
  ncclUniqueId own;
  memcpy(&own, &id, sizeof own);
  return (int)ncclCommInitRank((ncclComm_t *)comm, ranks, own, rank);
}
static int split(void *comm, int color, int key, void **out, void *config) {
  return (int)ncclCommSplit(COMM, color, key, (ncclComm_t *)out, config);
}
static int comm_ranks(void *comm, int *ranks) { return (int)ncclCommCount(COMM, ranks); }
static int comm_rank(void *comm, int *rank) { return (int)ncclCommUserRank(COMM, rank); }
static int destroy(void *comm) { return (int)ncclCommDestroy(COMM); }
static int abort_comm(void *comm) { return (int)ncclCommAbort(COMM); }
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2)
static int revoke(void *comm, int flags) { return (int)ncclCommRevoke(COMM, flags); }
#else
#define revoke NULL
#endif
static const char *get_error_string(int result) { return ncclGetErrorString((ncclResult_t)result); }
static const char *get_last_error(void *comm) { return ncclGetLastError(COMM); }
static int get_async_error(void *comm, int *error) {
  ncclResult_t own;
  const int code = (int)ncclCommGetAsyncError(COMM, &own);
  *error = (int)own;
  return code;
}
static int all_reduce(const void *src, void *dst, size_t count, int type, int op, void *comm, void *stream) {
  return (int)ncclAllReduce(src, dst, count, TYPE, OP, COMM, STREAM);
}
static int reduce(const void *src, void *dst, size_t count, int type, int op, int root, void *comm, void *stream) {
  return (int)ncclReduce(src, dst, count, TYPE, OP, root, COMM, STREAM);
}
static int broadcast(const void *src, void *dst, size_t count, int type, int root, void *comm, void *stream) {
  return (int)ncclBroadcast(src, dst, count, TYPE, root, COMM, STREAM);
}
static int all_gather(const void *src, void *dst, size_t count, int type, void *comm, void *stream) {
  return (int)ncclAllGather(src, dst, count, TYPE, COMM, STREAM);
}
static int reduce_scatter(const void *src, void *dst, size_t count, int type, int op, void *comm, void *stream) {
  return (int)ncclReduceScatter(src, dst, count, TYPE, OP, COMM, STREAM);
}
static int send(const void *src, size_t count, int type, int peer, void *comm, void *stream) {
  return (int)ncclSend(src, count, TYPE, peer, COMM, STREAM);
}
static int receive(void *dst, size_t count, int type, int peer, void *comm, void *stream) {
  return (int)ncclRecv(dst, count, TYPE, peer, COMM, STREAM);
}
static int group_start(void) { return (int)ncclGroupStart(); }
static int group_end(void) { return (int)ncclGroupEnd(); }

/* In the order of the list. */
const struct gpu_comm_api compared;
const struct gpu_comm_api compared = {
  get_version, get_unique_id, init_rank,        split,          comm_ranks,      comm_rank,   destroy,
  abort_comm,  revoke,        get_error_string, get_last_error, get_async_error, all_reduce,  reduce,
  broadcast,   all_gather,    reduce_scatter,   send,           receive,         group_start, group_end,
};

_Static_assert(sizeof(struct gpu_comm_id) == sizeof(ncclUniqueId), "an id");
_Static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int), "enumerations");
_Static_assert(sizeof(ncclRedOp_t) == sizeof(int) && sizeof(ncclComm_t) == sizeof(void *), "operators and handles");
#define AGREE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
AGREE(GPU_COMM_SUCCESS, ncclSuccess);
AGREE(GPU_COMM_INVALID_ARGUMENT, ncclInvalidArgument);
AGREE(GPU_COMM_INVALID_USAGE, ncclInvalidUsage);
AGREE(GPU_COMM_IN_PROGRESS, ncclInProgress);
AGREE(RILL_COMM_INT8 - 1, ncclInt8);
AGREE(RILL_COMM_UINT8 - 1, ncclUint8);
AGREE(RILL_COMM_INT32 - 1, ncclInt32);
AGREE(RILL_COMM_UINT32 - 1, ncclUint32);
AGREE(RILL_COMM_INT64 - 1, ncclInt64);
AGREE(RILL_COMM_UINT64 - 1, ncclUint64);
AGREE(RILL_COMM_HALF - 1, ncclFloat16);
AGREE(RILL_COMM_FLOAT - 1, ncclFloat32);
AGREE(RILL_COMM_DOUBLE - 1, ncclFloat64);
AGREE(RILL_COMM_BFLOAT16 - 1, ncclBfloat16);
AGREE(RILL_COMM_SUM - 1, ncclSum);
AGREE(RILL_COMM_PRODUCT - 1, ncclProd);
AGREE(RILL_COMM_MAX - 1, ncclMax);
AGREE(RILL_COMM_MIN - 1, ncclMin);
AGREE(RILL_COMM_AVERAGE - 1, ncclAvg);

int main(void) {
  static const struct {
    const char *name;
    bool required;
  } functions[] = {
#define GPU_COMM_FN(field, name, required, result, parameters) { #name, required },
    GPU_COMM_FUNCTIONS
#undef GPU_COMM_FN
  };
  void *library = dlopen("libnccl.so.2", RTLD_LAZY);
  unsigned missing = 0;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && library != NULL; i++) {
    if (dlsym(library, functions[i].name) != NULL) continue;
    (void)printf("libnccl.so.2 has no %s%s\n", functions[i].name, functions[i].required ? "" : ", which is optional");
    missing += functions[i].required;
  }
  (void)printf("the header of NCCL %d.%d.%d agrees; %s\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH,
               library != NULL ? "the library has what is needed" : "the library is not here");
  return missing > 0;
}
