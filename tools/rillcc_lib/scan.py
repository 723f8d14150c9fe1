"""Reads kernels, their parameters, device variables and the use of barriers from a preprocessed source.

The source was preprocessed by the host compiler with RILL_SCAN, so macros and #if are gone and the words of the
kernel dialect are still there.  This is not a C++ parser: it follows braces and parentheses, and leaves the
rest to the compilers, which check what it read (rill/device/host_image.h).
"""

import re
from dataclasses import dataclass, field

from .errors import RillccError

# A kernel has no barrier only if neither it nor any function of the source mentions one of these.
# Whatever device function of rill may call a service for threads on fibers belongs here.
BARRIER = re.compile(
    r"__syncthreads(?:_count|_and|_or)?|rill_services|rill_cpu_\w+"
    r"|rill_(?:lane|shuffle(?:_up|_down|_xor|_from_)?|vote_all|vote_any|ballot|warp_sync|exchange)"
)
INDEX = {"threadIdx", "blockIdx", "blockDim", "gridDim", "RILL_DYNAMIC_SHARED", "rill_dynamic_shared"}
# What assert becomes: a function that tells the index of the thread, wherever it is called.
ASSERT = "__assert_fail"

TOKEN = re.compile(
    r"""(?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\([\s\S]*?\)(?P=delimiter)")
      | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
      | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
      | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[\w.])*)
      | (?P<word>[A-Za-z_$][\w$]*)
      | (?P<pragma>^[ \t]*\#[^\n]*)
      | (?P<newline>\n)
      | (?P<space>[^\S\n]+)
      | (?P<mark>::|\.\.\.|<<=|>>=|->\*?|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^<>=!]=|.)""",
    re.VERBOSE | re.MULTILINE,
)
MACRO = re.compile(r"[ \t]*#[ \t]*(define|undef)[ \t]+(\w+)(\([^)]*\))?[ \t]*(.*)")
LINE_MARKER = re.compile(r'^#(?:line)? (\d+) "((?:\\.|[^"\\])*)"([ \d]*)\n?', re.MULTILINE)

