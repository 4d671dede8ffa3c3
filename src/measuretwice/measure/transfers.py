"""What a test of iperf3, iperf 2, netperf or flent says of itself: what it was asked to do, its rows, its totals at both ends.

All flows of one test are taken as one: bytes and windows are summed. What a tool or its version doesn't print is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from measuretwice.measure.raw import name_of, text_of
from measuretwice.parse import (
    Iperf2Connection,
    Iperf2Row,
    Iperf3Interval,
    Iperf3Run,
    ParseError,
    parse_iperf3_json,
)
from measuretwice.parse.netperf import BulkTest

# A connection is there before its test begins, by some round trips.
EARLY_S = 2.0
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Row:
    """One interval of a test; round-trip time and windows are those at its end. `window_bytes` is the receiver's."""

    start_s: float
    end_s: float
    bytes: int
    retransmits: int | None = None
    cwnd_bytes: int | None = None
    window_bytes: int | None = None
    rtt_ms: float | None = None
    rate_bps: float | None = None


@dataclass(frozen=True)
class Amount:
    """What one end counted over a test's time."""

    bytes: int
    seconds: float

    @property
    def rate_bps(self) -> float:
        """The bytes over the time; 0 where there was none."""
        return 8 * self.bytes / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Transfer:
    """One test by its sender's file. `asked_s` is how long it was told to last, `options_bps` how fast each flow was told to
    send at most, by the option, `buffer_bytes` the buffer that was asked for (-w); `omit_s`, with its `omitted_bytes`, is left out of the totals. The shares of
    a processor are in per cent. `exact` says that bytes are printed in full, not with three digits. `mss_bytes` is the segment size
    by the tool's word, `asked_mss_bytes` what it was asked for (-M); `idle_rtt_ms` the round trip of the handshake. `hosts` are the
    addresses of both ends. `broke_off` says that the test didn't run to its end, `of_rows` that its rows stand for
    its totals, which nobody has; `totals` are the lines
    for a whole test, of each flow by itself, where they have a rate of their own."""

    tool: str
    node: str
    source: str
    rows: tuple[Row, ...]
    streams: int
    exact: bool
    sent: Amount | None
    received: Amount | None
    retransmits: int | None = None
    asked_s: float | None = None
    omit_s: float = 0.0
    omitted_bytes: int = 0
    options_bps: Mapping[str, float] = field(default_factory=dict)
    buffer_bytes: int | None = None
    own_cpu_percent: float | None = None
    other_cpu_percent: float | None = None
    mss_bytes: int | None = None
    asked_mss_bytes: int | None = None
    idle_rtt_ms: float | None = None
    hosts: frozenset[tuple[str, str]] = frozenset()
    broke_off: bool = False
    of_rows: bool = False
    totals: tuple[Row, ...] = ()

    @property
    def arrived(self) -> Amount | None:
        """Return what the receiver counted, else what the sender did."""
        return self.received or self.sent

    @property
    def rtt_ms(self) -> float | None:
        """The mean of the round-trip times at its rows' ends."""
        return _mean([row.rtt_ms for row in self.rows if row.rtt_ms])

    @property
    def least_rtt_ms(self) -> float | None:
        """The smallest of them, and of the handshake: the path's is no longer."""
        rtts_ms = [row.rtt_ms for row in self.rows] + [self.idle_rtt_ms]
        return None if self.too_old else min(filter(None, rtts_ms), default=None)

    @property
    def too_old(self) -> Row | None:
        """The first row whose round trip is longer than the connection had been there: no measurement."""
        age_s = EARLY_S + self.omit_s
        rows = (row for row in self.rows if row.rtt_ms and row.rtt_ms > 1e3 * (row.end_s + age_s))
        return next(rows, None)

    @property
    def cwnd_bytes(self) -> float | None:
        """The mean congestion window at its rows' ends, of all flows together."""
        return _mean([row.cwnd_bytes for row in self.rows if row.cwnd_bytes])

    @property
    def window_bytes(self) -> int | None:
        """The largest window that the receiver offered, of all flows together."""
        return max((row.window_bytes for row in self.rows if row.window_bytes), default=None)


