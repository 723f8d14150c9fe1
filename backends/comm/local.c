/* Ranks of one process, on the CPU.
 *
 * What the ranks of a communicator share is a clique.  Operations that belong together meet: the nth collective
 * operation of each rank, or the nth send of one rank to another and the nth receive that answers it.  Each is compared
 * with the first of its meeting when it is submitted.  When all have been submitted and their streams have come
 * (parts.c), one thread of the process moves the bytes and opens the gates.
 *
 * A mismatch, a deadline, failed work and an abort end the clique, with a report that all ranks get: its operations are
 * dropped, and each rank's next call breaks its own communicator.
 *
 * Invariant: a work is in the table of its clique, in a meeting that is ready, or on the list of those to drop; the
 * thread takes the latter two, and nothing else frees works. */
#include "backends/comm/local.h"

#include <errno.h>
#include <rill/rill.h>
#include <string.h>
#include <unistd.h>

static void settle_part(struct comm_part *part);

static struct {
  struct comm_parts parts; /* the lock guards all of this, and all cliques */
  struct local_clique *cliques;
  struct local_meeting *ready, **last_ready;
  struct local_work *dropped, **last_dropped;
  uint64_t made; /* ids */
  uint64_t late; /* when an operation that has come may be late, at the earliest; UINT64_MAX: none */
  bool started, stop, stopped;
} local = {
  .parts = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .changed_part = settle_part },
  .last_ready = &local.ready,
  .last_dropped = &local.dropped,
  .late = UINT64_MAX
};

static void lock(void) { pthread_mutex_lock(&local.parts.lock); }
static void unlock(void) { pthread_mutex_unlock(&local.parts.lock); }
static void tell(void) { pthread_cond_broadcast(&local.parts.changed); }

/* ---- meetings, under the lock ---- */

static struct local_meeting **bucket(struct local_clique *clique, const struct local_key *key) {
  return &clique->table[(key->number + key->from * 7u + key->to * 31u) % LOCAL_BUCKETS];
}

static struct local_meeting **find(struct local_clique *clique, const struct local_key *key) {
  struct local_meeting **link = bucket(clique, key);
  while (*link != NULL &&
         ((*link)->key.number != key->number || (*link)->key.from != key->from || (*link)->key.to != key->to)) {
    link = &(*link)->next;
  }
  return link;
}

static void take_out_meeting(struct local_meeting *meeting) {
  struct local_meeting **link = find(meeting->clique, &meeting->key);
  COMM_ASSERT(*link == meeting);
  *link = meeting->next;
  meeting->next = NULL;
}

static void queue_drop(struct local_work *work) {
  work->state = LOCAL_OUT;
  work->meeting = NULL;
  work->next = NULL;
  *local.last_dropped = work;
  local.last_dropped = &work->next;
}

/* Out of its meeting, which did not take place, to the thread. */
static void drop(struct local_work *work) {
  struct local_meeting *meeting = work->meeting;
  COMM_ASSERT(work->state != LOCAL_OUT && meeting->works[work->index] == work && meeting->submitted > 0);
  meeting->works[work->index] = NULL;
  meeting->came -= work->state == LOCAL_CAME;
  if (--meeting->submitted == 0) {
    take_out_meeting(meeting);
    free(meeting);
  }
  queue_drop(work);
}

/* Ends a clique.  What is not armed yet is dropped when it is. */
static void doom(struct local_clique *clique, const struct comm_error *why) {
  if (clique->dead) return;
  clique->dead = true;
  clique->why = *why;
  for (int i = 0; i < LOCAL_BUCKETS; i++) {
    for (struct local_meeting *meeting = clique->table[i], *next; meeting != NULL; meeting = next) {
      next = meeting->next;
      for (uint32_t k = 0, left = meeting->submitted; left > 0; k++) { /* with the last one the meeting is gone */
        struct local_work *work = meeting->works[k];
        if (work == NULL) continue;
        left--;
        if (work->part->armed) drop(work);
      }
    }
  }
  tell();
}

/* When an operation that has come is late; UINT64_MAX: never. */
static uint64_t deadline_of(const struct local_work *work) {
  const uint64_t timeout = work->op.comm->timeout;
  return timeout == 0 || work->since > UINT64_MAX - timeout ? UINT64_MAX : work->since + timeout;
}

static void note_deadline(const struct local_work *work) {
  if (deadline_of(work) < local.late) local.late = deadline_of(work);
}