QUALIFIERS = {"const", "volatile", "struct", "enum"}
DROPPED = {"__restrict__", "__restrict", "__grid_constant__"}
BASIC_TYPES = set("void char short int long float double signed unsigned bool _Bool".split())
BASIC_TYPES |= set("size_t ptrdiff_t intptr_t uintptr_t".split())
BASIC_TYPES |= {"%sint%d_t" % (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
# Types of rill's own, and the header that has them for C programs.
OWN_TYPES = {"rill_half": "rill/device/half.h", "rill_bfloat16": "rill/device/half.h"}
BASIC_TYPES |= OWN_TYPES.keys()


@dataclass
class Token:
    text: str
    kind: str
    file: str
    line: int
    pragmas: list = field(default_factory=list)  # before it
    is_macro: bool = False  # it has been expanded, and would be expanded again

    def is_word(self):
        return self.kind == "word"


@dataclass
class Parameter:
    name: str
    type: str


@dataclass
class Kernel:
    name: str
    parameters: list
    has_barrier: bool
    file: str
    line: int
    body: list = field(default_factory=list)  # tokens, the braces among them


@dataclass
class Unit:
    """What one source holds."""

    kernels: list = field(default_factory=list)
    variables: list = field(default_factory=list)
    helpers_have_barrier: bool = False
    helpers_read_index: bool = False
    constants: set = field(default_factory=set)  # names of constant expressions

    def type_headers(self):
        """Gives the headers of rill that declare types which the kernels take."""
        words = {word for kernel in self.kernels for p in kernel.parameters for word in re.findall(r"\w+", p.type)}
        return sorted({OWN_TYPES[word] for word in words & OWN_TYPES.keys()})


def error_at(token, message):
    return RillccError(message, token.file, token.line)


MACRO_LINE = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)\b.*", re.MULTILINE)


def note_macro(line, macros):
    """Keeps `macros` what is defined, but for macros that expand to themselves; false for other lines."""
    match = MACRO.match(line)
    if not match:
        return False
    kind, name, parameters, body = match.groups()
    itself = name if not parameters else "%s(%s)" % (name, parameters[1:-1].replace("...", "__VA_ARGS__"))
    if kind == "define" and body.strip() != itself:
        macros.add(name)
    else:
        macros.discard(name)
    return True


def tokenize(text):
    """Gives the tokens of the user's files, and whether a system header mentions a barrier.

    Nothing else is looked for in system headers: they are long."""
    system_has_barrier = False
    own_files = set()
    tokens = []
    macros = set()
    pragmas = []
    file, line, position = "<source>", 1, 0
    system = False
    while position <= len(text):
        marker = LINE_MARKER.search(text, position)
        end = marker.start() if marker else len(text)
        chunk = text[position:end]
        if system:
            system_has_barrier = system_has_barrier or BARRIER.search(re.sub(r"(?m)^#.*", "", chunk)) is not None
            for match in MACRO_LINE.finditer(chunk):
                note_macro(match.group(), macros)
        else:
            at = line
            for match in TOKEN.finditer(chunk):
                kind = match.lastgroup if match.lastgroup != "delimiter" else "raw"
                if kind == "newline":
                    at += 1
                elif kind == "pragma":
                    if not note_macro(match.group(), macros):
                        pragmas.append(match.group())
                elif kind != "space":
                    tokens.append(Token(match.group(), kind, file, at, pragmas, match.group() in macros))
                    pragmas = []
                    at += match.group().count("\n")
        if not marker:
            break
        line, file = int(marker.group(1)), re.sub(r"\\(.)", r"\1", marker.group(2))
        flagged = "3" in marker.group(3).split()
        # A system header's macro used in a user's file is flagged too: that is still the user's text.
        if not flagged:
            own_files.add(file)
        system = flagged and file not in own_files
        position = marker.end()
    return tokens, system_has_barrier


def find_close(tokens, start, opening, closing):
    """Gives the index of what closes tokens[start]."""
    depth = 0
    for i in range(start, len(tokens)):
        if tokens[i].text == opening:
            depth += 1
        elif tokens[i].text == closing:
            depth -= 1
            if depth == 0:
                return i
    raise error_at(tokens[start], "this %s is never closed" % opening)


def split_commas(tokens):
    parts, part, depth = [], [], 0
    for token in tokens:
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
        if token.text == "," and depth == 0:
            parts.append(part)
            part = []
        else:
            part.append(token)
    if part or parts:
        parts.append(part)
    return parts


def read_parameter(tokens, index, kernel, extra_types):
    """Reads one parameter; its type must be one that a C program can pass."""

    def refuse(why):
        where = tokens[0] if tokens else kernel
        text = " ".join(token.text for token in tokens)
        return error_at(where, 'kernel "%s", parameter %d (%s): %s' % (kernel.text, index, text, why))

    if not tokens:
        raise refuse("empty")
    kept = [token for token in tokens if token.text not in DROPPED]
    for token in kept:
        if token.text == "&":
            raise refuse("a kernel cannot take a reference; take a value or a pointer")
        if token.text == "[":
            raise refuse("write an array parameter as a pointer")
        if token.text == "=":
            raise refuse("a kernel parameter has no default value")
        if token.text != "*" and not token.is_word():
            raise refuse("not a C type; C programs launch kernels, so use a C type")
    words = [token.text for token in kept if token.is_word()]
    if not kept or not kept[-1].is_word() or kept[-1].text in BASIC_TYPES | QUALIFIERS:
        raise refuse("it needs a name")
    types = [word for word in words[:-1] if word not in QUALIFIERS]
    if not types:
        raise refuse("it needs a type and a name")
    unknown = [word for word in types if word not in BASIC_TYPES]
    if unknown and (not extra_types or len(types) > 1):
        raise refuse(
            '"%s" is not a C type that rillcc knows; use one, or name the C header that declares it: --include HEADER'
            % unknown[0]
        )
    if types.count("long") and "double" in types:
        raise refuse("GPUs have no long double")
    stars = [token.text for token in kept].count("*")
    if types == ["void"] and stars == 0:
        raise refuse("void is not a value")
    text = ""
    for token in kept[:-1]:
        word = "bool" if token.text == "_Bool" else token.text
        text += word if not text or (word == "*" and text.endswith("*")) else " " + word
    return Parameter(kept[-1].text, text)


def read_kernel(tokens, start, extra_types):
    """Reads the kernel at tokens[start]; gives it and the index after its body."""
    macro = tokens[start]
    if start + 1 >= len(tokens) or tokens[start + 1].text != "(":
        raise error_at(macro, "%s needs a name and parameters in parentheses" % macro.text)
    close = find_close(tokens, start + 1, "(", ")")
    parts = split_commas(tokens[start + 2 : close])
    if macro.text == "RILL_KERNEL_BOUNDED":
        parts = parts[1:]
    if not parts or len(parts[0]) != 1 or not parts[0][0].is_word():
        raise error_at(macro, "%s needs a name" % macro.text)
    name, rest = parts[0][0], parts[1:]
    if len(rest) == 1 and [token.text for token in rest[0]] in ([], ["void"]):
        rest = []
    parameters = [read_parameter(part, i, name, extra_types) for i, part in enumerate(rest)]
    names = [parameter.name for parameter in parameters]
    for other in names:
        if names.count(other) > 1:
            raise error_at(name, 'kernel "%s" has two parameters named "%s"' % (name.text, other))
    if close + 1 >= len(tokens) or tokens[close + 1].text != "{":
        raise error_at(name, 'kernel "%s" needs its body here: RILL_KERNEL(name, parameters) { ... }' % name.text)
    end = find_close(tokens, close + 1, "{", "}")
    body = tokens[close + 1 : end + 1]
    for token in body:
        if token.text in ("RILL_KERNEL", "RILL_KERNEL_BOUNDED"):
            raise error_at(token, "a kernel inside a kernel")
    check_shared(body)
    has_barrier = any(BARRIER.fullmatch(token.text) for token in body if token.is_word())
    return Kernel(name.text, parameters, has_barrier, name.file, name.line, body), end + 1


def check_shared(tokens):
    for i, token in enumerate(tokens):
        if token.text == "extern" and i + 1 < len(tokens) and tokens[i + 1].text == "__shared__":
            raise error_at(token, "write dynamic shared memory as RILL_DYNAMIC_SHARED(type, name);")


def read_variable(statement):
    """Gives the name of the device variable that a namespace-scope declaration declares, or None.

    Only what a host can find by name on every device: not static, not const, outside namespaces."""
    words = {token.text for token in statement}
    if not words & {"__constant__", "__device__"}:
        return None
    if words & {"static", "const", "constexpr", "extern", "template", "typedef", "using", "operator"}:
        return None
    declarator = []
    i = 0
    while i < len(statement):
        token = statement[i]
        if token.text in ("__align__", "alignas", "__attribute__") and i + 1 < len(statement):
            i = find_close(statement, i + 1, "(", ")") + 1
            continue
        if token.text == "(":
            return None  # a function
        if token.text == "{" and any(t.text in ("struct", "class", "union", "enum") for t in declarator[-2:]):
            i = find_close(statement, i, "{", "}") + 1
            continue
        if token.text in ("[", "=", "{", ","):
            break
        declarator.append(token)
        i += 1
    if not declarator or not declarator[-1].is_word():
        return None
    if len(split_commas(statement[i:])) > 1:
        raise error_at(declarator[-1], "declare one device variable at a time")
    return declarator[-1].text


def opens_linkage(tokens, i):
    """Whether tokens[i] is the brace of `extern "C" {`, which encloses nothing."""
    return i >= 2 and tokens[i - 1].kind == "string" and tokens[i - 2].text == "extern"


def take_kernels(tokens, unit, extra_types):
    """Reads the kernels into `unit`; gives the tokens outside them."""
    rest = []
    braces = []  # for each open one: whether it encloses something
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.text in ("RILL_KERNEL", "RILL_KERNEL_BOUNDED"):
            if any(braces):
                raise error_at(token, "%s stands outside namespaces, classes and functions" % token.text)
            if i > 0 and tokens[i - 1].text not in (";", "{", "}"):
                raise error_at(
                    token,
                    '%s begins a declaration, but "%s" is before it (for launch bounds: RILL_KERNEL_BOUNDED)'
                    % (token.text, tokens[i - 1].text),
                )
            kernel, i = read_kernel(tokens, i, extra_types)
            for other in unit.kernels:
                if other.name == kernel.name:
                    first = "%s:%d" % (other.file, other.line)
                    raise RillccError(
                        'a second kernel "%s"; the first is at %s' % (kernel.name, first), kernel.file, kernel.line
                    )
            unit.kernels.append(kernel)
            continue
        if token.text == "{":
            braces.append(not opens_linkage(tokens, i))
        elif token.text == "}":
            if not braces:
                raise error_at(token, "this } closes nothing")
            braces.pop()
        rest.append(token)
        i += 1
    return rest


def read_variables(tokens):
    names = []
    statement = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.text == "{" and opens_linkage(tokens, i):
            statement = []
        elif token.text == "{":
            end = find_close(tokens, i, "{", "}")
            # The braces of an initializer belong to the declaration; those of a function or a class end it.
            is_initializer = read_variable(statement) is not None
            statement = statement + tokens[i : end + 1] if is_initializer else []
            i = end
        elif token.text == ";":
            name = read_variable(statement)
            if name:
                names.append(name)
            statement = []
        elif token.text != "}":
            statement.append(token)
        i += 1
    return names


def read_constants(tokens):
    """Names that stand for a constant expression wherever they are visible: constexpr variables, enumerators."""
    names = set()
    statement = []
    for i, token in enumerate(tokens):
        if token.text == "enum":
            opening = next((j for j in range(i, len(tokens)) if tokens[j].text in ("{", ";")), len(tokens))
            if opening < len(tokens) and tokens[opening].text == "{":
                close = find_close(tokens, opening, "{", "}")
                names |= {part[0].text for part in split_commas(tokens[opening + 1 : close]) if part}
        if token.text in (";", "{", "}"):
            statement = []
            continue
        if token.text == "=" and statement and statement[-1].is_word():
            if any(word.text == "constexpr" for word in statement):
                names.add(statement[-1].text)
        statement.append(token)
    return names


def read_unit(text, source, extra_types=False):
    """Reads all of a preprocessed source."""
    unit = Unit()
    tokens, unit.helpers_have_barrier = tokenize(text)
    rest = take_kernels(tokens, unit, extra_types)
    if not unit.kernels:
        raise RillccError("no kernel in it: write RILL_KERNEL(name, parameters) { ... }", source)
    check_shared(rest)
    for token in rest:
        if BARRIER.fullmatch(token.text):
            unit.helpers_have_barrier = True
        elif token.text in INDEX:
            unit.helpers_read_index = True
        elif token.text == "__global__":
            raise error_at(token, "write a kernel as RILL_KERNEL(name, parameters) { ... }, not with __global__")
    unit.helpers_read_index |= any(token.text == ASSERT for token in tokens)
    if unit.helpers_have_barrier:
        for kernel in unit.kernels:
            kernel.has_barrier = True
    unit.variables = read_variables(rest)
    unit.constants = read_constants(rest)
    return unit
