/* A program of another version: check_callers.py compiles it with headers whose growing structs have fewer fields at
 * their end than today's, or one more, and runs it with today's library.
 *
 *     callers DEVICE
 *
 * What the structs have is in fields.h, which check_callers.py writes: SET_type_field(in, value) sets a field that is
 * there, HAS_type_field tells, TODAY_type is the size that the library knows, NEWER is 1 with the field more, called
 * `newer`. */
#include "fields.h"

#include <rill/comm.h>
#include <rill/rill.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "one.rill.h"

static rill_device device;
static rill_stream stream;

#define CHECK(condition)                                                                \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      (void)printf("line %d: %s (%s)\n", __LINE__, #condition, rill_last_error_text()); \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)
#define OK(call) CHECK((call) == RILL_OK)

/* Memory whose end is the end of the readable bytes. */
static void *at_the_end(size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
  return pages + page - size;
}

static void *sized(size_t size) {
  char *made = at_the_end(size);
  memcpy(made, &size, sizeof size);
  return made;
}
#define NEW(type) ((type *)sized(sizeof(type)))

/* Unknown fields are refused unless they are zero. */
#define REFUSES_NEWER(type, in, call)               \
  do {                                              \
    SET_##type##_newer(in, 1);                      \
    if (NEWER) {                                    \
      CHECK((call) == RILL_ERROR_INVALID_ARGUMENT); \
      SET_##type##_newer(in, 0);                    \
    }                                               \
  } while (0)

/* An output struct has the fields of today's as far as it reaches, and nothing is written past its end. */
#define FILLS(type, call)                                                                  \
  do {                                                                                     \
    size_t today = TODAY_##type, mine = sizeof(type), least = mine < today ? mine : today; \
    char *full = sized(today), *given = sized(mine);                                       \
    memset(full + sizeof today, 0x5a, today - sizeof today);                               \
    memset(given + sizeof mine, 0x5a, mine - sizeof mine);                                 \
    type *out = (type *)full;                                                              \
    OK(call);                                                                              \
    out = (type *)given;                                                                   \
    OK(call);                                                                              \
    CHECK(out->struct_size == mine);                                                       \
    CHECK(memcmp(full + sizeof mine, given + sizeof mine, least - sizeof mine) == 0);      \
    for (size_t i = least; i < mine; i++) CHECK(given[i] == 0x5a);                         \
  } while (0)

static void devices_and_errors(void) {
  FILLS(rill_device_info, rill_device_get_info(device, out));
  rill_device none;
  CHECK(rill_device_open("nowhere:0", &none) == RILL_ERROR_NOT_FOUND);
  FILLS(rill_error, rill_last_error(out));
}

static void streams(void) {
  rill_stream_options *in = NEW(rill_stream_options);
  SET_rill_stream_options_blocking(in, true);
  SET_rill_stream_options_label(in, "of another version");
  rill_stream made;
  OK(rill_stream_create(device, in, &made));
  bool blocking;
  const char *label;
  OK(rill_stream_is_blocking(made, &blocking));
  OK(rill_stream_label(made, &label));
  CHECK(blocking == HAS_rill_stream_options_blocking);
  CHECK((strcmp(label, "of another version") == 0) == HAS_rill_stream_options_label);
  REFUSES_NEWER(rill_stream_options, in, rill_stream_create(device, in, &(rill_stream){ 0 }));
  OK(rill_stream_release(made));
}

static void events(void) {
  rill_event_options *in = NEW(rill_event_options);
  SET_rill_event_options_timing(in, true);
  SET_rill_event_options_label(in, "of another version");
  rill_event first, second;
  float ms;
  OK(rill_event_create(device, in, &first));
  OK(rill_stream_record_event(stream, first, 0));
  OK(rill_stream_record_new_event(stream, in, &second));
  OK(rill_stream_synchronize(stream));
  const rill_status expected = HAS_rill_event_options_timing ? RILL_OK : RILL_ERROR_TIMING_DISABLED;
  CHECK(rill_event_elapsed_time(first, second, &ms) == expected);
  REFUSES_NEWER(rill_event_options, in, rill_event_create(device, in, &(rill_event){ 0 }));
  REFUSES_NEWER(rill_event_options, in, rill_stream_record_new_event(stream, in, &(rill_event){ 0 }));
  OK(rill_event_release(first));
  OK(rill_event_release(second));
}

