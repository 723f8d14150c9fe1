"""Finds regions that only ask whether the thread's index is inside: `if (i < n) ...` or `if (i >= n) return;`.

Most blocks lie inside as a whole.  If the first and the last thread of a row do, and the index goes up by one from
each thread to the next in between, then all do, and the loop over them needs no mask: a vector's store with a mask
costs many times one without.
"""

from dataclasses import dataclass

from . import uses
from .tree import Node

INTEGERS = {"int", "unsigned", "long", "size_t", "ptrdiff_t", "int64_t", "uint64_t", "int32_t", "uint32_t", "auto", "const"}
LOOSE = {"<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||", "?", ":", ",", "="}
MAX_TOKENS = 600  # it is written twice
THREAD_X = ["threadIdx", ".", "x"]


@dataclass
class Guard:
    before: list  # variables that are declared in front of it
    condition: list  # tokens
    inverse: bool  # threads inside are those for which the condition is false
    indices: list  # names, of what goes up by one, that it compares
    inside: list  # items that the threads inside execute
    node: Node = None


def split_at(tokens, mark):
    """Splits at a mark outside brackets."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if token.text == mark and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def has_loose(tokens):
    """Whether an operator that binds less than + stands outside brackets."""
    depth = angle = 0
    for i, token in enumerate(tokens):
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if token.text == "<" and i > 0 and tokens[i - 1].text == "static_cast":
            angle += 1
        elif token.text == ">" and angle > 0:
            angle -= 1
        elif depth == 0 and token.text in LOOSE:
            return True
    return False


def strip(tokens):
    """Takes parentheses and casts to integers of at least 32 bits from around an expression."""
    while True:
        texts = [token.text for token in tokens]
        if texts[:1] == ["("] and uses.closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens[1:-1]
        elif texts[:2] == ["static_cast", "<"] and ">" in texts:
            close = texts.index(">")
            if not set(texts[2:close]) <= INTEGERS - {"auto"} or uses.closing(tokens, close + 1) != len(tokens) - 1:
                return tokens
            tokens = tokens[close + 2 : -1]
        else:
            return tokens


class Finder:
    def __init__(self, region, walk):
        self.region = region
        self.walk = walk
        self.cheap = walk.cheap.__contains__  # computed from the indices alone, without effects, and never changed

    def value(self, name):
        """The initializer of a thread's variable that never changes, or None."""
        variable = self.region.scope.get(name)
        if variable is None or not variable.thread or not self.cheap(variable):
            return None
        init = variable.declarator.init
        return init[1:] if init[0].text == "=" else init[1:-1]

    def same_in_row(self, tokens):
        """Whether an expression has the same value for all threads of a row, and no effect."""
        texts = [token.text for token in tokens]
        if any(texts[i : i + 3] == THREAD_X for i in range(len(texts))):
            return False

        def allowed(token):
            variable = self.region.scope.get(token.text)
            if variable is None:
                return token.text in self.walk.splitter.constants
            if not variable.thread:
                return variable.scalar
            value = self.value(token.text)
            return value is not None and self.same_in_row(value)

        return bool(tokens) and uses.is_pure(tokens, allowed, thread_index=True)

    def goes_up_by_one(self, tokens):
        """Whether an expression is something that is the same in a row, and the thread's x."""
        tokens = strip(tokens)
        texts = [token.text for token in tokens]
        if texts == THREAD_X:
            return True
        if len(tokens) == 1:
            return self.is_index(texts[0])
        parts = split_at(tokens, "+")
        if len(parts) == 1 or has_loose(tokens):
            return False
        rising = [part for part in parts if not self.same_in_row(part)]
        return len(rising) == 1 and self.goes_up_by_one(rising[0])

    def is_index(self, name):
        value = self.value(name)
        if value is None:
            return False
        declarator = self.region.scope[name].declarator
        words = {token.text for token in declarator.base}
        return not declarator.pointer and words <= INTEGERS and self.goes_up_by_one(value)

    def compared(self, term, operators):
        """The names of indices in one part of the condition; None if it is of another kind."""
        if self.same_in_row(term):
            return []
        texts = [token.text for token in term]
        name, rest = (None, 3) if texts[:3] == THREAD_X else (texts[0], 1)
        if texts[rest : rest + 1] and texts[rest] in operators and not has_loose(term[rest + 1 :]):
            if self.same_in_row(term[rest + 1 :]) and (name is None or self.is_index(name)):
                return [name] if name else []
        return None

    def find(self, may_return):
        items = self.region.items
        if sum(item.end - item.start for item in items if isinstance(item, Node)) > MAX_TOKENS:
            return None
        at = next((i for i, item in enumerate(items) if isinstance(item, Node)), None)
        if at is None or not all(self.cheap(variable) for variable in items[:at]):
            return None
        node = items[at]
        if node.kind != "if" or not node.plain or len(node.children) != 1:
            return None
        child = node.children[0]
        while child.kind == "block" and len(child.children) == 1:
            child = child.children[0]
        inverse = child.kind == "return"
        if inverse and (not may_return or at == len(items) - 1):
            return None
        if not inverse and at != len(items) - 1:
            return None
        condition = self.walk.tokens[slice(*node.condition)]
        indices = []
        for term in split_at(condition, "||" if inverse else "&&"):
            found = self.compared(term, (">=", ">") if inverse else ("<", "<="))
            if found is None:
                return None
            indices += found
        inside = items[at + 1 :] if inverse else node.children
        if not any(self.depends(term) for term in split_at(condition, "||" if inverse else "&&")):
            return None
        return Guard(items[:at], condition, inverse, sorted(set(indices)), inside, node)

    def depends(self, term):
        return not self.same_in_row(term)
