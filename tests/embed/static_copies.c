/* Two copies of rill in one program: the C files of `one` and `two` include rill.c with RILL_STATIC.  Both work at
 * once.
 *
 * usage: static_copies DEVICE */
#include "copy.h"

#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 20 };

copy_work one, two;

static copy_work *const works[] = { one, two };
static const char *device_name;

static void *run(void *argument) {
  copy_work *const *work = argument;
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    const uint32_t value = (uint32_t)(work - works) * 1000 + round;
    if ((*work)(device_name, value, round == ROUNDS) != value) return argument;
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[2];
  int failed = 0;
  device_name = argc > 1 ? argv[1] : "cpu";
  for (int i = 0; i < 2; i++) {
    if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)&works[i]) != 0) return 1;
  }
  for (int i = 0; i < 2; i++) {
    void *result = NULL;
    failed += pthread_join(threads[i], &result) != 0 || result != NULL;
  }
  if (failed == 0) (void)printf("2 copies\n");
  return failed;
}
