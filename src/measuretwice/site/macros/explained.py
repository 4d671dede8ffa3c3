"""What a tool printed in a recorded run, with each field explained where it stands, by the tables in parse/."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from measuretwice.base.errors import UserError
from measuretwice.parse.fields import Meaning, Meanings
from measuretwice.parse.host import NSTAT
from measuretwice.parse.iperf3 import IPERF3
from measuretwice.parse.ping import PING
from measuretwice.parse.ss_fields import PAIRS, RATES, SS
from measuretwice.parse.tc_fields import QDISC, QDISC_OPTIONS
from measuretwice.parse.tcpdump import TCPDUMP
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.blocks import UNSEARCHED, Block
from measuretwice.site.macros.excerpts import (
    Lines,
    LineSelection,
    origin_of,
    selected_lines,
    selected_object,
)

# A value that is printed with its unit needs none beside it.
WITH_UNIT = re.compile(r"[0-9.]+ ?(%|bps|ms)")
# What ./lab show prints in ms.
IPERF3_JSON = {**IPERF3, "rtt": replace(IPERF3["rtt"], unit="µs")}
SS_WORD = re.compile(
    r"(?P<state>^[A-Z][A-Z0-9-]+(?= +[0-9]+ ))|(?P<name>\b[a-z_]+):\S+"
    rf"|\b(?P<rate>{'|'.join(RATES)}) \S+bps"
    r"|\b(?P<flag>ts|app_limited)\b|(?P<algorithm>(?<=:5201 )[a-z_]+\b)"
)
SS_QUEUES = re.compile(r"^[A-Z0-9-]+ +([0-9]+) +([0-9]+) ")
JSON_KEY = re.compile(r'^( *|\t*)"([^"]+)":\s*("[^"]*"|[^,{\[\s]+|[{\[])')
PING_FIELDS = (
    ("payload", r"\b[0-9]+\([0-9]+\)"),
    ("icmp_seq", r"\bicmp_seq=[0-9]+"),
    ("ttl", r"\bttl=[0-9]+"),
    ("time of one", r"\btime=[0-9.]+ ms"),
    ("transmitted", r"\b[0-9]+ packets transmitted"),
    ("received", r"\b[0-9]+ received"),
    ("loss", r"\b[0-9.]+% packet loss"),
    ("time", r"\btime [0-9]+ms"),
    ("pipe", r"\bpipe [0-9]+"),
)
PING_RTT = re.compile(r"= ([0-9.]+)/([0-9.]+)/([0-9.]+)/([0-9.]+) ms")
TCPDUMP_LINE = re.compile(
    r"(?P<ethernet>\S+ > [0-9a-f:]+),.* length (?P<length>[0-9]+): "
    r"(?P<from>[0-9.]+) > (?P<to>[0-9.]+): tcp (?P<tcp>[0-9]+)"
)


@dataclass(frozen=True)
class Mark:
    """A field in a line: from where to where it reaches, and what its parts are name and mean."""

    start: int
    end: int
    meanings: tuple[tuple[str, Meaning], ...]


def _ss(lines: list[str]) -> Iterator[list[Mark]]:
    for line in lines:
        marks = []
        if queues := SS_QUEUES.match(line):
            marks = [_mark(SS, queues.span(n), name) for n, name in ((1, "Recv-Q"), (2, "Send-Q"))]
        for match in SS_WORD.finditer(line):
            kind = str(match.lastgroup)
            name = match[kind] if kind in ("name", "rate", "flag") else kind
            names = PAIRS.get(name, (name,))
            if all(part in SS for part in names):
                marks.append(_mark(SS, match.span(), *names))
        yield marks


def _ping(lines: list[str]) -> Iterator[list[Mark]]:
    for line in lines:
        marks = [
            _mark(PING, match.span(), name)
            for name, pattern in PING_FIELDS
            for match in re.finditer(pattern, line)
        ]
        if match := PING_RTT.search(line):
            names = ("min", "avg", "max", "mdev")
            marks += [_mark(PING, match.span(n), name) for n, name in enumerate(names, 1)]
        yield marks


def _tcpdump(lines: list[str]) -> Iterator[list[Mark]]:
    for line in lines:
        match = TCPDUMP_LINE.search(line)
        yield [_mark(TCPDUMP, match.span(name), name) for name in TCPDUMP] if match else []


def _json(table: Meanings) -> Callable[[list[str]], Iterator[list[Mark]]]:
    """Lines of JSON, a key each, whatever it stands in."""

    def marks(lines: list[str]) -> Iterator[list[Mark]]:
        for line in lines:
            match = JSON_KEY.match(line)
            is_explained = match is not None and match[2] in table
            yield (
                [_mark(table, (match.start(2) - 1, match.end(3)), match[2])]
                if match and is_explained
                else []
            )

    return marks


def _tc(lines: list[str]) -> Iterator[list[Mark]]:
    """A qdisc's JSON as json.dumps lays it out: what stands in `options` is its kind's."""
    kinds = [match[1] for line in lines if (match := re.search(r'"kind": "(\w+)"', line))]
    options = QDISC_OPTIONS.get(kinds[0], {}) if kinds else {}
    above: list[str] = []
    for line in lines:
        match = JSON_KEY.match(line)
        if not match:
            yield []
            continue
        depth = len(match[1]) // 2
        above = [*above[: depth - 1], match[2]]
        of_kind = above[0] == "options"
        name, table = (".".join(above[1:]), options) if of_kind else (match[2], QDISC)
        end = match.end(3)
        yield [_mark(table, (match.start(2) - 1, end), name)] if name in table else []


def _mark(table: Meanings, span: tuple[int, int], *names: str) -> Mark:
    return Mark(*span, tuple((name, table[name]) for name in names))


TOOLS: dict[str, Callable[[list[str]], Iterator[list[Mark]]]] = {
    "ss": _ss,
    "ping": _ping,
    "tc": _tc,
    "iperf3": _json(IPERF3_JSON),
    "nstat": _json(NSTAT),
    "tcpdump": _tcpdump,
}


def marks_of(tool: str, text: str) -> list[list[Mark]]:
    """Return the fields of each line of a tool's output, from left to right; UserError for another tool."""
    if tool not in TOOLS:
        raise UserError(f"explained: there is no tool {tool!r}; there are {', '.join(TOOLS)}")
    return [sorted(marks, key=lambda mark: mark.start) for marks in TOOLS[tool](text.split("\n"))]


