"""Round-trip times as ping prints them: iputils' (see ping(8)) in any language, those of macOS, the BSDs, Solaris,
busybox and toybox. Those of Windows and fping, which have forms of their own, are in ping_forms.py.

Numbers are found by the form of a line, since its words are in the user's language and its decimal mark may be a comma.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

from measuretwice.parse._reading import ParseError, TruncatedError, clean, cut_off, excerpt, foreign
from measuretwice.parse.fields import meanings_of, printed, table

EXPECTED = "the output of ping"
# No line of ping's is longer.
LONGEST = 500
_NUMBER = r"-?\d+(?:[.,]\d*)?"
# What ping and loggers put before an answer: ping -D a Unix time in brackets, others a date or the time of day.
_STAMP = r"(?:\[(?P<stamp>[^\]]*)\] |(?P<clock>[\d:./TZ+-]+) (?:[\d:.]+ )?)?"
# Of IPv6 iputils has a name's address in brackets of its own: NAME(NAME (ADDRESS)) 56 data bytes. Solaris has none.
_HEADER = re.compile(
    r"P(?:ING|ing) (?P<target>\S.*?):? ?(?:\((?:[^()]* \((?P<named>[^()]*)\)|(?P<address>[^()]*))\))?:?"
    r"(?:(?<=\):)|(?: [^\d\s].*?:)? (?P<payload>\d+)(?:\(\d+\))?\s?[^\d\s(].*)"
)
# ping6 of macOS and FreeBSD, of KAME's stack: headers of 40 and 8 bytes, then the payload.
_HEADER6 = re.compile(
    r"PING6?\(\d+=40\+8\+(?P<payload>\d+) \S+\) \S+ --> (?P<target>(?P<address>\S+))"
)
_REPLY = re.compile(
    _STAMP
    + r"(?P<bytes>\d+) \S.*?[ ,](?:icmp6?_)?(?:seq|req)=(?P<seq>\d+)[.,]?(?: (?:ident|id)=\S+)?"
    # RIOT's has a limit of hops and a radio's strength, and MicroPython's commas.
    rf"(?: (?:ttl|hlim|hop limit)=(?P<ttl>\d+),?)?(?: rssi=\S+(?: dBm)?)?"
    rf"(?: [^\s=]+ ?[=<] ?(?P<rtt>{_NUMBER}) ?(?P<unit>[^\W\d_]+)\.?)?"
    r"(?: ttl=(?P<last_ttl>\d+))?(?P<remarks>(?:\s?\([^)]*\))*)\s*"
)
_IS_REPLY = re.compile(_STAMP + r"\d+ (?:\S.* (?:icmp6?_)?(?:seq|req)=\d|bytes from )")
# What macOS and the BSDs print of a router's word that it can't get there.
_ERROR = re.compile(_STAMP + r"\d+ bytes from [^:]+: (?!icmp_|seq)[A-Z][\w ]+\s*")
_STATISTICS = re.compile(r"(?:\^C)?-{3,4} ?\S.*?-{3,4}\s*")
_SENT_OR_CAME = re.compile(r"\D*(\d+)\D*")
_MORE = re.compile(r"\+?(?P<count>\d+) (?P<word>[^\W\d]+)\.?")
_LOST = re.compile(r"-?[\d.,e+]+ ?%.*|% ?[\d.,]+.*|-- somebody's printing up packets!")
_TIME = re.compile(
    r"time (?P<ms>\d+)(?:\.\d+)?\s?ms|time (?P<s>[\d.]+) s|(?!time)[^\d+]*(?P<other_ms>\d+)\s?[^\W\d_]+"
)
# min/avg/max/mdev = 40.0/40.1/40.3/0.1 ms; of Go each with its unit; of Nokia min = 40.0ms, avg = ...; oping has a
# median in place of the mean.
_UNIT = r"[^\W\d_]+\.?"
_RTT = re.compile(
    rf"\S.*(?:/| )\S+ = (?P<min>{_NUMBER})(?P<min_unit>{_UNIT})?(?:/|, avg = )(?P<avg>{_NUMBER})(?P<avg_unit>{_UNIT})?"
    rf"(?:/|, max = )(?P<max>{_NUMBER})(?P<max_unit>{_UNIT})?(?:(?:/|, \S+ = )(?P<mdev>{_NUMBER})(?P<mdev_unit>{_UNIT})?)?"
    rf"(?P<unit>\s{_UNIT})?(?:, .*)?"
)
_MEDIAN_RTT = re.compile(
    rf"RTT\[(?P<unit>ms)\]: min = (?P<min>{_NUMBER}), .*max = (?P<max>{_NUMBER})"
)
_IS_RTT = re.compile(r"(?:rtt|round-trip|RTT\[ms\]:) |[^\s/]+/[^\s/]+/\S+ = ")
_SCALE_MS = {"us": 1e-3, "µs": 1e-3, "μs": 1e-3, "usec": 1e-3, "s": 1e3, "sec": 1e3, "ns": 1e-6}
_IS_PING = re.compile(
    r"^[ \t]*(?:(?:PING6?|Ping) ?(?:\S+ ?\(|\(|\S+: ?\d)|\d+ bytes from .*seq=\d|\d+ packets transmitted, \d+ |"
    r"(?:rtt|round-trip) .*min/avg/max)|\bping6? statistics|^\S+ icmp_seq=\d+ timeout\s*$",
    re.M,
)
# Other programs have ping's headings or its last lines, and measure something else.
_OTHER_PING = re.compile(
    r"packet\(s\) transmitted\s*$|^connected to |\bconnects, \d+ ok|^(?:HPING|ARPING) |^len=\d+ ip=",
    re.M,
)
_WENT_BACK = re.compile(r"\(-\d+ ?[uµ]s\)")
# ping measures time only if its 16-byte timestamp fits into the payload (ping(8), option -s).
_TIMESTAMP_BYTES = 16
# Smaller numbers before an answer are no Unix times.
_UNIX_TIME_S = 1e8
# Of VPCS, which prints no statistics, of lwIP's example, and of macOS.
_TIMEOUT = re.compile(
    r"^(?:(?:From )?\S+ icmp_seq=(?=\d+ timeout\s*$)|Request timeout for icmp_seq )(\d+)", re.M
)
_ANSWERED_BY = re.compile(r"\d bytes from (\S+?)[:,]? ")
# Addresses that several hosts may answer: multicast, and broadcast as it is most often.
_OF_MANY = re.compile(r"(?i:ff[0-9a-f]{2}:)|2(?:2[4-9]|3\d)\.\d+\.\d+\.\d+$|\d+\.\d+\.\d+\.255$")
_DAMAGED = re.compile(r"^wrong data byte #|\(BAD CHECKSUM!?\)", re.M)
_CUT = re.compile(r"\(truncated\)[ \t]*$", re.M)
# A ping that shows no answer before this one was cut out of a longer one.
LATE_START = 100
# Behind a text of a ping that was stopped before it printed its own statistics, or that has none.
NOT_ENDED = "counted from its answers, since it has no statistics"


@dataclass(frozen=True, kw_only=True)
class PingReply:
    """One echo reply. `timestamp_s` (Unix time, option -D) and `rtt_ms` (payload of less than
    16 bytes) may be None."""

    seq: int = printed("icmp_seq", "", "which packet this is the answer to, counted from 1")
    ttl: int | None = printed(
        "ttl", "routers", "how many the answer may still pass; Linux begins at 64"
    )
    rtt_ms: float | None = printed("time of one", "ms", "round-trip time of this packet")
    timestamp_s: float | None
    duplicate: bool


@dataclass(frozen=True, kw_only=True)
class PingRun:
    """A finished ping.

    `duplicates` and `errors` are 0 where ping doesn't mention them, which is how it says none.
    `loss_ratio` is recomputed from the two counts, since ping rounds its percentage; it is None if
    nothing was sent. The rtt fields (over all replies, duplicates too) are None if no reply
    carried a time; `payload_bytes`, too, where its heading is missing; only iputils prints `time_ms`, and busybox no `rtt_mdev_ms` (of macOS and the BSDs
    that is the standard deviation). `replies` is empty with option -q. `went_back` counts ping's own
    warnings that its clock went back, and times below 0; `resolution_ms` is the last place of its smallest time.
    Where `ended` is false ping was stopped or prints none, and all is counted from its answers. `damaged` counts answers
    with other data than was sent, `cut` those that came back shorter, without a time. `misprinted_loss_ratio` is the share of
    losses that it prints, where that isn't the share by its counts. `answerers` are how many hosts answered, and `waited` says that it
    waits for each answer before it ends.
    """

    target: str = printed("target", "", "the host that it asked")
    address: str
    payload_bytes: int | None = printed(
        "payload", "bytes", "data in a packet; 28 less than its IPv4 packet"
    )
    transmitted: int = printed("transmitted", "packets", "requests sent")
    received: int = printed("received", "packets", "answers that came back")
    loss_ratio: float | None = printed("loss", "0 to 1", "share of the requests without an answer")
    duplicates: int = printed("duplicates", "packets", "answers that came twice")
    errors: int = printed("errors", "packets", "answers that report an error")
    time_ms: int | None = printed("time", "ms", "from the first packet to the last")
    rtt_min_ms: float | None = printed("min", "ms", "smallest round-trip time")
    rtt_avg_ms: float | None = printed("avg", "ms", "mean round-trip time")
    rtt_max_ms: float | None = printed("max", "ms", "largest round-trip time")
    rtt_mdev_ms: float | None = printed("mdev", "ms", "standard deviation, as ping computes it")
    replies: tuple[PingReply, ...]
    went_back: int = 0
    resolution_ms: float = 0.001
    ended: bool = True
    misprinted_loss_ratio: float | None = None
    damaged: int = 0
    cut: int = 0
    answerers: int = 1
    waited: bool = False

    @property
    def is_of_many(self) -> bool:
        """Return whether it went to an address that several hosts may answer."""
        return _OF_MANY.match(self.address) is not None

    @property
    def in_flight(self) -> int:
        """Return how many of those without an answer were sent so late that none could come before ping ended: as where they
        follow each other more quickly than a round trip takes, and the first answer ends it (ping -c 1 -w 2)."""
        if self.time_ms is None or self.transmitted < 2 or not self.rtt_avg_ms:
            return 0
        late = self.rtt_avg_ms * (self.transmitted - 1) / max(self.time_ms, 1)
        seen = [reply.seq for reply in self.replies]
        if len(seen) < max(self.received, 1):
            return 0
        at_end = self.transmitted - max(seen) + min(1, *seen) - 1
        # The last of a slow one is no such: it was waited for.
        return max(int(min(late, self.transmitted - self.received, at_end)), 0)

    @property
    def lost(self) -> int:
        """Return how many had no answer, without those that were still in flight; below 0 where more came back than went."""
        return self.transmitted - self.received - self.in_flight

    @property
    def last_s(self) -> float | None:
        """Return when its last answer came (Unix time); None where it prints no times (-D)."""
        times_s = [reply.timestamp_s for reply in self.replies if reply.timestamp_s is not None]
        return max(times_s, default=None)

    @property
    def least_ms(self) -> float | None:
        """Return the smallest round-trip time (ms); where ping's clock went back, or it is above the largest, there is none."""
        return None if self.went_back or self.least_is_above_largest else self.rtt_min_ms

    @property
    def least_is_above_largest(self) -> bool:
        """Return whether the smallest round-trip time is above the largest, as iputils has them where no answer had a time."""
        return (self.rtt_min_ms or 0) > (inf if self.rtt_max_ms is None else self.rtt_max_ms)


