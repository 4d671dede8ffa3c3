"""What pages of one kind have in common, and what each says of itself in its front matter.

Layouts are in docs/layouts/. A case's page says which case it is of, `case: mtu`, and holds its own words below
second-level headings; case.md.j2 says where they go. A module's front says `module: yes`: its own words follow what
module.md.j2 says of every module. A plan for a class says `lesson: yes`, and which lab's it is. Its tables give each row's
minutes, from which the clock follows, and a row that is of a case says only what is that case's own; lesson.md.j2 words
the rest.

| 4 | 4 | case mtu | What else goes into the formula? |       minutes of the long plan and of the short one (– for none)
| 8 | 6 | search | Read one line of ss aloud. |
| 5 | 4 | cause | Who refused the size? |                      for instructors only

What a page is, in a sentence, search engines and the card of a link get: its front matter's `description`, or one by its
kind, or its own first words. No description tells a case's cause. Pure: text in, text out.
"""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab

CASE = "layouts/case.md.j2"
MODULE = "layouts/module.md.j2"
LESSON = "layouts/lesson.md.j2"
# What a page says of itself to those who make it, and no reader sees: the facts that its words rest on, the other pages that it is made of, whose facts come first (`facts: worked`), the
# lab that it is of, and the steps of the story that it tells over a figure; of a case's page, its case and the parameters that its picture names; of a module's front,
# its heading and two remarks; of a plan for a class, the cases of its session, and the module's page that sums up. Lines further in, or of a list,
# belong to the key above them.
KEY = re.compile(
    r"^(relies_on|reads|facts|lab|story|case|told|module|heading|trials_note|note|lesson|session|results):(.*\n(?:[ -].*\n)*)",
    re.MULTILINE,
)
NEEDED = (
    "Predict",
    "What you see",
    "What is wrong",
    "Fix it",
    "What the authors saw",
    "Key points",
)
MAY_BE = ("Predict as well", "Run", "Run again", "Another way", "Show me")
RECORDED = "The recorded run"
LESSON_NEEDS = ("Minute by minute", "You run late", "Homework", "What they get wrong")
# What happens in these rows the layout says; a row of any other kind says it itself.
SEARCH, CAUSE = "search", "cause"
# A session's parts besides its cases, in minutes, and after how many cases there is a break.
BEGIN_MIN, COMPARE_MIN, BREAK_MIN, TOGETHER_MIN, END_MIN = 20, 3, 10, 15, 10
CASES_TO_A_BREAK = 3
# How many characters of a description search engines show.
LONGEST = 158
FRONT = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
# Front matter of a page, as it is written; more is not needed here.
GIVEN = re.compile(r"^description:", re.MULTILINE)
CASE_PAGE = re.compile(r"case-(\d+)")
# What isn't text: words in braces, marks, addresses, HTML.
MARKS = re.compile(r"\{[^}]*\}|<[^>]*>|[*`]|!\[[^\]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ENDS = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")


def laid_out(text: str, fill: Callable[[str, Mapping[str, Any]], str]) -> str:
    """Return a page as its layout has it; as it is where it has none.

    `text` is the page with its words filled in; `fill` fills a layout with further words. UserError where a part is missing.
    """
    front, keys, body = _front(text)
    if "module" in keys:
        words = {"heading": "", "trials_note": "", "note": "", **keys, "body": body.strip("\n")}
        return front + ("\n" if front else "") + _squeezed(fill(MODULE, words))
    if "lesson" in keys:
        return front + "\n" + _squeezed(fill(LESSON, _of_lesson(keys, body)))
    if "case" not in keys:
        return front + body
    # The layout begins with front matter of its own, which all these pages have.
    page = _squeezed(fill(CASE, _of_case(keys, body)))
    return front.removesuffix("---\n") + page.removeprefix("---\n") if front else page


