/* schedules.kernel.cu: what the programs of tests/schedule launch.  No access is atomic, so that blocks may run in any
 * order. */
#include <rill/device/kernel.h>

/* One word for each block. */
RILL_KERNEL(set_words, unsigned *words, unsigned value) { words[blockIdx.x] = value; }

/* Whether the first and the last of `count` words are equal, with one block. */
RILL_KERNEL(compare_ends, const unsigned *words, unsigned count, unsigned *equal) {
  *equal = words[0] == words[count - 1];
}

/* `part` and the number of the block, at the end of a log whose first word is how many entries it has.  One thread of
 * the process runs all blocks. */
RILL_KERNEL(note_block, unsigned *entries, unsigned part, unsigned room) {
  const unsigned end = entries[0];
  if (end < room) entries[1 + end] = 16 * part + blockIdx.x;
  entries[0] = end + 1;
}
