/* Declarations shared by the files with operations. */
#ifndef RILL_TESTS_STRESS_MIX_OPERATIONS_H
#define RILL_TESTS_STRESS_MIX_OPERATIONS_H

#include "mix.h"

/* Performs one operation of this name. */
#define MIX_DECLARE(name, group, weight) void mix_do_##name(struct worker *w, const struct operation *o);
MIX_OPERATIONS(MIX_DECLARE)
#undef MIX_DECLARE

#define OPERATION(name) void mix_do_##name(struct worker *w, const struct operation *o)

#endif
