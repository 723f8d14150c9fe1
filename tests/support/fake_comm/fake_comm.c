/* NCCL's functions, for ranks that are threads or devices of one process. */
#include "fake_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- communicators ---- */

/* Invariant: `come` of `ops` are not NULL.  An operation that gave up is taken out, and its rank never comes again. */
struct meeting { /* of one collective operation of all ranks */
  struct meeting *next;
  uint64_t number;
  int come;
  struct fake_comm_op *ops[];
};

struct split { /* of all ranks of a clique */
  int come, left;
  bool done;
  int color[64], key[64], rank[64];
  struct clique *made[64];
};

struct clique {
  struct clique *next;
  struct gpu_comm_id id;
  int ranks, joined, dead;
  int finalized, left; /* finalized: destroyed or aborted by the users of those that live; left: freed */
  struct meeting *meetings;
  struct split *split;       /* that waits for ranks */
  struct fake_comm_op *mail; /* sends and receives that wait for their match, oldest first */
  struct ncclComm *members[];
};

struct ncclComm {
  struct clique *clique;
  int rank, device, error;
  bool dead;           /* as if its process were gone */
  bool finalized;      /* destroyed or aborted by its user: it does not die any more */
  bool ended;          /* dead, aborted, revoked or destroyed: what runs or is queued gives up */
  unsigned references; /* the user's, and of bundles that are queued or run */
  unsigned queued;     /* bundles that are queued or run */
  unsigned in_graphs;  /* bundles that graphs and execution objects still have */
  uint64_t collectives, bundles, bundles_done;
};

/* What one group gives one stream of one communicator. */
struct bundle {
  struct bundle *next;
  struct ncclComm *comm;
  void *stream;
  uint64_t number;
  bool captured;     /* it is a node of a graph */
  uint64_t launches; /* how often that ran */
  struct fake_comm_op *first, **last;
};

enum { DEVICES = 64, BUFFERED = 256 };
static struct clique *cliques;
static size_t live;
static unsigned queued_on[DEVICES]; /* bundles of all communicators of a device */
static unsigned submitting;         /* threads that hand bundles of communicators with several ranks to streams */
static _Thread_local struct {
  int depth, error;
  struct bundle *first, **last;
  struct clique *joining[64];
  int joining_count;
} group;

size_t fake_comm_live(void) {
  pthread_mutex_lock(&fake_comm_lock);
  const size_t count = live;
  (void)fake_comm_leave(0);
  return count;
}

static void wait(void) { pthread_cond_wait(&fake_comm_changed, &fake_comm_lock); }

/* What is left when nobody runs any more: of ranks that were sent something and did not come. */
static void free_clique(struct clique *clique) {
  while (clique->meetings != NULL) {
    struct meeting *meeting = clique->meetings;
    clique->meetings = meeting->next;
    for (int i = 0; i < clique->ranks; i++) free(meeting->ops[i]);
    free(meeting);
  }
  while (clique->mail != NULL) {
    struct fake_comm_op *op = clique->mail;
    clique->mail = op->next;
    free(op);
  }
  free(clique);
}

static void drop(struct ncclComm *comm) {
  if (--comm->references > 0) return;
  struct clique *clique = comm->clique;
  if (++clique->left == clique->ranks) {
    struct clique **link = &cliques;
    while (*link != clique) link = &(*link)->next;
    *link = clique->next;
    free_clique(clique);
  }
  free(comm);
}

/* ---- running ---- */

static bool same_shape(const struct fake_comm_op *a, const struct fake_comm_op *b) {
  return a->kind == b->kind && a->count == b->count && a->type == b->type && a->peer == b->peer &&
         a->reduction == b->reduction;
}

/* A rank that only sends few bytes does not wait: NCCL has buffers for them on the rank that receives.  Returns a copy
 * that takes the operation's place, or NULL if it has to wait. */
