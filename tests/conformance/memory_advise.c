/* rill_memory_advise */
#include "managed.h"

static rill_status call_with_device(uint64_t id) {
  return rill_memory_advise(dut.memory, 4, (rill_device){ id }, RILL_ADVICE_ACCESSED_BY);
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_memory_advise", call_with_device); }

/* C1.6, M24, R8 */
static void refuses_unknown_advice(void) {
  unsigned char *p = new_managed(0);
  const uint32_t bad[] = { 0, RILL_ADVICE_NOT_ACCESSED_BY + 1, 100, UINT32_MAX };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_fails(rill_memory_advise(p, 1, dut.device, bad[i]), RILL_ERROR_INVALID_ARGUMENT);
    assert_fails(rill_memory_advise(p, 0, dut.device, bad[i]), RILL_ERROR_INVALID_ARGUMENT);
  }
  assert_ok(rill_free(p));
}

/* C1.6, M24 */
static void refuses_unmanaged_memory(void) {
  char local = 0;
  assert_fails(rill_memory_advise(&local, 1, dut.device, RILL_ADVICE_READ_MOSTLY), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_memory_advise(NULL, 1, dut.device, RILL_ADVICE_READ_MOSTLY), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_memory_advise(dut.memory, 1, dut.device, RILL_ADVICE_READ_MOSTLY), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_memory_advise(dut.host, 1, dut.device, RILL_ADVICE_READ_MOSTLY), RILL_ERROR_INVALID_ARGUMENT);
}

/* C1.6, M24 */
static void refuses_ranges_past_the_end(void) {
  unsigned char *p = new_managed(0);
  assert_fails(rill_memory_advise(p, MANAGED_BYTES + 1, dut.device, RILL_ADVICE_READ_MOSTLY), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_memory_advise(p + 1, SIZE_MAX, dut.device, RILL_ADVICE_READ_MOSTLY), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_free(p));
}

static void does_nothing_for_zero_bytes(void) {
  assert_ok(rill_memory_advise(NULL, 0, dut.device, RILL_ADVICE_READ_MOSTLY));
}

/* C5.4: every kind of advice about the memory's own device, for the whole range and for a part, is accepted and changes
 * no byte. */
static void accepts_every_kind_of_advice(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *p = new_managed(1);
  for (uint32_t advice = RILL_ADVICE_READ_MOSTLY; advice <= RILL_ADVICE_NOT_ACCESSED_BY; advice++) {
    assert_ok_or_unsupported(rill_memory_advise(p, MANAGED_BYTES, dut.device, advice));
    assert_ok_or_unsupported(rill_memory_advise(p + 65536, 65536, dut.device, advice));
    const uint8_t value = (uint8_t)(advice + 10);
    assert_ok(rill_fill_async(stream, p + 1, &value, 1, MANAGED_BYTES - 1));
    assert_completes(stream);
    assert_int_equal(p[0], 1);
    for (size_t i = 1; i < MANAGED_BYTES; i++) assert_int_equal(p[i], advice + 10);
  }
  assert_ok(rill_free(p));
}

/* The CPU stands for the host, whatever the memory's backend is. */
static void the_cpu_stands_for_the_host(void) {
  rill_device cpu = RILL_NULL_DEVICE;
  assert_ok(rill_device_open("cpu", &cpu));
  unsigned char *p = new_managed(1);
  assert_ok_or_unsupported(rill_memory_advise(p, MANAGED_BYTES, cpu, RILL_ADVICE_PREFERRED_LOCATION));
  assert_ok_or_unsupported(rill_memory_advise(p, MANAGED_BYTES, cpu, RILL_ADVICE_ACCESSED_BY));
  assert_ok_or_unsupported(rill_memory_advise(p, MANAGED_BYTES, cpu, RILL_ADVICE_NO_PREFERRED_LOCATION));
  for (size_t i = 0; i < MANAGED_BYTES; i++) assert_int_equal(p[i], 1);
  assert_ok(rill_free(p));
}

/* A GPU of another backend does not know the memory. */
static void refuses_another_backends_gpu(void) {
  needs_foreign_device();
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  assert_ok(rill_device_get_info(dut.foreign, &info));
  if (info.backend == RILL_BACKEND_CPU) skip();
  unsigned char *p = new_managed(1);
  assert_fails(rill_memory_advise(p, 1, dut.foreign, RILL_ADVICE_ACCESSED_BY), RILL_ERROR_WRONG_BACKEND);
  assert_ok(rill_free(p));
}

TESTS_ON_EACH_DEVICE("rill_memory_advise", TEST(refuses_bad_handles), TEST(refuses_unknown_advice),
                     TEST(refuses_unmanaged_memory), TEST(refuses_ranges_past_the_end),
                     TEST(does_nothing_for_zero_bytes), TEST(accepts_every_kind_of_advice),
                     TEST(the_cpu_stands_for_the_host), TEST(refuses_another_backends_gpu))
