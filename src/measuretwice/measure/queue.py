"""A queue over time, as tc counted it: how long it was, what it dropped, and how it was set up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from measuretwice.lab import Lab
from measuretwice.lab.schema.network import QueueAt
from measuretwice.measure.fields import Measured
from measuretwice.measure.raw import name_of, text_of
from measuretwice.parse import (
    ParseError,
    Qdisc,
    QdiscSample,
    parse_qdisc_samples,
    parse_tc_qdiscs,
)
from measuretwice.tcp.traces import interpolate

_BACKLOG = re.compile(r'"backlog":(\d+)')


@dataclass(frozen=True)
class Queue:
    """A queue over time: parallel lists, one entry a sample. Counters count from the start.

    `kind` is the qdisc's, as in "red"; `limit_bytes` the room in it, by tc's own word, None where it
    counts packets.
    """

    kind: str
    limit_bytes: int | None

    time_s: list[float]
    backlog_bytes: list[int]
    backlog_packets: list[int]
    sent_bytes: list[int]
    drops: list[int]
    marks: list[int]


def queue(lab: Lab, raw: Path) -> Queue | None:
    """Return the sampled queue; None where the lab samples none."""
    place = lab.file.collect.queue
    return read_queue(place, raw) if place else None


def file_of(place: QueueAt, raw: Path) -> Path:
    """Return the file with the samples: at its node, or at the one node that has it."""
    paths = [raw / place.node / place.file] if place.node else sorted(raw.glob(f"*/{place.file}"))
    if len(paths) != 1:
        raise ParseError(place.file, "file", f"{len(paths)} nodes have such a file; expected one")
    return paths[0]


def read_queue(place: QueueAt, raw: Path) -> Queue:
    """Return the samples of the qdisc that `place` names. ParseError for fewer than two."""
    path = file_of(place, raw)
    return queue_of(text_of(path), name_of(path), place.kind)


def queue_of(
    text: str, source: str, kind: str | None, *, allow_truncated_tail: bool = False
) -> Queue:
    """Return the samples of the qdisc of this kind in a sampler's text; without one the innermost.

    ParseError for fewer than two; of a text that is cut off, the last sample may be left out.
    """
    queue = Queue("", None, [], [], [], [], [], [])
    for sample in parse_qdisc_samples(text, source, allow_truncated_tail=allow_truncated_tail):
        qdisc = _of_kind(sample, kind, source)
        if not queue.time_s:
            queue = replace(queue, kind=qdisc.kind, limit_bytes=_limit_bytes(qdisc))
        queue.time_s.append(sample.time_s)
        queue.backlog_bytes.append(qdisc.backlog_bytes or 0)
        queue.backlog_packets.append(qdisc.qlen_packets or 0)
        queue.sent_bytes.append(qdisc.sent_bytes or 0)
        queue.drops.append(qdisc.drops or 0)
        queue.marks.append(marks(qdisc))
    if len(queue.time_s) < 2:
        raise ParseError(source, "file", "fewer than two samples")
    return queue


def _limit_bytes(qdisc: Qdisc) -> int | None:
    """tc prints tbf's limit as the time that it takes at that rate, less what goes at once."""
    if qdisc.limit_bytes is None and qdisc.latency_s is not None and qdisc.rate_bps:
        return round(qdisc.latency_s * qdisc.rate_bps / 8 + (qdisc.burst_bytes or 0))
    return qdisc.limit_bytes


def _of_kind(sample: QdiscSample, kind: str | None, source: str) -> Qdisc:
    """The qdisc of this kind; without one the innermost, which is no other's parent."""
    parents = {(qdisc.parent or "").split(":")[0] for qdisc in sample.qdiscs}
    for qdisc in sample.qdiscs:
        if qdisc.kind == kind or (not kind and qdisc.handle.split(":")[0] not in parents):
            return qdisc
    if not kind:
        raise ParseError(source, "file", "there is no qdisc in it")
    kinds = ", ".join(qdisc.kind for qdisc in sample.qdiscs) or "none"
    raise ParseError(source, "file", f"there is no {kind} qdisc in it (there are: {kinds})")


def marks(qdisc: Qdisc) -> int:
    """Return the packets that were marked instead of dropped: by red, codel and its kin, and cake by its tins."""
    tins = qdisc.stats.get("tins") or []
    stats = [qdisc.stats, *tins] if isinstance(tins, list) else [qdisc.stats]
    marked = sum(
        int(counts.get("ecn_mark") or 0) for counts in stats if isinstance(counts, Mapping)
    )
    return (qdisc.marked_packets or 0) + marked


@dataclass(frozen=True)
class Lengths:
    """A queue's mean length over a time, and how long that takes to drain at a rate.

    `inside` are the places of the samples that it is the mean of, `busy_ratio` the share of them in which packets waited.
    """

    inside: list[int]
    busy_ratio: float
    mean_bytes: float
    mean_packets: float
    delay_mean_ms: float