_SOURCE = "ping(8)"
PING = (
    meanings_of(PingRun, _SOURCE)
    | meanings_of(PingReply, _SOURCE)
    | table(_SOURCE, {"pipe": ("packets", "most that were in flight at once")})
)


def is_ping(text: str) -> bool:
    """Return whether a ping of this form has begun or ended in a text."""
    return _IS_PING.search(text) is not None and _OTHER_PING.search(text) is None


def parse_unix_ping(text: str, source: str) -> PingRun:
    """Read the output of one ping, IPv4 or IPv6, up to its statistics.

    Raises ParseError for another tool's text, for two runs in one file, and for a ping that was
    killed before it printed its statistics.
    """
    # ping -f takes back the point that it has printed for each.
    text = clean(text.replace("\b", ""), source, EXPECTED)
    header: re.Match[str] | None = None
    heading = ""
    counts: _Counts | None = None
    rtt: re.Match[str] | None = None
    replies: list[PingReply] = []
    summary = False
    lines = [line[:LONGEST].strip() for line in text.rstrip().split("\n")]
    for number, line in enumerate(lines, start=1):
        if re.match(r"PING6?[ (]|Ping \S+ \(", line):
            if header:
                raise ParseError(
                    source, f"line {number}", "a second ping begins here; expected one run a file"
                )
            heading = line
            header = _HEADER6.fullmatch(line) or _HEADER.fullmatch(line)
            if not header:
                raise _unreadable(source, number, line, "PING TARGET (ADDRESS) SIZE")
        elif _IS_REPLY.match(line) and not _ERROR.fullmatch(line):
            replies.append(_reply(source, number, line))
        elif _IS_RTT.match(line):
            rtt = _RTT.fullmatch(line) or _MEDIAN_RTT.fullmatch(line)
            if not rtt or not (rtt["unit"] or "(ms)" in line or rtt["min_unit"]):
                raise _unreadable(source, number, line, "min/avg/max/mdev and the unit ms")
        elif summary or re.search(r" packet(?:s|\(s\)) transmitted, ", line):
            counts = _counts(source, number, line)
        summary = _STATISTICS.fullmatch(line) is not None
    if not (header or counts or replies or rtt or _TIMEOUT.search(text)):
        raise foreign(text, source, EXPECTED)
    if not counts:
        raise cut_off(source, len(lines), "ping's statistics (was it killed?)")
    if counts.transmitted and not (
        counts.lost if counts.bsd or heading.startswith("Ping") else counts.time_ms is not None
    ):
        raise cut_off(source, len(lines), "the loss and the time after the counts of packets")
    timed = any(reply.rtt_ms is not None for reply in replies)
    if (
        counts.received
        and not rtt
        and (timed or not header or int(header["payload"] or 0) >= _TIMESTAMP_BYTES)
    ):
        raise cut_off(source, len(lines), "the line with the least, mean and largest rtt")
    return _run(text, header, counts, rtt, replies)


