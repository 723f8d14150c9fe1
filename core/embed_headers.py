#!/usr/bin/env python3
"""Writes the kernel dialect's headers as C data, for the run-time compilers.

    embed_headers.py FOLDER OUTPUT DEPFILE
"""

import pathlib
import sys

folder, output, depfile = map(pathlib.Path, sys.argv[1:])
headers = sorted(folder.glob("*.h"))
lines = ['#include "core/kernel/compile.h"', "", "/* Made by embed_headers.py. */"]
for number, path in enumerate(headers):
    data = path.read_bytes() + b"\0"
    lines.append("static const char text_%d[] = {" % number)
    lines += ["  " + ", ".join(str(byte) for byte in data[i : i + 24]) + "," for i in range(0, len(data), 24)]
    lines.append("};")
lines.append("static const rill_compile_header dialect_headers[] = {")
lines += ['  { "rill/device/%s", text_%d },' % (path.name, number) for number, path in enumerate(headers)]
lines += ["};", "const rill_compile_header *const rill__dialect_headers = dialect_headers;"]
lines += ["const size_t rill__dialect_header_count = %d;" % len(headers), ""]
output.write_text("\n".join(lines), encoding="utf-8")
depfile.write_text("%s: %s\n" % (output, " ".join(str(path).replace(" ", "\\ ") for path in headers)), encoding="utf-8")