def _of_case(keys: Mapping[str, str], body: str) -> dict[str, Any]:
    """Return the values for the layout of a case's page."""
    parts = split(body)
    for heading in parts:
        headings = (*NEEDED, *MAY_BE)
        if heading not in headings and (
            near := difflib.get_close_matches(heading.capitalize(), headings, 1, 0.8)
        ):
            raise UserError(
                f"this page of a case has a heading '## {heading}': is it '## {near[0]}'?"
            )
    if missing := [heading for heading in NEEDED if heading not in parts]:
        raise UserError(f"this page of a case has no heading '## {missing[0]}'")
    recorded = [heading for heading in parts if heading.startswith(RECORDED)]
    if len(recorded) != 1:
        raise UserError(
            f"this page of a case has {len(recorded)} headings '## {RECORDED} ...': one is expected"
        )

    problem, _, setup = parts["Predict"].partition("\n\n")
    return {
        "case": keys["case"],
        # What introduces a table that now stands further down ends like any sentence.
        "problem": re.sub(r":\Z", ".", problem),
        "setup": setup,
        "told": re.findall(r"\w+", keys.get("told", "")),
        "part": lambda heading: parts.get(heading, ""),
        "inner": lambda heading: indent(parts.get(heading, ""), " " * 4),
        "recorded_title": recorded[0],
        "several": recorded[0].startswith(f"{RECORDED}s"),
        "others": [name for name in parts if name not in (*NEEDED, *MAY_BE, recorded[0])],
    }


def _of_lesson(keys: Mapping[str, str], body: str) -> dict[str, Any]:
    """Return the values for the layout of a plan for a class."""
    parts = split(body)
    sessions = [heading for heading in parts if heading.startswith("A session of")]
    headings = ("The day before", *LESSON_NEEDS, *sessions)
    for heading in (*LESSON_NEEDS, *parts):
        if heading not in parts or heading not in headings:
            is_there = "an unknown" if heading in parts else "no"
            raise UserError(f"this plan for a class has {is_there} heading '## {heading}'")
    if len(sessions) + ("session" in keys) != 1:
        raise UserError(
            "a plan for a class has either the cases of its session, 'session: [...]' in its front matter, or a heading "
            "'## A session of ...'"
        )
    rows = plan_rows(parts["Minute by minute"])
    return {
        "head": body.partition("\n## ")[0].strip("\n"),
        "part": lambda heading: parts.get(heading, ""),
        "columns": "\n".join(parts["Minute by minute"].splitlines()[:2]),
        "rows": rows,
        "cases": [row.case for row in rows if row.kind == "case"],
        "session_heading": "".join(sessions),
        "session": "".join(timed(parts[heading]) for heading in sessions),
        "session_cases": re.findall(r"[\w-]+", keys.get("session", "")),
        "session_rows": session_rows,
        "results": keys.get("results", "results.md"),
    }


def _squeezed(text: str) -> str:
    """Without the empty lines of parts that a page hasn't."""
    return re.sub(r"\n{3,}", "\n\n", text.strip("\n")) + "\n"


def front_matter(text: str) -> dict[str, str]:
    """Return what a page says in its front matter to those who make it."""
    return _front(text)[1]


def _front(text: str) -> tuple[str, dict[str, str], str]:
    """A page's front matter without the layout's keys, these keys, and what follows."""
    if not text.startswith("---\n"):
        return "", {}, text
    front, end, body = text.partition("\n---\n")
    keys = {key: value.strip().strip('"') for key, value in KEY.findall(f"{front}\n")}
    left = KEY.sub("", f"{front}\n")
    return ("" if left == "---\n" else left + end[1:]), keys, body