def explained(
    context: LabContext,
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
    """Return what `excerpt` shows, with each field explained where it stands: by pointing at it, by a tap or by
    the keyboard, and in a list below. The words are `./lab show`'s, from the tables in parse/. Tools are
    ss, tc, iperf3, ping, nstat and tcpdump."""
    run_dir = context.sets.run(name, trial, seed).run_dir
    text, what = (
        selected_lines(run_dir, file, LineSelection(**lines))
        if where is None
        else selected_object(run_dir, file, where, keys)
    )
    marks = marks_of(tool, text)
    begins = hashlib.sha256(f"{name} {trial} {seed} {what}{text}".encode()).hexdigest()[:6]
    parts, number = [], 0
    for line, of_line in zip(text.split("\n"), marks, strict=True):
        shown, done = "", 0
        for mark in of_line:
            number += 1
            shown += _escaped(line[done : mark.start]) + _field(line, mark, f"f{begins}-{number}")
            done = mark.end
        parts.append(shown + _escaped(line[done:]))
    # JSON keeps its lines, for their indentation.
    wrapped = "" if text.lstrip()[0] in '{["' else " wrapped"
    code = "\n".join(parts)
    return Block(
        f'<div class="explained" {UNSEARCHED}><div class="language-text highlight{wrapped}">'
        f'<span class="filename">{html.escape(file)}</span><pre><code>{code}\n</code></pre></div>'
        '<p class="explained-how">What is it? Point at a field, tap it, or go there with Tab and the arrow keys.</p>'
        f"{_list(text, marks)}</div>\n\n{origin_of(what, run_dir)}"
    )


def _escaped(text: str) -> str:
    # An empty line would end the block for Markdown, and there is none in what tools print here.
    return html.escape(text, quote=False)


def _field(line: str, mark: Mark, tooltip: str) -> str:
    value = line[mark.start : mark.end]
    rows = "".join(
        f"<span><b>{html.escape(name)}</b> {_meaning(meaning, value)}</span>"
        for name, meaning in mark.meanings
    )
    return (
        f'<button type="button" class="field" aria-describedby="{tooltip}">{_escaped(value)}</button>'
        f'<span class="meaning" role="tooltip" id="{tooltip}">{rows}</span>'
    )


def _meaning(meaning: Meaning, value: str) -> str:
    unit = (
        ""
        if not meaning.unit or WITH_UNIT.search(value)
        else f"<i>{html.escape(meaning.unit)}</i>: "
    )
    return unit + html.escape(meaning.text, quote=False)


def _list(text: str, marks: Sequence[Sequence[Mark]]) -> str:
    """The same as a table, each field once."""
    rows: dict[str, str] = {}
    sources: list[str] = []
    for line, of_line in zip(text.split("\n"), marks, strict=True):
        for mark in of_line:
            value = line[mark.start : mark.end]
            for name, meaning in mark.meanings:
                rows.setdefault(
                    name,
                    f"<tr><th scope=row><code>{html.escape(name)}</code></th><td>{_meaning(meaning, value)}</td></tr>",
                )
                if meaning.source not in sources:
                    sources.append(meaning.source)
    return (
        "<details><summary>All its fields, as a list</summary><table><thead><tr><th>field</th><th>what it is</th></tr></thead>"
        f"<tbody>{''.join(rows.values())}</tbody></table><p>According to {html.escape('; '.join(sources))}.</p></details>"
    )