static struct fake_comm_op *buffer(struct fake_comm_op *op) {
  const size_t bytes = op->count * fake_comm_size_of(op->type);
  if (bytes > BUFFERED) return NULL;
  struct fake_comm_op *copy = malloc(sizeof *copy + bytes);
  *copy = *op;
  copy->src = memcpy(copy + 1, op->src, bytes);
  copy->dst = NULL;
  copy->next = NULL;
  copy->buffered = true;
  op->done = true;
  return copy;
}

static struct fake_comm_op *buffer_collective(struct fake_comm_op *op) {
  const bool is_root = op->rank == op->peer;
  const bool only_sends = op->kind == FAKE_BROADCAST ? is_root : op->kind == FAKE_REDUCE && !is_root;
  struct fake_comm_op *copy = only_sends ? buffer(op) : NULL;
  if (copy != NULL && is_root && op->dst != op->src) memcpy(op->dst, op->src, op->count * fake_comm_size_of(op->type));
  return copy != NULL ? copy : op;
}

static void post_collective(struct fake_comm_op *op) {
  struct clique *clique = op->comm->clique;
  struct meeting **link = &clique->meetings;
  while (*link != NULL && (*link)->number != op->number) link = &(*link)->next;
  if (*link == NULL) *link = calloc(1, sizeof **link + (size_t)clique->ranks * sizeof(struct fake_comm_op *));
  struct meeting *meeting = *link;
  meeting->number = op->number;
  meeting->ops[op->rank] = buffer_collective(op);
  if (++meeting->come < clique->ranks) return;
  for (int i = 1; i < clique->ranks; i++) {
    if (!same_shape(meeting->ops[0], meeting->ops[i])) return; /* forever, as kernels do */
  }
  fake_comm_compute(meeting->ops, clique->ranks);
  for (int i = 0; i < clique->ranks; i++) {
    meeting->ops[i]->done = true;
    if (meeting->ops[i]->buffered) free(meeting->ops[i]);
  }
  *link = meeting->next;
  free(meeting);
}

static bool matches(const struct fake_comm_op *a, const struct fake_comm_op *b) {
  return a->kind != b->kind && a->peer == b->rank && b->peer == a->rank;
}

static void post_mail(struct fake_comm_op *op) {
  struct fake_comm_op **link = &op->comm->clique->mail;
  while (*link != NULL && !matches(*link, op)) link = &(*link)->next;
  struct fake_comm_op *other = *link;
  if (other == NULL) {
    struct fake_comm_op *copy = op->kind == FAKE_SEND ? buffer(op) : NULL;
    *link = copy != NULL ? copy : op;
    (*link)->next = NULL;
    return;
  }
  *link = other->next;
  if (other->count == op->count && other->type == op->type) { /* otherwise they wait forever */
    const struct fake_comm_op *send = op->kind == FAKE_SEND ? op : other;
    memcpy(op->kind == FAKE_SEND ? other->dst : op->dst, send->src, op->count * fake_comm_size_of(op->type));
    op->done = other->done = true;
  }
  if (other->buffered) free(other);
}

/* Removes operations that gave up from the lists that others may still read. */
static void take_back(struct fake_comm_op *op) {
  struct clique *clique = op->comm->clique;
  for (struct meeting *meeting = clique->meetings; meeting != NULL; meeting = meeting->next) {
    if (meeting->ops[op->rank] != op) continue;
    meeting->ops[op->rank] = NULL;
    meeting->come--;
  }
  for (struct fake_comm_op **link = &clique->mail; *link != NULL;) {
    if (*link == op) {
      *link = op->next;
    } else {
      link = &(*link)->next;
    }
  }
}

/* Takes back what a rank has posted, and what has not gone to the others yet. */
static void forget_posted(struct clique *clique, int rank) {
  for (struct meeting *meeting = clique->meetings; meeting != NULL; meeting = meeting->next) {
    if (meeting->ops[rank] == NULL || meeting->ops[rank]->buffered) continue;
    meeting->ops[rank] = NULL;
    meeting->come--;
  }
  for (struct fake_comm_op **link = &clique->mail; *link != NULL;) {
    if ((*link)->rank == rank && !(*link)->buffered) {
      *link = (*link)->next;
    } else {
      link = &(*link)->next;
    }
  }
}

