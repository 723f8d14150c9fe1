"""Adds instances of kernel templates that the source itself does not request: instances of a list (--instances), and
instances to which the object files of a program refer (--instances-of). Each becomes a RILL_KERNEL_INSTANCE at the end
of the source that the compilers read."""

import dataclasses
import re
import sys
from dataclasses import dataclass, field

from . import messages, objects, stacks, templates
from .errors import RillccError

# A function that rillcc's header declares for each kernel template, and that the C file defines for each instance.
FUNCTION = "rill_instance_"
DEMANGLED = re.compile(r"rill_kernel_ref\s*\*\s*(?P<space>(?:\w+::)*)%s(?P<name>\w+)(?P<arguments><.*>)\(\)" % FUNCTION)
WITHOUT_NAME = re.compile(r"\{lambda|\{unnamed|'lambda|'unnamed|\(anonymous namespace\)")
NAMED = re.compile(r"((?:::)?(?:\w+::)*(\w+))\s*(<.*>)")
WRITE = "write NAME<arguments>, or name = NAME<arguments>"


@dataclass
class Instance:
    """A requested instance."""

    spelling: str
    name: str  # in C
    file: str  # the list, or the first object that refers to it
    line: int  # in the list; for an object, the number of the instance
    of_object: bool = False
    symbols: set = field(default_factory=set)  # the symbols by which objects refer to it

    def place(self):
        return self.file if self.of_object else "%s:%d" % (self.file, self.line)

    def mark(self):
        """Returns (file, line) for compilers. An object has no lines, so its file gets a suffix that keeps compilers
        from showing any."""
        return (self.file + " (instances)", self.line) if self.of_object else (self.file, self.line)

    def function(self, prefix):
        """Returns the instance of FUNCTION for this instance, in C++ notation, or "" if there is none."""
        found = NAMED.fullmatch(self.spelling)
        return found.group(1)[: -len(found.group(2))] + FUNCTION + prefix + found.group(2) + found.group(3) if found else ""

    def template(self):
        found = NAMED.match(self.spelling)
        return found.group(1).lstrip(":") if found else ""


def c_name(spelling):
    """Returns a name in C for an instance: scale_float_4 for ns::scale<float, 4>."""
    found = NAMED.fullmatch(spelling)
    text = found.group(2) + found.group(3) if found else spelling
    text = re.sub(r"\*(?=\s*(?:[,>*&)]|const\b))", " ptr ", text).replace("&", " ref ").replace("-", " minus ")
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")


# Lists


def read_line(text, file, number):
    """Returns the instance on a line, or None if the line has none."""
    text = re.sub(r"//.*|(^|\s)#.*", "", text).strip()
    if not text:
        return None
    name, _, spelling = text.partition("=")
    if re.fullmatch(r"[A-Za-z_]\w*\s*", name) and spelling and spelling[0] != "=":
        name, spelling = name.strip(), spelling.strip()
    else:
        name, spelling = "", text
    if not is_balanced(spelling):
        raise RillccError("%s: its brackets do not match" % text, file, number)
    if re.search(r"[;{}\"\\]", spelling) or not (name or NAMED.fullmatch(spelling)):
        raise RillccError("%s does not name an instance of a template: %s" % (text, WRITE), file, number)
    return Instance(spelling, name or c_name(spelling), file, number)


def is_balanced(text):
    """Returns whether all brackets match; between other brackets, < and > may be operators."""
    opened = []
    for c in re.sub(r"->|<=|>=|<<|'[^']*'", "", text):
        if c in "([" or (c == "<" and opened[-1:] in ([], ["<"])):
            opened.append(c)
        elif c in ")]" or (c == ">" and opened[-1:] in ([], ["<"])):
            if opened[-1:] != [{")": "(", "]": "[", ">": "<"}[c]]:
                return False
            opened.pop()
    return not opened


