#include "backends/cpu/pages.h"

#include "backends/cpu/lock.h"

#include <sys/mman.h>

enum { KEPT_MAX = 64 }; /* blocks of CPU_PAGES bytes: a queue that stays long takes and frees them all the time */

/* The first bytes of a cached block. */
struct kept {
  struct kept *next;
};
static struct cpu_lock pages_lock;
static struct kept *kept;
static unsigned kept_count;

static struct kept *take_kept(void) {
  cpu_acquire(&pages_lock);
  struct kept *pages = kept;
  if (pages != NULL) {
    kept = pages->next;
    kept_count--;
  }
  cpu_release(&pages_lock);
  return pages;
}

static bool keep(struct kept *pages) {
  cpu_acquire(&pages_lock);
  const bool room = kept_count < KEPT_MAX;
  if (room) {
    pages->next = kept;
    kept = pages;
    kept_count++;
  }
  cpu_release(&pages_lock);
  return room;
}

void *rill__cpu_pages_take(size_t size) {
  void *pages = size == CPU_PAGES ? take_kept() : NULL;
  if (pages != NULL) return pages;
  pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages != MAP_FAILED ? pages : NULL;
}

/* If the process has as many mappings as it may have, munmap cannot split one.  The memory is then released, and the
 * addresses stay mapped. */
void rill__cpu_pages_free(void *pages, size_t size) {
  if (size == CPU_PAGES && keep(pages)) return;
  if (munmap(pages, size) != 0) (void)madvise(pages, size, MADV_DONTNEED);
}

static _Atomic size_t all_staged;

bool rill__cpu_stage(struct cpu_staged *staged, size_t size, size_t inside) {
  if (size > CPU_STAGED_MAX) return false;
  const bool room = atomic_fetch_add_explicit(&all_staged, size, memory_order_relaxed) <= (size_t)CPU_STAGED_MAX - size;
  void *const pages = room && size > inside ? rill__cpu_pages_take(size) : NULL;
  *staged = (struct cpu_staged){ pages, size };
  if (room && (size <= inside || pages != NULL)) return true;
  rill__cpu_unstage(staged);
  *staged = (struct cpu_staged){ NULL, 0 };
  return false;
}

void rill__cpu_unstage(const struct cpu_staged *staged) {
  if (staged->pages != NULL) rill__cpu_pages_free(staged->pages, staged->size);
  (void)atomic_fetch_sub_explicit(&all_staged, staged->size, memory_order_relaxed);
}

void rill__cpu_pages_reset(void) {
  kept = NULL;
  kept_count = 0;
  atomic_store(&all_staged, 0);
}
