"""What a run of iperf3 measured, whichever form it was printed in; and its JSON (options -J and --json-stream),
versions 3.1 to 3.22."""

from __future__ import annotations

import re
from dataclasses import dataclass

from measuretwice.parse._reading import JsonObject, ParseError, clean, foreign, load
from measuretwice.parse.fields import meanings_of, printed, printed_by, table

_EXPECTED = "iperf3's JSON document (-J) with its `end` block"
# --json-stream: a document a line, {"event":"start","data":{...}}.
_STREAM = re.compile(r'\s*\{\s*"event"\s*:')


@dataclass(frozen=True)
class Iperf3Connection:
    """One data connection. `stream_id` is iperf3's socket number, by which intervals and totals
    are found; hosts and ports are seen from the end whose output this is."""

    stream_id: int
    local_host: str
    local_port: int
    remote_host: str
    remote_port: int


@dataclass(frozen=True)
class Iperf3Interval:
    """One stream's report over one interval.

    `start_s` and `end_s` count from the start of the measurement (after the omitted seconds, if
    `omitted` is false). The TCP fields are read from the sender's struct tcp_info at the
    interval's end, so they are None where this host received (`is_sender` false), and None where
    this version of iperf3 didn't report them. `is_sender` is None where
    an old version doesn't say.
    """

    stream_id: int
    start_s: float
    end_s: float
    bytes: int
    rate_bps: float | None
    retransmits: int | None
    snd_cwnd_bytes: int | None
    rtt_us: int | None
    rttvar_us: int | None
    pmtu_bytes: int | None
    omitted: bool
    is_sender: bool | None
    snd_wnd_bytes: int | None = None


@dataclass(frozen=True)
class Iperf3Stream:
    """One stream's totals over the measurement (omitted seconds left out by iperf3).

    `is_sender`: did this host send? None where iperf3 doesn't say.
    """

    stream_id: int
    is_sender: bool | None
    sender_bytes: int | None
    sender_seconds: float | None
    sender_rate_bps: float | None
    retransmits: int | None
    max_snd_cwnd_bytes: int | None
    min_rtt_us: int | None
    mean_rtt_us: int | None
    max_rtt_us: int | None
    receiver_bytes: int | None
    receiver_seconds: float | None
    receiver_rate_bps: float | None


@dataclass(frozen=True, kw_only=True)
class Iperf3Run:
    """One run of iperf3.

    None means that iperf3 didn't say: the totals of a run that ended with `error`, for example, or
    what the receiver got when the run ended before its results came. `duration_s` is what was
    asked for with -t (None with -n and -k), `bitrate_bps` with -b, `pacing_bps` with --fq-rate, `window_bytes` with -w (0 or None without),
    `mss_requested_bytes` with -M, and
    `congestion_control` is what the sender used. The shares of a processor are of this end and of the other. The sums are over all streams; of a bidirectional
    run they are the client's sending direction, and `streams` has both.
    """

    version: str | None
    start_time_s: float | None
    protocol: str | None = printed("protocol", "", "what it sent over")
    duration_s: float | None = printed("duration", "s", "how long it was told to send (-t)")
    omit_s: float | None = printed("omit", "s", "at the start, left out of the totals (-O)")
    interval_s: float | None
    num_streams: int | None = printed("num_streams", "", "connections with data (-P)")
    reverse: bool | None = printed("reverse", "", "the server sent, and the client received (-R)")
    bidirectional: bool | None
    mss_requested_bytes: int | None = printed("tcp_mss", "bytes", "segment size asked for (-M)")
    mss_default_bytes: int | None = printed(
        "tcp_mss_default", "bytes", "segment size of the control connection"
    )
    congestion_control: str | None = printed(
        "congestion", "", "congestion control that the sender used"
    )
    error: str | None
    connections: tuple[Iperf3Connection, ...]
    intervals: tuple[Iperf3Interval, ...]
    streams: tuple[Iperf3Stream, ...]
    sent_bytes: int | None
    sent_seconds: float | None
    sent_rate_bps: float | None
    retransmits: int | None
    received_bytes: int | None
    received_seconds: float | None
    received_rate_bps: float | None
    server: bool = False
    bitrate_bps: float | None = None
    pacing_bps: float | None = None
    window_bytes: int | None = None
    own_cpu_percent: float | None = None
    other_cpu_percent: float | None = None

    @property
    def omitted_bytes(self) -> int | None:
        """The bytes of the first seconds, which the totals leave out (-O); None where no row tells."""
        return self._omitted([row.bytes for row in self.intervals if row.omitted])

    @property
    def omitted_retransmits(self) -> int | None:
        """The segments retransmitted in those seconds; None where no row tells."""
        return self._omitted([row.retransmits or 0 for row in self.intervals if row.omitted])

    def _omitted(self, counts: list[int]) -> int | None:
        return sum(counts) if counts or not self.omit_s else None


