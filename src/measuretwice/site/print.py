"""A module on one page, for paper: its pages in the order of the navigation, unfolded.

Students have it without answers, so that nobody reads a cause below the figure that asks for it.
Instructors have all of it. Works on pages as they are prepared, which Zensical, a release and `--serve` read as mkdocs
does; of built HTML there would be one for each. Pure: text in, text out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping

from measuretwice.site.macros.blocks import OF_HINTS, numbered
from measuretwice.site.macros.browser_run import OTHER_WAYS

FENCE = re.compile(r"^ *(```+|~~~+)")
# A heading of a folded block stands further in.
HEADING = re.compile(r"^((?: {4})*)(#{1,5}) +(.*?)(?: +\{ *(?:#([\w-]+))?[^{}]*\})? *$")
FOLDED = re.compile(r"^( *)\?\?\?\+? +(.*)$")
TAB = re.compile(r'^( *)===[!+]? +"(.*)"$')
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)(\{[^}]*\})?")
NUMBERED = re.compile(r"^\d+\. ")
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
# What scripts draw from: paper has the picture and the table that stand beside it.
DRAWN_FROM = re.compile(r'<script type="application/json">.*?</script>\n?', re.DOTALL)
# What a page runs, and where it takes an answer: paper has room for one instead.
OF_SCREENS = re.compile(
    r'<div class="(?:here|notebook|judgement)" (?:data-here|data-live|data-case="[^"]*" data-(?:kind="answer"|asked))[^>]*></div>'
)
DRAWN = re.compile(r'<div class="interactive"[^>]*?( markdown)?>')
ANSWER = '<div class="answer"></div>'
# What only those read who have looked themselves, or ask to be shown.
DIAGNOSIS = re.compile(
    r'^(?:<details class="behind" data-behind="judgement".*?^</details>$\n*)?'
    r'<details class="behind" data-behind="diagnosis".*?^</details>$',
    re.DOTALL | re.MULTILINE,
)
HINTS = re.compile(
    rf"^## Hints\n+{re.escape(OF_HINTS)}.*?^</section>$\n*", re.DOTALL | re.MULTILINE
)
OF_A_CASE = re.compile(r"^( *)\?\?\? question (.+)\n(?:\1    .*\n|\n)+", re.MULTILINE)
# How else to run something: paper has the command.
WAYS = re.compile(
    rf'^( *)\?\?\? [\w -]+ "{re.escape(OTHER_WAYS)}"\n(?:\1    .*\n|\n)+', re.MULTILINE
)
WHERE = "Its hints and its diagnosis are on the case's own page."
CASE = re.compile(r"case-\d+")
HEAD = """---
title: "{title}: to print"
search:
  exclude: true
hide: [navigation, toc]
---

"""
HINT = """The module on one page, {what}. Print it, or save it as PDF, with your browser's own command: Ctrl-P. There is also
[a sheet to write on](sheet.md).
{{ .screen-only }}

"""


def one_page(title: str, folder: str, pages: Mapping[str, str], *, answers: bool) -> str:
    """Return all pages of modules/`folder`/ as one: by their names, in order, the first one's heading on top.

    Headings go down one step but on the first page, folded blocks are open, tabs stand one below
    the other (but ways to run something besides the command are left out), links between the pages stay on
    the page, and what asks for an answer leaves room. Without `answers` there are no hints, no
    diagnoses, and of the pages that come after the cases only the questions.
    """
    if not answers:
        pages = {name: _unanswered(text) for name, text in _before_answers(pages).items()}
    parts: list[str] = []
    for name, text in pages.items():
        text = DRAWN_FROM.sub("", FRONT.sub("", OF_SCREENS.sub("", WAYS.sub("", text))))
        lines = _unfold_tabs(DRAWN.sub(r"<div\1>", text).split("\n"))
        parts.append("\n".join(_on_paper(lines, name, folder, pages, first=not parts)))
    what = "with hints and answers" if answers else "without its answers"
    head = HEAD.format(title=title) + HINT.format(what=what)
    return head + numbered("\n\n".join(part.strip("\n") for part in parts) + "\n")


def _before_answers(pages: Mapping[str, str]) -> dict[str, str]:
    """A module's pages up to its last case, and its questions; all of a module without cases."""
    names = list(pages)
    cases = [index for index, name in enumerate(names) if CASE.fullmatch(name)]
    end = cases[-1] + 1 if cases else len(names)
    return {name: pages[name] for name in names if name in names[:end] or name == "questions"}


