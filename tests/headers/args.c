/* RILL_ARGS in C and, through args.cpp, in C++: counts, sizes and values of what it makes. */
#include <rill/kernel.h>

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

/* What a launch gets; it looks at the values within the statement, as a launch does. */
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

  /* Arrays are passed as pointers; qualifiers go. */
  CHECK(copy_args(values, sizes, RILL_ARGS(array, pointer, constant)) == 3);
  CHECK(sizes[0] == sizeof(void *) && sizes[1] == sizeof(void *) && sizes[2] == sizeof(int));
  const float *first = NULL, *second = NULL;
  memcpy(&first, values, sizeof first);
  memcpy(&second, values + sizeof first, sizeof second);
  CHECK(first == array && second == array);
}

/* Values that have no address of their own. */
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

/* The argument is evaluated once. */
static void check_evaluation(void) {
  int n = 0;
  CHECK(copy_args(values, sizes, RILL_ARGS(++n)) == 1);
  CHECK(n == 1);
}

/* The other sugar. */
static void check_launch_1d(void) {
  const rill_launch launch = rill_launch_1d(1000, 256);
  CHECK(launch.struct_size == sizeof launch && launch.grid.x == 4 && launch.block.x == 256);
}

int main(void) {
  check_counts();
  check_types();
  check_rvalues();
  check_evaluation();
  check_launch_1d();
  if (failures == 0) (void)puts("RILL_ARGS makes what it is given");
  return failures != 0;
}
