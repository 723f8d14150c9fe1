/* The kernel dialect: device variables, functions, templates, structs, wide numbers, indices, printing (C6.1). */
#include "support/testing.h"

#include "dialect.rill.h"

static const rill_launch one_thread = {
  sizeof one_thread, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

static void *pinned(size_t bytes) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_PINNED, &p));
  memset(p, 0, bytes);
  return p;
}

static void constants_have_their_values(void) {
  rill_stream stream = new_stream("stream");
  double *out = pinned(10 * sizeof *out);
  assert_ok(read_constants_launch(stream, &one_thread, out));
  assert_completes(stream);
  const double expected[] = { -7, 1, 2, 3, 4, 5, 6, 1.5, -2, 4e10 };
  for (int i = 0; i < 10; i++) assert_true(out[i] == expected[i]);
  assert_ok(rill_free(out));
}

/* Uses one module, and sets the variables first, because another test of this process may have changed them. */
static void globals_keep_their_values_between_launches(void) {
  rill_stream stream = new_stream("stream");
  unsigned long long *counts = pinned(4 * sizeof *counts);
  float *array = pinned(16 * sizeof *array);
  const rill_launch launch = rill_launch_1d(100, 25);
  assert_ok(read_globals_launch(stream, &one_thread, counts, array));
  assert_ok(change_globals_launch(stream, &launch, 0.5f));
  assert_ok(change_globals_launch(stream, &launch, 0.25f));
  assert_ok(read_globals_launch(stream, &one_thread, counts + 2, array + 8));
  assert_completes(stream);
  assert_int_equal(counts[0], 5);
  assert_int_equal(counts[1], 0);
  assert_int_equal(counts[2], 205);
  assert_int_equal(counts[3], 200);
  for (int i = 0; i < 8; i++) assert_true(array[i] == 0 && array[8 + i] == 0.75f);
  assert_ok(rill_free(counts));
  assert_ok(rill_free(array));
}

static void functions_templates_and_classes_work(void) {
  enum { THREADS = 100 };
  rill_stream stream = new_stream("stream");
  int *out = pinned(4 * THREADS * sizeof *out);
  const rill_launch launch = rill_launch_1d(THREADS, 20);
  assert_ok(use_functions_launch(stream, &launch, out));
  assert_completes(stream);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(out[4 * i], i - i - 2 * i - 3 * i);
    assert_int_equal(out[4 * i + 1], -3 * i);
    assert_int_equal(out[4 * i + 2], i * i * i);
    assert_int_equal(out[4 * i + 3], 2 * (10 + i) + i);
  }
  assert_ok(rill_free(out));
}

static void structs_are_passed_by_value(void) {
  enum { THREADS = 12 };
  rill_stream stream = new_stream("stream");
  struct dialect_point *array = pinned(THREADS * sizeof *array), p = { 0.25f, 9, 1ll << 40 };
  double *out = pinned(THREADS * sizeof *out);
  const dialect_matrix m = { { { 1, 2 }, { 3, 4 }, { 5, 6 } } };
  for (int i = 0; i < THREADS; i++) array[i] = (struct dialect_point){ (float)i, (short)-i, i };
  const rill_launch launch = rill_launch_1d(THREADS, 4);
  assert_ok(take_structs_launch(stream, &launch, p, array, 200, m, out));
  p.z = 0;
  assert_completes(stream);
  for (int i = 0; i < THREADS; i++)
    assert_true(out[i] == 0.25 + i + 1099511627776.0 + 200 + (double)m.values[i % 3][i % 2]);
  /* Launches the same kernel with RILL_ARGS, which knows only the type of a struct. */
  const unsigned char between = 7;
  rill_kernel kernel = new_kernel(&dialect_bundle, "take_structs");
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(p, array, between, m, out)));
  p.x = 0;
  assert_completes(stream);
  for (int i = 0; i < THREADS; i++) assert_true(out[i] == 0.25 + i + 7 + (double)m.values[i % 3][i % 2]);
  assert_ok(rill_free(array));
  assert_ok(rill_free(out));
}

