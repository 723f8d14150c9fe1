/* Submission to the local engine, and matching of the operations that belong together. */
#include "backends/comm/local.h"

#include <string.h>

/* ---- matches; the lock is held ---- */

static struct local_match **find(struct local_clique *clique, const struct local_key *key) {
  struct local_match **link = &clique->table[(key->number + key->from * 7u + key->to * 31u) % LOCAL_BUCKETS];
  while (*link != NULL &&
         ((*link)->key.number != key->number || (*link)->key.from != key->from || (*link)->key.to != key->to)) {
    link = &(*link)->next;
  }
  return link;
}

static void remove_match(struct local_match *match) {
  struct local_match **link = find(match->clique, &match->key);
  COMM_ASSERT(*link == match);
  *link = match->next;
  match->next = NULL;
}

void rill__comm_local_queue_drop(struct local_work *work) {
  work->state = LOCAL_TAKEN;
  work->match = NULL;
  work->next = NULL;
  *rill__comm_local_engine.last_dropped = work;
  rill__comm_local_engine.last_dropped = &work->next;
}

/* Removes a work item from its match, and drops it.  Frees the match with its last item. */
static void drop(struct local_work *work) {
  struct local_match *match = work->match;
  COMM_ASSERT(work->state != LOCAL_TAKEN && match->works[work->index] == work && match->submitted > 0);
  match->works[work->index] = NULL;
  match->arrived -= work->state == LOCAL_ARRIVED;
  if (--match->submitted == 0) {
    remove_match(match);
    free(match);
  }
  rill__comm_local_queue_drop(work);
}

void rill__comm_local_fail(struct local_clique *clique, const struct comm_error *why) {
  if (clique->dead) return;
  clique->dead = true;
  clique->why = *why;
  for (int i = 0; i < LOCAL_BUCKETS; i++) {
    for (struct local_match *match = clique->table[i], *next; match != NULL; match = next) {
      next = match->next;
      for (uint32_t k = 0, left = match->submitted; left > 0; k++) { /* dropping the last work item frees the match */
        struct local_work *work = match->works[k];
        if (work == NULL) continue;
        left--;
        if (work->part->armed) drop(work); /* other work items are dropped when their part is armed */
      }
    }
  }
  local_wake();
}

/* Notes that the stream of a work item has reached it. */
static void arrive(struct local_work *work) {
  struct local_match *match = work->match;
  COMM_ASSERT(work->state == LOCAL_QUEUED && match->arrived < match->submitted);
  work->state = LOCAL_ARRIVED;
  work->since = comm_now();
  local_note_deadline(work);
  match->arrived++;
  if (work->part->reported != RILL_OK) {
    (void)rill__comm_fail(work->part->reported, "%s did not start: the work before it failed",
                          comm_describe(&work->op).text);
    rill__comm_local_fail(match->clique, &rill__comm_last_error);
    return;
  }
  if (match->arrived < match->size) return;
  remove_match(match);
  for (uint32_t i = 0; i < match->size; i++) match->works[i]->state = LOCAL_TAKEN;
  *rill__comm_local_engine.last_ready = match;
  rill__comm_local_engine.last_ready = &match->next;
}

bool rill__comm_local_part_changed(struct comm_part *part) {
  const struct local_engine *engine = &rill__comm_local_engine;
  struct local_match **const last_ready = engine->last_ready;
  struct local_work **const last_dropped = engine->last_dropped;
  const uint64_t deadline = engine->deadline;
  if (!part->armed) return false;
  for (struct local_work *work = part->works, *next; work != NULL; work = next) {
    next = work->next_of_part;
    if (work->state == LOCAL_TAKEN) continue;
    if (work->match->clique->dead) drop(work);
    else if (part->reached && work->state == LOCAL_QUEUED) arrive(work);
  }
  return engine->last_ready != last_ready || engine->last_dropped != last_dropped || engine->deadline < deadline;
}

/* ---- comparison ---- */

static rill_status compare(const struct comm_op *op, const struct comm_op *other) {
  const struct comm_record a = comm_record_of(op, op->number), b = comm_record_of(other, other->number);
  COMM_REQUIRE(comm_records_match(&a, &b), RILL_ERROR_INVALID_ARGUMENT, "%s does not match %s",
               comm_describe_record(&a).text, comm_describe_record(&b).text);
  return RILL_OK;
}

