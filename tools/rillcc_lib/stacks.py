"""Computes how much stack each kernel needs on the CPU, from the frame sizes that the compiler reports and the call
graph.

The frame sizes come from -fstack-usage (clang) or -fcallgraph-info=su (gcc, because its -fstack-usage does not print
the names that the linker sees). The call graph is read from the assembly, which has the same form for both compilers. A
function needs its own frame and the largest need of the functions that it calls or whose address it takes. RESERVE
covers functions of other libraries and calls through pointers whose targets are not visible. If they need more, the
guard page of the stack stops them.
"""

import re

from .errors import RillccError

LIMIT = 8 << 20
# The constants of rill/device/cpu_image.h. An image has the lowest version that includes all of its features.
MAGIC, VERSION, CHECKED_VERSION, FACTS_VERSION, CHECKS = 0x43504C52, 4, 9, 8, 1
RESERVE = 16 << 10  # for functions of the C library and of rill
FRAME = 128  # not included in the reported sizes: return addresses, saved registers, alignment

GCC_NODE = re.compile(r'^node: \{ title: "(?:[^":]*:)?([\w.$]+)" label: "([^"]*)\\n(\d+) bytes \(([\w,]+)\)', re.M)
CLANG_LINE = re.compile(r"^.*:([\w.$]+)\t(\d+)\t(\S+)$", re.M)
FUNCTION = re.compile(r"^\s*\.type\s+([\w.$]+),\s*[@%]function", re.M)
ALIAS = re.compile(r"^\s*\.set\s+([\w.$]+),\s*([\w.$]+)\s*$", re.M)  # another name of a function, after identical functions were merged
OBJECT_SIZE = re.compile(r"^\s*\.size\s+([\w.$]+),\s*(\d+)\s*$", re.M)
LABEL = re.compile(r'"?([\w.$]+)"?:')
SECTION = re.compile(r"\s*\.(text|data|bss|section\s+\"?([\w.$-]+))")
CALL = re.compile(r"\s+(?:callq?|bl)\s+\*?([\w.$]+)")
ENTRY = re.compile(r'^"?[\w.$]*?rill_entry_([\w.$]+)"?:', re.M)
WORD = re.compile(r"[A-Za-z_.$][\w.$]*")
NO_REFERENCE = re.compile(r"\s*\.(?!quad|xword|8byte|long|word|4byte)")  # all directives except those that define data

# rill_cpu_image_table; a section lists the kernels, which register themselves there (rill/device/host_kernels.h).
IMAGE = """
\t.hidden __start_rill_kernels
\t.section .data.rel.ro.rill_image,"aw"
\t.balign 8
\t.globl rill_cpu_image
\t.type rill_cpu_image, %%object
\t.size rill_cpu_image, 56
rill_cpu_image:
\t.long 0x%x, %d
\t.quad __start_rill_kernels, rill_cpu_variables
\t.long %d, %d
\t.quad %s, %d, %s
"""
VARIABLE = """
\t.section .rodata.rill_names,"a"
1:\t.string "%s"
\t.section .data.rel.ro.rill_variables,"aw"
\t.quad 1b, %s, %d
"""


class Symbol:
    """A function, or an object in data, which may hold addresses of functions."""

    def __init__(self):
        self.size = 0
        self.is_function = False
        self.bounded = True
        self.text = ""
        self.calls = set()
        self.uses = set()  # all references, including calls