@dataclass(frozen=True)
class _Counts:
    """The line of counts; `bsd` is the form with "packets received", `more` what iputils adds by its English names."""

    transmitted: int
    received: int
    bsd: bool
    more: dict[str, int]
    lost: str
    time_ms: int | None


def _counts(source: str, number: int, line: str) -> _Counts:
    """Read "3 packets transmitted, 3 received, +1 duplicates, 0% packet loss, time 401ms", in any language."""
    parts = re.split(r", |[\uff0c\u3001]\s?", line.strip())
    counts = [_SENT_OR_CAME.fullmatch(part) for part in parts[:2]]
    if len(counts) < 2 or not counts[0] or not counts[1]:
        raise _unreadable(source, number, line, "the counts of packets")
    more: dict[str, int] = {}
    lost, time_ms = "", None
    for part in parts[2:]:
        if _LOST.fullmatch(part):
            lost = part
        elif match := _MORE.fullmatch(part):
            more[match["word"]] = int(match["count"])
        elif match := _TIME.fullmatch(part):
            time_ms = (
                round(1e3 * float(match["s"]))
                if match["s"]
                else int(match["ms"] or match["other_ms"])
            )
        elif "out of wait time" not in part:
            raise _unreadable(source, number, line, "the counts of packets")
    return _Counts(int(counts[0][1]), int(counts[1][1]), "packets" in parts[1], more, lost, time_ms)


