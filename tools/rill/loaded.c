#include "loaded.h"

#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
  const char *name, *found;
};

static int look(struct dl_phdr_info *library, size_t size, void *search_) {
  (void)size;
  struct search *search = search_;
  const char *slash = strrchr(library->dlpi_name, '/'), *file = slash != NULL ? slash + 1 : library->dlpi_name;
  if (strncmp(file, search->name, strlen(search->name)) != 0) return 0;
  search->found = library->dlpi_name;
  return 1;
}

const char *loaded_library(const char *name, char *path) {
  struct search search = { name, NULL };
  (void)dl_iterate_phdr(look, &search);
  if (search.found == NULL) return NULL;
  if (realpath(search.found, path) == NULL) (void)snprintf(path, PATH_MAX, "%s", search.found);
  return path;
}

const char *loaded_driver(uint32_t backend, char *path) {
  return backend == RILL_BACKEND_CUDA  ? loaded_library("libcuda.so", path)
         : backend == RILL_BACKEND_HIP ? loaded_library("libamdhip64.so", path)
                                       : NULL;
}
