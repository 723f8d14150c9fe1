#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SOCKET = 3, MOST_PEERS = 8 };

struct peer {
  pid_t process;
  int socket;
};

static struct peer peers[MOST_PEERS], parent = { 0, CHILD_SOCKET };

extern char **environ;

/* This process's environment, with the device under test as the only one. */
static char **environment_for(char *device, size_t size) {
  size_t count = 0;
  while (environ[count] != NULL) count++;
  char **copy = calloc(count + 2, sizeof *copy);
  assert_non_null(copy);
  (void)snprintf(device, size, "RILL_TEST_DEVICE=%s", dut.name);
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    if (strncmp(environ[i], "RILL_TEST_DEVICE=", 17) != 0) copy[used++] = environ[i];
  }
  copy[used] = device;
  return copy;
}

static struct peer *free_peer(void) {
  for (int i = 0; i < MOST_PEERS; i++) {
    if (peers[i].process == 0) return &peers[i];
  }
  fail_msg("more than %d peers", MOST_PEERS);
  return NULL;
}

/* The program's own path: memory checkers that run it under another program intercept that link. */
static void own_path(char *path, size_t size) {
  const ssize_t length = readlink("/proc/self/exe", path, size - 1);
  assert_true(length > 0);
  path[length] = '\0';
}

struct peer *peer_start(const char *role) {
  char path[4096], device[64], name[128];
  int sockets[2];
  posix_spawn_file_actions_t actions;
  struct peer *peer = free_peer();
  own_path(path, sizeof path);
  (void)snprintf(name, sizeof name, "%s", role);
  char **environment = environment_for(device, sizeof device);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  /* Not the child's number already: giving it that number must clear its close-on-exec. */
  const int other = fcntl(sockets[1], F_DUPFD_CLOEXEC, CHILD_SOCKET + 1);
  assert_true(other > CHILD_SOCKET);
  assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, other, CHILD_SOCKET), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO), 0);
  char *arguments[] = { path, name, NULL };
  assert_int_equal(posix_spawn(&peer->process, path, &actions, NULL, arguments, environment), 0);
  (void)posix_spawn_file_actions_destroy(&actions);
  (void)close(other);
  (void)close(sockets[1]);
  free(environment);
  peer->socket = sockets[0];
  return peer;
}

struct peer *peer_parent(void) {
  return &parent;
}

void peer_send(struct peer *peer, const void *data, size_t size) {
  const char *bytes = data;
  while (size > 0) {
    const ssize_t sent = send(peer->socket, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) fail_msg("the other process has ended before it was sent %zu bytes", size);
    bytes += sent;
    size -= (size_t)sent;
  }
}

void peer_receive(struct peer *peer, void *data, size_t size) {
  char *bytes = data;
  while (size > 0) {
    struct pollfd ready = { .fd = peer->socket, .events = POLLIN };
    const int polled = poll(&ready, 1, (int)(TIMEOUT_NS / MILLISECOND));
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) fail_msg("the other process sends nothing");
    const ssize_t received = recv(peer->socket, bytes, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) fail_msg("the other process has ended before it sent %zu bytes", size);
    bytes += received;
    size -= (size_t)received;
  }
}

void peer_tell(struct peer *peer, char letter) { peer_send(peer, &letter, 1); }

void peer_awaits(struct peer *peer, char letter) {
  char received = 0;
  peer_receive(peer, &received, 1);
  assert_int_equal(received, letter);
}

/* Returns its wait status. */
static int reap(struct peer *peer) {
  int status = 0;
  while (waitpid(peer->process, &status, 0) < 0 && errno == EINTR) {
  }
  (void)close(peer->socket);
  *peer = (struct peer){ 0, -1 };
  return status;
}

void peer_dies(struct peer *peer) {
  assert_int_equal(kill(peer->process, SIGKILL), 0);
  const int status = reap(peer);
  if (!WIFSIGNALED(status)) fail_msg("the other process ended by itself: wait status 0x%x", status);
}

void peer_ends(struct peer *peer) {
  (void)shutdown(peer->socket, SHUT_WR); /* a peer that waits for more learns that there is none */
  const int status = reap(peer);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("the other process failed: wait status 0x%x", status);
}

int peer_main(const char *role, const struct test *roles, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(roles[i].name, role) == 0) return run_on_each_device(role, &roles[i], 1);
  }
  (void)fprintf(stderr, "there is no role \"%s\"\n", role);
  return 2;
}
