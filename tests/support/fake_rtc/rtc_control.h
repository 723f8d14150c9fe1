/* rtc_control.h: control of a loaded fake run-time compiler by tests.
 *
 *     const struct rill_fake_rtc *rtc = rill_fake_rtc_find("libnvrtc.so.13");
 *     rtc->fail_call("nvrtcCreateProgram", 2, 7);     the second call from now gives 7
 *
 * hipRTC is of the HIP version RILL_FAKE_VERSION, 7.2 if there is none: others have fewer options.
 *
 * Functions are named as the vendor does.  Every function may be called from any thread.  One call can be made to fail
 * at a time; a call that ends a program ends it all the same. */
#ifndef RTC_CONTROL_H
#define RTC_CONTROL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rill_fake_rtc {
  /* Makes the nth call from now fail with `code`; replaces an earlier request. */
  void (*fail_call)(const char *function, unsigned nth, int code);
  void (*clear)(void);
  /* Calls made so far. */
  uint64_t (*calls)(const char *function);
  /* Programs that were not destroyed. */
  size_t (*live)(void);
  /* Whether the last compile had this option. */
  bool (*had_option)(const char *option);
};

#define RILL_FAKE_RTC_SYMBOL "rill_fake_rtc_control"

/** The one that is loaded under this name; NULL if it is not loaded or is none. */
static inline const struct rill_fake_rtc *rill_fake_rtc_find(const char *soname) {
  void *library = dlopen(soname, RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return NULL;
  void *symbol = dlsym(library, RILL_FAKE_RTC_SYMBOL);
  (void)dlclose(library);
  const struct rill_fake_rtc *(*control)(void);
  *(void **)&control = symbol;
  return symbol == NULL ? NULL : control();
}

#endif
