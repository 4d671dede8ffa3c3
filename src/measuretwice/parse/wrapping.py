"""A tool's output as people have it: what a logger puts before each line (a time, a pod, a container, a unit of
systemd, a quotation mark), the JSON that Docker, journald and Ansible make of lines, text before and behind; and in
files of iperf3 several tests, each by itself, of which one in which the server sent (-R) is turned round.

No measuring tool prints what is taken away here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from measuretwice.parse._reading import as_numbers

# How lines are called in the JSON of Docker's json-file and of `journalctl -o json`, an object a line.
_LINE_KEYS = ("log", "MESSAGE", "message")
_STRING = r'"(?:[^"\\]|\\.)*"'
_STDOUT = re.compile(rf'"(?:[\w.]*\bstdout|msg)"\s*:\s*({_STRING})')
_STDOUT_LINES = re.compile(
    rf'"(?:[\w.]*\bstdout_lines|msg)"\s*:\s*(\[\s*{_STRING}(?:\s*,\s*{_STRING})*\s*\])'
)
# So large a share of the lines has it, if it is what stands before each line.
_MOST_LINES = 0.7


def unwrapped(text: str, marks: re.Pattern[str]) -> str:
    """Return a text without what a logger has put before each line, and out of the JSON of lines.

    `marks` finds words with which lines of the tool begin. A text that has no such words, or nothing before them,
    comes back as it is; so do lines that haven't what stands before most others.
    """
    text = _out_of_json(text, marks)
    mark = marks.search(text)
    if mark is None:
        return text
    before = text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
    if not before.strip():
        return text
    shape = re.compile(_shape(before), re.M)
    lines = sum(1 for line in text.split("\n") if line.strip())
    return shape.sub("", text) if len(shape.findall(text)) >= _MOST_LINES * lines else text


def _shape(before: str) -> str:
    """A pattern of what is written like this: words and numbers differ from line to line, their signs don't."""
    parts = re.split(r"(\w+|\s+)", before.rstrip())
    return "^" + "".join(
        r"\w+" if part[:1].isalnum() or part[:1] == "_" else r"[ \t]+" if part.isspace() else re.escape(part)
        for part in parts
    ) + r"[ \t]?"  # fmt: skip


def _out_of_json(text: str, marks: re.Pattern[str]) -> str:
    if text.lstrip().startswith("{") and any(f'"{key}"' in text[:4000] for key in _LINE_KEYS):
        lines = [*_logged(text)]
        if lines:
            return "".join(lines)
    if '"stdout' in text or '"msg"' in text or ".stdout" in text:
        parts = [_decoded(match[1]) for match in _STDOUT.finditer(text)]
        parts = parts if any(map(marks.search, parts)) else [
            "\n".join(json.loads(match[1])) for match in _STDOUT_LINES.finditer(text)
        ]  # fmt: skip
        parts = [part for part in parts if marks.search(part)]
        if parts:
            return "".join(part if part.endswith("\n") else part + "\n" for part in parts)
    return text


def _decoded(string: str) -> str:
    try:
        return str(json.loads(string))
    except ValueError:
        return ""


def _logged(text: str) -> Iterator[str]:
    """Yield the lines in an object a line; nothing where a line is none."""
    for line in text.splitlines():
        try:
            row = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            return
        message = next((row[key] for key in _LINE_KEYS if key in row), None) if isinstance(row, dict) else None  # fmt: skip
        if isinstance(message, str):
            yield message if message.endswith("\n") else message + "\n"


# Files of iperf3.

_OPENING = re.compile(r"(?:^|=> |[\[,}])[ \t]*(?=\{)", re.M)
# Objects within objects in which Ansible and scripts keep a document.
_DEEPEST = 3
_BEGIN = re.compile(r".*Connecting to host ")
_SERVES = re.compile(r".*(?:Server listening on \d|Accepted connection from )")
_BELONGS = re.compile(r".*(?:/sec|iperf Done\.|iperf3: )")
_COMPLAINT = re.compile(r"^iperf3: (?:error - )?(.+)$", re.M)
_ENDS = re.compile(r"local (\S+) port (\d+) connected to (\S+) port (\d+)")
_CPU = re.compile(r"local/\w+ (.*), remote/\w+ (.*)")


# How a document begins: all that there is of one that was cut off early.
_HEAD = re.compile(r'^\s*\{\s*"start"\s*:\s*(?:\{|$)', re.M)
# What --json-stream prints of a test that never began.
_EVENT = re.compile(r'^\s*\{\s*"event"\s*:\s*"(?:start|interval|end|error)"\s*,\s*"data"', re.M)


def is_json(text: str) -> bool:
    """Return whether a document of iperf3 stands in a text."""
    if _EVENT.search(text):
        return True
    if '"sum_received"' in text and '"end"' in text:
        return True
    if '"start"' not in text:
        return False
    names = ("intervals", "error", "event")
    return any(f'"{name}"' in text for name in names) or bool(_HEAD.search(text))


def is_server(text: str) -> bool:
    """Return whether a text of iperf3 is a server's, by the first that it says of its part."""
    first = re.search(r"Connecting to host |Server listening on \d|Accepted connection from ", text)
    return first is not None and not first.group().startswith("Connecting")