def of_iperf3(node: str, source: str, run: Iperf3Run, *, exact: bool) -> Transfer:
    """Return a client's test of iperf3, or a server's where there is no client's. Of one that broke off the rows are
    its sum."""
    rows = tuple(_rows(run))
    sent, received = (
        _amount(run.sent_bytes, run.sent_seconds),
        _amount(run.received_bytes, run.received_seconds),
    )
    if run.error and not sent and rows:
        sent = _amount(sum(row.bytes for row in rows), rows[-1].end_s)
    omitted = [row for row in run.intervals if row.omitted]
    omit_s = run.omit_s or max((row.end_s for row in omitted), default=0.0)
    options_bps = {"-b": run.bitrate_bps, "--fq-rate": run.pacing_bps}
    return Transfer(
        "iperf3", node, source, rows, max(len(run.connections), 1), exact, sent, received,
        run.retransmits, run.duration_s, omit_s, sum(row.bytes for row in omitted if row.is_sender is not False),
        {option: rate for option, rate in options_bps.items() if rate}, run.window_bytes or None,
        run.own_cpu_percent, run.other_cpu_percent, run.mss_default_bytes or None, run.mss_requested_bytes or None,
        hosts=frozenset((ends.local_host, ends.remote_host) for ends in run.connections),
        broke_off=run.error is not None, of_rows=bool(run.intervals) and not run.streams and not run.error,
    )  # fmt: skip


def of_iperf2(node: str, source: str, connections: Sequence[Iperf2Connection]) -> Transfer:
    """Return a test of iperf 2: by its receivers' word where that is known."""
    by_time: dict[tuple[float, float], list[Iperf2Row]] = defaultdict(list)
    for connection in connections:
        for row in connection.intervals:
            by_time[row.start_s, row.end_s].append(row)
    totals = [connection.total for connection in connections]
    amount = Amount(
        sum(total.bytes for total in totals), max(total.end_s - total.start_s for total in totals)
    )
    served = all(connection.server for connection in connections)
    return Transfer(
        "iperf 2", node, source,
        tuple(
            Row(
                start_s, end_s, sum(row.bytes for row in rows), _sum([row.retransmits for row in rows]),
                _sum([row.cwnd_bytes for row in rows]), None,
                _mean([row.rtt_us / 1e3 for row in rows if row.rtt_us]),
                _sum([row.rate_bps for row in rows]),
            )
            for (start_s, end_s), rows in by_time.items()
        ),
        len(connections), False, None if served else amount, amount if served else None,
        None if served else _sum([total.retransmits for total in totals]),
        buffer_bytes=min((c.window_bytes for c in connections if c.window_bytes), default=None),
        mss_bytes=min((c.mss_bytes for c in connections if c.mss_bytes), default=None),
        idle_rtt_ms=min((c.idle_rtt_us / 1e3 for c in connections if c.idle_rtt_us), default=None),
        hosts=frozenset((c.from_address, c.to_address) for c in connections),
        totals=tuple(Row(row.start_s, row.end_s, row.bytes, rate_bps=row.rate_bps) for row in totals),
    )  # fmt: skip


def of_bulk(test: BulkTest) -> Transfer:
    """Return a test of netperf or flent, which say what arrived."""
    return Transfer(
        test.tool, test.tool, test.tool, tuple(Row(*row) for row in test.rows), test.flows, False,
        None, _amount(round(test.rate_bps * test.seconds / 8), test.seconds), test.retransmits,
        own_cpu_percent=test.own_cpu_percent, other_cpu_percent=test.other_cpu_percent, mss_bytes=test.mss_bytes,
    )  # fmt: skip


