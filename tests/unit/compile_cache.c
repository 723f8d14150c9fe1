/* The disk cache of compiled code: entries are found again, checked before use, and bounded in size. */
#include "core/kernel/compile_cache.h"
#include "support/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder_path[64];
static int folder = -1;

static void key_of(unsigned number, uint8_t key[RILL__SHA256_BYTES]) {
  for (int i = 0; i < RILL__SHA256_BYTES; i++) key[i] = (uint8_t)(number * 7 + (unsigned)i);
}

static void path_of(unsigned number, char *path, size_t size) {
  uint8_t key[RILL__SHA256_BYTES];
  key_of(number, key);
  int used = snprintf(path, size, "%s/", folder_path);
  for (int i = 0; i < RILL__SHA256_BYTES; i++) used += snprintf(path + used, size - (size_t)used, "%02x", key[i]);
}

static void put(unsigned number, const void *data, size_t size) {
  uint8_t key[RILL__SHA256_BYTES];
  key_of(number, key);
  rill__cache_put(folder, key, data, size, RILL__CACHE_BYTES);
}

/* Returns whether the entry exists with exactly this content. */
static bool has(unsigned number, const void *data, size_t size) {
  uint8_t key[RILL__SHA256_BYTES];
  void *found = NULL;
  size_t found_size = 0;
  key_of(number, key);
  if (!rill__cache_get(folder, key, &found, &found_size)) return false;
  const bool same = found_size == size && memcmp(found, data, size) == 0;
  free(found);
  assert_true(same); /* a wrong entry would be worse than none */
  return true;
}

static size_t count_files(void) {
  size_t count = 0;
  DIR *listing = opendir(folder_path);
  assert_non_null(listing);
  for (const struct dirent *item = readdir(listing); item != NULL; item = readdir(listing))
    count += item->d_name[0] != '.';
  (void)closedir(listing);
  return count;
}

static void empty_folder(void) {
  char path[400];
  DIR *listing = opendir(folder_path);
  for (const struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
    if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
    (void)snprintf(path, sizeof path, "%s/%s", folder_path, item->d_name);
    (void)remove(path);
  }
  (void)closedir(listing);
}

static void finds_what_it_stored(void) {
  empty_folder();
  assert_false(has(1, "one", 3));
  put(1, "one", 3);
  put(2, "two and more", 12);
  assert_true(has(1, "one", 3));
  assert_true(has(2, "two and more", 12));
  put(1, "other", 5);
  assert_true(has(1, "other", 5));
  assert_int_equal(count_files(), 2);
}

/* Changes every byte of a file, truncates it to every length, and replaces it with the file of another entry: each
 * damaged file is rejected and removed. */
static void rejects_damaged_files(void) {
  char path[400], other[400], bytes[200];
  empty_folder();
  put(1, "some code", 9);
  path_of(1, path, sizeof path);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t size = read(file, bytes, sizeof bytes);
  (void)close(file);
  assert_true(size > 9 && size < (ssize_t)sizeof bytes);
  for (ssize_t i = 0; i < 2 * size; i++) {
    const ssize_t length = i < size ? size : i - size;
    if (i < size) bytes[i] = (char)(bytes[i] ^ 0x10);
    FILE *damaged = fopen(path, "wbe");
    (void)fwrite(bytes, 1, (size_t)length, damaged);
    (void)fclose(damaged);
    if (i < size) bytes[i] = (char)(bytes[i] ^ 0x10);
    assert_false(has(1, "some code", 9));
    assert_int_equal(access(path, F_OK), -1);
  }
  put(1, "some code", 9);
  path_of(2, other, sizeof other);
  assert_int_equal(rename(path, other), 0);
  assert_false(has(2, "some code", 9));
}

/* The least recently used entry is removed; an entry that exceeds the limit by itself is not kept. */
static void stays_within_its_limit(void) {
  char block[1000], path[400];
  memset(block, 'x', sizeof block);
  empty_folder();
  for (unsigned i = 0; i < 8; i++) {
    uint8_t key[RILL__SHA256_BYTES];
    key_of(i, key);
    rill__cache_put(folder, key, block, sizeof block, 5000);
    path_of(i, path, sizeof path);
    const struct timespec times[2] = { { .tv_sec = 1000 + i }, { .tv_sec = 1000 + i } };
    (void)utimensat(AT_FDCWD, path, times, 0);
    if (i == 3) assert_true(has(0, block, sizeof block)); /* makes entry 0 the most recently used */
  }
  assert_int_equal(count_files(), 4);
  assert_true(has(0, block, sizeof block));
  assert_true(has(7, block, sizeof block));
  assert_false(has(1, block, sizeof block));
  uint8_t key[RILL__SHA256_BYTES];
  key_of(9, key);
  rill__cache_put(folder, key, block, sizeof block, 999);
  assert_false(has(9, block, sizeof block));
}