/* A stream has come to a work, and its gate is there. */
static void come(struct local_work *work) {
  struct local_meeting *meeting = work->meeting;
  COMM_ASSERT(work->state == LOCAL_WAITS && meeting->came < meeting->submitted);
  work->state = LOCAL_CAME;
  work->since = comm_now();
  note_deadline(work);
  if (work->part->reported != RILL_OK) {
    (void)rill__comm_fail(work->part->reported, "%s did not start: the work before it failed",
                          comm_describe(&work->op).text);
    meeting->came++;
    doom(meeting->clique, &rill__comm_last_error);
    return;
  }
  if (++meeting->came < meeting->size) return;
  take_out_meeting(meeting);
  for (uint32_t i = 0; i < meeting->size; i++) meeting->works[i]->state = LOCAL_OUT;
  *local.last_ready = meeting;
  local.last_ready = &meeting->next;
}

static void settle_part(struct comm_part *part) {
  if (!part->armed) return;
  for (struct local_work *work = part->works, *next; work != NULL; work = next) {
    next = work->next_of_part;
    if (work->state == LOCAL_OUT) continue;
    if (work->meeting->clique->dead) drop(work);
    else if (part->reached && work->state == LOCAL_WAITS) come(work);
  }
}

/* ---- comparing ---- */

struct text {
  char text[160];
};

static struct text describe(const struct comm_op *op) {
  struct text made;
  const bool pair = op->kind == COMM_SEND || op->kind == COMM_RECEIVE;
  char more[64] = "";
  if (!pair) (void)snprintf(more, sizeof more, ", op %u, root %u", op->op, op->peer);
  (void)snprintf(made.text, sizeof made.text, "%s of %zu elements, type %u%s", comm_describe(op).text, op->count,
                 op->type, more);
  return made;
}

static rill_status compare(const struct comm_op *op, const struct comm_op *other) {
  const bool pair = op->kind == COMM_SEND || op->kind == COMM_RECEIVE;
  const bool same = op->count == other->count && op->type == other->type;
  const bool alike = pair || (op->kind == other->kind && op->op == other->op && op->peer == other->peer);
  COMM_REQUIRE(same && alike, RILL_ERROR_INVALID_ARGUMENT, "%s; but %s", describe(op).text, describe(other).text);
  return RILL_OK;
}

