/* rill/rill.hpp: rill for C++17, over the C interface and at its cost.  Header only; link with rill as from C.
 *
 *     rill::device device = rill::device::open();
 *     rill::stream stream(device);
 *     rill::buffer<float> x(device, n);
 *     stream.fill(x, 1.0f);
 *     stream.launch(scale_launch, rill::threads(n), n, 2.0f, x);   // scale_launch: of rillcc's header
 *     stream.copy(results, x);                                     // results: a std::vector<float> of n elements
 *     stream.synchronize();
 *
 * Two kinds of type.  Owning types (stream, event, pool, graph, buffer ...) have one reference each: they can be moved,
 * and share() makes another owner.  Borrowed types (stream_ref, event_ref, device ...) are what functions take; they
 * are made from an owning object or from a handle of the C interface, whose functions take handle().
 *
 * Two modes.  With exceptions a call that fails throws rill::error.  Without (-fno-exceptions, or RILL_CPP_RESULTS
 * defined before the include) it returns a result.  outcome<T> is T in the first mode and result<T> in the second.  The
 * modes are inline namespaces of rill, so one program may have both.  Constructors that can fail are in the first mode
 * only; create() is in both.
 *
 * Destructors never throw.  They do not block, unless their comment says so.
 *
 * The thing people get wrong: work is submitted, not done.  Host memory of a copy, like a std::vector, must stay
 * until the stream is synchronized.
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
