#!/usr/bin/env python3
"""To start, the library needs the C library and nothing else."""

import re
import subprocess
import sys

readelf, library = sys.argv[1:]
dynamic = subprocess.run([readelf, "-d", library], check=True, capture_output=True, text=True).stdout
needed = re.findall(r"\(NEEDED\).*\[(.+?)\]", dynamic)
soname = re.findall(r"\(SONAME\).*\[(.+?)\]", dynamic)
allowed = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux.*|lib[a-z]*san|libclang_rt.*)\.so")
others = [name for name in needed if not allowed.match(name)]
print(f"{soname}: needs {needed}")
if others:
    print(f"more than the C library: {others}")
sys.exit(bool(others) or soname != ["librill.so.0"])
