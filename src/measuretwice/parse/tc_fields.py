"""What tc says of a qdisc or a class: the tables of its counters and of each kind's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any

from measuretwice.parse.fields import Meaning, Meanings, meanings_of, printed, printed_by, table

_SOURCE = "tc(8), gnet_stats in linux/gen_stats.h"
_printed = partial(printed, default=None)


@dataclass(frozen=True)
class Counted:
    """What tc says of qdiscs and of classes alike; the counters are None without `-s`.

    `drops` and `overlimits` are its own, and for classful ones include those of its children as the
    kernel reports them. `options` and `stats` hold everything as tc printed it: JSON values, or words of
    text (True for a word without a value).
    """

    kind: str
    handle: str
    dev: str | None
    root: bool
    parent: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    # fmt: off
    sent_bytes: int | None = _printed("bytes", "bytes", "passed on, link headers included")
    sent_packets: int | None = _printed("packets", "packets", "passed on")
    drops: int | None = _printed("drops", "packets", "dropped here")
    overlimits: int | None = _printed("overlimits", "times", "a packet had to wait, or was over a bound")
    requeues: int | None = _printed("requeues", "times", "the interface gave a packet back")
    backlog_bytes: int | None = _printed("backlog", "bytes", "waiting at that moment")
    qlen_packets: int | None = _printed("qlen", "packets", "waiting at that moment")
    # fmt: on
    rate_bps: float | None = None
    burst_bytes: int | None = None


@dataclass(frozen=True)
class Qdisc(Counted):
    """One queueing discipline.

    A field is None where tc doesn't print it: `dev` when one device was asked for, a parameter that this
    kind hasn't or that this version of tc leaves out (peakrate in the JSON of iproute2 6.1 and later).

    - netem: `delay_s`, `jitter_s`, `loss_ratio` (of `loss random` only; the state and
      Gilbert-Elliott models are in `options`), `limit_packets` (netem's limit counts packets),
      `rate_bps`, and `seed` (printed since iproute2 6.6);
    - tbf: `latency_s` is that from which tc computed the limit, or the limit converted;
    - red: beside its bounds the counts of packets that were marked, dropped early, dropped for lack of
      room (pdrop) and dropped on others' behalf (other).
    """

    limit_packets: int | None = None
    limit_bytes: int | None = None
    peak_rate_bps: float | None = None
    latency_s: float | None = None
    delay_s: float | None = None
    jitter_s: float | None = None
    loss_ratio: float | None = None
    seed: int | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    ecn: bool | None = None
    # fmt: off
    marked_packets: int | None = _printed("marked", "packets", "marked, or dropped where ECN isn't in use, by chance")
    early_packets: int | None = _printed("early", "packets", "dropped by chance, before the queue was full")
    pdrop_packets: int | None = _printed("pdrop", "packets", "dropped because the queue was full")
    other_packets: int | None = _printed("other", "packets", "dropped on another's behalf")
    # fmt: on


@dataclass(frozen=True)
class TcClass(Counted):
    """One class of a classful qdisc. `leaf` is the handle of the qdisc inside, and `rate_bps`, `ceil_bps`
    (bit/s), `burst_bytes`, `cburst_bytes` and `prio` are htb's. tc never prints a class's device."""

    leaf: str | None = None
    ceil_bps: float | None = None
    cburst_bytes: int | None = None
    prio: int | None = None


# Each qdisc's counters, and red's own, by tc's names in JSON: the field of each.
COUNTERS = printed_by(Counted)
RED_STATS = {name: field for name, field in printed_by(Qdisc).items() if name not in COUNTERS}
# What the counters mean, and statistics that have no field.
QDISC = meanings_of(Qdisc, _SOURCE) | table(
    _SOURCE,
    {
        "ecn_mark": ("packets", "marked instead of dropped"),
        "maxpacket": ("bytes", "largest packet so far"),
        "new_flow_count": ("times", "a new flow began"),
        "drop_overlimit": ("packets", "dropped because the limit was reached"),
        "direct_packets_stat": ("packets", "passed on outside of every class"),
    },
)
# The statistic that ends a kind's text, so that a text which lacks it is known to be cut off.
LAST_STAT = {("qdisc", "red"): "other", ("class", "htb"): "ctokens"}


class Quantity(Enum):
    """What a value counts, from which its unit in each of tc's two forms follows."""

    COUNT = auto()
    SIZE = auto()
    RATE = auto()
    TIME = auto()
    FLAG = auto()


_BY_UNIT = {
    "bytes": Quantity.SIZE, "bytes/s": Quantity.RATE, "µs": Quantity.TIME,
}  # fmt: skip


@dataclass(frozen=True)
class Option:
    """An option by its unit in JSON: what it means, and the field that it becomes, where it has one."""

    unit: str
    text: str
    field: str = ""
    of: Quantity | None = None

    @property
    def quantity(self) -> Quantity:
        """What the value counts, which the unit says but for flags."""
        return self.of or _BY_UNIT.get(self.unit, Quantity.COUNT)


Options = dict[str, Option]
# fmt: off
_PACKETS: Options = {"limit": Option("packets", "how many may wait", "limit_packets")}
_ECN = Option("", "marks packets that allow it, instead of dropping them")
_CODEL: Options = {
    **_PACKETS,
    "target": Option("µs", "delay in the queue that is put up with"),
    "interval": Option("µs", "how long it may be above target"),
    "ecn": _ECN,
}
# (qdisc or class, kind) to the manual that has its options, and these by tc's names in JSON; one in an object as
# OBJECT.NAME: netem's delay, loss and rate have parts, and are read apart.
OPTIONS: dict[tuple[str, str], tuple[str, Options]] = {
    ("qdisc", "netem"): ("tc-netem(8)", {
        "limit": Option("packets", "how many packets it holds at most", "limit_packets"),
        "delay.delay": Option("s", "added to each packet that leaves here"),
        "delay.jitter": Option("s", "by how much that varies"),
        "delay.correlation": Option("0 to 1", "how much a packet's delay depends on that of the packet before"),
        "loss-random.loss": Option("0 to 1", "chance that a packet is dropped"),
        "loss-random.correlation": Option("0 to 1", "how much a drop depends on whether the packet before was dropped"),
        "ecn": _ECN,
        "gap": Option("packets", "one in this many packets is sent at once, before the delayed ones"),
        "rate.rate": Option("bytes/s", "rate at which packets leave"),
        "seed": Option("", "where its dice start from", "seed"),
    }),
    ("qdisc", "tbf"): ("tc-tbf(8)", {
        "rate": Option("bytes/s", "rate at which packets leave", "rate_bps"),
        "peakrate": Option("bytes/s", "rate within a burst", "peak_rate_bps"),
        "burst": Option("bytes", "size of the bucket: what may go at once", "burst_bytes"),
        "limit": Option("bytes", "how much may wait for tokens", "limit_bytes"),
        "linklayer": Option("", "which link's framing the rate is computed for"),
        "lat": Option("µs", "how long the last of a full queue waits at that rate, less the burst", "latency_s"),
    }),
    ("qdisc", "red"): ("tc-red(8)", {
        "limit": Option("bytes", "hard bound on the real queue", "limit_bytes"),
        "min": Option("bytes", "average queue from which on packets are marked or dropped", "min_bytes"),
        "max": Option("bytes", "average queue at which the chance is largest", "max_bytes"),
        "ecn": Option("", "marks packets that allow it, instead of dropping them", "ecn", Quantity.FLAG),
        "Wlog": Option("", "weight of the newest length in the average, as a power of 2"),
        "Plog": Option("", "chance at max, as a power of 2"),
        "Scell_log": Option("", "step of time for which the average decays when idle, as a power of 2"),
        "ewma": Option("", "weight of the newest length in the average, as a power of 2"),
        "probability": Option("0 to 1", "chance at max"),
    }),
    ("qdisc", "pfifo"): ("tc-bfifo(8)", _PACKETS),
    ("qdisc", "bfifo"): ("tc-bfifo(8)", {
        "limit": Option("bytes", "how much may wait", "limit_bytes"),
    }),
    ("qdisc", "pfifo_fast"): ("tc-pfifo_fast(8)", {
        "bands": Option("", "queues, by priority"),
    }),
    ("qdisc", "fq"): ("tc-fq(8)", {
        "limit": Option("packets", "how many may wait, of all flows", "limit_packets"),
        "flow_limit": Option("packets", "how many may wait, of one flow"),
    }),
    ("qdisc", "codel"): ("tc-codel(8)", _CODEL),
    ("qdisc", "fq_codel"): ("tc-fq_codel(8)", {
        **_CODEL,
        "flows": Option("", "queues that flows are shared out to"),
        "quantum": Option("bytes", "what a queue may send in its turn"),
        "memory_limit": Option("bytes", "how much memory packets may take"),
    }),
    ("qdisc", "pie"): ("tc-pie(8)", {
        **_PACKETS,
        "target": Option("µs", "delay in the queue that it aims at"),
        "tupdate": Option("µs", "how often the probability is recomputed"),
    }),
    ("qdisc", "htb"): ("tc-htb(8)", {
        "default": Option("", "class of packets that no filter puts elsewhere, hexadecimal"),
        "r2q": Option("", "rate over this is a class's turn"),
        "direct_qlen": Option("packets", "how many may wait outside of every class"),
    }),
    ("class", "htb"): ("tc-htb(8)", {
        "rate": Option("bytes/s", "what it may send at any time", "rate_bps"),
        "ceil": Option("bytes/s", "what it may send where others leave room", "ceil_bps"),
        "burst": Option("bytes", "what may go at once", "burst_bytes"),
        "cburst": Option("bytes", "what may go at once up to the ceiling", "cburst_bytes"),
        "prio": Option("", "who is offered what others leave: the lowest first", "prio"),
    }),
}
# fmt: on


def options_of(what: str, kind: str) -> Options:
    """Return the options of a kind of qdisc or class that have a field."""
    _, rows = OPTIONS.get((what, kind), ("", {}))
    return {name: option for name, option in rows.items() if option.field}


# What each kind's options mean.
QDISC_OPTIONS: dict[str, Meanings] = {
    kind: {name: Meaning(row.unit, row.text, source) for name, row in rows.items()}
    for (what, kind), (source, rows) in OPTIONS.items()
    if what == "qdisc"
}
