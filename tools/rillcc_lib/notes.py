"""Reads the contents of a source from an object that the host compiler makes of it with RILL_NOTES: the kernels and
their parameters, as the compiler reports them (rill/device/host_kernels.h)."""

import re
import struct
from dataclasses import dataclass, field
from typing import Callable

from .errors import RillccError
from .listing import SHT_RELA, SHT_SYMTAB, Elf, trim
from .stacks import is_instance

MAGIC = 0x45544F4E
TEXT, PARAMETERS = 512, 4096
HEAD = struct.Struct("<4I%ds%ds%ds" % (TEXT, TEXT, PARAMETERS))
TYPE = struct.Struct("<3I%ds" % TEXT)
PLAIN, CLASS, ENUM, REFUSED = range(4)

# The types that a C program knows by these names.
C_TYPES = set("void char short int long float double signed unsigned bool".split())
C_TYPES |= set("size_t ptrdiff_t intptr_t uintptr_t const volatile".split())
C_TYPES |= {"%sint%d_t" % (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
# CUDA's types, and rill's types that are the same in C programs.
NUMBERS = "char uchar short ushort int uint long ulong longlong ulonglong float double".split()
CUDA_TYPES = {number + count: "rill_%s%s" % (number, count) for number in NUMBERS for count in "1234"}
CUDA_TYPES.update({"__half": "rill_half", "__half2": "rill_half2", "__nv_bfloat16": "rill_bfloat16"})
CUDA_TYPES["__nv_bfloat162"] = "rill_bfloat162"
# rill's own types, and the headers that declare them for C programs.
OWN_TYPES = dict.fromkeys(CUDA_TYPES.values(), "rill/device/vectors.h")
OWN_TYPES.update({"rill_half": "rill/device/half.h", "rill_bfloat16": "rill/device/half.h"})
CUDA_TYPES["dim3"] = "rill_dim3"
INDEX_TYPES = {name: CUDA_TYPES[name] for name in ("uint3", "dim3")}  # also known without rill/device/cuda_names.h
C_TYPES |= {"rill_dim3", *OWN_TYPES}


@dataclass
class Parameter:
    name: str
    type: str  # in a C program; empty if C has no name for it
    size: int = 0
    alignment: int = 0
    said: str = ""  # the compiler's name of its type


@dataclass
class Kernel:
    name: str
    parameters: list
    file: str
    line: int
    symbol: str = ""  # its name in the images


@dataclass
class Unit:
    """The contents of one source."""

    kernels: list = field(default_factory=list)
    plain: list = field(default_factory=list)  # symbols of kernels that nothing registers
    asked: list = field(default_factory=list)  # symbols of functions to which programs may refer (instances.py)
    templates: dict = field(default_factory=dict)  # lists of kernel templates, by their qualified names
    functions: dict = field(default_factory=dict)  # symbols to which programs refer, by the kernel's name

    def type_headers(self):
        """Returns rill's headers that declare types which the kernels and their templates take."""
        types = [parameter.type for kernel in self.kernels for parameter in kernel.parameters]
        types += [text for several in self.templates.values() for template in several for text in template.arguments]
        words = {word for text in types for word in re.findall(r"\w+", text)}
        return sorted({OWN_TYPES[word] for word in words & OWN_TYPES.keys()})

    def tags(self):
        """Returns the structs and unions of the source that kernels take pointers to: "struct point"."""
        types = [p.type for kernel in self.kernels for p in kernel.parameters]
        return sorted({tag for text in types for tag in re.findall(r"\b(?:struct|union) \w+", text)})


def text_of(data):
    return data.split(b"\0")[0].decode("utf-8", "replace")


def split_commas(text):
    """Returns the parts of a list between its commas; commas inside brackets do not count."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


@dataclass
class Known:
    """Facts from the text of a source, which are used if the compiler's report is not enough for a C program."""

    type_headers: bool = False  # whether the user names headers that declare its types
    # Maps CUDA's names to rill's types, if the source uses rill's types under these names.
    cuda_types: dict = field(default_factory=lambda: INDEX_TYPES)
    names_of: Callable = lambda kernel, count: None  # returns the parameters of a plain kernel as they appear to be written
    tag_of: Callable = lambda name: ""  # returns "struct" or "union" if a type of that name is declared as one


def type_for_c(source, said, known):
    """Returns the name that a C program has for a type, or "" if it has none."""
    if source and words_of(source) <= C_TYPES:
        return tidy(source)
    own = re.sub(r"\w+", lambda word: known.cuda_types.get(word[0], word[0]), said)
    if words_of(own) <= C_TYPES:
        return tidy(own)
    if known.type_headers and source:
        return tidy(source)
    if not said.endswith("*"):
        return ""
    pointee = re.fullmatch(r"((?:const |volatile )*)(\w+)((?:[ *]|const|volatile)*)", said)
    tag = known.tag_of(pointee[2]) if pointee else ""
    if pointee and tag:
        return tidy("%s%s %s%s" % (pointee[1], tag, pointee[2], pointee[3]))
    return "const void *" if said.startswith("const ") else "void *"


def names_in(parts, count):
    """Returns the parameters with only their names, or None unless there are `count` different names."""
    names = [name for part in parts for name in re.findall(r"(\w+)\s*(?:\[[^]]*\]\s*)*$", part)]
    if len(parts) != count or len(set(names)) != count:
        return None
    return ["auto " + name for name in names]


def read_parameter(number, written, note, known, refuse):
    """Returns a parameter, from its text in the source if that is known, and from the compiler's report on its type."""
    size, alignment, kind, said = note
    found = re.fullmatch(r"(.*?)\b([A-Za-z_]\w*)\s*((?:\[[^]]*\])*)", written, re.DOTALL)
    source = " ".join(re.sub(r"\b__restrict(?:__)?\b|\b__grid_constant__\b", " ", found.group(1) if found else "").split())
    if found and (found.group(2) in C_TYPES or not source):
        found, source = None, ""  # the text is only a type
    name = found.group(2) if found else "arg%d" % number
    if source == "auto":
        source = ""  # the text is only a name
    if "=" in written:
        raise refuse(number, written, "a kernel parameter cannot have a default value")
    if not said:
        raise refuse(number, written, "its type cannot be determined")
    if kind == REFUSED:
        why = "a kernel cannot take a reference; take a value or a pointer" if "&" in said else "its type is not trivially copyable"
        raise refuse(number, written, why)
    if "long double" in said:
        raise refuse(number, written, "GPUs have no long double")
    simple = source if found and not found.group(3) else ""
    return Parameter(name, type_for_c(simple, said, known), size, alignment, said)


# GCC's names of C types, and the usual names.
GCC_TYPES = [("long long unsigned int", "unsigned long long"), ("long unsigned int", "unsigned long")]
GCC_TYPES += [("short unsigned int", "unsigned short"), ("long long int", "long long"), ("long int", "long")]
GCC_TYPES += [("short int", "short")]


def words_of(text):
    return set(re.findall(r"\w+|::|[<>(]", text.replace("_Bool", "bool")))


def tidy(text):
    """Returns a C type in the usual notation: `const float *`."""
    text = re.sub(r"\s*\*\s*", " *", text.replace("_Bool", "bool")).replace("* *", "**")
    while "* *" in text:
        text = text.replace("* *", "**")
    return re.sub(r"\*(?=[A-Za-z])", "* ", text).strip().replace("* const", "*const")


def read_types(data, position, count):
    """Yields (size, alignment, kind, the compiler's name) of the type of each parameter."""
    for i in range(count):
        size, alignment, kind, said = TYPE.unpack_from(data, position + i * TYPE.size)
        found = re.search(r"\[(?:with )?T = (.*?)\]$", text_of(said))
        said = found.group(1) if found else ""
        for gcc, usual in GCC_TYPES:
            said = re.sub(r"\b%s\b" % gcc, usual, said)
        yield size, alignment, kind, said


def read_note(data, position, known, symbol=""):
    magic, size, line, count, name, file, parameters = HEAD.unpack_from(data, position)
    if magic != MAGIC:
        raise ValueError("a note begins with 0x%x" % magic)
    name = text_of(name)
    kernel = Kernel(name, [], text_of(file), line, symbol or name)

    def refuse(number, written, why):
        text = 'kernel "%s", parameter %d (%s): %s' % (kernel.name, number, written, why)
        return RillccError(text, kernel.file, kernel.line)

    if not kernel.name:
        raise RillccError("RILL_KERNEL needs a name", kernel.file, kernel.line)
    written = text_of(parameters).strip()
    if len(written) >= PARAMETERS - 1:
        raise RillccError('kernel "%s": its parameters have more than %d characters' % (kernel.name, PARAMETERS), kernel.file, line)
    parts = [] if written in ("", "void") else split_commas(written)
    if symbol:
        parts = known.names_of(kernel, count) or [""] * count
    if len(parts) != count:
        raise ValueError("%d parameters of kernel %s, not %d: %s" % (count, kernel.name, len(parts), written))
    for i, note in enumerate(read_types(data, position + HEAD.size, count)):
        kernel.parameters.append(read_parameter(i + 1, parts[i] or note[3], note, known, refuse))
    names = [parameter.name for parameter in kernel.parameters]
    for other in names:
        if names.count(other) > 1:
            text = 'kernel "%s" has two parameters named "%s"' % (kernel.name, other)
            raise RillccError(text, kernel.file, kernel.line)
    return kernel, position + size


def pointers(elf, number):
    """Returns the symbol to which each relocated word of a section points, by the word's offset."""
    found = {}
    for section in elf.sections:
        if section[1] != SHT_RELA or section[7] != number or section[6] >= len(elf.sections):
            continue
        symbols = list(elf.sized_symbols(elf.sections[section[6]]))
        places = {(index, value): name for name, info, _, index, value, _ in symbols if info & 15 == 2}
        for offset, info, addend in struct.iter_unpack("<QQq", trim(elf.content(section), 24)):
            name, kind, _, index, value, _ = symbols[info >> 32]
            found[offset] = places.get((index, value + addend), "") if kind & 15 == 3 else name
    return found


def plain_kernels(elf):
    """Returns the symbols of the functions in the section of __global__, without those of RILL_KERNEL_INSTANCE."""
    found = []
    for table in (section for section in elf.sections if section[1] == SHT_SYMTAB):
        for name, info, _, index, _ in elf.symbols(table):
            if info & 15 == 2 and index < len(elf.sections) and elf.name_of(elf.sections[index]) == "rill_global":
                found.append(name)
    return found


def read(path, source, known):
    """Reads an object file."""
    with open(path, "rb") as file:
        elf = Elf(file.read())
    unit = Unit()
    try:
        for number, section in enumerate(elf.sections):
            if elf.name_of(section) == "rill_functions":
                unit.asked = [symbol for _, symbol in sorted(pointers(elf, number).items())]
            if elf.name_of(section) != "rill_notes":
                continue
            data, symbols, position = elf.content(section), pointers(elf, number), 0
            while position + HEAD.size <= len(data):
                size = HEAD.unpack_from(data, position)[1]
                symbol = symbols.get(position + size - 8, "")
                kernel, position = read_note(data, position, known, symbol)
                unit.kernels.append(kernel)
    except (ValueError, struct.error) as error:
        raise RillccError("the notes on kernels from the host compiler cannot be read: %s" % error, source) from error
    registered = {kernel.symbol for kernel in unit.kernels}
    unit.plain = [name for name in plain_kernels(elf) if name not in registered and not is_instance(name)]
    return unit
