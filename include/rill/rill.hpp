/* rill/rill.hpp: rill's C++17 interface. It is header-only and adds no cost to the C interface; link with rill as in C.
 *
 *     rill::device device = rill::device::open();
 *     rill::stream stream(device);
 *     rill::buffer<float> x(device, n);
 *     stream.fill(x, 1.0f);
 *     stream.launch(scale_launch, rill::threads(n), n, 2.0f, x);   // scale_launch: from the header of rillcc
 *     stream.copy(results, x);                                     // results: a std::vector<float> of n elements
 *     stream.synchronize();
 *
 * There are two kinds of types. Owning types (stream, event, pool, graph, buffer ...) hold one reference each. They
 * can be moved, and share() creates another owner. Borrowed types (stream_ref, event_ref, device ...) are the
 * parameter types of functions; an owning object, or a handle of the C interface, converts to them implicitly. To
 * call the C interface, pass handle().
 *
 * There are two modes. With exceptions, a call that fails throws rill::error. Without exceptions (-fno-exceptions, or
 * RILL_CPP_RESULTS defined before the include), it returns a result. outcome<T> is T in the first mode and result<T>
 * in the second. The modes are inline namespaces of rill, so one program can use both. Constructors that can fail
 * exist only in the first mode; create() exists in both.
 *
 * Destructors never throw. They do not block unless their comment says so.
 *
 * Pitfall: a call submits work and returns before the work is done. Host memory used by a copy, such as a
 * std::vector, must stay valid until the stream is synchronized.
 */
#ifndef RILL_RILL_HPP
#define RILL_RILL_HPP

#include <rill/cpp/graph.hpp>
#include <rill/cpp/kernel.hpp>
#include <rill/cpp/memory.hpp>
#include <rill/cpp/outcome.hpp>
#include <rill/cpp/resource.hpp>
#include <rill/cpp/stream.hpp>
#include <rill/cpp/view.hpp>
#include <rill/rill.h>

#endif
