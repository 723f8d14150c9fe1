/* How many processors the control groups of this process leave it: a container with half of a machine's time has
 * all of its processors in the affinity.
 *
 * A group's limit counts, and that of every group that it is in, as far as they can be seen: inside a container the
 * mount begins at its own group.  Version 2 has one file, "QUOTA PERIOD" with "max" for no limit; version 1 two, and
 * -1.  A part of a processor counts as one. */
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

/* UINT32_MAX: no limit. */
static uint32_t processors(const char *quota, const char *period) {
  char *end = NULL;
  const unsigned long long time = strtoull(quota, &end, 10), out_of = strtoull(period, NULL, 10);
  if (end == quota || quota[0] == '-' || time == 0 || out_of == 0) return UINT32_MAX;
  const unsigned long long count = time / out_of + (time % out_of != 0);
  return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static uint32_t limit_of(const char *folder, bool version_2) {
  char quota[64] = "", period[64] = "";
  if (!version_2) {
    if (!read_number_file(folder, "cpu.cfs_quota_us", quota, sizeof quota)) return UINT32_MAX;
    return read_number_file(folder, "cpu.cfs_period_us", period, sizeof period) ? processors(quota, period)
                                                                                : UINT32_MAX;
  }
  if (!read_number_file(folder, "cpu.max", quota, sizeof quota)) return UINT32_MAX;
  const char *space = strchr(quota, ' ');
  return processors(quota, space != NULL ? space + 1 : "100000");
}

static bool is_in_list(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (; list != NULL; list = strchr(list, ',')) {
    if (*list == ',') list++;
    if (strncmp(list, word, length) == 0 && strchr(",: \n", list[length]) != NULL) return true;
  }
  return false;
}

/* The path of the process's group in the hierarchy of version 2, or in that of the controller "cpu". */
static bool find_group(const char *system, bool version_2, char *group, size_t size) {
  char path[PATH_BYTES], line[PATH_BYTES + 256];
  (void)snprintf(path, sizeof path, "%.900s/proc/self/cgroup", system);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  bool found = false;
  while (!found && fgets(line, sizeof line, file) != NULL) {
    char *const controllers = strchr(line, ':'), *const where =
                                                     controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (where == NULL) continue;
    found = version_2 ? where == controllers + 1 : is_in_list(controllers + 1, "cpu");
    if (found) (void)snprintf(group, size, "%.*s", (int)strcspn(where + 1, "\n"), where + 1);
  }
  (void)fclose(file);
  return found;
}

/* The least limit on the way from a group up to the mount. */
static uint32_t limit_on_the_way(const char *system, const char *root, const char *mount, const char *group,
                                 bool version_2) {
  char folder[PATH_BYTES];
  const size_t shown = strcmp(root, "/") == 0 ? 0 : strlen(root);
  const bool inside =
      strncmp(group, root, shown) == 0 && (group[shown] == '/' || group[shown] == '\0') && strstr(group, "/..") == NULL;
  const char *rest = inside && strcmp(group, "/") != 0 ? group + shown : "";
  const int top = snprintf(folder, sizeof folder, "%s%s", system, mount);
  if (snprintf(folder + top, sizeof folder - (size_t)top, "%s", rest) >= (int)sizeof folder - top) return UINT32_MAX;
  uint32_t least = limit_of(folder, version_2);
  for (char *slash; (slash = strrchr(folder + top, '/')) != NULL;) {
    *slash = '\0';
    const uint32_t limit = limit_of(folder, version_2);
    if (limit < least) least = limit;
  }
  return least;
}

uint32_t cpu_quota_read(const char *system) {
  char path[PATH_BYTES], line[3 * PATH_BYTES], root[PATH_BYTES], mount[PATH_BYTES], group[PATH_BYTES];
  uint32_t least = UINT32_MAX;
  (void)snprintf(path, sizeof path, "%.900s/proc/self/mountinfo", system);
  FILE *file = fopen(path, "re");
  if (file == NULL) return least;
  while (fgets(line, sizeof line, file) != NULL) {
    /* ... root mount options [more] - type source options */
    const char *const type = strstr(line, " - ");
    if (type == NULL || sscanf(line, "%*s %*s %*s %1023s %1023s", root, mount) != 2) continue;
    const bool version_2 = strncmp(type, " - cgroup2 ", 11) == 0;
    const char *const options = strrchr(line, ' ');
    if (!version_2 && (strncmp(type, " - cgroup ", 10) != 0 || !is_in_list(options + 1, "cpu"))) continue;
    if (strlen(system) + strlen(mount) >= PATH_BYTES || !find_group(system, version_2, group, sizeof group)) continue;
    const uint32_t limit = limit_on_the_way(system, root, mount, group, version_2);
    if (limit < least) least = limit;
  }
  (void)fclose(file);
  return least;
}
