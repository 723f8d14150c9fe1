/* shapes_team.h: threads that share out the units of a shape in plain C, as OpenMP's do, whichever compiler made it. */
#ifndef RILL_TESTS_BENCH_SHAPES_TEAM_H
#define RILL_TESTS_BENCH_SHAPES_TEAM_H

#include "shapes.h"

#include <stdbool.h>

/* Starts the threads of a team of `size`, which the caller is one of; they end with the process. */
bool team_start(size_t size);

/* Returns when all units are done; each thread does as many, all in a row. */
void team_run(shape_function *function, const struct shape_data *data);

#endif
