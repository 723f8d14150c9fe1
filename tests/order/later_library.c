/* A library that opens the vendors' libraries by itself, as a statically linked runtime does; or one that opens
 * another. */
const char *const *later_library_opens(void);

const char *const *later_library_opens(void) {
#if LATER_OPENS
  static const char *const names[] = { "libcuda.so.1", "libamdhip64.so.6" };
#else
  static const char *const names[] = { "libother.so.1", "libanother.so.1" };
#endif
  return names;
}
