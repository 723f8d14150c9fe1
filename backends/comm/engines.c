/* The choice of the engine for a backend, and the public functions for MPI. */
#include "backends/comm/engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MPI_LIBRARY "librill_comm_mpi.so.0"
#define TEXT_OF(x) TEXT_OF_(x)
#define TEXT_OF_(x) #x

static const struct comm_engine *mpi; /* NULL if it could not be loaded; mpi_why has the reason */
static char mpi_why[320];

static const struct comm_error *last_error(void) { return &rill__comm_last_error; }

/* Loads the MPI engine, with RTLD_GLOBAL because plugins of the MPI library look up its symbols in the global scope. */
static void open_mpi(void) {
  static const struct comm_services services = {
    rill__comm_fail,      rill__comm_fail_native,  rill__comm_fail_rill,  last_error,
    rill__comm_break,     rill__comm_part_of,      rill__comm_parts_free, rill__comm_parts_submit,
    rill__comm_part_fail, rill__comm_part_end_one, rill__comm_divide
  };
  const char *chosen = secure_getenv("RILL_COMM_MPI");
  void *library = dlopen(chosen != NULL && chosen[0] != '\0' ? chosen : MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    const char *said = dlerror();
    (void)snprintf(mpi_why, sizeof mpi_why, "%s", said != NULL ? said : MPI_LIBRARY);
    return;
  }
  void *symbol = dlsym(library, TEXT_OF(COMM_MPI_SYMBOL));
  comm_mpi_engine_fn *get = NULL;
  memcpy(&get, &symbol, sizeof get);
  mpi = get != NULL ? get(&services, rill_version()) : NULL;
  if (mpi == NULL) (void)snprintf(mpi_why, sizeof mpi_why, MPI_LIBRARY " belongs to another version of rill");
}

static rill_status start_mpi(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, open_mpi);
  COMM_REQUIRE(mpi != NULL, RILL_ERROR_UNSUPPORTED,
               "on the CPU, processes communicate through MPI, and its engine could not be loaded: %s" COMM_HINT
               "install libopenmpi-dev or libmpich-dev and build rill again, or name the library in RILL_COMM_MPI",
               mpi_why);
  return mpi->start();
}

rill_status rill__comm_engine_start(uint32_t backend, const struct comm_engine **out) {
  if (backend == RILL_BACKEND_CPU) {
    COMM_TRY(start_mpi());
    *out = mpi;
    return RILL_OK;
  }
  static const struct comm_engine *const engines[] = { &rill__comm_nccl, &rill__comm_rccl, &rill__comm_local };
  for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
    if (engines[i]->backend != backend) continue;
    *out = engines[i];
    return engines[i]->start();
  }
  return rill__comm_fail(RILL_ERROR_UNSUPPORTED, "no engine serves devices of backend %u", backend);
}

rill_status rill_comm_mpi_world(rill_comm_id *id, uint32_t *ranks, uint32_t *rank) {
  rill__comm_enter(__func__);
  COMM_REQUIRE(id != NULL && ranks != NULL && rank != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               id == NULL      ? "id"
               : ranks == NULL ? "ranks"
                               : "rank");
  memset(id, 0, sizeof *id);
  *ranks = *rank = 0;
  const uint8_t bytes[COMM_ID_BYTES] = { 0 }; /* stands for MPI_COMM_WORLD */
  COMM_TRY(start_mpi());
  COMM_TRY(mpi->world(ranks, rank));
  rill__comm_id_write(id, RILL_BACKEND_CPU, bytes);
  return RILL_OK;
}

rill_status rill_comm_mpi_handle_id(int32_t handle, const char *library, rill_comm_id *id, uint32_t *ranks,
                                    uint32_t *rank) {
  rill__comm_enter(__func__);
  COMM_REQUIRE(library != NULL && id != NULL && ranks != NULL && rank != NULL, RILL_ERROR_INVALID_ARGUMENT,
               "%s is NULL",
               library == NULL ? "library"
               : id == NULL    ? "id"
               : ranks == NULL ? "ranks"
                               : "rank");
  memset(id, 0, sizeof *id);
  *ranks = *rank = 0;
  uint8_t bytes[COMM_ID_BYTES] = { 0 };
  COMM_TRY(start_mpi());
  COMM_TRY(mpi->of_handle(handle, library, bytes, ranks, rank));
  rill__comm_id_write(id, RILL_BACKEND_CPU, bytes);
  return RILL_OK;
}
