"""What a page is, in a sentence: for search engines, and for the card that a link to it becomes.

A page says it in its front matter, `description`. What doesn't is described by its kind, or by its own
first words. No description tells a case's cause. Pure: text in, text out.
"""

from __future__ import annotations

import html
import re

from measuretwice.lab import Lab

LONGEST = 158
FRONT = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
# Front matter of a page, as it is written; more is not needed here.
GIVEN = re.compile(r"^description:", re.MULTILINE)
CASE = re.compile(r"case-(\d+)")
# What isn't text: words in braces, marks, addresses, HTML.
MARKS = re.compile(r"\{[^}]*\}|<[^>]*>|[*`]|!\[[^\]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ENDS = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")


def described(text: str, page: str, labs: dict[str, Lab]) -> str:
    """Return a page's text with a description and the name of its card; `labs` by their folders' names."""
    lab, name = _place(page, labs)
    card = lab.folder.name if lab else "course"
    front = FRONT.match(text)
    lines = f"card: {card}\n"
    if not (front and GIVEN.search(front[1])):
        said = (_by_kind(lab, name) if lab else None) or first_words(text)
        if said:
            lines += f"description: {_quoted(said)}\n"
    if front:
        return f"---\n{lines}{text[4:]}"
    return f"---\n{lines}---\n\n{text}"


def _place(page: str, labs: dict[str, Lab]) -> tuple[Lab | None, str]:
    parts = page.removesuffix(".md").split("/")
    for folder, lab in labs.items():
        if folder in parts:
            return lab, parts[-1]
        if parts[:2] == ["instructors", "key"] and parts[-1].startswith(folder):
            return lab, "notes" if parts[-1].endswith("-notes") else "key"
    return None, parts[-1]


def _by_kind(lab: Lab, name: str) -> str | None:
    """What each module has."""
    about, module = lab.file.lab, lab.name.capitalize()
    several = len(lab.file.pitfalls)
    if found := CASE.fullmatch(name):
        number = int(found[1])
        return f"{module}, case {number} of {several}: {lab.case(number).symptom}. Predict, run it, and find out why."
    cases = f"with {several} cases, " if several else ""
    return {
        "index": f"{about.question or about.title} A module {cases}on real Linux TCP.",
        "questions": f"The questions of the module {module}, for your report, and what each counts.",
        "print": f"The module {module} on one page, to print.",
        "sheet": f"The module {module} on a sheet to write on: prediction, what was seen, what it is, what was changed.",
        "key": f"For instructors: the answers to the questions of the module {module}, computed from recorded runs.",
        "notes": f"For instructors: what students get wrong in the module {module}, what to ask, and what full marks look like.",
    }.get(name)  # fmt: skip


def first_words(text: str) -> str:
    """Return the first sentences of a page's first paragraph, as far as they fit; empty where it has none."""
    body = FRONT.sub("", text)
    for block in re.split(r"\n\s*\n", body):
        if re.match(r"\s*(#|\||<|```|=== |!!!|\?\?\?|- |\d+\. |>|\$\$|!\[)", block):
            continue
        plain = " ".join(MARKS.sub("", LINK.sub(r"\1", block)).split())
        if len(plain) > 20:
            return _as_far_as_it_fits(plain)
    return ""


def _as_far_as_it_fits(text: str) -> str:
    sentences = ENDS.split(text)
    said = sentences[0]
    for sentence in sentences[1:]:
        if len(said) + 1 + len(sentence) > LONGEST:
            break
        said += f" {sentence}"
    if len(said) <= LONGEST:
        return said
    return said[: LONGEST - 2].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def _quoted(text: str) -> str:
    plain = html.unescape(text).replace("\\", "").replace('"', "'")
    return f'"{plain}"'
