"""Reads and writes PTX files for machines without a compiler for NVIDIA GPUs (`--write-ptx`, `--read-ptx`).

The first line of each file is a comment with a hash of its inputs, so that PTX of another source is never used.
"""

import glob
import hashlib
import os

from .errors import RillccError


def key(toolchain):
    """Returns a hash of the source, its own headers, the headers of the dialect, and the options that affect the PTX.
    The hash does not depend on the machine."""
    sources = {os.path.realpath(path) for path in toolchain.host.files if not path.startswith("/usr/")}
    sources |= {os.path.realpath(toolchain.source)}
    sources = {path for path in sources if os.path.dirname(path) != os.path.realpath(toolchain.device_headers)}
    dialect = glob.glob(os.path.join(toolchain.device_headers, "*.h"))
    options = toolchain.options
    added = [(instance.name, instance.spelling) for instance in toolchain.host.added]
    matter = (options.defines, options.fp_contract, options.cuda_names, options.cuda_options, added)
    digest = hashlib.sha256(repr(matter).encode())
    for path in sorted(sources - {os.path.realpath(toolchain.path("defines.h"))}, key=os.path.basename) + sorted(dialect):
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def first_line(toolchain):
    return b"// rillcc %s\n" % key(toolchain).encode()


def stem(options):
    return os.path.basename(options.source).partition(".")[0]


def write(toolchain, images):
    folder = toolchain.options.write_ptx
    try:
        os.makedirs(folder, exist_ok=True)
        for image in images:
            if image.backend == "cuda" and image.target.startswith("ptx_"):
                with open(os.path.join(folder, "%s.%s.ptx" % (stem(toolchain.options), image.target)), "wb") as file:
                    file.write(first_line(toolchain) + image.data.rstrip(b"\0"))
    except OSError as error:
        raise RillccError("cannot write %s: %s" % (error.filename, error.strerror)) from error


def read(toolchain):
    """Returns (target, PTX) of each file for the source, newest GPU last."""
    found, wanted = [], first_line(toolchain)
    for path in sorted(glob.glob(os.path.join(glob.escape(toolchain.options.read_ptx), stem(toolchain.options) + ".ptx_*.ptx"))):
        with open(path, "rb") as file:
            if file.readline() == wanted:
                found.append((os.path.basename(path).split(".")[1], file.read() + b"\0"))
    return found
