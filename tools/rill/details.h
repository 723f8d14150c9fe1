/* All properties of a device, as lines or as JSON. */
#ifndef RILL_TOOL_DETAILS_H
#define RILL_TOOL_DETAILS_H

#include "json.h"

#include <rill/rill.h>
#include <stddef.h>

/* 139.8 GiB, 227 KiB */
void print_bytes(char *text, size_t size, uint64_t bytes);

/* "13.0" for 13000; "-" for 0. */
void print_vendor_version(char *text, size_t size, uint32_t version);

/* Prints the device; `json` is NULL for lines, else the list or object that gets it.  Returns false after printing an
 * error. */
bool details_print(rill_device device, struct json *json);

#endif
