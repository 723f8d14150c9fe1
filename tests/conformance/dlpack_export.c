/* rill_dlpack_export */
#include "support/native.h"

static rill_stream stream;

static unsigned releases;
static void count_release(void *user) { releases += user == &releases; }

static rill_tensor matrix(void *data, const int64_t *shape) {
  rill_tensor tensor = RILL_TENSOR_INIT;
  tensor.data = data;
  tensor.type_code = RILL_TENSOR_UINT;
  tensor.type_bits = 32;
  tensor.dimensions = 2;
  tensor.shape = shape;
  return tensor;
}

static const int64_t square[] = { 8, 8 }; /* the shape of an array of CELLS elements */

static rill_status export(const rill_tensor *tensor, intptr_t consumer, rill_dlpack **out) {
  void *managed = &managed;
  const rill_status status = rill_dlpack_export(stream, tensor, consumer, count_release, &releases, &managed);
  if (status != RILL_OK) assert_null(managed);
  *out = managed;
  return status;
}
#define assert_refuses(tensor, consumer, status) \
  assert_fails_in("rill_dlpack_export", export((tensor), (consumer), &(rill_dlpack *){ NULL }), status)

static void begin(void) {
  stream = new_stream("producer");
  releases = 0;
}

static rill_status call_with_handle(uint64_t id) {
  void *managed = &managed;
  const rill_tensor tensor = matrix(dut.memory, square);
  const rill_status status =
      rill_dlpack_export((rill_stream){ id }, &tensor, RILL_DLPACK_NO_STREAM, NULL, NULL, &managed);
  assert_null(managed);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_dlpack_export", call_with_handle); }

static void refuses_null(void) {
  begin();
  const rill_tensor tensor = matrix(dut.memory, square);
  void *managed;
  assert_fails(rill_dlpack_export(stream, NULL, -1, NULL, NULL, &managed), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_dlpack_export(stream, &tensor, -1, NULL, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static rill_status call_with_tensor(const void *tensor) {
  rill_dlpack *managed;
  const rill_status status = export(tensor, RILL_DLPACK_NO_STREAM, &managed);
  if (status == RILL_OK) managed->deleter(managed);
  return status;
}

/* C1.4 */
static void accepts_older_and_newer_tensors(void) {
  begin();
  const rill_tensor tensor = matrix(dut.memory, square);
  takes_grown_options("rill_dlpack_export", call_with_tensor, &tensor, sizeof tensor, offsetof(rill_tensor, strides));
}

static int32_t expected_type(uint32_t kind) {
  if (dut.info.backend == RILL_BACKEND_CPU) return 1;
  const bool cuda = dut.info.backend == RILL_BACKEND_CUDA;
  if (kind == RILL_MEMORY_PINNED) return cuda ? 3 : 11;
  if (kind == RILL_MEMORY_MANAGED) return cuda ? 13 : 10;
  return cuda ? 2 : 10;
}

/* A consumer reads the fields at the offsets that DLPack's header defines. */
static void describes_the_array(void) {
  begin();
  static const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (kinds[i] == RILL_MEMORY_MANAGED && !rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL)) continue;
    float *data = NULL;
    assert_ok(rill_alloc(dut.device, 100 * sizeof *data, kinds[i], (void **)&data));
    const int64_t shape[] = { 2, 3, 4 };
    rill_tensor tensor = RILL_TENSOR_INIT;
    tensor.data = data + 10;
    tensor.type_code = RILL_TENSOR_FLOAT;
    tensor.type_bits = 32;
    tensor.dimensions = 3;
    tensor.shape = shape;
    tensor.read_only = i == 1;
    rill_dlpack *managed = NULL;
    assert_ok(export(&tensor, RILL_DLPACK_NO_STREAM, &managed));
    const unsigned char *const bytes = (const unsigned char *)managed;
    uint32_t version[2];
    memcpy(version, bytes, sizeof version);
    assert_int_equal(version[0], 1);
    uint64_t flags;
    memcpy(&flags, bytes + 24, sizeof flags);
    assert_int_equal(flags, i == 1 ? 1 : 0);
    float *found;
    memcpy(&found, bytes + 32, sizeof found);
    assert_ptr_equal(found, data + 10);
    int32_t numbers[3]; /* type and number of the device, and dimensions */
    memcpy(numbers, bytes + 40, sizeof numbers);
    assert_int_equal(numbers[0], expected_type(kinds[i]));
    assert_int_equal(numbers[1], dut.gpu ? dut.info.ordinal : 0);
    assert_int_equal(numbers[2], 3);
    assert_int_equal(bytes[52], 2);  /* type code */
    assert_int_equal(bytes[53], 32); /* bits per element */
    assert_int_equal(bytes[54], 1);  /* lanes, a 16-bit number */
    assert_int_equal(bytes[55], 0);
    const int64_t strides[] = { 12, 4, 1 };
    assert_memory_equal(managed->shape, shape, sizeof shape);
    assert_true((const int64_t *)managed->shape != shape);
    assert_memory_equal(managed->strides, strides, sizeof strides);
    assert_int_equal(managed->byte_offset, 0);
    assert_int_equal(releases, 0);
    managed->deleter(managed);
    assert_int_equal(releases, 1);
    releases = 0;
    assert_ok(rill_free(data));
  }
}

/* M11: each element has to lie inside the allocation, whatever the sign of the strides. */
static void refuses_arrays_outside_their_allocation(void) {
  begin();
  const int64_t all[] = { CELLS }, more[] = { CELLS + 1 }, back[] = { -1 }, wide[] = { 9 }, none[] = { 0 };
  const int64_t huge[] = { INT64_MAX }, apart[] = { INT64_MAX }, two[] = { 2 };
  rill_tensor tensor = matrix(dut.memory, all);
  tensor.dimensions = 1;
  rill_dlpack *managed;
  assert_ok(export(&tensor, RILL_DLPACK_NO_STREAM, &managed));
  managed->deleter(managed);
  tensor.shape = more;
  if (dut.gpu) {
    assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_OUT_OF_RANGE);
    assert_says("260 bytes");
  }
  tensor.shape = all;
  tensor.strides = back;
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_OUT_OF_RANGE);
  assert_says("252 bytes before");
  tensor.data = dut.memory + CELLS - 1;
  assert_ok(export(&tensor, RILL_DLPACK_NO_STREAM, &managed));
  managed->deleter(managed);
  tensor = matrix(dut.memory, wide);
  tensor.dimensions = 1;
  tensor.strides = wide; /* 8 * 9 + 1 elements */
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_OUT_OF_RANGE);
  tensor.shape = two, tensor.strides = apart;
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_INVALID_ARGUMENT);
  tensor.shape = huge, tensor.strides = NULL;
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_INVALID_ARGUMENT);
  /* an array without elements has none outside the allocation */
  tensor = matrix(NULL, none);
  tensor.dimensions = 1;
  assert_ok(export(&tensor, RILL_DLPACK_NO_STREAM, &managed));
  managed->deleter(managed);
  assert_int_equal(releases, 3);
}