def read(assembly, sizes):
    """Returns the symbols of a program by name."""
    functions = set(FUNCTION.findall(assembly))
    aliases = dict(ALIAS.findall(assembly))
    symbols = {}
    current, in_code = Symbol(), True
    for line in assembly.splitlines():
        section, label, call = SECTION.match(line), LABEL.match(line), CALL.match(line)
        if section:
            in_code = (section.group(2) or section.group(1)).lstrip(".").startswith("text")
        elif label and (label.group(1) in functions or not in_code):
            current = symbols.setdefault(function_of(label.group(1)), Symbol())
            current.is_function |= label.group(1) in functions
        elif not label and not NO_REFERENCE.match(line):
            current.uses.update(WORD.findall(line))
            if call:
                current.calls.add(call.group(1))
    for symbol in symbols.values():
        symbol.uses = {aliases.get(name, name) for name in symbol.uses} & symbols.keys()
        symbol.calls = {aliases.get(name, name) for name in symbol.calls} & symbols.keys()
    gcc = [(name, size, kind, text) for name, text, size, kind in GCC_NODE.findall(sizes)]
    for name, size, kind, text in gcc or [(name, size, kind, "") for name, size, kind in CLANG_LINE.findall(sizes)]:
        symbol = symbols.setdefault(function_of(name), Symbol())
        symbol.size = max(symbol.size, int(size) + FRAME)
        symbol.bounded = symbol.bounded and kind != "dynamic"
        symbol.text = text.partition("\\n")[0]
    return symbols


def function_of(name):
    """Returns the name of the function to which a symbol belongs: the symbol may be its cold part."""
    return re.sub(r"\.cold(\.\d+)?$", "", name)


def say(name, symbol):
    """Returns a function's name as in the source, if it is known."""
    return symbol.text if symbol.text.endswith(")") else readable(name)


def readable(name):
    """Returns the names in a mangled name, separated by "::"."""
    return "::".join(names_and_rest(name)[0]) or name


def is_instance(name):
    """Returns whether a mangled name is of an instance or a specialization of a template."""
    return names_and_rest(name)[1].startswith("I")


def names_and_rest(name):
    """Returns the names in a mangled name, and the text after them. After a name that is in no namespace, this text
    consists of types."""
    parts, nested = [], name.startswith("_ZN")
    rest = re.sub(r"^_ZN?[KL]*", "", name)
    while (nested or not parts) and (match := re.match(r"(\d+)", rest)):
        end = match.end() + int(match.group(1))
        parts.append(rest[match.end() : end])
        rest = rest[end:].lstrip("L")
    return parts, rest


def components(symbols, root):
    """Returns the strongly connected components of the symbols that `root` reaches, callees first (Tarjan's algorithm)."""
    numbers, low, waiting, found = {}, {}, [], []
    work = [(root, iter(sorted(symbols[root].uses)))]
    numbers[root] = low[root] = 0
    waiting.append(root)
    while work:
        name, rest = work[-1]
        for used in rest:
            if used not in numbers:
                numbers[used] = low[used] = len(numbers)
                waiting.append(used)
                work.append((used, iter(sorted(symbols[used].uses))))
                break
            if used in waiting:
                low[name] = min(low[name], numbers[used])
        else:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[name])
            if low[name] == numbers[name]:
                at = waiting.index(name)
                found.append(waiting[at:])
                del waiting[at:]
    return found


def need(symbols, root, kernel):
    """Returns the bytes of stack that a function of a kernel needs; refuses the kernel if they have no bound."""

    def refuse(name, why):
        where = "" if name == root else 'function "%s": ' % say(name, symbols[name])
        raise RillccError('kernel "%s" cannot run on the cpu: %s%s' % (kernel.name, where, why), kernel.file, kernel.line)

    needs = {}
    for group in components(symbols, root):
        for name in group:
            if not symbols[name].bounded:
                refuse(name, "its stack frame has no fixed size, because of alloca or an array whose size is known only at run time")
            if any(called in group for called in symbols[name].calls):
                refuse(name, "it calls itself, possibly through other functions, so its stack use has no bound")
        below = [needs[used] for name in group for used in symbols[name].uses if used not in group]
        total = sum(symbols[name].size for name in group) + max(below, default=0)
        needs.update(dict.fromkeys(group, total))
    if needs[root] + RESERVE > LIMIT:
        refuse(root, "it needs %d bytes of stack, and the limit is %d: one of its arrays is too large"
               % (needs[root] + RESERVE, LIMIT))
    return needs[root] + RESERVE