def read_list(path):
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError) as error:
        raise RillccError("cannot read %s: %s" % (path, getattr(error, "strerror", None) or "it is not a text file")) from error
    found = [read_line(line, path, number) for number, line in enumerate(lines, 1)]
    return [instance for instance in found if instance]


def read_lists(paths):
    """Returns the instances of all lists, each with a different name."""
    found = {}
    for instance in (instance for path in paths for instance in read_list(path)):
        other = found.setdefault(instance.name, instance)
        if other is not instance:
            refuse_same_name(instance, other)
    return list(found.values())


def refuse_same_name(instance, other):
    if "".join(instance.spelling.split()) == "".join(other.spelling.split()):
        why = "%s is already in %s" % (instance.spelling, other.place())
    else:
        why = '"%s" is already the name of %s in %s: begin the line with another name (name = %s)'
        why %= (instance.name, other.spelling, other.place(), instance.spelling)
    raise RillccError(why, instance.file, instance.line)


# Objects


def read_objects(paths, prefix):
    """Returns the instances to which objects refer."""
    by_spelling, found = {}, objects.undefined(paths, FUNCTION)
    for symbol, said in zip(found, objects.demangle(found)):
        match = DEMANGLED.fullmatch(said)
        if not match or not match.group("name").startswith(prefix):
            continue
        spelling = match.group("space") + match.group("name")[len(prefix) :] + match.group("arguments")
        new = Instance(spelling, c_name(spelling), found[symbol], len(by_spelling) + 1, True)
        by_spelling.setdefault(spelling, new).symbols.add(symbol)
    return list(by_spelling.values())


def choose(of_objects, known, kernels, taken):
    """Returns (instances that the source lacks, each with a different name; symbols by which objects refer to kernels
    that the source already has, by the kernel's name)."""
    there = list(zip(objects.demangle(kernel.symbol for kernel in kernels), kernels))
    chosen, functions = [], {}
    for instance in of_objects:
        if len(known.of(instance.template())) != 1:
            continue  # it belongs to another source
        name = next((kernel.name for said, kernel in there if said.startswith("void %s(" % instance.spelling)), None)
        if name:
            functions[name] = instance.symbols
            continue
        if WITHOUT_NAME.search(instance.spelling):
            why = "it refers to %s, which a kernel source cannot name: use a struct with operator() as the argument"
            raise RillccError(why % instance.spelling, instance.file)
        stem, number = instance.name, 2
        while instance.name in taken:
            instance.name = "%s_%d" % (stem, number)
            number += 1
        taken.add(instance.name)
        chosen.append(instance)
    return chosen, functions


# Additions to the source


def add_all(host, unit):
    """Adds the instances of lists and objects to a source. Returns the new contents of the source, and by the kernel's
    name, the symbols of the functions through which programs refer to it."""
    options, known, functions = host.toolchain.options, host.kernels, {}
    listed, taken = read_lists(options.instances), names_of_source(unit)
    for instance in listed:
        if instance.name in taken:
            why = 'the source already has a kernel "%s": begin the line with another name (name = %s)'
            raise RillccError(why % (instance.name, instance.spelling), instance.file, instance.line)
    if listed:
        with_function = [i for i in listed if i.function("") and len(known.of(i.template())) == 1]
        unit = host.add(listed, lines(listed) + addresses(with_function, known, options.prefix))
        refuse_twice(listed, unit.kernels)
        functions = {instance.name: {symbol} for instance, symbol in zip(with_function, unit.asked)}
    if options.instances_of:
        taken |= {instance.name for instance in listed}
        chosen, of_kernels = choose(read_objects(options.instances_of, options.prefix), known, unit.kernels, taken)
        if chosen:
            unit = host.add(chosen, lines(chosen))
        for name, symbols in [*of_kernels.items(), *((instance.name, instance.symbols) for instance in chosen)]:
            functions[name] = functions.get(name, set()) | symbols
    return unit, functions