void fake_comm_kill(int rank, int error) {
  pthread_mutex_lock(&fake_comm_lock);
  for (struct clique *clique = cliques; clique != NULL; clique = clique->next) {
    struct ncclComm *dead = rank < clique->ranks ? clique->members[rank] : NULL;
    if (dead == NULL || dead->dead || dead->finalized) continue;
    dead->dead = dead->ended = true;
    clique->dead++;
    forget_posted(clique, rank);
    for (int i = 0; i < clique->ranks && error != 0; i++) {
      if (i != rank && clique->members[i] != NULL) clique->members[i]->error = error;
    }
  }
  (void)fake_comm_leave(0);
}

static bool all_done(const struct fake_comm_op *const *ops, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!ops[i]->done) return false;
  }
  return true;
}

static void count_queued(struct ncclComm *comm, int change) {
  comm->queued += (unsigned)change;
  queued_on[comm->device] += (unsigned)change;
}

/* In the stream's thread.  Bundles of a communicator run one after the other, as the vendor's kernels do; those of
 * graphs when they are launched. */
static void run_bundle(void *data, int status) {
  struct bundle *bundle = data;
  struct ncclComm *comm = bundle->comm;
  const bool ordered = !bundle->captured;
  size_t count = 0;
  pthread_mutex_lock(&fake_comm_lock);
  for (struct fake_comm_op *op = bundle->first; op != NULL; op = op->next) count++;
  struct fake_comm_op **ops = calloc(count, sizeof(struct fake_comm_op *));
  count = 0;
  for (struct fake_comm_op *op = bundle->first; op != NULL; op = op->next) ops[count++] = op;
  while (ordered && comm->bundles_done != bundle->number && !comm->ended) wait();
  for (size_t i = 0; i < count && status == 0 && !comm->ended; i++) {
    if (ops[i]->kind == FAKE_SEND || ops[i]->kind == FAKE_RECEIVE) post_mail(ops[i]);
    else post_collective(ops[i]);
  }
  pthread_cond_broadcast(&fake_comm_changed);
  while (status == 0 && !all_done((const struct fake_comm_op *const *)ops, count) && !comm->ended) wait();
  for (size_t i = 0; i < count; i++) {
    if (!ops[i]->done) take_back(ops[i]);
    free(ops[i]);
  }
  free(ops);
  comm->bundles_done += ordered;
  count_queued(comm, -1);
  drop(comm);
  free(bundle);
  (void)fake_comm_leave(0);
}

/* One launch of a graph that has the bundle: a copy runs.  Collective operations meet those of the same launch. */
static void run_captured(void *data, int status) {
  struct bundle *bundle = data, *copy = malloc(sizeof *copy);
  pthread_mutex_lock(&fake_comm_lock);
  *copy = *bundle;
  copy->last = &copy->first;
  copy->comm->references++;
  count_queued(copy->comm, 1);
  for (const struct fake_comm_op *op = bundle->first; op != NULL; op = op->next) {
    struct fake_comm_op *again = malloc(sizeof *again);
    *again = *op;
    again->next = NULL;
    again->number = UINT64_C(1) << 63 | op->number << 24 | bundle->launches;
    *copy->last = again;
    copy->last = &again->next;
  }
  bundle->launches++;
  (void)fake_comm_leave(0);
  run_bundle(copy, status);
}

static void free_captured(void *data) {
  struct bundle *bundle = data;
  pthread_mutex_lock(&fake_comm_lock);
  while (bundle->first != NULL) {
    struct fake_comm_op *op = bundle->first;
    bundle->first = op->next;
    free(op);
  }
  bundle->comm->in_graphs--;
  drop(bundle->comm);
  free(bundle);
  (void)fake_comm_leave(0);
}