def _run(
    text: str,
    header: re.Match[str] | None,
    counts: _Counts,
    rtt: re.Match[str] | None,
    replies: list[PingReply],
) -> PingRun:
    named = header.groupdict() if header else {}
    # Somebody may have kept the end alone.
    ending = re.search(r"^\W*-{3,4} ?(\S+) .*-{3,4}\s*$", text, re.M)
    target = named.get("target") or (ending[1] if ending else "")
    return PingRun(
        target=target,
        address=named.get("named") or named.get("address") or target,
        payload_bytes=int(named["payload"]) if named.get("payload") else None,
        transmitted=counts.transmitted,
        received=counts.received,
        loss_ratio=loss_ratio(counts.transmitted, counts.received),
        duplicates=counts.more.get("duplicates", sum(reply.duplicate for reply in replies)),
        errors=counts.more.get("errors", 0),
        time_ms=counts.time_ms,
        rtt_min_ms=_ms(rtt, "min"),
        rtt_avg_ms=_ms(rtt, "avg") if rtt and "avg" in rtt.groupdict() else None,
        rtt_max_ms=_ms(rtt, "max"),
        rtt_mdev_ms=_ms(rtt, "mdev") if rtt and "mdev" in rtt.groupdict() else None,
        replies=tuple(replies),
        went_back=len(_WENT_BACK.findall(text)) + sum((reply.rtt_ms or 0) < 0 for reply in replies),
        resolution_ms=last_place(rtt["min"]) * _scale(rtt, "min") if rtt else 0.001,
        ended=NOT_ENDED not in text,
        misprinted_loss_ratio=misprinted_loss(counts.lost, counts.transmitted, counts.received),
        damaged=len(_DAMAGED.findall(text)),
        cut=len(_CUT.findall(text)),
        answerers=max(len({*_ANSWERED_BY.findall(text)}), 1),
    )


