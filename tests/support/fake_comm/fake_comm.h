/* Between the files of the fake NCCL and RCCL. */
#ifndef FAKE_COMM_H
#define FAKE_COMM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/comm/gpu_comm.h"

enum fake_comm_kind {
  FAKE_ALL_REDUCE,
  FAKE_REDUCE,
  FAKE_BROADCAST,
  FAKE_ALL_GATHER,
  FAKE_REDUCE_SCATTER,
  FAKE_SEND,
  FAKE_RECEIVE
};

struct fake_comm_op {
  struct fake_comm_op *next;
  enum fake_comm_kind kind;
  const void *src;
  void *dst;
  size_t count;
  int type, reduction, peer; /* peer: root, or the other one */
  struct ncclComm *comm;
  void *stream;
  int rank;
  uint64_t number; /* among the collective ones of the communicator */
  bool done;
  bool buffered; /* a copy, with a copy of src after it and no dst, of one that is done */
};

/* reduce.c: the result of ranks that have all come; dst of each. */
size_t fake_comm_size_of(int type);
void fake_comm_compute(struct fake_comm_op *const *ops, int ranks);

/* control.c: around each call.  The lock guards everything; `changed` tells of any change. */
extern pthread_mutex_t fake_comm_lock;
extern pthread_cond_t fake_comm_changed;
int fake_comm_enter(const char *function); /* takes the lock, or gives what the call is to fail with */
int fake_comm_leave(int code);
bool fake_comm_blocks(void); /* under the lock */
size_t fake_comm_live(void);
void fake_comm_kill(int rank, int error);

/* Services of the fake driver (fake_control.h). */
int fake_comm_current_device(void);
int fake_comm_device_of_stream(void *stream);
int fake_comm_enqueue(void *stream, void (*run)(void *data, int status), void *data);
int fake_comm_capture(void *stream, void (*run)(void *data, int status), void (*finish)(void *data), void *data);

#endif
