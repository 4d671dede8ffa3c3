"""How long packets took while a network was busy, by those who waited: pings, the packets of a stream, short transfers.

A percentile is that of one run. Its packets followed each other into the same queue, so how far it can be
trusted is known only from several runs (stats.intervals.percentile_interval).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.lab import Value
from measuretwice.lab.schema.network import FlowFiles, StreamFiles
from measuretwice.measure.fields import Measured
from measuretwice.measure.raw import key_of, name_of, rows_of, text_of
from measuretwice.parse import ParseError, PingRun, parse_ping
from measuretwice.stats.intervals import percentile

SENT = "# sent "
# No Unix time (s) and no transfer (ms) is larger; of two larger ones the difference may be no number.
MOST = 1e12


def ping_of(path: Path) -> PingRun:
    """Return what a node's file of a ping says."""
    return parse_ping(text_of(path), name_of(path))


def read_busy_pings(raw: Path, name: str) -> dict[str, PingRun]:
    """Return the pings that were sent beside the flows, by node: any that has the file. ParseError where none has it."""
    pings = {path.parent.name: ping_of(path) for path in sorted(raw.glob(f"*/{name}"))}
    if not pings:
        raise ParseError(name, "file", "no node has such a file")
    return pings


def ping_values(pings: Sequence[PingRun], interval_s: tuple[float, float]) -> Measured:
    """Return how long all pings beside the flows took, and which share of the answers came in the flows' interval (Unix
    times); that only where ping printed times (-D)."""
    means = [ping.rtt_avg_ms for ping in pings if ping.rtt_avg_ms is not None]
    if not means:
        return {}
    replies = [reply for ping in pings for reply in ping.replies]
    rtts_ms = [reply.rtt_ms for reply in replies if reply.rtt_ms is not None]
    times_s = [reply.timestamp_s for reply in replies if reply.timestamp_s is not None]
    values: Measured = {
        "busy_ping_mean_ms": round(sum(means) / len(means), 6),
        "busy_ping_max_ms": max(ping.rtt_max_ms or 0 for ping in pings),
        "busy_ping_loss_ratio": max(ping.loss_ratio or 0 for ping in pings),
    }
    # Of a ping that prints no answers (-q) there is no percentile.
    if rtts_ms:
        values |= {
            "busy_ping_p50_ms": percentile(rtts_ms, 0.5),
            "busy_ping_p99_ms": percentile(rtts_ms, 0.99),
        }
    if times_s:
        inside = sum(interval_s[0] <= time_s <= interval_s[1] for time_s in times_s)
        values["busy_ping_beside_ratio"] = round(inside / len(times_s), 6)
    return values


@dataclass(frozen=True)
class Stream:
    """One direction of a stream, as its receiver had it: how many packets were `sent` to it, and those that came, in the
    order of their `numbers`, with the Unix times at which they were sent and came. Of a number that came twice only the first counts.
    """

    node: str
    sent: int
    sent_s: tuple[float, ...]
    came_s: tuple[float, ...]
    numbers: tuple[int, ...] = ()

    @property
    def interval_ms(self) -> float | None:
        """Return the time from one packet sent to the next, on average, by those that came; None of less than two."""
        between = self.numbers[-1] - self.numbers[0] if self.numbers else 0
        return 1e3 * (self.sent_s[-1] - self.sent_s[0]) / between if between else None

    @property
    def least_ms(self) -> float | None:
        """Return how long the fastest packet took, by the clocks of two hosts."""
        took_s = [came - sent for sent, came in zip(self.sent_s, self.came_s, strict=True)]
        return 1e3 * min(took_s) if took_s else None

    @property
    def delays_ms(self) -> list[float]:
        """Return how much longer each packet took than the fastest one: the two hosts' clocks may be apart, as long as neither runs
        faster than the other."""
        took_s = [came - sent for sent, came in zip(self.sent_s, self.came_s, strict=True)]
        least_s = min(took_s, default=0.0)
        # Times are printed in microseconds.
        return [round(1e3 * (took - least_s), 3) for took in took_s]

    def late_ratio(self, deadline_ms: float) -> float:
        """Return which share of all packets sent came later than that after the fastest one, or not at all."""
        in_time = sum(delay <= deadline_ms for delay in self.delays_ms)
        return 1 - in_time / self.sent


def read_streams(files: StreamFiles, raw: Path) -> list[Stream]:
    """Return what each node with such a file received of a stream, by node. ParseError where a file can't be read."""
    return [_read_stream(path) for path in sorted(raw.glob(f"*/{files.file}"))]