def misprinted_loss(printed: str, transmitted: int, received: int) -> float | None:
    """Return the share of losses in a text such as "12.5% packet loss", where these counts make another: by more than
    rounding to whole per cent does."""
    share = re.search(r"(-?\d+(?:[.,]\d+)?) ?%|% ?(\d+(?:[.,]\d+)?)", printed)
    if not share or not transmitted or received > transmitted:
        return None
    percent = float((share[1] or share[2]).replace(",", "."))
    return percent / 100 if abs(percent - 100 * (1 - received / transmitted)) > 1.01 else None


def loss_ratio(transmitted: int, received: int) -> float | None:
    """Return the share of packets without an answer; None where none was sent."""
    return 1 - received / transmitted if transmitted else None


def last_place(number: str) -> float:
    """Return the worth of one in a printed number's last place: 0.001 of 40.054, 1 of 40."""
    decimals = number.replace(",", ".").partition(".")[2]
    return float(10 ** -len(decimals))


def _reply(source: str, number: int, line: str) -> PingReply:
    match = _REPLY.fullmatch(line)
    if not match:
        raise _unreadable(source, number, line, "SIZE bytes from ADDRESS: icmp_seq=N ttl=N time=N")
    return PingReply(
        seq=int(match["seq"]),
        ttl=int(ttl) if (ttl := match["ttl"] or match["last_ttl"]) else None,
        rtt_ms=_ms(match, "rtt"),
        timestamp_s=_unix_time_s(match["stamp"] or match["clock"] or ""),
        duplicate="(DUP!)" in match["remarks"],
    )


def _unix_time_s(stamp: str) -> float | None:
    seconds = re.fullmatch(r"\d+[.,]\d+", stamp)
    time_s = float(stamp.replace(",", ".")) if seconds else 0.0
    return time_s if time_s >= _UNIX_TIME_S else None


def _ms(match: re.Match[str] | None, name: str) -> float | None:
    """A group's number in ms, by the unit behind it or at the end; words of other languages are of ms."""
    if match is None or match[name] is None:
        return None
    return float(match[name].replace(",", ".")) * _scale(match, name)


