"""A queue packet by packet: its counters every few milliseconds, and the flow beside it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.measure.connections import traces
from measuretwice.measure.queue import file_of
from measuretwice.measure.raw import name_of, text_of
from measuretwice.parse import QdiscSample, parse_ping, parse_qdisc_samples, parse_ss_samples
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.result import Result
from measuretwice.site.words.subjects import LabWords
from measuretwice.site.words.traces import deltas

TENTHS_OF_MS = 1e4
# What is dropped leaves these from the head, not at the tail.
DROPS_AT_HEAD = ("codel", "fq_codel")


def packets_data(words: LabWords, results: Sequence[Result]) -> dict[str, Any]:
    """Each run's queue, sample by sample: what had left, what was dropped, what waited; beside it the flow."""
    return {"runs": [_packets(words, result) for result in results]}


def _packets(words: LabWords, result: Result) -> dict[str, Any]:
    place, files = words.lab.file.collect.queue, words.lab.file.collect.flows
    if place is None or files is None:
        raise UserError(f"{words.lab.name}: its lab.toml samples no queue, or has no flows")
    with raw_folder(result.run_dir) as raw:
        flow = next(iter(traces(words.lab, raw)), None)
        path = file_of(place, raw)
        samples = parse_qdisc_samples(text_of(path), name_of(path))
        if flow is None:
            raise UserError(f"{result.run_dir}: has no flow")
        pings = _pings(raw / flow.node, files.ping_busy, files.ss)
    start, end = flow.time_s[0], flow.time_s[-1]
    samples = tuple(one for one in samples if start <= one.time_s <= end)
    beside = [max(0, bisect_right(flow.time_s, one.time_s) - 1) for one in samples]
    counts = [_counted(one) for one in samples]
    begin = counts[0]
    return {
        "algorithm": str(result.params["congestion_control"]),
        "discipline": str(result.params["discipline"]),
        "trial": result.trial,
        "head_drops": result.params["discipline"] in DROPS_AT_HEAD,
        "time": deltas([round((one.time_s - start) * TENTHS_OF_MS) for one in samples]),
        "sent": deltas([sent - begin[0] for sent, _, _ in counts]),
        "dropped": deltas([dropped - begin[1] for _, dropped, _ in counts]),
        "waiting": deltas([waiting for _, _, waiting in counts]),
        "cwnd": deltas([flow.cwnd_segments[n] for n in beside]),
        "rtt": deltas([round(10 * flow.rtt_ms[n]) for n in beside]),
        "ping": [[round((when - start) * 1e3), rtt] for when, rtt in pings if start <= when <= end],
    }


def _counted(sample: QdiscSample) -> tuple[int, int, int]:
    """Packets that the innermost qdisc has sent, dropped, and holds."""
    inner = sample.qdiscs[-1]
    return inner.sent_packets or 0, inner.drops or 0, inner.qlen_packets or 0


def _pings(node: Path, file: str | None, ss: str) -> list[tuple[float, float]]:
    """Each answered ping's time and RTT (ms). ping prints no times: it began with the first sample of ss, and
    has sent one an interval since."""
    if file is None or not (node / file).is_file():
        return []
    run = parse_ping(text_of(node / file), file)
    began = parse_ss_samples(text_of(node / ss), ss)[0].time_s
    if run.transmitted < 2 or run.time_ms is None:
        return []
    interval_s = run.time_ms / 1e3 / (run.transmitted - 1)
    return [
        (began + (one.seq - 1) * interval_s, one.rtt_ms)
        for one in run.replies
        if one.rtt_ms is not None
    ]
