"""The names that profilers and debuggers show for kernels on the cpu: those of the source, in place of what rill's headers
call the functions that they make of a kernel."""

import re

from . import stacks

FORM = re.compile(r"\drun_(block|thread)(?![a-z_])")


def rename(assembly, kernels, forms):
    """Returns the assembly in which what runs a block of the kernel saxpy is called `saxpy() [clone .block]`, and for a
    thread of it `saxpy() [clone .thread]`, if `forms` asks for it: to a debugger that is to stop at `saxpy` they would be
    two places.  The function with the statements of RILL_KERNEL(saxpy, ...) is `saxpy`, also in debug information."""
    functions = set(stacks.FUNCTION.findall(assembly))
    for kernel in kernels:
        names = sorted(stacks.functions_of(functions, kernel))
        body, shown = stacks.body_of(kernel), "%d%s" % (len(kernel.name), kernel.name)
        mangled = kernel.symbol if kernel.symbol.startswith("_Z") else "_Z%sv" % shown
        for name in names:
            form = FORM.search(name)
            if forms and form and name.startswith("_Z") and "." not in name:  # others are made of such a one
                assembly = assembly.replace(name, "%s.%s" % (mangled, form.group(1)))
        if functions.isdisjoint(name.replace(body, shown) for name in names):
            assembly = assembly.replace(body, shown)
            code, debug, rest = assembly.partition(".debug_str")
            assembly = code + debug + re.sub(r"\brill_body_%s\b" % kernel.name, kernel.name, rest)
    return assembly
