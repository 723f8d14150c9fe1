"""Renames the functions that rill's headers generate for a kernel on the CPU, so that profilers and debuggers show the
names of the source."""

import re

from . import stacks

FORM = re.compile(r"\drun_(block|thread)(?![a-z_])")


def rename(assembly, kernels, forms):
    """Returns the assembly with renamed functions. The function with the statements of RILL_KERNEL(saxpy, ...) is
    called `saxpy`, also in debug information. If `forms` is true, the function that runs a block of saxpy is called
    `saxpy() [clone .block]`, and the function for one thread `saxpy() [clone .thread]`. `forms` is false with --debug,
    because a debugger would set a breakpoint at `saxpy` in each of them."""
    functions = set(stacks.FUNCTION.findall(assembly))
    for kernel in kernels:
        names = sorted(stacks.functions_of(functions, kernel))
        body, shown = stacks.body_of(kernel), "%d%s" % (len(kernel.name), kernel.name)
        mangled = kernel.symbol if kernel.symbol.startswith("_Z") else "_Z%sv" % shown
        for name in names:
            form = FORM.search(name)
            # A name with a dot is derived from a name without one, and is changed by the replacement of that name.
            if forms and form and name.startswith("_Z") and "." not in name:
                assembly = assembly.replace(name, "%s.%s" % (mangled, form.group(1)))
        if functions.isdisjoint(name.replace(body, shown) for name in names):
            assembly = assembly.replace(body, shown)
            code, debug, rest = assembly.partition(".debug_str")
            assembly = code + debug + re.sub(r"\brill_body_%s\b" % kernel.name, kernel.name, rest)
    return assembly