/* True if the stream captures, and has taken the bundle. */
static bool capture_bundle(struct bundle *bundle) {
  struct ncclComm *comm = bundle->comm;
  bundle->captured = true;
  pthread_mutex_lock(&fake_comm_lock);
  comm->in_graphs++;
  comm->references++; /* that of the bundle may end at any time */
  (void)fake_comm_leave(0);
  const bool captures = fake_comm_capture(bundle->stream, run_captured, free_captured, bundle) == 0;
  if (!captures) bundle->captured = false;
  pthread_mutex_lock(&fake_comm_lock);
  if (!captures) comm->in_graphs--;
  drop(comm);
  (void)fake_comm_leave(0);
  return captures;
}

/* ---- groups ---- */

static struct bundle *bundle_of(struct ncclComm *comm, void *stream) {
  for (struct bundle *bundle = group.first; bundle != NULL; bundle = bundle->next) {
    if (bundle->comm == comm && bundle->stream == stream) return bundle;
  }
  struct bundle *bundle = calloc(1, sizeof *bundle);
  bundle->comm = comm;
  comm->references++;
  bundle->stream = stream;
  bundle->last = &bundle->first;
  if (group.first == NULL) group.last = &group.first;
  *group.last = bundle;
  group.last = &bundle->next;
  return bundle;
}

static unsigned count_submitting(const struct bundle *bundle) {
  while (bundle != NULL && bundle->comm->clique->ranks == 1) bundle = bundle->next;
  pthread_mutex_lock(&fake_comm_lock);
  submitting += bundle != NULL;
  (void)fake_comm_leave(0);
  return bundle != NULL;
}

/* Hands all bundles of the group to their streams, or forgets them. Takes and releases the lock. */
static int end_group(void) {
  int code = group.error;
  struct bundle *bundle = group.first;
  const unsigned counted = count_submitting(bundle);
  group.first = NULL;
  group.error = 0;
  while (bundle != NULL) {
    struct bundle *next = bundle->next;
    if (code == 0 && capture_bundle(bundle)) {
      bundle = next;
      continue;
    }
    pthread_mutex_lock(&fake_comm_lock);
    while (code == 0 && fake_comm_blocks() && !bundle->comm->ended) wait();
    if (code == 0 && bundle->comm->ended) code = 3;
    bundle->number = bundle->comm->bundles;
    if (code == 0) {
      bundle->comm->bundles++;
      count_queued(bundle->comm, 1);
    } else {
      drop(bundle->comm);
    }
    (void)fake_comm_leave(0);
    if (code == 0 && fake_comm_enqueue(bundle->stream, run_bundle, bundle) == 0) {
      bundle = next;
      continue;
    }
    if (code == 0) abort(); /* the fake driver never refuses a stream that was checked */
    while (bundle->first != NULL) {
      struct fake_comm_op *op = bundle->first;
      bundle->first = op->next;
      free(op);
    }
    free(bundle);
    bundle = next;
  }
  pthread_mutex_lock(&fake_comm_lock);
  submitting -= counted;
  for (int i = 0; i < group.joining_count; i++) {
    while (code == 0 && group.joining[i]->joined < group.joining[i]->ranks) wait();
  }
  group.joining_count = 0;
  return fake_comm_leave(code);
}

EXPORT int ncclGroupStart(void);
int ncclGroupStart(void) {
  const int code = fake_comm_enter(__func__);
  if (code != 0) return code;
  group.depth++;
  return fake_comm_leave(0);
}

EXPORT int ncclGroupEnd(void);
int ncclGroupEnd(void) {
  const int code = fake_comm_enter(__func__);
  if (code == 0) (void)fake_comm_leave(0);
  if (group.depth == 0) return 5;
  if (group.error == 0) group.error = code;
  return --group.depth > 0 ? 0 : end_group();
}