def split(text: str) -> dict[str, str]:
    """Return what stands below each second-level heading, by heading; a line of `##` in a fence is none."""
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = re.match(r" *(```+|~~~+)", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        if line.startswith("## ") and not fence:
            heading = line.removeprefix("## ").strip()
            if heading in parts:
                raise UserError(f"this page has two headings '## {heading}'")
            lines = parts[heading] = []
        else:
            lines.append(line)
    return {heading: "\n".join(lines).strip("\n") for heading, lines in parts.items()}


@dataclass(frozen=True)
class Row:
    """A row of a plan: from when to when, what happens, what to ask. `kind` is "case", "search" or "cause" where the row is
    one of a case, `case` that case."""

    when: str
    when_short: str
    happens: str
    ask: str
    kind: str
    case: str


@dataclass(frozen=True)
class SessionRow:
    """A row of a session: from when to when, and what of: "begin", "case", "break", "together" or "end"."""

    when: str
    kind: str
    case: str = ""


def plan_rows(text: str) -> list[Row]:
    """Return the rows of a plan's table; UserError for one that has no minutes or not four cells."""
    rows, long, short, case = [], 0, 0, ""
    for cells in _cells(text):
        if len(cells) != 4 or not cells[0].isdecimal() or not (cells[1].isdecimal() or cells[1] == "–"):  # fmt: skip
            raise UserError(
                "a row of a plan has four cells, minutes, minutes or –, what happens, what to ask: "
                + " | ".join(cells)
            )
        happens = cells[2]
        kind = happens if happens in (SEARCH, CAUSE) else ""
        if happens.startswith("case "):
            kind, case = "case", happens.removeprefix("case ").strip()
        now, now_short = int(cells[0]), int(cells[1]) if cells[1] != "–" else 0
        when_short = _span(short, now_short) if now_short else "–"
        rows.append(Row(_span(long, now), when_short, happens, cells[3], kind, case))
        long, short = long + now, short + now_short
    return rows


def session_rows(cases: Sequence[str], minutes: Mapping[str, int]) -> tuple[list[SessionRow], int]:
    """Return a session that has so many minutes for each of these cases, and its length in minutes."""
    parts = [("begin", "", BEGIN_MIN)]
    for number, case in enumerate(cases, 1):
        if case not in minutes:
            raise UserError(f"there is no case {case!r}; there are {', '.join(minutes)}")
        parts.append(("case", case, minutes[case] + COMPARE_MIN))
        if number % CASES_TO_A_BREAK == 0 and number < len(cases):
            parts.append(("break", "", BREAK_MIN))
    parts += [("together", "", TOGETHER_MIN), ("end", "", END_MIN)]
    rows, at = [], 0
    for kind, case, length in parts:
        rows.append(SessionRow(_span(at, length), kind, case))
        at += length
    return rows, at


def timed(text: str) -> str:
    """Return a table of minutes and what happens with the clock instead of the minutes, and a last row for all of them."""
    rows, at = [], 0
    for minutes, happens in _cells(text):
        rows.append(f"| {_span(at, int(minutes))} | {happens} |")
        at += int(minutes)
    head = text.strip().splitlines()[:2]
    return "\n".join([*head, *rows, f"| **{at}** | **in all** |"])


def _cells(text: str) -> Iterator[list[str]]:
    """The cells of each row of a Markdown table below its headings."""
    for line in text.strip().splitlines()[2:]:
        if line.strip():
            yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def _span(start: int, minutes: int) -> str:
    return f"{start}&nbsp;to&nbsp;{start + minutes}"


def described(text: str, page: str, labs: dict[str, Lab]) -> str:
    """Return a page's text with a description and the name of its card; `labs` by their folders' names."""
    lab, name = _lab_and_page(page, labs)
    card = lab.folder.name if lab else "course"
    front = FRONT.match(text)
    lines = f"card: {card}\n"
    if not (front and GIVEN.search(front[1])):
        description = (_by_kind(lab, name) if lab else None) or first_words(text)
        if description:
            lines += f"description: {_quoted(description)}\n"
    if front:
        return f"---\n{lines}{text[4:]}"
    return f"---\n{lines}---\n\n{text}"


def _lab_and_page(page: str, labs: dict[str, Lab]) -> tuple[Lab | None, str]:
    parts = page.removesuffix(".md").split("/")
    for folder, lab in labs.items():
        if folder in parts:
            return lab, parts[-1]
        if parts[:2] == ["instructors", "key"] and parts[-1].startswith(folder):
            return lab, "notes" if parts[-1].endswith("-notes") else "key"
    return None, parts[-1]


def _by_kind(lab: Lab, name: str) -> str | None:
    """Return the description of a page that every module has, by its name; None for another page."""
    about, module = lab.file.lab, lab.name.capitalize()
    several = len(lab.file.pitfalls)
    if match := CASE_PAGE.fullmatch(name):
        number = int(match[1])
        return f"{module}, case {number} of {several}: {lab.case(number).symptom}. Predict, run it, and find out why."
    cases = f"with {several} cases, " if several else ""
    return {
        "index": f"{about.question or about.title} A module {cases}on real Linux TCP.",
        "questions": f"The questions of the module {module}, for your report, and what each counts.",
        "print": f"The module {module} on one page, to print.",
        "sheet": f"The module {module} on a sheet to write on, with room for what you predict, see and conclude.",
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
    text = sentences[0]
    for sentence in sentences[1:]:
        if len(text) + 1 + len(sentence) > LONGEST:
            break
        text += f" {sentence}"
    if len(text) <= LONGEST:
        return text
    return text[: LONGEST - 2].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def _quoted(text: str) -> str:
    plain = html.unescape(text).replace("\\", "").replace('"', "'")
    return f'"{plain}"'
