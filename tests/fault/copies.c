/* How copies, fills and peers reach the driver: one call each, without queries of the pointers, without staging that
 * the driver would do itself, and with sizes beyond 32 bits intact (C5.3, C8.1). */
#include "children.h"
#include "support/native.h"
#include "tour.h"

static rill_stream new_one(void) {
  rill_stream stream;
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  return stream;
}

/* Every function that could query a pointer or allocate staging memory. */
static uint64_t questions(void) {
  return vendor_calls("pointer_attribute") + vendor_calls("pointer_attributes") + vendor_calls("memory_range") +
         vendor_calls("host_alloc") + vendor_calls("host_register");
}

static uint64_t copy_calls(void) {
  return vendor_calls("copy") + vendor_calls("copy_to_device") + vendor_calls("copy_from_device") +
         vendor_calls("copy_2d") + vendor_calls("copy_3d");
}

static rill_status copy_box(rill_stream stream, void *dst, const void *src) {
  rill_copy_3d box = RILL_COPY_3D_INIT;
  box.dst = dst;
  box.src = src;
  box.dst_pitch = box.src_pitch = 20;
  box.dst_slice_pitch = box.src_slice_pitch = 80;
  box.width = 16;
  box.height = box.depth = 3;
  return rill_copy_3d_async(stream, &box);
}

enum { BIG = 1 << 20 };

/* Pageable, pinned and foreign memory, small and large copies, to the device, to the host and of several dimensions. */
static void goes_to_the_driver_in_one_call(void) {
  static unsigned char pageable[BIG];
  unsigned char *there = NULL, *pinned = NULL;
  vendor_begin();
  rill_stream stream = new_one();
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, BIG, &there));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, BIG, &pinned));
  unsigned char *const hosts[] = { pageable, pinned };
  const size_t sizes[] = { 1, 4096, 65536, 65537, BIG };
  const uint64_t asked = questions(), before = copy_calls();
  uint64_t copies = 0, questions_allowed = 0;
  for (size_t h = 0; h < 2; h++) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      assert_ok(rill_copy_async(stream, there, hosts[h], sizes[i]));
      assert_ok(rill_copy_async(stream, hosts[h], there, sizes[i]));
      copies += 2;
    }
    assert_ok(rill_copy_2d_async(stream, there, 4096, hosts[h], 4100, 4095, 200));
    assert_ok(rill_copy_2d_async(stream, hosts[h], 4096, there, 4100, 4095, 200));
    assert_ok(copy_box(stream, there, hosts[h]));
    assert_ok(copy_box(stream, hosts[h], there));
    copies += 4;
    if (!vendor.cuda && h == 0) questions_allowed = 2; /* HIP reads such pageable sources late: is it one? */
  }
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(copy_calls() - before, copies);
  assert_int_equal(questions() - asked, questions_allowed);
  assert_ok(rill_free(there));
  assert_ok(rill_free(pinned));
  assert_ok(rill_stream_release(stream));
}

static void a_fill_is_one_call_where_the_driver_has_it(void) {
  unsigned char *there = NULL;
  const uint32_t pattern[4] = { 1, 2, 3, 4 };
  vendor_begin();
  rill_stream stream = new_one();
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, BIG, &there));
  static const char *const of_1d[] = { "fill_8", "fill_16", "fill_32" };
  static const char *const of_2d[] = { "fill_2d_8", "fill_2d_16", "fill_2d_32" };
  for (size_t i = 0; i < 3; i++) {
    if (!vendor_has(of_2d[i])) continue;
    const size_t size = (size_t)1 << i;
    const uint64_t line = vendor_calls(of_1d[i]), rows = vendor_calls(of_2d[i]);
    assert_ok(rill_fill_async(stream, there, pattern, size, BIG / size));
    assert_ok(rill_fill_2d_async(stream, there, 1024, pattern, size, 1000 / size, 1024));
    assert_ok(rill_fill_2d_async(stream, there, 1024, pattern, size, 1024 / size, 1024)); /* without gaps: a line */
    assert_int_equal(vendor_calls(of_1d[i]) - line, 2);
    assert_int_equal(vendor_calls(of_2d[i]) - rows, 1);
  }
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_free(there));
  assert_ok(rill_stream_release(stream));
}

