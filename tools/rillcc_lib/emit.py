"""Writes the output of rillcc: the C file with the images, its header, and the dependency file."""

import dataclasses
import itertools
import os
import re
import struct
import textwrap

from . import instances, notes, templates

COLUMNS = 110
WORDS_PER_LINE = 5
LOCALS = ("stream", "launch", "args")


class Names:
    """The names of one bundle, made from the stem of the file and the user's prefix."""

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
        return "rill_ref_%s%s" % (self.prefix, kernel.name)  # programs may themselves have a name such as reduce_ref

    def launch(self, kernel):
        return "%s%s_launch" % (self.prefix, kernel.name)

    def guard(self):
        return "RILL_BUNDLE_%s%s_H" % (self.prefix.upper(), self.stem.upper())


def declare(parameter):
    """Returns a parameter of a launch function. If the type has no name in C, the parameter is a pointer to the value."""
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
    """Returns the bytes as 64-bit numbers, which compile many times faster than single bytes."""
    padded = data + b"\0" * (-len(data) % 8)
    words = ["0x%x" % word for (word,) in struct.iter_unpack("<Q", padded)]
    lines = [",".join(words[i : i + WORDS_PER_LINE]) for i in range(0, len(words), WORDS_PER_LINE)]
    return "static _Alignas(16) const uint64_t %s[%d] = {\n%s\n};\n" % (name, len(words), ",\n".join(lines))


def reads(parameter):
    """Returns the flag for a pointer to a const type, through which a kernel does not write."""
    found = re.fullmatch(r"const [^*]+\*(?: ?(?:const|volatile|__restrict(?:__)?))*", parameter.said)
    return " | RILL_BUNDLE_ARG_READS" if found else ""


def c_file(names, unit, images, type_headers):
    kernels = unit.kernels
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
            row = '  { "%s", (uint32_t)%s, (uint32_t)offsetof(struct layout_%d, %s)%s },'
            args = [row % (p.name, size(p), i, p.name, reads(p)) for p in kernel.parameters]
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
    asked = [(symbol, kernel) for kernel in kernels for symbol in sorted(unit.functions.get(kernel.name, ()))]
    for i, (symbol, kernel) in enumerate(asked):
        out.append('\nrill_kernel_ref *instance_%d(void) __asm__("%s");' % (i, symbol))
        out.append("rill_kernel_ref *instance_%d(void) { return &%s; }" % (i, names.ref(kernel)))
    return "\n".join(out) + "\n"


def free_names(taken):
    """Returns names for the parameters that a launch function has in addition to the kernel's own."""
    return [next(text for text in (name + "_" * i for i in itertools.count()) if text not in taken) for name in LOCALS]


def wrapped(start, parameters):
    """Returns the head of a function, with its parameters wrapped and aligned."""
    text = ", ".join(p.replace(" ", "\0") for p in parameters)
    lines = textwrap.wrap(text, max(COLUMNS - len(start) - 3, 1), break_long_words=False, break_on_hyphens=False)
    return start + ("\n" + " " * len(start)).join(lines).replace("\0", " ") + ") {"


