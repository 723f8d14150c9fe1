/* How ranks of the local engine join and split.  The engine's lock guards everything here except the ids.
 *
 * Invariant: a clique is in the engine's list from its first member to its last.  A member, and a clique that is not
 * in the list yet, belong to the call that allocated them, or to the split that holds them until all ranks have
 * called. */
#include "backends/comm/local.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- ids ---- */

struct id {
  uint64_t process, number; /* process: detects ids of other processes */
};

static uint64_t own_process(void) {
  static uint64_t made; /* guarded by the lock */
  struct timespec time;
  (void)clock_gettime(CLOCK_REALTIME, &time);
  if (made == 0) made = ((uint64_t)getpid() << 32) ^ (uint64_t)time.tv_sec * 1000000000u ^ (uint64_t)time.tv_nsec;
  return made;
}

rill_status rill__comm_local_make_id(uint8_t bytes[COMM_ID_BYTES]) {
  local_lock();
  const struct id id = { own_process(), ++rill__comm_local_engine.ids };
  local_unlock();
  memcpy(bytes, &id, sizeof id);
  return RILL_OK;
}

/* ---- cliques and members ---- */

static struct local_member *new_member(struct comm *comm, uint32_t ranks) {
  struct local_member *member = calloc(1, sizeof *member + 2 * (size_t)ranks * sizeof *member->messages);
  if (member != NULL) member->comm = comm;
  return member;
}

static struct local_clique *new_clique(uint32_t ranks) {
  return calloc(1, sizeof(struct local_clique) + ranks * sizeof(struct local_member *));
}

static void link_clique(struct local_clique *clique, uint64_t id, uint32_t ranks) {
  clique->id = id;
  clique->ranks = ranks;
  clique->next = rill__comm_local_engine.cliques;
  rill__comm_local_engine.cliques = clique;
}

static struct local_clique *find_clique(uint64_t id) {
  struct local_clique *clique = rill__comm_local_engine.cliques;
  while (clique != NULL && clique->id != id) clique = clique->next;
  return clique;
}

static void add_member(struct local_clique *clique, struct local_member *member, uint32_t rank) {
  COMM_ASSERT(clique->members[rank] == NULL);
  clique->members[rank] = member;
  clique->complete |= ++clique->present == clique->ranks;
  member->clique = clique;
  member->comm->native = member;
}

/* Frees the clique with its last member. */
void rill__comm_local_remove_member(struct local_clique *clique, uint32_t rank) {
  free(clique->members[rank]);
  clique->members[rank] = NULL;
  if (--clique->present > 0) return;
  struct local_clique **link = &rill__comm_local_engine.cliques;
  while (*link != clique) link = &(*link)->next;
  *link = clique->next;
  for (int i = 0; i < LOCAL_BUCKETS; i++) COMM_ASSERT(clique->table[i] == NULL);
  free(clique->splits);
  free(clique);
}

/* ---- waiting for other ranks ---- */

/* Waits for a change.  Returns false once the deadline has passed; a timeout of 0 means no deadline. */
static bool wait_until(uint64_t timeout, const struct timespec *until) {
  struct comm_parts *parts = &rill__comm_local_engine.parts;
  if (timeout != 0) return pthread_cond_timedwait(&parts->changed, &parts->lock, until) != ETIMEDOUT;
  return pthread_cond_wait(&parts->changed, &parts->lock) == 0;
}

struct ranks_text {
  char text[160];
};

/* Lists the ranks that are missing. */
static struct ranks_text list_absent(uint32_t ranks, bool (*is_present)(const struct local_clique *, uint32_t),
                                     const struct local_clique *clique) {
  struct ranks_text made = { "" };
  size_t used = 0;
  for (uint32_t i = 0; i < ranks && used + 16 < sizeof made.text; i++) {
    if (is_present(clique, i)) continue;
    const int wrote = snprintf(made.text + used, sizeof made.text - used, used == 0 ? "rank %u" : ", %u", i);
    used += wrote > 0 ? (size_t)wrote : 0;
  }
  return made;
}

/* ---- joining ---- */

/* Adds a rank to the clique of its id.  If there is none yet, *spare becomes that clique, and is set to NULL. */
static rill_status enter(struct comm *comm, const struct id *id, struct local_member *member,
                         struct local_clique **spare) {
  COMM_REQUIRE(id->process == own_process(), RILL_ERROR_INVALID_ARGUMENT,
               "the id was created by another process" COMM_HINT
               "such an id is for ranks of one process; for processes that mpirun started see rill_comm_mpi_world");
  struct local_clique *clique = find_clique(id->number);
  COMM_REQUIRE(clique == NULL || clique->ranks == comm->ranks, RILL_ERROR_INVALID_ARGUMENT,
               "rank %u of %u: other ranks have joined with this id as ranks of %u", comm->rank, comm->ranks,
               clique->ranks);
  COMM_REQUIRE(clique == NULL || (clique->members[comm->rank] == NULL && !clique->complete),
               RILL_ERROR_INVALID_ARGUMENT,
               "rank %u of %u has already joined with this id" COMM_HINT "create a new id for each communicator",
               comm->rank, comm->ranks);
  if (clique == NULL) {
    clique = *spare;
    *spare = NULL;
    link_clique(clique, id->number, comm->ranks);
  }
  add_member(clique, member, comm->rank);
  local_wake();
  return RILL_OK;
}

