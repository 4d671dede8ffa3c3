"""A lab's cases in a students' release: kept from eyes that only pass by, not from a will to read.

The kit itself needs each case's settings, hints and cause: to run it, to check it, to help a step at
a time. So lab.toml holds what a student may read, and cases.sealed beside it the rest of the same
TOML, compressed and written in letters: no search finds a cause in it, and nobody reads one by
accident. Whoever wants to open it can. Pure but for reading that file.
"""

from __future__ import annotations

import base64
import binascii
import re
import textwrap
import zlib
from collections.abc import Iterator
from pathlib import Path

from measuretwice.base.errors import UserError

# What of a lab's folder students never get: points, and what the recorded runs of its cases say.
INSTRUCTORS_ONLY = frozenset({"rubric.toml", "facts.py", "facts"})
SEALED = "cases.sealed"
# What a student may read in lab.toml; any other table may say a cause, as a case or a figure's title.
OPEN_TABLES = frozenset(
    {"lab", "topology", "parameters", "trials", "run", "collect", "model", "expect"}
)
HEAD = """\
# What is wrong in each case of this lab, its hints and questions: for ./lab, which tells them in their time.
# It is only compressed. Whoever opens it takes the finding away from themselves.
"""
LINE = 100
MAX_BYTES = 2**22
HEADER = re.compile(r"^\[\[?\s*([A-Za-z_-]+)")
DIRECTIVE = "#:"
QUOTES = '"""'


def split_facts(text: str) -> tuple[str, str]:
    """Return lab.toml's text in two: what students may read, without comments, and all other tables."""
    open_parts: list[str] = []
    other_parts: list[str] = []
    for table, lines in _tables(text):
        if table is None or table in OPEN_TABLES:
            open_parts += _without_comments(lines)
        else:
            other_parts += lines
    return _tidy(open_parts), _tidy(other_parts)


def _tables(text: str) -> Iterator[tuple[str | None, list[str]]]:
    """Each table with its lines; the first has no name. A comment belongs to the table below it."""
    name: str | None = None
    lines: list[str] = []
    in_text = False  # between three quotes, where anything may stand
    for line in text.splitlines():
        found = None if in_text else HEADER.match(line)
        if found:
            below = len(lines)
            while below and (_is_comment(lines[below - 1]) or not lines[below - 1].strip()):
                below -= 1
            yield name, lines[:below]
            name, lines = found[1], lines[below:]
        lines.append(line)
        in_text ^= line.count(QUOTES) % 2 == 1
    yield name, lines


def _without_comments(lines: list[str]) -> list[str]:
    kept, in_text = [], False
    for line in lines:
        if in_text or not _is_comment(line):
            kept.append(line)
        in_text ^= line.count(QUOTES) % 2 == 1
    return kept


def _is_comment(line: str) -> bool:
    return line.startswith("#") and not line.startswith(DIRECTIVE)


def _tidy(lines: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def seal(text: str) -> str:
    """Return a text as cases.sealed holds it."""
    letters = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return HEAD + "\n".join(textwrap.wrap(letters, LINE)) + "\n"


def unseal(path: Path) -> str:
    """Return the text that was sealed; nothing where there is no such file.

    UserError where it can't be read or was changed.
    """
    try:
        written = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):
        raise _damaged(path) from None
    letters = "".join(line for line in written.splitlines() if not line.startswith("#"))
    try:
        opener = zlib.decompressobj()
        text = opener.decompress(base64.b64decode(letters, validate=True), MAX_BYTES)
        if not opener.eof:
            raise _damaged(path)
        return text.decode()
    except (binascii.Error, zlib.error, ValueError):
        raise _damaged(path) from None


def _damaged(path: Path) -> UserError:
    return UserError(
        f"{'/'.join(path.parts[-3:])}: is damaged; take it again from the release that you were given"
    )
