"""What tc printed once or several times into one file, with whatever stands between: commands, dates, classes.

`snapshots_of` gives each look at the qdiscs by itself, `classes_of` the classes, as tc alone would have printed them.
JSON of 2018 (iproute2 4.15 to 4.19), in which options are text, is put right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from measuretwice.parse._reading import UNIX_TIME_S, stamp_of, time_in
from measuretwice.parse.tc import AS_TEXT, parse_tc_classes, parse_tc_qdiscs
from measuretwice.parse.tc_fields import COUNTERS, Qdisc, TcClass
from measuretwice.parse.wrapping import unwrapped

# A queue that was looked at as often has a history.
MANY_LOOKS = 10

_ENTRY = re.compile(
    r"(?P<what>qdisc|class) (?P<kind>\S+) (?P<handle>[0-9a-f]*:[0-9a-f]*)(?: offloaded)?"
    r"(?: dev (?P<dev>\S+))?(?: root\b)?(?: parent (?P<parent>\S+))?(?: refcnt \d+)?"
)
# Options without a quote can't be JSON, unless there are none.
_TEXT_OPTIONS = re.compile(r'("options"\s*:\s*)\{\s*([^{}"\[\]]*[^{}"\[\]\s])\s*\}')
# A count, and then the statistics of the qdisc's kind as text.
_TEXT_STATS = re.compile(r'(:\s*\d+)\s+([a-z]\w*[ :][^{}"\[\],]*?)\s*(?=[},])')
_STAT = re.compile(r"([A-Za-z]\w*):? (\d+)")
# Options of mqprio and taprio on lines of their own.
_MORE_OPTIONS = re.compile(
    r"\s+(?:queues:\(|mode:|shaper:|m(?:in|ax)_rate:|index \d+ cmd )|queues offset |clockid \S+ base-time |\s*fp:|\s*max-sdu "
)


class _Entry(NamedTuple):
    """A qdisc or class: which of the two, where it stands, its text or JSON, and the time before it (s)."""

    what: str
    place: tuple[object, ...]
    value: str | dict[str, Any]
    time_s: float | None


class TcSnapshot(NamedTuple):
    """One look at the qdiscs, as tc alone would have printed it, and when (s; None where nothing says so)."""

    text: str
    time_s: float | None


def snapshots_of(text: str) -> list[TcSnapshot]:
    """Return each look at the qdiscs in a file; one without entries where it can't be told apart."""
    looks: list[list[_Entry]] = []
    for entry in _entries(text, "qdisc"):
        if not looks or any(entry.place == other.place for other in looks[-1]):
            looks.append([])
        looks[-1].append(entry)
    return [TcSnapshot(_printed(look), look[0].time_s) for look in looks] or [
        TcSnapshot(text, None)
    ]


def classes_of(text: str) -> str | None:
    """Return what a file has of tc's classes, each as it was last; None where there are none."""
    last = {entry.place: entry for entry in _entries(text, "class")}
    return _printed(list(last.values())) if last else None


def as_snapshots(text: str, source: str) -> str:
    """Return all looks at the qdiscs, and nothing else that the file may have."""
    return "".join(snapshot.text for snapshot in snapshots_of(text))


def parse_snapshots(text: str, source: str) -> tuple[Qdisc, ...]:
    """Return the qdiscs of all looks. ParseError as `parse_tc_qdiscs`."""
    return tuple(
        qdisc for snapshot in snapshots_of(text) for qdisc in parse_tc_qdiscs(snapshot.text, source)
    )


def parse_classes(text: str, source: str) -> tuple[TcClass, ...]:
    """Return the classes in a file. ParseError as `parse_tc_classes`."""
    return parse_tc_classes(classes_of(text) or text, source)


def samples_in(text: str) -> str | None:
    """Return looks at the qdiscs that have their Unix times as the labs' sampler writes a queue's; None where there are
    fewer than MANY_LOOKS."""
    looks = [look for look in snapshots_of(text) if (look.time_s or 0) > UNIX_TIME_S]
    if len({look.time_s for look in looks}) < MANY_LOOKS:
        return None
    return "".join(f"# t={look.time_s:.9f}\n{_as_json(look.text)}\n" for look in looks)


def _as_json(text: str) -> str:
    """One look as a line of tc's JSON."""
    if text.startswith("["):
        return text.strip()
    documents = []
    for entry, qdisc in zip(_text_entries(text), parse_tc_qdiscs(text, "tc"), strict=True):
        head = str(entry.value).split("\n", 1)[0]
        place = {"root": True} if qdisc.root else {"parent": qdisc.parent}
        options = {AS_TEXT: head[mark.end() :]} if (mark := _ENTRY.match(head)) else {}
        counts = {name: getattr(qdisc, field) for name, field in COUNTERS.items()}
        own = {"kind": qdisc.kind, "handle": qdisc.handle, "dev": qdisc.dev, **place}
        documents.append({**own, "options": options, **counts, **qdisc.stats})
    return json.dumps(documents)


def _printed(entries: list[_Entry]) -> str:
    if isinstance(entries[0].value, str):
        return "".join(str(entry.value) for entry in entries)
    return json.dumps([entry.value for entry in entries]) + "\n"


def _entries(text: str, what: str) -> Iterator[_Entry]:
    if '"kind"' in text or '"class"' in text:
        found = [*_json_entries(text)]
    else:
        found = [*_text_entries(text)]
        if not found and (without := unwrapped(text, _ENTRY)) != text:
            found = [*_text_entries(without)]
    return (entry for entry in found if entry.what == what)


def _json_entries(text: str) -> Iterator[_Entry]:
    """The qdiscs and classes of one JSON document after another, up to one that is none."""
    text = _TEXT_OPTIONS.sub(lambda part: f"{part[1]}{json.dumps({AS_TEXT: part[2]})}", text)
    text = _TEXT_STATS.sub(
        lambda part: part[1] + "".join(f', "{name}": {n}' for name, n in _STAT.findall(part[2])),
        text,
    )
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    end = 0
    begin = -1
    while (begin := text.find("[", max(begin + 1, end))) >= 0:
        try:
            document, after = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            # As [sudo] before it.
            continue
        between = text[end:begin].strip().rpartition("\n")[2]
        time_s = time_in(between) if between else None
        for item in document if isinstance(document, list) else ():
            if isinstance(item, dict) and ("kind" in item or "class" in item):
                what = "qdisc" if "kind" in item else "class"
                place = tuple(
                    str(item.get(key)) for key in (what, "kind", "dev", "handle", "parent")
                )
                yield _Entry(what, place, item, time_s)
        end = after


def _text_entries(text: str) -> Iterator[_Entry]:
    """The qdiscs and classes of tc's text, each with its indented lines."""
    lines: list[str] = []
    head: re.Match[str] | None = None
    time_s: float | None = None
    begin_s: float | None = None
    for line in [*text.split("\n"), "end"]:
        if head and _MORE_OPTIONS.match(line):
            continue
        stamp = None if line[:1] in ("q", "c", " ", "") else stamp_of(line)
        if stamp and (stamp.rest[:1] == " " or _ENTRY.match(stamp.rest)):
            line, time_s = stamp.rest, stamp.time_s
        if line[:1] in (" ", "\t", ""):
            lines += [line] if head and line.strip() else []
            continue
        if head:
            place = head["kind"], head["dev"], head["handle"], head["parent"]
            yield _Entry(head["what"], place, "".join(f"{line}\n" for line in lines), begin_s)
        head = _ENTRY.match(line)
        lines, begin_s = [line], time_s
        if not head and (alone_s := time_in(line)) is not None:
            time_s = alone_s