static void imports(void) {
  rill_import_options *in = NEW(rill_import_options);
  SET_rill_import_options_label(in, "of another version");
  rill_event event;
  uintptr_t native;
  OK(rill_event_create(device, NULL, &event));
  rill_stream imported;
  OK(rill_stream_create(device, NULL, &imported));
  OK(rill_stream_native(imported, &native));
  OK(rill_stream_import(device, native, in, &imported));
  OK(rill_stream_release(imported));
  REFUSES_NEWER(rill_import_options, in, rill_stream_import(device, native, in, &imported));
  rill_event known;
  OK(rill_event_native(event, &native));
  OK(rill_event_import(device, native, in, &known));
  OK(rill_event_release(known));
  REFUSES_NEWER(rill_import_options, in, rill_event_import(device, native, in, &known));
}

static void memory(void) {
  enum { N = 4096 };
  unsigned char *from, *to;
  OK(RILL_NEW(device, RILL_MEMORY_PINNED, N, &from));
  OK(RILL_NEW(device, RILL_MEMORY_PINNED, N, &to));
  FILLS(rill_memory_info, rill_memory_get_info(from, out));
  memset(from, 7, N);
  memset(to, 0, N);
  rill_copy_3d *in = NEW(rill_copy_3d);
  in->dst = to, in->src = from;
  in->dst_pitch = in->src_pitch = in->width = N;
  in->height = in->depth = 1;
  OK(rill_copy_3d_async(stream, in));
  OK(rill_stream_synchronize(stream));
  CHECK(memcmp(from, to, N) == 0);
  REFUSES_NEWER(rill_copy_3d, in, rill_copy_3d_async(stream, in));
  rill_graph graph;
  rill_graph_node node;
  OK(rill_graph_create(device, &graph));
  OK(rill_graph_add_copy_3d(graph, NULL, 0, in, &node));
  REFUSES_NEWER(rill_copy_3d, in, rill_graph_add_copy_3d(graph, NULL, 0, in, &node));
  OK(rill_graph_release(graph));
  OK(rill_free(from));
  OK(rill_free(to));
}

static void pools(void) {
  rill_pool_options *in = NEW(rill_pool_options);
  SET_rill_pool_options_max_size(in, 1u << 20);
  SET_rill_pool_options_kind(in, RILL_MEMORY_PINNED);
  rill_pool pool;
  uint64_t most;
  uint32_t kind;
  OK(rill_pool_create(device, in, &pool));
  OK(rill_pool_max_size(pool, &most));
  OK(rill_pool_kind(pool, &kind));
  CHECK((most != 0) == HAS_rill_pool_options_max_size);
  CHECK(kind == (HAS_rill_pool_options_kind ? RILL_MEMORY_PINNED : RILL_MEMORY_DEVICE));
  FILLS(rill_pool_info, rill_pool_get_info(pool, out));
  REFUSES_NEWER(rill_pool_options, in, rill_pool_create(device, in, &(rill_pool){ 0 }));
  OK(rill_pool_release(pool));
}

static void compiled(void) {
  static const char source[] = "RILL_KERNEL(scale, int n, float *x) { if (n) x[0] *= SCALE; }\n";
  static const char *const words[] = { "-DSCALE=3" };
  rill_compile_options *in = NEW(rill_compile_options);
  SET_rill_compile_options_options(in, words);
  SET_rill_compile_options_option_count(in, 1);
  rill_module module;
  const rill_status status = rill_module_compile(device, source, in, &module);
  if (status == RILL_ERROR_UNSUPPORTED) return; /* no compiler for the device here */
  CHECK((status == RILL_OK) == HAS_rill_compile_options_option_count);
  REFUSES_NEWER(rill_compile_options, in, rill_module_compile(device, source, in, &(rill_module){ 0 }));
  if (status == RILL_OK) OK(rill_module_release(module));
}

/* A launch, and a label if the header has one; what rillcc wrote is compiled with that header, too. */
static rill_launch *new_launch(uint32_t threads) {
  rill_launch *in = NEW(rill_launch);
  *in = rill_launch_1d(threads, threads);
  SET_rill_launch_label(in, "of another version");
  return in;
}

