#!/usr/bin/env python3
"""Are pages prose? At most 15 % of a page's characters are Jinja, and none of it is {% set %}, {% for %} or a macro.

    pages.py            exit 1 with a line for each page that is more of a program
    pages.py --lower    lower the limits in program-pages.txt to what pages are now

Pages that are still programs stand in program-pages.txt, each with its share in percent and its count of {% %}: both may
only fall, and a page that has come below both limits leaves the list.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("program-pages.txt")
MOST_PERCENT = 15
JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{##.*?##\}", re.DOTALL)
PROGRAM = re.compile(r"\{%-? *(set|for|macro|call|filter|import|from)\b")


def measured(page: Path) -> tuple[int, int]:
    """Return the share of its characters that are Jinja, in percent, rounded up, and how many statements it has."""
    text = page.read_text(encoding="utf-8")
    jinja = sum(len(part) for part in JINJA.findall(text) if not part.startswith("{##"))
    return -(-100 * jinja // max(len(text), 1)), len(PROGRAM.findall(text))


def listed() -> dict[str, tuple[int, int]]:
    """The pages that may be programs for now, each with its two limits."""
    rows = (line.split() for line in LIST.read_text(encoding="utf-8").splitlines())
    return {name: (int(percent), int(statements)) for name, percent, statements in rows}


def main(arguments: list[str]) -> int:
    limits = listed()
    found = {
        page.relative_to(ROOT / "docs").as_posix(): measured(page)
        for page in sorted((ROOT / "docs").rglob("*.md"))
    }
    if arguments == ["--lower"]:
        rows = [
            f"{name} {min(now[0], limits[name][0])} {min(now[1], limits[name][1])}\n"
            for name, now in found.items()
            if name in limits and (now[0] > MOST_PERCENT or now[1])
        ]
        LIST.write_text("".join(rows), encoding="utf-8")
        return 0
    bad = 0
    for name, (percent, statements) in found.items():
        most_percent, most_statements = limits.get(name, (MOST_PERCENT, 0))
        if percent > most_percent or statements > most_statements:
            bad += 1
            print(
                f"docs/{name}: {percent} % of it is Jinja, with {statements} set, for or macro; allowed are "
                f"{most_percent} % and {most_statements}: compute in the lab's facts.py, and quote by name"
            )
    for name in limits:
        now = found.get(name)
        if now is None or (now[0] <= MOST_PERCENT and not now[1]):
            bad += 1
            print(f"{LIST.name}: {name} is no program any more: scripts/lint/pages.py --lower")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
