/* Prints which engine of MPI rill_comm has loaded. */
#include <rill/comm_mpi.h>
#include <rill/rill.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  rill_comm_id id;
  uint32_t ranks, rank;
  rill_error error = RILL_ERROR_INIT;
  /* Without MPI's daemon it may fail, after the engine was loaded. */
  if (rill_comm_mpi_world(&id, &ranks, &rank) != RILL_OK && rill_comm_last_error(&error) == RILL_OK)
    puts(error.message);
  FILE *maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return 1;
  char line[8192];
  while (fgets(line, sizeof line, maps) != NULL) {
    const char *path = strchr(line, '/');
    if (path != NULL && strstr(path, "librill_comm_mpi") != NULL) (void)fputs(path, stdout);
  }
  return fclose(maps) == 0 ? 0 : 1;
}
