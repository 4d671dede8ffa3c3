"""What a tool printed in a recorded run, with each field explained where it stands."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Sequence
from typing import Any, Unpack

from measuretwice.parse.fields import Meaning
from measuretwice.site.field_marks import Mark, marks_of
from measuretwice.site.words.blocks import UNSEARCHED, Block
from measuretwice.site.words.excerpts import (
    Cut,
    Lines,
    lines_of,
    object_of,
    origin_of,
)
from measuretwice.site.words.registry import word
from measuretwice.site.words.runs import run
from measuretwice.site.words.subjects import LabWords

# A value that is printed with its unit needs none beside it.
WITH_UNIT = re.compile(r"[0-9.]+ ?(%|bps|ms)")


@word('explained("ss", "readings", "romeo/ss.txt", last=1)')
def explained(
    words: LabWords,
    tool: str,
    name: str,
    file: str,
    *,
    where: dict[str, Any] | None = None,
    keys: Sequence[str] = (),
    trial: int | None = None,
    seed: int | None = None,
    **lines: Unpack[Lines],
) -> Block:
    """What `excerpt` shows, with each field explained where it stands: by pointing at it, by a tap or by
    the keyboard, and in a list below. The words are `./lab show`'s, from the tables in parse/. Tools are
    ss, tc, iperf3, ping, nstat and tcpdump."""
    place = run(words, name, trial, seed).run_dir
    cut = Cut(**lines)
    text, what = (
        lines_of(place, file, cut) if where is None else object_of(place, file, where, keys)
    )
    marks = marks_of(tool, text)
    begins = hashlib.sha256(f"{name} {trial} {seed} {what}{text}".encode()).hexdigest()[:6]
    parts, number = [], 0
    for line, of_line in zip(text.split("\n"), marks, strict=True):
        shown, done = "", 0
        for mark in of_line:
            number += 1
            shown += _plain(line[done : mark.start]) + _field(line, mark, f"f{begins}-{number}")
            done = mark.end
        parts.append(shown + _plain(line[done:]))
    # JSON keeps its lines, for their indentation.
    wrapped = "" if text.lstrip()[0] in '{["' else " wrapped"
    code = "\n".join(parts)
    return Block(
        f'<div class="explained" {UNSEARCHED}><div class="language-text highlight{wrapped}">'
        f'<span class="filename">{html.escape(file)}</span><pre><code>{code}\n</code></pre></div>'
        '<p class="explained-how">What is it? Point at a field, tap it, or go there with Tab and the arrow keys.</p>'
        f"{_list(text, marks)}</div>\n\n{origin_of(what, place)}"
    )


def _plain(text: str) -> str:
    # An empty line would end the block for Markdown, and there is none in what tools print here.
    return html.escape(text, quote=False)


def _field(line: str, mark: Mark, name: str) -> str:
    said = line[mark.start : mark.end]
    rows = "".join(
        f"<span><b>{html.escape(called)}</b> {_meant(meaning, said)}</span>"
        for called, meaning in mark.meanings
    )
    return (
        f'<button type="button" class="field" aria-describedby="{name}">{_plain(said)}</button>'
        f'<span class="meaning" role="tooltip" id="{name}">{rows}</span>'
    )


def _meant(meaning: Meaning, said: str) -> str:
    unit = (
        ""
        if not meaning.unit or WITH_UNIT.search(said)
        else f"<i>{html.escape(meaning.unit)}</i>: "
    )
    return unit + html.escape(meaning.text, quote=False)


def _list(text: str, marks: Sequence[Sequence[Mark]]) -> str:
    """The same as a table, each field once."""
    rows: dict[str, str] = {}
    sources: list[str] = []
    for line, of_line in zip(text.split("\n"), marks, strict=True):
        for mark in of_line:
            said = line[mark.start : mark.end]
            for called, meaning in mark.meanings:
                rows.setdefault(
                    called,
                    f"<tr><th scope=row><code>{html.escape(called)}</code></th><td>{_meant(meaning, said)}</td></tr>",
                )
                if meaning.source not in sources:
                    sources.append(meaning.source)
    return (
        "<details><summary>All fields of it, as a list</summary><table><thead><tr><th>field</th><th>what it is</th></tr></thead>"
        f"<tbody>{''.join(rows.values())}</tbody></table><p>By {html.escape('; '.join(sources))}.</p></details>"
    )