static void launches(void) {
  enum { N = 32 };
  uint32_t *data;
  rill_module module;
  rill_kernel kernel;
  rill_kernel_ref ref = { &one_bundle, "one", { 0, 0 } };
  OK(RILL_NEW(device, RILL_MEMORY_PINNED, N, &data));
  memset(data, 0, N * sizeof *data);
  OK(rill_module_load(device, &one_bundle, &module));
  OK(rill_module_get_kernel(module, "one", &kernel));
  FILLS(rill_kernel_info, rill_kernel_get_info(kernel, out));
  rill_launch *in = new_launch(N);
  OK(one_launch(stream, in, 1, data));
  OK(rill_stream_launch(stream, kernel, in, RILL_ARGS(2, data)));
  OK(rill_stream_launch_ref(stream, &ref, in, RILL_ARGS(3, data)));
  OK(rill_stream_launch_typed(stream, &ref, in, RILL_ARGS(3, data), __func__));
  OK(rill_stream_synchronize(stream));
  CHECK(data[0] == 9 && data[N - 1] == 9);
  uint32_t clusters;
  const rill_status no_clusters = rill_kernel_active_clusters(kernel, in, &clusters);
  CHECK(no_clusters == RILL_ERROR_INVALID_ARGUMENT || no_clusters == RILL_ERROR_UNSUPPORTED);

  rill_graph graph;
  rill_graph_node node;
  rill_graph_exec exec;
  OK(rill_graph_create(device, &graph));
  OK(rill_graph_add_kernel(graph, NULL, 0, kernel, in, RILL_ARGS(4, data), &node));
  rill_graph_node_params *read = NEW(rill_graph_node_params);
  FILLS(rill_launch, (SET_rill_graph_node_params_launch(read, out), rill_graph_get_node_params(graph, node, read)));
  OK(rill_graph_instantiate(graph, &exec));
  OK(rill_graph_exec_replace_kernel(exec, node, kernel, in, RILL_ARGS(6, data)));
  OK(rill_graph_exec_set_kernel(exec, node, in, RILL_ARGS(5, data)));
  OK(rill_graph_launch(exec, stream));
  OK(rill_stream_synchronize(stream));
  CHECK(data[0] == 14 && data[N - 1] == 14);
  REFUSES_NEWER(rill_launch, in, one_launch(stream, in, 1, data));
  REFUSES_NEWER(rill_launch, in, rill_stream_launch(stream, kernel, in, RILL_ARGS(2, data)));
  REFUSES_NEWER(rill_launch, in, rill_stream_launch_ref(stream, &ref, in, RILL_ARGS(3, data)));
  REFUSES_NEWER(rill_launch, in, rill_stream_launch_typed(stream, &ref, in, RILL_ARGS(3, data), __func__));
  rill_graph_node none;
  REFUSES_NEWER(rill_launch, in, rill_graph_add_kernel(graph, NULL, 0, kernel, in, RILL_ARGS(4, data), &none));
  REFUSES_NEWER(rill_launch, in, rill_graph_exec_set_kernel(exec, node, in, RILL_ARGS(5, data)));
  REFUSES_NEWER(rill_launch, in, rill_graph_exec_replace_kernel(exec, node, kernel, in, RILL_ARGS(6, data)));
  OK(rill_graph_exec_release(exec));
  OK(rill_graph_release(graph));
  OK(rill_module_release(module));
  OK(rill_free(data));
}

static void graphs(void) {
  rill_graph graph;
  rill_graph_node node;
  rill_graph_exec exec;
  rill_graph_exec_options *in = NEW(rill_graph_exec_options);
  SET_rill_graph_exec_options_auto_free_on_launch(in, true);
  SET_rill_graph_exec_options_label(in, "of another version");
  OK(rill_graph_create(device, &graph));
  OK(rill_graph_add_empty(graph, NULL, 0, &node));
  OK(rill_graph_instantiate_with_options(graph, in, &exec));
  FILLS(rill_graph_update_result, rill_graph_update_with_result(exec, graph, out));
  REFUSES_NEWER(rill_graph_exec_options, in, rill_graph_instantiate_with_options(graph, in, &(rill_graph_exec){ 0 }));
  OK(rill_graph_exec_release(exec));
  OK(rill_graph_release(graph));
}

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

static void nodes(void) {
  rill_graph graph;
  rill_graph_node call, copy;
  rill_graph_node_params *in = NEW(rill_graph_node_params);
  void *memory;
  OK(rill_alloc(device, 64, RILL_MEMORY_PINNED, &memory));
  OK(rill_graph_create(device, &graph));
  OK(rill_graph_add_host_call(graph, NULL, 0, do_nothing, NULL, &call));
  OK(rill_graph_add_copy(graph, NULL, 0, (char *)memory + 32, memory, 32, &copy));
  rill_graph_node_params *read = NEW(rill_graph_node_params);
  OK(rill_graph_get_node_params(graph, call, read)); /* nothing is written past its end */
  CHECK(read->struct_size == sizeof *read);
  FILLS(rill_copy_3d, (SET_rill_graph_node_params_copy(read, out), rill_graph_get_node_params(graph, copy, read)));
  SET_rill_graph_node_params_fn(in, do_nothing);
  SET_rill_graph_node_params_user(in, &graph);
  const rill_status expected = HAS_rill_graph_node_params_fn ? RILL_OK : RILL_ERROR_INVALID_ARGUMENT;
  CHECK(rill_graph_set_node_params(graph, call, in) == expected);
  REFUSES_NEWER(rill_graph_node_params, in, rill_graph_set_node_params(graph, call, in));
  OK(rill_graph_release(graph));
  OK(rill_free(memory));
}

