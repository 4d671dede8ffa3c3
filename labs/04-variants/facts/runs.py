"""Names, and what several of the lab's facts need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from measuretwice.facts import Interval, cell, mbit, ms
from measuretwice.runs.result import Result
from measuretwice.stats import intervals
from measuretwice.tcp.model import bdp_bytes

NAMES = {"reno": "Reno", "cubic": "CUBIC", "vegas": "Vegas", "bbr": "BBR"}
# Trials 1 to 4 are the four by cable, 5 to 8 over radio, 9 to 12 behind a gateway that ends TCP.
# Their algorithms stand in the order of NAMES.
CABLE, RADIO, RELAYED = range(1, 5), range(5, 9), range(9, 13)
RENO, CUBIC, VEGAS, BBR = CABLE
RENO_BY_RADIO, CUBIC_BY_RADIO, VEGAS_BY_RADIO, BBR_BY_RADIO = RADIO
# Eight runs of each path, by how long a host may let a packet wait.
PATHS = ("paths", "paths-wait-1-ms")
# On a path as the source had it.
VEGAS_OF_SOURCE, BBR_OF_SOURCE = 15, 16
GOODPUT, RTT = "steady_goodput_bps", "steady_rtt_ms"
# What tables show of a run.
SHOWN_GOODPUT, SHOWN_RTT = cell(GOODPUT, mbit), cell(RTT, ms)


def name_of(run: Result) -> str:
    """A run's algorithm as one writes it."""
    return NAMES[algorithm_of(run)]


def algorithm_of(run: Result) -> str:
    """A run's algorithm as Linux has it."""
    return str(run.params["congestion_control"])


def path_of(params: Mapping[str, Any], relayed: str) -> str:
    """Cable or radio, and what is said where the gateway ends TCP."""
    return f"{params['hop']}, {relayed}" if params["relay"] == "on" else str(params["hop"])


def mean_of(values: Sequence[float]) -> float:
    """The mean, as intervals have it."""
    return intervals.mean_interval(list(values))[0]


def mbit_interval(rates_bps: Sequence[float]) -> Interval:
    return Interval.of_mean([rate / 1e6 for rate in rates_bps], "Mbit/s")


def path_bdp_bytes(params: Mapping[str, Any]) -> float:
    """The bandwidth-delay product of a run's path."""
    return bdp_bytes(float(params["rate_mbit"]), float(params["wire_rtt_ms"]))
