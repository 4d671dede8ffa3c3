"""What full marks look like, by question: from the worked solution of a lab, where this checkout has it."""

from __future__ import annotations

import re
from pathlib import Path

from measuretwice.lab import Lab

QUESTION = re.compile(r"^## Question ([0-9]+)\b", re.MULTILINE)
NEXT = re.compile(r"^## ", re.MULTILINE)
# A solution is a percent script: text cells are comments.
CELL = re.compile(r"^# %%( \[markdown\])?.*$", re.MULTILINE)


def read_key(root: Path, lab: Lab) -> dict[int, str]:
    """Return the solution's text for each question, as Markdown; empty where there is no solution.

    The numbers that its cells print aren't among it: they stand on the page of answers.
    """
    path = root / "solutions" / f"{lab.folder.name}.py"
    if not path.is_file():
        return {}
    text = _text_cells(path.read_text(encoding="utf-8"))
    key = {}
    for match in QUESTION.finditer(text):
        end = NEXT.search(text, match.end())
        heading, _, body = text[match.end() : end.start() if end else len(text)].partition("\n")
        about = heading.strip(" :,")
        key[int(match[1])] = (
            f"**{about[:1].upper()}{about[1:]}.** " if about else ""
        ) + body.strip()
    return key


def _text_cells(script: str) -> str:
    """The Markdown of a percent script."""
    marks = list(CELL.finditer(script))
    cells = []
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if mark[1]:
            body = script[mark.end() : following.start() if following else len(script)]
            cells.append(re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip("\n"))
    return "\n\n".join(cells)