def place_at_templates(host, unit):
    """Makes messages about instances name the place of the template instead of the line that requests the instance."""
    added = {instance.name for instance in host.added}
    for kernel in unit.kernels:
        known = host.kernels.of(stacks.readable(kernel.symbol))
        if kernel.name in added and known:
            kernel.file, kernel.line = known[0].file, known[0].line


def names_of_source(unit):
    return {kernel.name for kernel in unit.kernels} | {stacks.readable(symbol).rpartition("::")[2] for symbol in unit.plain}


def line_directive(instance):
    file, line = instance.mark()
    return '\n#line %d "%s"\n' % (line, file.replace("\\", "\\\\").replace('"', '\\"'))


def lines(chosen):
    """Returns the lines that are added at the end of the source."""
    return "".join("%sRILL_KERNEL_INSTANCE(%s, %s);\n" % (line_directive(i), i.name, i.spelling) for i in chosen)


def addresses(chosen, known, prefix):
    """Returns declarations of the functions through which programs refer to instances. They are compiled only to record
    the contents of the source, which includes the symbols of these functions."""
    if not chosen:
        return ""
    asked = {template.qualified(): template for i in chosen for template in known.of(i.template())}
    declared = [" ".join(declaration(template, prefix, with_defaults=True)) for template in asked.values()]
    values = "".join("%s&%s," % (line_directive(i), i.function(prefix)) for i in chosen)
    text = "#if RILL_NOTES\nstruct rill_kernel_ref;\n%s\n" % "\n".join(declared)
    text += '__attribute__((__section__("rill_functions"), __used__)) static rill_kernel_ref *(*const rill_functions[])() = {'
    return text + values + "\n};\n#endif\n"


def declaration(template, prefix, with_defaults=False):
    """Returns (declaration of the function for a template's instances, end of its namespaces)."""
    head = [p if with_defaults else dataclasses.replace(p, default="") for p in template.head]
    spaces = "".join("%s { " % space for space in template.namespaces)
    text = "%stemplate <%s> rill_kernel_ref *%s%s%s();" % (spaces, templates.declared_all(head), FUNCTION, prefix, template.name)
    return text, "}" * len(template.namespaces)


def refuse(said, chosen, found):
    """Refuses the instances to which a compiler's errors refer, if there are any."""
    errors = {}
    for match in filter(None, map(messages.ERROR.match, said.splitlines())):
        errors.setdefault((match["file"], int(match["line"])), match["text"])
    refused = [
        RillccError(why_refused(i, errors[i.mark()], found), i.file, None if i.of_object else i.line)
        for i in chosen
        if i.mark() in errors
    ]
    for error in refused[:-1]:
        print("rillcc: %s" % error, file=sys.stderr)
    if refused:
        raise refused[-1]


def why_refused(instance, error, found):
    name = instance.template()
    known = found.of(name)
    if name in found.plain:
        return 'kernel "%s" is not a template and needs no line' % name
    if name and not known:
        names = ", ".join(sorted(found.templates))
        return 'the source has no kernel template "%s"; %s' % (name, "it has " + names if names else "it has none")
    if len(known) > 1:
        which = "name = static_cast<void (*)(parameters)>(%s)" % instance.spelling
        return "the source has %d kernel templates named %s: select one with the line %s" % (len(known), name, which)
    if known and messages.OVERLOADED.search(error):
        return "%s is not an instance of %s" % (instance.spelling, known[0].said())
    return "%s: %s" % (instance.spelling, error)


def refuse_twice(chosen, kernels):
    """Refuses instances of lists that the source already has, however they are spelled."""
    by_symbol, by_name = {}, {instance.name: instance for instance in chosen}
    for kernel in kernels:
        other = by_symbol.setdefault(kernel.symbol, kernel)
        new, old = by_name.get(kernel.name), by_name.get(other.name)
        if other is not kernel and new:
            where = old.place() if old else "%s:%d" % (other.file, other.line)
            raise RillccError("%s already exists: it is %s, from %s" % (new.spelling, other.name, where), new.file, new.line)
