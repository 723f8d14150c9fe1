/* RILL_ARGS in C and, through args.cpp, in C++: counts, sizes and values of its arguments. */
#include <rill/kernel.h>
#include <rill/memory.h>

#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                   \
  do {                                                     \
    if (!(condition)) {                                    \
      failures++;                                          \
      (void)printf("line %d: %s\n", __LINE__, #condition); \
    }                                                      \
  } while (0)

/* Receives the arguments of a launch; reads the values within the statement, as a launch does. */
static size_t copy_args(unsigned char *values, size_t *sizes, const rill_arg *args, size_t count) {
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    sizes[i] = args[i].size;
    memcpy(values + used, args[i].data, args[i].size);
    used += args[i].size;
  }
  return count;
}

static unsigned char values[1024];
static size_t sizes[64];

static int function(void) { return 77; }

static void check_counts(void) {
  CHECK(copy_args(values, sizes, RILL_ARGS()) == 0);
  CHECK(copy_args(values, sizes, RILL_ARGS(1)) == 1);
  CHECK(copy_args(values, sizes, RILL_ARGS(1, 2)) == 2);
  CHECK(copy_args(values, sizes, RILL_ARGS(1, 2, 3, 4, 5)) == 5);
  CHECK(copy_args(values, sizes, RILL_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)) == 16);
  CHECK(copy_args(values, sizes,
                  RILL_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                            26, 27, 28, 29, 30, 31)) == 31);
  CHECK(copy_args(values, sizes,
                  RILL_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                            26, 27, 28, 29, 30, 31, 32)) == 32);
  for (int i = 0; i < 32; i++) {
    int value;
    memcpy(&value, values + (size_t)i * sizeof value, sizeof value);
    CHECK(sizes[i] == sizeof(int) && value == i + 1);
  }
}

/* Each argument has the size of its own type. */
static void check_types(void) {
  char character = 'c';
  signed char small = -1;
  short number = -2;
  float single = 1.5f;
  double wide = 2.5;
  bool truth = true;
  float array[4] = { 1, 2, 3, 4 };
  const float *const pointer = array;
  const int constant = 9;
  CHECK(copy_args(values, sizes, RILL_ARGS(character, small, number, single, wide, truth)) == 6);
  const size_t expected[] = { 1, 1, 2, 4, 8, 1 };
  for (int i = 0; i < 6; i++) CHECK(sizes[i] == expected[i]);

  /* Arrays are passed as pointers; qualifiers are dropped. */
  CHECK(copy_args(values, sizes, RILL_ARGS(array, pointer, constant)) == 3);
  CHECK(sizes[0] == sizeof(void *) && sizes[1] == sizeof(void *) && sizes[2] == sizeof(int));
  const float *first = NULL, *second = NULL;
  memcpy(&first, values, sizeof first);
  memcpy(&second, values + sizeof first, sizeof second);
  CHECK(first == array && second == array);
}

/* Values without an address. */
static void check_rvalues(void) {
  int n = 3;
  CHECK(copy_args(values, sizes,
                  RILL_ARGS(n + 1, 2.0f, 2.0, function(), (function(), 5), n > 2 ? 6u : 7u, 1ull << 40)) == 7);
  const size_t expected[] = { 4, 4, 8, 4, 4, 4, 8 };
  for (int i = 0; i < 7; i++) CHECK(sizes[i] == expected[i]);
  int sum, result;
  unsigned long long big;
  memcpy(&sum, values, sizeof sum);
  memcpy(&result, values + 16, sizeof result);
  memcpy(&big, values + 28, sizeof big);
  CHECK(sum == 4 && result == 77 && big == 1ull << 40);
}

struct point {
  float x;
  long long z;
};
struct row {
  double values[5];
};
union either {
  int number;
  char parts[12];
};
enum color { RED, GREEN };
struct bits {
  unsigned low : 3;
  int high : 20;
};

static struct point make_point(float x) {
  struct point made;
  memset(&made, 0, sizeof made);
  made.x = x;
  made.z = 1ll << 40;
  return made;
}

