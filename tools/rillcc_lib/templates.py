"""Finds the kernel templates in a preprocessed source, with their parameters and places."""

import os
import re
from dataclasses import dataclass, field

MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"(.*)$', re.MULTILINE)
TOKEN = re.compile(
    r"""R"(?P<delimiter>[^ ()\\\t\n]*)\(.*?\)(?P=delimiter)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'"""
    r"""|[A-Za-z_$][\w$]*|\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*|\.\.\.|::|<<[ ]?<|<<|<=|>=|->|==|!=|&&|\|\||\n"""
    r"""|\#[^\n]*|[^\s\w]""",
    re.DOTALL,
)
NAME = re.compile(r"[A-Za-z_]\w*")
KERNEL = '"rill_global"'  # __global__ after preprocessing (rill/device/on_host.h)
WITH_BRACKETS = {"__attribute__", "__declspec", "alignas", "__launch_bounds__"}
NO_NAMES = set("class typename auto bool char short int long unsigned signed const".split())  # words that are not names of parameters
CLOSES = {"(": ")", "[": "]", "{": "}"}


@dataclass
class Token:
    text: str
    file: str
    line: int

    def is_name(self):
        return NAME.fullmatch(self.text) is not None


@dataclass
class Parameter:
    """A parameter of a template: `class T`, `int N = 4`, `class... R`."""

    kind: str  # the text before the name: "class", "int", "template <class> class"
    name: str
    default: str = ""
    is_pack: bool = False


@dataclass
class Template:
    """A kernel template."""

    namespaces: list  # the words that open each: "namespace ns"
    name: str
    head: list  # of Parameter
    arguments: list  # as written
    file: str
    line: int
    is_defined: bool

    def qualified(self, with_inline=True):
        spaces = [space for space in self.namespaces if with_inline or not space.startswith("inline")]
        return "::".join([space.split()[-1] for space in spaces] + [self.name])

    def said(self):
        """Returns the template's declaration as in the source."""
        return "template <%s> %s" % (declared_all(self.head), self.qualified())


@dataclass
class Found:
    """The kernels that a text declares, by their qualified names."""

    templates: dict = field(default_factory=dict)  # lists, because several templates may have one name
    plain: set = field(default_factory=set)

    def of(self, name):
        """Returns the templates of that name; inline namespaces may be left out."""
        return self.templates.get(name) or [
            template for several in self.templates.values() for template in several if template.qualified(False) == name
        ]


def declared(parameter):
    dots = "..." if parameter.is_pack else ""
    default = " = " + parameter.default if parameter.default else ""
    return ("%s%s %s" % (parameter.kind, dots, parameter.name)).rstrip() + default


def declared_all(head):
    return ", ".join(map(declared, head))


def tokens_of(text, folder):
    """Returns the tokens of preprocessed text, without tokens of system headers and of the dialect's headers in
    `folder`."""
    found, markers = [], list(MARKER.finditer(text))
    starts = [0] + [marker.end() + 1 for marker in markers]
    ends = [marker.start() for marker in markers] + [len(text)]
    for marker, start, end in zip([None, *markers], starts, ends):
        file, flags = (marker.group(2), marker.group(3).split()) if marker else ("", [])
        if "3" in flags or file.startswith("<") or os.path.dirname(os.path.normpath(file)) == os.path.normpath(folder):
            continue
        line = int(marker.group(1)) if marker else 1
        for match in TOKEN.finditer(text, start, end):
            if match.group() != "\n" and not match.group().startswith("#"):  # such as a #pragma
                found.append(Token(match.group(), file, line))
            line += match.group().count("\n")
    return found


def closing(tokens, start):
    """Returns the index of the bracket that closes the one at `start`, or the number of tokens if none does."""
    depth = []
    for i in range(start, len(tokens)):
        text = tokens[i].text
        if text in CLOSES:
            depth.append(CLOSES[text])
        elif depth and text == depth[-1]:
            depth.pop()
        if not depth:
            return i
    return len(tokens)


def closing_angle(tokens, start):
    """Returns the index of the `>` that closes the `<` at `start`, or the number of tokens if none does; skips other
    brackets."""
    depth, i = 0, start
    while i < len(tokens) and tokens[i].text not in (";", "}"):
        text = tokens[i].text
        if text in CLOSES:
            i = closing(tokens, i)
        depth += (text == "<") - (text == ">")
        if depth == 0:
            return i
        i += 1
    return len(tokens)


def split(tokens):
    """Returns the parts between commas that are not inside brackets."""
    parts, i = [[]], 0
    while i < len(tokens):
        text = tokens[i].text
        end = i
        if text in CLOSES:
            end = closing(tokens, i)
        elif text == "<":
            end = closing_angle(tokens, i)
            end = i if end == len(tokens) else end
        if text == ",":
            parts.append([])
        else:
            parts[-1] += tokens[i : end + 1]
        i = end + 1
    return [part for part in parts if part]


def joined(tokens):
    """Returns the text of tokens with the usual spaces."""
    angles = {}
    for i, token in enumerate(tokens):
        if token.text == "<" and i and (tokens[i - 1].is_name() or tokens[i - 1].text == "template"):
            end = closing_angle(tokens, i)
            angles.update({i: "<", end: ">"} if end < len(tokens) else {})
    text = " ".join("\0" + token.text if i in angles else token.text for i, token in enumerate(tokens))
    text = re.sub(r"\s*(::|\.\.\.)\s*|\s*\0(<)\s*|\s*\0(>)", lambda match: "".join(filter(None, match.groups())), text)
    text = re.sub(r"\s+([,)\]])", r"\1", text)
    text = re.sub(r"([(\[!~]|(?:^|[(,<]\s*)-)\s+", r"\1", text)
    return re.sub(r"(\w) ([(\[])", r"\1\2", text)


