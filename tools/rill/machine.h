/* Information from the kernel about this machine, in /dev, /proc and /sys below a root. */
#ifndef RILL_TOOL_MACHINE_H
#define RILL_TOOL_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool machine_has(const char *root, const char *file);

/* Reads the first line of a file without its newline, or "" if there is none. */
void machine_line(const char *root, const char *file, char *line, size_t size);

/* Returns how many names match a glob pattern. */
uint32_t machine_count(const char *root, const char *pattern);

/* Returns how many GPUs of a vendor ("0x10de" or "0x1002") are on the PCI bus: displays and processing accelerators. */
uint32_t machine_gpus(const char *root, const char *vendor);

/* Returns the number after a key in a file of "key number" lines, or 0 if the key is missing. */
uint64_t machine_property(const char *root, const char *file, const char *key);

/* Returns the errno of opening a device file for reading and writing, or 0 if it can be opened. */
int machine_open(const char *root, const char *file);

#endif
