/* Text that is built piece by piece in a buffer that may be too small. */
#ifndef RILL_CORE_DIAGNOSE_TEXT_H
#define RILL_CORE_DIAGNOSE_TEXT_H

#include <stdarg.h>
#include <stdio.h>

struct rill__text {
  char *room; /* the buffer; ends with a zero unless `size` is 0 */
  size_t size;
  size_t length; /* length of everything that was added, even if it did not fit */
};

static inline __attribute__((format(printf, 2, 3))) void rill__text_add(struct rill__text *text, const char *format,
                                                                        ...) {
  const size_t used = text->length < text->size ? text->length : text->size;
  va_list list;
  va_start(list, format);
  const int more = vsnprintf(text->size > used ? text->room + used : NULL, text->size - used, format, list);
  va_end(list);
  if (more > 0) text->length += (size_t)more;
}

#endif