static int submit(const char *function, struct fake_comm_op values) {
  const int device =
      fake_comm_device_of_stream(values.stream); /* the driver's lock is taken before that of this fake */
  int code = fake_comm_enter(function);
  if (code == 0) {
    struct ncclComm *comm = values.comm;
    if (comm->ended || comm->device != device) code = 4;
    struct fake_comm_op *op = malloc(sizeof *op);
    *op = values;
    op->next = NULL;
    op->rank = comm->rank;
    if (values.kind != FAKE_SEND && values.kind != FAKE_RECEIVE && code == 0) op->number = comm->collectives++;
    struct bundle *bundle = bundle_of(comm, values.stream);
    *bundle->last = op;
    bundle->last = &op->next;
    (void)fake_comm_leave(0);
  }
  if (group.error == 0) group.error = code;
  if (group.depth > 0) return code;
  return end_group();
}

/* ---- life ---- */

EXPORT int ncclGetVersion(int *version);
int ncclGetVersion(int *version) {
  *version = FAKE_COMM_VERSION;
  return 0;
}

EXPORT const char *ncclGetErrorString(int result);
const char *ncclGetErrorString(int result) {
  return result == 6 ? "a rank has gone" : "an error that a test asked for";
}

EXPORT const char *ncclGetLastError(void *comm);
const char *ncclGetLastError(void *comm) {
  (void)comm;
  return "";
}

EXPORT int ncclGetUniqueId(struct gpu_comm_id *id);
int ncclGetUniqueId(struct gpu_comm_id *id) {
  static uint64_t last;
  const int code = fake_comm_enter(__func__);
  if (code != 0) return code;
  memset(id, 0, sizeof *id);
  ++last;
  memcpy(id, &last, sizeof last);
  return fake_comm_leave(0);
}

static struct clique *find_clique(const struct gpu_comm_id *id, int ranks) {
  for (struct clique *clique = cliques; clique != NULL; clique = clique->next) {
    if (memcmp(&clique->id, id, sizeof *id) == 0) return clique;
  }
  struct clique *clique = calloc(1, sizeof *clique + (size_t)ranks * sizeof(struct ncclComm *));
  clique->id = *id;
  clique->ranks = ranks;
  clique->next = cliques;
  cliques = clique;
  return clique;
}

EXPORT int ncclCommInitRank(void **out, int ranks, struct gpu_comm_id id, int rank);
int ncclCommInitRank(void **out, int ranks, struct gpu_comm_id id, int rank) {
  const int device = fake_comm_current_device();
  int code = fake_comm_enter(__func__);
  if (code != 0) return code;
  struct clique *clique = find_clique(&id, ranks);
  if (device < 0 || device >= DEVICES || clique->ranks != ranks || rank < 0 || rank >= ranks ||
      clique->members[rank] != NULL) {
    return fake_comm_leave(5);
  }
  struct ncclComm *comm = calloc(1, sizeof *comm);
  comm->clique = clique;
  comm->rank = rank;
  comm->device = device;
  comm->references = 1;
  clique->members[rank] = comm;
  clique->joined++;
  live++;
  *out = comm;
  pthread_cond_broadcast(&fake_comm_changed);
  if (group.depth > 0) {
    group.joining[group.joining_count++] = clique;
  } else {
    while (clique->joined < ranks) wait();
  }
  return fake_comm_leave(0);
}

EXPORT int ncclCommCount(void *comm, int *ranks);
int ncclCommCount(void *comm, int *ranks) {
  *ranks = ((struct ncclComm *)comm)->clique->ranks;
  return 0;
}

EXPORT int ncclCommUserRank(void *comm, int *rank);
int ncclCommUserRank(void *comm, int *rank) {
  *rank = ((struct ncclComm *)comm)->rank;
  return 0;
}

/* A new clique for each color, its ranks by key. */
static void make_parts(struct split *split, int ranks) {
  static uint64_t last;
  for (int i = 0; i < ranks; i++) {
    if (split->color[i] < 0) continue;
    int members = 0;
    split->rank[i] = 0;
    for (int j = 0; j < ranks; j++) {
      if (split->color[j] != split->color[i]) continue;
      members++;
      if (split->key[j] < split->key[i] || (split->key[j] == split->key[i] && j < i)) split->rank[i]++;
      if (j < i) split->made[i] = split->made[j];
    }
    if (split->made[i] != NULL) continue;
    struct gpu_comm_id id;
    memset(&id, 0xff, sizeof id);
    ++last;
    memcpy(&id, &last, sizeof last);
    split->made[i] = find_clique(&id, members);
  }
  split->done = true;
}

