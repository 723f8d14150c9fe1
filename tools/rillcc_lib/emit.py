"""Writes what rillcc makes: the C file with the images, its header, and the dependency file."""

import os
import re
import struct
import textwrap

COLUMNS = 110
WORDS_PER_LINE = 5


class Names:
    """The names of one bundle: from the file's stem, with the prefix that the user gave."""

    def __init__(self, source, prefix):
        self.source = os.path.basename(source)
        stem = self.source.split(".")[0]
        self.stem = re.sub(r"\W", "_", stem, flags=re.ASCII)
        if not self.stem or self.stem[0].isdigit():
            self.stem = "_" + self.stem
        self.prefix = prefix

    def bundle(self):
        return "%s%s_bundle" % (self.prefix, self.stem)

    def ref(self, kernel):
        return "rill_ref_%s%s" % (self.prefix, kernel.name)  # reduce_ref would be a name that programs have

    def launch(self, kernel):
        return "%s%s_launch" % (self.prefix, kernel.name)

    def guard(self):
        return "RILL_BUNDLE_%s%s_H" % (self.prefix.upper(), self.stem.upper())


def declare(parameter):
    """A parameter of a launch function: of a type that has no name in C, a pointer to one."""
    if not parameter.type:
        return "const void *" + parameter.name
    space = "" if parameter.type.endswith("*") else " "
    return parameter.type + space + parameter.name


def member(parameter):
    if not parameter.type:
        return "_Alignas(%d) unsigned char %s[%d]" % (parameter.alignment, parameter.name, parameter.size)
    return declare(parameter)


def size(parameter):
    return "sizeof(%s)" % parameter.type if parameter.type else "%d" % parameter.size


def includes(headers):
    return "".join('#include "%s"\n' % header for header in headers)


def image_array(name, data):
    """The bytes as 64-bit numbers: many times faster to compile than as single bytes."""
    padded = data + b"\0" * (-len(data) % 8)
    words = ["0x%x" % word for (word,) in struct.iter_unpack("<Q", padded)]
    lines = [",".join(words[i : i + WORDS_PER_LINE]) for i in range(0, len(words), WORDS_PER_LINE)]
    return "static _Alignas(16) const uint64_t %s[%d] = {\n%s\n};\n" % (name, len(words), ",\n".join(lines))


def c_file(names, kernels, images, type_headers):
    out = ["/* Made by rillcc from %s. */\n#include <rill/bundle.h>\n%s" % (names.source, includes(type_headers))]
    out.append(
        "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
        '#error "the images below are written for a little-endian machine"\n'
        "#endif\n"
    )
    out.append("extern const rill_bundle %s;" % names.bundle())
    out.extend("extern rill_kernel_ref %s;" % names.ref(kernel) for kernel in kernels)
    out.append("")
    rows = []
    for i, image in enumerate(images):
        out.append("/* %s, %d bytes */" % (image.label, len(image.data)))
        out.append(image_array("image_%d" % i, image.data))
        rows.append('  { "%s", "%s", image_%d, %d },' % (image.backend, image.target, i, len(image.data)))
    out.append("static const rill_bundle_image images[] = {\n%s\n};\n" % "\n".join(rows))
    rows = []
    for i, kernel in enumerate(kernels):
        if kernel.parameters:
            members = " ".join(member(p) + ";" for p in kernel.parameters)
            out.append("struct layout_%d { %s };" % (i, members))
            row = '  { "%s", (uint32_t)%s, (uint32_t)offsetof(struct layout_%d, %s) },'
            args = [row % (p.name, size(p), i, p.name) for p in kernel.parameters]
            out.append("static const rill_bundle_arg args_%d[] = {\n%s\n};\n" % (i, "\n".join(args)))
        pointer = "args_%d" % i if kernel.parameters else "NULL"
        rows.append('  { "%s", %s, %d },' % (kernel.symbol, pointer, len(kernel.parameters)))
    out.append("static const rill_bundle_kernel kernels[] = {\n%s\n};\n" % "\n".join(rows))
    out.append(
        "const rill_bundle %s = {\n  RILL_BUNDLE_MAGIC, RILL_BUNDLE_VERSION, \"%s\", images, %d, kernels, %d\n};\n"
        % (names.bundle(), names.stem, len(images), len(kernels))
    )
    for kernel in kernels:
        out.append(
            'rill_kernel_ref %s = { &%s, "%s", { 0, 0 } };' % (names.ref(kernel), names.bundle(), kernel.symbol)
        )
    return "\n".join(out) + "\n"


def launch_function(names, kernel):
    taken = {parameter.name for parameter in kernel.parameters}

    def free(name):
        while name in taken:
            name += "_"
        return name

    stream, launch, args = free("stream"), free("launch"), free("args")
    parameters = ["rill_stream " + stream, "const rill_launch *" + launch] + [declare(p) for p in kernel.parameters]
    start = "RILL_NODISCARD static inline rill_status %s(" % names.launch(kernel)
    text = ", ".join(p.replace(" ", "\0") for p in parameters)
    lines = textwrap.wrap(text, max(COLUMNS - len(start) - 3, 1), break_long_words=False, break_on_hyphens=False)
    said = "Launches `%s`, with arguments that the compiler checks; errors as of rill_stream_launch_ref." % kernel.name
    opaque = [p for p in kernel.parameters if not p.type]
    said += "".join("\n *  `%s` points to a value of %d bytes, a `%s`." % (p.name, p.size, p.said) for p in opaque)
    out = [
        "/** %s */" % said,
        start + ("\n" + " " * len(start)).join(lines).replace("\0", " ") + ") {",
    ]
    if kernel.parameters:
        each = ("{ &%s, sizeof %s }" % (p.name, p.name) if p.type else "{ %s, %d }" % (p.name, p.size) for p in kernel.parameters)
        values = ",\n".join("    " + text for text in each)
        out.append("  const rill_arg %s[] = {\n%s\n  };" % (args, values))
    pointer = args if kernel.parameters else "NULL"
    call = (stream, names.ref(kernel), launch, pointer, len(kernel.parameters))
    out.append("  return rill_stream_launch_typed(%s, &%s, %s, %s, %d, __func__);" % call)
    out.append("}\n")
    return "\n".join(out)


def header(names, kernels, type_headers, tags):
    out = [
        "/* Made by rillcc from %s. */" % names.source,
        "#ifndef %s\n#define %s\n" % (names.guard(), names.guard()),
        "#include <rill/kernel.h>\n%s" % includes(type_headers),
        "RILL_EXTERN_C_BEGIN\n",
        *("%s;" % tag for tag in tags),
        *([""] if tags else []),
        "extern const rill_bundle %s;" % names.bundle(),
    ]
    out.extend("extern rill_kernel_ref %s;" % names.ref(kernel) for kernel in kernels)
    out.append("")
    out.extend(launch_function(names, kernel) for kernel in kernels)
    out.append("RILL_EXTERN_C_END\n\n#endif")
    return "\n".join(out) + "\n"


def depfile(outputs, dependencies):
    def escape(path):
        return re.sub(r"([ #\\])", r"\\\1", path).replace("$", "$$")

    lines = [" ".join(escape(path) for path in outputs) + ":"]
    lines.extend(escape(path) for path in sorted(dependencies))
    return " \\\n  ".join(lines) + "\n"
