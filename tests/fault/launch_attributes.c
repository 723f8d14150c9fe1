/* The vendor's library receives exactly the attributes of a launch (C1.8). */
#include "vendor.h"

#include "gate.rill.h"

/* The numbers that CUDA gives to the attributes of a launch. */
enum {
  ACCESS = 1,
  COOPERATIVE = 2,
  CLUSTER = 4,
  SERIALIZATION = 6,
  EVENT = 7,
  PRIORITY = 8,
  DOMAIN_OF = 10,
  CARVEOUT = 14
};

static rill_stream stream;
static rill_event event;
static uint32_t *counter;

static void set_up(void) {
  if (stream.id != 0) return;
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(rill_event_create(vendor.device, NULL, &event));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, 64, &counter));
}

/* The attributes that arrived, as bits. */
static uint64_t carried(rill_stream on, const rill_launch_attribute *attributes, size_t count, uint32_t cluster) {
  rill_launch shape = rill_launch_1d(cluster == 0 ? 1 : cluster, 1);
  shape.cluster.x = cluster;
  shape.attributes = attributes;
  shape.attribute_count = count;
  assert_ok(increment_launch(on, &shape, counter));
  return vendor.fake->launch_attributes();
}

static rill_launch_attribute number(uint32_t kind, int32_t value) {
  rill_launch_attribute attribute = { kind, 0, { 0 } };
  attribute.value.i32 = value;
  return attribute;
}

static void plain_launches_carry_none(void) {
  if (!vendor.has_kernels) return;
  set_up();
  const rill_launch_attribute off[] = { number(RILL_ATTR_COOPERATIVE, 0),
                                        number(RILL_ATTR_PROGRAMMATIC_SERIALIZATION, 0) };
  assert_int_equal(carried(stream, NULL, 0, 0), 0);
  assert_int_equal(carried(stream, off, 2, 0), 0);
  assert_int_equal(carried(stream, NULL, 0, 1), 0);
}

static void cooperative_launches_are_cooperative(void) {
  if (!vendor.has_kernels) return;
  set_up();
  const rill_launch_attribute on = number(RILL_ATTR_COOPERATIVE, 1);
  assert_int_equal(carried(stream, &on, 1, 0), UINT64_C(1) << COOPERATIVE);
}

/* Only for the vendor that has them. */
static void each_attribute_arrives_alone(void) {
  if (!vendor.has_kernels || !vendor.cuda) return;
  set_up();
  rill_launch_attribute attributes[6] = {
    number(RILL_ATTR_PRIORITY, -2),          number(RILL_ATTR_PROGRAMMATIC_SERIALIZATION, 1),
    number(RILL_ATTR_PROGRAMMATIC_EVENT, 0), number(RILL_ATTR_ACCESS_POLICY, 0),
    number(RILL_ATTR_MEMORY_SYNC_DOMAIN, 1), number(RILL_ATTR_CARVEOUT, 25)
  };
  static const int numbers[6] = { PRIORITY, SERIALIZATION, EVENT, ACCESS, DOMAIN_OF, CARVEOUT };
  memset(&attributes[3].value, 0, sizeof attributes[3].value);
  attributes[2].value.event = event;
  attributes[3].value.access.base = counter;
  attributes[3].value.access.size = 64;
  attributes[3].value.access.hit_ratio = 1;
  uint64_t all = 0;
  for (int i = 0; i < 6; i++) {
    assert_int_equal(carried(stream, &attributes[i], 1, 0), UINT64_C(1) << numbers[i]);
    all |= UINT64_C(1) << numbers[i];
  }
  assert_int_equal(carried(stream, NULL, 0, 2), UINT64_C(1) << CLUSTER);
  assert_int_equal(carried(stream, attributes, 6, 2), all | UINT64_C(1) << CLUSTER);
}

/* C3.8 */
static void held_launches_carry_them_later(void) {
  if (!vendor.has_kernels) return;
  set_up();
  rill_stream held, other;
  rill_event first;
  rill_launch_attribute on = number(RILL_ATTR_COOPERATIVE, 1);
  assert_ok(rill_stream_create(vendor.device, NULL, &held));
  assert_ok(rill_stream_create(vendor.device, NULL, &other));
  assert_ok(rill_event_create(vendor.device, NULL, &first));
  assert_ok(rill_stream_wait_event(held, first, 0));
  assert_int_equal(carried(stream, NULL, 0, 0), 0);
  assert_int_equal(carried(held, &on, 1, 0), 0); /* not yet */
  on.kind = 0;
  assert_ok(rill_stream_record_event(other, first, 0));
  assert_int_equal(vendor.fake->launch_attributes(), UINT64_C(1) << COOPERATIVE);
  assert_ok(rill_stream_synchronize(held));
  assert_ok(rill_event_release(first));
  assert_ok(rill_stream_release(held));
  assert_ok(rill_stream_release(other));
}

TESTS_ONCE("launch attributes", TEST(vendor_begin), TEST(plain_launches_carry_none),
           TEST(cooperative_launches_are_cooperative), TEST(each_attribute_arrives_alone),
           TEST(held_launches_carry_them_later))
