/* RILL_STREAM_OPTIONS and its kin in C++: the same program. */
#include "options.c"
