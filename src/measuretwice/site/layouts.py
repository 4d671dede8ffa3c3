"""Pages of one kind share a layout: what they have in common stands once, in docs/layouts/.

A case's page says in its front matter which case it is of, `case: mtu`, and holds its own words below second-level
headings; docs/layouts/case.md.j2 says where they go. A module's front says `module: yes`: its own words follow what
docs/layouts/module.md.j2 says of every module. A plan for a class says `lesson: yes`, and which lab's it is: lessons.py.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from textwrap import indent
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.site import lessons

CASE = "layouts/case.md.j2"
MODULE = "layouts/module.md.j2"
LESSON = "layouts/lesson.md.j2"
# What a page says of itself to those who make it, and no reader sees: the facts that its words rest on, whose facts come first (`facts: worked`), the
# lab that it is of, and the steps of the story that it tells over a figure; of a case's page, its case, parameters that its picture names, and that no setting mends it; of a module's front,
# its heading and two remarks; of a plan for a class, the cases of its session, and the module's page that sums up. Lines further in, or of a list,
# belong to the key above them.
KEY = re.compile(
    r"^(relies_on|facts|lab|story|case|told|settings|module|heading|trials_note|note|lesson|session|results):(.*\n(?:[ -].*\n)*)",
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
    """What the layout of a case's page puts in."""
    parts = split(body)
    for heading in parts:
        known = (*NEEDED, *MAY_BE)
        if heading not in known and (
            near := difflib.get_close_matches(heading.capitalize(), known, 1, 0.8)
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

    return {
        "case": keys["case"],
        "told": re.findall(r"\w+", keys.get("told", "")),
        "settings": keys.get("settings") != "none",
        "part": lambda heading: parts.get(heading, ""),
        "inner": lambda heading: indent(parts.get(heading, ""), " " * 4),
        "recorded_title": recorded[0],
        "several": recorded[0].startswith(f"{RECORDED}s"),
        "others": [name for name in parts if name not in (*NEEDED, *MAY_BE, recorded[0])],
    }


def _of_lesson(keys: Mapping[str, str], body: str) -> dict[str, Any]:
    """What the layout of a plan for a class puts in."""
    parts = split(body)
    sessions = [heading for heading in parts if heading.startswith("A session of")]
    known = ("The day before", *LESSON_NEEDS, *sessions)
    for heading in (*LESSON_NEEDS, *parts):
        if heading not in parts or heading not in known:
            is_there = "an unknown" if heading in parts else "no"
            raise UserError(f"this plan for a class has {is_there} heading '## {heading}'")
    if len(sessions) + ("session" in keys) != 1:
        raise UserError(
            "a plan for a class has either the cases of its session, 'session: [...]' in its front matter, or a heading "
            "'## A session of ...'"
        )
    rows = lessons.plan_rows(parts["Minute by minute"])
    return {
        "head": body.partition("\n## ")[0].strip("\n"),
        "part": lambda heading: parts.get(heading, ""),
        "columns": "\n".join(parts["Minute by minute"].splitlines()[:2]),
        "rows": rows,
        "cases": [row.case for row in rows if row.kind == "case"],
        "session_heading": "".join(sessions),
        "session": "".join(lessons.timed(parts[heading]) for heading in sessions),
        "session_cases": re.findall(r"[\w-]+", keys.get("session", "")),
        "session_rows": lessons.session_rows,
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