static void refuses_invalid_arrays(void) {
  begin();
  const int64_t negative[] = { 4, -1 };
  rill_tensor tensor = matrix(dut.memory, negative);
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_INVALID_ARGUMENT);
  assert_says("shape[1] is -1");
  tensor = matrix(dut.memory, NULL);
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_INVALID_ARGUMENT);
  tensor = matrix(NULL, square);
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_INVALID_ARGUMENT);
  tensor = matrix(dut.memory, square);
  tensor.type_bits = 0;
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_INVALID_ARGUMENT);
  tensor = matrix(dut.memory, square);
  tensor.dimensions = 65;
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_INVALID_ARGUMENT);
  uint32_t local[CELLS] = { 0 };
  tensor = matrix(local, square);
  if (dut.gpu) assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_NOT_FOUND);
  assert_int_equal(releases, 0);
}

static void refuses_memory_of_another_device(void) {
  needs_second_device();
  if (!dut.gpu) return;
  begin();
  uint32_t *p = NULL;
  assert_ok(rill_alloc(dut.second, CELLS * sizeof *p, RILL_MEMORY_DEVICE, (void **)&p));
  const rill_tensor tensor = matrix(p, square);
  assert_refuses(&tensor, RILL_DLPACK_NO_STREAM, RILL_ERROR_WRONG_DEVICE);
  assert_ok(rill_free(p));
}

