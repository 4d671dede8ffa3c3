"""tc's text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from measuretwice.parse._tc_fields import LAST_STAT, OPTIONS, RED_STATS, Quantity
from measuretwice.parse._text import cut_off, excerpt, foreign
from measuretwice.parse.errors import ParseError

_HEAD = re.compile(
    r"(?P<what>qdisc|class) (?P<kind>\S+) (?P<handle>[0-9a-f]*:[0-9a-f]*)(?: offloaded)?"
    r"(?: dev (?P<dev>\S+))?(?: (?P<root>root)\b)?(?: parent (?P<parent>[0-9a-f]*:[0-9a-f]*))?"
    r"(?: leaf (?P<leaf>[0-9a-f]*:))?(?: refcnt \d+)?(?P<options>.*)"
)
_SENT = re.compile(
    r"(?: Sent (?P<sent_bytes>\d+) bytes (?P<sent_packets>\d+) pkts?)?"
    r" \(dropped (?P<drops>\d+), overlimits (?P<overlimits>\d+) requeues (?P<requeues>\d+)\) *"
)
_BACKLOG = re.compile(r" .*?\bbacklog (?P<size>\d+[KMG]?b) (?P<qlen>\d+)p requeues \d+ *")
_STAT = re.compile(r"([A-Za-z]\w*):? (-?\d\S*?)(?=[ )]|$)")
# An option's name; what follows it up to the next name are its values. Two names of netem's
# Gilbert-Elliott model begin with a digit.
_NAME = re.compile(r"[A-Za-z]|1-[hk]$")

# Names whose value is a word, too.
_WORDY = frozenset({"linklayer"})

_SIZE = re.compile(r"(\d+(?:\.\d+)?)(?:([KMG]?)b)?(?:/\d+(?:mpu)?)?")
_SIZE_SCALE = {None: 1, "": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_RATE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(i?)bit", re.IGNORECASE)
_RATE_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
# tc prints three digits of it (%.3g): 97.4ms, and 1e+03ms.
_TIME = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(ns|us|ms|s)")
_TIME_SCALE = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def read_text(text: str, source: str, what: str) -> Iterator[dict[str, Any]]:
    """The fields of each qdisc or class (`what`) of tc's text."""
    expected = f"the output of `tc -s {what} show`"
    if not text.startswith(f"{what} "):
        raise foreign(text, source, expected)
    lines = text.split("\n")
    if lines.pop():
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    starts = [i for i, line in enumerate(lines) if line.startswith(f"{what} ")]
    has_stats = False
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        values, entry_has_stats = _entry(lines[start:end], source, start + 1, what)
        # With -s, each qdisc has its counters; classes of some kinds have none.
        if has_stats and not entry_has_stats and what == "qdisc":
            raise cut_off(source, end, "the last qdisc's counters")
        has_stats |= entry_has_stats
        yield values


def _entry(lines: list[str], source: str, number: int, what: str) -> tuple[dict[str, Any], bool]:
    head = _HEAD.fullmatch(lines[0])
    if not head:
        raise _unreadable(source, number, lines[0], f"{what} KIND HANDLE and its place")
    kind = head["kind"]
    options = _options(head["options"])
    stats: dict[str, Any] = {}
    values: dict[str, Any] = {
        "kind": kind,
        "handle": head["handle"],
        "dev": head["dev"],
        "root": head["root"] is not None,
        "parent": head["parent"],
        "options": {name: " ".join(words) if words else True for name, words in options.items()},
        "stats": stats,
    }
    if what == "class":
        values["leaf"] = head["leaf"]
    sent = backlog = None
    for offset, line in enumerate(lines[1:], start=1):
        if not line.strip():
            continue
        if not line.startswith(" "):
            raise _unreadable(source, number + offset, line, f"tc's statistics of a {what}")
        if not sent and (sent := _SENT.fullmatch(line)):
            values |= {name: int(n) for name, n in sent.groupdict().items() if n is not None}
        elif sent and not backlog and (backlog := _BACKLOG.fullmatch(line)):
            values["backlog_bytes"] = _size(backlog["size"])
            values["qlen_packets"] = int(backlog["qlen"])
        elif not sent or not backlog:
            raise _unreadable(source, number + offset, line, "the counters Sent and backlog")
        else:
            for name, word in _STAT.findall(line):
                stats[name] = int(word) if re.fullmatch(r"-?\d+", word) else word
    last = LAST_STAT.get((what, kind))
    if sent and (not backlog or (last and last not in stats)):
        raise cut_off(source, number + len(lines) - 1, f"the rest of this {what}'s statistics")
    try:
        _read_fields(what, kind, options, stats, values)
    except ValueError as error:
        raise _unreadable(
            source, number, str(error), f"a value as tc prints it for {kind}"
        ) from None
    return values, sent is not None


def _read_fields(
    what: str,
    kind: str,
    options: dict[str, list[str]],
    stats: dict[str, Any],
    values: dict[str, Any],
) -> None:
    for key, (name, quantity) in OPTIONS.get((what, kind), {}).items():
        if quantity is Quantity.FLAG:
            values[name] = key in options
        elif key in options:
            try:
                values[name] = _value(options[key], quantity)
            except ValueError:
                raise ValueError(" ".join([key, *options[key]])) from None
    if (what, kind) == ("qdisc", "red"):
        for key, name in RED_STATS.items():
            values[name] = stats.get(key)
    elif (what, kind) == ("qdisc", "netem"):
        if delay := options.get("delay"):
            values["delay_s"] = _time_s(delay[0])
            # tc leaves a jitter of zero out.
            values["jitter_s"] = _time_s(delay[1]) if len(delay) > 1 else 0.0
        if loss := options.get("loss"):
            values["loss_ratio"] = _ratio(loss[0])
        if rate := options.get("rate"):
            values["rate_bps"] = _rate_bps(rate[0])


def _options(text: str) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    words: list[str] = []
    name = ""
    for word in text.split():
        if _NAME.match(word) and not (name in _WORDY and not words):
            name, words = word, options.setdefault(word, [])
        else:
            words.append(word)
    return options


def _value(words: list[str], quantity: Quantity) -> float:
    word = words[0] if words else ""
    if quantity is Quantity.RATE:
        return _rate_bps(word)
    if quantity is Quantity.TIME:
        return _time_s(word)
    if quantity is Quantity.COUNT:
        # Some kinds mark a limit in packets: 10240p.
        return int(word.removesuffix("p"))
    return _size(word)


def _size(word: str) -> int:
    match = _SIZE.fullmatch(word)
    if not match:
        raise ValueError(word)
    return round(float(match[1]) * _SIZE_SCALE[match[2]])


def _rate_bps(word: str) -> float:
    match = _RATE.fullmatch(word)
    if not match:
        raise ValueError(word)
    return float(match[1]) * (1024.0 if match[3] else 1000.0) ** _RATE_POWER[match[2].upper()]


def _time_s(word: str) -> float:
    match = _TIME.fullmatch(word)
    if not match:
        raise ValueError(word)
    return float(match[1]) * _TIME_SCALE[match[2]]


def _ratio(word: str) -> float:
    return float(word.removesuffix("%")) / 100


def _unreadable(source: str, number: int, text: str, expected: str) -> ParseError:
    return ParseError(source, f"line {number}", f"found {excerpt(text)}; expected {expected}")