static void every_thread_knows_its_place(void) {
  const rill_dim3 grid = { 2, 3, 4 }, block = { 5, 2, 3 };
  rill_stream stream = new_stream("stream");
  rill_launch launch = RILL_LAUNCH_INIT;
  launch.grid = grid;
  launch.block = block;
  const struct dialect_place *out = pinned(24 * 30 * sizeof *out), *p = out;
  assert_ok(places_launch(stream, &launch, (struct dialect_place *)(uintptr_t)out));
  assert_completes(stream);
  for (unsigned b = 0; b < 24; b++) {
    for (unsigned t = 0; t < 30; t++, p++) {
      const struct dialect_place expected = {
        { t % 5, t / 5 % 2, t / 10 }, { b % 2, b / 2 % 3, b / 6 }, { 5, 2, 3 }, { 2, 3, 4 }
      };
      assert_memory_equal(p, &expected, sizeof expected);
    }
  }
  assert_ok(rill_free((void *)(uintptr_t)out));
}

static void numbers_of_64_bits_work(void) {
  rill_stream stream = new_stream("stream");
  unsigned long long *out = pinned(6 * sizeof *out);
  const unsigned long long a = 0x123456789abcdef0ull;
  const long long b = -1000000000007ll;
  const size_t n = (size_t)1 << 40;
  assert_ok(wide_arithmetic_launch(stream, &one_thread, a, b, n, out));
  assert_completes(stream);
  const unsigned long long expected[] = { a * 3 + (unsigned long long)b,
                                          (unsigned long long)(b / 7),
                                          (unsigned long long)(b % 7),
                                          a >> 33 | a << 31,
                                          n,
                                          a ^ 0x5a5a5aull };
  for (int i = 0; i < 6; i++) assert_int_equal(out[i], expected[i]);
  assert_ok(rill_free(out));
}

/* Programs for GPUs rely on this: a float4 is read as eight halves, and an atomic function on a float is used on its
 * bits. */
static void memory_can_be_read_as_other_types(void) {
  rill_stream stream = new_stream("stream");
  union {
    float f;
    int i;
  } four = { 0 };
  union {
    double d;
    short s;
  } eight = { 0 };
  void *memory = pinned(sizeof eight);
  memset(memory, 0, sizeof eight);
  float *floats = pinned(2 * sizeof *floats);
  int *ints = pinned(2 * sizeof *ints);
  double *doubles = pinned(2 * sizeof *doubles);
  short *shorts = pinned(2 * sizeof *shorts);
  assert_ok(see_bytes_launch(stream, &one_thread, memory, memory, memory, memory, floats, ints, doubles, shorts));
  assert_completes(stream);
  assert_memory_equal(&floats[0], &four.f, sizeof four.f);
  four.i = 7;
  assert_memory_equal(&floats[1], &four.f, sizeof four.f);
  assert_int_equal(ints[0], 7);
  four.f = 2;
  assert_int_equal(ints[1], four.i);
  memcpy(&eight, &four, sizeof four); /* offset of the doubles */
  assert_memory_equal(&doubles[0], &eight.d, sizeof eight.d);
  eight.s = 7;
  assert_memory_equal(&doubles[1], &eight.d, sizeof eight.d);
  assert_int_equal(shorts[0], 7);
  eight.d = 2;
  assert_int_equal(shorts[1], eight.s);
  void *const all[] = { memory, floats, ints, doubles, shorts };
  for (int i = 0; i < 5; i++) assert_ok(rill_free(all[i]));
}

/* The vendor decides where a kernel's output is printed; the test only checks that the kernel runs. */
static void a_kernel_may_print(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(print_line_launch(stream, &one_thread, 7, 2.5));
  assert_completes(stream);
}

TESTS_ON_EACH_DEVICE("the kernel dialect", TEST(constants_have_their_values),
                     TEST(globals_keep_their_values_between_launches), TEST(functions_templates_and_classes_work),
                     TEST(structs_are_passed_by_value), TEST(every_thread_knows_its_place),
                     TEST(numbers_of_64_bits_work), TEST(memory_can_be_read_as_other_types), TEST(a_kernel_may_print))
