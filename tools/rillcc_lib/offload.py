"""Extracts AMD code objects from the container that hipcc writes (a clang offload bundle)."""

import re
import struct

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
# backends/hip/image.c has the same text.
COMPRESSED_TEXT = (
    "compressed bundles (CCOB) are not supported: compile with --no-offload-compress, and without --offload-compress, "
    "which HIPCC_COMPILE_FLAGS_APPEND may contain"
)
ELF = b"\x7fELF"


def canonical(target):
    """Returns a target in AMD's notation, with its features in order: gfx90a:sramecc+:xnack-. Returns None if the text
    is not a target."""
    name, *features = target.split(":")
    text = ":".join([name, *sorted(features)])
    return text if re.fullmatch(r"gfx[0-9a-f]+(-[a-z0-9-]+)?(:sramecc[+-])?(:xnack[+-])?", text) else None


def check_format(data):
    """Raises ValueError unless the data begins like an uncompressed container."""
    if data.startswith(COMPRESSED):
        raise ValueError(COMPRESSED_TEXT)
    if not data.startswith(MAGIC):
        raise ValueError("neither a code object nor an offload bundle")


def entries(data):
    """Returns the target and the bytes of each code object in a container; raises ValueError if the container is
    malformed.

    The container consists of the magic bytes, a 64-bit count and the entries. An entry has an offset, a size, the
    length of its name and the name, such as hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+.
    """

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
            raise ValueError("an entry's name extends past the end")
        name = data[position : position + length].decode("ascii", "replace")
        position += length
        if offset > len(data) or size > len(data) - offset:
            raise ValueError('entry "%s" extends past the end' % name)
        target = re.fullmatch(r"hip[^-]*-amdgcn-amd-amdhsa-[^-]*-(.+)", name)
        if target:
            found.append((target.group(1), data[offset : offset + size]))
    return found


def extract(data, arch):
    """Returns the code object for `arch`, which may include features. Raises ValueError unless `data` is a well-formed
    container with exactly one such code object. A bare code object is returned unchanged."""
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
