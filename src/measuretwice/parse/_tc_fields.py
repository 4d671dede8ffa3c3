"""Which of tc's options become which fields; shared by the two forms that tc prints."""

from __future__ import annotations

from enum import Enum, auto


class Quantity(Enum):
    """What a value counts, from which each form's unit follows."""

    COUNT = auto()
    SIZE = auto()
    RATE = auto()
    TIME = auto()
    FLAG = auto()


Fields = dict[str, tuple[str, Quantity]]

_LIMIT_PACKETS: Fields = {"limit": ("limit_packets", Quantity.COUNT)}
_LIMIT_BYTES: Fields = {"limit": ("limit_bytes", Quantity.SIZE)}

# (qdisc or class, kind) to the options that have a field.
OPTIONS: dict[tuple[str, str], Fields] = {
    ("qdisc", "bfifo"): _LIMIT_BYTES,
    ("qdisc", "pfifo"): _LIMIT_PACKETS,
    ("qdisc", "fq"): _LIMIT_PACKETS,
    ("qdisc", "fq_codel"): _LIMIT_PACKETS,
    ("qdisc", "codel"): _LIMIT_PACKETS,
    ("qdisc", "pie"): _LIMIT_PACKETS,
    # netem's delay, loss and rate have parts, and are read apart.
    ("qdisc", "netem"): {**_LIMIT_PACKETS, "seed": ("seed", Quantity.COUNT)},
    ("qdisc", "tbf"): {
        **_LIMIT_BYTES,
        "rate": ("rate_bps", Quantity.RATE),
        "peakrate": ("peak_rate_bps", Quantity.RATE),
        "burst": ("burst_bytes", Quantity.SIZE),
        "lat": ("latency_s", Quantity.TIME),
    },
    ("qdisc", "red"): {
        **_LIMIT_BYTES,
        "min": ("min_bytes", Quantity.SIZE),
        "max": ("max_bytes", Quantity.SIZE),
        "ecn": ("ecn", Quantity.FLAG),
    },
    ("class", "htb"): {
        "rate": ("rate_bps", Quantity.RATE),
        "ceil": ("ceil_bps", Quantity.RATE),
        "burst": ("burst_bytes", Quantity.SIZE),
        "cburst": ("cburst_bytes", Quantity.SIZE),
        "prio": ("prio", Quantity.COUNT),
    },
}

# Each qdisc's counters and their fields.
COUNTERS = {
    "bytes": "sent_bytes",
    "packets": "sent_packets",
    "drops": "drops",
    "overlimits": "overlimits",
    "requeues": "requeues",
    "backlog": "backlog_bytes",
    "qlen": "qlen_packets",
}

# red's own statistics and their fields.
RED_STATS = {name: f"{name}_packets" for name in ("marked", "early", "pdrop", "other")}

# The statistic that ends a kind's text, so that a text which lacks it is known to be cut off.
LAST_STAT = {("qdisc", "red"): "other", ("class", "htb"): "ctokens"}
