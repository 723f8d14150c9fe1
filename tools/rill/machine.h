/* What the kernel says of this machine, in /dev, /proc and /sys below a root. */
#ifndef RILL_TOOL_MACHINE_H
#define RILL_TOOL_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool machine_has(const char *root, const char *file);

/* The first line of a file, without its end; "" if there is none. */
void machine_line(const char *root, const char *file, char *line, size_t size);

/* How many names match; a pattern of glob. */
uint32_t machine_count(const char *root, const char *pattern);

/* How many GPUs of a vendor are on the PCI bus: "0x10de" or "0x1002".  Displays and processing accelerators. */
uint32_t machine_gpus(const char *root, const char *vendor);

/* The number after a key in a file of "key number" lines; 0 if it is not there. */
uint64_t machine_property(const char *root, const char *file, const char *key);

/* The code with which a device file refuses to be opened for reading and writing; 0 if it does not. */
int machine_open(const char *root, const char *file);

#endif
