#!/usr/bin/env python3
"""Shares memory between rill and NumPy, PyTorch or CuPy in both directions, without a copy, through DLPack.

    python3 make_module.py /usr/local/share/rill/rill-api.json rill.py && python3 exchange.py numpy

numpy uses the CPU and must be version 2.1 or later. torch and cupy use the device of RILL_DEVICE, if they support it.
"""

import ctypes
import importlib
import sys

import rill

N = 12
NAME, USED = b"dltensor_versioned", b"used_dltensor_versioned"
api = ctypes.pythonapi
DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, DESTROY]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", api))
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", api))


def delete(managed):
    described = ctypes.cast(managed, ctypes.POINTER(rill.dlpack))
    described.contents.deleter(described)


@DESTROY
def destroy(capsule):
    """Releases the memory of a capsule that no library has consumed."""
    if is_valid(capsule, NAME):
        delete(pointer_of(capsule, NAME))


class Array:
    """N floats in memory of rill, for the from_dlpack of any library."""

    def __init__(self, device, stream):
        self.stream, self.info = stream, rill.device_get_info(device)
        self.address = rill.alloc(device, 4 * N, rill.MEMORY_DEVICE)
        self.shape = (ctypes.c_int64 * 2)(3, N // 3)
        self.tensor = rill.tensor(data=self.address, type_code=rill.TENSOR_FLOAT, type_bits=32, dimensions=2, shape=self.shape)

    def __dlpack_device__(self):
        return {rill.BACKEND_CUDA: 2, rill.BACKEND_HIP: 10}.get(self.info.backend, 1), self.info.ordinal

    def __dlpack__(self, stream=None, max_version=None, **_):
        if self.__dlpack_device__()[0] == 1:
            rill.stream_synchronize(self.stream)
            stream = rill.DLPACK_NO_STREAM
        elif stream is None:
            stream = 1 if self.info.backend == rill.BACKEND_CUDA else 0
        managed = rill.dlpack_export(self.stream, self.tensor, stream, rill.release_fn(), None)
        return api.PyCapsule_New(managed, NAME, destroy)


def fill(stream, address, value):
    pattern = ctypes.c_float(value)
    rill.fill_async(stream, address, ctypes.addressof(pattern), 4, N)


def main(name):
    try:
        library = importlib.import_module(name)
    except ImportError as error:
        print("no %s here: %s" % (name, error))
        return 77
    if name == "numpy" and tuple(map(int, library.__version__.split(".")[:2])) < (2, 1):
        print("numpy %s has no versioned DLPack" % library.__version__)
        return 77
    device = rill.device_open("cpu" if name == "numpy" else None)
    stream = rill.stream_create(device, None)

    # Export: the other library's array shows what rill's stream wrote to the memory.
    own = Array(device, stream)
    fill(stream, own.address, 1.5)
    theirs = library.from_dlpack(own)
    print("given: %s, sum %g" % (tuple(theirs.shape), float(theirs.sum())))
    if float(theirs.sum()) != 1.5 * N:
        sys.exit("%s sees something else" % name)

    # Import: rill fills an array of the other library.
    array = theirs * 2
    native = rill.stream_native(stream)
    capsule = array.__dlpack__(**({"stream": native} if native else {}), max_version=(1, 0))
    managed = api.PyCapsule_GetPointer(capsule, NAME)
    tensor = rill.tensor()
    rill.dlpack_import(device, managed, tensor)
    api.PyCapsule_SetName(capsule, USED)
    fill(stream, tensor.data, 4.0)
    rill.stream_synchronize(stream)
    delete(managed)
    print("taken: %d dimensions, sum %g" % (tensor.dimensions, float(array.sum())))
    if float(array.sum()) != 4.0 * N:
        sys.exit("rill filled something else")
    del theirs
    rill.free(own.address)
    rill.stream_release(stream)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
