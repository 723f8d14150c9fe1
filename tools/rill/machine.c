#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool machine_has(const char *root, const char *file) {
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s%s", root, file);
  return access(path, F_OK) == 0;
}

static void read_line(const char *path, char *line, size_t size) {
  FILE *file = fopen(path, "re");
  if (file == NULL || fgets(line, (int)size, file) == NULL) line[0] = '\0';
  line[strcspn(line, "\n")] = '\0';
  if (file != NULL) (void)fclose(file);
}

void machine_line(const char *root, const char *file, char *line, size_t size) {
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s%s", root, file);
  read_line(path, line, size);
}

static void find(const char *root, const char *pattern, glob_t *found) {
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s%s", root, pattern);
  *found = (glob_t){ .gl_pathc = 0 };
  (void)glob(path, 0, NULL, found);
}

uint32_t machine_count(const char *root, const char *pattern) {
  glob_t found;
  find(root, pattern, &found);
  const uint32_t count = (uint32_t)found.gl_pathc;
  globfree(&found);
  return count;
}

static bool is_gpu(const char *folder, const char *vendor) {
  char path[PATH_MAX], line[32];
  (void)snprintf(path, sizeof path, "%s/vendor", folder);
  read_line(path, line, sizeof line);
  if (strcmp(line, vendor) != 0) return false;
  (void)snprintf(path, sizeof path, "%s/class", folder);
  read_line(path, line, sizeof line);
  return strncmp(line, "0x03", 4) == 0 || strncmp(line, "0x12", 4) == 0;
}

uint32_t machine_gpus(const char *root, const char *vendor) {
  glob_t found;
  uint32_t count = 0;
  find(root, "/sys/bus/pci/devices/*", &found);
  for (size_t i = 0; i < found.gl_pathc; i++) count += is_gpu(found.gl_pathv[i], vendor);
  globfree(&found);
  return count;
}

uint64_t machine_property(const char *root, const char *file, const char *key) {
  char path[PATH_MAX], name[64];
  uint64_t value = 0, found = 0;
  (void)snprintf(path, sizeof path, "%s%s", root, file);
  FILE *stream = fopen(path, "re");
  while (stream != NULL && fscanf(stream, "%63s %" SCNu64, name, &value) == 2) {
    if (strcmp(name, key) == 0) found = value;
  }
  if (stream != NULL) (void)fclose(stream);
  return found;
}

int machine_open(const char *root, const char *file) {
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s%s", root, file);
  const int descriptor = open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return errno;
  (void)close(descriptor);
  return 0;
}
