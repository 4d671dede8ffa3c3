"""Names, and what several of the lab's facts need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from measuretwice.facts import param_cell, size
from measuretwice.tcp import model

# By trial: of the source's four experiments.
HIGHSPEED_LARGE, HIGHSPEED_SMALL, CUBIC_LARGE, CUBIC_SMALL = 1, 2, 3, 4
# What tables show of a run.
ALGORITHM, BUFFER = param_cell("congestion_control"), param_cell("buffer_bytes", size)


def first_rtt_ms(trial: Mapping[str, Any]) -> float:
    """The round-trip time of s1's path, the longer one, with empty queues."""
    return float(2 * trial["first_delay_ms"] + trial["back_delay_ms"])


def bdp_bytes(trial: Mapping[str, Any]) -> float:
    """The bandwidth-delay product of s1's path."""
    return model.bdp_bytes(trial["rate_mbit"], first_rtt_ms(trial))
