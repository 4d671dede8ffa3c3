#!/usr/bin/env python3
"""Are pages prose? At most 15 % of a page's characters are Jinja, and none of it is {% set %}, {% for %} or a macro.

Exit 1 with a line for each page that is more of a program.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_PERCENT = 15
JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{##.*?##\}", re.DOTALL)
PROGRAM = re.compile(r"\{%-? *(set|for|macro|call|filter|import|from)\b")


def measured(page: Path) -> tuple[int, int]:
    """Return the share of its characters that are Jinja, in percent, rounded up, and how many statements it has."""
    text = page.read_text(encoding="utf-8")
    jinja = sum(len(part) for part in JINJA.findall(text) if not part.startswith("{##"))
    return -(-100 * jinja // max(len(text), 1)), len(PROGRAM.findall(text))


def main() -> int:
    """Return the exit status, after a line for each page that isn't prose."""
    programs = 0
    for page in sorted((ROOT / "docs").rglob("*.md")):
        percent, statements = measured(page)
        if percent > MOST_PERCENT or statements:
            programs += 1
            print(
                f"{page.relative_to(ROOT)}: {percent} % of it is Jinja, with {statements} set, for or macro; allowed are "
                f"{MOST_PERCENT} % and none: compute in the lab's facts.py, and quote by name"
            )
    return 1 if programs else 0


if __name__ == "__main__":
    sys.exit(main())