/* Patterns that the driver does not have: a kernel, where the backend has one. */
static void a_wide_fill_is_a_launch(void) {
  unsigned char *there = NULL;
  const uint32_t pattern[4] = { 1, 2, 3, 4 };
  vendor_begin();
  rill_stream stream = new_one();
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, BIG, &there));
  const uint64_t before = vendor_calls("launch"), asked = questions(), copies = copy_calls();
  for (size_t size = 8; size <= 16; size *= 2) {
    assert_ok(rill_fill_async(stream, there, pattern, size, 1));
    assert_ok(rill_fill_async(stream, there, pattern, size, BIG / size));
    assert_ok(rill_fill_2d_async(stream, there, 1024, pattern, size, 1000 / size, 1024));
    assert_ok(rill_fill_2d_async(stream, there, 1024, pattern, size, 1, 1024));
  }
  assert_int_equal(vendor_calls("launch") - before, vendor.cuda ? 8 : 0);
  if (vendor.cuda) assert_int_equal(copy_calls(), copies);
  assert_int_equal(questions(), asked);
  vendor.fake->fail_call(vendor_name("launch"), 1, 999);
  const rill_status status = rill_fill_async(stream, there, pattern, 16, 1);
  assert_int_equal(status, vendor.cuda ? RILL_ERROR_BACKEND : RILL_OK);
  if (vendor.cuda) assert_says(vendor_name("launch"));
  vendor.fake->clear();
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_free(there));
  assert_ok(rill_stream_release(stream));
}

/* A kernel of one device may not be able to access another device's memory. */
static void a_wide_fill_of_a_peer_is_no_launch(void) {
  unsigned char *there = NULL, seen[16];
  const uint32_t pattern[4] = { 1, 2, 3, 4 };
  vendor_begin();
  rill_stream stream = new_one();
  assert_ok(RILL_NEW(vendor.second, RILL_MEMORY_DEVICE, BIG, &there));
  const uint64_t before = vendor_calls("launch");
  assert_ok(rill_fill_async(stream, there, pattern, 16, BIG / 16));
  assert_int_equal(vendor_calls("launch"), before);
  assert_ok(rill_copy_async(stream, seen, there + BIG - 16, sizeof seen));
  assert_ok(rill_stream_synchronize(stream));
  assert_memory_equal(seen, pattern, sizeof seen);
  assert_ok(rill_free(there));
  assert_ok(rill_stream_release(stream));
}

/* Without it: the first ones in columns of words where it can, one word of a pattern each,
 * and then copies, each of as much as is there.  A pattern that is a shorter one twice is that one. */
static void a_wide_fill_takes_few_calls(void) {
  unsigned char *there = NULL;
  const uint32_t pattern[4] = { 1, 2, 3, 4 }, twice[4] = { 5, 5, 5, 5 };
  vendor_begin();
  rill_stream stream = new_one();
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, BIG, &there));
  const uint64_t asked = questions();
  const bool columns = vendor_has("fill_2d_32");
  const char *const words = columns ? "fill_2d_32" : "fill_32";
  for (size_t size = 8; size <= 16; size *= 2) {
    const struct {
      size_t bytes;
      uint64_t from_first, from_pattern; /* doublings of 16 KiB; of one pattern of 8 bytes */
    } fills[] = { { 8, 0, 0 }, { 16384, 0, 11 }, { 16400, 1, 12 }, { 32768, 1, 12 }, { 32784, 2, 13 }, { BIG, 6, 17 } };
    for (size_t i = size == 8 ? 0 : 1; i < sizeof fills / sizeof *fills; i++) {
      const uint64_t before = vendor_calls(words), copies = copy_calls();
      assert_ok(rill_fill_async(stream, there, pattern, size, fills[i].bytes / size));
      assert_int_equal(vendor_calls(words) - before, size / 4);
      assert_int_equal(copy_calls() - copies, columns ? fills[i].from_first : fills[i].from_pattern - (size == 16));
    }
    const uint64_t fills_32 = vendor_calls("fill_32"), copies = copy_calls();
    assert_ok(rill_fill_async(stream, there, twice, size, BIG / size));
    assert_int_equal(vendor_calls("fill_32") - fills_32, 1);
    assert_int_equal(copy_calls(), copies);
  }
  assert_int_equal(questions(), asked);
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_free(there));
  assert_ok(rill_stream_release(stream));
}

