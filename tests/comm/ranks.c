#include "ranks.h"

#include <rill/device/half.h>
#include <stdio.h>

const struct type types[TYPE_COUNT] = {
  { "int8", RILL_COMM_INT8, 1 },         { "uint8", RILL_COMM_UINT8, 1 }, { "int32", RILL_COMM_INT32, 4 },
  { "uint32", RILL_COMM_UINT32, 4 },     { "int64", RILL_COMM_INT64, 8 }, { "uint64", RILL_COMM_UINT64, 8 },
  { "half", RILL_COMM_HALF, 2 },         { "float", RILL_COMM_FLOAT, 4 }, { "double", RILL_COMM_DOUBLE, 8 },
  { "bfloat16", RILL_COMM_BFLOAT16, 2 },
};

/* ---- failures ---- */

const char *check_comm_failure(rill_status status, rill_status expected, const char *says, const char *call) {
  static _Thread_local char text[2048];
  const char *said = rill_comm_last_error_text();
  if (status == expected && strstr(said, says) != NULL) return NULL;
  (void)snprintf(text, sizeof text, "%s gave %s, not %s; \"%s\" lacks \"%s\"", call, rill_status_name(status),
                 rill_status_name(expected), status != RILL_OK ? said : "", says);
  return text;
}

void check_comm_ok(rill_status status, const char *call, const char *file, int line) {
  if (status == RILL_OK) return;
  print_error("%s: %s\n", call, rill_comm_last_error_text());
  _fail(file, line);
}

void check_comm_fails(rill_status status, rill_status expected, const char *says, const char *call, const char *file,
                      int line) {
  const char *wrong = check_comm_failure(status, expected, says, call);
  if (wrong == NULL) return;
  print_error("%s\n", wrong);
  _fail(file, line);
}

/* ---- ranks ---- */

bool on_cpu(void) {
  const char *device = getenv("RILL_TEST_DEVICE");
  return device != NULL && strcmp(device, "cpu") == 0;
}

/* In one process: how many ranks the CPU is to have; 0: each is a process. */
static uint32_t ranks_of_cpu(void) {
  const char *ranks = getenv("RILL_TEST_RANKS");
  const unsigned long wanted = ranks != NULL ? strtoul(ranks, NULL, 10) : 0;
  return wanted <= MAX_RANKS ? (uint32_t)wanted : MAX_RANKS;
}

bool with_mpi(void) { return on_cpu() && ranks_of_cpu() == 0; }

bool on_real_gpus(void) {
  const char *device = getenv("RILL_TEST_DEVICE");
  return device != NULL && strcmp(device, "gpu") == 0;
}

static uint32_t open_devices(const char *backend, uint32_t most, rill_device devices[MAX_RANKS]) {
  uint32_t count = 0;
  while (count < most) {
    char name[32];
    (void)snprintf(name, sizeof name, "%.20s:%u", backend, on_cpu() ? 0 : count);
    if (rill_device_open(name, &devices[count]) != RILL_OK) break;
    count++;
  }
  return count;
}

uint32_t find_devices(rill_device devices[MAX_RANKS]) {
  const char *backend = getenv("RILL_TEST_DEVICE");
  if (!on_real_gpus()) {
    return open_devices(backend != NULL ? backend : "cuda", on_cpu() ? ranks_of_cpu() : MAX_RANKS, devices);
  }
  uint32_t count = open_devices("cuda", MAX_RANKS, devices);
  if (count < 2) count = open_devices("hip", MAX_RANKS, devices);
  if (count < 2) skip_because("this machine has fewer than two GPUs of one vendor");
  return count;
}

void create_comms(const rill_device devices[], uint32_t count, const rill_comm_options *options, rill_comm comms[]) {
  const uint64_t until = now_ns() + TIMEOUT_NS;
  rill_status status;
  do { /* a short deadline is one of joining too, which a loaded machine may miss */
    status = rill_comm_create_all(devices, count, options, comms);
  } while (status == RILL_ERROR_TIMEOUT && now_ns() < until);
  if (status == RILL_ERROR_UNSUPPORTED && on_real_gpus()) skip_because(rill_comm_last_error_text());
  assert_comm(status);
}

struct team {
  rank_body body;
  struct rank ranks[MAX_RANKS];
};

static const char *run_one(unsigned index, void *shared) {
  struct team *team = shared;
  return team->body(&team->ranks[index]);
}

static void begin_rank(struct rank *r, rill_device device, uint32_t rank, uint32_t ranks) {
  note_device(device);
  r->device = device;
  r->rank = rank;
  r->ranks = ranks;
  assert_ok(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "ranks"), &r->stream));
}

static void end_rank(struct rank *r) {
  (void)rill_stream_release(r->stream);
  assert_comm(rill_comm_release(r->comm));
}