/* Stream numbers as in the Python array API. */
static void refuses_unknown_stream_numbers(void) {
  begin();
  const rill_tensor tensor = matrix(dut.memory, square);
  static const intptr_t cpu[] = { 0, 1, 2, -2, 4096 }, cuda[] = { 0, -2, INTPTR_MIN }, hip[] = { 1, 2, -2 };
  const bool is_cuda = dut.info.backend == RILL_BACKEND_CUDA;
  const intptr_t *const numbers = !dut.gpu ? cpu : is_cuda ? cuda : hip;
  for (size_t i = 0; i < (dut.gpu ? 3 : 5); i++) assert_refuses(&tensor, numbers[i], RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(releases, 0);
}

/* The consumer's stream waits for the producer's work; the producer's stream is not delayed. */
static void orders_the_consumer(void) {
  if (!native_available()) return;
  begin();
  const uintptr_t native = native_stream_create(dut.device);
  rill_stream consumer;
  assert_ok(rill_stream_import(dut.device, native, NULL, &consumer));
  keep_stream_until_end(consumer);
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 7);
  const rill_tensor tensor = matrix(dut.memory, square);
  rill_dlpack *managed;
  assert_ok(export(&tensor, (intptr_t)native, &managed));
  read_cell(consumer, 0);
  assert_false(is_complete(consumer));
  gate_open(gate);
  assert_completes(consumer);
  assert_int_equal(dut.host[0], 7);
  managed->deleter(managed);

  /* also a stream that was not imported, and the vendor's default streams */
  const uintptr_t other = native_stream_create(dut.device);
  assert_ok(export(&tensor, (intptr_t)other, &managed));
  managed->deleter(managed);
  const bool cuda = dut.info.backend == RILL_BACKEND_CUDA;
  for (intptr_t number = cuda ? 1 : 0; number <= (cuda ? 2 : 0); number++) {
    assert_ok(export(&tensor, number, &managed));
    managed->deleter(managed);
  }
  assert_completes(stream);
  assert_ok(rill_stream_release(consumer));
  assert_ok(rill_device_synchronize(dut.device));
  native_stream_destroy(native);
  native_stream_destroy(other);
}

/* A stream that was imported with a release function is also accepted. */
static void count_end(void *user, uintptr_t native) {
  (void)native;
  *(unsigned *)user += 1;
}

static void accepts_streams_that_others_imported(void) {
  if (!native_available()) return;
  begin();
  unsigned ended = 0;
  const uintptr_t native = native_stream_create(dut.device);
  const rill_import_options options = { sizeof options, RILL_IMPORT_BORROW, "theirs", count_end, &ended };
  rill_stream theirs;
  assert_ok(rill_stream_import(dut.device, native, &options, &theirs));
  const rill_tensor tensor = matrix(dut.memory, square);
  rill_dlpack *managed;
  assert_ok(export(&tensor, (intptr_t)native, &managed));
  managed->deleter(managed);
  assert_int_equal(ended, 0);
  assert_ok(rill_stream_release(theirs));
  assert_int_equal(ended, 1);
  assert_ok(rill_device_synchronize(dut.device));
  native_stream_destroy(native);
}

TESTS_ON_EACH_DEVICE("rill_dlpack_export", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(accepts_older_and_newer_tensors), TEST(describes_the_array),
                     TEST(refuses_arrays_outside_their_allocation), TEST(refuses_invalid_arrays),
                     TEST(refuses_memory_of_another_device), TEST(refuses_unknown_stream_numbers),
                     TEST(orders_the_consumer), TEST(accepts_streams_that_others_imported))
