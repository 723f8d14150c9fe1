"""Lists the return addresses of a compiled source's calls with their source lines, by which an image of --check reports
lines.

The lines are taken from the .loc directives in the assembly. rill/device/host_check.h reads the list.
"""

import os
import re

FILE = re.compile(r'\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"((?:[^"\\]|\\.)*)")?')
LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
CALL = re.compile(r"\s+(?:callq?|blr?)\s")
FUNCTION = re.compile(r"\s*\.type\s+[\w.$]+,\s*[@%]function")
COPY = re.compile(r"(?<=\s)(memcpy|memmove|memset)(@PLT)?$")  # gcc does not instrument these calls for the sanitizer
OWN = os.path.join("rill", "device") + os.sep

SITE = '\t.section .rodata.rill_names,"a"\n1:\t.string "%s"\n\t.section .data.rel.ro.rill_sites,"aw"\n\t.quad %s, 1b, %d\n'
TABLE = """
\t.section .data.rel.ro.rill_sites,"aw"
\t.balign 8
\t.hidden rill_check_sites
\t.globl rill_check_sites
rill_check_sites:
%s
\t.section .rodata.rill_site_count,"a"
\t.balign 8
\t.hidden rill_check_site_count
\t.globl rill_check_site_count
rill_check_site_count:
\t.quad %d
"""


def add(assembly):
    """Returns the assembly with a label after each call that comes from the source, and a table of these labels."""
    files, lines, sites, here = {}, [], [], None
    for line in assembly.splitlines():
        lines.append(line)
        file, loc = FILE.match(line), LOC.match(line)
        if file:
            folder, name = (file.group(2), file.group(3)) if file.group(3) else ("", file.group(2))
            files[file.group(1)] = name if folder in ("", os.getcwd()) else os.path.join(folder, name)
        elif loc:
            if loc.group(2) != "0":
                path = files.get(loc.group(1), "?")
                here = None if OWN in path else (path, int(loc.group(2)))
        elif FUNCTION.match(line):
            here = None
        elif here and CALL.match(line):
            lines[-1] = COPY.sub(r"__tsan_\1", line)
            label = ".Lrill_site_%d" % len(sites)
            lines.append(label + ":")
            sites.append((label, *here))
    table = TABLE % ("".join(SITE % (path, label, number) for label, path, number in sites), len(sites))
    return "\n".join(lines) + "\n" + table
