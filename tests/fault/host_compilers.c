/* The host compiler at run time, with a misbehaving compiler or a failing system: a clear status, no file left
 * anywhere, and the next compile works (C6.7). */
#include "support/testing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], scripts[80], temporary[80], cache[80];
static rill_device device;

static const char source[] = "#include <rill/device/kernel.h>\nRILL_KERNEL(nothing) {}\n";

/* ---- files on disk, and open files ---- */

static size_t count_in(const char *path) {
  size_t count = 0;
  DIR *listing = opendir(path);
  assert_non_null(listing);
  for (const struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
    count += strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0;
  }
  (void)closedir(listing);
  return count;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place) {
  (void)about, (void)kind, (void)place;
  return remove(path);
}

static void folders_can_be_made(void) {
  assert_int_equal(mkdir(scripts, 0700), 0);
  assert_int_equal(mkdir(temporary, 0700), 0);
  assert_int_equal(mkdir(cache, 0700), 0);
  (void)setenv("TMPDIR", temporary, 1);
  (void)setenv("RILL_CACHE", cache, 1);
  assert_ok(rill_device_open("cpu", &device));
}

/* ---- compilers ---- */

/* Makes RILL_CXX a script; `$out` is where the compiler is to write, and `$tmp` its folder. */
static void use_script(const char *first_line, const char *body, mode_t mode) {
  static const char head[] = "for word; do [ \"$last\" = -o ] && out=$word; last=$word; done\ntmp=${out%/*}\n";
  char path[128];
  (void)snprintf(path, sizeof path, "%s/compiler", scripts);
  (void)unlink(path);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  (void)fprintf(file, "%s%s%s\n", first_line, first_line[0] != '\0' ? head : "", body);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, mode), 0);
  (void)setenv("RILL_CXX", path, 1);
}

static rill_status compile_source(const char *text) {
  rill_module module = { 1 };
  const size_t open_files = count_in("/proc/self/fd");
  spoil_last_error();
  const rill_status status = rill_module_compile(device, text, NULL, &module);
  assert_true(status == RILL_OK || module.id == 0);
  if (status == RILL_OK) assert_ok(rill_module_release(module));
  assert_int_equal(count_in("/proc/self/fd"), open_files);
  assert_int_equal(count_in(temporary), 0);
  return status;
}

static void works_again(void) {
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  rill_module module = RILL_NULL_MODULE;
  (void)unsetenv("RILL_CXX");
  (void)setenv("TMPDIR", temporary, 1);
  options.no_cache = true;
  assert_ok(rill_module_compile(device, source, &options, &module));
  assert_ok(rill_module_release(module));
  assert_int_equal(count_in(temporary), 0);
  assert_int_equal(count_in(cache), 0);
}

/* Tests a failing compiler completely. */
static void check_failure(rill_status status, const char *text) {
  assert_fails_in("rill_module_compile", compile_source(source), status);
  assert_says(text);
  assert_int_equal(count_in(cache), 0);
  works_again();
}

static void check_script(const char *body, rill_status status, const char *text) {
  use_script("#!/bin/sh\n", body, 0700);
  check_failure(status, text);
}

static void ended_by_signals(void) {
  check_script("kill -SEGV $$", RILL_ERROR_BACKEND, "was killed by signal 11");
  check_script("kill -HUP $$", RILL_ERROR_BACKEND, "was killed by signal 1");
  check_script("echo some words; kill -KILL $$", RILL_ERROR_BACKEND, "was killed by signal 9");
}

