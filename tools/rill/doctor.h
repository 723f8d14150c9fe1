/* rill doctor: the checks, each for one area, and the functions that report findings. */
#ifndef RILL_TOOL_DOCTOR_H
#define RILL_TOOL_DOCTOR_H

#include "json.h"

#include <rill/rill.h>

struct doctor {
  const char *root;  /* prefix of /dev, /proc and /sys; "" outside tests */
  bool in_container; /* whether this is a container of a kind that can be detected */
  struct json *json; /* NULL: lines of text */
  unsigned warnings, failures;
};

enum severity {
  SEVERITY_OK,
  SEVERITY_WARNING, /* devices work, but something else will not */
  SEVERITY_FAILURE  /* a device that the machine has does not work */
};

/* A finding. If `command` is NULL, there is nothing to do, or only the owner of the machine knows what. */
struct finding {
  enum severity severity;
  const char *area, *check; /* "hip", "device_file_group": for scripts, so they never change */
  const char *command;      /* shell command that fixes it */
};

void doctor_report(struct doctor *doctor, const struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports a failure and returns true, so that a chain of causes stops at the first match. */
#define DOCTOR_FAIL(doctor, area, check, command, ...) \
  (doctor_report((doctor), &(struct finding){ SEVERITY_FAILURE, (area), (check), (command) }, __VA_ARGS__), true)
#define DOCTOR_WARN(doctor, area, check, command, ...) \
  doctor_report((doctor), &(struct finding){ SEVERITY_WARNING, (area), (check), (command) }, __VA_ARGS__)
#define DOCTOR_OK(doctor, area, check, ...) \
  doctor_report((doctor), &(struct finding){ SEVERITY_OK, (area), (check), NULL }, __VA_ARGS__)

/* ---- the areas ---- */

void doctor_cpu(struct doctor *doctor);
void doctor_cuda(struct doctor *doctor);
void doctor_hip(struct doctor *doctor);
void doctor_mpi(struct doctor *doctor);
void doctor_system(struct doctor *doctor);

/* ---- shared by the areas ---- */

/* The devices of a backend. `why` is the reason why there is none, or why there are no more; `hint` is rill's advice,
 * or "". */
struct doctor_devices {
  const char *backend;
  uint32_t count;
  rill_device first;
  uint32_t driver_version;
  const char *library; /* path of the vendor's library with links resolved; NULL: none is loaded */
  char path[4096], why[1024], hint[256];
};
void doctor_find_devices(const char *backend, uint32_t id, struct doctor_devices *devices);

/* Creates a context on each device and uses it.  Reports the devices that fail; true if none does. */
bool doctor_try_devices(struct doctor *doctor, const struct doctor_devices *devices);

/* Reports "2 devices ...". If these are fewer than `present`, also reports why: variables that are set, or unknown. */
void doctor_report_devices(struct doctor *doctor, const struct doctor_devices *devices, uint32_t present,
                           const char *const *masks);

/* Reports which of these variables are set, as the reason why there is no device. */
bool doctor_blame_mask(struct doctor *doctor, const char *area, const char *const *masks);

/* Reports that the backend is not built in. */
bool doctor_blame_build(struct doctor *doctor, const struct doctor_devices *devices);

/* The ways to create a device file. */
struct device_file {
  const char *area, *file;
  const char *option; /* option of "docker run" that passes the file */
  const char *create; /* a command outside containers */
};

/* Reports if this process cannot open the file. */
bool doctor_blame_file(struct doctor *doctor, const struct device_file *file);

/* Reports why devices of this vendor cannot exchange data through NCCL or RCCL. */
void doctor_communication(struct doctor *doctor, const struct doctor_devices *devices);

#endif
