"""Lists the launches with <<< >>> in a CUDA source as instances of kernel templates, in the format that --instances
reads.

The preprocessor expands macros and evaluates conditions first. If a launch depends on template parameters, or on a
variable of a function, no line of a list can express it, so it is listed in a comment.
"""

import os
import re
from dataclasses import dataclass, field
from typing import Optional

from . import templates
from .errors import RillccError
from .templates import closing_angle, joined, split

MISSING = re.compile(r"fatal error: '?([^'\n]+?)(?:' file not found|: No such file)")
FATAL = re.compile(r"fatal error: ")
MOST_MISSING = 200  # headers
OF_VALUES = {"decltype", "auto"}
NO_NAMES = set("sizeof alignof const volatile unsigned signed true false nullptr this typename template class".split())
NO_NAMES |= set("bool char short int long float double void static_cast reinterpret_cast const_cast struct".split())
STATEMENTS = {"else", "do", "return"}


@dataclass
class Scope:
    """The braces of a namespace, or of a class or function, whose names a list cannot use."""

    namespace: str = ""  # including the enclosing ones
    is_local: bool = False
    names: dict = field(default_factory=dict)  # the meaning of each: its tokens, or a text that says why it is unknown


@dataclass
class Launch:
    name: str
    arguments: Optional[list]  # the tokens between < and >, or None without these
    file: str
    line: int


def preprocess(toolchain):
    """Returns the text of the source after preprocessing. A missing header is replaced by an empty one."""
    # An #include of "../../common.h" must stay in rillcc's own folder.
    folder = toolchain.path("missing/1/2/3/4")
    os.makedirs(folder)
    flags = ["-x", "c++", *toolchain.common, *toolchain.instead_of_cuda(), "-DRILL_NOTES=1", "-w", "-I", folder, "-E"]
    for _ in range(MOST_MISSING):
        done = toolchain.execute([*toolchain.cxx, *flags, toolchain.source])
        name = MISSING.search(done.stderr)
        path = os.path.normpath(os.path.join(folder, name.group(1))) if name else ""
        if not path.startswith(toolchain.path("missing")) or os.path.exists(path):
            break
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8"):
            pass
    if FATAL.search(done.stderr) or not done.stdout:
        raise RillccError("%s cannot preprocess it:\n%s" % (os.path.basename(toolchain.cxx[0]), done.stderr.rstrip()), toolchain.source)
    return done.stdout