static void prints_megabytes(void) {
  enum { LOG = 1 << 20 };
  static const char talk[] = "head -c 4000000 /dev/zero | tr '\\0' x\n";
  char body[200];
  (void)snprintf(body, sizeof body, "%sexit 1", talk);
  use_script("#!/bin/sh\n", body, 0700);
  assert_fails_in("rill_module_compile", compile_source(source), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(strlen(rill_compile_log()), LOG);
  assert_true(strlen(rill_last_error_text()) < 2000);
  assert_int_equal(count_in(cache), 0);
  works_again();
  (void)snprintf(body, sizeof body, "%sexec c++ \"$@\"", talk);
  use_script("#!/bin/sh\n", body, 0700);
  (void)setenv("RILL_CACHE", "off", 1);
  assert_ok(compile_source(source));
  assert_int_equal(strlen(rill_compile_log()), LOG);
  (void)setenv("RILL_CACHE", cache, 1);
  works_again();
}

static void prints_nothing(void) { check_script("exit 1", RILL_ERROR_INVALID_ARGUMENT, "gave no reason"); }

static void writes_no_output(void) {
  check_script("exit 0", RILL_ERROR_BACKEND, "wrote no output and exited with status 0");
  check_script("c++ \"$@\" && rm \"$out\"", RILL_ERROR_BACKEND, "wrote no output");
}

static void writes_invalid_output(void) {
  check_script(": > \"$out\"", RILL_ERROR_BACKEND, "wrote 0 bytes that cannot be loaded");
  check_script("echo garbage > \"$out\"", RILL_ERROR_BACKEND, "it is shorter than an ELF header");
  check_script("head -c 100000 /dev/zero > \"$out\"", RILL_ERROR_BACKEND, "it is not an ELF file");
  check_script("c++ \"$@\" && head -c 3000 \"$out\" > \"$tmp/part\" && mv \"$tmp/part\" \"$out\"", RILL_ERROR_BACKEND,
               "it is truncated");
  check_script("mkdir \"$out\"", RILL_ERROR_BACKEND, "reading the output of");
  check_script("echo 'int x;' | c++ -x c++ -shared -fPIC -o \"$out\" -", RILL_ERROR_BACKEND, "rill_cpu_image");
}

static void leaves_other_files(void) {
  check_script("mkdir -p \"$tmp/a/b/c\"; echo > \"$tmp/a/b/c/d\"; ln -s / \"$tmp/a/root\"; exit 1",
               RILL_ERROR_INVALID_ARGUMENT, "gave no reason");
  check_script("echo > \"$TMPDIR/junk\"; exit 1", RILL_ERROR_INVALID_ARGUMENT, "gave no reason");
}

static void cannot_be_run(void) {
  use_script("#!/bin/sh\n", "exit 0", 0600);
  check_failure(RILL_ERROR_UNSUPPORTED, "RILL_CXX");
  (void)setenv("RILL_CXX", "/nonexistent/c++", 1);
  check_failure(RILL_ERROR_UNSUPPORTED, "RILL_CXX");
  (void)setenv("RILL_CXX", scripts, 1); /* a folder */
  check_failure(RILL_ERROR_UNSUPPORTED, "RILL_CXX");
  use_script("#!/nonexistent/shell\n", "", 0700);
  check_failure(RILL_ERROR_BACKEND, strerror(ENOENT));
  use_script("", "what no system runs", 0700);
  check_failure(RILL_ERROR_BACKEND, strerror(ENOEXEC));
  check_script("exec no-such-compiler-anywhere \"$@\"", RILL_ERROR_BACKEND, "status 127");
}

/* ---- the temporary folder ---- */

static void has_no_temporary_folder(void) {
  char path[128];
  (void)snprintf(path, sizeof path, "%s/missing", folder);
  (void)setenv("TMPDIR", path, 1);
  check_failure(RILL_ERROR_BACKEND, strerror(ENOENT));
  (void)snprintf(path, sizeof path, "%s/compiler", scripts); /* a file: not even the system's own user writes there */
  use_script("#!/bin/sh\n", "exit 0", 0700);
  (void)setenv("TMPDIR", path, 1);
  check_failure(RILL_ERROR_BACKEND, strerror(ENOTDIR));
  char *deep = calloc(1, 5000);
  assert_non_null(deep);
  memset(deep, 'x', 4999);
  deep[0] = '/';
  (void)setenv("TMPDIR", deep, 1);
  free(deep);
  check_failure(RILL_ERROR_BACKEND, strerror(ENAMETOOLONG));
}

/* No file may be longer than a few bytes, as if the disk were full. */
static void has_a_full_disk(void) {
  struct rlimit before, few;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  few = before;
  few.rlim_cur = 1000;
  void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
  rill_module module = { 1 };
  const rill_status status = rill_module_compile(device, source, NULL, &module);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)signal(SIGXFSZ, handler);
  assert_int_equal(status, RILL_ERROR_BACKEND);
  assert_int_equal(module.id, 0);
  assert_says(strerror(EFBIG));
  assert_int_equal(count_in(temporary), 0);
  works_again();
}

/* ---- programs that reap all children ---- */

static void take_children(int number) {
  (void)number;
  const int before = errno;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
  errno = before;
}

static void compile_with_handler(void (*handler)(int)) {
  struct sigaction action, before;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  assert_int_equal(sigaction(SIGCHLD, &action, &before), 0);
  (void)setenv("RILL_CACHE", "off", 1);
  assert_ok(compile_source(source));
  assert_fails_in("rill_module_compile", compile_source("#error \"wrong\"\n"), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("wrong");
  use_script("#!/bin/sh\n", "kill -SEGV $$", 0700);
  assert_fails_in("rill_module_compile", compile_source(source), RILL_ERROR_BACKEND);
  assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
  (void)setenv("RILL_CACHE", cache, 1);
  works_again();
}

static void children_are_ignored(void) { compile_with_handler(SIG_IGN); }
static void children_are_taken(void) { compile_with_handler(take_children); }

int main(void) {
  static const struct test tests[] = {
    TEST(folders_can_be_made),     TEST(works_again),        TEST(ended_by_signals),
    TEST(prints_megabytes),        TEST(prints_nothing),     TEST(writes_no_output),
    TEST(writes_invalid_output),   TEST(leaves_other_files), TEST(cannot_be_run),
    TEST(has_no_temporary_folder), TEST(has_a_full_disk),    TEST(children_are_ignored),
    TEST(children_are_taken),
  };
  (void)unsetenv("RILL_CXX");
  (void)snprintf(folder, sizeof folder, "/tmp/rill-compilers-XXXXXX");
  if (mkdtemp(folder) == NULL) return 1;
  (void)snprintf(scripts, sizeof scripts, "%s/scripts", folder);
  (void)snprintf(temporary, sizeof temporary, "%s/temporary", folder);
  (void)snprintf(cache, sizeof cache, "%s/cache", folder);
  const int result = RUN_ONCE("host compilers", tests);
  (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  return result;
}
