"""Which ping printed a text, and those of forms of their own: Windows' in any language, and fping's.

Windows translates every word but TTL, and in the console's code page, so its lines are known by their signs: an answer
ends with `=40ms TTL=63`, the statistics are two lines of three `= NUMBER` each, first sent, received and lost, then the
smallest, the largest and the mean time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from measuretwice.parse._reading import ParseError, clean, cut_off
from measuretwice.parse.ping import (
    EXPECTED,
    LONGEST,
    NOT_ENDED,
    PingReply,
    PingRun,
    is_ping,
    last_place,
    loss_ratio,
    misprinted_loss,
    parse_unix_ping,
    with_statistics,
)

_ADDRESS = r"\d+\.\d+\.\d+\.\d+|[0-9a-f]*:[0-9a-f:]*[0-9a-f](?:%\w+)?"
# Reply from 10.0.0.1: bytes=32 time<1ms TTL=64; of IPv6 Windows names neither bytes nor TTL.
_ANSWER = re.compile(
    rf"(?:.*[^\w.:])?(?:{_ADDRESS})(?!\d).*?[=<]\s?(?P<rtt>\d+)\s?[^\s\d=<]*(?:\s+TTL=(?P<ttl>\d+))?\s*"
)
_TTL = re.compile(r"[=<]\s?\d+\s?[^\s\d=<]*\s+TTL=\d+\s*$", re.M)
_THREE = re.compile(r"(?!.*TTL=)" + r"[^=\n]*=\s?(\d{1,10})(?!\d)" * 3 + r"[^=\n]*")
_TIMES = re.compile(r"[^=\n]*=\s?(\d{1,10})(?!\d)\s?[^\s\d=]" * 3 + r"[^=\n]*")
# The counts and, at times on a line of its own, the share that was lost; in Turkish the sign comes first.
_WINDOWS_COUNTS = re.compile(
    r"^" + r"[^=\n]*=\s?\d{1,10}(?!\d)" * 3 + r"[^=\n]*(?:\n[^=\n]*)?[(?]\s?(?:%\s?\d|\d+\s?%)",
    re.M,
)
_GOES_ON = re.compile(r"(=\s?\d{1,10},)[ \t]*\n[ \t]*")
_BEGINS = re.compile(r"^(?:.*[^\w.:])?(?P<bytes>\d+)(?![\d.:]).*:\s*$")
_UNIX_BEGINS = re.compile(r"[ \t]*(?:PING6?[ (]|Ping \S+ \()")
_FPING = re.compile(
    r"^(?:\[(?P<stamp>\d+\.\d+)\] )?(?P<target>\S+) +: \[(?P<seq>\d+)\], "
    r"(?:(?P<bytes>\d+) bytes, (?P<rtt>[\d.]+) ms|timed out)",
    re.M,
)
_FPING_TOTAL = re.compile(
    r"^(?P<target>\S+) +: xmt/rcv/%loss = (?P<xmt>\d+)/(?P<rcv>\d+)/(?P<lost>-?\d+%)"
    r"(?:, min/avg/max = (?P<min>[\d.]+)/(?P<avg>[\d.]+)/(?P<max>[\d.]+))?",
    re.M,
)
# fping -C: a time for each packet, or a hyphen, in a line for each host, on stderr.
_FPING_LIST = re.compile(
    r"^(?P<target>\S+) +: (?P<times>(?:\d+(?:\.\d+)?|-)(?: (?:\d+(?:\.\d+)?|-))*)$", re.M
)
_ECHO_HEADER_BYTES = 8


@dataclass(frozen=True)
class PingForm:
    """One form of ping: how a text of it is known and read, and how one that was stopped gets its statistics."""

    recognises: Callable[[str], bool]
    parse: Callable[[str, str], PingRun]
    whole: Callable[[str, str], str] = lambda text, _: text


def is_any_ping(text: str) -> bool:
    """Return whether some ping printed this."""
    return any(form.recognises(text) for form in _FORMS)


def parse_ping(text: str, source: str) -> PingRun:
    """Read the output of one ping of whatever system.

    Raises ParseError for another tool's text, for two runs in one file, and for a ping that was
    killed before it printed its statistics.
    """
    return _form_of(text).parse(text, source)


def whole_ping(text: str, source: str) -> str:
    """Return a ping's text; where it was stopped before its statistics, with what its answers come to.

    Raises ParseError where it has no answers either.
    """
    return _form_of(text).whole(text, source)


def ping_tests(text: str) -> list[str]:
    """Return the texts of the pings in a file, each from its heading on; what stands before the first belongs to it."""
    begins = _BEGINS if _is_windows(text) else _UNIX_BEGINS
    lines = text.split("\n")
    lines = [*(line + "\n" for line in lines[:-1]), *filter(None, lines[-1:])]
    starts = [n for n, line in enumerate(lines) if begins.match(_ascii(line[:LONGEST]))][1:]
    return ["".join(lines[start:end]) for start, end in pairwise([0, *starts, len(lines)])]


def _form_of(text: str) -> PingForm:
    return next((form for form in _FORMS if form.recognises(text)), _FORMS[-1])


def _ascii(text: str) -> str:
    """The text with a question mark for each letter of others: the console's code page isn't known. Sums that go on
    in the next line, as in Italian and Portuguese, stand in one."""
    return _GOES_ON.sub(r"\1 ", text.encode("ascii", "replace").decode("ascii"))


def _is_windows(text: str) -> bool:
    text = _ascii(text)
    if re.search(r"^PING6?[ (].*\d", text, re.M) and "icmp_" in text:
        return False
    return _TTL.search(text) is not None or _WINDOWS_COUNTS.search(text) is not None


def _windows(text: str, source: str) -> PingRun:
    """Read Windows' ping. A router's word that it can't get there counts as received there, and as an error here."""
    text = clean(_ascii(text), source, EXPECTED)
    lines = _lines(text)
    sums = [(n, match) for n, line in enumerate(lines) if (match := _THREE.fullmatch(line))]
    shares = {n for n, _ in sums if "%" in "".join(lines[n : n + 2])}
    added = [(n, match) for n, match in sums if _adds_up(match)]
    # The share that was lost tells counts from times; a person may have left it out.
    counts = next((row for row in reversed(added) if row[0] in shares), None)
    counts = (
        counts or next(iter(added), None) or next((row for row in sums if row[0] in shares), None)
    )
    if counts is None:
        raise cut_off(source, len(lines), "ping's statistics (was it killed?)")
    at, (sent, came) = counts[0], (int(counts[1][1]), int(counts[1][2]))
    times = next((match for line in lines[at + 1 :] if (match := _TIMES.fullmatch(line))), None)
    first = next((n for n, line in enumerate(lines[:at]) if _ANSWER.fullmatch(line)), at)
    answers = [match for line in lines[first:at] if (match := _ANSWER.fullmatch(line))]
    if came and not times and answers:
        raise cut_off(source, len(lines), "the line with the least, largest and mean time")
    head = next((match for line in lines[:first] if (match := _BEGINS.match(line))), None)
    target = next(iter(re.findall(_ADDRESS, "\n".join(lines[max(at - 3, 0) : at]))[-1:]), "")
    received = min(came, len(answers)) if times and answers else came if times else 0
    # More than was sent, or no sum: that isn't what routers said.
    received = came if came > sent else received
    return PingRun(
        target=target,
        address=target,
        payload_bytes=int(head["bytes"]) if head else None,
        transmitted=sent,
        received=received,
        loss_ratio=loss_ratio(sent, received),
        duplicates=0,
        errors=came - received,
        time_ms=None,
        rtt_min_ms=float(times[1]) if times else None,
        rtt_avg_ms=float(times[3]) if times else None,
        rtt_max_ms=float(times[2]) if times else None,
        rtt_mdev_ms=None,
        replies=tuple(
            PingReply(
                seq=number,
                ttl=int(match["ttl"]) if match["ttl"] else None,
                rtt_ms=0.0 if f"<{match['rtt']}" in match[0] else float(match["rtt"]),
                timestamp_s=None,
                duplicate=False,
            )
            for number, match in enumerate(answers, start=1)
        ),
        resolution_ms=1.0,
        misprinted_loss_ratio=misprinted_loss(" ".join(lines[at : at + 2]), sent, came),
        ended=NOT_ENDED not in text,
    )


