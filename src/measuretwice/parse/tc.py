"""Queueing disciplines and classes as tc prints them (iproute2; see tc(8)).

tc's units, from the section PARAMETERS of tc(8): a size is in bytes, and its K, M and G are powers
of 1024 whether a `b` follows or not ("10Kb" is 10240 bytes); a rate's K, M and G are powers of 1000
("1Mbit" is 10^6 bit/s), and with an i ("1Mibit") powers of 1024. In JSON a size is in bytes and a
rate in *bytes* per second, which is converted here.

The text form is rounded: sizes to whole Kb or Mb where that is close, times to three digits. Use
JSON where it matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from measuretwice.parse._tc_fields import COUNTERS as COUNTERS
from measuretwice.parse._tc_json import read_json
from measuretwice.parse._tc_text import read_text
from measuretwice.parse._text import clean


@dataclass(frozen=True)
class Qdisc:
    """One queueing discipline.

    A field is None where tc doesn't print it: the counters without `-s`, `dev` when one device was
    asked for, a parameter that this kind hasn't or that this version of tc leaves out (peakrate in
    the JSON of iproute2 6.1 and later).

    - counters: `drops` and `overlimits` are the qdisc's own, and for classful ones include those
      of its children as the kernel reports them;
    - netem: `delay_s`, `jitter_s`, `loss_ratio` (of `loss random` only; the state and
      Gilbert-Elliott models are in `options`), `limit_packets` (netem's limit counts packets),
      `rate_bps`, and `seed` (printed since iproute2 6.6);
    - tbf: `rate_bps`, `burst_bytes`, `peak_rate_bps`, `latency_s` (from which tc computed the
      limit, or the limit converted);
    - red: `limit_bytes`, `min_bytes`, `max_bytes`, `ecn`, and the counts of packets that were
      marked, dropped early, dropped for lack of room (pdrop) and dropped on others' behalf (other);
    - bfifo: `limit_bytes`; pfifo, fq, fq_codel, codel, pie: `limit_packets`.

    `options` and `stats` hold everything as tc printed it: JSON values, or words of text (True for
    a word without a value).
    """

    kind: str
    handle: str
    dev: str | None
    root: bool
    parent: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    sent_bytes: int | None = None
    sent_packets: int | None = None
    drops: int | None = None
    overlimits: int | None = None
    requeues: int | None = None
    backlog_bytes: int | None = None
    qlen_packets: int | None = None
    limit_packets: int | None = None
    limit_bytes: int | None = None
    rate_bps: float | None = None
    peak_rate_bps: float | None = None
    burst_bytes: int | None = None
    latency_s: float | None = None
    delay_s: float | None = None
    jitter_s: float | None = None
    loss_ratio: float | None = None
    seed: int | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    ecn: bool | None = None
    marked_packets: int | None = None
    early_packets: int | None = None
    pdrop_packets: int | None = None
    other_packets: int | None = None


@dataclass(frozen=True)
class TcClass:
    """One class of a classful qdisc. The fields are as in `Qdisc`; `leaf` is the handle of the
    qdisc inside, and `rate_bps`, `ceil_bps` (bit/s), `burst_bytes`, `cburst_bytes` and `prio` are
    htb's. tc never prints a class's device."""

    kind: str
    handle: str
    dev: str | None
    root: bool
    parent: str | None
    leaf: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    sent_bytes: int | None = None
    sent_packets: int | None = None
    drops: int | None = None
    overlimits: int | None = None
    requeues: int | None = None
    backlog_bytes: int | None = None
    qlen_packets: int | None = None
    rate_bps: float | None = None
    ceil_bps: float | None = None
    burst_bytes: int | None = None
    cburst_bytes: int | None = None
    prio: int | None = None


def parse_tc_qdiscs(text: str, source: str) -> tuple[Qdisc, ...]:
    """Read `tc qdisc show`, as JSON (`-j`) or text, with or without statistics (`-s`).

    Raises ParseError for another tool's text, for a text that is cut off, and for a value that is
    not what tc prints there.
    """
    text = clean(text, source, "the output of `tc -j -s qdisc show` or `tc -s qdisc show`")
    return tuple(Qdisc(**values) for values in _read(text, source, "qdisc"))


def parse_tc_classes(text: str, source: str) -> tuple[TcClass, ...]:
    """Read `tc class show`, as JSON or text; iproute2 6.1 and earlier print text even with `-j`.

    Raises ParseError like `parse_tc_qdiscs`.
    """
    text = clean(text, source, "the output of `tc -j -s class show` or `tc -s class show`")
    return tuple(TcClass(**values) for values in _read(text, source, "class"))


def _read(text: str, source: str, what: str) -> Iterator[dict[str, Any]]:
    read = read_json if text.lstrip()[0] in "[{" else read_text
    return read(text, source, what)
