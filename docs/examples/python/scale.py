#!/usr/bin/env python3
"""Compiles a kernel, launches it on the default device, and checks the result.

    python3 make_module.py /usr/local/share/rill/rill-api.json rill.py && python3 scale.py
"""

import ctypes
import sys

import rill

SOURCE = """
#include <rill/device/kernel.h>
RILL_KERNEL(scale, int n, float a, float *x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}
"""
N = 1000


def argument(value):
    """Returns a rill_arg that points to a value and keeps the value alive."""
    made = rill.arg(data=ctypes.addressof(value), size=ctypes.sizeof(value))
    made.value = value
    return made


def main():
    device = rill.device_open(None)
    try:
        module = rill.module_compile(device, SOURCE, None)
    except rill.Error as error:
        if error.status != rill.ERROR_UNSUPPORTED:
            raise
        print("nothing is compiled here:", error)
        return
    kernel = rill.module_get_kernel(module, "scale")
    stream = rill.stream_create(device, rill.stream_options(label="from Python"))

    memory = rill.alloc(device, N * 4, rill.MEMORY_PINNED)
    x = (ctypes.c_float * N).from_address(memory)
    x[:] = list(map(float, range(N)))

    launch = rill.launch(grid=rill.dim3(x=(N + 127) // 128), block=rill.dim3(x=128), label="scale")
    values = [argument(ctypes.c_int(N)), argument(ctypes.c_float(2.5)), argument(ctypes.c_void_p(memory))]
    rill.stream_launch(stream, kernel, launch, (rill.arg * 3)(*values), 3)
    rill.stream_synchronize(stream)
    if any(x[i] != 2.5 * i for i in range(N)):
        sys.exit("the kernel computed something else")
    print("%d numbers on %s: x[%d] = %g" % (N, rill.device_get_info(device).name.decode(), N - 1, x[N - 1]))

    # A failed call raises an exception with rill's error text: here the grid is empty.
    try:
        rill.stream_launch(stream, kernel, rill.launch(), (rill.arg * 3)(*values), 3)
        sys.exit("an empty grid was launched")
    except rill.Error as error:
        print(error)

    rill.free(memory)
    rill.stream_release(stream)
    rill.kernel_release(kernel)
    rill.module_release(module)


main()