/* Adds a work to its meeting. */
static rill_status meet(struct local_work *work) {
  const struct comm_op *op = &work->op;
  struct local_member *member = op->comm->native;
  struct local_clique *clique = member->clique;
  struct local_key key = { .from = LOCAL_ALL, .to = LOCAL_ALL };
  uint64_t *count = &member->collectives;
  if (op->kind == COMM_SEND) {
    key.from = op->comm->rank, key.to = op->peer;
    count = &member->counts[op->peer];
  } else if (op->kind == COMM_RECEIVE) {
    key.from = op->peer, key.to = op->comm->rank;
    count = &member->counts[clique->ranks + op->peer];
    work->index = 1;
  } else {
    work->index = op->comm->rank;
  }
  key.number = *count;
  struct local_meeting **link = find(clique, &key), *meeting = *link;
  if (meeting == NULL) {
    const uint32_t size = key.from == LOCAL_ALL ? clique->ranks : 2;
    meeting = calloc(1, sizeof *meeting + size * sizeof *meeting->works);
    COMM_REQUIRE(meeting != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for an operation");
    meeting->clique = clique;
    meeting->key = key;
    meeting->size = size;
    *link = meeting;
  }
  const struct local_work *first = NULL;
  for (uint32_t i = 0; i < meeting->size && first == NULL; i++) first = meeting->works[i];
  COMM_ASSERT(meeting->works[work->index] == NULL && (first != NULL) == (meeting->submitted > 0));
  meeting->works[work->index] = work;
  meeting->submitted++;
  work->meeting = meeting;
  (*count)++;
  member->outstanding++;
  return first != NULL ? compare(op, &first->op) : RILL_OK;
}

/* ---- submitting ---- */

static rill_status new_works(const struct comm_op *ops, size_t count, struct local_work **works,
                             struct comm_part **parts) {
  for (size_t i = 0; i < count; i++) {
    struct comm_part *part = NULL;
    COMM_TRY(rill__comm_part_of(&local.parts, &ops[i], parts, &part));
    struct local_work *work = calloc(1, sizeof *work);
    COMM_REQUIRE(work != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for an operation");
    work->op = ops[i];
    work->part = part;
    work->next_of_part = part->works;
    part->works = work;
    *works = work;
    works = &work->next;
  }
  return RILL_OK;
}

static void free_all(struct local_work *works, struct comm_part *parts) {
  rill__comm_parts_free(parts);
  while (works != NULL) {
    struct local_work *work = works;
    works = work->next;
    free(work);
  }
}

static struct local_clique *clique_of(const struct comm_op *op) {
  return ((const struct local_member *)op->comm->native)->clique;
}

/* Fails before anything has met if one of the cliques is dead; *met tells how many have. */
static rill_status meet_all(const struct comm_op *ops, size_t count, struct local_work *works, size_t *met) {
  for (size_t i = 0; i < count; i++) {
    if (clique_of(&ops[i])->dead) return rill__comm_fail_as(&clique_of(&ops[i])->why);
  }
  rill_status status = RILL_OK;
  for (struct local_work *work = works; work != NULL && status == RILL_OK; work = work->next) {
    status = meet(work);
    *met += work->meeting != NULL;
  }
  for (size_t i = 0; i < count && status != RILL_OK; i++) doom(clique_of(&ops[i]), &rill__comm_last_error);
  return status;
}

/* Frees the works after the first `met` ones, which never met; the thread gets only the others. */
static void keep_met(struct local_work *works, size_t met) {
  for (size_t i = 0; works != NULL; i++) {
    struct local_work *work = works;
    works = work->next;
    if (i < met) continue;
    struct local_work *first = work->part->works, **link = &first;
    while (*link != work) link = &(*link)->next_of_part;
    *link = work->next_of_part;
    work->part->works = first;
    work->part->left--;
    free(work);
  }
}

/* Sorts parts that have nothing left out, and frees them; the streams of the others are not failed for what the call
 * itself tells. */
static struct comm_part *keep_used(struct comm_part *parts) {
  struct comm_part *kept = NULL;
  while (parts != NULL) {
    struct comm_part *part = parts;
    parts = part->next;
    part->failed = true;
    part->next = part->left > 0 ? kept : NULL;
    if (part->left > 0) kept = part;
    else rill__comm_parts_free(part);
  }
  return kept;
}

static rill_status submit(const struct comm_op *ops, size_t count) {
  struct local_work *works = NULL;
  struct comm_part *parts = NULL;
  size_t met = 0;
  const rill_status made = new_works(ops, count, &works, &parts);
  if (made != RILL_OK) {
    free_all(works, parts);
    return made;
  }
  lock();
  const rill_status refused = meet_all(ops, count, works, &met);
  unlock();
  struct comm_error why = rill__comm_last_error;
  if (refused != RILL_OK) {
    keep_met(works, met);
    parts = keep_used(parts);
  }
  const rill_status status = rill__comm_parts_submit(parts, refused);
  if (refused == RILL_OK) why = rill__comm_last_error;
  if (status == RILL_OK) return RILL_OK;
  /* The others wait for what this rank cannot: it is over. */
  lock();
  for (size_t i = 0; i < count; i++) doom(clique_of(&ops[i]), &why);
  unlock();
  for (size_t i = 0; i < count; i++) rill__comm_break(ops[i].comm, &why, true);
  return rill__comm_fail_as(&why);
}

/* ---- the thread ---- */

static void finish(struct local_work *work, const struct comm_error *why) {
  struct comm_part *part = work->part;
  struct local_member *member = work->op.comm->native;
  struct local_work *of_part = part->works;
  if (part->left == 1) { /* the host call may still come, and finds nothing */
    lock();
    part->works = NULL;
    unlock();
  }
  if (why != NULL) rill__comm_part_fail(part, why);
  if (why == NULL && work->op.number != 0 && !part->failed) {
    const rill_stream_note note = comm_note(&work->op);
    (void)rill_stream_note_ran(part->stream, &note, work->since, comm_now());
  }
  const bool last = rill__comm_part_end_one(part);
  lock();
  COMM_ASSERT(member->outstanding > 0);
  member->outstanding--;
  tell();
  unlock();
  while (last && of_part != NULL) {
    struct local_work *next = of_part->next_of_part;
    free(of_part);
    of_part = next;
  }
}

/* Ranks that an operation waits for. */
static void list_missing(const struct local_meeting *meeting, char *text, size_t size) {
  size_t used = 0;
  for (uint32_t i = 0; i < meeting->size && used + 80 < size; i++) {
    const struct local_work *work = meeting->works[i];
    const uint32_t rank = meeting->key.from == LOCAL_ALL ? i : i == 0 ? meeting->key.from : meeting->key.to;
    if (work != NULL && work->state == LOCAL_CAME) continue;
    const char *what = meeting->key.from == LOCAL_ALL ? "it" : i == 0 ? "the send" : "the receive";
    const int wrote =
        work == NULL ? snprintf(text + used, size - used, "; rank %u has not called %s", rank, what)
                     : snprintf(text + used, size - used, "; the stream of rank %u has not come to %s (operation %llu)",
                                rank, what, (unsigned long long)work->op.number);
    used += wrote > 0 ? (size_t)wrote : 0;
  }
}

static void report_late(const struct local_work *work) {
  char missing[320] = "";
  list_missing(work->meeting, missing, sizeof missing);
  (void)rill__comm_fail(RILL_ERROR_TIMEOUT, "%s has not ended within %llu ns%s", comm_describe(&work->op).text,
                        (unsigned long long)work->op.comm->timeout, missing);
  doom(work->meeting->clique, &rill__comm_last_error);
}

/* The operation of a clique that is late for the longest time, or that will be late first; NULL: none waits. */
static const struct local_work *find_latest(const struct local_clique *clique) {
  const struct local_work *latest = NULL;
  for (int i = 0; i < LOCAL_BUCKETS; i++) {
    for (const struct local_meeting *meeting = clique->table[i]; meeting != NULL; meeting = meeting->next) {
      for (uint32_t k = 0; k < meeting->size; k++) {
        const struct local_work *work = meeting->works[k];
        const bool waits = work != NULL && work->state == LOCAL_CAME && deadline_of(work) != UINT64_MAX;
        if (waits && (latest == NULL || deadline_of(work) < deadline_of(latest))) latest = work;
      }
    }
  }
  return latest;
}

/* Ends the cliques that have a late operation, and finds out when the next one will be. */
static void keep_deadlines(void) {
  const uint64_t now = comm_now();
  local.late = UINT64_MAX;
  for (struct local_clique *clique = local.cliques; clique != NULL; clique = clique->next) {
    const struct local_work *work = find_latest(clique);
    if (work != NULL && deadline_of(work) < now) report_late(work);
    else if (work != NULL) note_deadline(work);
  }
}

/* Waits for work or for the next deadline. */
static void rest(void) {
  const uint64_t now = comm_now();
  if (local.late < now) {
    keep_deadlines();
  } else if (local.late == UINT64_MAX) {
    (void)pthread_cond_wait(&local.parts.changed, &local.parts.lock);
  } else {
    const struct timespec until = comm_after(local.late - now + 1);
    (void)pthread_cond_timedwait(&local.parts.changed, &local.parts.lock, &until);
  }
}

static void run_meeting(struct local_meeting *meeting) {
  rill__comm_local_move(meeting->works, meeting->size);
  for (uint32_t i = 0; i < meeting->size; i++) finish(meeting->works[i], NULL);
  free(meeting);
}

/* All streams are failed before one of their gates goes: what waits after the first gate then ends at once, and a
 * failure that came later would be reported a second time. */
static void drop_all(struct local_work *works) {
  for (struct local_work *work = works; work != NULL; work = work->next) {
    rill__comm_part_fail(work->part, &clique_of(&work->op)->why);
  }
  while (works != NULL) {
    struct local_work *work = works;
    works = work->next;
    finish(work, &clique_of(&work->op)->why);
  }
}

static void *run(void *unused) {
  (void)unused;
  rill__comm_enter("rill_comm");
  lock();
  while (!local.stop) {
    struct local_meeting *meeting = local.ready;
    struct local_work *works = local.dropped;
    if (meeting != NULL) {
      local.ready = meeting->next;
      if (local.ready == NULL) local.last_ready = &local.ready;
      if (meeting->clique->dead) {
        for (uint32_t i = 0; i < meeting->size; i++) queue_drop(meeting->works[i]);
        free(meeting);
        continue;
      }
      unlock();
      run_meeting(meeting);
      lock();
    } else if (works != NULL) {
      local.dropped = NULL;
      local.last_dropped = &local.dropped;
      unlock();
      drop_all(works);
      lock();
    } else {
      rest();
    }
  }
  local.stopped = true;
  tell();
  unlock();
  return NULL;
}

static rill_status begin(void) {
  rill_device cpu;
  pthread_t thread;
  COMM_TRY_RILL(rill_device_open("cpu", &cpu), "the CPU");
  if (rill_stream_equal(local.parts.stream, RILL_NULL_STREAM)) {
    COMM_TRY_RILL(rill_stream_create(cpu, RILL_STREAM_OPTIONS(.label = "rill_comm"), &local.parts.stream), "a stream");
    comm_init_condition(&local.parts.changed); /* nobody waits yet */
  }
  local.started = pthread_create(&thread, NULL, run, NULL) == 0;
  COMM_REQUIRE(local.started, RILL_ERROR_OUT_OF_MEMORY, "no thread to move data with");
  (void)pthread_detach(thread);
  return RILL_OK;
}

static rill_status start(void) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  static bool started;
  pthread_mutex_lock(&once);
  const rill_status status = started ? RILL_OK : begin();
  started |= status == RILL_OK;
  pthread_mutex_unlock(&once);
  return status;
}

void rill__comm_local_stop(void) {
  enum { SECONDS = 2 };
  const struct timespec until = comm_after(SECONDS * UINT64_C(1000000000));
  lock();
  local.stop = true;
  tell();
  while (local.started && !local.stopped &&
         pthread_cond_timedwait(&local.parts.changed, &local.parts.lock, &until) != ETIMEDOUT) {
  }
  unlock();
}

/* ---- joining ---- */

/* Which process, so that an id of another one is recognized. */
struct id {
  uint64_t process, number;
};

static uint64_t own_process(void) {
  static uint64_t made; /* under the lock */
  struct timespec time;
  (void)clock_gettime(CLOCK_REALTIME, &time);
  if (made == 0) made = ((uint64_t)getpid() << 32) ^ (uint64_t)time.tv_sec * 1000000000u ^ (uint64_t)time.tv_nsec;
  return made;
}

static rill_status make_id(uint8_t bytes[COMM_ID_BYTES]) {
  lock();
  const struct id id = { own_process(), ++local.made };
  unlock();
  memcpy(bytes, &id, sizeof id);
  return RILL_OK;
}

static struct local_member *new_member(struct comm *comm, uint32_t ranks) {
  struct local_member *member = calloc(1, sizeof *member + 2 * (size_t)ranks * sizeof *member->counts);
  if (member != NULL) member->comm = comm;
  return member;
}

static struct local_clique *new_clique(uint32_t ranks) {
  return calloc(1, sizeof(struct local_clique) + ranks * sizeof(struct local_member *));
}

static void link_clique(struct local_clique *clique, uint64_t id, uint32_t ranks) {
  clique->id = id;
  clique->ranks = ranks;
  clique->next = local.cliques;
  local.cliques = clique;
}

static void add_member(struct local_clique *clique, struct local_member *member, uint32_t rank) {
  COMM_ASSERT(clique->members[rank] == NULL);
  clique->members[rank] = member;
  clique->complete |= ++clique->present == clique->ranks;
  member->clique = clique;
  member->comm->native = member;
}

/* The last member frees the clique. */
static void remove_member(struct local_clique *clique, uint32_t rank) {
  free(clique->members[rank]);
  clique->members[rank] = NULL;
  if (--clique->present > 0) return;
  struct local_clique **link = &local.cliques;
  while (*link != clique) link = &(*link)->next;
  *link = clique->next;
  for (int i = 0; i < LOCAL_BUCKETS; i++) COMM_ASSERT(clique->table[i] == NULL);
  free(clique->splits);
  free(clique);
}

static struct local_clique *find_clique(uint64_t id) {
  struct local_clique *clique = local.cliques;
  while (clique != NULL && clique->id != id) clique = clique->next;
  return clique;
}

/* Puts a rank into the clique of its id, which `made` may become. */
static rill_status enter(struct comm *comm, const struct id *id, struct local_member *member,
                         struct local_clique **made) {
  COMM_REQUIRE(id->process == own_process(), RILL_ERROR_INVALID_ARGUMENT,
               "the id was made by another process" COMM_HINT
               "ranks of one process join by such an id; for those that mpirun started see rill_comm_mpi_world");
  struct local_clique *clique = find_clique(id->number);
  COMM_REQUIRE(clique == NULL || clique->ranks == comm->ranks, RILL_ERROR_INVALID_ARGUMENT,
               "rank %u of %u: others have joined as ranks of %u", comm->rank, comm->ranks, clique->ranks);
  COMM_REQUIRE(
      clique == NULL || (clique->members[comm->rank] == NULL && !clique->complete), RILL_ERROR_INVALID_ARGUMENT,
      "rank %u of %u has joined already" COMM_HINT "an id is good for one communicator", comm->rank, comm->ranks);
  if (clique == NULL) {
    clique = *made;
    *made = NULL;
    link_clique(clique, id->number, comm->ranks);
  }
  add_member(clique, member, comm->rank);
  tell();
  return RILL_OK;
}

static rill_status join_one(struct comm *comm, const struct id *id) {
  struct local_member *member = new_member(comm, comm->ranks);
  struct local_clique *made = new_clique(comm->ranks);
  rill_status status = member != NULL && made != NULL
                           ? RILL_OK
                           : rill__comm_fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for rank %u", comm->rank);
  lock();
  if (status == RILL_OK) status = enter(comm, id, member, &made);
  unlock();
  free(made);
  if (status != RILL_OK) free(member);
  return status;
}

/* Waits under the lock; false at the deadline. */
static bool wait_until(uint64_t timeout, const struct timespec *until) {
  if (timeout != 0) return pthread_cond_timedwait(&local.parts.changed, &local.parts.lock, until) != ETIMEDOUT;
  return pthread_cond_wait(&local.parts.changed, &local.parts.lock) == 0;
}

/* The ranks that have not come, for a text. */
static struct text name_absent(uint32_t ranks, bool (*is_here)(const struct local_clique *, uint32_t),
                               const struct local_clique *clique) {
  struct text made = { "" };
  size_t used = 0;
  for (uint32_t i = 0; i < ranks && used + 16 < sizeof made.text; i++) {
    if (is_here(clique, i)) continue;
    const int wrote = snprintf(made.text + used, sizeof made.text - used, used == 0 ? "rank %u" : ", %u", i);
    used += wrote > 0 ? (size_t)wrote : 0;
  }
  return made;
}

static bool has_joined(const struct local_clique *clique, uint32_t rank) { return clique->members[rank] != NULL; }

static rill_status join(struct comm *const *comms, uint32_t count, const uint8_t bytes[COMM_ID_BYTES]) {
  struct id id;
  memcpy(&id, bytes, sizeof id);
  const uint64_t timeout = comms[0]->timeout;
  const struct timespec until = comm_after(timeout);
  rill_status status = RILL_OK;
  uint32_t entered = 0;
  while (entered < count && status == RILL_OK) {
    status = join_one(comms[entered], &id);
    if (status == RILL_OK) entered++;
  }
  lock();
  while (status == RILL_OK) {
    const struct local_clique *clique = ((const struct local_member *)comms[0]->native)->clique;
    if (clique->complete) break;
    if (!wait_until(timeout, &until) && !clique->complete) {
      status = rill__comm_fail(RILL_ERROR_TIMEOUT, "rank %u of %u: the others have not joined within %llu ns: %s",
                               comms[0]->rank, comms[0]->ranks, (unsigned long long)timeout,
                               name_absent(clique->ranks, has_joined, clique).text);
    }
  }
  for (uint32_t i = 0; i < entered && status != RILL_OK; i++) {
    remove_member(((const struct local_member *)comms[i]->native)->clique, comms[i]->rank);
    comms[i]->native = NULL;
  }
  unlock();
  return status;
}

/* ---- splitting ---- */

static bool comes_before(const struct local_split *a, const struct local_split *b) {
  return a->key < b->key || (a->key == b->key && a < b); /* among equal keys by rank */
}

/* All ranks have called: joins those of each color, in the clique that its first one brought. */
static void make_parts(struct local_clique *parent) {
  for (uint32_t i = 0; i < parent->ranks; i++) {
    struct local_split *own = &parent->splits[i];
    uint32_t ranks = 0, rank = 0;
    struct local_split *first = own;
    for (uint32_t j = 0; j < parent->ranks && own->color != RILL_COMM_NO_COLOR; j++) {
      struct local_split *other = &parent->splits[j];
      if (other->color != own->color) continue;
      ranks++;
      rank += comes_before(other, own);
      if (comes_before(other, first)) first = other;
    }
    own->child->ranks = ranks;
    own->child->rank = rank;
    if (ranks == 0) continue;
    if (first->clique->ranks == 0) link_clique(first->clique, ++local.made, ranks);
    add_member(first->clique, own->member, rank);
    own->member = NULL;
  }
}

static bool has_split(const struct local_clique *clique, uint32_t rank) { return clique->splits[rank].child != NULL; }

/* Waits for the others; leaves with what is not used in *own. */
static rill_status wait_for_parts(struct local_clique *parent, uint32_t rank, struct local_split *own) {
  const uint64_t timeout = own->child->timeout;
  const struct timespec until = comm_after(timeout);
  struct local_split *place = &parent->splits[rank];
  *place = *own;
  parent->splitting++;
  if (parent->splitting == parent->ranks) {
    make_parts(parent);
    for (uint32_t i = 0; i < parent->ranks; i++) { /* who waits takes the rest */
      parent->splits[i].child = NULL;
      if (parent->splits[i].clique->ranks != 0) parent->splits[i].clique = NULL;
    }
    parent->splitting = 0;
    tell();
  }
  rill_status status = RILL_OK;
  while (place->child == own->child && status == RILL_OK) {
    if (parent->dead) {
      status = rill__comm_fail_as(&parent->why);
    } else if (!wait_until(timeout, &until) && place->child == own->child) {
      status = rill__comm_fail(
          RILL_ERROR_TIMEOUT, "rank %u of %u: the others have not called rill_comm_split within %llu ns: %s", rank,
          parent->ranks, (unsigned long long)timeout, name_absent(parent->ranks, has_split, parent).text);
    }
  }
  if (status != RILL_OK) {
    place->child = NULL;
    parent->splitting--;
  }
  own->clique = place->clique;
  own->member = place->member;
  return status;
}

static rill_status split(struct comm *parent, uint32_t color, uint32_t key, struct comm *child) {
  struct local_clique *clique = ((const struct local_member *)parent->native)->clique;
  struct local_split own = { child, new_clique(parent->ranks), new_member(child, parent->ranks), color, key };
  struct local_split *splits = calloc(parent->ranks, sizeof *splits);
  rill_status status = RILL_ERROR_OUT_OF_MEMORY;
  if (own.clique != NULL && own.member != NULL && splits != NULL) {
    lock();
    if (clique->splits == NULL) {
      clique->splits = splits;
      splits = NULL;
    }
    status = wait_for_parts(clique, parent->rank, &own);
    unlock();
  } else {
    status = rill__comm_fail(status, "no host memory to split with");
  }
  free(splits);
  free(own.clique);
  free(own.member);
  return status;
}

/* ---- ending ---- */

static rill_status poll_error(struct comm *comm) {
  const struct local_clique *clique = ((const struct local_member *)comm->native)->clique;
  lock();
  const rill_status status = clique->dead ? rill__comm_fail_as(&clique->why) : RILL_OK;
  unlock();
  return status;
}

static void abort_comm(struct comm *comm) {
  struct local_clique *clique = ((const struct local_member *)comm->native)->clique;
  const bool known = comm->failure.status != RILL_OK; /* broken, and so it stays as it is */
  (void)rill__comm_fail(known ? comm->failure.status : RILL_ERROR_BACKEND, "rank %u of %u: %.560s", comm->rank,
                        comm->ranks, known ? comm->failure.message : "joined and gave up");
  lock();
  doom(clique, &rill__comm_last_error);
  unlock();
}

static void drain(struct comm *comm) {
  const struct local_member *member = comm->native;
  lock();
  while (member->outstanding > 0) (void)pthread_cond_wait(&local.parts.changed, &local.parts.lock);
  unlock();
}

static void end(struct comm *comm) {
  const struct local_member *member = comm->native;
  lock();
  remove_member(member->clique, comm->rank);
  unlock();
}

static uint32_t engine_version(void) { return rill_version(); }

const struct comm_engine rill__comm_local = {
  .name = "local",
  .backend = COMM_LOCAL,
  .max_count = SIZE_MAX,
  .keeps_deadlines = true,
  .compares_messages = true,
  .takes_empty = true,
  .joins_in_time = true,
  .notes = true,
  .start = start,
  .version = engine_version,
  .make_id = make_id,
  .join = join,
  .split = split,
  .submit = submit,
  .poll = poll_error,
  .abort = abort_comm,
  .drain = drain,
  .end = end,
};