def _unanswered(text: str) -> str:
    """A page without its hints and its diagnosis; of a question about a case there is its heading."""
    text = DIAGNOSIS.sub(f"{ANSWER}\n\n{WHERE}", HINTS.sub("", text))
    return OF_A_CASE.sub(r"\1*\2*\n\n", text)


def _with_fences(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a fenced block, its fences included."""
    inside = ""
    for line in lines:
        mark = FENCE.match(line)
        yield line, bool(inside or mark)
        if not inside:
            inside = mark[1] if mark else ""
        elif mark and mark[1].startswith(inside) and line.strip() == mark[1]:
            inside = ""


def _unfold_tabs(lines: list[str]) -> list[str]:
    """`=== "title"` and its indented block become a bold line and the block."""
    unfolded: list[str] = []
    indents: list[int] = []  # of the tabs that we are in, the outermost first
    for line, in_fence in _with_fences(lines):
        depth = len(line) - len(line.lstrip(" "))
        if line.strip():
            while indents and depth <= indents[-1]:
                indents.pop()
        tab = None if in_fence else TAB.match(line)
        text = line[4 * len(indents) :] if line.strip() else ""
        if tab:
            unfolded += [f"{text[: len(text) - len(text.lstrip(' '))]}**{tab[2]}**"]
            indents.append(depth)
        else:
            unfolded.append(text)
    return unfolded


def _on_paper(
    lines: list[str], name: str, folder: str, names: Collection[str], *, first: bool
) -> list[str]:
    """A page's lines with folded blocks open, headings one step down and with names of their own, links that are right from
    here, and room to write: at the end of a section 'Predict', and after each of the questions."""
    printed: list[str] = []
    room = ""

    def leave_room() -> None:
        nonlocal room
        if room:
            while printed and not printed[-1].strip():
                printed.pop()
            printed.extend(["", room, ""])
            room = ""

    for line, in_fence in _with_fences(lines):
        if in_fence:
            printed.append(line)
            continue
        if heading := HEADING.match(line):
            leave_room()
            indent, marks, title, anchor = heading.groups()
            room = ANSWER if (indent, marks, title, anchor) == ("", "##", "Predict", None) else ""
            id = name if marks == "#" else f"{name}--{anchor or _slug(title)}"
            # Each page begins on a sheet of its own.
            sheet = " .sheet" if not first and marks == "#" else ""
            line = f"{indent}{'' if first else '#'}{marks} {title} {{ #{id}{sheet} }}"
        elif name == "questions" and NUMBERED.match(line):
            leave_room()
            room = f"    {ANSWER}"
        line = FOLDED.sub(r"\1!!! \2", line)
        printed.append(LINK.sub(lambda link: _link(link, name, folder, names), line))
    leave_room()
    return printed


def _slug(text: str) -> str:
    """Return a heading's anchor as mkdocs makes it."""
    plain = re.sub(r"[^\w\s-]", "", text).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


def _link(link: re.Match[str], name: str, folder: str, names: Collection[str]) -> str:
    """A link to one of the module's pages stays on this page; for others, paper says where they lead."""
    label, target, attributes = link[1], link[2], link[3] or ""
    path, _, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or attributes:
        return link[0]
    stem = name if not path else path.removesuffix(".md")
    if stem in names:
        return f"[{label}](#{stem}{f'--{anchor}' if anchor else ''})"
    if path.endswith(".md"):
        address = posixpath.normpath(posixpath.join("modules", folder, path)).removesuffix(".md")
        address = address.removesuffix("index").rstrip("/")
        return f'[{label}]({target}){{ data-paper="{address}" }}'
    return link[0]
