/* The kernel of a plugin: a library that is opened and closed while the program runs. */
#include <rill/device/kernel.h>

RILL_KERNEL(plugin_add, unsigned *counter, unsigned value) { atomicAdd(counter, value); }