def _read_stream(path: Path) -> Stream:
    rows = rows_of(path, _packet, "a packet's number, when it was sent and when it came")
    sent = [row for row in rows if isinstance(row, int)]
    packets: dict[int, tuple[float, float]] = {}
    for row in rows:
        if not isinstance(row, int):
            packets.setdefault(row[0], row[1:])
    if len(sent) != 1:
        raise ParseError(name_of(path), "file", f"has {len(sent)} lines '{SENT}N'; expected one")
    if max(packets, default=-1) >= sent[0]:
        problem = f"has a packet {max(packets)}, and {sent[0]} were sent, counted from 0"
        raise ParseError(name_of(path), "file", problem)
    numbers = tuple(sorted(packets))
    times = [packets[number] for number in numbers]
    sent_s, came_s = (tuple(of_each[place] for of_each in times) for place in (0, 1))
    return Stream(path.parent.name, sent[0], sent_s, came_s, numbers)


def _packet(line: str) -> tuple[int, float, float] | int:
    """Return a packet's number and times, or how many were sent."""
    if line.startswith(SENT):
        return _at_least(int(line.removeprefix(SENT)), 1)
    number, sent_s, came_s = line.split()
    return _at_least(int(number), 0), _time(sent_s), _time(came_s)


def _at_least(number: int, least: int) -> int:
    if number < least:
        raise ValueError(number)
    return number


def _time(text: str) -> float:
    value = float(text)
    if not abs(value) <= MOST:
        raise ValueError(text)
    return value


def stream_values(streams: Sequence[Stream], deadline_ms: float | None) -> Measured:
    """Return what each node's stream was like: its delays above the least one, what was lost, and, with a deadline, what
    came too late for it or was lost."""
    values: Measured = {}
    for stream in streams:
        node, delays_ms = key_of(stream.node), stream.delays_ms
        values |= {
            f"{node}_delay_mean_ms": round(sum(delays_ms) / len(delays_ms), 6)
            if delays_ms
            else None,
            f"{node}_delay_p50_ms": percentile(delays_ms, 0.5) if delays_ms else None,
            f"{node}_delay_p99_ms": percentile(delays_ms, 0.99) if delays_ms else None,
            f"{node}_lost_ratio": round(1 - len(delays_ms) / stream.sent, 6),
        }
        if deadline_ms is not None:
            values[f"{node}_late_ratio"] = round(stream.late_ratio(deadline_ms), 6)
    return values


def transfer_values(raw: Path, name: str) -> Measured:
    """Return how many short transfers each node made, and how long they took; a line each: when it began (Unix time), and
    how long it took until its last byte (ms)."""
    values: Measured = {}
    for name_of_node, rows in read_transfers(raw, name).items():
        node, took_ms = key_of(name_of_node), [took for _, took in rows]
        values[f"{node}_transfers"] = len(rows)
        if took_ms:
            values[f"{node}_transfer_p50_ms"] = percentile(took_ms, 0.5)
            values[f"{node}_transfer_p95_ms"] = percentile(took_ms, 0.95)
    return values


def read_transfers(raw: Path, name: str) -> dict[str, list[tuple[float, float]]]:
    """Return each node's short transfers: when one began (Unix time), and how long it took (ms)."""
    what = "when it began, and how long it took (ms)"
    return {
        path.parent.name: rows_of(path, _transfer, what) for path in sorted(raw.glob(f"*/{name}"))
    }


def _transfer(line: str) -> tuple[float, float]:
    began_s, took_ms = map(_time, line.split())
    return began_s, took_ms


@dataclass(frozen=True)
class Probes:
    """Those who waited beside a run's flows, by node: pings, the streams that came to nodes, and short transfers, each with
    the Unix time at which it began and how long it took (ms)."""

    pings: Mapping[str, PingRun] = field(default_factory=dict)
    streams: tuple[Stream, ...] = ()
    transfers: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


def read_probes(files: FlowFiles, raw: Path) -> Probes:
    """Return all who waited beside the flows. ParseError where a file can't be read."""
    pings = sorted(raw.glob(f"*/{files.ping_busy}")) if files.ping_busy else []
    return Probes(
        {path.parent.name: ping_of(path) for path in pings},
        tuple(read_streams(files.delays, raw)) if files.delays else (),
        read_transfers(raw, files.transfers) if files.transfers else {},
    )


def read_waits(
    files: FlowFiles,
    raw: Path,
    params: Mapping[str, Value],
    pings: Sequence[PingRun],
    interval_s: tuple[float, float],
) -> Measured:
    """Return all that a run says of how long packets took beside its flows. ParseError where a file can't be read."""
    values = ping_values(pings, interval_s)
    if files.delays:
        deadline = files.delays.deadline
        deadline_ms = float(params[deadline]) if deadline else None
        values |= stream_values(read_streams(files.delays, raw), deadline_ms)
    if files.transfers:
        values |= transfer_values(raw, files.transfers)
    return values
