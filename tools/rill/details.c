#include "details.h"

#include "loaded.h"
#include "tool.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- a value ---- */

void print_bytes(char *text, size_t size, uint64_t bytes) {
  static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
    value /= 1024;
    unit++;
  }
  const bool integral = value == (double)(uint64_t)value;
  (void)snprintf(text, size, "%.*f %s", integral ? 0 : 1, value, units[unit]);
}

void print_vendor_version(char *text, size_t size, uint32_t version) {
  if (version == 0) {
    (void)snprintf(text, size, "-");
  } else {
    (void)snprintf(text, size, "%" PRIu32 ".%" PRIu32, version / 1000, version % 1000 / 10);
  }
}

/* Each function writes a line, "numa node 0", or a field, "numa_node": 0. An unknown value is "-" or null. */

static void line(const char *key, const char *text) {
  char label[32];
  (void)snprintf(label, sizeof label, "%s", key);
  for (char *c = label; *c != '\0'; c++) *c = *c == '_' ? ' ' : *c;
  (void)printf("  %-24s%s\n", label, text);
}

static void put_text(struct json *json, const char *key, const char *text) {
  const bool known = text != NULL && text[0] != '\0' && strcmp(text, "-") != 0;
  if (json != NULL) {
    json_text(json, key, known ? text : NULL);
  } else {
    line(key, known ? text : "-");
  }
}

static void put_number(struct json *json, const char *key, bool known, int64_t value) {
  char text[24];
  (void)snprintf(text, sizeof text, "%" PRId64, value);
  if (json == NULL || !known) {
    put_text(json, key, known ? text : NULL);
  } else {
    json_integer(json, key, value);
  }
}

static void put_bytes(struct json *json, const char *key, uint64_t bytes) {
  char text[32];
  print_bytes(text, sizeof text, bytes);
  if (json == NULL || bytes == 0) {
    put_text(json, key, bytes > 0 ? text : NULL);
  } else {
    json_integer(json, key, (int64_t)bytes);
  }
}

static void put_version(struct json *json, const char *key, uint32_t version) {
  char text[32];
  print_vendor_version(text, sizeof text, version);
  put_text(json, key, text);
}

static void put_shape(struct json *json, const char *key, const uint32_t shape[3]) {
  char text[48];
  if (json == NULL) {
    (void)snprintf(text, sizeof text, "%" PRIu32 " x %" PRIu32 " x %" PRIu32, shape[0], shape[1], shape[2]);
    line(key, text);
    return;
  }
  json_open(json, key, '[');
  for (int i = 0; i < 3; i++) json_integer(json, NULL, shape[i]);
  json_close(json, ']');
}

static void put_uuid(struct json *json, const rill_device_info *info) {
  char text[2 * sizeof info->uuid + 1] = "";
  unsigned any = 0;
  for (size_t i = 0; i < sizeof info->uuid; i++) {
    (void)snprintf(text + 2 * i, 3, "%02x", info->uuid[i]);
    any |= info->uuid[i];
  }
  put_text(json, "uuid", any != 0 ? text : NULL);
}

/* ---- a device ---- */

static void put_info(struct json *json, const rill_device_info *info) {
  char library[PATH_MAX];
  put_text(json, "arch", info->arch);
  put_text(json, "pci_bus_id", info->pci_bus_id);
  put_number(json, "numa_node", info->numa_node >= 0, info->numa_node);
  put_uuid(json, info);
  put_text(json, "library", loaded_driver(info->backend, library));
  put_version(json, "driver_version", info->driver_version);
  put_version(json, "runtime_version", info->runtime_version);
  put_bytes(json, "memory_total", info->memory_total);
  put_bytes(json, "shared_per_block", info->shared_per_block);
  put_bytes(json, "shared_per_block_optin", info->shared_per_block_optin);
  put_bytes(json, "shared_per_unit", info->shared_per_unit);
  put_number(json, "compute_units", true, info->compute_units);
  put_number(json, "warp_size", true, info->warp_size);
  put_number(json, "max_threads_per_block", true, info->max_threads_per_block);
  put_number(json, "max_threads_per_unit", info->max_threads_per_unit > 0, info->max_threads_per_unit);
  put_shape(json, "max_block_dim", info->max_block_dim);
  put_shape(json, "max_grid_dim", info->max_grid_dim);
  put_number(json, "registers_per_block", info->registers_per_block > 0, info->registers_per_block);
  put_number(json, "registers_per_unit", info->registers_per_unit > 0, info->registers_per_unit);
  put_number(json, "core_clock_khz", info->core_clock_khz > 0, info->core_clock_khz);
  put_number(json, "memory_clock_khz", info->memory_clock_khz > 0, info->memory_clock_khz);
  put_number(json, "priority_least", true, info->priority_least);
  put_number(json, "priority_greatest", true, info->priority_greatest);
}

static const char *const feature_names[] = {
  [RILL_FEATURE_PEER] = "peer",
  [RILL_FEATURE_MANAGED] = "managed",
  [RILL_FEATURE_POOL] = "pool",
  [RILL_FEATURE_IPC] = "ipc",
  [RILL_FEATURE_CLUSTER] = "cluster",
  [RILL_FEATURE_COOPERATIVE] = "cooperative",
  [RILL_FEATURE_GRAPH] = "graph",
  [RILL_FEATURE_GRAPH_UPDATE] = "graph_update",
  [RILL_FEATURE_RTC] = "rtc",
  [RILL_FEATURE_STREAM_ID] = "stream_id",
  [RILL_FEATURE_KERNEL_ARGS] = "kernel_args",
  [RILL_FEATURE_EVENT_IPC] = "event_ipc",
  [RILL_FEATURE_CONDITIONAL] = "conditional",
};
_Static_assert(sizeof feature_names / sizeof *feature_names == RILL_FEATURE_END_, "every feature has a name");

static void put_feature(struct json *json, rill_device device, uint32_t feature) {
  const char *why = "";
  const bool has = rill_device_supports(device, feature, &why);
  char text[512];
  if (json == NULL) {
    (void)snprintf(text, sizeof text, "%s%s", has ? "yes" : "no: ", why);
    line(feature_names[feature], text);
    return;
  }
  json_open(json, feature_names[feature], '{');
  json_flag(json, "supported", has);
  json_text(json, "why", has ? NULL : why);
  json_close(json, '}');
}

bool details_print(rill_device device, struct json *json) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  if (rill_device_get_info(device, &info) != RILL_OK) return complain_of_rill();
  if (json != NULL) {
    json_open(json, NULL, '{');
    json_text(json, "device", device_name(&info).text);
    json_text(json, "name", info.name);
  } else {
    (void)printf("%s  %s\n", device_name(&info).text, info.name);
  }
  put_info(json, &info);
  if (json != NULL) {
    json_open(json, "features", '{');
  } else {
    (void)printf("features\n");
  }
  for (uint32_t feature = 1; feature < RILL_FEATURE_END_; feature++) put_feature(json, device, feature);
  if (json != NULL) {
    json_close(json, '}');
    json_close(json, '}');
  }
  return true;
}