def _scale(match: re.Match[str], name: str) -> float:
    units = match.groupdict()
    unit = (units.get(f"{name}_unit") or units.get("unit") or "").strip(" .")
    return _SCALE_MS.get(unit, 1.0)


def _unreadable(source: str, number: int, line: str, expected: str) -> ParseError:
    return ParseError(source, f"line {number}", f"found {excerpt(line)}; expected {expected}")


def statistics_of(
    replies: list[PingReply], missed: list[int], target: str, *, begun: bool = True
) -> str:
    """Return the lines that ping would have ended with, counted from its answers and from the numbers of those that it
    says it `missed`; "" where there is neither a time nor a miss.

    What was sent after the last answer or miss isn't known, and not counted; nor is what went before the first one, where the heading
    is missing with which a ping has `begun`.
    """
    timed = any(reply.rtt_ms is not None for reply in replies)
    if not (timed or missed):
        return ""
    seen = {reply.seq for reply in replies}
    # A piece out of a long ping begins with a later number than any that it could have missed at the start.
    begins = min([*seen, *missed])
    first = begins if begins >= LATE_START or not begun else min(1, begins)
    transmitted, received = max(*seen, *missed, first) - first + 1, len(seen)
    more = f"+{len(replies) - received} duplicates, " if len(replies) > received else ""
    return (
        f"({NOT_ENDED})\n--- {target} ping statistics ---\n"
        f"{transmitted} packets transmitted, {received} packets received, {more}"
        f"{100 * (1 - received / transmitted):.4g}% packet loss\n{times_of(replies) if timed else ''}"
    )


def _lost_of(counts: str) -> str:
    """Return the share that was lost, as ping prints it, by a line of counts that has none."""
    sent, came = [int(number) for number in re.findall(r"\d+", counts)][:2]
    return f"{100 * (1 - came / max(sent, 1)):.4g}% packet loss"


def times_of(replies: list[PingReply]) -> str:
    """Return the line with the least, mean and largest time of a ping's answers."""
    times_ms = [reply.rtt_ms for reply in replies if reply.rtt_ms is not None]
    mean_ms = sum(times_ms) / len(times_ms)
    return f"round-trip min/avg/max = {min(times_ms):.3f}/{mean_ms:.3f}/{max(times_ms):.3f} ms\n"


def with_statistics(text: str, source: str) -> str:
    """Return the text of one ping; where it was stopped before its statistics, with what its answers come to.

    Raises ParseError where it has no answers either.
    """
    try:
        parse_unix_ping(text, source)
    except ParseError as error:
        lines = [line[:LONGEST].strip() for line in text.rstrip().split("\n")]
        if not isinstance(error, TruncatedError) and error.where != f"line {len(lines)}":
            raise
        replies = [
            _reply(source, n + 1, line) for n, line in enumerate(lines) if _REPLY.fullmatch(line)
        ]
        if any(reply.rtt_ms for reply in replies) and " packets transmitted, " in lines[-1]:
            # All but the line of times, which some don't print.
            share = "" if "%" in lines[-1] else ", " + _lost_of(lines[-1])
            whole = f"{text.rstrip()}{share}\n{times_of(replies)}"
            try:
                parse_unix_ping(whole, source)
            except ParseError:
                pass
            else:
                return whole
        # Statistics that have begun are counted anew.
        ends = [n for n, line in enumerate(lines) if _STATISTICS.fullmatch(line)]
        lines = lines[: ends[0]] if ends else lines
        answers = [n for n, line in enumerate(lines) if _REPLY.fullmatch(line)]
        misses = {
            n: int(match[1]) for n, line in enumerate(lines) if (match := _TIMEOUT.match(line))
        }
        if not answers and not misses:
            raise
        replies = [_reply(source, n + 1, lines[n]) for n in answers]
        said = lines[: max(*answers, *misses, 0) + 1]
        begun = any(_HEADER.fullmatch(line) or _HEADER6.fullmatch(line) for line in lines)
        ending = statistics_of(replies, [*misses.values()], "ping", begun=begun)
        whole = "\n".join(said) + "\n" + ending
        parse_unix_ping(whole, source)
        return whole
    return text
