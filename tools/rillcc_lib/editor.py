"""Writes the entry of a source in compile_commands.json, with which clangd reads the source as rillcc does."""

import json
import os
import re

from . import compilers
from .errors import RillccError


def read_others(path, source):
    """Returns the entries of other files."""
    try:
        with open(path, encoding="utf-8") as file:
            entries = json.load(file)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise RillccError("cannot read %s: %s" % (path, error)) from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise RillccError("%s is not a compilation database: it must be a list of objects" % path)
    return [entry for entry in entries if os.path.join(entry.get("directory", ""), entry.get("file", "")) != source]


def text(path, options, include_dirs):
    """Returns the text of compile_commands.json with the entry of the source and the entries of other files. Files that
    the command needs and that rillcc generates, such as a header for its -D options, stay in a folder beside
    compile_commands.json."""
    source = os.path.abspath(options.source)
    entries = read_others(path, source)
    own = re.sub(r"[^\w.-]", "_", os.path.relpath(source, os.path.dirname(os.path.abspath(path))))
    folder = os.path.join(os.path.abspath(path) + ".rill", own)
    try:
        os.makedirs(folder, exist_ok=True)
        toolchain = compilers.Toolchain(options, include_dirs, folder)
    except OSError as error:
        raise RillccError("cannot write %s: %s" % (error.filename, error.strerror)) from error
    host = toolchain.host
    host.probe()
    command = [*host.cxx, *host.flags(host.targets()[0]), "-fsyntax-only", source]
    entries.append({"directory": os.getcwd(), "file": source, "arguments": command})
    return json.dumps(entries, indent=2) + "\n"
