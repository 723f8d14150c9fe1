/* RILL_ARGS in C++: the same program. */
#include "args.c"
