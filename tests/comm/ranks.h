/* Shared by the tests of rill_comm: ranks, ways to create them, and data that identifies its origin.
 *
 * A test's body is run once for each rank: on GPUs (RILL_TEST_DEVICE names the backend, such as "cuda") in a thread for
 * each device; on the CPU in each process that mpirun started, or in RILL_TEST_RANKS threads if that is set. */
#ifndef RILL_TESTS_COMM_RANKS_H
#define RILL_TESTS_COMM_RANKS_H

#include "support/testing.h"

#include <rill/comm.h>
#include <rill/comm_mpi.h>

enum { MAX_RANKS = 16 };

struct rank {
  rill_device device;
  rill_comm comm;
  rill_stream stream;
  uint32_t rank, ranks;
};

/* In a body, which returns a text if it failed.  RUN is a call of rill's, COMM one of rill_comm's. */
#define RUN(call) REQUIRE_OK(call)
#define COMM(call)                                             \
  do {                                                         \
    if ((call) != RILL_OK) return rill_comm_last_error_text(); \
  } while (0)
/* The call fails with this status, and its text contains this. */
#define COMM_FAILS(call, status, says)                                        \
  do {                                                                        \
    const char *wrong_ = check_comm_failure((call), (status), (says), #call); \
    if (wrong_ != NULL) return wrong_;                                        \
  } while (0)
const char *check_comm_failure(rill_status status, rill_status expected, const char *says, const char *call);

/* The same checks as asserts, in the thread of the test. */
#define assert_comm(call) check_comm_ok((call), #call, __FILE__, __LINE__)
#define assert_comm_fails(call, status, says) check_comm_fails((call), (status), (says), #call, __FILE__, __LINE__)
void check_comm_ok(rill_status status, const char *call, const char *file, int line);
void check_comm_fails(rill_status status, rill_status expected, const char *says, const char *call, const char *file,
                      int line);

/* Whether ranks are processes; whether their devices are the CPU, in one process or many. */
bool with_mpi(void);
bool on_cpu(void);
/* Whether the ranks are the machine's own GPUs. */
bool on_real_gpus(void);
/* Opens the devices of this process's ranks and returns their number. RILL_TEST_DEVICE is cpu, cuda, hip, or gpu for
 * the machine's own GPUs; the test is skipped if it has fewer than two. */
uint32_t find_devices(rill_device devices[MAX_RANKS]);
/* Creates a communicator per device. Skips the test if the machine's own GPUs have no NCCL or RCCL. */
void create_comms(const rill_device devices[], uint32_t count, const rill_comm_options *options, rill_comm comms[]);

/* Runs a body for each rank of a new communicator with that deadline (0: none), and releases all. */
typedef const char *(*rank_body)(struct rank *r);
void run_ranks(rank_body body, uint64_t timeout_ns);

/* ---- data ---- */

struct type {
  const char *name;
  uint32_t type;
  size_t size;
};
enum { TYPE_COUNT = 10 };
extern const struct type types[TYPE_COUNT];

/* The small number that stands at `index` of what a rank sends in round `seed`: at most 3, so that every result is
 * exact in every type. */
int64_t value_at(uint32_t rank, size_t index, uint32_t seed);
/* That of all ranks, combined. */
int64_t combined_at(uint32_t ranks, size_t index, uint32_t seed, uint32_t op);

void put_number(void *buffer, size_t index, uint32_t type, int64_t value);
int64_t get_number(const void *buffer, size_t index, uint32_t type);

/* A buffer of the device with its image in pinned memory. */
struct buffer {
  void *device, *host;
  size_t bytes;
};
rill_status buffer_new(const struct rank *r, size_t bytes, struct buffer *out);
void buffer_free(struct buffer *b);
rill_status buffer_upload(const struct rank *r, const struct buffer *b);
rill_status buffer_download(const struct rank *r, const struct buffer *b);

#endif
