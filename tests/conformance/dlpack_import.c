/* rill_dlpack_import */
#include "support/testing.h"

static int64_t shape[] = { 4, 16 };

/* Returns a tensor as a producer would create it, in memory of the device under test. */
static rill_dlpack produced(void) {
  rill_dlpack made;
  memset(&made, 0, sizeof made);
  made.major = 1;
  made.minor = 1;
  made.data = dut.memory;
  made.device_type = dut.info.backend == RILL_BACKEND_CUDA ? 2 : dut.info.backend == RILL_BACKEND_HIP ? 10 : 1;
  made.device_id = dut.gpu ? dut.info.ordinal : 0;
  made.dimensions = 2;
  made.type_code = RILL_TENSOR_UINT;
  made.type_bits = 32;
  made.type_lanes = 1;
  made.shape = shape;
  return made;
}

static rill_status import(const rill_dlpack *managed, rill_tensor *tensor) {
  memset(tensor, 1, sizeof *tensor);
  tensor->struct_size = sizeof *tensor;
  const rill_status status = rill_dlpack_import(dut.device, managed, tensor);
  if (status != RILL_OK) assert_null(tensor->data);
  return status;
}
#define assert_refuses(managed, status) \
  assert_fails_in("rill_dlpack_import", import((managed), &(rill_tensor){ 0 }), status)

static rill_status call_with_handle(uint64_t id) {
  const rill_dlpack managed = produced();
  rill_tensor tensor = RILL_TENSOR_INIT;
  return rill_dlpack_import((rill_device){ id }, &managed, &tensor);
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_dlpack_import", call_with_handle); }

static void refuses_null(void) {
  const rill_dlpack managed = produced();
  assert_refuses(NULL, RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_dlpack_import(dut.device, &managed, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static rill_status call_with_tensor(void *tensor) {
  const rill_dlpack managed = produced();
  return rill_dlpack_import(dut.device, &managed, tensor);
}

/* C1.4 */
static void fills_older_and_newer_structs(void) {
  fills_grown_structs("rill_dlpack_import", call_with_tensor, sizeof(rill_tensor));
}

static void describes_the_array(void) {
  rill_dlpack managed = produced();
  managed.byte_offset = 8;
  managed.flags = 1;
  int64_t strides[] = { 1, 4 };
  managed.strides = strides;
  rill_tensor tensor;
  assert_ok(import(&managed, &tensor));
  assert_ptr_equal(tensor.data, dut.memory + 2);
  assert_int_equal(tensor.type_code, RILL_TENSOR_UINT);
  assert_int_equal(tensor.type_bits, 32);
  assert_int_equal(tensor.type_lanes, 1);
  assert_int_equal(tensor.dimensions, 2);
  assert_ptr_equal(tensor.shape, shape);
  assert_ptr_equal(tensor.strides, strides);
  assert_true(tensor.read_only);
}

/* The memory is used in place and in stream order. */
static void is_used_in_place(void) {
  const rill_dlpack managed = produced();
  rill_tensor tensor;
  rill_stream stream = new_stream("consumer");
  assert_ok(import(&managed, &tensor));
  const uint32_t value = 9;
  assert_ok(rill_fill_async(stream, tensor.data, &value, sizeof value, CELLS));
  assert_ok(rill_copy_async(stream, dut.host, dut.memory, CELLS * sizeof value));
  assert_completes(stream);
  for (unsigned i = 0; i < CELLS; i++) assert_int_equal(dut.host[i], 9);
}

/* An exported tensor is imported unchanged. */
static void imports_what_rill_exports(void) {
  rill_stream stream = new_stream("both");
  rill_tensor tensor = RILL_TENSOR_INIT, back;
  tensor.data = dut.memory;
  tensor.type_code = RILL_TENSOR_BFLOAT;
  tensor.type_bits = 16;
  tensor.type_lanes = 2;
  tensor.dimensions = 2;
  tensor.shape = shape;
  void *managed = NULL;
  assert_ok(rill_dlpack_export(stream, &tensor, RILL_DLPACK_NO_STREAM, NULL, NULL, &managed));
  assert_ok(import(managed, &back));
  assert_ptr_equal(back.data, dut.memory);
  assert_int_equal(back.type_code, RILL_TENSOR_BFLOAT);
  assert_int_equal(back.type_bits, 16);
  assert_int_equal(back.type_lanes, 2);
  assert_memory_equal(back.shape, shape, sizeof shape);
  assert_int_equal(back.strides[0], 16);
  assert_int_equal(back.strides[1], 1);
  assert_false(back.read_only);
  ((rill_dlpack *)managed)->deleter(managed);
}

static void refuses_other_devices(void) {
  static const int32_t types[] = { 0, 1, 2, 3, 4, 7, 8, 10, 11, 13, 14, -1 };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    rill_dlpack managed = produced();
    const int32_t own = managed.device_type;
    managed.device_type = types[i];
    const int32_t type = types[i];
    const bool usable = type == own || (own == 2 && (type == 3 || type == 13)) || (own == 10 && type == 11);
    rill_tensor tensor;
    if (usable) {
      assert_ok(import(&managed, &tensor));
    } else {
      assert_refuses(&managed, RILL_ERROR_WRONG_DEVICE);
    }
  }
  rill_dlpack managed = produced();
  managed.device_id++;
  assert_refuses(&managed, RILL_ERROR_WRONG_DEVICE);
  assert_says(dut.name);
}

static void refuses_other_versions(void) {
  rill_dlpack managed = produced();
  for (uint32_t major = 0; major <= 2; major += 2) {
    managed.major = major;
    assert_refuses(&managed, RILL_ERROR_UNSUPPORTED);
  }
  assert_says("version 2.1");
}

static void refuses_invalid_arrays(void) {
  rill_dlpack managed = produced();
  int64_t negative[] = { 4, -16 };
  managed.shape = negative;
  assert_refuses(&managed, RILL_ERROR_INVALID_ARGUMENT);
  managed = produced();
  managed.dimensions = -1;
  assert_refuses(&managed, RILL_ERROR_INVALID_ARGUMENT);
  managed = produced();
  managed.shape = NULL;
  assert_refuses(&managed, RILL_ERROR_INVALID_ARGUMENT);
  managed = produced();
  managed.data = NULL;
  assert_refuses(&managed, RILL_ERROR_INVALID_ARGUMENT);
}

TESTS_ON_EACH_DEVICE("rill_dlpack_import", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(fills_older_and_newer_structs), TEST(describes_the_array), TEST(is_used_in_place),
                     TEST(imports_what_rill_exports), TEST(refuses_other_devices), TEST(refuses_other_versions),
                     TEST(refuses_invalid_arrays))