class Reader:
    """Scans the tokens of a source, and keeps track of what names mean."""

    def __init__(self, tokens, kernels):
        self.tokens = tokens
        self.kernels = kernels
        self.scopes = [Scope()]
        self.spaces = {"": self.scopes[0]}
        self.head = {}  # the parameters of the template whose body comes next
        self.start = 0  # of the current statement
        self.launches = []  # (place, line of a list or "", text of a comment instead)

    def read(self):
        i = 0
        while i < len(self.tokens):
            i = self.step(i) + 1
        return self.launches

    def step(self, i):
        """Processes one or more tokens; returns the index of the last one."""
        tokens, text = self.tokens, self.tokens[i].text
        if text == "namespace" and (opened := templates.opened_namespace(tokens, i)):
            self.open_namespace(opened[0])
            self.start = opened[1] + 1
            return opened[1]
        if text == "extern" and tokens[i + 1 : i + 3] and tokens[i + 1].text in ('"C"', '"C++"') and tokens[i + 2].text == "{":
            self.scopes.append(Scope(self.scopes[-1].namespace))
            return i + 2
        if text == "template" and i + 1 < len(tokens) and tokens[i + 1].text == "<":
            return self.read_head(i)
        if text.startswith("<<") and text.endswith("<") and len(text.replace(" ", "")) == 3:
            self.launch(i)
        elif text == "{":
            self.declare(tokens[self.start : i])
            self.scopes.append(Scope(self.scopes[-1].namespace, True, self.head))
            self.head, self.start = {}, i + 1
        elif text == "}":
            self.scopes = self.scopes[:-1] or self.scopes
            self.start = i + 1
        elif text == ";":
            self.declare(tokens[self.start : i])
            self.head, self.start = {}, i + 1
        return i

    def open_namespace(self, opened):
        names = [space.split()[-1] for space in opened if space]
        path = "::".join([*filter(None, [self.scopes[-1].namespace]), *names])
        self.scopes.append(self.spaces.setdefault(path, Scope(path)))

    def read_head(self, i):
        angle = closing_angle(self.tokens, i + 1)
        for parameter in templates.read_head(self.tokens[i + 2 : angle]):
            self.head[parameter.name] = "of a template"
        self.start = angle + 1
        return angle

    def declare(self, statement):
        """Records the name that a statement declares, if template arguments may use it."""
        words = [token.text for token in statement]
        scope = self.scopes[-1]
        if words[:1] == ["using"] and "=" in words:
            self.note(statement[1], statement[words.index("=") + 1 :])
        elif words[:1] == ["typedef"] and statement[-1].is_name():
            self.note(statement[-1], statement[1:-1])
        elif "=" in words:
            constant = {"constexpr", "const", "auto"} & set(words[: words.index("=")])
            for number, part in enumerate(split(statement)):
                at = next((i for i, token in enumerate(part) if token.text == "="), 0)
                if at == 1 and number == 0:
                    self.assign(part[0].text)
                elif at and part[at - 1].is_name() and part[at - 2].text not in (".", "->"):
                    self.note(part[at - 1], part[at + 1 :] if constant else "of a function")
        elif words[:1] and words[0] in ("struct", "class", "enum", "union"):
            names = [token for token in statement[1:] if token.is_name() and token.text not in ("class", "struct")]
            if names:
                scope.names[names[0].text] = "of a function" if scope.is_local else []

    def note(self, name, value):
        scope = self.scopes[-1]
        if scope.is_local:
            scope.names[name.text] = value
        elif isinstance(value, list):
            scope.names[name.text] = []  # a list can use this name

    def assign(self, name):
        """Forgets the value of a variable that is assigned to, because it has several values."""
        scope, _ = self.find(name)
        if scope and scope.is_local:
            scope.names[name] = "of a function"

    # Names at a launch

    def find(self, name):
        """Returns (scope, meaning) of a name, or (None, None) if the source does not declare it."""
        for scope in reversed(self.scopes):
            if name in scope.names:
                return scope, scope.names[name]
        return (None, self.head[name]) if name in self.head else (None, None)

    def resolve(self, tokens, reasons, depth=0):
        """Returns the text of tokens in a form that a list can contain; if this is impossible, adds the causes to
        `reasons`."""
        parts = []
        for i, token in enumerate(tokens):
            text = token.text
            before = tokens[i - 1].text if i else ""
            if text in OF_VALUES:
                reasons[text] = "of a function"
            if not token.is_name() or text in NO_NAMES or before in ("::", ".", "->"):
                parts.append(text)
                continue
            scope, meaning = self.find(text)
            if isinstance(meaning, str):
                reasons[text] = meaning
            elif scope and scope.is_local:
                if depth > 20:
                    reasons[text] = "of a function"
                else:
                    inner = self.resolve(meaning, reasons, depth + 1)
                    text = inner if re.fullmatch(r"[\w:.]+(<.*>)?", inner) or is_type(meaning) else "(%s)" % inner
            elif scope and scope.namespace:
                text = "%s::%s" % (scope.namespace, text)
            parts.append(text)
        return joined([templates.Token(part, "", 0) for part in parts])

    def qualified(self, name):
        """Returns the qualified name of the kernel that name lookup finds at the launch."""
        space = self.scopes[-1].namespace.split("::") if self.scopes[-1].namespace else []
        for count in range(len(space), -1, -1):
            candidate = "::".join([*space[:count], name])
            if self.kernels.of(candidate) or candidate in self.kernels.plain:
                return candidate
        known = {*self.kernels.plain, *(t.qualified(False) for several in self.kernels.templates.values() for t in several)}
        others = [other for other in known if other.endswith("::" + name)]  # through a using directive
        return others[0] if len(others) == 1 else name

    # Launches

    def launch(self, i):
        found = self.before(i)
        scope, meaning = self.find(found.name)
        if scope and scope.is_local and isinstance(meaning, list) and found.arguments is None:
            found = self.through_variable(found, meaning)
        if isinstance(meaning, str) or not found.name:
            line, why = "", "%s: write the kernel that it stands for" % (found.name or "an expression")
        elif found.arguments is None:
            line, why = "", self.without_arguments(self.qualified(found.name))
        else:
            line, why = self.with_arguments(self.qualified(found.name), found.arguments)
        self.launches.append(("%s:%d" % (os.path.normpath(found.file), found.line), "" if why else line, why))

    def with_arguments(self, name, arguments):
        """Returns (line for the launch, why a list cannot contain it)."""
        reasons = {}
        line = "%s<%s>" % (name, ", ".join(self.resolve(part, reasons) for part in split(arguments)))
        if reasons:
            groups = [(where, [text for text in reasons if reasons[text] == where]) for where in dict.fromkeys(reasons.values())]
            return line, "%s depends on %s" % (line, ", ".join("%s %s" % (", ".join(texts), where) for where, texts in groups))
        if self.is_deduced(name, arguments):
            return line, "%s leaves template arguments to be deduced: write them" % line
        return line, ""

    def before(self, i):
        """Returns the kernel in front of <<<: NAME or NAME<arguments>. Another expression has an empty name."""
        tokens, end = self.tokens, i
        arguments: Optional[list] = None
        if i and tokens[i - 1].text == ">":
            end = next((k for k in range(i - 2, max(i - 2000, self.start - 1), -1) if self.opens(k, i - 1)), 0)
            arguments = tokens[end + 1 : i - 1]
        first = end
        while first > self.start and self.is_of_name(first, end):
            first -= 1
        name = "".join(token.text for token in tokens[first:end]).lstrip(":")
        return Launch(name, arguments, tokens[i].file, tokens[i].line)

    def is_of_name(self, first, end):
        """Returns whether the token before `first` belongs to the name that ends at `end`."""
        word = self.tokens[first - 1]
        if word.text == "::":
            return True
        return word.is_name() and word.text not in STATEMENTS and (first == end or self.tokens[first].text == "::")

    def opens(self, k, end):
        tokens = self.tokens
        return tokens[k].text == "<" and tokens[k - 1].is_name() and closing_angle(tokens, k) == end

    def through_variable(self, found, meaning):
        """Returns the kernel to which a variable refers, as in `auto kernel = scale<float, 4>;`."""
        value = [token for token in meaning if token.text != "&"]
        at = next((i for i, token in enumerate(value) if token.text == "<"), len(value))
        if not value or closing_angle(value, at) not in (len(value) - 1, len(value)):
            return found
        name = "".join(token.text for token in value[:at]).lstrip(":")
        return Launch(name, value[at + 1 : -1] if at < len(value) else None, found.file, found.line)

    def without_arguments(self, name):
        if self.kernels.of(name):
            return "%s leaves template arguments to be deduced: write them" % name
        if name in self.kernels.plain:
            return "%s is not a template and needs no line" % name
        return "%s: if it is a template, write its arguments" % name

    def is_deduced(self, name, arguments):
        known = self.kernels.of(name)
        if len(known) != 1:
            return False
        needed = [parameter for parameter in known[0].head if not parameter.default and not parameter.is_pack]
        return len(split(arguments)) < len(needed)


def is_type(tokens):
    """Returns whether tokens are certainly a type, which must not be put in parentheses."""
    return not any(re.match(r"\d", token.text) or token.text in ("+", "-", "/", "%", "?", "<<", "(") for token in tokens)


def text(toolchain):
    """Returns the text of the list."""
    tokens = templates.tokens_of(preprocess(toolchain), toolchain.device_headers)
    launches = Reader(tokens, templates.find(tokens)).read()
    places, comments = {}, []
    for place, line, why in launches:
        if line:
            places.setdefault(line, []).append(place)
        else:
            comments.append("# %s: %s\n" % (place, why))
    lines = ["# %s\n%s\n" % (", ".join(dict.fromkeys(where)), line) for line, where in places.items()]
    head = "# The launches in %s: for rillcc --instances.\n" % toolchain.source
    return head + "".join([*lines, *dict.fromkeys(comments)])
