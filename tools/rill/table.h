/* Tables on stdout. */
#ifndef RILL_TOOL_TABLE_H
#define RILL_TOOL_TABLE_H

#include <stddef.h>

enum { TABLE_CELL = 128 };

/* Prints rows of cells, the headings first, each column as wide as its widest cell. */
void table_print(const char (*cells)[TABLE_CELL], size_t rows, size_t columns);

#endif
