/* Reads how many processors and how much memory the control groups grant to this process.  A container that is limited
 * to half of a machine's processor time still has all processors in its affinity mask.
 *
 * The limits of the process's group and of all its ancestors count, as far as they are visible: inside a container the
 * mount starts at the container's own group.  For processors, version 2 has one file, "QUOTA PERIOD", with "max" for no
 * limit; version 1 has two files, with -1 for no limit.  A fraction of a processor counts as one.  For memory, each
 * version has a file with a number of bytes; no limit is "max" in version 2, and in version 1 a number larger than any
 * memory.
 */
#include "backends/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

static bool read_number_file(const char *folder, const char *name, char *text, size_t size) {
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return false;
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  const bool read = fgets(text, (int)size, file) != NULL;
  (void)fclose(file);
  return read;
}

/* Returns UINT64_MAX if there is no limit. */
static uint64_t processors(const char *quota, const char *period) {
  char *end = NULL;
  const unsigned long long time = strtoull(quota, &end, 10), out_of = strtoull(period, NULL, 10);
  if (end == quota || quota[0] == '-' || time == 0 || out_of == 0) return UINT64_MAX;
  return time / out_of + (time % out_of != 0);
}

/* Returns the limit set in one group's folder; UINT64_MAX if there is none. */
typedef uint64_t read_limit_fn(const char *folder, bool version_2);

static uint64_t processors_of(const char *folder, bool version_2) {
  char quota[64] = "", period[64] = "";
  if (!version_2) {
    if (!read_number_file(folder, "cpu.cfs_quota_us", quota, sizeof quota)) return UINT64_MAX;
    return read_number_file(folder, "cpu.cfs_period_us", period, sizeof period) ? processors(quota, period)
                                                                                : UINT64_MAX;
  }
  if (!read_number_file(folder, "cpu.max", quota, sizeof quota)) return UINT64_MAX;
  const char *space = strchr(quota, ' ');
  return processors(quota, space != NULL ? space + 1 : "100000");
}

static uint64_t memory_of(const char *folder, bool version_2) {
  char text[64] = "";
  const char *const name = version_2 ? "memory.max" : "memory.limit_in_bytes";
  if (!read_number_file(folder, name, text, sizeof text) || text[0] < '0' || text[0] > '9') return UINT64_MAX;
  return strtoull(text, NULL, 10);
}

static bool is_in_list(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (; list != NULL; list = strchr(list, ',')) {
    if (*list == ',') list++;
    if (strncmp(list, word, length) == 0 && strchr(",: \n", list[length]) != NULL) return true;
  }
  return false;
}

/* Finds the path of the process's group, in the hierarchy of version 2 or in that of a controller of version 1. */
static bool find_group(const char *system, const char *controller, bool version_2, char *group, size_t size) {
  char path[PATH_BYTES], line[PATH_BYTES + 256];
  (void)snprintf(path, sizeof path, "%.900s/proc/self/cgroup", system);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  bool found = false;
  while (!found && fgets(line, sizeof line, file) != NULL) {
    char *const controllers = strchr(line, ':'), *const where =
                                                     controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (where == NULL) continue;
    found = version_2 ? where == controllers + 1 : is_in_list(controllers + 1, controller);
    if (found) (void)snprintf(group, size, "%.*s", (int)strcspn(where + 1, "\n"), where + 1);
  }
  (void)fclose(file);
  return found;
}

/* Returns the smallest limit of a group and its ancestors up to the mount. */
static uint64_t limit_on_path(const char *top_folder, const char *root, const char *group, read_limit_fn *read_limit,
                              bool version_2) {
  char folder[PATH_BYTES];
  const size_t shown = strcmp(root, "/") == 0 ? 0 : strlen(root);
  const bool inside =
      strncmp(group, root, shown) == 0 && (group[shown] == '/' || group[shown] == '\0') && strstr(group, "/..") == NULL;
  const char *rest = inside && strcmp(group, "/") != 0 ? group + shown : "";
  const int top = snprintf(folder, sizeof folder, "%s", top_folder);
  if (snprintf(folder + top, sizeof folder - (size_t)top, "%s", rest) >= (int)sizeof folder - top) return UINT64_MAX;
  uint64_t least = read_limit(folder, version_2);
  for (char *slash; (slash = strrchr(folder + top, '/')) != NULL;) {
    *slash = '\0';
    const uint64_t limit = read_limit(folder, version_2);
    if (limit < least) least = limit;
  }
  return least;
}

/* Returns the smallest limit of the process's groups.  `controller`: its name in version 1. */
static uint64_t least_limit(const char *system, const char *controller, read_limit_fn *read_limit) {
  char path[PATH_BYTES], line[3 * PATH_BYTES], root[PATH_BYTES], mount[PATH_BYTES], group[PATH_BYTES];
  uint64_t least = UINT64_MAX;
  (void)snprintf(path, sizeof path, "%.900s/proc/self/mountinfo", system);
  FILE *file = fopen(path, "re");
  if (file == NULL) return least;
  while (fgets(line, sizeof line, file) != NULL) {
    /* format: ... root mount options [more] - type source options */
    const char *const type = strstr(line, " - ");
    if (type == NULL || sscanf(line, "%*s %*s %*s %1023s %1023s", root, mount) != 2) continue;
    const bool version_2 = strncmp(type, " - cgroup2 ", 11) == 0;
    const char *const options = strrchr(line, ' ');
    if (!version_2 && (strncmp(type, " - cgroup ", 10) != 0 || !is_in_list(options + 1, controller))) continue;
    if (snprintf(path, sizeof path, "%s%s", system, mount) >= (int)sizeof path) continue;
    if (!find_group(system, controller, version_2, group, sizeof group)) continue;
    const uint64_t limit = limit_on_path(path, root, group, read_limit, version_2);
    if (limit < least) least = limit;
  }
  (void)fclose(file);
  return least;
}

uint32_t rill__cpu_quota_read(const char *system) {
  const uint64_t count = least_limit(system, "cpu", processors_of);
  return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

uint64_t rill__cpu_memory_quota_read(const char *system) { return least_limit(system, "memory", memory_of); }
