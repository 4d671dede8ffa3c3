"""The checker: is a run what it was meant to be? It reads files only, never the network.

Each check looks at one thing that holds for any honest run and returns findings. A finding that
explains others silences them: packets of 27 kB make every count of losses wrong, and saying
both would hide the cause. Thresholds are wide enough that chance alone does not reach them
(confidence 0.9999 where a probability is held against a count).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from measuretwice.collect import Measured
from measuretwice.lab import Lab, Value
from measuretwice.statistics import binomial_interval

Severity = Literal["error", "warning", "note"]
CONFIDENCE = 0.9999
IP_TCP_HEADERS_BYTES = 40
TIMESTAMP_OPTION_BYTES = 12
# With n losses the loss ratio is known to 1/sqrt(n): 100 make that 10 %.
LOSSES_WANTED = 100
ETHERNET_OVERHEAD_BYTES = 14


@dataclass(frozen=True)
class Finding:
    """What was measured, what was expected instead, and why that matters.

    `hint` is one step of the ladder (where to look; what to compare; the cause) or None;
    `page` is where the site explains it, below the site's root.
    """

    id: str
    severity: Severity
    measured: str
    expected: str
    why: str
    hint: str | None = None
    page: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """A run as the checks see it: what was wanted, and what was measured (None: not known)."""

    wanted: dict[str, Value]
    measured: Measured
    max_loss_ratio: float | None = None

    def want(self, name: str) -> float | None:
        value = self.wanted.get(name)
        return float(value) if isinstance(value, int | float) else None

    def got(self, name: str) -> float | None:
        return self.measured.get(name)


Check = Callable[[Case], Finding | None]


def _offload(case: Case) -> Finding | None:
    largest, mss_bytes = case.got("largest_packet_bytes"), case.got("mss_bytes")
    if largest is None or mss_bytes is None:
        return None
    limit = mss_bytes + IP_TCP_HEADERS_BYTES + TIMESTAMP_OPTION_BYTES
    if largest <= limit:
        return None
    return Finding(
        "offload",
        "error",
        f"packets of up to {largest:.0f} B on the router",
        f"at most {limit:.0f} B: MSS {mss_bytes:.0f} and its headers",
        "Several segments travel as one packet. The router loses or keeps them together, so "
        "neither the segment size nor the loss is the one that was set.",
    )


def _segment_size(case: Case) -> Finding | None:
    """The observed MSS; which of its two enemies took the bytes."""
    wanted, seen = case.want("mss_bytes"), case.got("mss_bytes")
    if wanted is None or seen is None or seen == wanted:
        return None
    said, meant = f"segments of {seen:.0f} B (ss)", f"{wanted:.0f} B"
    mtu_bytes = case.want("mtu_bytes")
    options = TIMESTAMP_OPTION_BYTES if case.wanted.get("timestamps") == "on" else 0
    if (
        mtu_bytes is not None
        and seen == mtu_bytes - IP_TCP_HEADERS_BYTES - options < wanted - options
    ):
        return Finding(
            "mtu", "error", said, meant,
            f"An MTU of {mtu_bytes:.0f} B leaves no more than that. The model was asked about "
            "another segment size than the one on the wire.",
        )  # fmt: skip
    if wanted - seen == TIMESTAMP_OPTION_BYTES:
        return Finding(
            "timestamps", "error", said, meant,
            "12 bytes of each segment are missing: the size of TCP's timestamp option.",
        )  # fmt: skip
    return Finding(
        "segment-size", "error", said, meant, "The model's segment size is not the one on the wire."
    )


def _round_trip(case: Case) -> Finding | None:
    wanted, seen = case.want("rtt_ms"), case.got("rtt_min_ms") or case.got("ping_rtt_min_ms")
    if not wanted or seen is None:
        return None
    said, meant = f"a smallest round-trip time of {seen:g} ms", f"{wanted:g} ms"
    if 1.9 <= seen / wanted <= 2.1:
        return Finding(
            "rtt-doubling", "error", said, meant,
            "Twice what was asked for: the whole delay was set in both directions.",
        )  # fmt: skip
    if abs(seen - wanted) > max(0.02 * wanted, 0.6):
        return Finding(
            "round-trip-time", "error", said, meant, "The path's delay is not the one that was set."
        )
    return None


def _queue(case: Case) -> Finding | None:
    """A standing queue: round trips grow, and the link is the reason."""
    least, mean = case.got("rtt_min_ms"), case.got("rtt_mean_ms")
    goodput_bps, rate_mbit = case.got("goodput_bps"), case.want("rate_mbit")
    if not least or mean is None or goodput_bps is None or not rate_mbit:
        return None
    share = goodput_bps / (rate_mbit * 1e6)
    if mean <= 1.05 * least or share < 0.5:
        return None
    return Finding(
        "queueing",
        "error",
        f"a mean round-trip time of {mean:.2f} ms over a smallest of {least:g} ms, "
        f"with {100 * share:.0f} % of the link in use",
        "a mean near the smallest: this path was meant to have no queue",
        "Packets wait at the link. Its rate limits the flow then, not the losses alone.",
    )


def _loss(case: Case) -> Finding | None:
    """The router's drops against p: too few by 100, too many beyond its queue, or else."""
    wanted, drops = case.want("loss_ratio"), case.got("qdisc_drops")
    offered = case.got("qdisc_offered_packets")
    if wanted is None or drops is None or not offered:
        return None
    low, high = binomial_interval(int(offered), wanted, CONFIDENCE)
    seen = drops / offered
    if low <= seen <= high:
        return None
    said = f"{drops:.0f} of {offered:.0f} packets dropped: {seen:.3g}"
    meant = f"{low:.3g} to {high:.3g}, for p = {wanted:.4g}"
    hundredth = binomial_interval(int(offered), wanted / 100, CONFIDENCE)
    if hundredth[0] <= seen <= hundredth[1]:
        return Finding(
            "loss-percent", "error", said, meant,
            "A hundred times too few: a ratio was given where percent are read.",
        )  # fmt: skip
    limit, window = case.want("limit_packets"), case.got("cwnd_max_segments")
    if seen > high and limit is not None and window is not None and window >= limit:
        return Finding(
            "netem-limit", "error", said, meant,
            f"The sender had up to {window:.0f} segments under way, and netem's queue holds "
            f"{limit:.0f} packets: what didn't fit was dropped too.",
        )  # fmt: skip
    return Finding("loss-ratio", "error", said, meant, "The path loses another share than was set.")


