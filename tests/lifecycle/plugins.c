/* Kernels of a library that is closed while the program continues (rill_bundle_unload). The argument is its file. */
#include "plugin.h"
#include "support/testing.h"

#include <dlfcn.h>
#include <stdio.h>

static const char *path;

struct opened {
  void *library;
  const struct plugin_functions *functions;
};

static struct opened open_plugin(void) {
  struct opened plugin = { dlopen(path, RTLD_NOW | RTLD_LOCAL), NULL };
  if (plugin.library == NULL) fail_msg("%s", dlerror());
  plugin.functions = dlsym(plugin.library, "plugin_functions");
  assert_non_null(plugin.functions);
  return plugin;
}

/* The library must really be unmapped: any remaining access to it would crash. */
static void close_plugin(struct opened *plugin) {
  assert_ok(rill_bundle_unload(plugin->functions->bundle));
  assert_int_equal(dlclose(plugin->library), 0);
  assert_null(dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD));
}

static void add(const struct opened *plugin, rill_stream stream, unsigned value) {
  const rill_launch shape = rill_launch_1d(1, 1);
  assert_ok(plugin->functions->add(stream, &shape, dut.memory, value));
}

static void check_sum(rill_stream stream, uint32_t sum) {
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], sum);
}

/* Repeatedly, at any address that the loader chooses. */
static void can_be_opened_and_closed_repeatedly(void) {
  rill_stream stream = new_stream("stream");
  for (unsigned i = 1; i <= 20; i++) {
    struct opened plugin = open_plugin();
    if (i % 2 == 0) assert_ok(rill_bundle_preload(dut.device, plugin.functions->bundle));
    add(&plugin, stream, 1);
    check_sum(stream, i);
    close_plugin(&plugin);
  }
}

/* Closed with its kernels waiting to run. */
static void can_be_closed_before_its_work_is_done(void) {
  rill_stream stream = new_stream("stream"), held = new_stream("held");
  rill_event first = new_event("first");
  struct opened plugin = open_plugin();
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_wait_event(held, first, 0));
  add(&plugin, stream, 1);
  add(&plugin, held, 10);
  close_plugin(&plugin);
  gate_open(gate);
  assert_ok(rill_stream_record_event(stream, first, 0));
  assert_completes(stream);
  check_sum(held, 11);
}

/* Handles of its kernels work on without it. */
static void can_be_closed_before_its_handles(void) {
  rill_stream stream = new_stream("stream");
  struct opened plugin = open_plugin();
  rill_module module;
  rill_kernel kernel;
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  const rill_launch shape = rill_launch_1d(1, 1);
  uint32_t *counter = dut.memory;
  assert_ok(rill_module_load(dut.device, plugin.functions->bundle, &module));
  assert_ok(rill_module_get_kernel(module, "plugin_add", &kernel));
  close_plugin(&plugin);
  assert_ok(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(counter, 5u)));
  assert_fails(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(counter, 5.0)), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("argument 2 (\"value\"): 8 bytes passed, 4 expected");
  assert_ok(rill_kernel_get_info(kernel, &info));
  assert_string_equal(info.name, "plugin_add");
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
  check_sum(stream, 5);
}

int main(int argc, char **argv) {
  static const struct test tests[] = { TEST(can_be_opened_and_closed_repeatedly),
                                       TEST(can_be_closed_before_its_work_is_done),
                                       TEST(can_be_closed_before_its_handles) };
  if (argc != 2) {
    (void)fprintf(stderr, "usage: %s PLUGIN\n", argv[0]);
    return 2;
  }
  path = argv[1];
  return RUN_ON_EACH_DEVICE("plugins", tests);
}
