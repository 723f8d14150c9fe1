#include "output.h"

#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const struct output *output, int error) {
  return complain("cannot write %s: %s", output->path, strerror(error));
}

/* Creates a new file next to `place`. */
static int create_temporary(struct output *output) {
  const size_t size = strlen(output->place) + 48;
  output->temporary = malloc(size);
  if (output->temporary == NULL) return -1;
  for (int attempt = 0; attempt < 100; attempt++) {
    (void)snprintf(output->temporary, size, "%s.%ld-%d.part", output->place, (long)getpid(), attempt);
    const int descriptor = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

static int open_place(struct output *output) {
  struct stat status;
  if (output->place[0] == '\0') {
    errno = ENOENT;
    return -1;
  }
  if (stat(output->place, &status) != 0) return errno == ENOENT ? create_temporary(output) : -1;
  if (S_ISREG(status.st_mode)) {
    return access(output->place, W_OK) == 0 ? create_temporary(output) : -1;
  }
  return open(output->place, O_WRONLY | O_CLOEXEC); /* a device, a pipe: nothing to rename over */
}

bool output_open(struct output *output, const char *path) {
  *output = (struct output){ .path = path };
  output->place = realpath(path, NULL);
  if (output->place == NULL) output->place = strdup(path);
  const int descriptor = output->place != NULL ? open_place(output) : -1;
  output->file = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
  if (output->file != NULL) return true;
  const int error = errno;
  if (descriptor >= 0) {
    (void)close(descriptor);
  } else {
    free(output->temporary); /* it was not created */
    output->temporary = NULL;
  }
  output_drop(output);
  return fail(output, error);
}

bool output_finish(struct output *output) {
  FILE *file = output->file;
  output->file = NULL;
  const bool written = fflush(file) == 0;
  const int error = errno;
  const bool closed = fclose(file) == 0;
  return (written && closed) || fail(output, written ? errno : error);
}

bool output_keep(struct output *output) {
  if (output->temporary == NULL) return true;
  if (rename(output->temporary, output->place) != 0) return fail(output, errno);
  free(output->temporary);
  output->temporary = NULL;
  return true;
}

void output_drop(struct output *output) {
  if (output->file != NULL) (void)fclose(output->file);
  if (output->temporary != NULL) (void)unlink(output->temporary);
  free(output->temporary);
  free(output->place);
  output->file = NULL;
  output->temporary = NULL;
  output->place = NULL;
}

bool output_check(const char *path) {
  struct stat status;
  struct output output;
  /* Opening a pipe would affect the process at its other end. */
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return true;
  if (!output_open(&output, path)) return false;
  output_drop(&output);
  return true;
}
