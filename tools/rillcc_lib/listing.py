"""Lists the contents of a file: the bundles in the output of rillcc or in files built from it, or a bare image."""

import re
import struct
from dataclasses import dataclass, field

from . import offload
from .errors import RillccError

MAGIC, VERSION = 0x4C4C4952, 1
MOST = 4096  # images, kernels or arguments; if there are more, the data is not a bundle
TYPES = {"REL": 1, "EXEC": 2, "DYN": 3}
SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_DYNSYM = 2, 4, 8, 11
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
MACHINES = {62: "x86-64", 183: "aarch64", 190: "cuda", 224: "hip", 243: "riscv64", 21: "ppc64le"}
RELATIVE = {62: 8, 183: 1027, 243: 3, 21: 22}
ABSOLUTE = {62: 1, 183: 257, 243: 2, 21: 38}
BASIC_SIZES = {"bool": 1, "char": 1, "short": 2, "int": 4, "long": 8, "float": 4, "double": 8, "unsigned": 4, "signed": 4}
BASIC_SIZES.update({"size_t": 8, "ptrdiff_t": 8, "intptr_t": 8, "uintptr_t": 8})
BASIC_SIZES.update({"%sint%d_t" % (sign, bits): bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)})


@dataclass
class Listing:
    """The contents of one bundle or image."""

    name: str
    images: list = field(default_factory=list)  # (target, bytes)
    kernels: list = field(default_factory=list)  # (name, [(argument, size)]), or (name, None) if the image has no sizes

    def text(self):
        lines = ["%s: %s, %s" % (self.name, count(self.images, "image"), count(self.kernels, "kernel"))]
        width = max([len(target) for target, _ in self.images], default=0)
        lines += ["  %-*s  %d bytes" % (width, target, size) for target, size in self.images]
        for kernel, arguments in self.kernels:
            inside = "..." if arguments is None else ", ".join("%s: %s" % argument for argument in arguments)
            lines.append("  kernel %s(%s)" % (kernel, inside))
        return "\n".join(lines) + "\n"


def count(things, word):
    return "%d %s%s" % (len(things), word, "" if len(things) == 1 else "s")


# Output of rillcc


def size_of(text):
    """Returns the size in bytes of a C type, or "sizeof(type)" if only a compiler knows the size."""
    words = text.replace("*", " * ").split()
    if "*" in words:
        return 8
    words = [word for word in words if word not in ("const", "volatile")]
    if any(word not in BASIC_SIZES for word in words):
        return "sizeof(%s)" % text
    return next((BASIC_SIZES[word] for word in words if word not in ("unsigned", "signed")), 4)


def read_c_file(text):
    start = r'^const rill_bundle (\w+) = \{\s*RILL_BUNDLE_MAGIC, RILL_BUNDLE_VERSION, "\w+"'
    found = re.search(start, text, re.MULTILINE)
    if not found:
        return []
    listing = Listing(found.group(1))
    for backend, target, size in re.findall(r'^  \{ "(\w+)", "([^"]+)", image_\d+, (\d+) \},', text, re.MULTILINE):
        listing.images.append(("%s:%s" % (backend, target), int(size)))
    arguments = {}
    start = r"^static const rill_bundle_arg args_(\d+)\[\] = \{\n(.*?)^\};"
    for number, body in re.findall(start, text, re.MULTILINE | re.DOTALL):
        pairs = re.findall(r'\{ "(\w+)", \(uint32_t\)(?:sizeof\((.*?)\)|(\d+))(?: \}|, \(uint32_t\)offsetof)', body)
        arguments[number] = [(name, int(size) if size else size_of(kind)) for name, kind, size in pairs]
    for name, number in re.findall(r'^  \{ "(\w+)", (?:args_(\d+)|NULL), \d+ \},', text, re.MULTILINE):
        listing.kernels.append((name, arguments.get(number, [])))
    return [listing]


# ELF files