def lengths_between(queue: Queue, start_s: float, end_s: float, rate_bps: float) -> Lengths:
    """Return the queue's mean length between two Unix times; ParseError below two samples."""
    inside = [n for n, time_s in enumerate(queue.time_s) if start_s <= time_s <= end_s]
    if len(inside) < 2:
        raise ParseError("queue samples", "file", "there are none while all flows were there")
    mean_bytes = sum(queue.backlog_bytes[n] for n in inside) / len(inside)
    return Lengths(
        inside,
        sum(queue.backlog_packets[n] > 0 for n in inside) / len(inside),
        mean_bytes,
        sum(queue.backlog_packets[n] for n in inside) / len(inside),
        8e3 * mean_bytes / rate_bps,
    )


def queue_values(queue: Queue, start_s: float, end_s: float, rate_bps: float) -> Measured:
    """Return what the queue did between two Unix times; its drops and marks are of the whole run."""
    lengths = lengths_between(queue, start_s, end_s, rate_bps)
    first, last = lengths.inside[0], lengths.inside[-1]
    seconds = queue.time_s[last] - queue.time_s[first]
    return {
        "utilisation": 8 * (queue.sent_bytes[last] - queue.sent_bytes[first]) / seconds / rate_bps,
        "queue_mean_bytes": lengths.mean_bytes,
        "queue_limit_bytes": queue.limit_bytes,
        "queue_max_bytes": max(queue.backlog_bytes[n] for n in lengths.inside),
        "queue_mean_packets": lengths.mean_packets,
        "queue_busy_ratio": lengths.busy_ratio,
        "queue_samples": len(lengths.inside),
        "queue_delay_mean_ms": lengths.delay_mean_ms,
        "queue_drops": queue.drops[-1] - queue.drops[0],
        "queue_marks": queue.marks[-1] - queue.marks[0],
        "queue_kind": queue.kind,
    }


def queue_of_many(queue: Queue, start_s: float, end_s: float, rate_bps: float) -> Measured:
    """Return what the queue did between two Unix times, its drops too, by straight lines between samples."""
    lengths = lengths_between(queue, start_s, end_s, rate_bps)

    def grown(values: Sequence[int]) -> float:
        return interpolate(queue.time_s, values, end_s) - interpolate(queue.time_s, values, start_s)

    packet_bytes = [
        queue.backlog_bytes[n] / queue.backlog_packets[n]
        for n in lengths.inside
        if queue.backlog_packets[n]
    ]
    return {
        "utilisation": round(8 * grown(queue.sent_bytes) / (end_s - start_s) / rate_bps, 6),
        "queue_mean_bytes": round(lengths.mean_bytes),
        "queue_mean_packets": round(lengths.mean_packets, 1),
        "queue_busy_ratio": round(lengths.busy_ratio, 6),
        "queue_samples": len(lengths.inside),
        "queue_packet_bytes": round(max(packet_bytes), 1) if packet_bytes else None,
        "queue_delay_mean_ms": round(lengths.delay_mean_ms, 3),
        "queue_drops": round(grown(queue.drops)),
    }


def in_bdp(queue: Queue, rate_bps: float, path_rtts_ms: Sequence[float | None]) -> Measured:
    """Return the buffer in bandwidth-delay products: each path has one of its own."""
    rtts_ms = [rtt_ms for rtt_ms in path_rtts_ms if rtt_ms]
    if queue.limit_bytes is None or not rtts_ms:
        return {}
    ratios = [8e3 * queue.limit_bytes / (rate_bps * rtt_ms) for rtt_ms in rtts_ms]
    return {"buffer_bdp_ratio_min": min(ratios), "buffer_bdp_ratio_max": max(ratios)}


def red_setup(path: Path) -> Measured:
    """Return what red was told, as `tc -d` prints it: its limits, and the logarithms that follow from burst
    and bandwidth (tc-red(8)); nothing for other disciplines."""
    for qdisc in parse_tc_qdiscs(text_of(path), name_of(path)):
        if qdisc.kind == "red":
            cell, ewma = qdisc.options.get("Scell_log"), qdisc.options.get("ewma")
            return {
                "red_limit_bytes": qdisc.limit_bytes,
                "red_max_bytes": qdisc.max_bytes,
                "red_cell_log": None if cell is None else int(cell),
                "red_ewma_log": None if ewma is None else int(ewma),
            }
    return {}


def backlogs_of(text: str) -> Iterator[tuple[float, int]]:
    """Yield each sample's Unix time, and the most bytes that waited in one of its queues."""
    for sample in text.split("# t=")[1:]:
        if waiting := _BACKLOG.findall(sample):
            yield float(sample.split(maxsplit=1)[0]), max(map(int, waiting))