def _lines(text: str) -> list[str]:
    return [line[:LONGEST] for line in text.rstrip().split("\n")]


def _adds_up(counts: re.Match[str]) -> bool:
    sent, came, lost = (int(counts[number]) for number in (1, 2, 3))
    return sent == came + lost


def _whole_windows(text: str, source: str) -> str:
    """Count the answers, and the lines without one, of a ping -t that was closed."""
    lines = _lines(_ascii(text))
    if any(_THREE.fullmatch(line) for line in lines):
        return text
    answers = [match for line in lines if (match := _ANSWER.fullmatch(line)) and match["ttl"]]
    if not answers:
        raise cut_off(source, len(lines), "ping's statistics (was it killed?)")
    first = next(n for n, line in enumerate(lines) if _ANSWER.fullmatch(line))
    sent = sum(1 for line in lines[first:] if line.strip())
    times = [0 if f"<{match['rtt']}" in match[0] else int(match["rtt"]) for match in answers]
    target = re.findall(_ADDRESS, answers[0][0])[0]
    return (
        f"{text}\n({NOT_ENDED})\n{target}:\n    Sent = {sent}, Received = {len(times)}, Lost = {sent - len(times)} "
        f"({100 - 100 * len(times) // sent}% loss)\n    Minimum = {min(times)}ms, Maximum = {max(times)}ms, "
        f"Average = {sum(times) // len(times)}ms\n"
    )