/* Adds a work item to its match, and compares it with the first item there. */
static rill_status match_one(struct local_work *work) {
  const struct comm_op *op = &work->op;
  struct local_member *member = local_member_of(op->comm);
  struct local_clique *clique = member->clique;
  struct local_key key = { .from = LOCAL_ALL, .to = LOCAL_ALL };
  uint64_t *count = &member->collectives;
  if (op->kind == COMM_SEND) {
    key.from = op->comm->rank, key.to = op->peer;
    count = &member->messages[op->peer];
  } else if (op->kind == COMM_RECEIVE) {
    key.from = op->peer, key.to = op->comm->rank;
    count = &member->messages[clique->ranks + op->peer];
    work->index = 1;
  } else {
    work->index = op->comm->rank;
  }
  key.number = *count;
  struct local_match **link = find(clique, &key), *match = *link;
  if (match == NULL) {
    const uint32_t size = key.from == LOCAL_ALL ? clique->ranks : 2;
    match = calloc(1, sizeof *match + size * sizeof *match->works);
    COMM_REQUIRE(match != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for an operation");
    match->clique = clique;
    match->key = key;
    match->size = size;
    *link = match;
  }
  const struct local_work *first = NULL;
  for (uint32_t i = 0; i < match->size && first == NULL; i++) first = match->works[i];
  COMM_ASSERT(match->works[work->index] == NULL && (first != NULL) == (match->submitted > 0));
  match->works[work->index] = work;
  match->submitted++;
  work->match = match;
  (*count)++;
  member->outstanding++;
  return first != NULL ? compare(op, &first->op) : RILL_OK;
}

/* Returns the operation of a match that is in the table. */
static const struct comm_op *find_op(struct local_clique *clique, struct local_key key, uint32_t index) {
  const struct local_match *match = *find(clique, &key);
  COMM_ASSERT(match != NULL && match->works[index] != NULL);
  return &match->works[index]->op;
}

/* Fails if rank `trailing` has submitted a message that rank `leading` has not submitted, although `leading` has
 * submitted more collective operations. */
static rill_status compare_order(struct local_clique *clique, uint32_t leading, uint32_t trailing) {
  const struct local_member *first = clique->members[leading], *second = clique->members[trailing];
  const uint64_t sent = first->messages[trailing], received = first->messages[clique->ranks + trailing];
  const bool sends = second->messages[leading] > received;
  if (!sends && second->messages[clique->ranks + leading] <= sent) return RILL_OK;
  const struct local_key message = { sends ? received : sent, sends ? trailing : leading, sends ? leading : trailing };
  const struct local_key collective = { second->collectives, LOCAL_ALL, LOCAL_ALL };
  return rill__comm_fail(RILL_ERROR_INVALID_ARGUMENT,
                         "%s does not match %s" COMM_HINT "call the operations in the same order on all ranks",
                         comm_describe(find_op(clique, message, sends ? 0 : 1)).text,
                         comm_describe(find_op(clique, collective, leading)).text);
}

/* Checks the order of a rank's operations against those of the other ranks.  All ranks must submit their operations in
 * the same order, so a rank that has submitted more collective operations than another rank must also have submitted
 * its side of every message of the other rank. */
static rill_status check_order(const struct comm *comm) {
  struct local_clique *clique = local_clique_of(comm);
  const uint64_t own = local_member_of(comm)->collectives;
  for (uint32_t i = 0; i < clique->ranks; i++) {
    const struct local_member *other = clique->members[i];
    if (other == NULL || other->collectives == own) continue;
    const bool leading = own > other->collectives;
    COMM_TRY(compare_order(clique, leading ? comm->rank : i, leading ? i : comm->rank));
  }
  return RILL_OK;
}

/* ---- submission ---- */

static rill_status new_works(const struct comm_op *ops, size_t count, struct local_work **works,
                             struct comm_part **parts) {
  for (size_t i = 0; i < count; i++) {
    struct comm_part *part = NULL;
    COMM_TRY(rill__comm_part_of(&rill__comm_local_engine.parts, &ops[i], parts, &part));
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

/* Matches the work items in their order, and sets *matched to the number of items that are in a match now.  If one of
 * the cliques is dead, fails before any item is matched. */
static rill_status match_all(const struct comm_op *ops, size_t count, struct local_work *works, size_t *matched) {
  for (size_t i = 0; i < count; i++) {
    const struct local_clique *clique = local_clique_of(ops[i].comm);
    if (clique->dead) return rill__comm_fail_as(&clique->why);
  }
  rill_status status = RILL_OK;
  for (struct local_work *work = works; work != NULL && status == RILL_OK; work = work->next) {
    status = match_one(work);
    *matched += work->match != NULL;
  }
  for (size_t i = 0; i < count && status == RILL_OK; i++) status = check_order(ops[i].comm);
  for (size_t i = 0; i < count && status != RILL_OK; i++) {
    rill__comm_local_fail(local_clique_of(ops[i].comm), &rill__comm_last_error);
  }
  return status;
}

/* Frees the work items after the first `matched` ones; the progress thread does not know them. */
static void free_unmatched(struct local_work *works, size_t matched) {
  for (size_t i = 0; works != NULL; i++) {
    struct local_work *work = works;
    works = work->next;
    if (i < matched) continue;
    struct local_work *first = work->part->works, **link = &first;
    while (*link != work) link = &(*link)->next_of_part;
    *link = work->next_of_part;
    work->part->works = first;
    work->part->left--;
    free(work);
  }
}

/* Frees the parts that have no work items, and returns the others.  Their streams are not failed: the call returns the
 * failure. */
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

rill_status rill__comm_local_submit(const struct comm_op *ops, size_t count) {
  struct local_work *works = NULL;
  struct comm_part *parts = NULL;
  size_t matched = 0;
  const rill_status made = new_works(ops, count, &works, &parts);
  if (made != RILL_OK) {
    free_all(works, parts);
    return made;
  }
  local_lock();
  const rill_status refused = match_all(ops, count, works, &matched);
  local_unlock();
  struct comm_error why = rill__comm_last_error;
  if (refused != RILL_OK) {
    free_unmatched(works, matched);
    parts = keep_used(parts);
  }
  const rill_status status = rill__comm_parts_submit(parts, refused);
  if (refused == RILL_OK) why = rill__comm_last_error;
  if (status == RILL_OK) return RILL_OK;
  /* Other ranks may already wait for the operation that this rank cannot submit. */
  local_lock();
  for (size_t i = 0; i < count; i++) rill__comm_local_fail(local_clique_of(ops[i].comm), &why);
  local_unlock();
  for (size_t i = 0; i < count; i++) rill__comm_break(ops[i].comm, &why, true);
  return rill__comm_fail_as(&why);
}