def json_tests(text: str) -> list[str]:
    """Return each test's JSON: a document, or of --json-stream the events from a start to the next.

    What was printed twice stands there once. A document that can't be read comes as it is.
    """
    tests: list[str] = []
    streamed = False
    for document in _documents(text):
        event = document.startswith("{") and re.match(r'\{\s*"event"\s*:\s*"(\w+)"', document)
        if event and streamed and event[1] != "start":
            tests[-1] += "\n" + document
        else:
            tests.append(document)
        streamed = bool(event)
    return [*dict.fromkeys(test + "\n" for test in tests)] or [text]


def _documents(text: str) -> Iterator[str]:
    """Yield the documents in a text, and those that are broken up to the next one's beginning."""
    readable = as_numbers(text)
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    place = 0
    while opening := _OPENING.search(readable, max(place - 1, 0)):
        begin = opening.end()
        try:
            value, place = decoder.raw_decode(readable, begin)
        except (ValueError, RecursionError):
            following = re.compile(r"^\{", re.M).search(readable, begin + 1)
            place = following.start() if following else len(readable)
            broken = text[begin:place]
            if is_json(broken):
                yield broken
            elif not following:
                place = begin + 2
            continue
        if _is_document(value):
            yield text[begin:place]
        else:
            yield from (json.dumps(inner) for inner in _within(value, _DEEPEST))


def _is_document(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    parts = ("end", "intervals", "error")
    whole = isinstance(value.get("start"), dict) and any(part in value for part in parts)
    end = value.get("end")
    whole |= isinstance(end, dict) and "sum_received" in end
    return whole or isinstance(value.get("event"), str)


def _within(value: object, depth: int) -> Iterator[object]:
    if depth and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            if _is_document(inner):
                yield inner
            else:
                yield from _within(inner, depth - 1)


def text_tests(text: str) -> list[str]:
    """Return the text of each test of a client, those that it printed twice once, and what a server printed between them."""
    if mixed_tests(text):
        return [text]
    lines = _without_servers(text).splitlines(keepends=True)
    begins: list[int] = []
    serves = False
    for number, line in enumerate(lines):
        of_server = bool(_SERVES.match(line))
        if _BEGIN.match(line) or (of_server and not serves):
            begins.append(number)
            serves = of_server
    bounds = [0]
    for begin, following in pairwise(begins):
        own = [number for number in range(begin, following) if _BELONGS.match(lines[number])]
        is_server = _SERVES.match(lines[begin])
        bounds.append(following if is_server else max(own, default=following - 1) + 1)
    bounds.append(len(lines))
    return [*dict.fromkeys("".join(lines[a:b]) for a, b in pairwise(bounds))]


def mixed_tests(text: str) -> list[str]:
    """Return the ports to which several clients sent at once, where their lines are mixed in a text; nothing elsewhere."""
    head = re.split(r"/sec|iperf3: ", text, maxsplit=1)[0]
    ports = re.findall(r"Connecting to host .*, port (\d+)", head)
    return ports if min(len(ports), len(_ENDS.findall(head))) > 1 else []


def _without_servers(text: str) -> str:
    """A client's text without what its server printed (--get-server-output), which is the same test once more."""
    ends = r"^iperf Done\.|^[^\n]*Connecting to host |\Z"
    return re.sub(rf"^Server output:\n.*?(?={ends})", "", text, flags=re.M | re.S)


def complaints(text: str) -> list[str]:
    """Return what iperf3 itself says is wrong, beside what it measured, each once. That a server was stopped is none."""
    texts = dict.fromkeys(match[1].strip().rstrip(":") for match in _COMPLAINT.finditer(text))
    return [words for words in texts if not (is_server(text) and words.startswith("interrupt"))]


def turned_round(text: str) -> str:
    """Return a client's test with -R, JSON or text, as if its server had been the client."""
    return _turned_json(text) if is_json(text) else _turned_text(text)


def _turned_text(text: str) -> str:
    text = _ENDS.sub(r"local \3 port \4 connected to \1 port \2", text)
    text = _CPU.sub(r"local/sender \2, remote/receiver \1", text)
    return re.sub(r"^.*Reverse mode, .*\n", "", text, flags=re.M)


def _turned_json(text: str) -> str:
    lines = text.strip().split("\n")
    streamed = re.match(r'\{\s*"event"', lines[0])
    texts = lines if streamed else [text]
    return "".join(json.dumps(_turned(json.loads(as_numbers(part)))) + "\n" for part in texts)


def _turned(value: Any) -> Any:
    """A value of a document with both ends changed for each other, in all that it holds."""
    if isinstance(value, list):
        return [_turned(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    other = {name: _turned(inner) for name, inner in value.items()}
    for own, far in (("local", "remote"), ("host", "remote")):
        for name in [name for name in value if name.startswith(f"{own}_")]:
            end = name.removeprefix(own)
            if f"{far}{end}" in value:
                other[name], other[f"{far}{end}"] = value[f"{far}{end}"], value[name]
    if "reverse" in value:
        other["reverse"] = 0
    if "sender" in value and isinstance(value["sender"], bool):
        other["sender"] = True
    return other