@dataclass(frozen=True)
class Total:
    """What one end counted over the whole measurement, of a stream or of all; empty if unknown."""

    bytes: int | None = None
    seconds: float | None = None
    rate_bps: float | None = None
    retransmits: int | None = None


_SOURCE = "iperf3(1), its JSON (-J)"
# What a run was asked for, by iperf3's name: the field of each.
ASKED = printed_by(Iperf3Run)
IPERF3 = meanings_of(Iperf3Run, _SOURCE) | table(
    _SOURCE,
    {
        "bytes": ("bytes", "data, handed to the socket (sent) or read from it (received)"),
        "seconds": ("s", "the time that this side took"),
        "bits_per_second": ("bit/s", "those bytes over that time"),
        "retransmits": ("segments", "retransmitted, by the sender's kernel"),
        "snd_cwnd": ("bytes", "congestion window at the interval's end"),
        "rtt": ("ms", "smoothed round-trip time at the interval's end"),
        "interval": ("s", "from when to when"),
    },
)


def parse_iperf3_json(text: str, source: str) -> Iperf3Run:
    """Read what `iperf3 -c HOST -J` printed (or `iperf3 -s -1 -J`, which knows less), or with
    --json-stream.

    Keys that a version doesn't write are None in the result. A run that iperf3 itself ended with
    an error parses: the error's text is in `.error`.

    Raises ParseError for a truncated document (without its `end` block), for more than one
    document, for another tool's output, and, with the JSON path, for
    a value of the wrong type.
    """
    document = _document(text, source)
    error = document.text("error")
    end = _end(document, error, source)
    start = document.child("start") or JsonObject({}, "$.start", source)
    test = start.child("test_start") or JsonObject({}, "$.start.test_start", source)
    version = start.text("version")
    streams = tuple(_stream(stream, error) for stream in end.children("streams"))
    sent = _total(end.child("sum_sent"), error)
    if "sum" in end.data and "sum_sent" not in end.data:
        sent = _udp_total(end.need_child("sum"), streams)
    received = _total(end.child("sum_received"), error)
    sent = _unless_impossible(sent, received)
    cpu = end.child("cpu_utilization_percent") or JsonObject({}, "$.end", source)
    return Iperf3Run(
        version=None if version is None else version.removeprefix("iperf "),
        start_time_s=_start_time_s(start),
        protocol=test.text("protocol"),
        duration_s=test.number("duration") or None,
        omit_s=test.number("omit"),
        interval_s=test.number("interval"),
        num_streams=test.integer("num_streams"),
        reverse=test.flag("reverse"),
        bidirectional=_both_ways(end, streams) or test.flag("bidir"),
        mss_requested_bytes=start.integer("tcp_mss"),
        mss_default_bytes=start.integer("tcp_mss_default"),
        congestion_control=end.text("sender_tcp_congestion"),
        error=error,
        connections=tuple(map(_connection, start.children("connected"))),
        intervals=tuple(
            _interval(stream)
            for interval in document.children("intervals")
            for stream in interval.children("streams")
        ),
        streams=streams,
        sent_bytes=sent.bytes,
        sent_seconds=sent.seconds,
        sent_rate_bps=sent.rate_bps,
        retransmits=sent.retransmits,
        received_bytes=received.bytes,
        received_seconds=received.seconds,
        received_rate_bps=received.rate_bps,
        server="accepted_connection" in start.data,
        bitrate_bps=test.number("target_bitrate") or start.number("target_bitrate"),
        pacing_bps=test.number("fqrate") or start.number("fq_rate"),
        window_bytes=start.integer("sock_bufsize"),
        own_cpu_percent=cpu.number("host_total"),
        other_cpu_percent=cpu.number("remote_total"),
    )


def _both_ways(end: JsonObject, streams: tuple[Iperf3Stream, ...]) -> bool:
    """Return whether the totals are of both directions (--bidir), which the start of some versions doesn't say."""
    ways = {stream.is_sender for stream in streams} - {None}
    return len(ways) > 1 or "sum_sent_bidir_reverse" in end.data


def _document(text: str, source: str) -> JsonObject:
    text = clean(text, source, _EXPECTED)
    if _STREAM.match(text):
        return JsonObject.of(_joined(text, source), "$", source)
    if not text.lstrip().startswith("{"):
        raise foreign(text, source, _EXPECTED)
    document = JsonObject.of(load(text, source, _EXPECTED), "$", source)
    if not {"start", "error", "end"} & {*document.data}:
        raise foreign(text, source, _EXPECTED)
    return document


