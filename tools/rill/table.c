#include "table.h"

#include <stdio.h>
#include <string.h>

static int width_of(const char (*cells)[TABLE_CELL], size_t rows, size_t columns, size_t column) {
  size_t width = 0;
  for (size_t row = 0; row < rows; row++) {
    const size_t length = strlen(cells[row * columns + column]);
    width = length > width ? length : width;
  }
  return (int)width;
}

void table_print(const char (*cells)[TABLE_CELL], size_t rows, size_t columns) {
  for (size_t row = 0; row < rows; row++) {
    for (size_t column = 0; column + 1 < columns; column++) {
      (void)printf("%-*s  ", width_of(cells, rows, columns, column), cells[row * columns + column]);
    }
    (void)printf("%s\n", cells[(row + 1) * columns - 1]);
  }
}
