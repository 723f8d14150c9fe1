"""What an expression does with names: whether it may change a variable, and whether all threads get the same value."""

from . import scan

ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
STEP = {"++", "--"}
CASTS = {"static_cast", "reinterpret_cast", "const_cast"}
INDICES = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
# Functions that take their arguments by value, and give the same for the same.
PURE = set("min max abs fminf fmaxf fmin fmax fabsf fabs floorf floor ceilf ceil sqrtf sqrt truncf trunc".split())
# Functions that take their arguments by value.
BY_VALUE = PURE | set("rintf rint fmaf fma expf exp logf log powf pow sinf sin cosf cos tanf tan tanhf tanh".split())
BY_VALUE |= {"atomic" + name for name in "Add Sub Exch CAS Min Max And Or Xor".split()}
BY_VALUE |= {"sizeof", "alignof", "if", "while", "for", "switch", "return", "decltype"}
PURE_MARKS = set("+ - * / % << >> < > <= >= == != && || ! ~ & | ^ ? : ( ) ,".split())


def is_use(tokens, i):
    """Whether the word at i can be the name of a variable of the kernel."""
    return tokens[i].is_word() and (i == 0 or tokens[i - 1].text not in (".", "->", "::"))


def text_at(tokens, i):
    return tokens[i].text if 0 <= i < len(tokens) else ""


def opening(tokens, i):
    """Gives the index of the bracket around tokens[i], or None."""
    depth = 0
    for j in range(i - 1, -1, -1):
        if tokens[j].text in (")", "]", "}"):
            depth += 1
        elif tokens[j].text in ("(", "[", "{"):
            if depth == 0:
                return j
            depth -= 1
        elif tokens[j].text == ";" and depth == 0:
            return None
    return None


def closing(tokens, i):
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j].text in ("(", "[", "{"):
            depth += 1
        elif tokens[j].text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return j
    return len(tokens) - 1


def before_template(tokens, i):
    """For `name < ... > (` with the > at i: the index of the name; else None."""
    depth = 0
    for j in range(i, -1, -1):
        if tokens[j].text in (">", ">>"):
            depth += len(tokens[j].text)
        elif tokens[j].text == "<":
            depth -= 1
            if depth == 0:
                return j - 1
        elif tokens[j].text in (";", "{", "}"):
            return None
    return None


def calls_by_value(tokens, parenthesis):
    """Whether what is passed in the parentheses that open there cannot be changed."""
    before = parenthesis - 1
    if before < 0:
        return True
    token = tokens[before]
    if token.text in (">", ">>"):
        name = before_template(tokens, before)
        if name is None or name < 0:
            return True  # a comparison
        if tokens[name].text in CASTS:
            return "&" not in [t.text for t in tokens[name:before]]
        return not tokens[name].is_word() or tokens[name].kind == "number"
    if token.is_word():
        return token.text in BY_VALUE or token.text in scan.BASIC_TYPES
    return token.text not in (")", "]", "}")


def takes_address(tokens, i):
    """Whether the & at i is not the operator between two numbers.  In doubt it takes an address."""
    before = tokens[i - 1] if i > 0 else None
    if before is None or before.text in (")", "}"):
        return True
    if before.text == "]" or before.kind in ("number", "char"):
        return False
    return not before.is_word() or before.text in ("return", "case", "sizeof")


def binds_reference(tokens, i, variables):
    """Whether a reference is declared before i in the same statement."""
    for j in range(i - 1, 0, -1):
        if tokens[j].text in (";", "{", "}") and opening(tokens, i) != j:
            return False
        if tokens[j].text not in ("&", "&&") or j + 2 > len(tokens):
            continue
        before = tokens[j - 1]
        typed = before.text in (">", ">>", "*") or (before.is_word() and before.text not in variables)
        if typed and text_at(tokens, j + 1) == "[":
            return True
        if typed and tokens[j + 1].is_word() and text_at(tokens, j + 2) in ("=", "(", "{", ":"):
            return True
    return False


def may_change(tokens, i, variables):
    """Whether what tokens[i] names may be changed there, or its address kept.  `variables` is what else is one."""
    start = end = i
    if text_at(tokens, i + 1) == "[":
        return False  # what it points to may be changed, but not it
    bracket = opening(tokens, i)
    if (bracket is None or tokens[bracket].text != "[") and binds_reference(tokens, i, variables):
        return True
    while True:
        while text_at(tokens, end + 1) == ".":
            end += 2
            if text_at(tokens, end + 1) == "(":
                return True
            while text_at(tokens, end + 1) == "[":
                end = closing(tokens, end + 1)
        before, after = text_at(tokens, start - 1), text_at(tokens, end + 1)
        if after in ASSIGN or after in STEP or before in STEP or after == ".*":
            return True
        if before == "&" and takes_address(tokens, start - 1):
            return True
        bracket = opening(tokens, start)
        if bracket is None or tokens[bracket].text == "[":
            return False
        whole = before in ("(", ",", "?", ":", "{") and after in (")", ",", ":", "}")
        if tokens[bracket].text == "{":
            return before in ("{", ",") and after in (",", "}")  # of a value that might keep a reference
        if whole and not calls_by_value(tokens, bracket):
            return True
        start, end = bracket, closing(tokens, bracket)