void run_ranks(rank_body body, uint64_t timeout_ns) {
  rill_comm_options options = RILL_COMM_OPTIONS_INIT;
  options.timeout_ns = timeout_ns;
  options.label = "team";
  struct team team = { .body = body };
  if (with_mpi()) {
    rill_device cpu;
    rill_comm_id id;
    uint32_t ranks = 0, rank = 0;
    assert_ok(rill_device_open("cpu", &cpu));
    assert_comm(rill_comm_mpi_world(&id, &ranks, &rank));
    begin_rank(&team.ranks[0], cpu, rank, ranks);
    assert_comm(rill_comm_create(cpu, &id, ranks, rank, &options, &team.ranks[0].comm));
    const char *failure = body(&team.ranks[0]);
    if (failure != NULL) fail_msg("rank %u: %s", rank, failure);
    end_rank(&team.ranks[0]);
    return;
  }
  rill_device devices[MAX_RANKS];
  rill_comm comms[MAX_RANKS];
  const uint32_t count = find_devices(devices);
  assert_true(count >= 2);
  create_comms(devices, count, &options, comms);
  for (uint32_t i = 0; i < count; i++) {
    begin_rank(&team.ranks[i], devices[i], i, count);
    team.ranks[i].comm = comms[i];
  }
  run_threads(count, run_one, &team);
  for (uint32_t i = 0; i < count; i++) end_rank(&team.ranks[i]);
}

/* ---- data ---- */

int64_t value_at(uint32_t rank, size_t index, uint32_t seed) {
  uint64_t x = (rank + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (index + 1) * UINT64_C(0xbf58476d1ce4e5b9) ^ seed * 77u;
  x ^= x >> 29;
  x *= UINT64_C(0x94d049bb133111eb);
  return (int64_t)(x >> 62); /* 0 to 3 */
}

int64_t combined_at(uint32_t ranks, size_t index, uint32_t seed, uint32_t op) {
  int64_t result = value_at(0, index, seed);
  for (uint32_t i = 1; i < ranks; i++) {
    const int64_t v = value_at(i, index, seed);
    switch (op) {
      case RILL_COMM_SUM: result += v; break;
      case RILL_COMM_PRODUCT: result *= v; break;
      case RILL_COMM_MAX: result = v > result ? v : result; break;
      default: result = v < result ? v : result;
    }
  }
  return result;
}

void put_number(void *buffer, size_t index, uint32_t type, int64_t value) {
  switch (type) {
    case RILL_COMM_INT8: ((int8_t *)buffer)[index] = (int8_t)value; break;
    case RILL_COMM_UINT8: ((uint8_t *)buffer)[index] = (uint8_t)value; break;
    case RILL_COMM_INT32: ((int32_t *)buffer)[index] = (int32_t)value; break;
    case RILL_COMM_UINT32: ((uint32_t *)buffer)[index] = (uint32_t)value; break;
    case RILL_COMM_INT64: ((int64_t *)buffer)[index] = value; break;
    case RILL_COMM_UINT64: ((uint64_t *)buffer)[index] = (uint64_t)value; break;
    case RILL_COMM_HALF: ((rill_half *)buffer)[index] = rill_to_half((float)value); break;
    case RILL_COMM_FLOAT: ((float *)buffer)[index] = (float)value; break;
    case RILL_COMM_DOUBLE: ((double *)buffer)[index] = (double)value; break;
    default: ((rill_bfloat16 *)buffer)[index] = rill_to_bfloat16((float)value);
  }
}

int64_t get_number(const void *buffer, size_t index, uint32_t type) {
  switch (type) {
    case RILL_COMM_INT8: return ((const int8_t *)buffer)[index];
    case RILL_COMM_UINT8: return ((const uint8_t *)buffer)[index];
    case RILL_COMM_INT32: return ((const int32_t *)buffer)[index];
    case RILL_COMM_UINT32: return ((const uint32_t *)buffer)[index];
    case RILL_COMM_INT64: return ((const int64_t *)buffer)[index];
    case RILL_COMM_UINT64: return (int64_t)((const uint64_t *)buffer)[index];
    case RILL_COMM_HALF: return (int64_t)rill_half_to_float(((const rill_half *)buffer)[index]);
    case RILL_COMM_FLOAT: return (int64_t)((const float *)buffer)[index];
    case RILL_COMM_DOUBLE: return (int64_t)((const double *)buffer)[index];
    default: return (int64_t)rill_bfloat16_to_float(((const rill_bfloat16 *)buffer)[index]);
  }
}

rill_status buffer_new(const struct rank *r, size_t bytes, struct buffer *out) {
  *out = (struct buffer){ .bytes = bytes };
  rill_status status = rill_alloc(r->device, bytes, RILL_MEMORY_DEVICE, &out->device);
  if (status == RILL_OK) status = rill_alloc(r->device, bytes, RILL_MEMORY_PINNED, &out->host);
  return status;
}

void buffer_free(struct buffer *b) {
  (void)rill_free(b->device);
  (void)rill_free(b->host);
}

rill_status buffer_upload(const struct rank *r, const struct buffer *b) {
  return rill_copy_async(r->stream, b->device, b->host, b->bytes);
}

rill_status buffer_download(const struct rank *r, const struct buffer *b) {
  return rill_copy_async(r->stream, b->host, b->device, b->bytes);
}
