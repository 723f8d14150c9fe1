/* Several copies of rill in one process: this program's, and one in each plugin that the arguments name. Each has its
 * own devices, handles and threads, all work at once, and plugins may be closed while work is running.
 *
 * usage: copies DEVICE stay|close PLUGIN ... */
#define _GNU_SOURCE
#include "copy.c"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { COPIES = 8, ROUNDS = 20 };

static struct {
  void *library;
  copy_work *work;
} copies[COPIES];
static int count_of_copies = 1;
static const char *device_name;

static void *find(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) (void)fprintf(stderr, "%s\n", dlerror());
  return symbol;
}

static void *run_one(void *argument) {
  const int i = *(const int *)argument;
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    const uint32_t value = (uint32_t)i * 1000 + round;
    if (copies[i].work(device_name, value, round == ROUNDS) != value) return argument;
  }
  return NULL;
}

/* A thread that has used a copy ends after the copy's plugin was closed. */
static pthread_barrier_t closed;
static void *outlive(void *argument) {
  void *failed = run_one(argument);
  (void)pthread_barrier_wait(&closed);
  (void)pthread_barrier_wait(&closed);
  return failed;
}

int main(int argc, char **argv) {
  int numbers[COPIES] = { 0, 1, 2, 3, 4, 5, 6, 7 }, failed = 0;
  pthread_t threads[COPIES];
  if (argc < 4 || argc - 3 >= COPIES) return 2;
  device_name = argv[1];
  copies[0].work = rill_copy_work;
  for (int i = 3; i < argc; i++, count_of_copies++) {
    void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    void *work = library != NULL ? find(library, "rill_copy_work") : NULL;
    if (work == NULL) return (void)fprintf(stderr, "%s cannot be opened\n", argv[i]), 1;
    copies[count_of_copies].library = library;
    memcpy(&copies[count_of_copies].work, &work, sizeof work);
  }
  (void)pthread_barrier_init(&closed, NULL, (unsigned)count_of_copies + 1);
  for (int i = 0; i < count_of_copies; i++) {
    if (pthread_create(&threads[i], NULL, outlive, &numbers[i]) != 0) return 1;
  }
  (void)pthread_barrier_wait(&closed);
  for (int i = 1; i < count_of_copies && strcmp(argv[2], "close") == 0; i++) failed += dlclose(copies[i].library) != 0;
  (void)pthread_barrier_wait(&closed);
  for (int i = 0; i < count_of_copies; i++) {
    void *result = NULL;
    failed += pthread_join(threads[i], &result) != 0 || result != NULL;
  }
  (void)printf("%d copies\n", count_of_copies);
  return failed;
}