static void traces(void) {
  rill_trace_options *in = NEW(rill_trace_options);
  SET_rill_trace_options_path(in, "callers-trace.json");
  SET_rill_trace_options_max_bytes(in, 1u << 20);
  OK(rill_trace_start(in));
  OK(rill_trace_stop());
  FILE *file = fopen(HAS_rill_trace_options_path ? "callers-trace.json" : "rill-trace.json", "r");
  CHECK(file != NULL);
  CHECK(fclose(file) == 0);
  CHECK(remove(HAS_rill_trace_options_path ? "callers-trace.json" : "rill-trace.json") == 0);
  REFUSES_NEWER(rill_trace_options, in, rill_trace_start(in));
}

static void tensors(void) {
  void *memory, *managed;
  const int64_t shape[] = { 16 };
  rill_tensor *in = NEW(rill_tensor);
  OK(rill_alloc(device, 64, RILL_MEMORY_PINNED, &memory));
  SET_rill_tensor_data(in, memory);
  SET_rill_tensor_type_bits(in, 32);
  SET_rill_tensor_dimensions(in, HAS_rill_tensor_shape ? 1 : 0);
  SET_rill_tensor_shape(in, shape);
  if (!HAS_rill_tensor_type_bits) {
    CHECK(rill_dlpack_export(stream, in, RILL_DLPACK_NO_STREAM, NULL, NULL, &managed) == RILL_ERROR_INVALID_ARGUMENT);
  } else {
    OK(rill_dlpack_export(stream, in, RILL_DLPACK_NO_STREAM, NULL, NULL, &managed));
    FILLS(rill_tensor, rill_dlpack_import(device, managed, out));
    ((rill_dlpack *)managed)->deleter(managed);
    REFUSES_NEWER(rill_tensor, in, rill_dlpack_export(stream, in, RILL_DLPACK_NO_STREAM, NULL, NULL, &managed));
  }
  OK(rill_free(memory));
}

static void notes(void) {
  rill_stream_note *in = NEW(rill_stream_note);
  SET_rill_stream_note_name(in, "of another version");
  SET_rill_stream_note_number(in, 1);
  OK(rill_stream_note_begin(stream, in));
  OK(rill_stream_note_end(stream));
  OK(rill_stream_note_ran(stream, in, 1, 2));
  REFUSES_NEWER(rill_stream_note, in, rill_stream_note_begin(stream, in));
  REFUSES_NEWER(rill_stream_note, in, rill_stream_note_ran(stream, in, 1, 2));
}

static void communicators(void) {
  rill_comm_options *in = NEW(rill_comm_options);
  SET_rill_comm_options_timeout_ns(in, UINT64_C(60000000000));
  rill_comm_id id;
  rill_comm comm, again;
  const rill_status status = rill_comm_create_all(&device, 1, in, &comm);
  FILLS(rill_error, rill_comm_last_error(out));
  if (status == RILL_ERROR_UNSUPPORTED) return; /* no engine for GPUs */
  OK(status);
  FILLS(rill_comm_info, rill_comm_get_info(comm, out));
  OK(rill_comm_id_create(device, &id));
  OK(rill_comm_create(device, &id, 1, 0, in, &again));
  REFUSES_NEWER(rill_comm_options, in, rill_comm_create_all(&device, 1, in, &(rill_comm){ 0 }));
  REFUSES_NEWER(rill_comm_options, in, rill_comm_create(device, &id, 1, 0, in, &(rill_comm){ 0 }));
  OK(rill_comm_release(again));
  OK(rill_comm_split(comm, 0, 0, in, &again));
  REFUSES_NEWER(rill_comm_options, in, rill_comm_split(comm, 0, 0, in, &(rill_comm){ 0 }));
  OK(rill_comm_release(again));
  OK(rill_comm_release(comm));
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "cpu";
  OK(rill_device_open(name, &device));
  OK(rill_stream_create(device, NULL, &stream));
  devices_and_errors();
  streams();
  events();
  memory();
  pools();
  graphs();
  nodes();
  traces();
  tensors();
  notes();
  communicators();
  if (strcmp(name, "cpu") == 0) {
    compiled();
    launches();
  } else {
    imports(); /* streams of the cpu have no native form */
  }
  OK(rill_stream_release(stream));
  return 0;
}