def refuse_recursion(symbols, kernel):
    """Refuses recursion in kernels that are not compiled for the CPU. GPUs have little stack, and the depth of the
    recursion is unknown there too."""
    for form in find_forms(symbols, kernel):
        for group in components(symbols, form):
            for name in group:
                if any(called in group for called in symbols[name].calls):
                    text = 'kernel "%s": function "%s" calls itself, possibly through other functions: kernels do not support recursion'
                    raise RillccError(text % (kernel.name, say(name, symbols[name])), kernel.file, kernel.line)


def body_of(kernel):
    """Returns the part that is common to the mangled names of all functions that rill's headers define for a kernel."""
    return "%drill_body_%s" % (len("rill_body_" + kernel.name), kernel.name)


def functions_of(names, kernel):
    body = body_of(kernel)
    return [name for name in names if body in name]


def find_forms(symbols, kernel):
    """Returns the functions that the library may call for a kernel: those for complete blocks, if there are any."""
    names = [name for name in functions_of(symbols, kernel) if symbols[name].is_function]
    blocks = [name for name in names if re.search(r"\drun_block(?![a-z_])", name)]
    return blocks or [name for name in names if "10run_thread" in name]


def table(kernels, assembly, sizes, arrays=None, facts=None):
    """Returns assembly with the stack sizes of all kernels, in the order of the image's table, followed by the image's
    table. The stack sizes are left out if the compiler does not report frame sizes. `arrays` has the bytes of the
    arrays that rillcc allocates for the threads of a block and whose size is unknown at compile time, so that the
    compiler does not count them. `facts` maps kernels to what the table says of them.
    rill/device/cpu_image.h describes the format."""
    symbols = read(assembly, sizes)
    names = ENTRY.findall(assembly)
    if all(symbol.size == 0 for symbol in symbols.values()):
        return image(assembly, names, "0", facts)
    for kernel in kernels:
        for form in find_forms(symbols, kernel) if kernel.name in (arrays or {}) else ():
            if not symbols[form].bounded:
                symbols[form].size += arrays[kernel.name]
                symbols[form].bounded = True
    order = {name: i for i, name in enumerate(names)}
    kernels = sorted(kernels, key=lambda kernel: order.get(kernel.name, len(order)))
    needs = [max([need(symbols, form, kernel) for form in find_forms(symbols, kernel)], default=0) for kernel in kernels]
    words = "".join("\t.quad %d\n" % number for number in [len(needs)] + needs)
    text = '\t.section .rodata.rill_stacks,"a"\n\t.balign 8\nrill_cpu_stacks:\n' + words
    return text + image(assembly, names, "rill_cpu_stacks", facts)


def variables(assembly):
    """Returns (name, size) of each variable that the host may look up: variables of the source that are neither static
    nor constant."""
    sizes = dict(OBJECT_SIZE.findall(assembly))
    found, section = [], ""
    for line in assembly.splitlines():
        start, label = SECTION.match(line), LABEL.match(line)
        if start:
            section = "." + (start.group(2) or start.group(1)).lstrip(".")
        elif label and label.group(1) in sizes and re.match(r"\.(data|bss)(?!\.rel\.ro)", section):
            name = label.group(1)
            if name.isidentifier() and not name.startswith(("_", "rill_")):
                found.append((name, int(sizes[name])))
    return found


def image(assembly, kernels, stacks, known):
    """Returns the list of the image's variables, the facts about its kernels, and the image's table. `kernels` has the
    names of the kernels in order."""
    found = variables(assembly)
    text = '\t.section .data.rel.ro.rill_variables,"aw"\n\t.balign 8\nrill_cpu_variables:\n'
    text += "".join(VARIABLE % (name, name, size) for name, size in found)
    facts = [(known or {}).get(name, 0) for name in kernels]
    version, flags = (CHECKED_VERSION, CHECKS) if "__tsan_init" in assembly else (VERSION, 0)
    place = "0"
    if any(facts):
        version, place = max(version, FACTS_VERSION), "rill_cpu_facts"
        text += '\t.section .rodata.rill_facts,"a"\nrill_cpu_facts:\n' + "".join("\t.byte %d\n" % fact for fact in facts)
    return text + IMAGE % (MAGIC, version, len(kernels), len(found), stacks, flags, place)
