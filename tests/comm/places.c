/* RCCL is loaded only from the runtime that rill uses (C1.9). The argument says which test the libraries in
 * LD_LIBRARY_PATH are for. */
#include "fault/children.h"
#include "ranks.h"

#include <dlfcn.h>
#include <link.h>

static rill_device gpus[MAX_RANKS];
static rill_comm comms[MAX_RANKS];

static void comes_from_the_folder_of_the_runtime(void) {
  struct link_map *map = NULL;
  const uint32_t count = find_devices(gpus);
  assert_true(count > 0);
  assert_comm(rill_comm_create_all(gpus, count, NULL, comms));
  void *library = dlopen("librccl.so.1", RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
  const char *folder = getenv("RILL_TEST_FOLDER");
  if (strncmp(map->l_name, folder, strlen(folder)) != 0) fail_msg("%s is not in %s", map->l_name, folder);
  for (uint32_t i = 0; i < count; i++) assert_comm(rill_comm_release(comms[i]));
}

static void of_another_runtime_is_refused(void) {
  assert_true(find_devices(gpus) > 0);
  assert_comm_fails(rill_comm_create_all(gpus, 1, NULL, comms), RILL_ERROR_UNSUPPORTED,
                    "libamdhip64.so.6, but rill uses ");
}

int main(int argc, char **argv) {
  static const struct mode modes[] = { MODE(comes_from_the_folder_of_the_runtime),
                                       MODE(of_another_runtime_is_refused) };
  return RUN_MODES("the places of RCCL", argc, argv, modes);
}
