/* graph_branches.kernel.cu: what the graphs of stress/graph_branches launch, with one thread. */
#include <rill/device/kernel.h>

/* Writes to cell `node` a sum of the cells of `before`, a bit for each, and `salt`.  A cell is four words. */
RILL_KERNEL(combine, unsigned *cells, unsigned node, unsigned before, unsigned salt) {
  unsigned sum = salt;
  for (unsigned i = 0; i < node; i++) {
    if ((before >> i & 1) != 0) sum = sum * 31 + cells[4 * i] + 7 * cells[4 * i + 2];
  }
  for (unsigned i = 0; i < 4; i++) cells[4 * node + i] = sum;
}

RILL_KERNEL(add, unsigned *sum, unsigned number) { *sum += number; }
