"""Takes AMD code objects out of the container that hipcc writes (a clang offload bundle)."""

import re
import struct

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
# backends/hip/image.c says the same.
COMPRESSED_TEXT = (
    "compressed bundles (CCOB) are not read: compile with --no-offload-compress, and without --offload-compress, "
    "which HIPCC_COMPILE_FLAGS_APPEND may contain"
)
ELF = b"\x7fELF"


def canonical(target):
    """Returns a target as AMD writes it, its features in their order: gfx90a:sramecc+:xnack-; None if it is none."""
    name, *features = target.split(":")
    text = ":".join([name, *sorted(features)])
    return text if re.fullmatch(r"gfx[0-9a-f]+(-[a-z0-9-]+)?(:sramecc[+-])?(:xnack[+-])?", text) else None


def check_format(data):
    """Raises ValueError unless this is the beginning of a container that is not compressed."""
    if data.startswith(COMPRESSED):
        raise ValueError(COMPRESSED_TEXT)
    if not data.startswith(MAGIC):
        raise ValueError("neither a code object nor an offload bundle")


def entries(data):
    """Returns target and bytes of each code object in a container; raises ValueError if it is not a sound one.

    The container: magic, 64-bit count, then per entry offset, size, length of its name and the name, such as
    hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+."""

    check_format(data)

    def number(at):
        if at + 8 > len(data):
            raise ValueError("truncated after %d bytes" % len(data))
        return struct.unpack_from("<Q", data, at)[0]

    found = []
    position = len(MAGIC) + 8
    for _ in range(number(len(MAGIC))):
        offset, size, length = number(position), number(position + 8), number(position + 16)
        position += 24
        if length > len(data) - position:
            raise ValueError("an entry's name reaches past the end")
        name = data[position : position + length].decode("ascii", "replace")
        position += length
        if offset > len(data) or size > len(data) - offset:
            raise ValueError('entry "%s" reaches past the end' % name)
        target = re.fullmatch(r"hip[^-]*-amdgcn-amd-amdhsa-[^-]*-(.+)", name)
        if target:
            found.append((target.group(1), data[offset : offset + size]))
    return found


def extract(data, arch):
    """Returns the code object for `arch`, and for its features if it names some; raises ValueError if `data` is not a
    sound container with one inside.  A bare code object is taken as it is."""
    if data.startswith(ELF):
        return data
    name, *features = arch.split(":")
    found = []
    for target, code in entries(data):
        parts = target.split(":")
        if parts[0] == name and set(features) <= set(parts[1:]):
            found.append(code)
    if len(found) != 1:
        raise ValueError("%d entries for %s" % (len(found), arch))
    if not found[0].startswith(ELF):
        raise ValueError("the entry for %s is not a code object" % arch)
    return found[0]
