/* The file of a timeline: a list of events in the JSON format of Chrome's trace viewer, which Perfetto also reads.  The
 * file grows event by event, and viewers accept a list without its end, so a program that crashes leaves a readable
 * file. */
#ifndef RILL_CORE_TIMELINE_FILE_H
#define RILL_CORE_TIMELINE_FILE_H

#include <rill/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Times in the file have a resolution of 1 ns: microseconds with three decimals. */
#define RILL__US_FORMAT "%llu.%03u"
#define RILL__US(ns) (unsigned long long)((ns) / 1000), (unsigned)((ns) % 1000)

/* Creates the file, or truncates it.  Only one file is open at a time.  `limit`: maximum size in bytes.  Fails with
 * INVALID_ARGUMENT if the file cannot be written, or if another process is writing it. */
rill_status rill__trace_file_open(const char *path, uint64_t limit);

/* Adds one event, formatted as a JSON object.  Events for which the limit or a full disk leaves no room are counted as
 * dropped.  May be called by any thread; does nothing if no file is open. */
void rill__trace_file_add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Counts an event as dropped. */
void rill__trace_file_drop(void);

/* Writes everything that was added, so that it survives the process. */
void rill__trace_file_flush(void);

/* Writes the end of the list, with the number of events that are unfinished, and closes the file.  `end`: when the
 * trace ended, in its own time in ns.  Returns false if events were lost because writing failed, for example on a full
 * disk. */
bool rill__trace_file_close(uint64_t unfinished, uint64_t end);

/* Closes the file in the child of a fork: it belongs to the parent. */
void rill__trace_file_abandon(void);

/* Escapes `text` for use inside a JSON string, cut to what fits. */
void rill__json_escape(char *out, size_t size, const char *text);

#endif
