#!/usr/bin/env python3
"""Writes a manual page, or the bash completion, of a program from the output of its --help.

    from_help.py man VERSION PAGE FILE PROGRAM [ARGUMENT ...]
    from_help.py completion NAME FILE PROGRAM [ARGUMENT ...]

The script runs `PROGRAM ARGUMENT ... --help`. PAGE is the name of a page, such as rill-info for the command `info` of
rill.
"""

import os
import re
import subprocess
import sys

COMMANDS = ("info", "demo", "trace", "doctor", "bench")  # checked against the usage of rill
PAGES = ("rill", *("rill-" + name for name in COMMANDS), "rillcc")


class Entry:
    """An option or a positional argument: `-o, --output FILE`, `DEVICE`."""

    def __init__(self, term, text):
        self.term, self.text = term, text
        # argparse of Python before 3.13 writes `-o FILE, --output FILE`.
        parts = [part.split(" ", 1) for part in re.sub(r"(\{[^}]*\})", lambda m: m[0].replace(",", "\0"), term).split(", ")]
        self.names = [part[0] for part in parts]
        self.value = parts[-1][1].replace("\0", ",") if len(parts[-1]) > 1 else ""

    def is_option(self):
        return self.term.startswith("-")


class Help:
    def __init__(self, text):
        usage, _, rest = text.partition("\n\n")
        if not usage.startswith("usage: "):
            sys.exit(f'the help does not begin with "usage: ": {usage}')
        # A line that begins with a program is a separate form; a line that begins with an option continues the previous
        # one.
        self.usage = re.sub(r"\n +(?=\[)", " ", usage[len("usage: ") :]).split("\n")
        self.usage = [line.strip() for line in self.usage]
        self.paragraphs, entries = [], []
        for block in rest.strip("\n").split("\n\n"):
            lines = block.split("\n")
            if re.fullmatch(r"[a-z ]+:", lines[0]):  # argparse's headings
                del lines[0]
            if lines and not lines[0].startswith("  "):
                self.paragraphs.append(" ".join(lines))
                continue
            for line in lines:
                found = re.fullmatch(r"  (\S+(?: \S+)*)(?:  +(\S.*))?", line)
                if found:
                    entries.append((found[1], found[2] or ""))
                elif entries and line.startswith("   "):
                    term, said = entries.pop()
                    entries.append((term, f"{said} {line.strip()}".strip()))
                else:
                    sys.exit(f"cannot parse this line of options: {line!r}")
        self.entries = [Entry(*entry) for entry in entries]
        if not self.paragraphs:
            sys.exit(f"no description: {text}")

    def options(self):
        return [entry for entry in self.entries if entry.is_option()]

    def summary(self):
        """Returns the first sentence, in the form for the NAME section of a page."""
        sentence = re.split(r"\.(?:\s|$)", self.paragraphs[0])[0]
        return sentence[0].lower() + sentence[1:]


def ask(command):
    # Ensures long lines and no colours, with every version of argparse.
    environment = dict(os.environ, COLUMNS="10000", NO_COLOR="1", LC_ALL="C.UTF-8")
    done = subprocess.run([*command, "--help"], env=environment, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def read(command):
    """Returns the help of a command. For rill itself, the help of each of its commands follows and is left out."""
    return Help(re.split(r"\n(?=\nusage: )", ask(command))[0] + "\n")


# ---- manual pages ----


def roff(text):
    text = re.sub(r"\s+", " ", text).replace("\\", r"\e").replace("-", r"\-")
    return r"\&" + text if text.startswith((".", "'")) else text


def marked(term):
    """Returns the text with literal words in bold and placeholders in italics."""

    def mark(found):
        word = found[0]
        is_name = re.fullmatch(r"[A-Z]{2,}\S*", word)
        return (r"\fI" if is_name else r"\fB") + roff(word) + r"\fR"

    return re.sub(r"[\w$-][\w.:=-]*", mark, term)


def page(name, version, shown, of_commands):
    lines = [
        '.\\" Written by tools/packaging/from_help.py from --help.',
        f'.TH {name.upper()} 1 "" "rill {version}" "rill"',
        ".SH NAME",
        f"{roff(name)} \\- {roff(shown.summary())}",
        ".SH SYNOPSIS",
        ".nf" if len(shown.usage) > 1 else ".ad l",
    ]
    lines += [marked(usage) for usage in shown.usage]
    lines += [".fi" if len(shown.usage) > 1 else ".ad b", ".SH DESCRIPTION"]
    for number, paragraph in enumerate(shown.paragraphs):
        lines += [".PP"] * (number > 0) + [roff(sentence) for sentence in re.split(r"(?<=\.)  ?(?=[A-Z])", paragraph)]
    for title, entries in (("ARGUMENTS", [e for e in shown.entries if not e.is_option()]), ("OPTIONS", shown.options())):
        if entries:
            lines.append(f".SH {title}")
        for entry in entries:
            lines += [".TP", marked(entry.term), roff(entry.text)]
    if of_commands:
        lines.append(".SH COMMANDS")
        for command, other in of_commands.items():
            lines += [".TP", rf"\fB{roff('rill-' + command)}\fR(1)", roff(other.summary()) + "."]
    others = [other for other in PAGES if other != name]
    lines.append(".SH SEE ALSO")
    lines += [rf"\fB{roff(other)}\fR(1){',' if other != others[-1] else ''}" for other in others]
    return "\n".join(lines) + "\n"


def commands_of(usage):
    return re.findall(r"[a-z]+", usage.partition("| help")[0])[1:]


def write_page(version, name, path, *command):
    shown = read(command)
    of_commands = {}
    if name == "rill":
        found = commands_of(shown.usage[0])
        if tuple(found) != COMMANDS:
            sys.exit(f"rill has the commands {', '.join(found)}, but pages are written for {', '.join(COMMANDS)}")
        of_commands = {other: read([*command, other]) for other in found}
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(name, version, shown, of_commands))


