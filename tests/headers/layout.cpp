/* The layout of public structs in C++. */
#include "layout.c"
