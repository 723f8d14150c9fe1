/* sgemm_cpu.h: computes a tile of a matrix product on the CPU, in one thread. Included by sgemm.kernel.cu.
 *
 * Parts of a and b are packed into the order in which the innermost loop reads them, whether or not the matrices are
 * transposed. The loop keeps the sums of 6 rows and 16 columns in registers, as many as fit with AVX2. Each sum adds
 * its products from first to last, as on a GPU. */
#ifndef RILL_KERNELS_SGEMM_CPU_H
#define RILL_KERNELS_SGEMM_CPU_H

enum { CPU_SIDE = 128 /* maximum rows and columns of a tile */, CPU_DEPTH = 128, CPU_ROWS = 6, CPU_COLUMNS = 16 };
enum { CPU_GROUPS = (CPU_SIDE + CPU_ROWS - 1) / CPU_ROWS, CPU_PANELS = CPU_SIDE / CPU_COLUMNS };

struct cpu_tile {
  alignas(64) float a[CPU_GROUPS][CPU_DEPTH][CPU_ROWS];
  alignas(64) float b[CPU_PANELS][CPU_DEPTH][CPU_COLUMNS];
  alignas(64) float sums[CPU_GROUPS * CPU_ROWS][CPU_SIDE];
};

/* Copies `depth` columns of WIDTH rows, column by column. Rows from `rows` on are filled with zeros. */
template <int WIDTH>
static inline void copy_columns(const float *x, ptrdiff_t each_row, ptrdiff_t each_column, int rows, int depth,
                                float (*to)[WIDTH]) {
  if (rows >= WIDTH && each_row == 1) {
    for (int d = 0; d < depth; d++)
      for (int r = 0; r < WIDTH; r++) to[d][r] = x[d * each_column + r];
    return;
  }
  for (int r = 0; r < WIDTH; r++)
    for (int d = 0; d < depth; d++) to[d][r] = r < rows ? x[r * each_row + d * each_column] : 0.0f;
}

/* Adds a * b to 6 x 16 sums. */
static inline void multiply_panel(const float (*__restrict a)[CPU_ROWS], const float (*__restrict b)[CPU_COLUMNS],
                                  int depth, float (*__restrict sums)[CPU_SIDE]) {
  float s[CPU_ROWS][CPU_COLUMNS];
  for (int r = 0; r < CPU_ROWS; r++)
    for (int j = 0; j < CPU_COLUMNS; j++) s[r][j] = sums[r][j];
  for (int d = 0; d < depth; d++)
    for (int r = 0; r < CPU_ROWS; r++)
      for (int j = 0; j < CPU_COLUMNS; j++) s[r][j] = fmaf(a[d][r], b[d][j], s[r][j]);
  for (int r = 0; r < CPU_ROWS; r++)
    for (int j = 0; j < CPU_COLUMNS; j++) sums[r][j] = s[r][j];
}

/* Computes the sums of the tile of `rows` rows and `columns` columns whose first element is (top, left). The result
 * is valid until the next call in this thread. */
static inline const cpu_tile *multiply_on_cpu(const matrix &a, const matrix &b, ptrdiff_t top, ptrdiff_t left, int rows,
                                              int columns, ptrdiff_t k) {
  static thread_local cpu_tile tile;
  const int groups = (rows + CPU_ROWS - 1) / CPU_ROWS, panels = (columns + CPU_COLUMNS - 1) / CPU_COLUMNS;
  const ptrdiff_t a_row = a.transposed ? 1 : a.ld, a_column = a.transposed ? a.ld : 1;
  const ptrdiff_t b_column = b.transposed ? b.ld : 1, b_row = b.transposed ? 1 : b.ld;
  memset(tile.sums, 0, static_cast<size_t>(groups) * CPU_ROWS * sizeof tile.sums[0]);
  for (ptrdiff_t first = 0; first < k; first += CPU_DEPTH) {
    const int depth = static_cast<int>(k - first < CPU_DEPTH ? k - first : CPU_DEPTH);
    for (int g = 0; g < groups; g++)
      copy_columns<CPU_ROWS>(a.x + (top + g * CPU_ROWS) * a_row + first * a_column, a_row, a_column,
                             rows - g * CPU_ROWS, depth, tile.a[g]);
    for (int p = 0; p < panels; p++)
      copy_columns<CPU_COLUMNS>(b.x + first * b_row + (left + p * CPU_COLUMNS) * b_column, b_column, b_row,
                                columns - p * CPU_COLUMNS, depth, tile.b[p]);
    for (int p = 0; p < panels; p++)
      for (int g = 0; g < groups; g++)
        multiply_panel(tile.a[g], tile.b[p], depth,
                       reinterpret_cast<float(*)[CPU_SIDE]>(&tile.sums[g * CPU_ROWS][p * CPU_COLUMNS]));
  }
  return &tile;
}

#endif
