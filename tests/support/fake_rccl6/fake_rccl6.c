/* An RCCL that was linked with HIP 6, and has nothing else of one. */
int hipRuntimeGetVersion(int *version);
int ncclGetVersion(int *version);
__attribute__((visibility("default"))) int ncclGetVersion(int *version) { return hipRuntimeGetVersion(version); }