static rill_status join_one(struct comm *comm, const struct id *id) {
  struct local_member *member = new_member(comm, comm->ranks);
  struct local_clique *spare = new_clique(comm->ranks);
  rill_status status = member != NULL && spare != NULL
                           ? RILL_OK
                           : rill__comm_fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for rank %u", comm->rank);
  local_lock();
  if (status == RILL_OK) status = enter(comm, id, member, &spare);
  local_unlock();
  free(spare);
  if (status != RILL_OK) free(member);
  return status;
}

static bool has_joined(const struct local_clique *clique, uint32_t rank) { return clique->members[rank] != NULL; }

rill_status rill__comm_local_join(struct comm *const *comms, uint32_t count, const uint8_t bytes[COMM_ID_BYTES]) {
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
  local_lock();
  while (status == RILL_OK) {
    const struct local_clique *clique = local_clique_of(comms[0]);
    if (clique->complete) break;
    if (!wait_until(timeout, &until) && !clique->complete) {
      status = rill__comm_fail(RILL_ERROR_TIMEOUT, "rank %u of %u: the others have not joined within %llu ns: %s",
                               comms[0]->rank, comms[0]->ranks, (unsigned long long)timeout,
                               list_absent(clique->ranks, has_joined, clique).text);
    }
  }
  for (uint32_t i = 0; i < entered && status != RILL_OK; i++) {
    rill__comm_local_remove_member(local_clique_of(comms[i]), comms[i]->rank);
    comms[i]->native = NULL;
  }
  local_unlock();
  return status;
}

/* ---- splitting ---- */

static bool comes_before(const struct local_split *a, const struct local_split *b) {
  return a->key < b->key || (a->key == b->key && a < b); /* ranks with equal keys keep their order */
}

/* Joins the ranks of each color in the clique that the first of them has allocated.  All ranks have called. */
static void make_children(struct local_clique *parent) {
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
    if (first->clique->ranks == 0) link_clique(first->clique, ++rill__comm_local_engine.ids, ranks);
    add_member(first->clique, own->member, rank);
    own->member = NULL;
  }
}

static bool has_split(const struct local_clique *clique, uint32_t rank) { return clique->splits[rank].child != NULL; }

/* Waits for the other ranks.  Afterwards *own holds the unused allocations, which the caller must free. */
static rill_status wait_for_children(struct local_clique *parent, uint32_t rank, struct local_split *own) {
  const uint64_t timeout = own->child->timeout;
  const struct timespec until = comm_after(timeout);
  struct local_split *place = &parent->splits[rank];
  *place = *own;
  parent->splitting++;
  if (parent->splitting == parent->ranks) {
    make_children(parent);
    for (uint32_t i = 0; i < parent->ranks; i++) { /* each waiting rank takes what is left */
      parent->splits[i].child = NULL;
      if (parent->splits[i].clique->ranks != 0) parent->splits[i].clique = NULL;
    }
    parent->splitting = 0;
    local_wake();
  }
  rill_status status = RILL_OK;
  while (place->child == own->child && status == RILL_OK) {
    if (parent->dead) {
      status = rill__comm_fail_as(&parent->why);
    } else if (!wait_until(timeout, &until) && place->child == own->child) {
      status = rill__comm_fail(
          RILL_ERROR_TIMEOUT, "rank %u of %u: the others have not called rill_comm_split within %llu ns: %s", rank,
          parent->ranks, (unsigned long long)timeout, list_absent(parent->ranks, has_split, parent).text);
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

rill_status rill__comm_local_split(struct comm *parent, uint32_t color, uint32_t key, struct comm *child) {
  struct local_clique *clique = local_clique_of(parent);
  struct local_split own = { child, new_clique(parent->ranks), new_member(child, parent->ranks), color, key };
  struct local_split *splits = calloc(parent->ranks, sizeof *splits);
  rill_status status = RILL_ERROR_OUT_OF_MEMORY;
  if (own.clique != NULL && own.member != NULL && splits != NULL) {
    local_lock();
    if (clique->splits == NULL) {
      clique->splits = splits;
      splits = NULL;
    }
    status = wait_for_children(clique, parent->rank, &own);
    local_unlock();
  } else {
    status = rill__comm_fail(status, "no host memory for a split of %u ranks", parent->ranks);
  }
  free(splits);
  free(own.clique);
  free(own.member);
  return status;
}