/* A copy that fails in the middle is reported, and the stream continues. */
static void a_wide_fill_fails_as_its_copy_does(void) {
  unsigned char *there = NULL, seen[16];
  const uint32_t pattern[4] = { 1, 2, 3, 4 };
  vendor_begin();
  rill_stream stream = new_one();
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, BIG, &there));
  for (unsigned nth = 1; nth <= 6; nth++) {
    vendor.fake->fail_call(vendor_name("copy"), nth, 999);
    assert_fails(rill_fill_async(stream, there, pattern, 16, BIG / 16), RILL_ERROR_BACKEND);
    assert_says(vendor_name("copy"));
    vendor.fake->clear();
    assert_ok(rill_fill_async(stream, there, pattern, 16, BIG / 16));
    assert_ok(rill_copy_async(stream, seen, there + BIG - 16, sizeof seen));
    assert_ok(rill_stream_synchronize(stream));
    assert_memory_equal(seen, pattern, sizeof seen);
    assert_ok(rill_fill_async(stream, there, &(uint8_t){ 0 }, 1, BIG));
  }
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_free(there));
  assert_ok(rill_stream_release(stream));
}

/* Large fills of memory that rill does not know query it, without breaking a capture. */
static void a_wide_fill_of_foreign_memory_may_be_captured(void) {
  vendor_begin();
  dut.gpu = true;
  dut.info = vendor.info;
  assert_true(native_available());
  rill_stream stream = new_one();
  unsigned char *theirs = native_memory_alloc(vendor.device, BIG, false);
  const uint32_t pattern[4] = { 1, 2, 3, 4 };
  const uint64_t expected = vendor.cuda ? 0 : vendor_has("fill_2d_32") ? 6 : 16;
  uint64_t copies = copy_calls();
  assert_ok(rill_fill_async(stream, theirs, pattern, 16, BIG / 16));
  assert_int_equal(copy_calls() - copies, expected);
  if (native_begin_capture(stream)) {
    bool capturing = false;
    copies = copy_calls();
    assert_ok(rill_fill_async(stream, theirs, pattern, 16, BIG / 16));
    assert_int_equal(copy_calls() - copies, expected);
    assert_ok(rill_stream_is_capturing(stream, &capturing));
    assert_true(capturing);
    native_end_capture(stream);
  }
  assert_ok(rill_stream_synchronize(stream));
  native_memory_free(vendor.device, theirs, false);
  assert_ok(rill_stream_release(stream));
}

/* A held stream has to know what it may read at the call: it queries each pointer that rill does not know once. */
static void a_held_copy_asks_once(void) {
  static unsigned char pageable[4096];
  unsigned char *there = NULL;
  rill_event event;
  vendor_begin();
  rill_stream stream = new_one(), other = new_one();
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, 4096, &there));
  assert_ok(rill_event_create(vendor.device, NULL, &event));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  const uint64_t asked = vendor_calls("pointer_attribute") + vendor_calls("pointer_attributes");
  assert_ok(rill_copy_async(stream, there, pageable, 4096));
  assert_ok(rill_copy_async(stream, pageable, there, 4096));
  assert_int_equal(vendor_calls("pointer_attribute") + vendor_calls("pointer_attributes") - asked, 2);
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_event_release(event));
  assert_ok(rill_free(there));
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_stream_release(other));
}

/* ---- peers ---- */

