#include "ipc.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { CHILD_SOCKET = 3 };
static const char role[] = "--export";

struct fuzz_ipc fuzz_ipc;

static rill_ipc_handle handles[FUZZ_IPC_HANDLES];
static unsigned handle_count;
static pid_t exporter;
static int exporter_socket;

#define REQUIRE_OK(call) FUZZ_REQUIRE((call) == RILL_OK, "%s", rill_last_error_text())

static void open_device(void) {
  const char *name = getenv("RILL_TEST_DEVICE");
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  REQUIRE_OK(rill_device_open(name != NULL && name[0] != '\0' ? name : "cpu", &fuzz_ipc.device));
  REQUIRE_OK(rill_device_get_info(fuzz_ipc.device, &info));
  fuzz_ipc.gpu = info.backend != RILL_BACKEND_CPU;
}

/* ---- the exporter ---- */

static unsigned export_all(rill_ipc_handle *out) {
  static const size_t sizes[] = { 64, 4096, 3 * 4096 + 100 };
  const unsigned char byte = FUZZ_IPC_BYTE;
  unsigned count = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    rill_stream stream;
    unsigned char *p;
    REQUIRE_OK(rill_alloc(fuzz_ipc.device, sizes[i], RILL_MEMORY_DEVICE, (void **)&p));
    REQUIRE_OK(rill_stream_create(fuzz_ipc.device, NULL, &stream));
    REQUIRE_OK(rill_fill_async(stream, p, &byte, 1, sizes[i]));
    REQUIRE_OK(rill_stream_synchronize(stream));
    REQUIRE_OK(rill_memory_ipc_export(i == 2 ? p + 4096 : p, &out[count++]));
  }
  rill_event event;
  const rill_event_options options = { .struct_size = sizeof options, .interprocess = true };
  if (rill_event_create(fuzz_ipc.device, &options, &event) == RILL_OK) {
    REQUIRE_OK(rill_event_ipc_export(event, &out[count++]));
  }
  return count;
}

/* Waits until the other end is closed, then ends as if killed: exports exist as long as the process. */
static void be_exporter(void) {
  char none;
  open_device();
  memset(handles, 0, sizeof handles);
  handle_count = export_all(handles);
  FUZZ_REQUIRE(write(CHILD_SOCKET, handles, sizeof handles) == (ssize_t)sizeof handles, "the other process has ended");
  (void)!read(CHILD_SOCKET, &none, 1);
  _exit(0);
}

static void start_exporter(void) {
  char path[4096];
  int sockets[2];
  posix_spawn_file_actions_t actions;
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  FUZZ_REQUIRE(length > 0, "no /proc");
  path[length] = '\0';
  char argument[sizeof role];
  memcpy(argument, role, sizeof role);
  char *arguments[] = { path, argument, NULL };
  FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0, "no sockets");
  const int other = fcntl(sockets[1], F_DUPFD_CLOEXEC, CHILD_SOCKET + 1);
  FUZZ_REQUIRE(posix_spawn_file_actions_init(&actions) == 0 &&
                   posix_spawn_file_actions_adddup2(&actions, other, CHILD_SOCKET) == 0 &&
                   posix_spawn(&exporter, path, &actions, NULL, arguments, environ) == 0,
               "cannot start %s", path);
  (void)posix_spawn_file_actions_destroy(&actions);
  (void)close(other);
  (void)close(sockets[1]);
  exporter_socket = sockets[0];
  FUZZ_REQUIRE(recv(exporter_socket, handles, sizeof handles, MSG_WAITALL) == (ssize_t)sizeof handles,
               "the exporter has ended");
  static const rill_ipc_handle none;
  while (handle_count < FUZZ_IPC_HANDLES && memcmp(&handles[handle_count], &none, sizeof none) != 0) handle_count++;
}

/* ---- the target's side ---- */

void fuzz_begin(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], role) == 0) be_exporter();
  open_device();
  start_exporter();
}

void fuzz_end(void) {
  int status = 0;
  (void)close(exporter_socket);
  FUZZ_REQUIRE(waitpid(exporter, &status, 0) == exporter && status == 0, "the exporter failed: 0x%x", (unsigned)status);
}

size_t fuzz_seed(unsigned index, uint8_t *out, size_t capacity) {
  if (index >= handle_count || capacity < sizeof *handles) return 0;
  memcpy(out, &handles[index], sizeof *handles);
  return sizeof *handles;
}

/* A real driver may crash on forged driver bytes, which rill cannot check before it passes them on
 * (docs/guides/IPC.md), so these bytes are taken from some handle of the kind. */
static void keep_drivers_bytes(struct rill__ipc_bytes *content) {
  if (!fuzz_ipc.gpu || getenv("RILL_FAKE_DEVICES") != NULL) return;
  const unsigned first = content->native.bytes[0];
  for (unsigned i = 0; i < handle_count; i++) {
    struct rill__ipc_bytes found;
    memcpy(&found, &handles[(first + i) % handle_count], sizeof found);
    if (found.kind != content->kind) continue;
    content->native = found.native;
    return;
  }
}

size_t fuzz_repair(uint8_t *data, size_t size, size_t capacity) {
  struct rill__ipc_bytes content;
  if (capacity < sizeof content) return size;
  if (size < sizeof content) memset(data + size, 0, sizeof content - size);
  memcpy(&content, data, sizeof content);
  keep_drivers_bytes(&content);
  content.check = rill__ipc_check(&content);
  memcpy(data, &content, sizeof content);
  return size < sizeof content ? sizeof content : size;
}

rill_ipc_handle fuzz_ipc_handle(const uint8_t *data, size_t size) {
  rill_ipc_handle handle = { { 0 } };
  if (size > 0) memcpy(&handle, data, size < sizeof handle ? size : sizeof handle);
  return handle;
}

bool fuzz_ipc_is_good(const rill_ipc_handle *handle, uint8_t kind) {
  for (unsigned i = 0; i < handle_count; i++) {
    if (memcmp(handle, &handles[i], sizeof *handle) == 0) {
      return handle->bytes[offsetof(struct rill__ipc_bytes, kind)] == kind;
    }
  }
  return false;
}

void fuzz_ipc_check_error(const char *api, rill_status status) {
  rill_error error = RILL_ERROR_INIT;
  FUZZ_REQUIRE(rill_last_error(&error) == RILL_OK && error.status == status, "status %d", (int)status);
  FUZZ_REQUIRE(strcmp(error.api, api) == 0 && error.message[0] != '\0', "%s", rill_last_error_text());
  switch (status) { /* statuses that opening arbitrary bytes may return */
    case RILL_ERROR_INVALID_ARGUMENT:
    case RILL_ERROR_UNSUPPORTED:
    case RILL_ERROR_WRONG_BACKEND:
    case RILL_ERROR_WRONG_DEVICE:
    case RILL_ERROR_NOT_FOUND: break;
    default: FUZZ_REQUIRE(false, "%s", rill_last_error_text());
  }
}
