/* RILL_STREAM_OPTIONS and its kin in C++: the same program, and the places where C has no such expression. */
#define main main_in_c
#include "options.c"
#undef main

namespace {

bool labelled(const rill_stream_options *o = RILL_STREAM_OPTIONS(.label = "by default")) {
  return same_stream(o, 0, 0, false, "by default");
}

struct holder {
  int32_t priority = static_cast<const rill_stream_options *>(RILL_STREAM_OPTIONS(.priority = 7))->priority;
  bool timing;
  explicit holder(const rill_event_options *o = RILL_EVENT_OPTIONS(.timing = true)) : timing(o->timing) {}
};

const bool at_namespace_scope = labelled(RILL_STREAM_OPTIONS(.label = "by default"));

constexpr auto constant = RILL_STREAM_OPTIONS(.priority = 5, .blocking = true);
static_assert(constant.value.priority == 5 && constant.value.blocking && constant.value.label == nullptr);

template <class T> T in_template(T priority) {
  return static_cast<const rill_stream_options *>(RILL_STREAM_OPTIONS(.priority = priority))->priority;
}

/* A value that has options in it, and a name of the caller's that the macro could capture. */
int32_t nested(int32_t options_) {
  return static_cast<const rill_stream_options *>(
             RILL_STREAM_OPTIONS(.priority = in_template(RILL_STREAM_OPTIONS(.priority = options_).value.priority)))
      ->priority;
}

} // namespace

int main() {
  CHECK(labelled());
  CHECK(at_namespace_scope);
  CHECK(holder().priority == 7 && holder().timing);
  CHECK(nested(9) == 9);
  CHECK(same_stream(RILL_STREAM_OPTIONS(), 0, 0, false, NULL));
  const auto lambda = [](const rill_pool_options *o = RILL_POOL_OPTIONS(.max_size = 3)) { return limit_of(o); };
  CHECK(lambda() == 3);
  return main_in_c() != 0 || failures != 0;
}