/* P5, C1.8: the reason for a pair without a connection, and for a pair that the driver does not report. */
static void a_pair_without_a_way_says_why(void) {
  const char *why = NULL;
  bool enabled = true;
  vendor_begin();
  assert_false(rill_device_can_access_peer(vendor.device, vendor.second, &why));
  assert_string_equal(why, "the driver says that the two devices are not connected");
  assert_fails(rill_device_enable_peer(vendor.device, vendor.second), RILL_ERROR_UNSUPPORTED);
  assert_says(why);
  assert_ok(rill_device_is_peer_enabled(vendor.device, vendor.second, &enabled));
  assert_false(enabled);
  assert_ok(rill_device_disable_peer(vendor.device, vendor.second));
  assert_int_equal(vendor_calls("enable_peer") + vendor_calls("disable_peer"), 0);
  vendor.fake->fail_call(vendor_name("device_can_access_peer"), 0, 999);
  assert_false(rill_device_can_access_peer(vendor.device, vendor.second, &why));
  assert_string_equal(why, "the driver cannot say whether the two devices are connected");
  vendor.fake->clear();
}

/* P2, P6: access that other code enabled or disabled before is not a failure. */
static void peer_access_set_by_others_is_not_a_failure(void) {
  enum { ALREADY_ENABLED = 704, NOT_ENABLED = 705 };
  bool enabled = false;
  vendor_begin();
  vendor.fake->fail_call(vendor_name("enable_peer"), 1, ALREADY_ENABLED);
  assert_ok(rill_device_enable_peer(vendor.device, vendor.second));
  assert_ok(rill_device_is_peer_enabled(vendor.device, vendor.second, &enabled));
  assert_true(enabled);
  vendor.fake->fail_call(vendor_name("disable_peer"), 1, NOT_ENABLED);
  assert_ok(rill_device_disable_peer(vendor.device, vendor.second));
  assert_ok(rill_device_is_peer_enabled(vendor.device, vendor.second, &enabled));
  assert_false(enabled);
  vendor.fake->clear();
}

/* ---- beyond 32 bits ---- */

static const size_t gib = (size_t)1 << 30;

/* The bytes that the driver was asked for by `call`. */
#define BYTES_OF(call) (counted = vendor.fake->bytes(), assert_ok(call), vendor.fake->bytes() - counted)

static void sizes_reach_the_driver_uncut(void) {
  const size_t size = 5 * gib + 48;
  unsigned char *from = NULL, *to = NULL, *pinned = NULL, pattern[16];
  uint64_t counted = 0;
  vendor_begin();
  rill_stream stream = new_one();
  for (unsigned i = 0; i < 16; i++) pattern[i] = (unsigned char)(i + 1);
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, size, &from));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, size, &to));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, size, &pinned));
  vendor.fake->weightless(true);
  assert_int_equal(BYTES_OF(rill_copy_async(stream, to, from, size)), size);
  assert_int_equal(BYTES_OF(rill_copy_async(stream, to + 3, from, size - 3)), size - 3);
  assert_int_equal(BYTES_OF(rill_copy_async(stream, to, pinned, size)), size);
  assert_int_equal(BYTES_OF(rill_copy_async(stream, pinned, from, size)), size);
  for (size_t width = 1; width <= 16; width *= 2) {
    assert_int_equal(BYTES_OF(rill_fill_async(stream, to, pattern, width, size / width)), size);
    /* rows of 96 KiB, 128 KiB apart; and their doubling writes each byte once */
    assert_int_equal(
        BYTES_OF(rill_fill_2d_async(stream, to, 128 << 10, pattern, width, (size_t)(96 << 10) / width, 40960)),
        (size_t)(96 << 10) * 40960);
    /* two rows of 2 GiB and a little */
    assert_int_equal(BYTES_OF(rill_fill_2d_async(stream, to, 5 * gib / 2, pattern, width, (2 * gib + 32) / width, 2)),
                     4 * gib + 64);
  }
  assert_int_equal(BYTES_OF(rill_copy_2d_async(stream, to, 128 << 10, from, 128 << 10, 120 << 10, 40960)),
                   (size_t)(120 << 10) * 40960);
  assert_int_equal(BYTES_OF(rill_copy_2d_async(stream, to, 5 * gib / 2, from, 5 * gib / 2, 2 * gib + 32, 2)),
                   4 * gib + 64);
  assert_ok(rill_stream_synchronize(stream));
  vendor.fake->weightless(false);
  assert_ok(rill_free(from));
  assert_ok(rill_free(to));
  assert_ok(rill_free(pinned));
  assert_ok(rill_stream_release(stream));
}

