/* Memory size of the cpu device: a total that is read once, and the amount granted.
 *
 * The total is the minimum of the machine's memory, the limits of control groups, what RLIMIT_AS and RLIMIT_DATA leave
 * when the device is initialized, and RILL_CPU_MEMORY.  All memory of rill_alloc and of pools counts, of every kind,
 * because this device has no other memory.  The system is not queried at each grant.  Like a GPU, the device refuses
 * what exceeds its total, whether or not pages have been touched.
 */
#include "backends/cpu/cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t total;
static _Atomic uint64_t granted;

void rill__cpu_warn_of_setting(const char *name, const char *text, const char *instead) {
  (void)fprintf(stderr, "rill: %s=%.40s is not %s\n", name, text, instead);
}

/* Returns the power of two of a unit: 10 for "K", "KB" and "KiB", and so on up to "T"; 0 for "" and "B"; -1 if
 * invalid. */
static int unit_shift(const char *unit) {
  static const char letters[] = "KMGT";
  if (unit[0] == '\0' || strcmp(unit, "B") == 0) return 0;
  const char letter = unit[0] >= 'a' && unit[0] <= 'z' ? (char)(unit[0] - 'a' + 'A') : unit[0];
  const char *const found = strchr(letters, letter);
  if (found == NULL) return -1;
  const bool ends = unit[1] == '\0' || strcmp(unit + 1, "B") == 0 || strcmp(unit + 1, "iB") == 0;
  return ends ? 10 * (int)(found - letters + 1) : -1;
}

bool rill__cpu_parse_size(const char *text, uint64_t *bytes) {
  uint64_t number = 0;
  const char *at = text;
  for (; *at >= '0' && *at <= '9'; at++) {
    const uint64_t digit = (uint64_t)(*at - '0');
    if (number > (UINT64_MAX - digit) / 10) return false;
    number = number * 10 + digit;
  }
  const int shift = at == text ? -1 : unit_shift(at);
  if (shift < 0 || number == 0 || number > UINT64_MAX >> shift) return false;
  *bytes = number << shift;
  return true;
}

void rill__cpu_memory_set_up(void) {
  uint64_t requested = 0;
  const char *const text = getenv("RILL_CPU_MEMORY");
  total = rill__cpu_memory_read();
  if (text == NULL || text[0] == '\0') return;
  if (rill__cpu_parse_size(text, &requested)) {
    if (requested < total) total = requested;
    return;
  }
  char instead[96];
  (void)snprintf(instead, sizeof instead,
                 "a size such as 2GiB, 512MiB or 1000000; the cpu device has %" PRIu64 " bytes", total);
  rill__cpu_warn_of_setting("RILL_CPU_MEMORY", text, instead);
}

uint64_t rill__cpu_memory_total(void) { return total; }

uint64_t rill__cpu_memory_free_bytes(void) {
  const uint64_t now = atomic_load(&granted);
  return now < total ? total - now : 0;
}

bool rill__cpu_memory_grant(uint64_t bytes) {
  uint64_t now = atomic_load_explicit(&granted, memory_order_relaxed);
  do {
    if (bytes > total || now > total - bytes) return false;
  } while (!atomic_compare_exchange_weak(&granted, &now, now + bytes));
  return true;
}

void rill__cpu_memory_return(uint64_t bytes) { (void)atomic_fetch_sub(&granted, bytes); }

void rill__cpu_memory_adjust(uint64_t from, uint64_t to) { (void)atomic_fetch_add(&granted, to - from); }
