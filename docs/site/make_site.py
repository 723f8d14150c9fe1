#!/usr/bin/env python3
"""Builds the reference site: every public header, guide, reference page, result and example, by Doxygen.

usage: make_site.py SOURCE OUTPUT DOXYGEN VERSION

Doxygen reads copies of the headers and pages, in OUTPUT/input, in which its own commands replace the conventions of the
project: what a header opens with becomes the description of the file, the parts "Errors:", "Threads:" and "Like:" of a
comment become lists, headings get the anchors that GitHub gives them, and names of functions become links.
The site is OUTPUT/html, and OUTPUT/site.d lists what it was made of.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

source, output = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
doxygen, version = sys.argv[3:5]
site = pathlib.Path(__file__).resolve().parent
include = source / "include"
# Pages of the repository that are not in docs/.
OTHER_PAGES = {"README.md": "OVERVIEW", "CHANGELOG.md": "CHANGELOG", "CONTRIBUTING.md": "CONTRIBUTING",
               "kernels/README.md": "KERNEL_LIBRARY", "tests/README.md": "TESTS"}
FRONT = "docs/README.md"
PARTS = ("Errors", "Threads", "Like")

headers = sorted(path.relative_to(include) for path in (include / "rill").rglob("*.h*"))
host_headers = [header for header in headers if len(header.parts) == 2 and header.suffix == ".h"]
header_text = {header: (include / header).read_text(encoding="utf-8") for header in headers}
functions = set(re.findall(r"^RILL_API\b[^;{]*?\b(rill_\w+)\s*\(", "".join(header_text.values()), re.MULTILINE))
STATUSES = dict(re.findall(r"X\((\w+), \d+, \"(.*)\"\)", header_text[pathlib.Path("rill/status.h")]))


def split_list(text):
    """The items of a list in prose: parts that commas or semicolons separate outside of parentheses."""
    items, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and (letter == ";" or (letter == "," and re.match(r", [A-Z_]{4,}\b", text[at:]))):
            items.append(text[start:at])
            start = at + 1
    return [item.strip().removesuffix(".") for item in [*items, text[start:]]]


def with_links(text):
    """Names of functions, and of statuses as the comments spell them, as links."""
    text = re.sub(r"(?<![\w#:./`-])(rill_\w+)\b(?!\()", lambda name: ("#" if name[1] in functions else "") + name[1], text)
    return re.sub(r"(?<![\w`])([A-Z_]{4,})\b",
                  lambda name: f'@ref RILL_ERROR_{name[1]} "{name[1]}"' if f"ERROR_{name[1]}" in STATUSES else name[1], text)


def doc_comment(comment):
    """A /** comment */ for Doxygen."""
    body = re.sub(r"^/\*\*(<?) ?|\s*\*/$", "", comment)
    lines = [re.sub(r"^\s*\* ? ?", "", line) if number else line for number, line in enumerate(body.split("\n"))]
    if comment.startswith("/**<"):
        return "/**< " + with_links(" ".join(line.strip() for line in lines)) + " */"
    written = []
    paragraphs = re.split(r"\n(?=(?:%s): )|\n\s*\n" % "|".join(PARTS), "\n".join(lines))
    for paragraph in paragraphs:
        part = re.match(r"(%s):\s+" % "|".join(PARTS), paragraph)
        if part:
            text = " ".join(paragraph[part.end():].split())
            items = [text] if part[1] == "Like" else split_list(text)
            written.append(f"@par {part[1]}\n" + "".join(f"- {with_links(item)}\n" for item in items))
        elif paragraph.startswith("    "):
            written.append(paragraph)
        else:
            written.append(with_links(paragraph))
    return "/** " + "\n\n".join(written).rstrip() + "\n */"


def opening(header, text):
    """What the header opens with, as the description of the file."""
    comment = re.match(r"/\* %s: (.*?)\s*\*/" % re.escape(header.as_posix()), text, re.DOTALL)
    if comment is None:
        sys.exit(f"{header} does not open with what it is")
    lines = [re.sub(r"^ \* ?", "", line) for line in comment[1].split("\n")]
    brief, _, rest = "\n".join(lines).partition("\n\n")
    brief = with_links(" ".join(brief.split()))
    # What is indented is code in C, or a table of names.
    kind = ".c" if header in host_headers else ".unparsed"
    parts = re.split(r"((?:^  .*\n+)*^  .*$)", rest, flags=re.MULTILINE)
    rest = "".join(f"@code{{{kind}}}\n{textwrap.dedent(part)}\n@endcode" if part.startswith("  ") else with_links(part)
                   for part in parts)
    return f"/** @file {header}\n@brief {brief[0].upper() + brief[1:]}\n\n{rest}\n */\n", text[comment.end():]


def write_header(header):
    text, rest = opening(header, header_text[header])
    if "device" not in header.parts:
        rest = re.sub(r"/\*\*(?!\*).*?\*/", lambda comment: doc_comment(comment[0]), rest, flags=re.DOTALL)
        statuses = "".join(f'  RILL_{name}, /**< {sentence} */\n' for name, sentence in STATUSES.items())
        rest = re.sub(r"enum \{\n#define RILL_STATUS_ENUM_.*?\};", lambda _: "/** What a call returns. */\nenum {\n" + statuses + "};",
                      rest, flags=re.DOTALL)
        text += rest
    path = output / "input" / header
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# ---- pages ----


def slug(heading):
    """The anchor of a heading on GitHub."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).strip().lower()).replace(" ", "-")


