/* A library with kernels of its own. */
#include "plugin.h"

#include "plugin.rill.h"

extern const struct plugin_functions plugin_functions;

static rill_status add(rill_stream stream, const rill_launch *launch, unsigned *counter, unsigned value) {
  return plugin_add_launch(stream, launch, counter, value);
}

__attribute__((visibility("default"))) const struct plugin_functions plugin_functions = { &plugin_bundle, add };
