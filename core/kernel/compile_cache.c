#include "core/kernel/compile_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct head {
  char magic[8];
  uint8_t key[RILL__SHA256_BYTES], check[RILL__SHA256_BYTES];
  uint64_t size;
};
static const char cache_magic[8] = "RILLKRN1";

enum { NAME_LENGTH = 2 * RILL__SHA256_BYTES, STALE_SECONDS = 3600 };
static const char unfinished[] = ".new-";

/* ---- the folder ---- */

/* Returns true if the user owns the folder.  Nothing is created in another user's folder, such as the home directory
 * that sudo leaves in the environment. */
static bool is_own(const char *folder) {
  struct stat about;
  return folder[0] == '/' && stat(folder, &about) == 0 && about.st_uid == geteuid();
}

static bool folder_path(char *path, size_t size) {
  const char *named = getenv("RILL_CACHE"), *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int length = 0;
  if (named != NULL) {
    /* "off", an empty value and relative paths disable the cache: a relative path would depend on the current
     * directory */
    if (named[0] != '/') return false;
    length = snprintf(path, size, "%s", named);
  } else if (base != NULL && base[0] == '/') {
    if (access(base, F_OK) == 0 && !is_own(base)) return false;
    length = snprintf(path, size, "%s/rill/kernels", base);
  } else if (home != NULL && is_own(home)) {
    length = snprintf(path, size, "%s/.cache/rill/kernels", home);
  }
  return length > 0 && (size_t)length < size;
}

static void make_folders(char *path) {
  for (char *at = path + 1; *at != '\0'; at++) {
    if (*at != '/') continue;
    *at = '\0';
    (void)mkdir(path, 0700);
    *at = '/';
  }
  (void)mkdir(path, 0700);
}

int rill__cache_open(void) {
  char path[PATH_MAX];
  if (getauxval(AT_SECURE) != 0 || !folder_path(path, sizeof path)) return -1;
  make_folders(path);
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat about;
  if (folder >= 0 && fstat(folder, &about) == 0 && about.st_uid == geteuid() && (about.st_mode & 022) == 0)
    return folder;
  if (folder >= 0) (void)close(folder);
  return -1;
}

static void name_of(const uint8_t key[RILL__SHA256_BYTES], char name[NAME_LENGTH + 1]) {
  for (size_t i = 0; i < RILL__SHA256_BYTES; i++) (void)snprintf(name + 2 * i, 3, "%02x", key[i]);
}

static void check_of(const void *data, size_t size, uint8_t out[RILL__SHA256_BYTES]) {
  struct rill__sha256 hash;
  rill__sha256_begin(&hash);
  rill__sha256_add(&hash, data, size);
  rill__sha256_end(&hash, out);
}

/* ---- reading ---- */

static bool read_all(int file, void *into, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(file, (char *)into + done, size - done);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) done += (size_t)got;
  }
  return true;
}

/* Reads a result.  The file must agree with the key, with its size and with its own checksum. */
static void *read_verified(int file, const uint8_t key[RILL__SHA256_BYTES], size_t *size) {
  struct head head;
  struct stat about;
  uint8_t check[RILL__SHA256_BYTES];
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid()) return NULL;
  if (!read_all(file, &head, sizeof head) || memcmp(head.magic, cache_magic, sizeof cache_magic) != 0 ||
      memcmp(head.key, key, sizeof head.key) != 0 || head.size == 0 ||
      head.size != (uint64_t)about.st_size - sizeof head)
    return NULL;
  *size = (size_t)head.size;
  void *data = malloc(*size);
  if (data == NULL) return NULL;
  if (read_all(file, data, *size)) {
    check_of(data, *size, check);
    if (memcmp(check, head.check, sizeof check) == 0) return data;
  }
  free(data);
  return NULL;
}

