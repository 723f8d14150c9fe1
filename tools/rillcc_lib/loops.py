"""Writes a kernel that split.py has cut into regions, as C++: rill/device/host_split.h has what it uses."""

from .guard import INTEGERS, Finder
from .tree import Node


def join(tokens):
    return " ".join(token.text for token in tokens)


def declare(declarator, name=None, init=None):
    """A declaration of one name."""
    name = name or declarator.name.text
    init = declarator.init if init is None else init
    parts = [join(declarator.base), join(declarator.pointer), name, join(declarator.dims), join(init)]
    return " ".join(part for part in parts if part) + ";"


def take_alignas(tokens):
    """The alignas of a declaration, which has to stand in front of all else, and the other words."""
    first, rest, depth = [], [], 0
    for i, token in enumerate(tokens):
        inside = depth > 0 or token.text == "alignas" or (i > 0 and tokens[i - 1].text == "alignas")
        if inside:
            depth += (token.text == "(") - (token.text == ")")
        (first if inside else rest).append(token)
    return join(first), rest


def shared(variable):
    """Its address is found once, not at each use."""
    name = "rill_s%d" % variable.number
    declarator = variable.declarator
    first, base = take_alignas(declarator.base)
    parts = [first, "__shared__", join(base), join(declarator.pointer), name, join(declarator.dims)]
    return "%s; auto &%s = %s;" % (" ".join(part for part in parts if part), variable.name, name)


def find_guard(walk, region, may_return):
    if any(isinstance(item, Node) and item.kind != "if" for item in region.items[:1]):
        return None
    if not all(variable.form in ("here", "again") for variable in region.items if not isinstance(variable, Node)):
        return None
    return Finder(region, walk).find(may_return)


