"""A run's goodput: one number over one time, the same wherever it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from measuretwice.lab import Lab, Value
from measuretwice.runs.result import Result
from measuretwice.tcp.model import payload_limit

# A sum above the link by less than this is rounding.
ROUNDING_RATIO = 5e-4
BY_ACKS = (
    "Goodput is counted from ACKs here. What was on its way as the time began is acknowledged in it, "
    "so a sum may be above what the link carries, by up to a round trip's bytes."
)


@dataclass(frozen=True)
class Goodput:
    """The measured value's `name`, its bit/s, and over which `time`, for a table's cell.

    `above_link` is by what part it exceeds what the link carries; 0 where it doesn't.
    """

    name: str
    bps: float | int | None
    time: str
    above_link: float = 0.0


def goodput_of(lab: Lab, result: Result) -> Goodput:
    """Return what tables, reports and pages call the run's goodput.

    Where a lab looks at one sender that has settled it is that flow's; else that of all flows.
    """
    files = lab.file.collect
    seconds = result.value("duration_s")
    name, bps = "goodput_bps", result.value("goodput_bps")
    time = "" if seconds is None else f"{seconds:.4g} s"
    if (
        files.one_sender
        and (settled_bps := result.value("steady_goodput_bps")) is not None
        and (begins_s := result.number(files.one_sender.average_from)) is not None
    ):
        name, bps, time = "steady_goodput_bps", settled_bps, f"from {begins_s:g} s"
    return Goodput(name, bps, time, _above_link(lab, result, bps))


def goodput_means(lab: Lab, params: Mapping[str, Value]) -> str:
    """Return over which time, and by whose count, the lab's goodput is, as words behind 'goodput'."""
    files = lab.file.collect
    if sender := files.one_sender:
        begins_s = params[sender.average_from]
        return f"bytes of {sender.node}'s flow acknowledged, from its second {begins_s} on"
    if files.crowd:
        return (
            f"bytes acknowledged while all flows were there, from {params[files.crowd.warmup]} s after "
            "the last one's start on"
        )
    if files.flows:
        return "bytes acknowledged while all flows were there"
    return "bytes that the receiving program got, over the whole test"


def _above_link(lab: Lab, result: Result, bps: float | int | None) -> float:
    queue, mss_bytes = lab.file.collect.queue, result.value("mss_bytes")
    rate_mbit = result.number(queue.rate) if queue else None
    if bps is None or not rate_mbit or not mss_bytes:
        return 0.0
    above = bps / payload_limit(rate_mbit * 1e6, mss_bytes, wire=False) - 1
    return above if above > ROUNDING_RATIO else 0.0