EXPORT int ncclCommSplit(void *parent, int color, int key, void **out, void *config);
int ncclCommSplit(void *parent, int color, int key, void **out, void *config) {
  struct ncclComm *from = parent;
  struct clique *clique = from->clique;
  (void)config;
  *out = NULL;
  const int code = fake_comm_enter(__func__);
  if (code != 0) return code;
  if (clique->split == NULL) clique->split = calloc(1, sizeof *clique->split);
  struct split *split = clique->split;
  split->color[from->rank] = color;
  split->key[from->rank] = key;
  if (++split->come == clique->ranks) {
    make_parts(split, clique->ranks);
    clique->split = NULL;
  }
  pthread_cond_broadcast(&fake_comm_changed);
  while (!split->done && !from->ended) wait();
  if (!split->done) { /* the communicator was aborted */
    split->come--;
    if (split->come == 0) {
      clique->split = NULL;
      free(split);
    }
    return fake_comm_leave(3);
  }
  if (color >= 0) {
    struct ncclComm *comm = calloc(1, sizeof *comm);
    comm->clique = split->made[from->rank];
    comm->rank = split->rank[from->rank];
    comm->device = from->device;
    comm->references = 1;
    comm->clique->members[comm->rank] = comm;
    comm->clique->joined++;
    live++;
    *out = comm;
  }
  if (++split->left == clique->ranks) free(split);
  return fake_comm_leave(0);
}

/* As in NCCL, a call for the last of the ranks of a process ends them all: it waits for their operations, and then
 * frees memory of their devices, which waits for whatever runs there.  The calls before it return at once. */
static int end(struct ncclComm *comm, bool gives_up) {
  struct clique *clique = comm->clique;
  const int ranks = clique->ranks;
  if (gives_up) comm->ended = true;
  pthread_cond_broadcast(&fake_comm_changed);
  live--;
  comm->finalized = true;
  if (comm->dead) {
    clique->members[comm->rank] = NULL;
    drop(comm);
    return fake_comm_leave(0);
  }
  if (++clique->finalized < ranks - clique->dead) return fake_comm_leave(0);
  struct ncclComm **members = calloc((size_t)ranks, sizeof *members);
  for (int i = 0; i < ranks; i++) {
    if (clique->members[i] == NULL || clique->members[i]->dead) continue;
    members[i] = clique->members[i];
    clique->members[i] = NULL;
  }
  for (int i = 0; i < ranks; i++) {
    while (members[i] != NULL && (members[i]->queued > 0 || members[i]->in_graphs > 0)) wait();
  }
  for (int i = 0; i < ranks; i++) {
    while (members[i] != NULL && queued_on[members[i]->device] > 0) wait();
  }
  for (int i = 0; i < ranks; i++) {
    if (members[i] == NULL) continue;
    members[i]->ended = true;
    drop(members[i]); /* the last one frees the clique */
  }
  free(members);
  return fake_comm_leave(0);
}

static void forbid(bool wrong, const char *what) {
  if (!wrong) return;
  (void)fprintf(stderr, "fake NCCL: ncclCommDestroy while %s: on GPUs the process may hang\n", what);
  abort();
}

/* In ncclCommDestroy the driver waits for all running kernels of the process, and other calls of the process wait for
 * the driver.  So nothing may be under way then that waits for another rank of the process, of any communicator.
 * Graphs with operations may be launched at any time, and NCCL does not return before its own have been destroyed. */
static void check_quiet(void) {
  forbid(submitting > 0, "a thread submits an operation");
  for (const struct clique *clique = cliques; clique != NULL; clique = clique->next) {
    for (int i = 0; i < clique->ranks && clique->ranks > 1; i++) {
      const struct ncclComm *comm = clique->members[i];
      forbid(comm != NULL && comm->queued > 0, "an operation of several ranks of the process is in flight");
      forbid(comm != NULL && comm->in_graphs > 0, "a graph has an operation of several ranks of the process");
    }
  }
}

