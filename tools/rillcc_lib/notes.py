"""Reads what a source holds from an object that the host compiler made of it with RILL_NOTES: the kernels, and their
parameters by the compiler's own word (rill/device/host_kernels.h)."""

import re
import struct
from dataclasses import dataclass, field

from .errors import RillccError
from .listing import Elf

MAGIC = 0x45544F4E
TEXT, PARAMETERS = 512, 4096
HEAD = struct.Struct("<4I%ds%ds%ds" % (TEXT, TEXT, PARAMETERS))
TYPE = struct.Struct("<2I%ds" % TEXT)
PLAIN, CLASS, ENUM, REFUSED = range(4)

# The types that a C program knows by these names.
C_TYPES = set("void char short int long float double signed unsigned bool".split())
C_TYPES |= set("size_t ptrdiff_t intptr_t uintptr_t const volatile".split())
C_TYPES |= {"%sint%d_t" % (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
# Types of rill's own, and the header that has them for C programs.
OWN_TYPES = {"rill_half": "rill/device/half.h", "rill_bfloat16": "rill/device/half.h"}
C_TYPES |= OWN_TYPES.keys()


@dataclass
class Parameter:
    name: str
    type: str  # for a C program


@dataclass
class Kernel:
    name: str
    parameters: list
    file: str
    line: int


@dataclass
class Unit:
    """What one source holds."""

    kernels: list = field(default_factory=list)

    def type_headers(self):
        """Gives the headers of rill that declare types which the kernels take."""
        words = {word for kernel in self.kernels for p in kernel.parameters for word in re.findall(r"\w+", p.type)}
        return sorted({OWN_TYPES[word] for word in words & OWN_TYPES.keys()})


def text_of(data):
    return data.split(b"\0")[0].decode("utf-8", "replace")


def split_commas(text):
    """The parts of a list between its commas, but for those inside brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def read_parameter(number, written, kind, said, type_headers, refuse):
    """One parameter: as it is written, and the type that the compiler says it has."""
    found = re.fullmatch(r"(.*?)\b([A-Za-z_]\w*)\s*((?:\[[^]]*\])*)", written, re.DOTALL)
    source = " ".join(re.sub(r"\b__restrict(?:__)?\b|\b__grid_constant__\b", " ", found.group(1) if found else "").split())
    if found and (found.group(2) in C_TYPES or not source):
        found, source = None, ""  # only a type
    name = found.group(2) if found else "arg%d" % number
    if "=" in written:
        raise refuse(number, written, "a kernel parameter has no default value")
    if not said:
        raise refuse(number, written, "its type cannot be read")
    if kind == REFUSED:
        why = "a kernel cannot take a reference; take a value or a pointer" if "&" in said else "it is no plain value"
        raise refuse(number, written, why)
    if "long double" in said:
        raise refuse(number, written, "GPUs have no long double")
    if found and not found.group(3) and source and words_of(source) <= C_TYPES:
        return Parameter(name, tidy(source))
    if words_of(said) <= C_TYPES:
        return Parameter(name, tidy(said))
    if type_headers and source and not found.group(3):
        return Parameter(name, tidy(source))
    raise refuse(
        number,
        written,
        '"%s" is not a C type that rillcc knows; use one, or name the C header that declares it: --include HEADER' % said,
    )


# What GCC calls the types of C, and what everybody else does.
GCC_TYPES = (("long long unsigned int", "unsigned long long"), ("long unsigned int", "unsigned long"))
GCC_TYPES += (("short unsigned int", "unsigned short"), ("long long int", "long long"), ("long int", "long"))
GCC_TYPES += (("short int", "short"),)


def words_of(text):
    return set(re.findall(r"\w+|::|[<>(]", text.replace("_Bool", "bool")))


def tidy(text):
    """A C type as people write it: `const float *`."""
    text = re.sub(r"\s*\*\s*", " *", text.replace("_Bool", "bool")).replace("* *", "**")
    while "* *" in text:
        text = text.replace("* *", "**")
    return re.sub(r"\*(?=[A-Za-z])", "* ", text).strip().replace("* const", "*const")


def read_note(data, position, type_headers):
    magic, size, line, count, name, file, parameters = HEAD.unpack_from(data, position)
    if magic != MAGIC:
        raise ValueError("a note begins with 0x%x" % magic)
    kernel = Kernel(text_of(name), [], text_of(file), line)

    def refuse(number, written, why):
        text = 'kernel "%s", parameter %d (%s): %s' % (kernel.name, number, written, why)
        return RillccError(text, kernel.file, kernel.line)

    if not kernel.name:
        raise RillccError("RILL_KERNEL needs a name", kernel.file, kernel.line)
    written = text_of(parameters).strip()
    if len(written) >= PARAMETERS - 1:
        raise RillccError('kernel "%s": more than %d letters of parameters' % (kernel.name, PARAMETERS), kernel.file, line)
    parts = [] if written in ("", "void") else split_commas(written)
    if len(parts) != count:
        raise ValueError("%d parameters of kernel %s, not %d: %s" % (count, kernel.name, len(parts), written))
    for i, part in enumerate(parts):
        _, kind, said = TYPE.unpack_from(data, position + HEAD.size + i * TYPE.size)
        found = re.search(r"\[(?:with )?T = (.*?)\]$", text_of(said))
        said = found.group(1) if found else ""
        for gcc, usual in GCC_TYPES:
            said = re.sub(r"\b%s\b" % gcc, usual, said)
        kernel.parameters.append(read_parameter(i + 1, part, kind, said, type_headers, refuse))
    names = [parameter.name for parameter in kernel.parameters]
    for other in names:
        if names.count(other) > 1:
            text = 'kernel "%s" has two parameters named "%s"' % (kernel.name, other)
            raise RillccError(text, kernel.file, kernel.line)
    return kernel, position + size


def read(path, source, type_headers):
    """Reads an object file."""
    with open(path, "rb") as file:
        elf = Elf(file.read())
    unit = Unit()
    try:
        for data in elf.contents("rill_notes"):
            position = 0
            while position + HEAD.size <= len(data):
                kernel, position = read_note(data, position, type_headers)
                unit.kernels.append(kernel)
    except (ValueError, struct.error) as error:
        raise RillccError("what the host compiler wrote of the kernels cannot be read: %s" % error, source) from error
    if not unit.kernels:
        raise RillccError("no kernel in it: RILL_KERNEL(name, parameters) { ... }", source)
    return unit
