"""Names, and what several of the lab's facts need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from measuretwice.facts import (
    Interval,
    Number,
    RecordedSets,
    cell,
    column,
    measured,
    ms,
    param,
    percent,
)
from measuretwice.measure.delays import Stream, read_streams
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.result import Result
from measuretwice.stats import intervals
from measuretwice.tcp.model import USUAL_FRAME_BYTES, drain_ms

# Trials by number: a full home by its router's discipline; four flows up through CoDel; DCTCP alone and beside CUBIC.
FQ_CODEL, CODEL, CAKE, FIFO = 1, 2, 3, 4
CODEL_10, CODEL_100 = 11, 12
DCTCP, DCTCP_AND_CUBIC = 21, 22
NAMES = {"fq_codel": "fq_codel", "codel": "CoDel", "cake": "CAKE", "bfifo": "FIFO", "pfifo": "FIFO", "dualpi2": "DualPI2", "pie": "PIE", "fq_pie": "FQ-PIE"}  # fmt: skip
FIFO_NAMES = ("bfifo", "pfifo")
PING, CALL, SS = "phone/ping-busy.txt", "server/call.txt", "laptop/ss.txt"
ROUTER, MODEM, ISP = (f"{node}/qdisc.after.json" for node in ("router", "modem", "isp"))
# What is in front of a call's bytes on the cable: the headers of UDP, IP and Ethernet.
UDP_HEADERS_BYTES = 8 + 20 + 14
# What tables show of a run.
PING_UNDER_LOAD, FLOWS_RTT = cell("busy_ping_mean_ms", ms), cell("rtt_mean_ms", ms)
ROUTERS_WAIT = cell("queue_delay_mean_ms", lambda wait_ms: ms(wait_ms, 3))
BAD_UP, BAD_DOWN = cell("server_late_ratio", percent), cell("phone_late_ratio", percent)
IN_USE = cell("utilisation", percent)


def name_of(run: Result) -> str:
    """A run's discipline as one writes it."""
    return NAMES.get(str(run.params["discipline"]), str(run.params["discipline"]))


def room_takes(params: Mapping[str, Any], room: str, rate: str) -> Number:
    """Return how long the last packet of a full queue waits, by the names of two parameters: its room and its rate."""
    size_bytes = params[room] * (USUAL_FRAME_BYTES if room.endswith("_packets") else 1)
    return ms(drain_ms(size_bytes, params[rate]), 3)


def set_mbit(rate_mbit: float) -> Number:
    """A rate that was set, with the digits that it has."""
    return Number(rate_mbit, "Mbit/s", len(f"{rate_mbit:g}".replace(".", "")))


def call_mbit(run: Result) -> float:
    """Return what a call sends in a direction, with the headers that the link carries, in Mbit/s."""
    packet_bytes = param(run, "call_bytes") + UDP_HEADERS_BYTES
    return 8e-3 * packet_bytes / param(run, "call_interval_ms")


def stream_to(sets: RecordedSets, run: Result, node: str) -> Stream:
    """A call's packets to a node, those that came and when."""
    flows = sets.lab.file.collect.flows
    assert flows
    assert flows.delays
    with raw_folder(run.run_dir) as raw:
        return next(stream for stream in read_streams(flows.delays, raw) if stream.node == node)


def runs_of(sets: RecordedSets, name: str, *disciplines: str) -> list[Result]:
    """A set's runs with one of these disciplines, by seed."""
    runs = [run for run in sets.runs(name) if run.params["discipline"] in disciplines]
    return sorted(runs, key=lambda run: run.seed)


def pings_wait(runs: Sequence[Result]) -> list[float]:
    """Return how much longer than on the idle path pings took while the flows ran, in ms, a value a run."""
    return [measured(run, "busy_ping_mean_ms") - measured(run, "path_rtt_ms") for run in runs]


def pings_took(runs: Sequence[Result]) -> list[float]:
    """Return how long pings took while the flows ran, in ms, a value a run."""
    return column(runs, "busy_ping_mean_ms")


def ratio_of_pairs(upper: Sequence[float], lower: Sequence[float]) -> Interval:
    """The ratio of pairs: its geometric mean, and the interval of that."""
    return Interval(*intervals.ratio_of_means(upper, lower), n=len(upper))


def median_over_runs(values: Sequence[float], unit: str = "") -> Interval:
    """The median over runs, and its interval by order statistics."""
    return Interval(*intervals.median_interval(values), unit, n=len(values))


def flows_wait(runs: Sequence[Result], of: str = "rtt_mean_ms") -> list[float]:
    """Return how much longer than on the idle path flows' own round trips took, in ms, a value a run."""
    return [measured(run, of) - measured(run, "path_rtt_ms") for run in runs]