def launch_function(names, kernel):
    stream, launch, args = free_names({parameter.name for parameter in kernel.parameters})
    parameters = ["rill_stream " + stream, "const rill_launch *" + launch] + [declare(p) for p in kernel.parameters]
    start = "RILL_NODISCARD static inline rill_status %s(" % names.launch(kernel)
    said = "Launches `%s` with arguments that the compiler checks. Errors: see rill_stream_launch_ref." % kernel.name
    opaque = [p for p in kernel.parameters if not p.type]
    said += "".join("\n *  `%s` points to a value of %d bytes, a `%s`." % (p.name, p.size, p.said) for p in opaque)
    out = [
        "/** %s */" % said,
        wrapped(start, parameters),
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


# Kernel templates, for C++


def known_type(text, own, trusted):
    """Returns whether a program knows a type: a type of C or of rill, or a parameter of the template. With the user's
    own headers (`trusted`), every type is known."""
    return trusted or notes.words_of(text) <= notes.C_TYPES | own


def head_of(template, trusted):
    """Returns (parameters, "") for a template; default values that only its source knows are left out. Returns (None,
    reason) if the template cannot be declared."""
    own, head = set(), []
    for parameter in template.head:
        words = notes.words_of(parameter.kind) - {"class", "typename", "template", "auto", "<"}
        if not known_type(" ".join(words), own, trusted):
            return None, "%s %s has a type that no header declares here: name the header with --include" % (parameter.kind, parameter.name)
        known = re.fullmatch(r"-?\d\w*|true|false", parameter.default) or known_type(parameter.default, own, trusted)
        head.append(parameter if known else dataclasses.replace(parameter, default=""))
        own.add(parameter.name)
    return head, ""


def argument_of(written, number, template, trusted):
    """Returns (type, name, additional template parameter if only the launch knows the type, otherwise "")."""
    dots = "..." if "..." in written else ""
    text = re.sub(r"\b__restrict(?:__)?\b|\b__grid_constant__\b|\.\.\.", " ", written)
    own = {parameter.name for parameter in template.head}
    found = re.fullmatch(r"(.*[\s*&])([A-Za-z_]\w*)\s*((?:\[[^]]*\]\s*)*)", text, re.DOTALL)
    if not found or found.group(2) in notes.C_TYPES | own or notes.words_of(found.group(1)) <= {"const", "volatile"}:
        kind, name, array = text, "arg%d" % number, ""
    else:
        kind, name, array = found.groups()
    kind = notes.tidy(" ".join(kind.split())) + (" *" if array else "")
    if known_type(kind, own, trusted) and "(" not in kind and array.count("[") < 2:
        return kind + dots, name, ""
    if kind.endswith("*"):
        is_const = re.search(r"\bconst\b", kind.rpartition("*")[0])
        return "const void *" if is_const else "void *", name, ""
    return "const %s_type%s &" % (name, dots), name, "class%s %s_type" % (dots, name)


def template_function(names, template, type_headers):
    """Returns the launch function of a kernel template, in its namespaces."""
    head, why = head_of(template, bool(type_headers))
    if head is None:
        return "/* `%s`: no launch function, since %s. */\n" % (template.qualified(), why)
    arguments = [argument_of(a, i, template, bool(type_headers)) for i, a in enumerate(template.arguments, 1)]
    taken = {name for _, name, _ in arguments} | {parameter.name for parameter in head}
    stream, launch, args = free_names(taken)
    used = ", ".join(parameter.name + ("..." if parameter.is_pack else "") for parameter in head)
    more = [declared for _, _, declared in arguments if declared]
    declaration, end = instances.declaration(template, names.prefix)
    start = "RILL_NODISCARD inline rill_status %s%s_launch(" % (names.prefix, template.name)
    parameters = ["rill_stream " + stream, "const rill_launch *" + launch]
    parameters += [kind + ("" if kind.endswith(("*", "&")) else " ") + name for kind, name, _ in arguments]
    function = "%s%s%s<%s>()" % (instances.FUNCTION, names.prefix, template.name, used)
    said = "Launches `%s<%s>`." % (template.qualified(), used)
    if more:
        opaque = ", ".join("`%s`" % name for _, name, declared in arguments if declared)
        said += "  The size of %s is checked at the launch." % opaque
    out = [
        declaration,
        "/** %s */" % said,
        "template <%s>" % ", ".join([*map(templates.declared, head), *more]),
        wrapped(start, parameters),
    ]
    if arguments:
        each = ("{ &%s, sizeof %s }%s" % (name, name, "..." if "..." in kind else "") for kind, name, _ in arguments)
        out.append("  const rill_arg %s[] = {\n%s\n  };" % (args, ",\n".join("    " + text for text in each)))
    count = "sizeof %s / sizeof *%s" % (args, args) if arguments else "0"
    call = (stream, function, launch, args if arguments else "NULL", count)
    out.append("  return rill_stream_launch_typed(%s, %s, %s, %s, %s, __func__);\n}" % call)
    return "\n".join([*out, end] if end else out) + "\n"


def template_functions(names, found, type_headers):
    """Returns the launch functions of all templates. If several templates have one name, there is no launch function,
    because only a list can select one of them."""
    texts = []
    for name, several in sorted(found.items()):
        if len(several) == 1:
            texts.append(template_function(names, several[0], type_headers))
        else:
            texts.append("/* `%s`: no launch function, since there are %d templates of that name. */\n" % (name, len(several)))
    if not texts:
        return ""
    start = "\n#ifdef __cplusplus\n/* Templates: rillcc --instances-of compiles the instances that the objects of a program launch. */\n\n"
    return start + "\n".join(texts) + "#endif\n"


def header(names, unit, type_headers):
    kernels, tags = unit.kernels, unit.tags()
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
    out.append("RILL_EXTERN_C_END\n%s\n#endif" % template_functions(names, unit.templates, type_headers))
    return "\n".join(out) + "\n"


def depfile(outputs, dependencies):
    def escape(path):
        return re.sub(r"([ #\\])", r"\\\1", path).replace("$", "$$")

    lines = [" ".join(escape(path) for path in outputs) + ":"]
    lines.extend(escape(path) for path in sorted(dependencies))
    return " \\\n  ".join(lines) + "\n"
