/* The list of observers.  Each entry has the word of RILL_CHECK that enables it. */
#include "core/observers.h"

#include "core/diagnose/crash.h"
#include "core/diagnose/inject.h"
#include "core/diagnose/observe.h"
#include "core/diagnose/settings.h"
#include "core/explain.h"
#include "core/order/watch.h"
#include "core/sync/faults.h"
#include "core/timeline/timeline.h"

#include <stdio.h>

static void start_timeline(const struct rill__settings *settings) {
  rill__errors_suspend();
  if (rill__timeline_start(settings->timeline, RILL__TIMELINE_LIMIT, settings->timeline_nodes) != RILL_OK) {
    const struct rill__error_record *const failure = rill__failure();
    (void)fprintf(stderr, "rill: RILL_TIMELINE: %s%s%s\n", failure->message, failure->hint[0] != '\0' ? "; " : "",
                  failure->hint);
  }
  rill__errors_resume();
}

static void start_observers(void) {
  rill__fault_start();
  const struct rill__settings *const settings = rill__settings();
  if (settings->deadline_ns != 0 || settings->report_signal != 0)
    rill__reports_start(settings->deadline_ns, settings->report_signal);
  if (rill__checks(RILL__CHECK_CRASH)) {
    rill__crash_start();
    rill__observe(RILL__OBSERVER_CRASH, &rill__crash_observer);
  }
  if (rill__checks(RILL__CHECK_FAULTS)) rill__observe(RILL__OBSERVER_FAULTS, &rill__faults_observer);
  if (rill__settings()->timeline != NULL) start_timeline(rill__settings());
  rill__order_start();
}

void rill__observers_start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, start_observers);
}
