"""Splits a kernel at its barriers into regions, each of which becomes a loop over the threads of a block.

What stands between two barriers is a region.  A statement that has a barrier inside (an if, a loop) becomes a
statement around regions, executed once for the block: as it is if all threads are sure to agree about its
condition, else with a mask that says for each thread whether it takes part.  A variable of a thread that lives
across regions is kept in an array with an element for each thread, or computed again where it is used; one whose
value is the same for all threads is kept once.

Cutting a region in two where there is no barrier changes nothing either: the threads of a block see each other's
writes behind barriers only, so any order of threads between two barriers is a right one, and each thread's own
order stays.  That is used freely.

A kernel that this cannot follow with certainty is refused (tree.Refused) and runs on fibers.  rillcc compiles what
is made here in front of the kernel itself, so names mean what they mean there.  loops.py writes the text.
"""

from dataclasses import dataclass, field
from typing import Optional

from . import loops, scan, uses
from .tree import Node, Parser, Refused


@dataclass(eq=False)
class Variable:
    name: str
    token: scan.Token
    kind: str  # parameter, local, shared, dynamic, constant
    number: int
    key: object  # of the declaration, the same in every walk
    declarator: object = None
    type: str = ""  # of a parameter
    scalar: bool = True
    thread: bool = False  # each thread has its own
    changed: bool = False  # after it was declared, or its address was taken
    leaks: bool = False  # something may keep its address: it stays where it is as long as the kernel runs
    region: Optional["Region"] = None  # where it is declared
    uses: dict = field(default_factory=dict)  # regions
    form: str = ""  # of one with `thread`: here, again, stored


@dataclass(eq=False)
class Region:
    number: int
    context: "Context"
    scope: dict
    items: list = field(default_factory=list)  # nodes and variables that are declared
    condition: tuple = (0, 0)  # tokens, if it computes a mask
    uses: dict = field(default_factory=dict)  # variables
    returns: bool = False
    alone: Optional[tuple] = None  # (name or None, operator, tokens) of a first statement `if (threadIdx.x < tokens)`


@dataclass(eq=False)
class Context:
    """Where a list of statements stands."""

    uniform: bool = True  # all threads that have not ended are here
    mask: str = ""  # else those whose mask is set
    chain: tuple = ()  # masks of everything around, the outermost first
    loop: Optional["Loop"] = None


@dataclass(eq=False)
class Text:
    text: str


@dataclass(eq=False)
class Branch:
    condition: str
    parts: list


@dataclass(eq=False)
class Loop:
    node: Node
    uniform: bool
    header: str = ""
    body: list = field(default_factory=list)
    mask: str = ""
    body_mask: str = ""
    has_continue: bool = False
    parent: Optional[Context] = None
    condition: Optional[Region] = None
    increment: Optional[Region] = None


@dataclass(eq=False)
class MaskedBranch:
    parent: Context
    condition: Region
    masks: list
    parts: list


class Again(Exception):
    """Something that was taken for uniform is not."""


class Splitter:
    def __init__(self, kernel, constants):
        self.kernel = kernel
        self.constants = constants
        self.tokens = kernel.body[1:-1]
        names = [parameter.name for parameter in kernel.parameters]
        self.nodes = Parser(self.tokens, names).parse()
        self.barriers = [scan.BARRIER.fullmatch(token.text) is not None for token in self.tokens]
        self.outside_words = set()
        self.per_thread = set()  # keys of variables that differ between threads
        self.masked = set()  # loops that threads leave at different times

    def split(self):
        """Gives the text of the split kernel, and whether it is one region that is inside for most blocks."""
        while True:
            try:
                walk = Walk(self)
                walk.run()
                break
            except Again:
                pass
        choose_forms(walk)
        last = walk.ops[-1] if walk.ops else None
        guarded = len(walk.regions) == 1 and last is walk.regions[0] and loops.find_guard(walk, last, True) is not None
        return loops.Writer(self.kernel.name, self.tokens, walk).text(), guarded