/* What lies at `at` and around it, by copies of one dimension. */
static void check_bytes(rill_stream stream, const unsigned char *at, const unsigned char *expected, size_t n) {
  unsigned char seen[66];
  assert_ok(rill_copy_async(stream, seen, at, n + 2));
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(seen[0], 0xee);
  assert_memory_equal(seen + 1, expected, n);
  assert_int_equal(seen[1 + n], 0xee);
}

/* Rows and slices that lie gigabytes apart, in memory of which only those pages are there. */
static void far_rows_and_slices_are_reached(void) {
  enum { WIDTH = 64 };
  const size_t pitch = 4 * gib + 192, size = 2 * pitch + 4096;
  unsigned char *from = NULL, *to = NULL, row[WIDTH], guard[WIDTH + 2], pattern[16];
  vendor_begin();
  rill_stream stream = new_one();
  memset(guard, 0xee, sizeof guard);
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, size, &from));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, size, &to));
  for (int shape = 0; shape < 3; shape++) {
    for (size_t i = 0; i < 3; i++) {
      for (unsigned k = 0; k < WIDTH; k++) row[k] = (unsigned char)(k + 70 * i + 1);
      assert_ok(rill_copy_async(stream, from + 64 + i * pitch, row, WIDTH));
      assert_ok(rill_copy_async(stream, to + 127 + i * pitch, guard, sizeof guard));
    }
    rill_copy_3d box = RILL_COPY_3D_INIT;
    box.dst = to + 128;
    box.src = from + 64;
    box.dst_pitch = box.src_pitch = WIDTH / 2;
    box.dst_slice_pitch = box.src_slice_pitch = pitch;
    box.width = WIDTH / 2;
    box.height = 2;
    box.depth = 3;
    for (unsigned k = 0; k < 16; k++) pattern[k] = (unsigned char)(3 * k + 1);
    if (shape == 0) assert_ok(rill_copy_2d_async(stream, to + 128, pitch, from + 64, pitch, WIDTH, 3));
    if (shape == 1) assert_ok(rill_copy_3d_async(stream, &box));
    if (shape == 2) assert_ok(rill_fill_2d_async(stream, to + 128, pitch, pattern, 16, WIDTH / 16, 3));
    for (size_t i = 0; i < 3; i++) {
      for (unsigned k = 0; k < WIDTH; k++) row[k] = shape == 2 ? pattern[k % 16] : (unsigned char)(k + 70 * i + 1);
      check_bytes(stream, to + 127 + i * pitch, row, WIDTH);
    }
  }
  assert_ok(rill_free(from));
  assert_ok(rill_free(to));
  assert_ok(rill_stream_release(stream));
}

/* The driver refuses the kernel that fills. */
#define NO_KERNEL "RILL_FAKE_FAIL=cuModuleLoadDataEx:1+:999"

int main(int argc, char **argv) {
  static const struct mode modes[] = {
    MODE(goes_to_the_driver_in_one_call),
    MODE(a_fill_is_one_call_where_the_driver_has_it),
    MODE(a_wide_fill_is_a_launch),
    MODE(a_wide_fill_of_a_peer_is_no_launch),
    MODE_WITH(a_wide_fill_takes_few_calls, NO_KERNEL),
    MODE_WITH(a_wide_fill_fails_as_its_copy_does, NO_KERNEL),
    MODE(a_wide_fill_of_foreign_memory_may_be_captured),
    MODE(a_held_copy_asks_once),
    MODE_WITH(a_pair_without_a_way_says_why, "RILL_FAKE_PEERS=0"),
    MODE(peer_access_set_by_others_is_not_a_failure),
    MODE_WITH(sizes_reach_the_driver_uncut, NO_KERNEL, "RILL_FAKE_MEMORY=32768"),
    MODE_WITH(far_rows_and_slices_are_reached, "RILL_FAKE_MEMORY=32768"),
  };
  return RUN_MODES("copies and fills", argc, argv, modes);
}