class Elf:
    """The sections of a 64-bit little-endian ELF file, at their addresses, with relocations applied."""

    def __init__(self, data):
        self.data = data
        if len(data) < 64 or data[4:6] != b"\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        self.type, self.machine = self.unpack("<HH", 16)
        self.flags = self.unpack("<I", 48)[0]
        segments, offset = self.unpack("<QQ", 32)
        if segments > len(data) or 56 * self.unpack("<H", 56)[0] > len(data) - segments:
            raise ValueError("truncated after %d bytes" % len(data))
        size, number, names = self.unpack("<HHH", 58)
        if number and size != 64:
            raise ValueError("section headers of %d bytes" % size)
        self.sections = [self.unpack("<IIQQQQIIQQ", offset + 64 * i) for i in range(number)]
        self.names = names
        self.bases = []
        self.memory = []
        base = 1 << 20
        for section in self.sections:
            _, kind, flags, address, start, length = section[:6]
            if kind != SHT_NOBITS and (start > len(data) or length > len(data) - start):
                raise ValueError("a section extends past the end")
            if self.type == TYPES["REL"]:
                address, base = base, base + (length + 8191) // 4096 * 4096
            self.bases.append(address)
            if flags & SHF_ALLOC and kind != SHT_NOBITS:
                self.memory.append((address, bytearray(data[start : start + length])))

    def unpack(self, form, at):
        if at + struct.calcsize(form) > len(self.data):
            raise ValueError("truncated after %d bytes" % len(self.data))
        return struct.unpack_from(form, self.data, at)

    def content(self, section):
        return b"" if section[1] == SHT_NOBITS else self.data[section[4] : section[4] + section[5]]

    def name_of(self, section):
        names = self.content(self.sections[self.names])
        return names[section[0] :].split(b"\0")[0].decode("utf-8", "replace")

    def contents(self, name):
        """Returns the bytes of each section of that name."""
        return [self.content(section) for section in self.sections if self.name_of(section) == name]

    def is_writable(self, index):
        return index < len(self.sections) and bool(self.sections[index][2] & SHF_WRITE)

    def sized_symbols(self, table):
        """Yields (name, info, other, section, value, size) of each symbol of a table."""
        strings = self.content(self.sections[table[6]]) if table[6] < len(self.sections) else b""
        for name, *rest in struct.iter_unpack("<IBBHQQ", trim(self.content(table), 24)):
            end = strings.find(b"\0", name)
            yield strings[name : max(end, name)].decode("utf-8", "replace"), *rest

    def symbols(self, table):
        """Yields (name, info, other, section, value) of each symbol of a table."""
        for symbol in self.sized_symbols(table):
            yield symbol[:5]

    def relocate(self):
        for section in self.sections:
            if section[1] != SHT_RELA:
                continue
            values = []
            if section[6] < len(self.sections):
                for _, _, _, index, value in self.symbols(self.sections[section[6]]):
                    inside = self.type == TYPES["REL"] and 0 < index < len(self.bases)
                    values.append(value + (self.bases[index] if inside else 0))
            base = self.bases[section[7]] if self.type == TYPES["REL"] and section[7] < len(self.bases) else 0
            for offset, info, addend in struct.iter_unpack("<QQq", trim(self.content(section), 24)):
                symbol, kind = info >> 32, info & 0xFFFFFFFF
                if kind == RELATIVE.get(self.machine):
                    self.write(base + offset, addend)
                elif kind == ABSOLUTE.get(self.machine) and symbol < len(values):
                    self.write(base + offset, values[symbol] + addend)

    def write(self, address, value):
        for start, content in self.memory:
            if start <= address <= start + len(content) - 8:
                struct.pack_into("<Q", content, address - start, value & (2**64 - 1))

    def read(self, form, address):
        for start, content in self.memory:
            if start <= address <= start + len(content) - struct.calcsize(form):
                return struct.unpack_from(form, content, address - start)
        raise ValueError("a pointer to an address outside all sections")

    def string(self, address):
        for start, content in self.memory:
            if start <= address < start + len(content):
                end = content.find(b"\0", address - start)
                return content[address - start : end].decode("utf-8", "replace")
        raise ValueError("a pointer to an address outside all sections")