def _receiver(case: Case) -> Finding | None:
    drops = (case.got("receiver_ofo_drops") or 0) + (case.got("receiver_prune_calls") or 0)
    if drops == 0:
        return None
    return Finding(
        "receiver-drops",
        "error",
        f"the receiver dropped from its own queue ({case.got('receiver_ofo_drops') or 0:.0f} segments "
        f"refused, {case.got('receiver_prune_calls') or 0:.0f} times pruned)",
        "none: only the router was meant to lose packets",
        "Losses that p knows nothing of; each of them costs the sender a retransmission.",
    )


def _retransmissions(case: Case) -> Finding | None:
    """Every retransmission has a known drop behind it, or was spurious by the sender's count."""
    seen, drops = case.got("retransmits"), case.got("qdisc_drops")
    if seen is None or drops is None:
        return None
    known = drops + (case.got("spurious_retransmits") or 0) + (case.got("softnet_drops") or 0)
    if seen <= 1.1 * known + 20:
        return None
    return Finding(
        "retransmissions",
        "error",
        f"{seen:.0f} retransmissions",
        f"about {known:.0f}: the router's drops and what the sender knows to be spurious",
        "Something loses packets that nobody has counted.",
    )


def _duration(case: Case) -> Finding | None:
    """Enough losses for the claim: with n of them p is known to 1/sqrt(n)."""
    wanted, drops = case.want("loss_ratio"), case.got("qdisc_drops")
    if not wanted or drops is None or drops >= LOSSES_WANTED:
        return None
    known = f"to about {100 / math.sqrt(drops):.0f} %" if drops else "not at all"
    duration_s = case.got("duration_s")
    return Finding(
        "duration",
        "warning",
        f"{drops:.0f} losses" + (f" in {duration_s:.0f} s" if duration_s else ""),
        f"at least {LOSSES_WANTED}",
        f"From so few the loss ratio is known {known}; the goodput is that of these few "
        "accidents. A longer run has more.",
    )


def _model_domain(case: Case) -> Finding | None:
    wanted, limit = case.want("loss_ratio"), case.max_loss_ratio
    if (
        wanted is None
        or limit is None
        or wanted < limit
        or case.wanted.get("compare_with") != "mathis"
    ):
        return None
    timeouts = case.got("timeouts")
    return Finding(
        "model-domain",
        "error",
        f"p = {wanted:.4g}" + (f", {timeouts:.0f} timeouts" if timeouts is not None else ""),
        f"p below {limit:g} for the Mathis model",
        "The model has no timeouts in it. With so small a window they rule.",
    )


def _socket(case: Case) -> Finding | None:
    picked, ours = case.got("picked_port"), case.got("data_port")
    connections = case.got("picked_connections") or 0
    if picked is None or ours is None or (picked == ours and connections == 1):
        return None
    return Finding(
        "wrong-socket",
        "error",
        f"the lines that were kept are of {connections:.0f} connection"
        + ("s" if connections != 1 else "")
        + f", the last from port {picked:.0f}",
        f"one connection, from port {ours:.0f}: iperf3's own word for its data",
        "iperf3 has a second connection, for control. Its numbers say nothing of your flow, and "
        "which of the two comes last is luck.",
    )