# ---- bash ----

SCRIPT = r"""# Completion of @NAME@ for bash, written by tools/packaging/from_help.py from --help.

_@NAME@() {
  local line=${COMP_LINE:0:COMP_POINT} words i found=() kind="" options="" values="" place=files given="" devices
  # The words as the user sees them: bash also splits at ":" and "=".
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local current=${words[${#words[@]}-1]} before=${words[${#words[@]}-2]}
  COMPREPLY=()
@CASES@
  for ((i = @FIRST@; i < ${#words[@]} - 1; i++)); do
    case ${words[i]} in
      --) given=yes ;;
      -*) [[ " $values " == *" ${words[i]} "* ]] && i=$((i + 1)) ;;
      *) given=yes ;;
    esac
  done
  if [[ -n $kind ]]; then :
  elif [[ $place == program && -n $given ]]; then kind=files
  elif [[ $current == -* ]]; then kind="words $options"
  else kind=$place
  fi
  case $kind in
    words\ *) mapfile -t found < <(compgen -W "${kind#words }" -- "$current") ;;
    devices)
      devices=$("$1" info 2>/dev/null | sed -n '2,/^$/s/^\([a-z]*\(:[0-9]*\)\{0,1\}\) .*/\1/p')
      mapfile -t found < <(compgen -W "gpu $devices" -- "$current")
      ;;
    program) mapfile -t found < <(compgen -c -- "$current") ;;
    none) compopt +o default 2>/dev/null ;;
  esac
  # Readline replaces what follows the last place where bash splits.
  local kept=${current%"${current##*[:=]}"}
  for i in "${found[@]}"; do COMPREPLY+=("${i#"$kept"}"); done
}
complete -o default -F _@NAME@ @NAME@
"""


def kind_of_value(entry):
    value = entry.value
    if re.fullmatch(r"\{.*\}", value):
        return "words " + value[1:-1].replace(",", " ")
    if value == "NAME" and "--device" in entry.names:
        return "devices"
    if value.startswith("BACKEND"):
        return "words " + " ".join(re.findall(r"(\w+) \(", entry.text))
    if re.match(r"FILE|DIR|HEADER|OBJECT", value):
        return "files"
    return "program" if value == "PROGRAM" else "none"


def kind_of_place(shown):
    """Returns the kind of the positional arguments."""
    usage = " ".join(shown.usage)
    if "] PROGRAM" in usage:
        return "program"
    words = [entry.term for entry in shown.entries if re.fullmatch("[a-z]+", entry.term) and entry.term != "source"]
    if words:
        return "words " + " ".join(words)
    for entry in shown.entries:
        if entry.term == "AREA":
            return "words " + " ".join(re.split(", | or ", entry.text.partition(" (")[0]))
        if entry.term == "DEVICE":
            return "devices"
    return "files" if re.search(r"PICTURE|\[source\]", usage) else "none"


def cases(shown, indent):
    """Returns the options of one command."""
    names = " ".join(name for entry in shown.options() for name in entry.names)
    valued = [entry for entry in shown.options() if entry.value]
    lines = [
        f"options='{names}' place='{kind_of_place(shown)}'",
        f"values='{' '.join(name for entry in valued for name in entry.names)}'",
        "case $before in",
        *(f"  {' | '.join(entry.names)}) kind='{kind_of_value(entry)}' ;;" for entry in valued),
        "esac",
    ]
    return "".join(f"{indent}{line}\n" for line in lines)


def completion(name, command):
    shown = read(command)
    if name != "rill":
        return SCRIPT.replace("@CASES@\n", cases(shown, "  ")).replace("@FIRST@", "1").replace("@NAME@", name)
    names = commands_of(shown.usage[0])
    text = "  local command=''\n  ((${#words[@]} == 2)) || command=${words[1]}\n  case $command in\n"
    text += f"    '') kind='words {' '.join(names)} help --help --version' ;;\n    help) kind='words {' '.join(names)}' ;;\n"
    for other in names:
        text += f"    {other})\n{cases(read([*command, other]), '      ')}      ;;\n"
    text += "  esac\n"
    return SCRIPT.replace("@CASES@\n", text).replace("@FIRST@", "2").replace("@NAME@", name)


def write_completion(name, path, *command):
    with open(path, "w", encoding="utf-8") as file:
        file.write(completion(name, command))


if __name__ == "__main__":
    if len(sys.argv) < 5 or sys.argv[1] not in ("man", "completion"):
        sys.exit(__doc__)
    if sys.argv[1] == "man":
        write_page(*sys.argv[2:])
    else:
        write_completion(*sys.argv[2:])