/* Structs and the like have no conversion to rely on: an argument is the value itself. */
static void check_structs(void) {
  const struct point constant = make_point(2);
  struct point points[2] = { make_point(3), make_point(4) };
  const struct row row = { { 1, 2, 3, 4, 5 } };
  volatile int changing = 6;
  union either either;
  const enum color color = GREEN;
  struct bits bits;
  memset(&either, 7, sizeof either);
  bits.low = 5;
  bits.high = -3;
  int (*const call)(void) = function;
  CHECK(copy_args(values, sizes, RILL_ARGS(constant, points[1], make_point(5), row, either, color, changing)) == 7);
  const size_t expected[] = {
    sizeof constant, sizeof constant, sizeof constant, sizeof row, sizeof either, sizeof color, 4
  };
  size_t used = 0;
  for (int i = 0; i < 7; i++) {
    CHECK(sizes[i] == expected[i]);
    used += expected[i];
  }
  for (int i = 0; i < 3; i++) {
    struct point given;
    memcpy(&given, values + (size_t)i * sizeof given, sizeof given);
    CHECK(given.z == 1ll << 40 && (int)given.x == (i == 0 ? 2 : i + 3));
  }
  CHECK(memcmp(values + 3 * sizeof constant, &row, sizeof row) == 0);
  CHECK(memcmp(values + 3 * sizeof constant + sizeof row, &either, sizeof either) == 0);
  int given_color, given_number;
  memcpy(&given_color, values + used - 8, sizeof given_color);
  memcpy(&given_number, values + used - 4, sizeof given_number);
  CHECK(given_color == GREEN && given_number == 6);

  /* Compilers differ in what type a bit-field has by itself. */
  CHECK(copy_args(values, sizes, RILL_ARGS((unsigned)bits.low, bits.high + 0, points, "text", call, make_point(1).x)) ==
        6);
  const size_t others[] = { 4, 4, sizeof(void *), sizeof(void *), sizeof(void *), sizeof(float) };
  for (int i = 0; i < 6; i++) CHECK(sizes[i] == others[i]);
  int low, high;
  memcpy(&low, values, sizeof low);
  memcpy(&high, values + 4, sizeof high);
  CHECK(low == 5 && high == -3);
}

/* The argument is evaluated once. */
static void check_evaluation(void) {
  int n = 0;
  CHECK(copy_args(values, sizes, RILL_ARGS(++n)) == 1);
  CHECK(n == 1);
}

static struct {
  size_t size;
  uint32_t kind;
} asked;

/* RILL_NEW calls this function instead of the library's. */
RILL_API rill_status rill_alloc(rill_device device, size_t size, uint32_t kind, void **out) {
  (void)device;
  asked.size = size;
  asked.kind = kind;
  *out = NULL;
  return RILL_OK;
}

/* A count of any type, a pointer to any type, expressions among them. */
static void check_new(void) {
  struct point *points = NULL, *rows[2] = { NULL, NULL };
  const struct row **pointers = NULL;
  const unsigned short few = 3;
  struct bits bits;
  rill_device device;
  memset(&device, 0, sizeof device);
  bits.low = 5;
  bits.high = 9;
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, few, &points) == RILL_OK && asked.size == 3 * sizeof(struct point));
  CHECK(asked.kind == RILL_MEMORY_PINNED);
  CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, bits.low, rows + 1) == RILL_OK && asked.size == 5 * sizeof(struct point));
  CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, 2 + 2, &pointers) == RILL_OK && asked.size == 4 * sizeof(void *));
  CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, SIZE_MAX / 2, &points) == RILL_OK && asked.size == SIZE_MAX);
}

/* The other convenience macros. */
static void check_launch_1d(void) {
  const rill_launch launch = rill_launch_1d(1000, 256);
  CHECK(launch.struct_size == sizeof launch && launch.grid.x == 4 && launch.block.x == 256);
}

int main(void) {
  check_counts();
  check_types();
  check_rvalues();
  check_structs();
  check_evaluation();
  check_new();
  check_launch_1d();
  if (failures == 0) (void)puts("RILL_ARGS makes what it is given");
  return failures != 0;
}
