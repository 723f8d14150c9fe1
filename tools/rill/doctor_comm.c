/* rill doctor: the libraries through which devices exchange data: NCCL, RCCL and MPI. */
#include "doctor.h"
#include "loaded.h"

#include <dlfcn.h>
#include <limits.h>
#include <rill/comm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- between GPUs ---- */

void doctor_communication(struct doctor *doctor, const struct doctor_devices *devices) {
  const bool cuda = strcmp(devices->backend, "cuda") == 0;
  rill_comm_id id;
  rill_error error = RILL_ERROR_INIT;
  if (rill_comm_id_create(devices->first, &id) == RILL_OK || rill_comm_last_error(&error) != RILL_OK) return;
  const bool of_another = strstr(error.message, " uses ") != NULL;
  if (devices->count == 1 && !of_another) return; /* nothing to communicate with */
  DOCTOR_WARN(doctor, devices->backend, of_another ? "communication_version" : "communication",
              cuda ? "sudo apt install libnccl2" : "sudo apt install rccl || sudo apt install librccl1",
              "rill_comm cannot be used: %s", error.message);
}

/* ---- MPI ---- */

enum mpi { MPI_UNKNOWN, MPI_OPEN, MPI_MPICH };

static const char *const names[] = { "an unknown MPI", "Open MPI", "MPICH or a compatible MPI" };
static const char *const options[] = { "mpicc", "openmpi", "mpich" };

/* Returns the engine that the user selected, or NULL. */
static const char *chosen_engine(void) {
  const char *chosen = getenv("RILL_COMM_MPI");
  return chosen != NULL && chosen[0] != '\0' ? chosen : NULL;
}

/* Opens the engine that the user selected, otherwise the one next to rill_comm. */
static void *open_engine(char *path) {
  const char *chosen = chosen_engine(), *slash;
  if (chosen != NULL) {
    (void)snprintf(path, PATH_MAX, "%s", chosen);
  } else if (loaded_library("librill_comm.so", path) != NULL && (slash = strrchr(path, '/')) != NULL) {
    (void)snprintf(path + (slash - path), PATH_MAX - (size_t)(slash - path), "/librill_comm_mpi.so.0");
  } else {
    (void)snprintf(path, PATH_MAX, "librill_comm_mpi.so.0");
  }
  return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

/* MPICH, Intel MPI and others share the name libmpi.so.12. */
static enum mpi of_engine(void) {
  char path[PATH_MAX];
  if (loaded_library("libmpich.so", path) != NULL || loaded_library("libmpi.so.12", path) != NULL) return MPI_MPICH;
  return loaded_library("libmpi.so", path) != NULL ? MPI_OPEN : MPI_UNKNOWN;
}

static enum mpi of_text(const char *text) {
  if (strstr(text, "Open MPI") != NULL || strstr(text, "OpenRTE") != NULL) return MPI_OPEN;
  return strstr(text, "HYDRA") != NULL || strstr(text, "MPICH") != NULL || strstr(text, "Intel") != NULL ? MPI_MPICH
                                                                                                         : MPI_UNKNOWN;
}

/* Returns the MPI of the mpirun that started this process, or of the mpirun in the PATH. */
static enum mpi of_launcher(const char **what) {
  *what = "this process was started by mpirun";
  if (getenv("OMPI_COMM_WORLD_SIZE") != NULL) return MPI_OPEN;
  if (getenv("HYDI_CONTROL_FD") != NULL) return MPI_MPICH;
  *what = "mpirun in the PATH is part";
  char text[4096];
  FILE *output = popen("mpirun --version 2>/dev/null </dev/null", "r");
  const size_t length = output != NULL ? fread(text, 1, sizeof text - 1, output) : 0;
  text[length] = '\0';
  if (output != NULL) (void)pclose(output);
  return of_text(text);
}

void doctor_mpi(struct doctor *doctor) {
  char path[PATH_MAX], command[128];
  const char *what, *said;
  void *engine = open_engine(path);
  if (engine == NULL) {
    said = dlerror();
    DOCTOR_WARN(doctor, "mpi", "engine_missing",
                chosen_engine() != NULL
                    ? "unset RILL_COMM_MPI"
                    : "sudo apt install libopenmpi-dev && meson setup --reconfigure build && ninja -C build",
                "rill_comm has no engine for MPI, so processes cannot communicate on the CPU: %s",
                said != NULL ? said : path);
    return;
  }
  const enum mpi own = of_engine(), launcher = of_launcher(&what);
  if (own == MPI_UNKNOWN || launcher == MPI_UNKNOWN || own == launcher) {
    DOCTOR_OK(doctor, "mpi", "engine", "the engine is for %s, %s", names[own], path);
    return;
  }
  (void)snprintf(command, sizeof command, "meson configure build -Drill_mpi=%s && ninja -C build", options[launcher]);
  DOCTOR_WARN(doctor, "mpi", "engine_for_another", command,
              "%s of %s, but the engine is for %s: each process becomes rank 0 of 1 (%s)", what, names[launcher],
              names[own], path);
}