/* A killed process leaves a file that is never mistaken for a result; old files of this kind are removed. */
static void removes_unfinished_files(void) {
  char fresh[400], stale[400];
  empty_folder();
  (void)snprintf(fresh, sizeof fresh, "%s/.new-1-1", folder_path);
  (void)snprintf(stale, sizeof stale, "%s/.new-1-2", folder_path);
  (void)close(open(fresh, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  (void)close(open(stale, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
  assert_int_equal(utimensat(AT_FDCWD, stale, times, 0), 0);
  put(1, "x", 1);
  assert_int_equal(access(fresh, F_OK), 0);
  assert_int_equal(access(stale, F_OK), -1);
}

/* Symbolic links and folders with the name of an entry are not used. */
static void follows_no_links(void) {
  char path[400], target[400];
  empty_folder();
  put(1, "code", 4);
  path_of(1, path, sizeof path);
  (void)snprintf(target, sizeof target, "%s/elsewhere", folder_path);
  assert_int_equal(rename(path, target), 0);
  assert_int_equal(symlink(target, path), 0);
  assert_false(has(1, "code", 4));
}

static void opens_only_files_of_the_user(void) {
  char path[128], below[256];
  (void)snprintf(path, sizeof path, "%s-open", folder_path);
  (void)snprintf(below, sizeof below, "%s/a/b", path);
  (void)setenv("RILL_CACHE", below, 1);
  const int made = rill__cache_open();
  assert_true(made >= 0);
  struct stat about;
  assert_int_equal(fstat(made, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0700);
  (void)close(made);
  assert_int_equal(chmod(below, 0777), 0);
  assert_int_equal(rill__cache_open(), -1);
  assert_int_equal(chmod(below, 0700), 0);
  (void)setenv("RILL_CACHE", "off", 1);
  assert_int_equal(rill__cache_open(), -1);
  (void)setenv("RILL_CACHE", "relative/folder", 1);
  assert_int_equal(rill__cache_open(), -1);
  (void)setenv("RILL_CACHE", "", 1);
  assert_int_equal(rill__cache_open(), -1);
  (void)unsetenv("RILL_CACHE");
  (void)setenv("XDG_CACHE_HOME", path, 1);
  const int standard = rill__cache_open();
  assert_true(standard >= 0);
  (void)close(standard);
  (void)snprintf(below, sizeof below, "%s/rill/kernels", path);
  assert_int_equal(rmdir(below), 0);
  (void)snprintf(below, sizeof below, "%s/rill", path);
  assert_int_equal(rmdir(below), 0);
  (void)snprintf(below, sizeof below, "%s/a/b", path);
  assert_int_equal(rmdir(below), 0);
  (void)snprintf(below, sizeof below, "%s/a", path);
  assert_int_equal(rmdir(below), 0);
  assert_int_equal(rmdir(path), 0);
}

/* Processes write and read the same entries, with a limit so small that they remove each other's entries. Every entry
 * that is found must be complete. */
static void serves_processes_at_once(void) {
  enum { PROCESSES = 4, ROUNDS = 200 };
  char block[2000];
  empty_folder();
  pid_t children[PROCESSES];
  for (unsigned p = 0; p < PROCESSES; p++) {
    children[p] = fork();
    if (children[p] != 0) continue;
    bool good = true;
    for (unsigned i = 0; i < ROUNDS && good; i++) {
      const unsigned number = (i + p) % 5;
      uint8_t key[RILL__SHA256_BYTES];
      void *found = NULL;
      size_t size = 0;
      key_of(number, key);
      memset(block, (int)('a' + number), sizeof block);
      if (rill__cache_get(folder, key, &found, &size)) {
        good = size == sizeof block && memcmp(found, block, size) == 0;
        free(found);
      }
      rill__cache_put(folder, key, block, sizeof block, 8000);
    }
    _exit(good ? 0 : 1);
  }
  for (unsigned p = 0; p < PROCESSES; p++) {
    int status = -1;
    assert_int_equal(waitpid(children[p], &status, 0), children[p]);
    assert_int_equal(status, 0);
  }
}

int main(void) {
  static const struct test tests[] = {
    TEST(finds_what_it_stored),     TEST(rejects_damaged_files), TEST(stays_within_its_limit),
    TEST(removes_unfinished_files), TEST(follows_no_links),      TEST(opens_only_files_of_the_user),
    TEST(serves_processes_at_once),
  };
  (void)snprintf(folder_path, sizeof folder_path, "/tmp/rill-cache-XXXXXX");
  if (mkdtemp(folder_path) == NULL) return 1;
  (void)setenv("RILL_CACHE", folder_path, 1);
  folder = rill__cache_open();
  const int result = RUN_ONCE("compile_cache", tests);
  empty_folder();
  (void)close(folder);
  (void)rmdir(folder_path);
  return result;
}
