/* rill info --topology: how the devices of this machine are connected, and which can access which memory. */
#include "links.h"
#include "table.h"
#include "tool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 }; /* GPUs */

struct gpu {
  rill_device device;
  rill_device_info info;
  char path[PATH_MAX]; /* in sysfs, with one folder per bridge; "" if it is missing */
};

static const char *sysfs(void) {
  const char *given = getenv("RILL_SYSFS"); /* for tests: sysfs of another machine */
  return given != NULL ? given : "/sys";
}

/* Reads the first line of a file of a PCI device, or "-" if it is missing. */
static void read_attribute(const struct gpu *gpu, const char *name, char *out, size_t size) {
  char path[PATH_MAX + 64];
  (void)snprintf(path, sizeof path, "%s/%s", gpu->path, name);
  FILE *file = gpu->path[0] != '\0' ? fopen(path, "r") : NULL;
  if (file == NULL || fgets(out, (int)size, file) == NULL) (void)snprintf(out, size, "-");
  out[strcspn(out, "\n")] = '\0';
  if (file != NULL) (void)fclose(file);
}

static void find_path(struct gpu *gpu) {
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s/bus/pci/devices/%s", sysfs(), gpu->info.pci_bus_id);
  if (gpu->info.pci_bus_id[0] == '\0' || realpath(path, gpu->path) == NULL) gpu->path[0] = '\0';
}

/* ---- two devices ---- */

/* Returns the number of folders of a path from `at`. */
static int folders(const char *at) {
  int count = 0;
  for (; *at != '\0'; at++) count += *at == '/';
  return count;
}

/* Uses the names of nvidia-smi: PIX for one bridge, PXB for several, PHB for the same host bridge, NODE for different
 * host bridges of one NUMA node, SYS for different NUMA nodes. */
static const char *pcie_between(const struct gpu *a, const struct gpu *b) {
  if (a->path[0] == '\0' || b->path[0] == '\0') return "?";
  size_t same = 0, end = 0; /* end: after the last common folder */
  while (a->path[same] == b->path[same] && a->path[same] != '\0') {
    if (a->path[same] == '/') end = same;
    same++;
  }
  const char *root = strstr(a->path, "/pci");
  if (root == NULL || root >= a->path + end) {
    char node[16], other[16];
    read_attribute(a, "numa_node", node, sizeof node);
    read_attribute(b, "numa_node", other, sizeof other);
    return node[0] != '-' && strcmp(node, other) == 0 ? "NODE" : "SYS"; /* "-1": no NUMA node */
  }
  const bool below_root = strchr(root + 1, '/') < a->path + end; /* a bridge is common to both */
  if (!below_root) return "PHB";
  const int apart = folders(a->path + end) > folders(b->path + end) ? folders(a->path + end) : folders(b->path + end);
  return apart <= 2 ? "PIX" : "PXB";
}

static const char *link_between(const struct gpu *a, const struct gpu *b) {
  if (rill_device_equal(a->device, b->device)) return "self";
  if (a->info.backend != b->info.backend) return pcie_between(a, b);
  if (links_nvlink(&a->info, &b->info)) return "NVLink";
  return links_xgmi(sysfs(), &a->info, &b->info) ? "XGMI" : pcie_between(a, b);
}

static const char *reach_between(const struct gpu *a, const struct gpu *b) {
  if (rill_device_equal(a->device, b->device)) return "self";
  return rill_device_can_access_peer(a->device, b->device, NULL) ? "yes" : "no";
}

/* ---- printing ---- */

typedef char cell[TABLE_CELL];

static void set(cell *to, const char *text) { (void)snprintf(*to, sizeof *to, "%s", text); }

static void print_devices(const struct gpu *gpus, size_t count, cell *cells) {
  static const char *const headings[] = { "device", "pci", "speed", "lanes", "numa", "cpus", "nvlinks" };
  enum { COLUMNS = sizeof headings / sizeof *headings };
  for (size_t i = 0; i < COLUMNS; i++) set(&cells[i], headings[i]);
  for (size_t i = 0; i < count; i++) {
    cell *row = cells + (i + 1) * COLUMNS;
    set(&row[0], device_name(&gpus[i].info).text);
    set(&row[1], gpus[i].info.pci_bus_id[0] != '\0' ? gpus[i].info.pci_bus_id : "-");
    read_attribute(&gpus[i], "current_link_speed", row[2], TABLE_CELL);
    read_attribute(&gpus[i], "current_link_width", row[3], TABLE_CELL);
    read_attribute(&gpus[i], "numa_node", row[4], TABLE_CELL);
    read_attribute(&gpus[i], "local_cpulist", row[5], TABLE_CELL);
    const unsigned links = links_nvlink_count(&gpus[i].info);
    (void)snprintf(row[6], TABLE_CELL, links > 0 ? "%u" : "-", links);
  }
  table_print((const cell *)cells, count + 1, COLUMNS);
}

static void print_pairs(const struct gpu *gpus, size_t count, cell *cells, const char *heading,
                        const char *(*between)(const struct gpu *, const struct gpu *)) {
  set(&cells[0], heading);
  for (size_t i = 0; i < count; i++) {
    set(&cells[i + 1], device_name(&gpus[i].info).text);
    set(&cells[(i + 1) * (count + 1)], device_name(&gpus[i].info).text);
    for (size_t k = 0; k < count; k++) set(&cells[(i + 1) * (count + 1) + k + 1], between(&gpus[i], &gpus[k]));
  }
  (void)printf("\n");
  table_print((const cell *)cells, count + 1, count + 1);
}

static bool find_gpus(struct gpu *gpus, size_t *count) {
  int32_t devices = 0;
  *count = 0;
  if (rill_device_count(&devices) != RILL_OK) return complain_of_rill();
  for (int32_t i = 0; i < devices && *count < MOST; i++) {
    struct gpu *gpu = &gpus[*count];
    gpu->info = (rill_device_info)RILL_DEVICE_INFO_INIT;
    if (rill_device_get(i, &gpu->device) != RILL_OK || rill_device_get_info(gpu->device, &gpu->info) != RILL_OK) {
      return complain_of_rill();
    }
    if (gpu->info.backend == RILL_BACKEND_CPU) continue;
    find_path(gpu);
    ++*count;
  }
  return true;
}

bool print_topology(void) {
  struct gpu *gpus = calloc(MOST, sizeof *gpus);
  size_t count = 0;
  bool ok = gpus != NULL ? find_gpus(gpus, &count) : complain("out of memory");
  const size_t columns = count + 1 > 7 ? count + 1 : 7;
  cell *cells = calloc((count + 1) * columns, sizeof *cells);
  if (ok && cells == NULL) ok = complain("out of memory");
  if (ok && count == 0) {
    (void)printf("there is no GPU, so there are no links to show\n");
  } else if (ok) {
    print_devices(gpus, count, cells);
    print_pairs(gpus, count, cells, "link", link_between);
    print_pairs(gpus, count, cells, "reaches", reach_between);
    (void)printf(
        "\nlink: NVLink and XGMI are the vendors' own links. Over PCIe: PIX through one bridge, PXB through several,\n"
        "PHB through the host bridge, NODE between host bridges of one NUMA node, SYS between NUMA nodes,\n"
        "? unknown.\n"
        "reaches: whether work on the row's device can access the memory of the column's device directly.\n");
  }
  free(cells);
  free(gpus);
  return ok;
}
