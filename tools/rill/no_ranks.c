/* rill demo --ranks in a build without rill_comm. */
#include "ranks.h"
#include "tool.h"

bool ranks_demo(const struct ranks_options *options, const struct picture *in, bool *says) {
  (void)options;
  (void)in;
  *says = true;
  return complain("--ranks needs rill_comm, but this rill was built with -Drill_comm=false");
}