def _is_fping(text: str) -> bool:
    return any(form.search(text) for form in (_FPING, _FPING_TOTAL, _FPING_LIST))


def _fping(text: str, source: str) -> PingRun:
    """Read fping of one host: its lines, and where they are there its totals, which it prints on stderr."""
    text = _FPING_LIST.sub(_as_rows, clean(text, source, EXPECTED))
    rows, totals = [*_FPING.finditer(text)], [*_FPING_TOTAL.finditer(text)]
    targets = sorted({match["target"] for match in (*rows, *totals)})
    if len(targets) != 1:
        problem = f"fping of {len(targets)} hosts; expected one a file: fping --count 25 ADDRESS, the one of the receiver"
        raise ParseError(source, "file", problem)
    replies = tuple(
        PingReply(
            seq=int(match["seq"]),
            ttl=None,
            rtt_ms=float(match["rtt"]),
            timestamp_s=float(match["stamp"]) if match["stamp"] else None,
            duplicate=False,
        )
        for match in rows
        if match["rtt"]
    )
    total = totals[-1] if totals else None
    times_ms = [reply.rtt_ms for reply in replies if reply.rtt_ms is not None]
    numbers = [int(match["seq"]) for match in rows]
    # A piece out of a long one lacks its beginning.
    sent = int(total["xmt"]) if total else 1 + max(numbers) - min(numbers)
    received = int(total["rcv"]) if total else len(replies)
    printed = total if total and total["min"] else None
    sizes = [int(match["bytes"]) for match in rows if match["bytes"]]
    least = printed["min"] if printed else next((match["rtt"] for match in rows if match["rtt"]), "0.01")  # fmt: skip
    return PingRun(
        target=targets[0],
        address=targets[0],
        payload_bytes=max(sizes[0] - _ECHO_HEADER_BYTES, 0) if sizes else None,
        transmitted=sent,
        received=received,
        loss_ratio=loss_ratio(sent, received),
        duplicates=0,
        errors=0,
        time_ms=None,
        rtt_min_ms=float(printed["min"]) if printed else min(times_ms, default=None),
        rtt_avg_ms=float(printed["avg"]) if printed else _mean(times_ms),
        rtt_max_ms=float(printed["max"]) if printed else max(times_ms, default=None),
        rtt_mdev_ms=None,
        replies=replies,
        resolution_ms=last_place(least),
        misprinted_loss_ratio=misprinted_loss(total["lost"], sent, received) if total else None,
        waited=True,
    )


def _as_rows(row: re.Match[str]) -> str:
    """A list of times as fping prints them one by one, where it hasn't done so."""
    if _FPING.search(row.string):
        return ""
    return "\n".join(
        f"{row['target']} : [{seq}], timed out"
        if time == "-"
        else f"{row['target']} : [{seq}], 64 bytes, {time} ms"
        for seq, time in enumerate(row["times"].split())
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


# The first that recognises a text has it; else it is the last one's, whose errors name the tool.
_FORMS = (
    PingForm(_is_fping, _fping),
    PingForm(_is_windows, _windows, _whole_windows),
    PingForm(is_ping, parse_unix_ping, with_statistics),
)
