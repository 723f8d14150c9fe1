"""The statements of a kernel's body, as a tree.

Reads what it needs to know where statements begin and end, what they declare and where they jump to.  Whatever it
cannot read with certainty it refuses: the kernel then keeps its other form (see split.py).
"""

from dataclasses import dataclass, field
from typing import Optional

from . import scan

STORAGE = {"static", "register", "constexpr", "__shared__", "const", "volatile", "inline"}
KEYWORDS = set(
    "return if else for while do switch case default break continue goto new delete sizeof alignof alignas this true "
    "false nullptr static_cast const_cast reinterpret_cast dynamic_cast operator template using typedef namespace "
    "public private protected throw try catch and or not xor bitand bitor compl noexcept decltype typeid friend "
    "static_assert asm __asm__ __asm thread_local __thread extern".split()
)
TYPE_WORDS = scan.BASIC_TYPES | {"auto"}
# Words that a loop over the threads would change the meaning of, or that say what this cannot follow.
REFUSED = {
    "goto": "a goto",
    "asm": "assembly",
    "__asm__": "assembly",
    "__asm": "assembly",
    "try": "a try block",
    "throw": "a throw",
    "template": "a template",
    "operator": "an operator",
    "thread_local": "a thread_local variable",
    "__thread": "a thread_local variable",
    "extern": "an extern declaration",
    "alloca": "alloca",
    "setjmp": "setjmp",
    "longjmp": "longjmp",
    "__func__": "the function's name",
    "__FUNCTION__": "the function's name",
    "__PRETTY_FUNCTION__": "the function's name",
    "__builtin_FUNCTION": "the function's name",
    "co_await": "a coroutine",
    "co_yield": "a coroutine",
    "co_return": "a coroutine",
}
PRAGMAS = ("unroll", "nounroll", "GCC unroll", "clang loop")


class Refused(Exception):
    """Why a kernel is not split."""

    def __init__(self, why, token):
        super().__init__("%s, line %d" % (why, token.line) if token is not None else why)


@dataclass(eq=False)
class Declarator:
    """One name of a declaration; the token lists are parts of the source."""

    base: list  # the words of the type before the name, without storage words
    storage: set
    pointer: list  # between the base and the name
    name: scan.Token
    dims: list
    init: list

    @property
    def is_reference(self):
        return any(token.text in ("&", "&&") for token in self.pointer)

    @property
    def is_scalar(self):
        """A number or a pointer for certain."""
        pointer = any(token.text == "*" for token in self.pointer)
        words = [token.text for token in self.base if token.text not in STORAGE]
        return not self.dims and not self.is_reference and (pointer or all(word in TYPE_WORDS for word in words))

    @property
    def is_auto(self):
        return any(token.text in ("auto", "decltype") for token in self.base)


@dataclass(eq=False)
class Node:
    """A statement: tokens[start:end] of the body."""

    kind: str
    start: int
    end: int = 0
    children: list = field(default_factory=list)  # of a block; the branches of an if; the body of a loop
    declarators: list = field(default_factory=list)
    init: Optional["Node"] = None  # of a for
    condition: tuple = (0, 0)
    increment: tuple = (0, 0)
    plain: bool = True  # the condition is an expression
    target: Optional["Node"] = None  # of a break or continue
    jumps: list = field(default_factory=list)  # breaks, continues and returns anywhere in it


def is_keyword(token):
    return token.text in KEYWORDS