pages = {path.relative_to(source).as_posix(): path.stem for path in sorted((source / "docs").rglob("*.md"))}
pages.update(OTHER_PAGES)
del pages[FRONT]
examples = {path.relative_to(source).as_posix(): "example_" + re.sub(r"\W", "_", path.relative_to(source / "docs/examples").as_posix())
            for path in sorted((source / "docs/examples").rglob("*"))
            if path.is_file() and path.suffix in (".c", ".h", ".cpp", ".cu", ".py")}
names = [*pages.values(), *examples.values()]
if len(names) != len(set(names)):
    sys.exit(f"two pages have one name: {sorted(name for name in names if names.count(name) > 1)}")
# What a page is called: by its first heading, except for the README, which bears the name of the project.
title_of = {page: re.findall(r"^# (.*)", (source / page).read_text(encoding="utf-8"), re.MULTILINE)[0].replace("`", "")
            for page in [FRONT, *pages]}
title_of["README.md"] = "Overview"


def link(page, text, target):
    """A link of a page: to a page of the site, or plain text if the site has no such page."""
    name, _, anchor = target.partition("#")
    text = text.replace("`", "")  # Doxygen prints the marks of code in the text of a link
    if re.match(r"\w+:", target):
        return f"[{text}]({target})"
    path = (source / page).parent.joinpath(name).resolve().relative_to(source).as_posix() if name else page
    if path in title_of:
        text = title_of[path] if re.fullmatch(r"`?[\w/.]+\.md`?", text) else text
    if path in pages:
        return f"[{text}](#{pages[path]}{'-' + anchor if anchor else ''})"
    if path == FRONT:
        return f"@ref index \"{text}\""
    if path in examples:
        return f"[{text}](#{examples[path]})"
    if path.rstrip("/").startswith("docs/examples"):
        return f"[{text}](#EXAMPLES)"
    if path.startswith("include/"):
        return f"@ref {path.removeprefix('include/')} \"{text}\""
    if (source / path).exists():
        return text
    sys.exit(f"{page}: a link leads to {target}, which does not exist")


def prose(page, text):
    """Prose of a page, without fenced code: links, images and names of functions."""
    def image(found):
        file = (source / page).parent.joinpath(found[2]).resolve()
        shutil.copy(file, output / "input" / file.name)
        return f"@htmlonly<img class=\"drawing\" src=\"{file.name}\" alt=\"{found[1]}\"/>@endhtmlonly"

    def code(found):
        if found[1] in functions:
            return f"<code>@link {found[1]} {found[1]} @endlink</code>"
        # To Doxygen an apostrophe ends what one mark begins.
        return f"`` {found[1]} ``" if "'" in found[1] else found[0]

    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    text = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", image, text)
    parts = re.split(r"(`[^`]+`|\[[^\]]+\]\([^)\s]+\))", text)
    for number, part in enumerate(parts):
        linked = re.fullmatch(r"\[([^\]]+)\]\(([^)\s]+)\)", part)
        if linked:
            parts[number] = link(page, linked[1], linked[2])
        elif part.startswith("`"):
            parts[number] = re.sub(r"^`(.+)`$", code, re.sub(r"\s*\n\s*", " ", part))
    return "".join(parts)


def page_text(page, name):
    """A page as Doxygen reads it."""
    text = (source / page).read_text(encoding="utf-8")
    written, used = [], {}
    for part in re.split(r"(^```.*?^```\n)", text, flags=re.DOTALL | re.MULTILINE):
        if part.startswith("```"):
            language, _, code = part[3:].partition("\n")
            kind = {"c": "{.c}", "cpp": "{.cpp}", "cuda": "{.cpp}", "python": "{.py}"}.get(language, "{.unparsed}")
            written.append("```" + kind + "\n" + code)
            continue
        lines = part.split("\n")
        for number, line in enumerate(lines):
            heading = re.match(r"(#+) (.*)", line)
            if heading is None:
                continue
            if not used:
                used[""] = 0
                lines[number] = f"# {title_of[page]} {{#{name}}}" + ("" if page == FRONT else "\n\n[TOC]")
                continue
            anchor = slug(heading[2])
            used[anchor] = used.get(anchor, -1) + 1
            # Doxygen shows the marks of code in the table of contents.
            title = heading[2].replace("`", "")
            lines[number] = f"{heading[1]} {title} {{#{name}-{anchor}{'-%d' % used[anchor] if used[anchor] else ''}}}"
        written.append(prose(page, "\n".join(lines)))
    return "".join(written)


