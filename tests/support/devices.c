/* Notes which devices a program used; tests/run_tests.py adds up the notes of a run. */
#include "testing_internal.h"

#include <link.h>
#include <stdio.h>

struct search {
  const char *library; /* what the name of its file begins with */
  char stand_in[64];   /* the folder that has it in tests/support; "" for the vendor's own */
};

static void cut_at_last_slash(char *path) {
  char *slash = strrchr(path, '/');
  if (slash != NULL) *slash = '\0';
}

/* Checks where the loader found the vendor's library: fakes are in build/tests/support/NAME. */
static int look_at_library(struct dl_phdr_info *info, size_t size, void *data) {
  static const char place[] = "/tests/support";
  (void)size;
  struct search *search = data;
  const char *file = strrchr(info->dlpi_name, '/');
  if (file == NULL || strncmp(file + 1, search->library, strlen(search->library)) != 0) return 0;
  char folder[4096];
  (void)snprintf(folder, sizeof folder, "%s", info->dlpi_name);
  cut_at_last_slash(folder);
  const char *name = strrchr(folder, '/');
  if (name == NULL) return 1;
  (void)snprintf(search->stand_in, sizeof search->stand_in, "%s", name + 1);
  cut_at_last_slash(folder);
  const size_t length = strlen(folder);
  const bool stands_in = length >= strlen(place) && strcmp(folder + length - strlen(place), place) == 0;
  if (!stands_in) search->stand_in[0] = '\0';
  return 1;
}

void name_device(const rill_device_info *info, char *name, size_t size) {
  const char *backend = backend_name(info->backend);
  if (info->backend == RILL_BACKEND_CPU) (void)snprintf(name, size, "%s", backend);
  else (void)snprintf(name, size, "%s:%d", backend, (int)info->ordinal);
}

void note_device(rill_device device) {
  static uint64_t noted[64];
  size_t count = 0;
  while (count < sizeof noted / sizeof *noted && noted[count] != 0 && noted[count] != device.id) count++;
  if (count == sizeof noted / sizeof *noted || noted[count] == device.id) return;
  noted[count] = device.id;

  rill_device_info info = RILL_DEVICE_INFO_INIT;
  char name[32];
  assert_ok(rill_device_get_info(device, &info));
  name_device(&info, name, sizeof name);
  if (info.backend == RILL_BACKEND_CPU) {
    (void)printf("rill-device: %s (real)\n", name);
  } else {
    struct search search = { info.backend == RILL_BACKEND_CUDA ? "libcuda.so" : "libamdhip64.so", "" };
    (void)dl_iterate_phdr(look_at_library, &search);
    if (search.stand_in[0] == '\0') (void)printf("rill-device: %s (real, %s)\n", name, info.name);
    else (void)printf("rill-device: %s (stand-in, %s)\n", name, search.stand_in);
  }
  (void)fflush(stdout); /* before a fork */
}
