#include "core/timeline/file.h"

#include "core/object/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16, EVENT_BYTES = 2048 };

static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  int fd; /* -1 if no file is open */
  bool failed;
  uint64_t written, limit, dropped;
  size_t used;
  char buffer[BUFFER_BYTES];
} file = { .fd = -1 };

/* Call the functions below, up to the public ones, under the lock. */

static void write_buffer(void) {
  size_t done = 0;
  while (done < file.used && !file.failed) {
    const ssize_t n = write(file.fd, file.buffer + done, file.used - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      file.failed = true;
    } else {
      done += (size_t)n;
    }
  }
  file.used = 0;
}

static void append_text(const char *text, size_t length) {
  if (file.used + length > BUFFER_BYTES) write_buffer();
  memcpy(file.buffer + file.used, text, length);
  file.used += length;
  file.written += length;
}

/* Written at once, because a viewer rejects a list without events. */
static const char first_lines[] =
    "[\n{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"host\"}},\n"
    "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":\"trace\"}},\n";

/* Opens the file and locks it until it is closed: the processes of a program inherit RILL_TIMELINE, and the events of
 * two processes in one file would overwrite each other. */
static rill_status open_locked(const char *path, int *out) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  RILL_REQUIRE(fd >= 0, RILL_ERROR_INVALID_ARGUMENT, "cannot write the timeline \"%s\": %s", path, strerror(errno));
  const bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (taken || (ftruncate(fd, 0) != 0 && errno != EINVAL)) { /* EINVAL: a pipe, for example */
    const int code = errno;
    (void)close(fd);
    return rill__fail(RILL_ERROR_INVALID_ARGUMENT, "cannot write the timeline \"%s\": %s", path,
                      taken ? "another process is writing it" RILL_HINT "use a different path for each process"
                            : strerror(code));
  }
  *out = fd;
  return RILL_OK;
}

rill_status rill__trace_file_open(const char *path, uint64_t limit) {
  int fd = -1;
  RILL_TRY(open_locked(path, &fd));
  pthread_mutex_lock(&file_lock);
  file.fd = fd;
  file.failed = false;
  file.written = file.dropped = 0;
  file.limit = limit;
  file.used = 0;
  append_text(first_lines, sizeof first_lines - 1);
  write_buffer();
  pthread_mutex_unlock(&file_lock);
  return RILL_OK;
}

void rill__trace_file_add(const char *format, ...) {
  char text[EVENT_BYTES];
  va_list list;
  va_start(list, format);
  const int length = vsnprintf(text, sizeof text - 2, format, list);
  va_end(list);
  pthread_mutex_lock(&file_lock);
  if (file.fd >= 0) {
    if (length < 0 || (size_t)length >= sizeof text - 2 || file.written + (size_t)length > file.limit || file.failed) {
      file.dropped++;
    } else {
      text[length] = ',';
      text[length + 1] = '\n';
      append_text(text, (size_t)length + 2);
    }
  }
  pthread_mutex_unlock(&file_lock);
}

void rill__trace_file_drop(void) {
  pthread_mutex_lock(&file_lock);
  file.dropped++;
  pthread_mutex_unlock(&file_lock);
}

void rill__trace_file_flush(void) {
  pthread_mutex_lock(&file_lock);
  if (file.fd >= 0) write_buffer();
  pthread_mutex_unlock(&file_lock);
}

bool rill__trace_file_close(uint64_t unfinished, uint64_t end) {
  char text[256];
  pthread_mutex_lock(&file_lock);
  const int length = snprintf(text, sizeof text,
                              "{\"ph\":\"i\",\"s\":\"t\",\"pid\":0,\"tid\":0,\"ts\":" RILL__US_FORMAT
                              ",\"name\":\"end of the trace\",\"args\":{\"dropped\":%llu,\"unfinished\":%llu}}\n]\n",
                              RILL__US(end), (unsigned long long)file.dropped, (unsigned long long)unfinished);
  append_text(text, (size_t)length);
  write_buffer();
  bool failed = file.failed;
  if (close(file.fd) != 0) failed = true;
  file.fd = -1;
  pthread_mutex_unlock(&file_lock);
  return !failed;
}

void rill__trace_file_abandon(void) {
  pthread_mutex_init(&file_lock, NULL); /* another thread may have held it */
  if (file.fd >= 0) (void)close(file.fd);
  file.fd = -1;
  file.used = 0;
}

void rill__json_escape(char *out, size_t size, const char *text) {
  size_t used = 0;
  for (const char *c = text; *c != '\0'; c++) {
    char one[8];
    const unsigned char value = (unsigned char)*c;
    if (value == '"' || value == '\\') {
      (void)snprintf(one, sizeof one, "\\%c", *c);
    } else if (value < 0x20 || value == 0x7f) {
      (void)snprintf(one, sizeof one, "\\u%04x", value);
    } else {
      (void)snprintf(one, sizeof one, "%c", *c);
    }
    const size_t length = strlen(one);
    if (used + length >= size) {
      if ((value & 0xc0) == 0x80) { /* does not end inside a multi-byte character */
        while (used > 0 && (out[used - 1] & 0xc0) == 0x80) used--;
        if (used > 0) used--;
      }
      break;
    }
    memcpy(out + used, one, length);
    used += length;
  }
  out[used] = '\0';
}
