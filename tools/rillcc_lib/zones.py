"""Puts red zones between the variables of a checked image, including shared arrays. An access past the end of a
variable then hits no other variable, and the library detects it (--check, rill/device/host_check.h).

The red zones are added to the assembly, in front of each variable and after the last ones.
"""

import re

BYTES = 4096  # a multiple of all alignments
ZONE = "\t.zero %d" % BYTES
SECTION = re.compile(r"\s*\.(?:section\s+|(?=(?:text|data|bss)\b))\.?([\w.$]+)")
HAS_VARIABLES = re.compile(r"(?:tbss|tdata|bss|data)(?:\.(?!rel\.ro)|$)")
OBJECT = re.compile(r"\s*\.type\s+([\w.$]+),\s*[@%]object")
LABEL = re.compile(r"([\w.$]+):")
COMMON = re.compile(r"\s*\.comm\s+([\w.$]+),\s*(\d+),\s*(\d+)")
LOCAL_COMMON = "\t.pushsection .bss\n\t.balign %s\n%s\n%s:\n\t.zero %s\n\t.size %s, %s\n\t.popsection"
LAST = "".join(
    '\t.section .%s.rill_zone,"%s",%%%s\n%s\n' % (name, flags, kind, ZONE)
    for name, flags, kind in (("tbss", "awT", "nobits"), ("tdata", "awT", "progbits"), ("bss", "aw", "nobits"), ("data", "aw", "progbits"))
)


def add(assembly):
    objects = set(OBJECT.findall(assembly))
    lines, variables = [], False
    for line in assembly.splitlines():
        section, label, common = SECTION.match(line), LABEL.match(line), COMMON.match(line)
        if section:
            variables = bool(HAS_VARIABLES.match(section.group(1)))
        if variables and label and label.group(1) in objects:
            lines.append(ZONE)
        if common:
            name, size, alignment = common.groups()
            lines.append(LOCAL_COMMON % (alignment, ZONE, name, size, name, size))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n" + LAST