def all_together(runs: Sequence[Iperf3Run]) -> Iperf3Run:
    """Return several tests as one: bytes and retransmissions are summed, of all connections; rates only of tests that ran
    at the same time, by their own word."""
    if len(runs) == 1:
        return runs[0]
    begun = [run.start_time_s for run in runs if run.start_time_s]
    ended = [run.start_time_s + (run.sent_seconds or 0) for run in runs if run.start_time_s]
    at_once = len(begun) == len(runs) and max(begun) < min(ended)
    return replace(
        runs[0],
        connections=tuple(connection for run in runs for connection in run.connections),
        intervals=(),
        streams=tuple(stream for run in runs for stream in run.streams),
        sent_bytes=_sum([run.sent_bytes for run in runs]),
        sent_rate_bps=_sum([run.sent_rate_bps for run in runs]) if at_once else None,
        sent_seconds=max((run.sent_seconds or 0.0 for run in runs), default=None),
        retransmits=_sum([run.retransmits for run in runs]),
        received_bytes=_sum([run.received_bytes for run in runs]),
        received_rate_bps=_sum([run.received_rate_bps for run in runs]) if at_once else None,
    )


def transfers_in(folders: Iterable[Path]) -> Iterator[Transfer]:
    """Yield what each client's JSON of iperf3 in these nodes' folders says; what can't be read is left out."""
    for folder in folders:
        for path in sorted(folder.glob("iperf3*.json")):
            try:
                run = parse_iperf3_json(text_of(path), name_of(path))
            except ParseError:
                continue
            if not (run.server or run.error):
                yield of_iperf3(folder.name, name_of(path), run, exact=True)


# What to bring instead, by words of why a test is of no use.
_INSTEAD = (
    ("of UDP", "a test of TCP"),
    ("requests and responses", "TCP_STREAM, or TCP_MAERTS"),
    ("both directions", "a test of each direction by itself"),
    ("unable to receive results", "a test without --get-server-output, with which iperf3 since 3.17 loses them"),
    ("busy running a test", "a test that began once the other had ended"),
    ("unable to connect", "a test whose server (iperf3 -s) was there before"),
    ("interrupt", "a test that ran to its end"),
    ("has terminated", "a test whose server stayed until its end"),
    ("control socket", "a test whose control connection held until its end"),
)  # fmt: skip


def instead_of(problem: str) -> str:
    """Return what to bring in place of a test of which this is the problem; nothing where nobody knows."""
    instead = next((words for sign, words in _INSTEAD if sign in problem), None)
    return f"; bring {instead}" if instead else ""


def _amount(bytes_: int | None, seconds: float | None) -> Amount | None:
    return Amount(bytes_, seconds) if bytes_ is not None and seconds else None


def _rows(run: Iperf3Run) -> Iterator[Row]:
    """The intervals that count, all streams' together."""
    by_time: dict[tuple[float, float], dict[int, Iperf3Interval]] = defaultdict(dict)
    for interval in run.intervals:
        if not interval.omitted and interval.is_sender is not False:
            times = round(interval.start_s, 2), round(interval.end_s, 2)
            # The server's own rows may follow the client's (--get-server-output).
            by_time[times].setdefault(interval.stream_id, interval)
    for _, by_stream in sorted(by_time.items()):
        parts = [*by_stream.values()]
        rtts_ms = [part.rtt_us / 1e3 for part in parts if part.rtt_us]
        rates = [part.rate_bps for part in parts]
        yield Row(
            parts[0].start_s,
            parts[0].end_s,
            sum(part.bytes for part in parts),
            _sum([part.retransmits for part in parts]),
            _sum([part.snd_cwnd_bytes for part in parts]),
            _sum([part.snd_wnd_bytes for part in parts]),
            _mean(rtts_ms),
            None if None in rates else sum(filter(None, rates)),
        )


def _sum(values: Sequence[Number | None]) -> Number | None:
    return None if None in values else sum(filter(None, values))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