def read_head(tokens):
    """Returns the parameters between < and > of `template <...>`."""
    found = []
    for number, part in enumerate(split(tokens), 1):
        equals = next((i for i, token in enumerate(part) if token.text == "=" and not nested(part, i)), len(part))
        before, default = part[:equals], joined(part[equals + 1 :])
        is_pack = any(token.text == "..." for token in before)
        before = [token for token in before if token.text != "..."]
        named = len(before) > 1 and before[-1].is_name() and before[-1].text not in NO_NAMES
        name = before.pop().text if named else "p%d" % number
        found.append(Parameter(joined(before), name, default, is_pack))
    return found


def nested(tokens, index):
    """Returns whether a token is inside angles or brackets."""
    texts = [token.text for token in tokens[:index]]
    return any(texts.count(start) > texts.count(end) for start, end in [("<", ">"), *CLOSES.items()])


def without_attributes(tokens):
    kept, i = [], 0
    while i < len(tokens):
        if tokens[i].text in WITH_BRACKETS and i + 1 < len(tokens) and tokens[i + 1].text == "(":
            i = closing(tokens, i + 1)
        elif tokens[i].text == "[" and i + 1 < len(tokens) and tokens[i + 1].text == "[":
            i = closing(tokens, i)
        else:
            kept.append(tokens[i])
        i += 1
    return kept


def end_of_declaration(tokens, start):
    """Returns the index of the `{` or `;` that ends a declaration."""
    i = start
    while i < len(tokens) and tokens[i].text not in ("{", ";", "}"):
        i = closing(tokens, i) + 1 if tokens[i].text in "([" else i + 1
    return min(i, len(tokens) - 1)


def opened_namespace(tokens, i):
    """Returns (what opens each namespace, index of its brace) for a `namespace` token, or None if it opens none."""
    inline = "inline " if i and tokens[i - 1].text == "inline" else ""
    names, end = [], i + 1
    while end < len(tokens) and tokens[end].text not in ("{", ";", "="):
        if tokens[end].text == "[":
            end = closing(tokens, end)
        elif tokens[end].is_name() and tokens[end].text != "inline" and tokens[end - 1].text != "__attribute__":
            names.append(tokens[end].text)
        elif tokens[end].text == "(":
            end = closing(tokens, end)
        end += 1
    if end >= len(tokens) or tokens[end].text != "{":
        return None
    return [inline + "namespace " + name for name in names if name != "__attribute__"] or [""], end


def read_kernel(found, namespaces, head, declaration, is_defined):
    """Adds the kernel that a declaration declares, if it declares one."""
    if not any(token.text == KERNEL for token in declaration):
        return
    rest = without_attributes(declaration)
    at = next((i for i, token in enumerate(rest) if token.text == "("), 0)
    if at == 0 or not rest[at - 1].is_name():
        return  # a specialization, which belongs to its template
    name = rest[at - 1]
    if head is None:
        found.plain.add("::".join([space.split()[-1] for space in namespaces if space] + [name.text]))
        return
    arguments = [joined(part) for part in split(rest[at + 1 : closing(rest, at)])]
    arguments = [] if arguments == ["void"] else arguments
    made = Template(namespaces, name.text, head, arguments, name.file, name.line, is_defined)
    others = found.templates.setdefault(made.qualified(), [])
    for i, other in enumerate(others):
        if is_same(other, made):
            kept, dropped = (made, other) if is_defined else (other, made)
            for parameter, again in zip(kept.head, dropped.head):
                parameter.default = parameter.default or again.default
            others[i] = kept
            return
    others.append(made)


def is_same(one, other):
    """Returns whether two declarations appear to be of one template; their names of parameters may differ."""
    if one.is_defined != other.is_defined:
        return (len(one.head), len(one.arguments)) == (len(other.head), len(other.arguments))
    return one.arguments == other.arguments


def find(tokens):
    """Returns the kernels that are declared outside classes and functions."""
    found, scopes, i = Found(), [], 0
    while i < len(tokens):
        text = tokens[i].text
        if text == "namespace" and (opened := opened_namespace(tokens, i)):
            scopes.append(opened[0])
            i = opened[1]
        elif text == "extern" and [token.text for token in tokens[i + 1 : i + 3]] in (['"C"', "{"], ['"C++"', "{"]):
            scopes.append([])
            i += 2
        elif text == "}" and scopes:
            scopes.pop()
        elif text not in (";", "}", "inline"):
            i = read_declaration(found, [space for scope in scopes for space in scope], tokens, i)
        i += 1
    return found


def read_declaration(found, namespaces, tokens, i):
    """Reads the declaration at `i`, outside functions; returns the index of its last token."""
    head = None
    if tokens[i].text == "template" and i + 1 < len(tokens) and tokens[i + 1].text == "<":
        angle = closing_angle(tokens, i + 1)
        head = read_head(tokens[i + 2 : angle])
        i = angle + 1
    end = end_of_declaration(tokens, i)
    if "" not in namespaces and head != [] and tokens[i : i + 1] and tokens[i].text != "template":
        read_kernel(found, namespaces, head, tokens[i:end], tokens[end].text == "{")
    if end < len(tokens) and tokens[end].text == "{":
        return closing(tokens, end)
    return end - 1 if end > i and tokens[end].text == "}" else end