class Walk:
    """One walk through the tree, with what is known by now to differ between threads."""

    def __init__(self, splitter):
        self.splitter = splitter
        self.tokens = splitter.tokens
        self.variables = []
        self.regions = []
        self.masks = 0
        self.scopes = [{}]
        self.pending = None
        self.ops = []
        self.returns = False  # a thread may end before others

    def run(self):
        kernel = self.splitter.kernel
        for parameter in kernel.parameters:
            key = ("parameter", parameter.name)
            variable = self.declare(parameter.name, None, "parameter", key)
            variable.type = parameter.type
            variable.scalar = "*" in parameter.type or set(parameter.type.split()) <= scan.BASIC_TYPES | {"const"}
            variable.thread = key in self.splitter.per_thread
        self.scopes.append({})
        self.ops = self.walk(self.splitter.nodes, Context())

    # Names

    def refuse(self, why, token):
        raise Refused(why, token)

    def declare(self, name, token, kind, key, declarator=None):
        variable = Variable(name, token, kind, len(self.variables), key, declarator)
        if declarator is not None:
            variable.scalar = declarator.is_scalar
        self.variables.append(variable)
        self.scopes[-1][name] = variable
        return variable

    def find(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def flat_scope(self):
        flat = {}
        for scope in self.scopes:
            flat.update(scope)
        return flat

    def demote(self, variable):
        self.splitter.per_thread.add(variable.key)
        raise Again

    def is_uniform_name(self, token):
        variable = self.find(token.text)
        if variable is None:
            return token.text in self.splitter.constants
        if variable.kind == "shared":
            return bool(variable.declarator.dims)  # where it is, not what is in it
        return variable.scalar and not variable.thread

    def is_uniform(self, tokens):
        return uses.is_pure(tokens, self.is_uniform_name)

    def has_barrier(self, start, end):
        return any(self.splitter.barriers[start:end])

    def note(self, region, start, end):
        """Takes down which variables tokens[start:end], which every thread executes in the region, use."""
        part = self.tokens[start:end]
        names = self.flat_scope()
        for i, token in enumerate(part):
            variable = names.get(token.text) if uses.is_use(part, i) else None
            if variable is None:
                continue
            region.uses[variable] = variable.uses[region] = True
            self.note_leak(variable, part, i, names)
            tracked = variable.scalar or variable.kind == "parameter"
            known = variable.changed and variable.thread  # else it may have to be made a thread's
            if tracked and not known and uses.may_change(part, i, names):
                if variable.kind in ("parameter", "local") and not variable.thread:
                    self.demote(variable)
                if variable.kind in ("dynamic", "constant"):
                    self.refuse('the address of "%s" is taken' % variable.name, token)
                variable.changed = True

    def note_leak(self, variable, part, i, names):
        """Takes down whether the address of a thread's variable may be kept.  What has members may keep its own."""
        declarator = variable.declarator
        if variable.kind == "parameter" and not variable.scalar and not variable.thread:
            self.demote(variable)
        if variable.kind != "local" or declarator.is_reference:
            return  # what a reference is bound to leaks already
        dims = [token.text for token in declarator.dims]
        plain = declarator.pointer or all(token.text in scan.BASIC_TYPES | {"const"} for token in declarator.base)
        dimensions = sum(dims[k] == "[" and uses.opening(declarator.dims, k) is None for k in range(len(dims)))
        plain = plain or declarator.is_auto
        if not plain or uses.may_leak(part, i, names, dimensions, declarator.is_auto):
            variable.leaks = True

    # Statements

    def walk(self, nodes, context):
        """Gives what becomes of statements in a scope of their own."""
        outer_ops, outer_pending = self.ops, self.pending
        self.ops, self.pending = [], None
        self.scopes.append({})
        for node in nodes:
            self.statement(node, context)
        self.flush()
        self.scopes.pop()
        ops, self.ops, self.pending = self.ops, outer_ops, outer_pending
        return ops

    def flush(self):
        if self.pending is not None:
            self.ops.append(self.pending)
            self.pending = None

    def region(self, context):
        region = Region(len(self.regions), context, self.flat_scope())
        self.regions.append(region)
        return region

    def into_region(self, context):
        if self.pending is None:
            self.pending = self.region(context)
        self.pending.scope = self.flat_scope()
        return self.pending

    def statement(self, node, context):
        if node.kind == "empty":
            return
        if node.kind == "decl":
            self.declaration(node, context)
        elif node.kind == "dynamic":
            self.flush()
            self.declare(node.declarators[0].name.text, node.declarators[0].name, "dynamic", node)
            self.ops.append(Text(loops.join(self.tokens[node.start : node.end])))
        elif node.kind == "outside":
            self.outside(node)
        elif node.kind == "expr" and self.expression(node, context):
            return
        elif node.kind in ("return", "break", "continue") and context.uniform:
            self.flush()
            self.ops.append(Text(node.kind + ";"))
        elif self.is_structure(node, context):
            self.flush()
            self.structure(node, context)
        else:
            if self.has_barrier(node.start, node.end):
                self.refuse("a barrier inside a %s" % node.kind, self.tokens[node.start])
            self.item(node, context)

    def is_structure(self, node, context):
        if self.has_barrier(node.start, node.end):
            return node.kind in ("block", "if", "for", "while", "do")
        leaves = any(jump.target is None or jump.target.start < node.start for jump in node.jumps)
        if not leaves or not context.uniform:
            return False
        if node.kind == "if":
            return node.plain and self.is_uniform(self.tokens[slice(*node.condition)])
        return node.kind == "block"

    def item(self, node, context):
        """A statement that every thread executes by itself."""
        region = self.into_region(context)
        if not region.items:
            region.alone = self.bounded_threads(node)
        region.items.append(node)
        self.note(region, node.start, node.end)
        for jump in node.jumps:
            if jump.kind == "return":
                region.returns = self.returns = True
            elif jump.target.start < node.start:
                loop = context.loop
                assert loop.node is jump.target
                if loop.uniform:
                    self.splitter.masked.add(jump.target)
                    raise Again
                loop.has_continue = loop.has_continue or jump.kind == "continue"

    def bounded_threads(self, node):
        """For `if (threadIdx.x < end) ...` or == : what it is compared with, if that is the same for all."""
        if node.kind != "if" or len(node.children) != 1 or not node.plain:
            return None
        condition = self.tokens[slice(*node.condition)]
        texts = [token.text for token in condition]
        name, rest = None, 3
        if texts[:3] != ["threadIdx", ".", "x"]:
            name, rest = texts[0], 1
        operator, bound = texts[rest : rest + 1], condition[rest + 1 :]
        if operator not in (["<"], ["=="]) or not self.is_uniform(bound):
            return None
        depth = 0
        for token in bound:
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            if depth == 0 and token.text in ("&&", "||", "?", ",", "&", "|", "^", "<", ">", "<=", ">=", "==", "!="):
                return None
        return name, operator[0], bound

    def outside(self, node):
        """A using, typedef or static_assert."""
        part = self.tokens[node.start : node.end]
        for i, token in enumerate(part):
            if uses.is_use(part, i) and self.find(token.text) is not None:
                self.refuse("a type that depends on a variable", token)
            if token.is_word():
                self.splitter.outside_words.add(token.text)
        self.ops.append(Text(loops.join(part)))

    def expression(self, node, context):
        """Takes a barrier, or an assignment to a variable that is the same for all; else false."""
        part = self.tokens[node.start : node.end - 1]
        if self.has_barrier(node.start, node.end):
            if [token.text for token in part] != ["__syncthreads", "(", ")"]:
                self.refuse("a barrier inside an expression", self.tokens[node.start])
            self.flush()
            return True
        if not context.uniform or not self.uniform_step(part):
            return False
        self.flush()
        self.ops.append(Text(loops.join(part) + ";"))
        return True

    def uniform_step(self, part):
        """Whether this is an assignment to a uniform variable of a uniform value; notes that it changes."""
        target = uses.statement_target(part)
        if target is None:
            return False
        variable = self.find(target[0])
        if variable is None or variable.kind not in ("parameter", "local") or variable.thread or not variable.scalar:
            return False
        if not self.is_uniform(target[1]):
            return False
        variable.changed = True
        return True

    # Declarations

    def declaration(self, node, context):
        if self.has_barrier(node.start, node.end):
            self.refuse("a barrier inside a declaration", self.tokens[node.start])
        for declarator in node.declarators:
            if any(token.text == declarator.name.text for token in declarator.init):
                self.refuse('"%s" in its own initializer' % declarator.name.text, declarator.name)
            if "__shared__" in declarator.storage:
                self.shared(declarator)
            elif declarator.storage & {"static", "constexpr"}:
                self.constant(declarator)
            elif context.uniform and self.is_uniform_declaration(declarator):
                self.before_pending(declarator.name.text)
                self.declare(declarator.name.text, declarator.name, "local", declarator, declarator)
                self.ops.append(Text(loops.declare(declarator)))
            else:
                self.private(declarator, node, context)

    def before_pending(self, name):
        """What is declared once goes before the region that is being collected, unless that means another by it."""
        if self.pending is not None and any(variable.name == name for variable in self.pending.uses):
            self.flush()

    def is_uniform_declaration(self, declarator):
        if declarator in self.splitter.per_thread or not declarator.is_scalar or "volatile" in declarator.storage:
            return False
        init = declarator.init
        if not init:
            return not declarator.is_auto and "const" not in declarator.storage
        value = init[1:] if init[0].text == "=" else init[1:-1]
        return len(value) > 0 and value[0].text != "{" and self.is_uniform(value)

    def shared(self, declarator):
        if declarator.init or declarator.is_reference:
            self.refuse("a shared variable with an initializer", declarator.name)
        self.before_pending(declarator.name.text)
        variable = self.declare(declarator.name.text, declarator.name, "shared", declarator, declarator)
        self.ops.append(Text(loops.shared(variable)))

    def constant(self, declarator):
        """static const or constexpr: of numbers, types and constants alone."""
        if "static" in declarator.storage and not declarator.storage & {"const", "constexpr"}:
            self.refuse("a static variable", declarator.name)
        for i, token in enumerate(declarator.init):
            if not uses.is_use(declarator.init, i) or token.text in scan.BASIC_TYPES | {"static_cast", "sizeof"}:
                continue
            known = self.find(token.text)
            if token.text not in self.splitter.constants and (known is None or known.kind != "constant"):
                self.refuse('a constant that depends on "%s"' % token.text, token)
        self.before_pending(declarator.name.text)
        self.declare(declarator.name.text, declarator.name, "constant", declarator, declarator)
        self.splitter.outside_words.add(declarator.name.text)
        storage = "constexpr " if "constexpr" in declarator.storage else "static "
        self.ops.append(Text(storage + loops.declare(declarator)))

    def private(self, declarator, node, context):
        if declarator.storage & {"alignas", "__align__"}:
            self.refuse("an aligned variable", declarator.name)
        if declarator.is_scalar and context.uniform and declarator not in self.splitter.per_thread:
            self.splitter.per_thread.add(declarator)
        region = self.into_region(context)
        start = self.position(node, declarator)
        self.note(region, start, start + len(declarator.init))
        self.note_dims(region, declarator)
        if declarator.is_reference:
            self.pin(declarator)
        variable = self.declare(declarator.name.text, declarator.name, "local", declarator, declarator)
        variable.thread = True
        variable.region = region
        region.scope = self.flat_scope()
        region.items.append(variable)

    def position(self, node, declarator):
        if not declarator.init:
            return node.start
        for i in range(node.start, node.end):
            if self.tokens[i] is declarator.init[0]:
                return i
        raise AssertionError

    def note_dims(self, region, declarator):
        for token in declarator.dims + declarator.base:
            variable = self.find(token.text) if token.is_word() else None
            if variable is not None:
                region.uses[variable] = variable.uses[region] = True

    def pin(self, declarator):
        """What a reference is bound to may change through it."""
        for i, token in enumerate(declarator.init):
            variable = self.find(token.text) if uses.is_use(declarator.init, i) else None
            bracket = uses.opening(declarator.init, i)
            indexes = bracket is not None and declarator.init[bracket].text == "["
            if variable is None:
                continue
            variable.leaks = True
            if not variable.scalar or indexes:
                continue
            if variable.kind in ("parameter", "local") and not variable.thread:
                self.demote(variable)
            variable.changed = True

    # Statements with barriers inside

    def structure(self, node, context):
        if node.kind == "block":
            self.ops.append(Branch("", [self.walk(node.children, context)]))
        elif not node.plain:
            self.refuse("a barrier inside a %s that declares in its condition" % node.kind, self.tokens[node.start])
        elif node.kind == "if":
            self.branch(node, context)
        else:
            self.loop(node, context)

    def branch(self, node, context):
        condition = self.tokens[slice(*node.condition)]
        if self.has_barrier(*node.condition):
            self.refuse("a barrier inside a condition", self.tokens[node.start])
        if context.uniform and self.is_uniform(condition):
            parts = [self.walk([child], context) for child in node.children]
            self.ops.append(Branch("if (%s)" % loops.join(condition), parts))
            return
        region = self.region(context)
        region.condition = node.condition
        self.note(region, *node.condition)
        masks = [self.new_mask() for _ in node.children]
        parts = []
        for mask, child in zip(masks, node.children):
            inner = Context(False, mask, context.chain + (mask,), context.loop)
            parts.append(self.walk([child], inner))
        self.ops.append(MaskedBranch(context, region, masks, parts))

    def new_mask(self):
        self.masks += 1
        return "rill_m%d" % self.masks

    def loop(self, node, context):
        for part in (node.condition, node.increment) + (((node.init.start, node.init.end),) if node.init else ()):
            if self.has_barrier(*part):
                self.refuse("a barrier inside a condition", self.tokens[node.start])
        self.scopes.append({})
        if context.uniform and node not in self.splitter.masked and self.is_uniform_loop(node):
            self.uniform_loop(node, context)
        else:
            self.masked_loop(node, context)
        self.scopes.pop()

    def is_uniform_loop(self, node):
        """Declares what its header declares."""
        if node.init is not None and node.init.kind == "decl":
            for declarator in node.init.declarators:
                if any(token.text == declarator.name.text for token in declarator.init):
                    self.refuse('"%s" in its own initializer' % declarator.name.text, declarator.name)
                if declarator.storage & {"static", "__shared__"} or not self.is_uniform_declaration(declarator):
                    return False
                self.declare(declarator.name.text, declarator.name, "local", declarator, declarator)
        elif node.init is not None and node.init.kind != "empty":
            if node.init.kind != "expr" or not self.are_uniform_steps(node.init.start, node.init.end - 1):
                return False
        return self.is_uniform(self.tokens[slice(*node.condition)]) and self.are_uniform_steps(*node.increment)

    def are_uniform_steps(self, start, end):
        return all(self.uniform_step(part) for part in scan.split_commas(self.tokens[start:end]))

    def uniform_loop(self, node, context):
        condition = loops.join(self.tokens[slice(*node.condition)])
        loop = Loop(node, True, parent=context)
        if node.kind == "for":
            init = loops.join(self.tokens[node.init.start : node.init.end])
            increment = loops.join(self.tokens[slice(*node.increment)])
            loop.header = "for (%s %s; %s)" % (init, condition, increment)
        else:
            loop.header = "while (%s)" % condition
        loop.body = self.walk(node.children, Context(loop=loop, chain=context.chain))
        self.ops.append(loop)

    def masked_loop(self, node, context):
        self.scopes[-1].clear()
        self.ops.append(Text("{"))
        if node.init is not None:
            if node.init.kind == "decl":
                for declarator in node.init.declarators:
                    self.splitter.per_thread.add(declarator)
                self.declaration(node.init, context)
            elif node.init.kind == "expr":
                self.item(node.init, context)
            self.flush()
        loop = Loop(node, False, parent=context, mask=self.new_mask(), body_mask=self.new_mask())
        chain = context.chain + (loop.mask,)
        around = Context(False, loop.mask, chain, loop)
        if node.condition[0] < node.condition[1]:
            loop.condition = self.region(around)
            loop.condition.condition = node.condition
            self.note(loop.condition, *node.condition)
        inside = Context(False, loop.body_mask, chain + (loop.body_mask,), loop)
        loop.body = self.walk(node.children, inside)
        if node.increment[0] < node.increment[1]:
            loop.increment = self.region(around)
            loop.increment.items.append(Node("expr", *node.increment))
            self.note(loop.increment, *node.increment)
        self.ops += [loop, Text("}")]


# What becomes of the variables of a thread


def choose_forms(walk):
    cheap = {variable for variable in walk.variables if variable.thread and is_cheap(variable, walk)}
    walk.cheap = cheap
    more = True
    while more:  # what is computed again needs what it is computed from
        more = False
        for region in walk.regions:
            for variable in [v for v in region.uses if v in cheap and v.region is not region]:
                for other in init_names(variable).values():
                    if other not in region.uses:
                        region.uses[other] = other.uses[region] = more = True
    for variable in walk.variables:
        elsewhere = [region for region in variable.uses if region is not variable.region]
        if not variable.thread:
            continue
        if variable.kind == "local" and not elsewhere and not (variable.leaks and len(walk.regions) > 1):
            variable.form = "here"
        elif variable in cheap and means_the_same(variable, elsewhere):
            variable.form = "again"
        else:
            variable.form = "stored"
            check_type(variable, walk)


def init_names(variable):
    """The variables that a variable's initializer uses, as it was declared."""
    init = variable.declarator.init
    scope = variable.region.scope
    names = [token.text for i, token in enumerate(init) if uses.is_use(init, i)]
    return {name: scope[name] for name in names if name in scope}


def is_cheap(variable, walk):
    """Whether it can be computed again at any time, for less than keeping it costs."""
    declarator = variable.declarator
    if variable.kind != "local" or variable.changed or not variable.scalar or not declarator.init or "volatile" in declarator.storage:
        return False
    value = declarator.init[1:] if declarator.init[0].text == "=" else declarator.init[1:-1]
    names = init_names(variable)

    def allowed(token):
        other = names.get(token.text)
        if other is None:
            return token.text in walk.splitter.constants
        return not other.changed and (other.scalar or (other.kind == "shared" and other.declarator.dims))

    return len(value) < 40 and value and value[0].text != "{" and uses.is_pure(value, allowed, thread_index=True)


def means_the_same(variable, regions):
    """Whether the names of the initializer are the same variables there."""
    names = init_names(variable)
    return all(region.scope.get(name) is names[name] for region in regions for name in names)


def check_type(variable, walk):
    if variable.kind == "parameter":
        return
    declarator = variable.declarator
    if declarator.is_reference:
        raise Refused('the reference "%s" lives across a barrier' % variable.name, variable.token)
    if declarator.is_auto:
        raise Refused('"%s" lives across a barrier and its type is not written' % variable.name, variable.token)
    if "volatile" in declarator.storage:
        raise Refused('the volatile "%s" lives across a barrier' % variable.name, variable.token)
    for token in declarator.base + declarator.dims:
        if token.is_word() and (token.text in walk.splitter.outside_words or token.text in variable.region.scope):
            raise Refused('the type of "%s" depends on what the kernel declares' % variable.name, variable.token)


def split(kernel, constants):
    """Gives the text of a split kernel; raises Refused."""
    return Splitter(kernel, constants).split()[0]


def guard(kernel, constants):
    """The same for a kernel without barriers; None if that is no better than a loop over the whole kernel."""
    try:
        text, guarded = Splitter(kernel, constants).split()
    except Refused:
        return None
    return text if guarded else None
