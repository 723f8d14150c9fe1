"""Patterns of translated English, with what to write instead, searched in FOLDERS.

check_words.py searches files, check_commits.py subjects of commits.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

FOLDERS = ("docs", "include", "core", "backends", "kernels", "tools", "README.md", "CONTRIBUTING.md")

OWNER = r"(rill|CUDA|HIP|NVIDIA|AMD|the (driver|vendor|library|program|caller|user)|others?)(s'|'s)"


class Pattern(NamedTuple):
    words: str  # a space is any white space
    example: str
    instead: str

    def compile(self) -> re.Pattern[str]:
        # In a comment of C a line begins with an asterisk.
        return re.compile(self.words.replace(" ", r"(?:\s+(?:\*\s)?\s*)"), re.MULTILINE)


PATTERNS = (
    Pattern(r", too(?=[.;:,)]|$)", "an event that was only signaled, too.",
            '"also" before the verb, or "including"'),
    Pattern(r"\b(has|have|had|is|are) gone\b", "when the last reference has gone",
            "destroyed, freed, released, ended"),
    Pattern(r"\b(is|are|was) had\b", "alignment is had by asking for more",
            "obtained"),
    Pattern(r"\bso (is|are|does|do|was) (?!not )", "and so is the file",
            "a sentence with its own subject"),
    Pattern(rf"\bof {OWNER}(?=[.,;:)]| own[.,;:)])", "a handle of rill's.",
            "the possessive before its noun: rill's own"),
    Pattern(r"\bg[ai]v(e|es|en|ing) (\w+ ){0,3}back\b", "gives the memory back",
            "return, free"),
    Pattern(r"`rill_\w+`( \([^)]*\))? gives?\b(?! a node)", "`rill_stream_native` gives the stream",
            "returns"),
    Pattern(r"\bgives? `[A-Z_]{5,}`", "it gives `NOT_READY`",
            "returns"),
    Pattern(r"\bfor ever\b", "waits for ever",
            "always, without limit; a wait deadlocks"),
    Pattern(r"\bas ever\b", "waits as ever",
            "as usual"),
    Pattern(r"\b(who|nobody|everybody|whoever) waits?\b", "who waits is woken",
            "the thread, the program, the caller"),
    Pattern(r"\banew\b", "is made anew",
            "again"),
    Pattern(r"\bhears? (of|nothing)\b", "the driver hears nothing",
            "is notified, receives"),
    Pattern(r"\bgo(es)? on(?=[.,;:)]| and\b| after\b| working\b)", "the stream goes on.",
            "continues, stays usable"),
    Pattern(r"\b(if|where|when) (it|that|this|they|one) (is|are) there\b", "if it is there",
            "exists, is installed"),
    Pattern(r"\b(is|are) (looked at|asked about)\b", "handles are looked at first",
            "inspected, checked, queried"),
    Pattern(r"\bquestions? about\b", "a question about an event",
            "query"),
    Pattern(r"\bcomes? to lie\b", "comes to lie at the same address",
            "is mapped, is placed"),
    Pattern(r"\bthreads? (that )?(may )?meet\b", "where threads meet",
            "synchronize"),
    Pattern(r"(?:^|^- |[.:;] )What (?!to\b)[^?]{0,200}?[.;:]", "What is shared: nothing.",
            "the noun as the subject"),
    Pattern(r"(?:^|^- |[.:;] )Where (?!to\b)[^?]{0,200}?, ", "Where there is none, it fails",
            '"if", and the condition before its consequence'),
    Pattern(r"\bnobody's\b", "is nobody's promise",
            "borrowed; unspecified"),
    Pattern(r"\b(and|with) (its|their) (kin|family|like)\b", "`rill_lane` and its family",
            "related functions"),
)

COMPILED = tuple((pattern.compile(), pattern) for pattern in PATTERNS)


def is_in(name: str, folders: tuple[str, ...]) -> bool:
    return any(name == folder or name.startswith(folder + "/") for folder in folders)


def without_code(text: str) -> str:
    """Blanks blocks of code of a page, so that lines keep their numbers."""
    return re.sub(r"^( *)```.*?^\1```", lambda found: "\n" * found.group().count("\n"), text, flags=re.DOTALL | re.MULTILINE)


def found_in(name: str, text: str) -> Iterator[str]:
    """What to write instead, for each pattern in the text of a file."""
    searched = [(regex, pattern) for regex, pattern in COMPILED if is_in(name, FOLDERS)]
    text = without_code(text) if searched and name.endswith(".md") else text
    for regex, pattern in searched:
        for found in regex.finditer(text):
            number = text.count("\n", 0, found.start()) + 1
            yield f'{name}:{number}: "{" ".join(found.group().split())}": write {pattern.instead}'


def found_in_subject(subject: str) -> Iterator[str]:
    for regex, pattern in COMPILED:
        found = regex.search(subject)
        if found:
            yield f'"{found.group()}": write {pattern.instead}'


def blind() -> Iterator[str]:
    """The patterns that do not find their example, on one line or across the lines of a comment of C."""
    for regex, pattern in COMPILED:
        if not (regex.search(pattern.example) and regex.search(pattern.example.replace(" ", "\n * "))):
            yield f"the pattern {pattern.words} does not find its example: {pattern.example}"
