/* Runs a target on mutations of its valid inputs, without a fuzzer, with the same inputs in every build.
 *
 *   fuzz_NAME [COUNT [SEED [FIRST]]]   COUNT inputs, from number FIRST on (default: 20000 1 0)
 *   fuzz_NAME FILE...                  these inputs, such as those that libFuzzer found
 *
 * An input depends on the valid ones, SEED and its number alone.  A failure prints both numbers, and the bytes. */
#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { FUZZ_SANITIZED = 1 };
#elif defined(__has_feature)
enum { FUZZ_SANITIZED = __has_feature(address_sanitizer) };
#else
enum { FUZZ_SANITIZED = 0 };
#endif

enum { WARM_UP = 512 }; /* inputs after which everything that is cached exists */

static struct {
  uint8_t bytes[FUZZ_MOST_BYTES];
  size_t size;
  uint64_t seed, number;
} now;

/* ---- a failure ---- */

/* For sanitizers, which end the process by themselves. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void tell_input(void) {
  char line[160];
  int length = snprintf(line, sizeof line, "input %llu of seed %llu, %zu bytes; again with arguments 1 %llu %llu:\n",
                        (unsigned long long)now.number, (unsigned long long)now.seed, now.size,
                        (unsigned long long)now.seed, (unsigned long long)now.number);
  (void)!write(STDERR_FILENO, line, (size_t)length);
  for (size_t i = 0; i < now.size && i < 1024; i++) {
    length = snprintf(line, sizeof line, "%02x%s", now.bytes[i], i % 32 == 31 ? "\n" : "");
    (void)!write(STDERR_FILENO, line, (size_t)length);
  }
  (void)!write(STDERR_FILENO, "\n", 1);
}

static void on_signal(int number) {
  tell_input();
  (void)raise(number); /* its own action again: SA_RESETHAND */
}

static void watch_for_failures(void) {
  static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
  struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
  const bool sanitized = __sanitizer_set_death_callback != NULL;
  if (sanitized) __sanitizer_set_death_callback(tell_input);
  for (size_t i = 0; i < (sanitized ? 1 : sizeof signals / sizeof *signals); i++) {
    (void)sigaction(signals[i], &action, NULL);
  }
}

/* ---- resources of the process ---- */

static unsigned count_files(void) {
  unsigned count = 0;
  DIR *directory = opendir("/proc/self/fd");
  FUZZ_REQUIRE(directory != NULL, "no /proc");
  while (readdir(directory) != NULL) count++;
  (void)closedir(directory);
  return count;
}

static unsigned count_mappings(void) {
  unsigned count = 0;
  FILE *file = fopen("/proc/self/maps", "re");
  FUZZ_REQUIRE(file != NULL, "no /proc");
  for (int c = getc(file); c != EOF; c = getc(file)) count += c == '\n';
  (void)fclose(file);
  return count;
}

/* ---- inputs ---- */

static void run_input(void) {
  /* A block of exactly this size: memory checkers notice reads past it. */
  uint8_t *exact = malloc(now.size == 0 ? 1 : now.size);
  FUZZ_REQUIRE(exact != NULL, "no memory");
  if (now.size > 0) memcpy(exact, now.bytes, now.size);
  FUZZ_REQUIRE(LLVMFuzzerTestOneInput(exact, now.size) == 0, "a target gives 0");
  free(exact);
}

/* The unchanged valid inputs come first. */
static void make_input(uint64_t number) {
  now.number = number;
  if (number < fuzz_count_seeds()) {
    now.size = fuzz_seed((unsigned)number, now.bytes, sizeof now.bytes);
    return;
  }
  uint64_t state = now.seed * UINT64_C(0xd1342543de82ef95) ^ number;
  now.size = fuzz_pick_seed(&state, now.bytes, sizeof now.bytes);
  now.size = fuzz_mutate(&state, now.bytes, now.size, sizeof now.bytes);
  if (fuzz_random(&state) % 8 != 0) now.size = fuzz_repair(now.bytes, now.size, sizeof now.bytes);
}

static void run_numbers(uint64_t first, uint64_t count) {
  unsigned files = 0, mappings = 0;
  for (uint64_t i = 0; i < count; i++) {
    make_input(first + i);
    run_input();
    if (i == WARM_UP) files = count_files(), mappings = count_mappings();
  }
  if (count <= WARM_UP) return;
  FUZZ_REQUIRE(count_files() == files, "%u files open after %llu inputs, %u after %d", count_files(),
               (unsigned long long)count, files, WARM_UP);
  /* Allocators occasionally map a little memory, and the address sanitizer maps more. */
  FUZZ_REQUIRE(count_mappings() <= mappings + (FUZZ_SANITIZED ? 1000 : 16),
               "%u mappings after %llu inputs, %u after %d", count_mappings(), (unsigned long long)count, mappings,
               WARM_UP);
}

static void run_file(const char *path) {
  FILE *file = fopen(path, "rbe");
  if (file == NULL) {
    perror(path);
    exit(2);
  }
  now.size = fread(now.bytes, 1, sizeof now.bytes, file);
  (void)fclose(file);
  run_input();
}

/* RILL_STRESS, in percent, of them. */
static uint64_t scaled(uint64_t count) {
  const char *text = getenv("RILL_STRESS");
  return text != NULL ? count * strtoull(text, NULL, 10) / 100 : count;
}

static uint64_t argument(int argc, char **argv, int index, uint64_t otherwise) {
  return argc > index ? strtoull(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
  fuzz_begin(argc, argv);
  FUZZ_REQUIRE(fuzz_count_seeds() > 0, "a target has at least one valid input");
  watch_for_failures();
  if (argc > 1 && strspn(argv[1], "0123456789") != strlen(argv[1])) {
    for (int i = 1; i < argc; i++) run_file(argv[i]);
  } else {
    now.seed = argument(argc, argv, 2, 1);
    run_numbers(argument(argc, argv, 3, 0), scaled(argument(argc, argv, 1, 20000)));
  }
  fuzz_end();
  return 0;
}
