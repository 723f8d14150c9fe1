/* Values that depend on the position of a thread, for kernels and for the host.  T, B, D and G are the thread, the
 * block, and their numbers, on an axis; INDEX is the thread's index in the grid.  The grid has nx threads on axis x and
 * ny on axis y. */
#define INDEX(AXIS) (B(AXIS) * D(AXIS) + T(AXIS))
#define TOTAL(AXIS) (G(AXIS) * D(AXIS))
#define PLACE (INDEX(x) + nx * (INDEX(y) + ny * INDEX(z)))

/* The first values do not depend on the shape of the blocks. */
#define SHAPES(X)                                               \
  X(index_x, INDEX(x))                                          \
  X(index_y, INDEX(y) * 7)                                      \
  X(index_all, INDEX(x) + 1000 * INDEX(y) + 1000000 * INDEX(z)) \
  X(index_and_total, INDEX(z) + 3 * TOTAL(x) - TOTAL(y))        \
  X(index_compared, INDEX(x) < TOTAL(x) / 2 ? INDEX(y) : 5)     \
  X(thread_x, T(x))                                             \
  X(thread_z, INDEX(z) + 9 * T(z))                              \
  X(block_y, B(y))                                              \
  X(block_dim_x, INDEX(x) * D(x))                               \
  X(grid_dim_y, INDEX(y) * G(y))                                \
  X(first_of_block, INDEX(x) - T(x))                            \
  X(last_of_block, T(x) == D(x) - 1)                            \
  X(block_of_index, INDEX(x) / D(x))                            \
  X(thread_of_index, INDEX(y) % D(y))                           \
  X(other_axis, B(y) * D(x) + T(x))                             \
  X(other_size, B(x) * D(y) + T(x))                             \
  X(twice_the_thread, B(x) * D(x) + 2 * T(x))                   \
  X(number_in_block, T(x) + D(x) * (T(y) + D(y) * T(z)))        \
  X(number_of_block, B(x) + G(x) * (B(y) + G(y) * B(z)))        \
  X(threads_of_block, D(x) * D(y) * D(z))
