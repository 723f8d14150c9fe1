/* plugin.h: what a plugin gives to the program that opens it. */
#ifndef RILL_TESTS_LIFECYCLE_PLUGIN_H
#define RILL_TESTS_LIFECYCLE_PLUGIN_H

#include <rill/rill.h>

struct plugin_functions {
  const rill_bundle *bundle;
  rill_status (*add)(rill_stream stream, const rill_launch *launch, unsigned *counter, unsigned value);
};

#endif
