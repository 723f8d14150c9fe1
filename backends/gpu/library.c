/* Finds a vendor's library.  Two copies of a vendor's runtime in one process cannot use each other's streams and
 * memory, so a copy that the process has already loaded is preferred. */
#include "backends/gpu/gpu.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

void gpu_append(char *text, size_t size, const char *format, ...) {
  const size_t used = strlen(text);
  va_list list;
  va_start(list, format);
  const int length = vsnprintf(text + used, size - used, format, list);
  va_end(list);
  if (length >= 0 && (size_t)length >= size - used) memcpy(text + size - sizeof "...", "...", sizeof "...");
}

/* ---- the names that were tried ---- */

/* Names with the same reason are listed together: "a, b: not set; c: no such folder". */
struct tries {
  char *why;
  size_t size;
  char reason[256]; /* reason for the latest names; "" before the first one */
};

static void note_try(struct tries *tries, const char *name, const char *reason) {
  if (strcmp(tries->reason, reason) == 0) {
    gpu_append(tries->why, tries->size, ", %s", name);
    return;
  }
  if (tries->reason[0] != '\0') gpu_append(tries->why, tries->size, ": %s; ", tries->reason);
  gpu_append(tries->why, tries->size, "%s", name);
  (void)snprintf(tries->reason, sizeof tries->reason, "%.*s", (int)sizeof tries->reason - 1, reason);
}

/* ---- the places ---- */

static void *open_loaded(const char *const *names) {
  void *library = NULL;
  for (; *names != NULL && library == NULL; names++) library = dlopen(*names, RTLD_NOW | RTLD_NOLOAD);
  return library;
}

static void *open_library(struct tries *tries, const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != NULL) return library;
  const char *reason = dlerror();
  const size_t length = strlen(name);
  const bool named = reason != NULL && strncmp(reason, name, length) == 0 && strncmp(reason + length, ": ", 2) == 0;
  note_try(tries, name, reason == NULL ? "cannot be opened" : named ? reason + length + 2 : reason);
  return NULL;
}

static void *open_in_folder(struct tries *tries, const char *const *names, const char *folder) {
  char path[PATH_MAX];
  void *library = NULL;
  bool any = false;
  for (; *names != NULL && library == NULL; names++) {
    (void)snprintf(path, sizeof path, "%s/lib/%s", folder, *names);
    if (access(path, F_OK) != 0) continue;
    library = open_library(tries, path);
    any = true;
  }
  if (!any) {
    (void)snprintf(path, sizeof path, "%s/lib", folder);
    note_try(tries, path, "has none of them");
  }
  return library;
}

static void *open_by_variable(struct tries *tries, const char *const *names, const char *variable) {
  const char *folder = secure_getenv(variable);
  if (folder != NULL && folder[0] != '\0') return open_in_folder(tries, names, folder);
  const char *set = getenv(variable);
  note_try(tries, variable, set == NULL || set[0] == '\0' ? "not set" : "ignored in a set-user-id program");
  return NULL;
}

/* Sorts folders without a version last, because they are usually links to a folder with a version. */
static int newest_first(const void *a, const void *b) {
  const char *const first = *(const char *const *)a, *const second = *(const char *const *)b;
  const bool first_has = strpbrk(strrchr(first, '/'), "0123456789") != NULL;
  const bool second_has = strpbrk(strrchr(second, '/'), "0123456789") != NULL;
  return first_has != second_has ? (int)second_has - (int)first_has : strverscmp(second, first);
}

static void *open_newest(struct tries *tries, const char *const *names, const char *folders) {
  glob_t found = { .gl_pathc = 0 };
  void *library = NULL;
  if (glob(folders, GLOB_NOSORT, NULL, &found) != 0) note_try(tries, folders, "no such folder");
  if (found.gl_pathc > 0) qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, newest_first);
  for (size_t i = 0; i < found.gl_pathc && library == NULL; i++) {
    library = open_in_folder(tries, names, found.gl_pathv[i]);
  }
  globfree(&found);
  return library;
}

bool gpu_was_loaded;

void *gpu_library_open(const struct gpu_places *places, char *why, size_t size) {
  struct tries tries = { .why = why, .size = size };
  why[0] = '\0';
  void *library = open_loaded(places->names);
  if (library == NULL) library = open_loaded(places->other_names);
  gpu_was_loaded = library != NULL;
  for (size_t i = 0; places->names[i] != NULL && library == NULL; i++) library = open_library(&tries, places->names[i]);
  for (size_t i = 0; places->variables[i] != NULL && library == NULL; i++) {
    library = open_by_variable(&tries, places->names, places->variables[i]);
  }
  if (library == NULL && places->folders != NULL) library = open_newest(&tries, places->names, places->folders);
  if (library == NULL) {
    gpu_append(why, size, ": %s", tries.reason);
  } else {
    why[0] = '\0';
  }
  return library;
}

const char *gpu_library_path(void *library) {
  struct link_map *map = NULL;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

void *gpu_library_beside(void *library, const char *name) {
  void *found = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  const char *path = gpu_library_path(library), *slash = strrchr(path, '/');
  if (found != NULL || slash == NULL) return found;
  char beside[PATH_MAX];
  (void)snprintf(beside, sizeof beside, "%.*s/%s", (int)(slash - path), path, name);
  return dlopen(beside, RTLD_NOW | RTLD_LOCAL);
}