EXPORT int ncclCommDestroy(void *comm);
int ncclCommDestroy(void *comm) {
  const int code = fake_comm_enter(__func__);
  if (code != 0) return code;
  check_quiet();
  return end(comm, false);
}

EXPORT int ncclCommAbort(void *comm);
int ncclCommAbort(void *comm) {
  const int code = fake_comm_enter(__func__);
  return code != 0 ? code : end(comm, true);
}

#if FAKE_COMM_HAS_REVOKE
EXPORT int ncclCommRevoke(void *comm, int flags);
int ncclCommRevoke(void *comm, int flags) {
  struct ncclComm *revoked = comm;
  (void)flags;
  const int code = fake_comm_enter(__func__);
  if (code != 0) return code;
  revoked->ended = true;
  pthread_cond_broadcast(&fake_comm_changed);
  while (revoked->queued > 0) wait();
  return fake_comm_leave(0);
}
#endif

EXPORT int ncclCommGetAsyncError(void *comm, int *error);
int ncclCommGetAsyncError(void *comm, int *error) {
  const int code = fake_comm_enter(__func__);
  if (code != 0) return code;
  *error = ((struct ncclComm *)comm)->error;
  return fake_comm_leave(0);
}

/* ---- operations ---- */

#define OP(...) submit(__func__, (struct fake_comm_op){ .comm = comm, .stream = stream, __VA_ARGS__ })

EXPORT int ncclAllReduce(const void *src, void *dst, size_t count, int type, int op, void *comm, void *stream);
int ncclAllReduce(const void *src, void *dst, size_t count, int type, int op, void *comm, void *stream) {
  return OP(.kind = FAKE_ALL_REDUCE, .src = src, .dst = dst, .count = count, .type = type, .reduction = op);
}

EXPORT int ncclReduce(const void *src, void *dst, size_t count, int type, int op, int root, void *comm, void *stream);
int ncclReduce(const void *src, void *dst, size_t count, int type, int op, int root, void *comm, void *stream) {
  return OP(.kind = FAKE_REDUCE, .src = src, .dst = dst, .count = count, .type = type, .reduction = op, .peer = root);
}

EXPORT int ncclBroadcast(const void *src, void *dst, size_t count, int type, int root, void *comm, void *stream);
int ncclBroadcast(const void *src, void *dst, size_t count, int type, int root, void *comm, void *stream) {
  return OP(.kind = FAKE_BROADCAST, .src = src, .dst = dst, .count = count, .type = type, .peer = root);
}

EXPORT int ncclAllGather(const void *src, void *dst, size_t count, int type, void *comm, void *stream);
int ncclAllGather(const void *src, void *dst, size_t count, int type, void *comm, void *stream) {
  return OP(.kind = FAKE_ALL_GATHER, .src = src, .dst = dst, .count = count, .type = type);
}

EXPORT int ncclReduceScatter(const void *src, void *dst, size_t count, int type, int op, void *comm, void *stream);
int ncclReduceScatter(const void *src, void *dst, size_t count, int type, int op, void *comm, void *stream) {
  return OP(.kind = FAKE_REDUCE_SCATTER, .src = src, .dst = dst, .count = count, .type = type, .reduction = op);
}

EXPORT int ncclSend(const void *src, size_t count, int type, int peer, void *comm, void *stream);
int ncclSend(const void *src, size_t count, int type, int peer, void *comm, void *stream) {
  return OP(.kind = FAKE_SEND, .src = src, .count = count, .type = type, .peer = peer);
}

EXPORT int ncclRecv(void *dst, size_t count, int type, int peer, void *comm, void *stream);
int ncclRecv(void *dst, size_t count, int type, int peer, void *comm, void *stream) {
  return OP(.kind = FAKE_RECEIVE, .dst = dst, .count = count, .type = type, .peer = peer);
}