def example_page(path, name):
    text = (source / path).read_text(encoding="utf-8")
    kind = ".py" if path.endswith(".py") else ".cpp" if path.endswith((".cpp", ".cu")) else ".c"
    comment = re.match(r'(?:#![^\n]*\n)?(?:/\*|//|""")\s*(.*?)(?:\n \*\n|\n\n|\n#|\*/|""")', text, re.DOTALL)
    sentence = re.match(r".*?(?=[.:]?$|[.:] +[A-Z])", " ".join(re.sub(r"\n( \*|//)", " ", comment[1]).split())) if comment else None
    title = path.removeprefix("docs/examples/")
    title_of[path] = title
    return sentence[0] if sentence else title, f"# {title} {{#{name}}}\n\n~~~{{{kind}}}\n{text}~~~\n"


def write_pages():
    written = {name: page_text(page, name) for page, name in {FRONT: "mainpage", **pages}.items()}
    rows = []
    for path, name in examples.items():
        brief, written[name] = example_page(path, name)
        brief = re.sub(r"([<>#@\\|*])", r"\\\1", brief.removeprefix(path.rpartition("/")[2] + ": "))
        rows.append(f"| [{title_of[path]}](#{name}) | {brief} |\n")
    written["EXAMPLES"] = "# Examples {#EXAMPLES}\n\nThe tests build and run these programs.\n\n| | |\n| --- | --- |\n" + "".join(rows)
    for name, text in written.items():
        (output / "input" / f"{name}.md").write_text(text, encoding="utf-8")


def write_layout():
    """Doxygen's own layout, with the parts of the site as its index, and of a file its description first, once."""
    def tab(path, name):
        return f'<tab type="user" url="@ref {name}" title="{title_of[path]}"/>'

    def group(title, tabs):
        return f'<tab type="usergroup" title="{title}">' + "".join(tabs) + "</tab>"

    def folder(name):
        return [tab(path, page) for path, page in pages.items() if path.startswith(f"docs/{name}/")]

    def files(which):
        return [f'<tab type="user" url="@ref {header}" title="{header}"/>' for header in which]

    index = [
        '<tab type="mainpage" visible="yes" title="rill"/>',
        *(tab(path, pages[path]) for path in ("docs/START.md", "README.md")),
        group("Guides", folder("guides")),
        group("Headers", files(host_headers)),
        '<tab type="classlist" visible="yes" title="Structs and classes" intro=""/>',
        group("Headers for C++", files(header for header in headers if header.suffix == ".hpp")),
        group("Headers for kernels", files(header for header in headers if "device" in header.parts)),
        '<tab type="globals" visible="yes" title="All functions and constants" intro=""/>',
        group("Reference", folder("reference")),
        group("Results", [tab("docs/PERFORMANCE.md", "PERFORMANCE"), *folder("results")]),
        '<tab type="user" url="@ref EXAMPLES" title="Examples"/>',
        tab("docs/examples/gpt2/GPT2.md", "GPT2"),
        group("Project", [tab(path, name) for path, name in OTHER_PAGES.items() if path != "README.md"]),
    ]
    layout = output / "layout.xml"
    subprocess.run([doxygen, "-l", str(layout)], check=True, stdout=subprocess.DEVNULL)
    text = layout.read_text(encoding="utf-8")
    text = re.sub(r"<navindex>.*</navindex>", lambda _: "<navindex>" + "\n".join(index) + "</navindex>", text, flags=re.DOTALL)
    (file,) = re.findall(r"<file>.*</file>", text, re.DOTALL)
    description = '<detaileddescription title=""/>'
    changed = file.replace(description, "").replace('<briefdescription visible="yes"/>', '<detaileddescription title="Overview"/>')
    text = re.sub(r"<(inheritancegraph|collaborationgraph|nestedclasses) .*?/>", "", text.replace(file, changed))
    layout.write_text(text, encoding="utf-8")


shutil.rmtree(output / "input", ignore_errors=True)
shutil.rmtree(output / "html", ignore_errors=True)
for each in headers:
    write_header(each)
write_pages()
write_layout()
doxyfile = (site / "Doxyfile.in").read_text(encoding="utf-8")
for key, value in {"VERSION": version, "OUTPUT": output, "SITE": site}.items():
    doxyfile = doxyfile.replace(f"@{key}@", str(value))
(output / "Doxyfile").write_text(doxyfile, encoding="utf-8")
images = [str(path) for path in (output / "input").glob("*.svg")]
with (output / "Doxyfile").open("a", encoding="utf-8") as file:
    file.write(f"HTML_EXTRA_FILES = {' '.join(images)}\n")
made_of = [*(include / header for header in headers), *(source / page for page in [FRONT, *pages, *examples]), *site.iterdir()]
(output / "site.d").write_text("html: " + " ".join(str(path).replace(" ", "\\ ") for path in made_of) + "\n", encoding="utf-8")
sys.exit(subprocess.run([doxygen, str(output / "Doxyfile")], check=False).returncode)