bool rill__cache_get(int folder, const uint8_t key[RILL__SHA256_BYTES], void **data, size_t *size) {
  char name[NAME_LENGTH + 1];
  name_of(key, name);
  const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  *data = read_verified(file, key, size);
  if (*data != NULL) (void)futimens(file, NULL); /* marks it as used now */
  (void)close(file);
  if (*data == NULL) (void)unlinkat(folder, name, 0);
  return *data != NULL;
}

/* ---- writing ---- */

struct entry {
  char name[NAME_LENGTH + 1];
  struct timespec used;
  uint64_t size;
};

struct entries {
  struct entry *list;
  size_t count;
  uint64_t bytes;
};

static int by_last_use(const void *a, const void *b) {
  const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Adds a result to the list, or removes a file that a terminated process left unfinished.  Returns false if host memory
 * ran out. */
static bool list_result(int folder, const char *name, struct entries *entries) {
  struct stat about;
  if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) return true;
  if (strncmp(name, unfinished, sizeof unfinished - 1) == 0) {
    if (time(NULL) - about.st_mtim.tv_sec > STALE_SECONDS) (void)unlinkat(folder, name, 0);
    return true;
  }
  if (strlen(name) != NAME_LENGTH || strspn(name, "0123456789abcdef") != NAME_LENGTH) return true;
  struct entry *grown = realloc(entries->list, (entries->count + 1) * sizeof *grown);
  if (grown == NULL) return false;
  entries->list = grown;
  struct entry *entry = &grown[entries->count++];
  memcpy(entry->name, name, sizeof entry->name);
  entry->used = about.st_mtim;
  entry->size = (uint64_t)about.st_size;
  entries->bytes += entry->size;
  return true;
}

static void trim(int folder, uint64_t most) {
  /* opened again, because reading changes the position of a descriptor */
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *listing = copy < 0 ? NULL : fdopendir(copy);
  if (listing == NULL) {
    if (copy >= 0) (void)close(copy);
    return;
  }
  struct entries entries = { .list = NULL };
  const struct dirent *item = NULL;
  while ((item = readdir(listing)) != NULL && list_result(folder, item->d_name, &entries)) {
  }
  (void)closedir(listing);
  if (entries.bytes > most) {
    qsort(entries.list, entries.count, sizeof *entries.list, by_last_use);
    for (size_t i = 0; i < entries.count && entries.bytes > most; i++) {
      (void)unlinkat(folder, entries.list[i].name, 0);
      entries.bytes -= entries.list[i].size;
    }
  }
  free(entries.list);
}

static bool write_entry(int file, const void *from, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t put = write(file, (const char *)from + done, size - done);
    if (put < 0 && errno != EINTR) return false;
    if (put > 0) done += (size_t)put;
  }
  return true;
}

void rill__cache_put(int folder, const uint8_t key[RILL__SHA256_BYTES], const void *data, size_t size, uint64_t most) {
  static _Atomic unsigned number;
  struct head head;
  if (size == 0 || most < sizeof head || size > most - sizeof head) return;
  memcpy(head.magic, cache_magic, sizeof cache_magic);
  memcpy(head.key, key, sizeof head.key);
  check_of(data, size, head.check);
  head.size = size;
  char name[NAME_LENGTH + 1], temporary[96];
  struct timespec now = { 0 }; /* process ids are not unique between containers that share a folder */
  name_of(key, name);
  (void)clock_gettime(CLOCK_REALTIME, &now);
  (void)snprintf(temporary, sizeof temporary, "%s%ld-%lld.%09ld-%u", unfinished, (long)getpid(), (long long)now.tv_sec,
                 now.tv_nsec, atomic_fetch_add(&number, 1));
  const int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  bool kept = write_entry(file, &head, sizeof head) && write_entry(file, data, size);
  kept = close(file) == 0 && kept;
  if (!kept || renameat(folder, temporary, folder, name) != 0) (void)unlinkat(folder, temporary, 0);
  trim(folder, most);
}
