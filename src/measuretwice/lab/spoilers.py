"""A lab's cases and questions in a students' release, and what names its cases' mistakes in the files of runs: kept from eyes
that only pass by, not from a will to read.

The kit itself needs each case's settings, hints and cause: to run it, to check it, to help a step at
a time. So lab.toml holds what a student may read, and cases.sealed beside it the rest of the same
TOML, compressed and written in letters: no search finds a cause in it, and nobody reads one by
accident. Whoever wants to open it can. The questions are sealed likewise: many name what was off in a case.

A run's plan holds every setting of its lab, and its result every value that was measured. Those settings that no list has are the
mistakes of cases by name, and so are some of the values: in a run's files they are packed.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import textwrap
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.lab.lab import Lab, short_path

QUESTIONS = "questions.md"
SEALED_QUESTIONS = "questions.sealed"

_CASES = re.compile(r"\b[Cc]ases? (\d+(?:(?:, | and )\d+)*)")
_NUMBERED = re.compile(r"^[0-9]+[.)] +", re.MULTILINE)
# What of a lab's folder students never get: points, and what the recorded runs of its cases say.
INSTRUCTORS_ONLY = frozenset({"rubric.toml", "facts.py", "facts"})
SEALED = "cases.sealed"
# What a student may read in lab.toml; any other table may say a cause, as a case or a figure's title.
READABLE_TABLES = frozenset(
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
# In a run's file, beside its `params`: those settings that no list has and those measured values that tell, packed.
UNLISTED = "unlisted_params"
MAX_PACKED_BYTES = 2**16


def split_spoilers(text: str) -> tuple[str, str]:
    """Return lab.toml's text in two, both without comments: what students may read, and all other tables."""
    readable: list[str] = []
    spoilers: list[str] = []
    lines, in_text = readable, False  # between three quotes, where anything may stand
    for line in text.splitlines():
        if not in_text:
            if line.startswith("#") and not line.startswith(DIRECTIVE):
                continue
            if header := HEADER.match(line):
                lines = readable if header[1] in READABLE_TABLES else spoilers
        lines.append(line)
        in_text ^= line.count(QUOTES) % 2 == 1
    return _joined(readable), _joined(spoilers)


def _joined(lines: list[str]) -> str:
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
        f"{short_path(path)}: is damaged; take it again from the release that you were given"
    )


def cases_asked_about(question: str) -> list[int]:
    """Return the cases that a question names, in order: it may say what was off in them."""
    return sorted({int(n) for named in _CASES.findall(question) for n in re.findall(r"\d+", named)})


def read_questions(lab: Lab) -> list[str]:
    """Return the questions of a lab's questions.md: its numbered list, each item as one line.

    In a students' release they are sealed: many name what was off in a case.
    """
    path = lab.folder / QUESTIONS
    text = (
        path.read_text(encoding="utf-8")
        if path.is_file()
        else unseal(lab.folder / SEALED_QUESTIONS)
    )
    items = _NUMBERED.split("\n" + text)[1:]
    return [" ".join(item.split("\n\n")[0].split()) for item in items]


def hide_unlisted(
    lab: Lab, document: Mapping[str, Any], telling: Collection[str] = ()
) -> dict[str, Any]:
    """Return a run's document with those of its `params` packed that no list has, a `title` that names one, and those of
    its `measured` values that are `telling`.

    `with_unlisted` makes it whole again.
    """
    unlisted = [name for name in document["params"] if lab.is_unlisted(name)]
    hidden: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    for table, names in (("params", unlisted), ("measured", telling)):
        values = document.get(table) or {}
        if packed := [
            (place, name, value)
            for place, (name, value) in enumerate(values.items())
            if name in names
        ]:
            hidden[table] = packed
            shown[table] = {name: value for name, value in values.items() if name not in names}
    if (title := document.get("title", "")) != (listed := lab.listed_title(title)):
        hidden["title"], shown["title"] = title, listed
    if not hidden:
        return dict(document)
    packed_text = base64.b64encode(zlib.compress(json.dumps(hidden).encode(), 9)).decode()
    content: dict[str, Any] = {}
    for key, value in document.items():
        content[key] = shown.get(key, value)
        if key == "params":
            content[UNLISTED] = packed_text
    return content


def with_unlisted(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's document with all of its settings among its `params`, and all of its `measured` values, in their
    order; one that packs none as it is.

    ValueError where it can't be read.
    """
    content = {key: value for key, value in document.items() if key != UNLISTED}
    if UNLISTED not in document:
        return content
    twice = ""
    try:
        packed = base64.b64decode(document[UNLISTED], validate=True)
        hidden = json.loads(zlib.decompressobj().decompress(packed, MAX_PACKED_BYTES))
        for table, what in (("params", "setting"), ("measured", "value")):
            if not (packed_values := hidden.get(table, [])):
                continue
            items = list(content[table].items())
            for place, name, value in packed_values:
                items.insert(place, (name, value))
            content[table] = dict(items)
            twice = twice or what * (len(content[table]) != len(items))
        if "title" in hidden:
            content["title"] = str(hidden["title"])
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, zlib.error):  # fmt: skip
        raise ValueError(f"{UNLISTED}: can't be read") from None
    if twice:
        raise ValueError(f"{UNLISTED}: a {twice} stands twice")
    return content
