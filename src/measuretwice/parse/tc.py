"""Queueing disciplines and classes as tc prints them (iproute2; see tc(8)).

tc's units, from the section PARAMETERS of tc(8): a size is in bytes, and its K, M and G are powers
of 1024 whether a `b` follows or not ("10Kb" is 10240 bytes); a rate's K, M and G are powers of 1000
("1Mbit" is 10^6 bit/s), and with an i ("1Mibit") powers of 1024. In JSON a size is in bytes and a
rate in *bytes* per second, which is converted here.

The text form is rounded: sizes to whole Kb or Mb where that is close, times to three digits. Use
JSON where it matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from measuretwice.parse._reading import (
    SAMPLE_MARK,
    JsonObject,
    ParseError,
    clean,
    cut_off,
    excerpt,
    foreign,
    load,
)
from measuretwice.parse.tc_fields import (
    COUNTERS,
    LAST_STAT,
    RED_STATS,
    Qdisc,
    Quantity,
    TcClass,
    options_of,
)

# What the options are called in fixed JSON of 2018, which had them as text.
AS_TEXT = "as text"
_EXPECTED_SAMPLES = "samples of tc, each after a line '# t=SECONDS'"
_PLACE = {"kind", "class", "handle", "dev", "root", "parent", "leaf", "refcnt", "options", "stats"}
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
# What tc prints in place of options that it can't read, of a qdisc younger than itself (tc.c): words even with -j.
_UNREAD_OPTIONS = re.compile(r"\{\[Unknown qdisc, optlen=\d+\] ?\}")


def readable(text: str) -> str:
    """Return tc's JSON without the words that stand in it in place of options that tc can't read."""
    return _UNREAD_OPTIONS.sub("{}", text)


def parse_tc_qdiscs(text: str, source: str) -> tuple[Qdisc, ...]:
    """Read `tc qdisc show`, as JSON (`-j`) or text, with or without statistics (`-s`).

    Raises ParseError for another tool's text, for a text that is cut off, and for a value that is
    not what tc prints there.
    """
    text = clean(text, source, "the output of `tc -j -s qdisc show` or `tc -s qdisc show`")
    return tuple(Qdisc(**values) for values in _read(text, source, "qdisc"))


def parse_tc_classes(text: str, source: str) -> tuple[TcClass, ...]:
    """Read `tc class show`, as JSON or text; iproute2 6.1 and earlier print text even with `-j`.

    Raises ParseError like `parse_tc_qdiscs`.
    """
    text = clean(text, source, "the output of `tc -j -s class show` or `tc -s class show`")
    return tuple(TcClass(**values) for values in _read(text, source, "class"))


def _read(text: str, source: str, what: str) -> Iterator[dict[str, Any]]:
    read = _read_json if text.lstrip()[0] in "[{" else _read_text
    return read(text, source, what)


@dataclass(frozen=True)
class QdiscSample:
    """One interface's qdiscs at one time. `time_s` is Unix time on the sampled node's clock."""

    time_s: float
    qdiscs: tuple[Qdisc, ...]


def parse_qdisc_samples(
    text: str, source: str, *, allow_truncated_tail: bool = False
) -> tuple[QdiscSample, ...]:
    """Read lines '# t=1795213564.741568000', each followed by one line of tc's JSON.

    A sampler that was killed may leave its last sample cut off: with `allow_truncated_tail` that
    sample is left out, without it that is a ParseError, as is anything else.
    """
    text = clean(text, source, _EXPECTED_SAMPLES)
    if not "# t=".startswith(text[:4]):
        raise foreign(text, source, _EXPECTED_SAMPLES)
    lines = text.split("\n")
    whole = lines.pop() == ""
    if not whole and not allow_truncated_tail:
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    if len(lines) % 2 and whole and not allow_truncated_tail:
        raise cut_off(source, len(lines), "tc's JSON after the last '# t='")
    samples = []
    for index in range(0, len(lines) - 1, 2):
        mark = SAMPLE_MARK.fullmatch(lines[index])
        if not mark:
            raise ParseError(
                source,
                f"line {index + 1}",
                f"found {excerpt(lines[index])}; expected '# t=SECONDS' with nine decimals",
            )
        qdiscs = parse_tc_qdiscs(lines[index + 1], f"{source}, line {index + 2}")
        samples.append(QdiscSample(float(f"{mark[1]}.{mark[2]}"), qdiscs))
    return tuple(samples)


# JSON.


def _read_json(text: str, source: str, what: str) -> Iterator[dict[str, Any]]:
    """The fields of each qdisc or class (`what`) of a JSON document."""
    expected = f"the output of `tc -j -s {what} show`"
    document = load(readable(text), source, expected)
    if not isinstance(document, list):
        raise foreign(text, source, expected)
    # A qdisc names its kind "kind", a class names it "class".
    kind_key = "kind" if what == "qdisc" else "class"
    for index, item in enumerate(document):
        entry = JsonObject.of(item, f"$[{index}]", source)
        if kind_key not in entry.data:
            raise ParseError(source, f"$[{index}].{kind_key}", f"missing; expected {expected}")
        yield _json_entry(entry, what, entry.need_text(kind_key))


def _json_entry(entry: JsonObject, what: str, kind: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "kind": kind,
        "handle": entry.need_text("handle"),
        "dev": entry.text("dev"),
        "root": entry.flag("root") or False,
        "parent": entry.text("parent"),
    }
    if what == "class":
        # A class has its options beside its name and its counters inside `stats`.
        leaf = entry.text("leaf")
        values["leaf"] = leaf and f"{leaf.removeprefix('0x')}:"
        stats = entry.child("stats") or JsonObject({}, f"{entry.path}.stats", entry.source)
        options = entry
        values["options"] = {k: v for k, v in entry.data.items() if k not in _PLACE}
    else:
        stats = entry
        options = entry.child("options") or JsonObject({}, f"{entry.path}.options", entry.source)
        values["options"] = options.data
    values["stats"] = {k: v for k, v in stats.data.items() if k not in _PLACE and k not in COUNTERS}
    for key, name in COUNTERS.items():
        values[name] = stats.integer(key)
    if (text := options.data.get(AS_TEXT)) is not None:
        words = _options(str(text))
        values["options"] = _spelled(words)
        try:
            _read_fields(what, kind, words, values["stats"], values)
        except ValueError as error:
            expected = f"expected a value as tc prints it for {kind}"
            problem = f"found {excerpt(str(error))}; {expected}"
            raise ParseError(entry.source, f"{entry.path}.options", problem) from None
        return values
    for key, option in options_of(what, kind).items():
        values[option.field] = _json_value(options, key, option.quantity)
    if (what, kind) == ("qdisc", "red"):
        for key, name in RED_STATS.items():
            values[name] = stats.integer(key)
    elif (what, kind) == ("qdisc", "netem"):
        _read_json_netem(options, values)
    return values


def _json_value(options: JsonObject, key: str, quantity: Quantity) -> float | bool | None:
    if quantity is Quantity.FLAG:
        return options.flag(key)
    if quantity in (Quantity.COUNT, Quantity.SIZE):
        return options.integer(key)
    number = options.number(key)
    if number is None:
        return None
    # Rates are in bytes per second; times, outside of netem, in microseconds.
    return number * 8 if quantity is Quantity.RATE else number / 1e6


def _read_json_netem(options: JsonObject, values: dict[str, Any]) -> None:
    delay = options.child("delay")
    if delay:
        values["delay_s"] = delay.need_number("delay")
        values["jitter_s"] = delay.number("jitter")
    loss = options.child("loss-random")
    if loss:
        values["loss_ratio"] = loss.need_number("loss")
    rate = options.child("rate")
    if rate:
        values["rate_bps"] = _json_value(rate, "rate", Quantity.RATE)


# Text.


def _read_text(text: str, source: str, what: str) -> Iterator[dict[str, Any]]:
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
        values, entry_has_stats = _text_entry(lines[start:end], source, start + 1, what)
        # With -s, each qdisc has its counters; classes of some kinds have none.
        if has_stats and not entry_has_stats and what == "qdisc":
            raise cut_off(source, end, "the last qdisc's counters")
        has_stats |= entry_has_stats
        yield values


def _text_entry(
    lines: list[str], source: str, number: int, what: str
) -> tuple[dict[str, Any], bool]:
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
        "options": _spelled(options),
        "stats": stats,
    }
    if what == "class":
        values["leaf"] = head["leaf"]
    sent = backlog = None
    # A table of sizes (stab) stands on a line of its own.
    if lines[1:] and (table := re.fullmatch(r" +linklayer (\S.*?) *", lines[1])):
        values["options"] |= {"linklayer": table[1]}
        lines = [lines[0], "", *lines[2:]]
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
    for key, option in options_of(what, kind).items():
        if option.quantity is Quantity.FLAG:
            values[option.field] = key in options
        elif key in options:
            try:
                values[option.field] = _text_value(options[key], option.quantity)
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


def _spelled(options: dict[str, list[str]]) -> dict[str, str | bool]:
    """Options as values: True for a word without any."""
    return {name: " ".join(words) if words else True for name, words in options.items()}


def _text_value(words: list[str], quantity: Quantity) -> float:
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


class Policer(NamedTuple):
    """A policer among tc's filters: its rate (bit/s), the packets that came to it and those that it dropped."""

    rate_bps: float
    packets: int
    drops: int


_POLICER = re.compile(
    r"\bpolice 0x[0-9a-f]+ +rate (\S+)[^\n]*\n(?:(?![^\n]*\bpolice 0x)[^\n]*\n){0,5}?"
    r"[ \t]*Sent \d+ bytes (\d+) pkts? \(dropped (\d+)"
)


def parse_policers(text: str, source: str) -> tuple[Policer, ...]:
    """Return the policers in what `tc -s filter show` printed; ParseError where one has no count, or there is none."""
    policers = [(rate, int(packets), int(drops)) for rate, packets, drops in _POLICER.findall(text)]
    if not policers or len(policers) < text.count("police 0x"):
        raise ParseError(
            source,
            "file",
            "tc's filters with a policer, without its counters: tc filter show needs -s",
        )
    try:
        return tuple(Policer(_rate_bps(rate), *counts) for rate, *counts in policers)
    except ValueError as error:
        raise ParseError(source, "file", f"found {excerpt(str(error))}; expected a rate") from None


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