def _joined(text: str, source: str) -> dict[str, object]:
    """The document that -J would have printed, of what --json-stream did: an event a line."""
    document: dict[str, object] = {}
    intervals: list[object] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            event = JsonObject.of(load(line, source, _EXPECTED), "$", source)
        except ParseError as error:
            raise ParseError(source, f"line {number}", error.problem) from None
        name = event.text("event")
        if name == "interval":
            intervals.append(event.data.get("data"))
        elif name is not None:
            document[name] = event.data.get("data")
    end = document.get("end")
    inner = [part.get("error") for part in (document.get("error"), end) if isinstance(part, dict)]
    if problem := next((words for words in inner if isinstance(words, str)), None):
        document["error"] = problem
    return {**document, "intervals": intervals}


def _end(document: JsonObject, error: str | None, source: str) -> JsonObject:
    """The totals: missing only in a run that iperf3 itself ended with an error."""
    end = document.child("end")
    if error is None and (end is None or not end.data):
        # iperf3 3.9 writes an empty `end` and says why on stderr only.
        raise ParseError(
            source,
            "$.end",
            "the totals are missing or empty: the test was stopped, or the file cut off",
        )
    return end or JsonObject({}, "$.end", source)


def _total(total: JsonObject | None, error: str | None) -> Total:
    # A run that broke off has no results from its peer; iperf3 writes zeros for them.
    if total is None or (error is not None and not total.integer("bytes")):
        return Total()
    return Total(
        total.need_integer("bytes"),
        # Not `seconds`: in a receiver's totals that is the sender's time, while the rate beside it
        # is over start to end.
        total.need_number("end") - total.need_number("start"),
        total.number("bits_per_second"),
        _count(total, "retransmits"),
    )


def _unless_impossible(sent: Total, received: Total) -> Total:
    """What was sent; unknown where it is 0 and something arrived, as in a server's own document:
    the client keeps that number to itself."""
    return Total() if not sent.bytes and received.bytes else sent


def _udp_total(total: JsonObject, streams: tuple[Iperf3Stream, ...]) -> Total:
    """What was sent over UDP as iperf3 3.9 and earlier say it: bytes and rate are the sender's
    there, but the times are the receiver's, so the time is the longest stream's."""
    return Total(
        total.integer("bytes"),
        max((s.sender_seconds for s in streams if s.sender_seconds is not None), default=None),
        total.number("bits_per_second"),
    )


def _count(data: JsonObject, key: str) -> int | None:
    """A value that iperf3 sets to -1 where the system doesn't tell."""
    value = data.integer(key)
    return None if value is None or value < 0 else value


def _positive(data: JsonObject, key: str) -> int | None:
    """A value of struct tcp_info, which is 0 only where the sender's host didn't report it."""
    return _count(data, key) or None


def _start_time_s(start: JsonObject) -> float | None:
    timestamp = start.child("timestamp")
    if timestamp is None:
        return None
    milliseconds = timestamp.number("timemillisecs")
    return timestamp.number("timesecs") if milliseconds is None else milliseconds / 1000


def _connection(data: JsonObject) -> Iperf3Connection:
    return Iperf3Connection(
        stream_id=data.need_integer("socket"),
        local_host=data.need_text("local_host"),
        local_port=data.need_integer("local_port"),
        remote_host=data.need_text("remote_host"),
        remote_port=data.need_integer("remote_port"),
    )


def _interval(data: JsonObject) -> Iperf3Interval:
    return Iperf3Interval(
        stream_id=data.need_integer("socket"),
        start_s=data.need_number("start"),
        end_s=data.need_number("end"),
        bytes=data.need_integer("bytes"),
        rate_bps=data.number("bits_per_second"),
        retransmits=_count(data, "retransmits"),
        snd_cwnd_bytes=_positive(data, "snd_cwnd"),
        rtt_us=_positive(data, "rtt"),
        rttvar_us=_count(data, "rttvar"),
        pmtu_bytes=_positive(data, "pmtu"),
        omitted=data.flag("omitted") or False,
        is_sender=data.flag("sender"),
        snd_wnd_bytes=_positive(data, "snd_wnd"),
    )


def _stream(data: JsonObject, error: str | None) -> Iperf3Stream:
    # A UDP stream has one block, with the sender's bytes.
    sender = data.child("udp") or data.need_child("sender")
    sent = _total(sender, error)
    received = _total(data.child("receiver"), error)
    sent = _unless_impossible(sent, received)
    return Iperf3Stream(
        stream_id=sender.need_integer("socket"),
        is_sender=sender.flag("sender"),
        sender_bytes=sent.bytes,
        sender_seconds=sent.seconds,
        sender_rate_bps=sent.rate_bps,
        retransmits=sent.retransmits,
        max_snd_cwnd_bytes=_positive(sender, "max_snd_cwnd"),
        min_rtt_us=_positive(sender, "min_rtt"),
        mean_rtt_us=_positive(sender, "mean_rtt"),
        max_rtt_us=_positive(sender, "max_rtt"),
        receiver_bytes=received.bytes,
        receiver_seconds=received.seconds,
        receiver_rate_bps=received.rate_bps,
    )