def _link_rate(case: Case) -> Finding | None:
    goodput_bps, rate_mbit = case.got("goodput_bps"), case.want("rate_mbit")
    mss_bytes = case.got("mss_bytes")
    if goodput_bps is None or not rate_mbit or not mss_bytes:
        return None
    frame = mss_bytes + IP_TCP_HEADERS_BYTES + ETHERNET_OVERHEAD_BYTES
    limit_bps = rate_mbit * 1e6 * mss_bytes / frame
    if goodput_bps <= 1.01 * limit_bps:
        return None
    return Finding(
        "link-rate",
        "error",
        f"{goodput_bps / 1e6:.4g} Mbit/s",
        f"at most {limit_bps / 1e6:.4g} Mbit/s: the link's rate less the headers",
        "More than the link can carry: flows averaged over different times, or a link that is "
        "not the one that was set.",
    )


def _bytes(case: Case) -> Finding | None:
    """iperf3's rate against the bytes that ss says were acknowledged."""
    acked, sent_bps = case.got("bytes_acked"), case.got("sender_rate_bps")
    duration_s = case.got("duration_s")
    if acked is None or not sent_bps or not duration_s:
        return None
    by_ss_bps = acked * 8 / duration_s
    # iperf3 counts what it handed to the socket; what is still in its buffer isn't acknowledged.
    slack_bps = 8 * (case.want("wmem_max_bytes") or 4 << 20) / duration_s
    if abs(by_ss_bps - sent_bps) <= 0.03 * sent_bps + slack_bps:
        return None
    return Finding(
        "bandwidth",
        "error",
        f"{sent_bps / 1e6:.4g} Mbit/s by iperf3",
        f"{by_ss_bps / 1e6:.4g} Mbit/s by the bytes that ss says were acknowledged",
        "The two tools speak of different connections or different times.",
    )


def _path(case: Case) -> Finding | None:
    """A window a round trip: cwnd over rate can't be less than the path's round-trip time."""
    cwnd, mss_bytes = case.got("cwnd_mean_segments"), case.got("mss_bytes")
    goodput_bps, least_ms = case.got("goodput_bps"), case.got("rtt_min_ms")
    if not cwnd or not mss_bytes or not goodput_bps or not least_ms:
        return None
    by_window_ms = cwnd * mss_bytes * 8 / goodput_bps * 1e3
    if by_window_ms >= 0.8 * least_ms:
        return None
    return Finding(
        "path",
        "error",
        f"cwnd over rate is {by_window_ms:.3g} ms",
        f"at least the round-trip time, {least_ms:g} ms",
        "The sender's path ends before the receiver: something answers in its place.",
    )


# In order of cause: a finding silences those that follow from it.
CHECKS: tuple[Check, ...] = (
    _offload, _segment_size, _round_trip, _socket, _loss, _receiver, _queue, _retransmissions,
    _link_rate, _bytes, _path, _duration, _model_domain,
)  # fmt: skip
EXPLAINS: dict[str, frozenset[str]] = {
    "offload": frozenset({"loss-ratio", "loss-percent", "retransmissions", "duration", "queueing"}),
    "receiver-drops": frozenset({"retransmissions"}),
    "loss-percent": frozenset({"duration", "queueing"}),
}


def check(case: Case) -> list[Finding]:
    """Return a run's findings, causes only, in order of cause."""
    found = [finding for finding in (look(case) for look in CHECKS) if finding is not None]
    explained = {other for finding in found for other in EXPLAINS.get(finding.id, ())}
    return [finding for finding in found if finding.id not in explained]


def case_of(lab: Lab, params: dict[str, Value], measured: Measured) -> Case:
    """A run of ours as a case: what its plan wanted against what was measured."""
    use = lab.file.model
    return Case(params, measured, use.max_loss_ratio if use else None)


def check_run(
    lab: Lab, params: dict[str, Value], measured: Measured, hint: int | None = None
) -> list[Finding]:
    """Check one run of ours. `hint` (1, 2 or 3) adds that step of the lab's ladder.

    `page` is the pitfall's page where the lab stages that finding, else the checks' reference.
    """
    pitfalls = {pitfall.finding: pitfall for pitfall in lab.file.pitfalls}
    findings = []
    for finding in check(case_of(lab, params, measured)):
        pitfall = pitfalls.get(finding.id)
        page = (
            f"modules/{lab.folder.name}/{pitfall.id}/"
            if pitfall
            else f"reference/checks/#{finding.id}"
        )
        ladder = pitfall.hints[hint - 1] if pitfall and hint else None
        findings.append(Finding(**{**asdict(finding), "hint": ladder, "page": page}))
    return findings