def trim(data, size):
    return data[: len(data) // size * size]


def read_bundle(elf, address):
    _, _, name, images, image_count, kernels, kernel_count = elf.read("<IIQQQQQ", address)
    if max(image_count, kernel_count) > MOST:
        raise ValueError("more than %d images, kernels or arguments" % MOST)
    listing = Listing(elf.string(name) + "_bundle")
    for i in range(image_count):
        backend, target, _, size = elf.read("<QQQQ", images + 32 * i)
        listing.images.append(("%s:%s" % (elf.string(backend), elf.string(target)), size))
    for i in range(kernel_count):
        kernel, args, arg_count = elf.read("<QQI", kernels + 24 * i)
        if arg_count > MOST:
            raise ValueError("more than %d images, kernels or arguments" % MOST)
        pairs = [elf.read("<QI", args + 16 * k) for k in range(arg_count)]
        listing.kernels.append((elf.string(kernel), [(elf.string(argument), size) for argument, size in pairs]))
    return listing


def read_bundles(elf):
    elf.relocate()
    found = []
    mark = struct.pack("<II", MAGIC, VERSION)
    for start, content in elf.memory:
        at = content.find(mark)
        while at >= 0:
            if at % 8 == 0:
                try:
                    found.append(read_bundle(elf, start + at))
                except ValueError:
                    pass  # other data that begins like a bundle
            at = content.find(mark, at + 1)
    return found


# Bare images


def kernels_of(elf):
    names = []
    for section in elf.sections:
        if section[1] == (SHT_SYMTAB if elf.machine == 190 else SHT_DYNSYM):
            for name, info, other, index, _ in elf.symbols(section):
                if elf.machine == 190 and index and info & 15 == 2 and other & 0x10:
                    names.append((name, None))
                elif elf.machine == 224 and index and name.endswith(".kd"):
                    names.append((name[:-3], None))
    return names


def read_cubin(name, data, elf):
    number = elf.flags >> 8 & 0xFF if data[8] >= 8 else elf.flags & 0xFF
    return Listing(name, [("cuda:sm_%d" % number, len(data))], kernels_of(elf))


def read_code_object(name, data, elf, target=None):
    if target is None:
        found = re.search(rb"amdgcn-amd-amdhsa-[^-]*-(gfx[0-9a-z:+-]+)", data)
        target = found.group(1).decode() if found else "machine 0x%x" % (elf.flags & 0xFF)
    return Listing(name, [("hip:" + target, len(data))], kernels_of(elf))


def read_offload_bundle(name, data):
    merged = Listing(name)
    for target, part in offload.entries(data):
        one = read_code_object(name, part, Elf(part), target)
        merged.images += one.images
        merged.kernels += [kernel for kernel in one.kernels if kernel not in merged.kernels]
    return merged


def read_fatbin(name, data):
    merged = Listing(name)
    _, header, size = struct.unpack_from("<HHQ", data, 4) if len(data) >= 16 else (0, 0, 0)
    at, end = header, header + size
    if not 16 <= header <= len(data) or size > len(data) - header:
        raise ValueError("truncated after %d bytes" % len(data))
    while at < end:
        if end - at < 56:
            raise ValueError("an entry is truncated")
        kind, _, header, size, packed = struct.unpack_from("<HHIQI", data, at)
        number = struct.unpack_from("<I", data, at + 28)[0]
        if header < 56 or header + size > end - at:
            raise ValueError("an entry is truncated")
        if kind in (1, 2):
            note = ", compressed" if packed else ""
            merged.images.append(("cuda:%s_%d%s" % ("ptx" if kind == 1 else "sm", number, note), size))
        if kind == 2 and not packed:
            part = data[at + header : at + header + size]
            merged.kernels += [kernel for kernel in kernels_of(Elf(part)) if kernel not in merged.kernels]
        at += header + size
    return merged


def read_ptx(name, text):
    target = re.search(r"^\s*\.target\s+sm_(\w+)", text, re.MULTILINE)
    kernels = [(kernel, None) for kernel in re.findall(r"\.entry\s+([\w$%]+)", text)]
    return Listing(name, [("cuda:ptx_" + (target.group(1) if target else "?"), len(text))], kernels)


def read_elf(name, data):
    elf = Elf(data)
    if elf.machine == 190:
        return [read_cubin(name, data, elf)]
    if elf.machine == 224:
        return [read_code_object(name, data, elf)]
    found = read_bundles(elf)
    if not found and data[-8:] == b"RILLseal":
        target = data[-64:-24].split(b"\0")[0].decode("utf-8", "replace")
        found = [Listing(name, [("cpu:" + target, len(data))])]
    return found


def read(path):
    """Returns a Listing for each bundle or image in a file."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise RillccError("cannot read %s: %s" % (path, error.strerror)) from error
    try:
        if data.startswith(b"\x7fELF"):
            found = read_elf(path, data)
        elif data.startswith((offload.MAGIC, offload.COMPRESSED)):
            found = [read_offload_bundle(path, data)]
        elif data.startswith(struct.pack("<I", 0xBA55ED50)):
            found = [read_fatbin(path, data)]
        else:
            text = data.rstrip(b"\0").decode("utf-8", "replace")
            found = [read_ptx(path, text)] if re.search(r"^\s*\.version\s", text, re.MULTILINE) else read_c_file(text)
    except (ValueError, struct.error) as error:
        raise RillccError("it cannot be read: %s" % error, path) from error
    if not found:
        raise RillccError(
            "no bundle in it; --list reads a C file that rillcc wrote, an object, library or program with a bundle, or "
            "a cubin, fatbin, PTX, AMD code object or offload bundle",
            path,
        )
    return found
