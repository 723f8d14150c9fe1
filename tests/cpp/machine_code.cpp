/* Pairs of functions that have to have the same machine code: twin_c_X calls the C interface, twin_cpp_X does the same
 * through rill.hpp.  A failure is thrown, or without exceptions given to a handler. */
#include <rill/rill.hpp>

#if RILL_CPP_THROWS
#define FINISH_C(call)                                      \
  do {                                                      \
    const rill_status finished = call;                      \
    if (finished != RILL_OK) rill::detail::raise(finished); \
  } while (0)
#define FINISH_CPP(call) call
#else
extern "C" void handle_failure();
#define FINISH_C(call) \
  if ((call) != RILL_OK) handle_failure()
#define FINISH_CPP(call) \
  if (!(call)) handle_failure()
#endif

extern "C" {
rill_status step_launch(rill_stream, const rill_launch *, int, float, const float *, float *);
void use(float *, std::size_t) noexcept;

#define TWIN(name, parameters)   \
  void twin_c_##name parameters; \
  void twin_cpp_##name parameters;

TWIN(record, (rill_stream s, rill_event e))
void twin_c_record(rill_stream s, rill_event e) { FINISH_C(rill_stream_record_event(s, e, 0)); }
void twin_cpp_record(rill_stream s, rill_event e) { FINISH_CPP(rill::stream_ref(s).record(e)); }

TWIN(wait, (rill_stream s, rill_event e))
void twin_c_wait(rill_stream s, rill_event e) { FINISH_C(rill_stream_wait_event(s, e, 0)); }
void twin_cpp_wait(rill_stream s, rill_event e) { FINISH_CPP(rill::stream_ref(s).wait(rill::event_ref(e))); }

TWIN(wait_stream, (rill_stream s, rill_stream other))
void twin_c_wait_stream(rill_stream s, rill_stream other) { FINISH_C(rill_stream_wait_stream(s, other)); }
void twin_cpp_wait_stream(rill_stream s, rill_stream other) {
  FINISH_CPP(rill::stream_ref(s).wait(rill::stream_ref(other)));
}

TWIN(synchronize, (rill_stream s))
void twin_c_synchronize(rill_stream s) { FINISH_C(rill_stream_synchronize(s)); }
void twin_cpp_synchronize(rill_stream s) { FINISH_CPP(rill::stream_ref(s).synchronize()); }

TWIN(launch, (rill_stream s, const rill_launch *l, int n, const float *x, float *y))
void twin_c_launch(rill_stream s, const rill_launch *l, int n, const float *x, float *y) {
  FINISH_C(step_launch(s, l, n, 2.0f, x, y));
}
void twin_cpp_launch(rill_stream s, const rill_launch *l, int n, const float *x, float *y) {
  FINISH_CPP(rill::stream_ref(s).launch(step_launch, *l, n, 2.0f, x, y));
}

/* Views with a number of elements that is known to be the same: the check is gone. */
TWIN(copy, (rill_stream s, float *to, const float *from, std::size_t n))
void twin_c_copy(rill_stream s, float *to, const float *from, std::size_t n) {
  FINISH_C(rill_copy_async(s, to, from, n * sizeof *to));
}
void twin_cpp_copy(rill_stream s, float *to, const float *from, std::size_t n) {
  FINISH_CPP(rill::stream_ref(s).copy(rill::view<float>(to, n), rill::view<const float>(from, n)));
}

TWIN(fill, (rill_stream s, float *to, float value, std::size_t n))
void twin_c_fill(rill_stream s, float *to, float value, std::size_t n) {
  const auto fill = [&] {
    const float pattern = value;
    return rill_fill_async(s, to, &pattern, sizeof pattern, n);
  };
  FINISH_C(fill());
}
void twin_cpp_fill(rill_stream s, float *to, float value, std::size_t n) {
  FINISH_CPP(rill::stream_ref(s).fill(rill::view<float>(to, n), value));
}

TWIN(graph_launch, (rill_graph_exec x, rill_stream s))
void twin_c_graph_launch(rill_graph_exec x, rill_stream s) { FINISH_C(rill_graph_launch(x, s)); }
void twin_cpp_graph_launch(rill_graph_exec x, rill_stream s) { FINISH_CPP(rill::graph_exec_ref(x).launch(s)); }

#if RILL_CPP_THROWS
/* What is had, used and given back. */
TWIN(event, (rill_device d))
void twin_c_event(rill_device d) {
  const auto create = [&] {
    rill_event e = { 0 };
    FINISH_C(rill_event_create(d, nullptr, &e));
    return e;
  };
  const rill_event e = create();
  if (e.id != 0) (void)rill_event_release(e);
}
void twin_cpp_event(rill_device d) { const rill::event e(d); }

TWIN(alloc, (rill_device d, std::size_t n))
void twin_c_alloc(rill_device d, std::size_t n) {
  const auto alloc = [&] {
    void *p = nullptr;
    FINISH_C(rill_alloc_array_(d, RILL_MEMORY_DEVICE, n, sizeof(float), &p));
    return static_cast<float *>(p);
  };
  float *const x = alloc();
  use(x, n);
  if (x != nullptr) (void)rill_free(x);
}
void twin_cpp_alloc(rill_device d, std::size_t n) {
  rill::buffer<float> x(d, n);
  use(x.data(), x.size());
}

TWIN(ask, (rill_event e, bool *out))
void twin_c_ask(rill_event e, bool *out) {
  bool ready = false;
  FINISH_C(rill_event_is_ready(e, &ready));
  *out = ready;
}
void twin_cpp_ask(rill_event e, bool *out) { *out = rill::event_ref(e).is_ready(); }
#endif

/* The comparison must find a difference where there is one. */
TWIN(unlike, (rill_stream s, rill_event e))
void twin_c_unlike(rill_stream s, rill_event e) { FINISH_C(rill_stream_record_event(s, e, 0)); }
void twin_cpp_unlike(rill_stream s, rill_event e) { FINISH_CPP(rill::stream_ref(s).record(e, RILL_EVENT_EXTERNAL)); }
}
