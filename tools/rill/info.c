/* rill info: lists the devices or shows one in detail, and explains missing devices and backends. */
#include "details.h"
#include "json.h"
#include "loaded.h"
#include "table.h"
#include "tool.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 9, CELL = TABLE_CELL };

static const char *const headings[COLUMNS] = { "device", "name",   "arch",    "units",     "memory",
                                               "shared", "driver", "runtime", "priorities" };

struct row {
  char cell[COLUMNS][CELL];
};

static void fill_row(struct row *row, const rill_device_info *info) {
  (void)snprintf(row->cell[0], CELL, "%s", device_name(info).text);
  (void)snprintf(row->cell[1], CELL, "%s", info->name);
  (void)snprintf(row->cell[2], CELL, "%s", info->arch);
  (void)snprintf(row->cell[3], CELL, "%" PRIu32, info->compute_units);
  print_bytes(row->cell[4], CELL, info->memory_total);
  print_bytes(row->cell[5], CELL, info->shared_per_block_optin);
  print_vendor_version(row->cell[6], CELL, info->driver_version);
  print_vendor_version(row->cell[7], CELL, info->runtime_version);
  (void)snprintf(row->cell[8], CELL, "%" PRId32 " to %" PRId32, info->priority_least, info->priority_greatest);
}

#define ONE(constant, number, name) +1
enum { BACKENDS = 1 RILL_BACKEND_LIST(ONE) }; /* numbers start at 1 */
#undef ONE

static void count_device(const rill_device_info *info, uint32_t *devices) {
  if (info->backend < BACKENDS) devices[info->backend]++;
}

static bool read_devices(struct row *rows, int32_t count, uint32_t *devices) {
  for (int32_t i = 0; i < count; i++) {
    rill_device device;
    rill_device_info info = RILL_DEVICE_INFO_INIT;
    if (rill_device_get(i, &device) != RILL_OK || rill_device_get_info(device, &info) != RILL_OK) {
      return complain_of_rill();
    }
    fill_row(&rows[i], &info);
    count_device(&info, devices);
  }
  return true;
}

/* ---- devices that are not there ---- */

/* Explains why there is no device with this number. If the backend has other devices, it explains only if rill knows
 * a reason, in which case the error has details. */
static bool find_absent(const char *backend, uint32_t number, char name[32], rill_error *error) {
  rill_device device;
  if (number > 0) {
    (void)snprintf(name, 32, "%.16s:%" PRIu32, backend, number);
  } else {
    (void)snprintf(name, 32, "%.16s", backend);
  }
  *error = (rill_error)RILL_ERROR_INIT;
  if (rill_device_open(name, &device) == RILL_OK || rill_last_error(error) != RILL_OK) return false;
  return number == 0 || strchr(error->message, '\n') != NULL;
}

static void print_absent(const char *backend, uint32_t number) {
  char name[32];
  rill_error error;
  if (!find_absent(backend, number, name, &error)) return;
  (void)printf("\nno %s device: ", name);
  for (const char *c = error.message; *c != '\0'; c++) (void)(*c == '\n' ? fputs("\n  ", stdout) : putchar(*c));
  (void)putchar('\n');
  if (error.hint[0] != '\0') (void)printf("  %s\n", error.hint);
}

static void write_absent(struct json *json, const char *backend, uint32_t number) {
  char name[32];
  rill_error error;
  if (!find_absent(backend, number, name, &error)) return;
  json_open(json, NULL, '{');
  json_text(json, "device", name);
  json_text(json, "why", error.message);
  json_text(json, "hint", error.hint[0] != '\0' ? error.hint : NULL);
  json_close(json, '}');
}

/* ---- the forms ---- */

static struct version_text library_version(void) { return version_text(rill_version()); }

static bool print_table(void) {
  int32_t count = 0;
  if (rill_device_count(&count) != RILL_OK) return complain_of_rill();
  struct row *rows = calloc((size_t)count + 1, sizeof *rows);
  uint32_t devices[BACKENDS] = { 0 };
  const bool ok = rows != NULL ? read_devices(rows + 1, count, devices) : complain("out of memory");
  if (ok) {
    for (int i = 0; i < COLUMNS; i++) (void)snprintf(rows->cell[i], CELL, "%s", headings[i]);
    table_print((const char(*)[CELL])rows->cell, (size_t)count + 1, COLUMNS);
    for (uint32_t i = 1; i < BACKENDS; i++) print_absent(backend_name(i), devices[i]);
    (void)printf("\nrill %s\n", library_version().text);
  }
  free(rows);
  return ok;
}

static bool print_device(rill_device device) {
  char path[PATH_MAX];
  const char *library = loaded_library("librill.so", path);
  if (!details_print(device, NULL)) return false;
  (void)printf("rill\n  %-24s%s\n  %-24s%s\n", "version", library_version().text, "library",
               library != NULL ? library : "linked into the program");
  return true;
}

static bool write_devices(struct json *json, uint32_t *devices) {
  int32_t count = 0;
  if (rill_device_count(&count) != RILL_OK) return complain_of_rill();
  for (int32_t i = 0; i < count; i++) {
    rill_device device;
    rill_device_info info = RILL_DEVICE_INFO_INIT;
    if (rill_device_get(i, &device) != RILL_OK || rill_device_get_info(device, &info) != RILL_OK) {
      return complain_of_rill();
    }
    count_device(&info, devices);
    if (!details_print(device, json)) return false;
  }
  return true;
}

/* Prints one device, or all if NULL. */
static bool write_json(const rill_device *one) {
  char library[PATH_MAX];
  struct json json = { 0 };
  uint32_t devices[BACKENDS] = { 0 };
  json_open(&json, NULL, '{');
  json_text(&json, "version", library_version().text);
  json_text(&json, "library", loaded_library("librill.so", library));
  json_open(&json, "devices", '[');
  if (!(one != NULL ? details_print(*one, &json) : write_devices(&json, devices))) return false;
  json_close(&json, ']');
  if (one == NULL) {
    json_open(&json, "absent", '[');
    for (uint32_t i = 1; i < BACKENDS; i++) write_absent(&json, backend_name(i), devices[i]);
    json_close(&json, ']');
  }
  json_close(&json, '}');
  return true;
}

static bool print_one(const char *name, bool json) {
  rill_device device;
  if (rill_device_open(name, &device) != RILL_OK) return complain_of_rill();
  return json ? write_json(&device) : print_device(device);
}

static int misuse(const char *argument) {
  (void)complain("info: unexpected argument \"%s\"; usage: rill info [DEVICE] [--json] | --topology", argument);
  return EXIT_USAGE;
}

int info_command(int argc, char **argv) {
  const char *name = NULL;
  bool json = false, topology = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (strcmp(argv[i], "--topology") == 0) {
      topology = true;
    } else if (argv[i][0] != '-' && name == NULL) {
      name = argv[i];
    } else {
      return misuse(argv[i]);
    }
  }
  if (topology && argc > 2) {
    (void)complain("info --topology takes no other argument");
    return EXIT_USAGE;
  }
  const bool ok = topology       ? print_topology()
                  : name != NULL ? print_one(name, json)
                  : json         ? write_json(NULL)
                                 : print_table();
  return ok && fflush(stdout) == 0 ? 0 : EXIT_WORK;
}