def may_leak(tokens, i, variables, dimensions, is_auto):
    """Whether something may keep the address of what tokens[i] names, an array of so many dimensions.  In doubt it may:
    only what is clearly read or written as a value is not."""
    start = end = i
    for _ in range(dimensions):
        if text_at(tokens, end + 1) != "[":
            return True  # it decays to a pointer
        end = closing(tokens, end + 1)
    if is_auto:
        while text_at(tokens, end + 1) == "[":
            end = closing(tokens, end + 1)
        if text_at(tokens, end + 1) == ".":
            return True
    elif text_at(tokens, end + 1) in ("[", "->"):
        return False  # what is left of it is a pointer, and is read
    bracket = opening(tokens, i)
    if (bracket is None or tokens[bracket].text != "[") and binds_reference(tokens, i, variables):
        return True
    while True:
        before, after = text_at(tokens, start - 1), text_at(tokens, end + 1)
        if before in STEP or (before == ")" and text_at(tokens, start - 2) == "&"):
            return True
        if after in ASSIGN and before not in ("", ";", "{", "}", ")", "else", "do", "(", ","):
            return True
        if before == "&" and takes_address(tokens, start - 1):
            return True
        bracket = opening(tokens, start)
        if bracket is None or tokens[bracket].text == "[":
            return False
        whole = before in ("(", ",", "?", ":", "{") and (after in (")", ",", ":", "}") or after in ASSIGN)
        if tokens[bracket].text == "{":
            return before in ("{", ",") and after in (",", "}")
        if whole and not calls_by_value(tokens, bracket):
            return True
        start, end = bracket, closing(tokens, bracket)


def statement_target(tokens):
    """For `v op= value`, `v++` and the like, without a semicolon: (name, value tokens); else None."""
    texts = [token.text for token in tokens]
    if len(tokens) == 2 and texts[0] in STEP and tokens[1].is_word():
        return texts[1], []
    if len(tokens) == 2 and texts[1] in STEP and tokens[0].is_word():
        return texts[0], []
    if len(tokens) > 2 and tokens[0].is_word() and texts[1] in ASSIGN:
        value = tokens[2:]
        if texts[1] in ("/=", "%=") and not (len(value) == 1 and is_nonzero(value[0])):
            return None
        return texts[0], value
    return None


def is_nonzero(token):
    digits = token.text.lower().rstrip("ulf")
    return token.kind == "number" and any(c in "123456789abcdef" for c in digits.replace("0x", ""))


def is_pure(tokens, allowed, thread_index=False):
    """Whether the value of an expression depends on nothing but numbers, indices and the `allowed` names, and
    getting it has no effect.  `allowed` is called with the token of a name."""
    i = 0
    while i < len(tokens):
        token, before, after = tokens[i], text_at(tokens, i - 1), text_at(tokens, i + 1)
        if token.kind in ("number", "char") or token.text in ("true", "false", "nullptr"):
            pass
        elif token.text in INDICES:
            if after != "." or text_at(tokens, i + 2) not in ("x", "y", "z"):
                return False
            if token.text == "threadIdx" and not thread_index:
                return False
            i += 2
        elif token.text == "static_cast" and after == "<":
            close = i + 2
            while text_at(tokens, close) in scan.BASIC_TYPES | {"const"}:
                close += 1
            if text_at(tokens, close) != ">":
                return False
            i = close
        elif token.text == "sizeof" and after == "(" and closes_cast(tokens, closing(tokens, i + 1) - 1):
            i = closing(tokens, i + 1)
        elif token.text in ("/", "%"):
            divisor = tokens[i + 1] if i + 1 < len(tokens) else token
            if not is_nonzero(divisor) and divisor.text not in ("blockDim", "gridDim"):
                return False
        elif token.text in ("*", "&"):
            # Not one that reads memory or takes an address; what follows a cast might be.
            if not before or (before in PURE_MARKS and before != ")") or is_cast(tokens, i - 1):
                return False
        elif token.kind == "mark":
            if token.text not in PURE_MARKS:
                return False
        elif token.text in PURE and after == "(":
            pass
        elif token.text in scan.BASIC_TYPES:
            if not (after == "(" or after in scan.BASIC_TYPES or (after == ")" and closes_cast(tokens, i))):
                return False
        elif not is_use(tokens, i) or after in ("(", "[", ".", "->", "::") or not allowed(token):
            return False
        i += 1
    return True


def closes_cast(tokens, i):
    """Whether the words before i are `( type words`."""
    while i >= 0 and tokens[i].text in scan.BASIC_TYPES:
        i -= 1
    return text_at(tokens, i) == "("


def is_cast(tokens, i):
    """Whether the parenthesis that closes at i holds a type."""
    if text_at(tokens, i) != ")" or i == 0 or tokens[i - 1].text not in scan.BASIC_TYPES | {"*", "const"}:
        return False
    start = opening(tokens, i)
    return start is None or text_at(tokens, start - 1) != "sizeof"
