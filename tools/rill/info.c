/* rill info: the devices, and why the other backends have none, or why one seems to have too few. */
#include "table.h"
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 9, CELL = TABLE_CELL };

static const char *const headings[COLUMNS] = { "device", "name",   "arch",    "units",     "memory",
                                               "shared", "driver", "runtime", "priorities" };

struct row {
  char cell[COLUMNS][CELL];
};

/* 139.8 GiB, 227 KiB */
static void print_bytes(char *text, uint64_t bytes) {
  static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
    value /= 1024;
    unit++;
  }
  const bool integral = value == (double)(uint64_t)value;
  (void)snprintf(text, CELL, "%.*f %s", integral ? 0 : 1, value, units[unit]);
}

/* 13000 is 13.0 */
static void print_vendor_version(char *text, uint32_t version) {
  if (version == 0) {
    (void)snprintf(text, CELL, "-");
  } else {
    (void)snprintf(text, CELL, "%" PRIu32 ".%" PRIu32, version / 1000, version % 1000 / 10);
  }
}

static void fill_row(struct row *row, const rill_device_info *info) {
  (void)snprintf(row->cell[0], CELL, "%s", device_name(info).text);
  (void)snprintf(row->cell[1], CELL, "%s", info->name);
  (void)snprintf(row->cell[2], CELL, "%s", info->arch);
  (void)snprintf(row->cell[3], CELL, "%" PRIu32, info->compute_units);
  print_bytes(row->cell[4], info->memory_total);
  print_bytes(row->cell[5], info->shared_per_block_optin);
  print_vendor_version(row->cell[6], info->driver_version);
  print_vendor_version(row->cell[7], info->runtime_version);
  (void)snprintf(row->cell[8], CELL, "%" PRId32 " to %" PRId32, info->priority_least, info->priority_greatest);
}

#define ONE(constant, number, name) +1
enum { BACKENDS = 1 RILL_BACKEND_LIST(ONE) }; /* numbers start at 1 */
#undef ONE

static bool read_devices(struct row *rows, int32_t count, uint32_t *devices) {
  for (int32_t i = 0; i < count; i++) {
    rill_device device;
    rill_device_info info = RILL_DEVICE_INFO_INIT;
    if (rill_device_get(i, &device) != RILL_OK || rill_device_get_info(device, &info) != RILL_OK) {
      return complain_of_rill();
    }
    fill_row(&rows[i], &info);
    if (info.backend < BACKENDS) devices[info.backend]++;
  }
  return true;
}

/* Why there is no device of this number.  If others of the backend are there, only if rill knows of a reason: it has
 * details then. */
static void print_absent(const char *backend, uint32_t number) {
  rill_device device;
  rill_error error = RILL_ERROR_INIT;
  char name[32];
  if (number > 0) {
    (void)snprintf(name, sizeof name, "%.16s:%" PRIu32, backend, number);
  } else {
    (void)snprintf(name, sizeof name, "%.16s", backend);
  }
  if (rill_device_open(name, &device) == RILL_OK || rill_last_error(&error) != RILL_OK) return;
  if (number > 0 && strchr(error.message, '\n') == NULL) return;
  (void)printf("\nno %s device: ", name);
  for (const char *c = error.message; *c != '\0'; c++) (void)(*c == '\n' ? fputs("\n  ", stdout) : putchar(*c));
  (void)putchar('\n');
  if (error.hint[0] != '\0') (void)printf("  %s\n", error.hint);
}

int info_command(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--topology") == 0) return print_topology() && fflush(stdout) == 0 ? 0 : EXIT_WORK;
  if (argc > 1) {
    (void)complain("info takes --topology or nothing, not \"%s\"; usage: rill info [--topology]", argv[argc - 1]);
    return EXIT_USAGE;
  }
  int32_t count = 0;
  if (rill_device_count(&count) != RILL_OK) {
    (void)complain_of_rill();
    return EXIT_WORK;
  }
  struct row *rows = calloc((size_t)count + 1, sizeof *rows);
  uint32_t devices[BACKENDS] = { 0 };
  const bool ok = rows != NULL ? read_devices(rows + 1, count, devices) : complain("memory ran out");
  if (ok) {
    for (int i = 0; i < COLUMNS; i++) (void)snprintf(rows->cell[i], CELL, "%s", headings[i]);
    table_print((const char(*)[CELL])rows->cell, (size_t)count + 1, COLUMNS);
    for (uint32_t i = 1; i < BACKENDS; i++) print_absent(backend_name(i), devices[i]);
  }
  free(rows);
  if (!ok) return EXIT_WORK;
  return fflush(stdout) == 0 ? 0 : EXIT_WORK;
}
