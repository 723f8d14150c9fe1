"""Reads the undefined symbols of a program's object files, alone or in archives, and demangles them."""

import os
import re
import shutil
import struct
import subprocess

from . import listing
from .errors import RillccError

ARCHIVE, THIN = b"!<arch>\n", b"!<thin>\n"


def members(path, data):
    """Yields (name, content) of each file in an archive. The files of a thin archive are stored beside it."""
    thin, at, names = data.startswith(THIN), 8, b""
    while at + 60 <= len(data):
        name, size = data[at : at + 16].rstrip(b" "), int(data[at + 48 : at + 58])
        at += 60
        if size < 0:
            raise ValueError("a file of %d bytes" % size)
        long = re.fullmatch(rb"/(\d+)", name)
        own = name in (b"/", b"//", b"/SYM64/")
        if long:
            name = names[int(long.group(1)) :].split(b"\n")[0]
        content = data[at : at + size] if own or not thin else b""
        if name == b"//":
            names = content
        elif not own:
            file = os.fsdecode(name).removesuffix("/") if long else os.fsdecode(name.split(b"/")[0])
            if thin:
                content = read_bytes(os.path.join(os.path.dirname(path), file))
            yield "%s(%s)" % (path, file), content
        at += (size + size % 2) if own or not thin else 0


def read_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise RillccError("cannot read %s: %s" % (path, error.strerror)) from error


def objects(path):
    """Returns (name, content) of each object in a file."""
    data = read_bytes(path)
    if not data.startswith((ARCHIVE, THIN)):
        return [(path, data)]
    try:
        return list(members(path, data))
    except ValueError as error:
        raise RillccError("this archive cannot be read", path) from error


def symbols(path, data, word):
    """Returns the defined and the undefined symbols of an object whose names contain a word."""
    if data[:4] != b"\x7fELF":
        raise RillccError("it is not an ELF object; if it was compiled with -flto, compile it without", path)
    defined, undefined = set(), set()
    try:
        elf = listing.Elf(data)
        has_code = any(section[2] & listing.SHF_EXECINSTR and elf.content(section) for section in elf.sections)
        if not has_code and any(elf.name_of(section).startswith(".gnu.lto_") for section in elf.sections):
            raise RillccError("it has no code, because it was compiled with -flto: compile it without", path)
        kinds = (listing.SHT_SYMTAB, listing.SHT_DYNSYM)
        for section in (section for section in elf.sections if section[1] in kinds):
            for name, _, _, index, _ in elf.symbols(section):
                if word in name:
                    (defined if index else undefined).add(name)
    except (ValueError, struct.error, IndexError) as error:
        raise RillccError("it cannot be read: %s" % error, path) from error
    return defined, undefined


def undefined(paths, word):
    """Returns the symbols that contain a word and that the files together leave undefined, each with the first file
    that refers to it."""
    found, defined = {}, set()
    for name, data in (item for path in paths for item in objects(path)):
        here, missing = symbols(name, data, word)
        defined |= here
        for symbol in sorted(missing):
            found.setdefault(symbol, name)
    return {symbol: name for symbol, name in found.items() if symbol not in defined}


def find_demangler():
    names = ["c++filt", "llvm-cxxfilt", *("llvm-cxxfilt-%d" % version for version in range(40, 13, -1))]
    found = next(filter(None, map(shutil.which, names)), None)
    if not found:
        raise RillccError("--instances-of requires c++filt (binutils) or llvm-cxxfilt, and neither is installed")
    return found


def demangle(names):
    """Returns the C++ names of the symbols."""
    names = list(names)
    if not names:
        return []
    done = subprocess.run(
        [find_demangler()], input="".join(name + "\n" for name in names), capture_output=True, encoding="utf-8", check=False
    )
    said = done.stdout.splitlines()
    if done.returncode != 0 or len(said) != len(names):
        raise RillccError("%s does not work:\n%s" % (done.args[0], done.stderr.rstrip()))
    return said
