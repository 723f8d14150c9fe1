/* rill_module_compile in processes that compile the same source at the same time and cache it in one folder (C6.7). A
 * fake device cannot run compiled code: it runs host code of a kernel with the same name. The source here is therefore
 * a kernel of kernels/basic.kernel.cu. */
#include "basic.rill.h"
#include "support/testing.h"

#include <dirent.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const rill_bundle *volatile host_code = &basic_bundle; /* referenced so that it is linked */

static const char source[] = "#include <rill/device/kernel.h>\n"
                             "RILL_KERNEL(scale, int n, float a, float *x) {\n"
                             "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "  if (i < n) x[i] = a * x[i];\n"
                             "}\n";

enum { N = 100, PROCESSES = 3 };

/* Compiles the source and runs its kernel; returns false on any failure. */
static bool compile_and_run(rill_device device) {
  rill_module module = RILL_NULL_MODULE;
  rill_kernel kernel = RILL_NULL_KERNEL;
  rill_stream stream = RILL_NULL_STREAM;
  const rill_launch launch = rill_launch_1d(N, 32);
  const float a = 3.0f;
  const int n = N;
  float *x = NULL;
  if (rill_module_compile(device, source, NULL, &module) != RILL_OK ||
      rill_module_get_kernel(module, "scale", &kernel) != RILL_OK ||
      rill_stream_create(device, NULL, &stream) != RILL_OK || RILL_NEW(device, RILL_MEMORY_PINNED, N, &x) != RILL_OK)
    return false;
  for (int i = 0; i < N; i++) x[i] = (float)i;
  bool right = rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, a, x)) == RILL_OK &&
               rill_stream_synchronize(stream) == RILL_OK;
  for (int i = 0; i < N; i++) right = right && x[i] == 3.0f * (float)i;
  return rill_free(x) == RILL_OK && rill_stream_release(stream) == RILL_OK && rill_kernel_release(kernel) == RILL_OK &&
         rill_module_release(module) == RILL_OK && right;
}

/* The child process: opens the device, reports that on stdout, and compiles when stdin is closed. */
static int be_child(void) {
  rill_device device;
  char byte = 0;
  if (rill_device_open(getenv("RILL_TEST_DEVICE"), &device) != RILL_OK || write(STDOUT_FILENO, "r", 1) != 1) return 2;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  if (compile_and_run(device)) return 0;
  (void)fprintf(stderr, "%s\n%s\n", rill_last_error_text(), rill_compile_log());
  return 1;
}

static pid_t start_child(const int gate[2], const int ready[2]) {
  char name[] = "child", program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  assert_true(length > 0);
  program[length] = '\0';
  char *const arguments[] = { program, name, NULL };
  posix_spawn_file_actions_t files;
  pid_t child = -1;
  assert_int_equal(posix_spawn_file_actions_init(&files), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&files, gate[0], STDIN_FILENO), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&files, ready[1], STDOUT_FILENO), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(posix_spawn_file_actions_addclose(&files, gate[i]), 0);
    assert_int_equal(posix_spawn_file_actions_addclose(&files, ready[i]), 0);
  }
  assert_int_equal(posix_spawn(&child, program, &files, NULL, arguments, environ), 0);
  (void)posix_spawn_file_actions_destroy(&files);
  return child;
}

/* Counts all files, including hidden ones, and removes them. */
static size_t count_files(const char *folder) {
  char path[400];
  size_t count = 0;
  DIR *listing = opendir(folder);
  assert_non_null(listing);
  for (const struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
    if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
    (void)snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
    (void)unlink(path);
    count++;
  }
  (void)closedir(listing);
  return count;
}

/* Installs a wrapper of the host compiler that waits for all processes, so that each of them compiles. */
static void use_meeting_compiler(const char *folder) {
  char path[128];
  (void)snprintf(path, sizeof path, "%s/compiler", folder);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  (void)fprintf(file,
                "#!/bin/sh\n"
                ": > %s/came-$$\n"
                "tries=0\n"
                "until [ $(ls %s | grep -c came) -ge %d ] || [ $tries -ge 3000 ]; do\n"
                "  tries=$((tries + 1)); sleep 0.01\n"
                "done\n"
                "exec c++ \"$@\"\n",
                folder, folder, PROCESSES);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, 0700), 0);
  (void)setenv("RILL_CXX", path, 1);
}

static void processes_compile_at_once(void) {
  char folder[64] = "/tmp/rill-processes-XXXXXX", cache[128];
  pid_t children[PROCESSES];
  int gate[2], ready[2];
  char byte = 0;
  /* conformance/module_compile checks that the error says so */
  if (!rill_device_supports(dut.device, RILL_FEATURE_RTC, NULL)) return;
  assert_non_null(mkdtemp(folder));
  (void)snprintf(cache, sizeof cache, "%s/cache", folder);
  (void)setenv("RILL_CACHE", cache, 1);
  (void)setenv("RILL_TEST_DEVICE", dut.name, 1);
  if (!dut.gpu) use_meeting_compiler(folder);
  assert_int_equal(pipe(gate), 0);
  assert_int_equal(pipe(ready), 0);
  for (int i = 0; i < PROCESSES; i++) children[i] = start_child(gate, ready);
  (void)close(ready[1]);
  (void)close(gate[0]);
  for (int i = 0; i < PROCESSES; i++) assert_int_equal(read(ready[0], &byte, 1), 1);
  (void)close(gate[1]); /* starts all processes */
  for (int i = 0; i < PROCESSES; i++) {
    int status = -1;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  (void)close(ready[0]);
  assert_true(compile_and_run(dut.device)); /* uses the cached result */
  /* two, if a memory checker reports another processor to this process than to its children */
  const size_t kept = count_files(cache);
  assert_true(kept == 1 || kept == 2);
  assert_int_equal(rmdir(cache), 0);
  (void)unsetenv("RILL_CXX");
  (void)setenv("RILL_CACHE", "off", 1);
  assert_int_equal(count_files(folder), dut.gpu ? 0 : PROCESSES + kept);
  (void)rmdir(folder);
}

int main(int argc, char **argv) {
  static const struct test tests[] = { TEST(processes_compile_at_once) };
  (void)host_code, (void)argv;
  if (argc > 1) return be_child();
  return RUN_ON_EACH_DEVICE("rill_module_compile in several processes", tests);
}