class Writer:
    def __init__(self, name, tokens, walk):
        self.name = name
        self.tokens = tokens
        self.walk = walk
        self.stored = [variable for variable in walk.variables if variable.form == "stored"]
        self.out = []
        self.may_have_ended = False  # some threads, where we write
        self.last = self.last_region(walk.ops)
        self.lives = any(region.returns and region is not self.last for region in walk.regions)
        self.types = "rill_split_types_%s" % name

    @staticmethod
    def last_region(ops):
        """The region after which nothing comes on any way."""
        last = ops[-1] if ops else None
        return last if type(last).__name__ == "Region" else None

    def put(self, *lines):
        self.out.extend(lines)

    # The whole

    def text(self):
        self.put_types()
        parameters = ["%s %s" % (p.type, p.name) for p in self.walk.splitter.kernel.parameters]
        hidden = ["[[maybe_unused]] const uint3 blockIdx", "[[maybe_unused]] const dim3 blockDim"]
        hidden += ["[[maybe_unused]] const dim3 gridDim", "[[maybe_unused]] void *const rill_dynamic_shared"]
        self.put("static __forceinline__ void rill_split_%s(%s) {" % (self.name, ", ".join(hidden + parameters)))
        for variable in self.stored:
            self.put("alignas(64) %s::v%d rill_v%d[RILL_SPLIT_THREADS];" % (self.types, variable.number, variable.number))
        for number in range(1, self.walk.masks + 1):
            self.put("unsigned char rill_m%d[RILL_SPLIT_THREADS];" % number)
        changed = [variable for variable in self.stored if variable.kind == "parameter"]
        self.put("const ptrdiff_t rill_threads = rill_split_threads(blockDim);")
        if self.lives:
            self.put("unsigned char rill_live[RILL_SPLIT_THREADS];", "ptrdiff_t rill_left = rill_threads;")
            self.put("rill_split_set(rill_live, nullptr, rill_threads);")
        if changed:
            copies = ["rill_v%d[t] = %s;" % (variable.number, variable.name) for variable in changed]
            self.put("for (ptrdiff_t t = 0; t < rill_threads; t++) { %s }" % " ".join(copies))
        self.put_ops(self.walk.ops)
        self.put("}")
        return " ".join(self.out)

    def put_types(self):
        """What is kept for each thread; and the compiler's word that it can be."""
        self.put("struct %s {" % self.types)
        sizes, plain = ["0"], ["true"]
        for variable in self.stored:
            written = variable.type
            if variable.declarator is not None:
                d = variable.declarator
                written = " ".join(filter(None, (join(d.base), join(d.pointer), join(d.dims))))
            self.put("using v%d = std::remove_cv_t<%s>;" % (variable.number, written))
            sizes.append("sizeof(v%d)" % variable.number)
            plain.append("rill_split_is_plain<v%d>" % variable.number)
        self.put("static_assert(%s <= RILL_SPLIT_BYTES, " % " + ".join(sizes))
        self.put('"rill_split_%s: its variables are large");' % self.name)
        self.put('static_assert(%s, "rill_split_%s: a variable has constructors");' % (" && ".join(plain), self.name))
        self.put("};")

    # Statements around regions

    def put_ops(self, ops):
        for op in ops:
            getattr(self, "put_" + type(op).__name__.lower())(op)

    def put_text(self, op):
        self.put(op.text)

    def put_branch(self, op):
        ended = self.may_have_ended
        for i, part in enumerate(op.parts):
            before, self.may_have_ended = self.may_have_ended, ended
            self.put("else {" if i > 0 else op.condition + " {")
            self.put_ops(part)
            self.put("}")
            self.may_have_ended = before or self.may_have_ended

    def put_loop(self, loop):
        if self.has_return(loop.body):
            self.may_have_ended = True  # the second time around
        if loop.uniform:
            if loop.node.kind == "do":
                self.put("do {")
                self.put_ops(loop.body)
                self.put("} %s;" % loop.header)
            else:
                self.put(loop.header + " {")
                self.put_ops(loop.body)
                self.put("}")
            return
        self.put("rill_split_set(%s, %s, rill_threads);" % (loop.mask, self.mask_of(loop.parent) or "nullptr"))
        self.put("for (;;) {")
        if loop.node.kind != "do":
            self.put_loop_condition(loop)
        self.put("rill_split_set(%s, %s, rill_threads);" % (loop.body_mask, loop.mask))
        self.put_ops(loop.body)
        if loop.increment is not None:
            self.put_region(loop.increment)
        if loop.node.kind == "do":
            self.put_loop_condition(loop)
        self.put("}")

    def put_loop_condition(self, loop):
        if loop.condition is None:
            self.put("if (!rill_split_any(%s, rill_threads)) break;" % loop.mask)
            return
        region = loop.condition
        self.put("{ bool rill_any = false;")
        self.open_threads(region)
        self.put("if (!%s[rill_t]) continue;" % loop.mask)
        self.put_names(region)
        self.put("const bool rill_c = static_cast<bool>(%s);" % join(self.tokens[slice(*region.condition)]))
        self.put("%s[rill_t] = rill_c; rill_any |= rill_c;" % loop.mask)
        self.close_threads()
        self.put("if (!rill_any) break; }")

    def put_maskedbranch(self, op):
        region = op.condition
        names = ["rill_any%d" % i for i in range(len(op.masks))]
        self.put("{ bool %s;" % ", ".join(name + " = false" for name in names))
        self.open_threads(region)
        for mask in op.masks:
            self.put("%s[rill_t] = 0;" % mask)
        parent = self.mask_of(op.parent)
        if parent:
            self.put("if (!%s[rill_t]) continue;" % parent)
        self.put_names(region)
        self.put("const bool rill_c = static_cast<bool>(%s);" % join(self.tokens[slice(*region.condition)]))
        for mask, name, value in zip(op.masks, names, ("rill_c", "!rill_c")):
            self.put("%s[rill_t] = %s; %s |= %s;" % (mask, value, name, value))
        self.close_threads()
        ended = self.may_have_ended
        for name, part in zip(names, op.parts):
            self.put("if (%s) {" % name)
            self.put_ops(part)
            self.put("}")
            ended = ended or self.may_have_ended
        self.may_have_ended = ended
        self.put("}")

    def has_return(self, ops):
        for op in ops:
            kind = type(op).__name__
            if kind == "Region" and op.returns:
                return True
            if kind in ("Branch", "MaskedBranch") and any(self.has_return(part) for part in op.parts):
                return True
            if kind == "Loop" and self.has_return(op.body):
                return True
        return False

    def mask_of(self, context):
        if context.mask:
            return context.mask
        return "rill_live" if self.lives and self.may_have_ended else ""

    # Regions

    @staticmethod
    def does_nothing(region):
        """Whether it only declares what is computed elsewhere."""
        return all(
            not isinstance(item, Node) and (item.form == "again" or (item.form == "stored" and not item.declarator.init))
            for item in region.items
        )

    def put_region(self, region):
        if self.does_nothing(region):
            return
        mask = self.mask_of(region.context)
        if mask == "rill_live":
            # Mostly all threads are there, and then nothing need be looked up.
            self.put("if (rill_left == rill_threads) {")
            self.put_threads(region, "")
            self.put("} else {")
            self.put_threads(region, mask)
            self.put("}")
        else:
            self.put_threads(region, mask)
        if region.returns and region is not self.last:
            self.put("if (rill_left == 0) return;")
            self.may_have_ended = True

    def put_guarded(self, region, guard):
        """First the ends of each row are asked whether they are inside."""
        self.put("for (unsigned rill_z = 0; rill_z < blockDim.z; rill_z++)")
        self.put("for (unsigned rill_y = 0; rill_y < blockDim.y; rill_y++) {")
        self.put("bool rill_inside = true;")
        for k in range(len(guard.indices)):
            self.put("long long rill_from%d = 0;" % k)
        self.put("for (unsigned rill_x = 0;; rill_x = blockDim.x - 1) {")
        self.put_thread()
        self.put_names(region)
        for variable in guard.before:
            self.put("[[maybe_unused]]", declare(variable.declarator))
        self.put("rill_inside = rill_inside && %s(%s);" % ("!" if guard.inverse else "", join(guard.condition)))
        for k, name in enumerate(guard.indices):
            self.put("const long long rill_at%d = static_cast<long long>(%s);" % (k, name))
            self.put("if (rill_x == 0) rill_from%d = rill_at%d;" % (k, k))
            self.put("rill_inside = rill_inside && rill_at%d >= 0 && rill_at%d - rill_from%d == rill_x;" % (k, k, k))
        self.put("if (rill_x == blockDim.x - 1) break;", "}")
        for inside in (True, False):
            self.put("if (rill_inside) {" if inside else "} else {")
            self.put("for (unsigned rill_x = 0; rill_x < blockDim.x; rill_x++) {")
            self.put_thread()
            self.put_names(region)
            self.put_items(region, guard.before + guard.inside if inside else region.items)
            self.put("}")
        self.put("}", "}")

    def put_items(self, region, items):
        self.put("{")
        self.jumped = False
        for item in items:
            self.put_item(region, item)
        self.put("}")
        if self.jumped:
            label = "rill_next%d_%d" % (region.number, len(self.out))
            self.put(label + ":;")
            self.out = [text.replace("rill_next_here", label) for text in self.out]

    def put_threads(self, region, mask):
        trimmed = self.trim(region)
        guard = self.guard(region) if not mask and not trimmed else None
        if guard is not None:
            self.put_guarded(region, guard)
            return
        item = region.items[0]
        if trimmed:
            self.put("{ %s" % trimmed[0])
        self.open_threads(region, *(trimmed[1:3] if trimmed else ()))
        if mask:
            self.put("if (!%s[rill_t]) continue;" % mask)
        self.put_names(region)
        self.put_items(region, item.children if trimmed else region.items)
        self.close_threads()
        if trimmed:
            self.put("}")

    def guard(self, region):
        return find_guard(self.walk, region, region is self.last and not self.lives)

    def trim(self, region):
        """For a region that is nothing but `if (threadIdx.x < end) ...`: how to run only the threads that it is for.
        Gives the declarations, the first thread and the end."""
        if region.alone is None or len(region.items) != 1 or not isinstance(region.items[0], Node):
            return None
        name, operator, bound = region.alone
        kind = "unsigned"
        if name is not None:
            variable = region.scope.get(name)
            if variable is None or variable.form != "again":
                return None
            init = variable.declarator.init
            words = [token.text for token in variable.declarator.base]
            if [t.text for t in init] != ["=", "threadIdx", ".", "x"] or not set(words) <= INTEGERS:
                return None
            kind = "unsigned" if "auto" in words else " ".join(words)
        function = {"<": "rill_split_below", "==": "rill_split_at"}[operator]
        text = "const rill_split_range rill_r = %s<%s>(blockDim.x, %s);" % (function, kind, join(bound))
        return text, "rill_r.first", "rill_r.end"

    def open_threads(self, region, first="0", end="blockDim.x"):
        self.put("for (unsigned rill_z = 0; rill_z < blockDim.z; rill_z++)")
        self.put("for (unsigned rill_y = 0; rill_y < blockDim.y; rill_y++)")
        self.put("for (unsigned rill_x = %s, rill_end = %s; rill_x < rill_end; rill_x++) {" % (first, end))
        self.put_thread()

    def put_thread(self):
        self.put("[[maybe_unused]] const uint3 threadIdx = { rill_x, rill_y, rill_z };")
        self.put("[[maybe_unused]] const ptrdiff_t rill_t =")
        self.put("(static_cast<ptrdiff_t>(rill_z) * blockDim.y + rill_y) * blockDim.x + rill_x;")
        self.put("rill_host_enter_thread(threadIdx);")

    def close_threads(self):
        self.put("}")

    def put_names(self, region):
        """What the region calls by the kernel's names, but for what it declares itself."""
        for variable in sorted(region.uses, key=lambda v: v.number):
            if variable.region is region or not variable.thread:
                continue
            if variable.form == "again":
                self.put("[[maybe_unused]]", declare(variable.declarator))
            else:
                self.put(self.reference(variable))

    def reference(self, variable):
        const = "const " if self.is_const(variable) else ""
        number = variable.number
        return "[[maybe_unused]] %s%s::v%d &%s = rill_v%d[rill_t];" % (const, self.types, number, variable.name, number)

    @staticmethod
    def is_const(variable):
        if variable.declarator is None:
            return False
        texts = [token.text for token in variable.declarator.pointer]
        last = "".join(texts).rpartition("*")[2] if "*" in texts else ""
        if "*" in texts:
            return "const" in last
        return "const" in [token.text for token in variable.declarator.base]

    def put_item(self, region, item):
        if isinstance(item, Node):
            self.put_node(region, item)
        elif item.form != "stored":
            self.put(declare(item.declarator))
        else:
            self.put_stored(item)

    def put_stored(self, variable):
        if variable.declarator.init:
            written = declare(variable.declarator, "rill_init")
            self.put("{ %s rill_split_store(rill_v%d[rill_t], rill_init); }" % (written, variable.number))
        self.put(self.reference(variable))

    def put_node(self, region, node):
        """The source's text, with jumps out of the region replaced."""
        jumps = {jump.start: jump for jump in node.jumps if jump.target is None or jump.target.start < node.start}
        i = node.start
        while i < node.end:
            if i in jumps:
                self.put(self.leave(region, jumps[i]))
                i = jumps[i].end
            else:
                self.put(self.tokens[i].text)
                i += 1
        if node.kind == "expr" and self.tokens[node.end - 1].text != ";":
            self.put(";")

    def leave(self, region, jump):
        self.jumped = True
        chain = list(region.context.chain)
        loop = region.context.loop
        clear = []
        if jump.kind == "return":
            clear = chain
            if self.lives and region is not self.last:
                clear = chain + ["rill_live"]
        elif jump.kind == "break":
            clear = chain[chain.index(loop.mask) :]
        else:
            clear = chain[chain.index(loop.body_mask) :]
        text = " ".join("%s[rill_t] = 0;" % mask for mask in clear)
        if jump.kind == "return" and self.lives and region is not self.last:
            text += " rill_left--;"
        return "{ %s goto rill_next_here; }" % text
