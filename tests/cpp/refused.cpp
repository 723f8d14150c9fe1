/* What must not compile, each part alone: REFUSED_n.  `refused: TEXT` is in the compiler's message.  With none of them
 * the file compiles. */
#include <rill/rill.hpp>

#include <array>
#include <string>
#include <vector>

inline rill_status scale_launch(rill_stream, const rill_launch *, int, float, float *) { return RILL_OK; }
inline void takes(rill::stream_ref) {}

void all(rill::device device, const rill::stream &stream, const rill::event &event, rill::buffer<float> &x,
         const rill::buffer<float> &constant, std::vector<float> &host, std::vector<double> &doubles);

void all(rill::device device, const rill::stream &stream, const rill::event &event, rill::buffer<float> &x,
         const rill::buffer<float> &constant, std::vector<float> &host, std::vector<double> &doubles) {
  takes(stream);
#if REFUSED == 1 /* refused: deleted */
  rill::stream copy = stream;
#elif REFUSED == 2  /* refused: deleted */
  rill::event copy(event);
#elif REFUSED == 3  /* refused: deleted */
  rill::buffer<float> copy = x;
#elif REFUSED == 4  /* refused: deleted */
  rill::graph graph, other;
  other = graph;
#elif REFUSED == 5  /* refused: deleted */
  rill::stream_resource copy = *static_cast<rill::stream_resource *>(nullptr);
#elif REFUSED == 6  /* refused: trivially copyable */
  rill::buffer<std::string> strings(device, 3);
#elif REFUSED == 7  /* refused: trivially copyable */
  rill::async_buffer<std::vector<int>> vectors(stream, 3);
#elif REFUSED == 8  /* refused: trivially copyable */
  std::string text[2];
  rill::view view(text);
#elif REFUSED == 9  /* refused: no viable|cannot bind|invalid init|conver */
  rill::view<float> view = rill::buffer<float>(device, 3);
#elif REFUSED == 10 /* refused: would free it before */
  stream.copy(x, rill::buffer<float>(device, 3));
#elif REFUSED == 11 /* refused: would free it before */
  stream.copy(x, std::vector<float>(3));
#elif REFUSED == 12 /* refused: deleted */
  float *p = rill::buffer<float>(device, 3).data();
#elif REFUSED == 13 /* refused: have different types */
  stream.copy(x, doubles);
#elif REFUSED == 14 /* refused: target of a copy is const */
  stream.copy(constant, host);
#elif REFUSED == 15 /* refused: value of a fill */
  stream.fill(x, 1);
#elif REFUSED == 16 /* refused: 1, 2, 4, 8 or 16 bytes */
  rill::buffer<std::array<char, 3>> threes(device, 3);
  stream.fill(threes, std::array<char, 3>{});
#elif REFUSED == 17 /* refused: no matching|too few|too many */
  stream.launch(scale_launch, rill::threads(3), 3, 2.0f);
#elif REFUSED == 18 /* refused: no matching|no known conversion|could not convert|no viable|cannot convert */
  rill::buffer<double> wrong(device, 3);
  stream.launch(scale_launch, rill::threads(3), 3, 2.0f, wrong);
#elif REFUSED == 19 /* refused: no matching|no known conversion|could not convert|no viable|cannot convert */
  stream.launch(scale_launch, rill::threads(3), 3, 2.0f, constant);
#elif REFUSED == 20 /* refused: no matching|no known conversion|could not convert|no viable|cannot convert */
  stream.launch(scale_launch, rill::threads(3), 3, 2.0f, rill::buffer<float>(device, 3));
#elif REFUSED == 21 /* refused: copied as bytes */
  stream.launch(rill_kernel{ 0 }, rill::threads(3), std::string("x"));
#elif REFUSED == 22 /* refused: the callable of a host call */
  stream.host_call([](int, int) {});
#elif REFUSED == 23 /* refused: could not convert|conversion from|no viable conversion|cannot convert */
  rill::stream explicit_only = device;
#elif REFUSED == 24 /* refused: could not convert|conversion from|no viable conversion|cannot convert */
  rill::view<float> view(x);
  rill::view<double> other = view;
#elif REFUSED == 25 /* refused: nodiscard|unused-result */
  stream.record();
#elif REFUSED == 26 /* refused: no matching|no known conversion|could not convert|no viable|cannot convert */
  stream.wait(x);
#elif REFUSED == 27 /* refused: returns nothing, a rill_status or a result */
  static_cast<void>(rill::capture(stream, [] { return 5.0; }));
#endif
  static_cast<void>(device);
  static_cast<void>(event);
  static_cast<void>(x);
  static_cast<void>(constant);
  static_cast<void>(host);
  static_cast<void>(doubles);
}
