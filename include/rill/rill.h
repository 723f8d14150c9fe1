/* rill/rill.h: all of rill's host interface.
 *
 * rill gives a C or C++ program devices, memory, streams, kernels and graphs on NVIDIA GPUs, AMD GPUs and CPUs. Each
 * header below covers one kind of object and can be included by itself. Start with rill/device.h and rill/stream.h.
 */
#ifndef RILL_RILL_H
#define RILL_RILL_H

#include <rill/base.h>
#include <rill/capture.h>
#include <rill/compile.h>
#include <rill/device.h>
#include <rill/diagnose.h>
#include <rill/dlpack.h>
#include <rill/event.h>
#include <rill/fault.h>
#include <rill/graph.h>
#include <rill/graph_compose.h>
#include <rill/graph_edit.h>
#include <rill/graph_exec.h>
#include <rill/kernel.h>
#include <rill/memory.h>
#include <rill/module.h>
#include <rill/occupancy.h>
#include <rill/order.h>
#include <rill/pool.h>
#include <rill/status.h>
#include <rill/stream.h>
#include <rill/trace.h>

#endif