class Parser:
    def __init__(self, tokens, names):
        self.tokens = tokens
        self.names = set(names)  # what is a variable for certain
        self.targets = []  # loops and switches around

    def text(self, i):
        return self.tokens[i].text if i < len(self.tokens) else ""

    def close(self, i):
        pairs = {"(": ")", "[": "]", "{": "}"}
        return scan.find_close(self.tokens, i, self.text(i), pairs[self.text(i)])

    def refuse(self, why, i):
        raise Refused(why, self.tokens[min(i, len(self.tokens) - 1)])

    def parse(self):
        """Gives the statements of a body, of which the tokens are what is between its braces."""
        self.check_words()
        return self.statements(0, len(self.tokens))

    def check_words(self):
        for i, token in enumerate(self.tokens):
            before = self.text(i - 1) if i > 0 else ";"
            if token.text in REFUSED or token.text.startswith("__builtin_alloca"):
                self.refuse(REFUSED.get(token.text, "alloca"), i)
            for pragma in token.pragmas:
                words = " ".join(pragma.replace("#", " ").split()[1:])
                if not words.startswith(PRAGMAS):
                    self.refuse('a pragma "%s"' % words, i)
            if token.text in ("struct", "union", "class", "enum") and "{" in (self.text(i + 1), self.text(i + 2)):
                self.refuse("a type that is defined in the kernel", i)
            if token.is_macro:
                self.refuse('"%s" is a macro that stands for itself' % token.text, i)
            if token.kind == "raw" and "\n" in token.text:
                self.refuse("a string of several lines", i)
            if token.text == "{" and before == "(":
                self.refuse("a statement inside an expression", i)
            if token.text == "[" and self.text(i + 1) != "[" and before != "[" and self.opens_lambda(i):
                self.refuse("a lambda", i)

    def opens_lambda(self, i):
        before = self.tokens[i - 1] if i > 0 else None
        if before is None or before.text in (")", "]", "}", ">"):
            return before is None or before.text in ("}",)
        return not (before.kind in ("word", "string", "number") and (before.text == "new" or not is_keyword(before)))

    # Statements

    def statements(self, i, end):
        nodes = []
        while i < end:
            node = self.statement(i)
            nodes.append(node)
            i = node.end
        return nodes

    def statement(self, i):
        text = self.text(i)
        if text == "[" and self.text(i + 1) == "[":
            return self.after_attribute(i)
        if text == "" or text == "}":
            self.refuse("a statement that rillcc cannot read", i)
        reader = getattr(self, "read_" + text, None) if text in READERS else None
        if text == "{":
            node = self.block(i)
        elif text == ";":
            node = Node("empty", i, i + 1)
        elif reader:
            node = reader(i)
        else:
            node = self.simple(i)
        for part in node.children + ([node.init] if node.init else []):
            node.jumps += part.jumps
        if node.kind in ("return", "break", "continue"):
            node.jumps.append(node)
        return node

    def after_attribute(self, i):
        close = self.close(i)
        node = self.statement(close + 1)
        if any(token.text in ("fallthrough", "assume") for token in self.tokens[i:close]) or node.kind != "decl":
            self.refuse("an attribute", i)
        return node

    def block(self, i):
        close = self.close(i)
        outer = set(self.names)
        node = Node("block", i, close + 1, self.statements(i + 1, close))
        self.names = outer
        return node

    def parenthesized(self, i):
        """Gives the range between the parentheses that open at i."""
        if self.text(i) != "(":
            self.refuse("a statement that rillcc cannot read", i)
        return i + 1, self.close(i)

    def is_plain(self, start, end):
        depth = 0
        for token in self.tokens[start:end]:
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            if token.text == ";" and depth == 0:
                return False
        return self.declaration_at(start, end) is None

    def read_if(self, i):
        constexpr = self.text(i + 1) == "constexpr"
        start, end = self.parenthesized(i + 1 + constexpr)
        node = Node("if", i, condition=(start, end), plain=not constexpr and self.is_plain(start, end))
        node.children.append(self.statement(end + 1))
        node.end = node.children[0].end
        if self.text(node.end) == "else":
            node.children.append(self.statement(node.end + 1))
            node.end = node.children[1].end
        return node

    def loop_body(self, node, i):
        self.targets.append(node)
        node.children.append(self.statement(i))
        self.targets.pop()
        node.end = node.children[-1].end

    def read_for(self, i):
        start, end = self.parenthesized(i + 1)
        node = Node("for", i)
        outer = set(self.names)
        first = self.find_semicolon(start, end)
        if first is None:
            node.plain = False  # over a range
        else:
            second = self.find_semicolon(first + 1, end)
            if second is None:
                self.refuse("a statement that rillcc cannot read", i)
            node.init = self.simple(start)
            if node.init.end != first + 1:
                self.refuse("a statement that rillcc cannot read", i)
            node.condition, node.increment = (first + 1, second), (second + 1, end)
            node.plain = self.is_plain(first + 1, second)
        self.loop_body(node, end + 1)
        self.names = outer
        return node

    def find_semicolon(self, start, end):
        i = start
        while i < end:
            if self.text(i) == ";":
                return i
            i = self.close(i) + 1 if self.text(i) in ("(", "[", "{") else i + 1
        return None

    def read_while(self, i):
        start, end = self.parenthesized(i + 1)
        node = Node("while", i, condition=(start, end), plain=self.is_plain(start, end))
        self.loop_body(node, end + 1)
        return node

    def read_do(self, i):
        node = Node("do", i)
        self.loop_body(node, i + 1)
        if self.text(node.end) != "while":
            self.refuse("a statement that rillcc cannot read", i)
        node.condition = self.parenthesized(node.end + 1)
        node.end = node.condition[1] + 2
        if self.text(node.end - 1) != ";":
            self.refuse("a statement that rillcc cannot read", i)
        return node

    def read_switch(self, i):
        _, end = self.parenthesized(i + 1)
        node = Node("switch", i)
        self.loop_body(node, end + 1)
        return node

    def read_case(self, i):
        """A label; it is of no interest but for where it ends."""
        if not any(target.kind == "switch" for target in self.targets):
            self.refuse("a label", i)
        j = i + 1
        while self.text(j) != ":":
            if self.text(j) in ("?", ";", "{", "}", ""):
                self.refuse("a label that rillcc cannot read", i)
            j = self.close(j) + 1 if self.text(j) in ("(", "[") else j + 1
        return Node("case", i, j + 1)

    read_default = read_case

    def jump(self, kind, i, target):
        if self.text(i + 1) != ";":
            self.refuse("a %s with a value" % kind, i)
        return Node(kind, i, i + 2, target=target)

    def read_return(self, i):
        return self.jump("return", i, None)

    def read_break(self, i):
        if not self.targets:
            self.refuse("a break outside loops", i)
        return self.jump("break", i, self.targets[-1])

    def read_continue(self, i):
        loops = [target for target in self.targets if target.kind != "switch"]
        if not loops:
            self.refuse("a continue outside loops", i)
        return self.jump("continue", i, loops[-1])

    def simple(self, i):
        """A declaration or an expression, up to its semicolon."""
        semicolon = self.find_semicolon(i, len(self.tokens))
        if semicolon is None:
            self.refuse("a statement that rillcc cannot read", i)
        end = semicolon + 1
        if self.text(i) in ("using", "typedef", "static_assert"):
            return Node("outside", i, end)
        if self.text(i) == "RILL_DYNAMIC_SHARED":
            return self.dynamic_shared(i, end)
        if self.text(i + 1) == ":" and self.tokens[i].is_word():
            self.refuse("a label", i)
        base = self.declaration_at(i, semicolon)
        if base is None:
            if is_keyword(self.tokens[i]) and self.text(i) not in EXPRESSION_KEYWORDS:
                self.refuse("a statement that rillcc cannot read", i)
            pointer = [self.text(k) for k in (i + 1, i + 2, i + 4, i + 5)] == ["(", "*", ")", "("]
            if pointer or self.text(i) in TYPE_WORDS:
                self.refuse("a declaration that rillcc cannot read", i)
            return Node("expr", i, end)
        node = Node("decl", i, end)
        self.read_declarators(node, i, base, semicolon)
        return node

    def dynamic_shared(self, i, end):
        parts = scan.split_commas(self.tokens[i + 2 : end - 2])
        if self.text(end - 2) != ")" or len(parts) < 2 or len(parts[-1]) != 1:
            self.refuse("a declaration that rillcc cannot read", i)
        self.names.add(parts[-1][0].text)
        name = parts[-1][0]
        return Node("dynamic", i, end, declarators=[Declarator([], set(), [], name, [], [])])

    # Declarations

    def base_type(self, i, end):
        """Gives the index after the words of a type, and whether they can be nothing else; or None."""
        named = certain = False
        while i < end:
            token = self.tokens[i]
            if token.text in STORAGE:
                certain = True
            elif token.text in TYPE_WORDS:
                named = certain = True
            elif token.text in ("struct", "union", "class", "enum", "typename"):
                certain = True
            elif token.text == "decltype":
                i = self.close(i + 1)
                named = certain = True
            elif token.text in ("alignas", "__align__") and not named:
                i = self.close(i + 1)
                certain = True
            elif token.is_word() and not named and not is_keyword(token):
                i = self.qualified_name(i, end)
                named = True
            else:
                break
            i += 1
        return (i, certain) if named else None

    def qualified_name(self, i, end):
        """Gives the index of the last token of a name like std::pair<int, float>."""
        while True:
            if self.text(i + 1) == "<" and self.tokens[i].text not in self.names:
                close = self.close_angle(i + 1, end)
                if close is None:
                    return i
                i = close
            if self.text(i + 1) != "::" or i + 2 >= end or not self.tokens[i + 2].is_word():
                return i
            i += 2

    def close_angle(self, i, end):
        depth = 0
        while i < end:
            text = self.text(i)
            if text in ("(", "["):
                i = self.close(i)
            elif text == "<":
                depth += 1
            elif text in (">", ">>"):
                depth -= len(text)
                if depth <= 0:
                    return i if depth == 0 else None
            elif text in ("{", ";", "&&", "||", "="):
                return None
            i += 1
        return None

    def declaration_at(self, i, end):
        """Gives the index after the type of the declaration at i; None for an expression."""
        found = self.base_type(i, end) if i < end else None
        if found is None:
            return None
        j, certain = found
        first = self.tokens[i]
        if not certain and first.text in self.names:
            return None
        k = j
        while k < end and self.text(k) in ("*", "&", "&&", "const", "__restrict__", "__restrict", "volatile"):
            k += 1
        if certain and k == j and self.text(j) in ("(", "{") and first.text not in STORAGE:
            return None  # a value of that type
        followed = self.text(k + 1) if k + 1 < end else ";"
        named = k < end and self.tokens[k].is_word() and not is_keyword(self.tokens[k])
        if named and followed in ("=", ";", ",", "(", "{", "[", ":"):
            return j
        if certain:
            self.refuse("a declaration that rillcc cannot read", i)
        return None

    def read_declarators(self, node, i, base_end, end):
        words = self.tokens[i:base_end]
        storage = {token.text for token in words if token.text in STORAGE | {"alignas", "__align__"}}
        base = [token for token in words if token.text not in STORAGE - {"const", "volatile"}]
        j = base_end
        while j < end:
            k = j
            while self.text(k) in ("*", "&", "&&", "const", "__restrict__", "__restrict", "volatile"):
                k += 1
            if k >= end or not self.tokens[k].is_word() or is_keyword(self.tokens[k]):
                self.refuse("a declaration that rillcc cannot read", i)
            name, at = k, k + 1
            while at < end and self.text(at) == "[":
                at = self.close(at) + 1
            dims, stop = (k + 1, at), self.find_comma(at, end)
            if at < stop and self.text(at) not in ("=", "{", "("):
                self.refuse("a declaration that rillcc cannot read", i)
            if self.text(at) == "(" and (self.close(at) != stop - 1 or self.is_parameter_list(at)):
                self.refuse("a declaration that rillcc cannot read", i)
            declarator = Declarator(base, storage, self.tokens[j:k], self.tokens[name], self.tokens[slice(*dims)],
                                    self.tokens[at:stop])
            self.names.add(declarator.name.text)
            node.declarators.append(declarator)
            j = stop + 1

    def find_comma(self, i, end):
        angle = 0
        while i < end and not (self.text(i) == "," and angle == 0):
            if self.text(i) == "<" and self.text(i - 1).endswith("_cast"):
                close = self.close_angle(i, end)
                i = close if close is not None else i
            i = self.close(i) + 1 if self.text(i) in ("(", "[", "{") else i + 1
        return i

    def is_parameter_list(self, i):
        close = self.close(i)
        return close == i + 1 or self.declaration_at(i + 1, close) is not None


READERS = {"if", "for", "while", "do", "switch", "case", "default", "return", "break", "continue"}
EXPRESSION_KEYWORDS = {
    "this", "sizeof", "static_cast", "reinterpret_cast", "const_cast", "true", "false", "nullptr", "not", "delete", "new",
}
