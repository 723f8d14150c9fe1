#!/usr/bin/env python3
"""Checks the reference site as a browser receives it.

usage: check_site.py SOURCE DOXYGEN VERSION rill-api.json

Makes the site in a temporary directory and reads its HTML: the front page, the opening of every header, every function
with its errors, marks of Markdown that are left, links between pages, and the index of the search.
"""

import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

source = pathlib.Path(sys.argv[1])
doxygen, version = sys.argv[2:4]
api = json.loads(pathlib.Path(sys.argv[4]).read_text(encoding="utf-8"))
problems = []


EMPTY = {"meta", "link", "img", "br", "hr", "input", "area", "col"}


class Page(html.parser.HTMLParser):
    """Text, links and anchors of a page.  `prose` is the text without code; `raw` keeps the code."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.open = [], set(), []
        self.prose = self.raw = ""
        self.drawings = []
        self.lists = {}  # anchor of a function: the heading and items of its lists
        self.function = self.part = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        self.anchors.update(values[name] for name in ("id", "name") if values.get(name))
        if tag == "img" and values.get("class") == "drawing":
            self.drawings.append((values["src"], values.get("alt")))
        if tag not in EMPTY:
            self.open.append((tag, values.get("class") or ""))
        if tag == "a" and re.fullmatch(r"[a-z][0-9a-f]{32}", values.get("id") or ""):
            self.function = values["id"]
        if tag == "dt":
            self.part = ""
        if tag == "li" and self.part:
            self.lists.setdefault(self.function, {}).setdefault(self.part, []).append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass
        if tag == "dl":
            self.part = ""

    def handle_data(self, data):
        tags = {tag for tag, _ in self.open}
        if tags & {"script", "style"} or any(kind == "ttc" for _, kind in self.open):
            return  # the last are texts that a pointer over a name shows
        if "dt" in tags:
            self.part += data.strip()
        elif "li" in tags and self.part:
            self.lists[self.function][self.part][-1] += data
        self.raw += data
        if not tags & {"pre", "code"} and not any("fragment" in kind or "memproto" in kind for _, kind in self.open):
            self.prose += data


def letters(text):
    """Letters and digits alone: Markdown, white space and links do not count."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def check(site):
    pages = {path.name: Page(path) for path in site.glob("*.html")}

    front = pages["index.html"]
    if "rill is a small C library" not in front.prose:
        problems.append("the front page does not say what rill is")
    linked = {pathlib.Path(link.partition("#")[0]).stem for link in front.links}
    for path in sorted((source / "docs").rglob("*.md")):
        if path != source / "docs/README.md" and path.stem not in linked:
            problems.append(f"the front page has no link to {path.stem}")
        title, *_ = re.findall(r"^# (.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if path != source / "docs/README.md" and letters(title) not in letters(pages[f"{path.stem}.html"].prose):
            problems.append(f"{path.stem}.html has no title")

    include = source / "include/rill"
    headers = sorted(include.rglob("*.h*"))
    for header in headers:
        opening, *_ = re.findall(r"\A/\* \S+: (.*?)\*/", header.read_text(encoding="utf-8"), re.DOTALL)
        name = header.name.replace("_", "__").replace(".", "_8") + ".html"
        same = [page for page in pages if page == name or page.endswith("_2" + name)]
        if not any(letters(opening) in letters(pages[page].raw) for page in same):
            problems.append(f"no page has all of what {header.relative_to(include)} opens with")
        if header.parent == include and not linked & {page.removesuffix(".html") for page in same}:
            problems.append(f"the front page has no link to {header.name}")

    cpp = "".join(header.read_text(encoding="utf-8") for header in (include / "cpp").glob("*.hpp"))
    cpp = re.sub(r"^namespace detail \{.*?^\} // namespace detail$", "", cpp, flags=re.DOTALL | re.MULTILINE)
    classes = set(re.findall(r"\*/\n(?:template <[^>]*>\s*)?class (\w+)[^;]*?\{", cpp))
    if len(classes) < 15:
        problems.append(f"only {len(classes)} classes were found")
    problems.extend(f"rill::{name} has no page" for name in sorted(classes)
                    if f"classrill_1_1{name.replace('_', '__')}.html" not in pages)
    if "synchronize_until" not in pages["classrill_1_1stream.html"].raw:
        problems.append("the page of rill::stream does not have what it inherits")

    functions = [function for function in api["functions"] if "errors" in function]
    if len(functions) < 200:
        problems.append(f"only {len(functions)} functions have errors")
    indexed = "".join(path.read_text(encoding="utf-8") for path in (site / "search").glob("functions_*.js"))
    for function in functions:
        name = function["name"]
        found = re.search(r"\['%s',\['\.\./([\w.]+)#(\w+)'" % re.escape(name), indexed)
        if found is None:
            found = re.search(r"\['%s_?\w*',\['%s',\['\.\./([\w.]+)#(\w+)'" % (name.lower(), name), indexed)
        if found is None:
            problems.append(f"the search does not know {name}")
            continue
        lists = pages[found[1]].lists.get(found[2], {})
        for part in ("errors", "threads"):
            if part in function and letters("".join(lists.get(part.capitalize(), []))) != letters(function[part]):
                problems.append(f"{name}: {part} are {lists.get(part.capitalize())}, and the header has {function[part]}")

            if any(item.count("(") != item.count(")") for item in lists.get(part.capitalize(), [])):
                problems.append(f"{name}: {part} are split inside of parentheses: {lists[part.capitalize()]}")

    drawn = {path.name for path in (source / "docs").rglob("*.svg")}
    shown = [drawing for page in pages.values() for drawing in page.drawings]
    problems.extend(f"no page shows {name}" for name in sorted(drawn - {name for name, _ in shown}))
    problems.extend(f"the drawing {name} has no words for those who do not see it" for name, words in shown if not words)

    for name, page in pages.items():
        for mark in ("`", "](.", "](#", "](h", "{#", "@ref", "@link", "@par", "<tt>", "[TOC]"):
            for around in re.findall(".{0,40}" + re.escape(mark) + ".{0,20}", page.prose):
                problems.append(f"{name}: {mark} is printed: {around!r}")
        for link in page.links:
            target, _, anchor = link.partition("#")
            if re.match(r"\w+:", target):
                continue
            target = urllib.parse.unquote(target) or name
            if not (site / target).exists():
                problems.append(f"{name}: a link leads to {target}, which does not exist")
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].anchors:
                problems.append(f"{name}: a link leads to #{anchor}, which {target} does not have")

    # What the navigation and the search lead to; navtreeindex*.js says where pages are in the navigation, and links nowhere.
    for path in [*site.glob("[!n]*.js"), site / "navtreedata.js", *site.glob("search/*.js")]:
        for target in re.findall(r"""["'](?:\.\./)?(\w+\.html)[#"']""", path.read_text(encoding="utf-8")):
            if not (site / target).exists():
                problems.append(f"{path.name}: an entry leads to {target}, which does not exist")

    tree = (site / "navtreedata.js").read_text(encoding="utf-8") + (site / "navtreeindex0.js").read_text(encoding="utf-8")
    for path in sorted((source / "docs").rglob("*.md")):
        if path != source / "docs/README.md" and f"{path.stem}.html" not in tree:
            problems.append(f"the navigation does not have {path.stem}")
    return f"{len(pages)} pages, {len(headers)} headers, {len(functions)} functions, {len(classes)} classes"


with tempfile.TemporaryDirectory(prefix="rill-site-") as directory:
    made = subprocess.run([sys.executable, source / "docs/site/make_site.py", source, directory, doxygen, version],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode != 0:
        sys.exit(made.stdout or "no site")
    summary = check(pathlib.Path(directory) / "html")
print("\n".join(problems) or summary)
sys.exit(bool(problems))
