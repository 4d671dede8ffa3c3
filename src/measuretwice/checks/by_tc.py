"""The checks of what tc prints: the settings of its qdiscs against those that were meant, its drops against what was retransmitted.

They need no snapshots of nodes: what `tc -s qdisc` printed is enough.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from measuretwice.checks.registry import (
    DATA_BYTES,
    Finding,
    FindingKind,
    Right,
    RunUnderTest,
    check,
)
from measuretwice.checks.transfers import fills_the_link, least_rate_bps
from measuretwice.measure.host_state import place_of
from measuretwice.parse import Qdisc, TcClass

FEW_DROPS = 50
FRAME_BITS = 8 * 1514
# What tc's text rounds.
SET_RATIO = 0.05
DELAY_SLACK_MS = 1.0
# Of a delay so much at least is no rounding.
LEAST_JITTER = 0.01
# netem's models of losses, as its text and its JSON name them, with the probability that a burst of losses ends.
BURST_ENDS = {"gemodel": "r", "loss-gemodel": "r", "state": "p31", "loss-state": "p31"}
# Bursts of two packets and more, on average.
LONG_BURSTS = 0.5
PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,12})?)%")
# Of what one qdisc or class has sent, so much passed another that stands in the same way.
MOST_BYTES = 0.8


@check(
    FindingKind(
        "drops-not-resent",
        "What qdiscs dropped, compared with what TCP retransmitted.",
        explains=("loss-ratio", "unexplained"),
        hints=(
            "Compare the drops in tc's output with the sender's retransmissions.",
            "On which host is the qdisc that drops, and whose packets pass through it?",
            "TCP never missed these packets: a qdisc on the sender's own host tells TCP of each drop, so that TCP takes the packet back; or they were another flow's.",
        ),
    ),
    needs=("qdisc_drops", "retransmits", "retrans_total"),
)
def drops_not_resent(run: RunUnderTest) -> Finding | Right | None:
    """A sender sends again what its path loses."""
    drops = run.measured("qdisc_drops")
    again = run.measured("retransmits"), run.measured("retrans_total")
    resent = max((count for count in again if count is not None), default=None)
    if drops is None or resent is None or "others-send" in run.meanings:
        return None
    if drops <= 2 * resent + FEW_DROPS:
        return Right("that every drop was retransmitted")
    return Finding(
        "drops-not-resent",
        f"{drops:.0f} packets dropped (tc), and {resent:.0f} segments retransmitted",
        "about as many retransmitted as dropped",
        "TCP didn't miss these packets. A qdisc on the sending host itself tells TCP at once that it dropped a packet, so TCP "
        "counts no loss: put netem on a host in between. Or the dropped packets belonged to other flows.",
    )  # fmt: skip


def _qdiscs(run: RunUnderTest, kind: str = "") -> list[tuple[str, Qdisc]]:
    """The qdiscs that tc printed, of files that were brought; the lab's own runs are compared with what its scripts set."""
    printed = run.host_state.qdiscs if run.host_state and run.brought else ()
    return [(node, qdisc) for node, qdisc in printed if kind in ("", qdisc.kind)]


@check(FindingKind("loss-percent"), FindingKind("loss-ratio"), needs=())
def loss_by_tc(run: RunUnderTest) -> Finding | Right | None:
    """The loss that netem is set to, by tc's own word, against the one that was meant."""
    wanted, netems = run.param("loss_ratio"), [qdisc for _, qdisc in _qdiscs(run, "netem")]
    if wanted is None or not netems:
        return None
    ends = [ratio for qdisc in netems if (ratio := _burst_ends(qdisc)) is not None]
    if ends and min(ends) <= LONG_BURSTS:
        return Finding(
            "loss-ratio",
            f"netem loses packets in bursts, of {1 / min(ends):.3g} on average (gemodel or state, tc)",
            f"each packet lost by itself, with a probability of {wanted:.4g}" if wanted else "none",
            "All losses of one burst halve TCP's window only once, so the same share of lost packets costs less than single losses do.",
        )  # fmt: skip
    if ends:
        return None
    losses = [qdisc.loss_ratio for qdisc in netems if qdisc.loss_ratio]
    if (not wanted and not losses) or any(_near(ratio, wanted) for ratio in losses):
        return Right("the loss that tc prints")
    measured = (
        f"netem with a loss of {max(losses):.4g} (tc)" if losses else "netem without any loss (tc)"
    )
    expected = f"one of {wanted:.4g}" if wanted else "none"
    if any(_near(ratio, wanted / 100) for ratio in losses):
        return Finding(
            "loss-percent", measured, expected,
            "A hundred times too few, because a ratio was given where per cent is read.",
        )  # fmt: skip
    return Finding("loss-ratio", measured, expected, "netem isn't set to the loss that was meant.")


def _burst_ends(netem: Qdisc) -> float | None:
    """Return the probability, up to 1, that a burst of losses ends with the next packet; None where netem has no model."""
    for name, key in BURST_ENDS.items():
        if name in netem.options:
            model = netem.options[name]
            end = model.get(key) if isinstance(model, dict) else netem.options.get(key)
            if isinstance(end, str):
                percent = PERCENT.fullmatch(end)
                end = float(percent[1]) / 100 if percent else None
            return float(end) if isinstance(end, int | float) and end > 0 else 1.0
    return None


@check(
    FindingKind("configuration"),
    needs=("rtt_min_ms", "path_rtt_ms", "ping_rtt_min_ms", "goodput_bps"),
)
def set_by_tc(run: RunUnderTest) -> Finding | Right | None:
    """What qdiscs are set to, by tc's own word, against the settings."""
    printed = _qdiscs(run)
    sizes = [*_sizes_by_tc(run, printed)]
    differing = [
        *_rate_by_tc(run, printed), *_delay_by_tc(run, printed), *(size for size in sizes if size), *_unasked(run, printed),
        *_bursts(run, printed), *_changed(run, printed),
    ]  # fmt: skip
    if differing:
        return Finding(
            "configuration", "; ".join(what for what, _ in differing), "; ".join(setting for _, setting in differing),
            "The network wasn't as the settings say.",
        )  # fmt: skip
    looked = ["rates"] * _rates_agree(run, _rated(run, printed))
    looked += ["delays"] * _delays_agree(run, printed)
    looked += ["sizes of queues"] * bool(sizes)
    return Right(f"{' and '.join(looked)} that tc prints") if looked else None


Rated = list[tuple[str, Qdisc | TcClass]]


def _rated(run: RunUnderTest, printed: Sequence[tuple[str, Qdisc]]) -> Rated:
    """The qdiscs and classes that have a rate."""
    classes = run.host_state.classes if run.host_state and run.brought else ()
    rated: Rated = [*printed, *classes]
    return [(node, entry) for node, entry in rated if entry.rate_bps]


def _rates(run: RunUnderTest) -> dict[str, float]:
    return {
        name: value for name in run.params if name.endswith("_mbit") and (value := run.param(name))
    }


def _rates_agree(run: RunUnderTest, rated: Rated) -> bool:
    """Return whether one of the rates that tc prints is one that was set."""
    printed_bps = {
        bps for _, entry in rated for bps in (entry.rate_bps, getattr(entry, "ceil_bps", None))
    }
    return any(_near(bps, 1e6 * rate) for bps in printed_bps for rate in _rates(run).values())


def _delays_agree(run: RunUnderTest, printed: Sequence[tuple[str, Qdisc]]) -> bool:
    """Return whether the delays that tc prints are the round trip that was set, or a part of it."""
    wanted = run.param("rtt_ms")
    delays = [1e3 * qdisc.delay_s for _, qdisc in printed if qdisc.delay_s]
    return bool(wanted and delays) and sum(delays) <= (1 + SET_RATIO) * (wanted or 0) + DELAY_SLACK_MS  # fmt: skip


def _rate_by_tc(
    run: RunUnderTest, printed: Sequence[tuple[str, Qdisc]]
) -> Iterator[tuple[str, str]]:
    rates, rated = _rates(run), _rated(run, printed)
    wanted = rates.get("rate_mbit")
    if not wanted or not rated or "rate-varies" in run.meanings:
        return
    if not _rates_agree(run, rated):
        inside = {qdisc.parent: qdisc.sent_bytes for _, qdisc in printed if qdisc.parent}
        passed = [(entry.sent_bytes or inside.get(entry.handle) or 0) for _, entry in rated]
        busy = [
            pair
            for pair, sent in zip(rated, passed, strict=True)
            if sent >= MOST_BYTES * max(passed)
        ]
        # A class may borrow up to its ceil.
        node, qdisc = min(
            busy,
            key=lambda pair: max(pair[1].rate_bps or 0, getattr(pair[1], "ceil_bps", None) or 0),
        )
        rate = max(qdisc.rate_bps or 0, getattr(qdisc, "ceil_bps", None) or 0)
        goodput_bps = run.measured("goodput_bps")
        slower = goodput_bps is not None and goodput_bps <= 1e6 * wanted
        if rate > 1e6 * wanted and (slower or isinstance(qdisc, TcClass)):
            # It is faster than the link, and limits nothing.
            return
        what = f"{qdisc.kind} class" if isinstance(qdisc, TcClass) else qdisc.kind
        yield (
            f"{node}'s {what} with a rate of {rate / 1e6:g} Mbit/s (tc)",
            f"{wanted:g} Mbit/s",
        )
        return
    # All data passes the slowest of those that most bytes passed.
    most = max(entry.sent_bytes or 0 for _, entry in rated)
    node, slowest, bps = min(
        (
            (node, entry, max(entry.rate_bps or 0, getattr(entry, "ceil_bps", None) or 0))
            for node, entry in rated
            if (entry.sent_bytes or 0) >= MOST_BYTES * most
        ),
        key=lambda row: row[2],
    )
    if most >= DATA_BYTES and bps < (1 - SET_RATIO) * 1e6 * min(rates.values()):
        kind = "class" if isinstance(slowest, TcClass) else "qdisc"
        yield (
            f"{node}'s {slowest.kind} {kind} {slowest.handle}, which most bytes passed, with at most {bps / 1e6:g} Mbit/s (tc)",
            f"{wanted:g} Mbit/s",
        )


def _delay_by_tc(
    run: RunUnderTest, printed: Sequence[tuple[str, Qdisc]]
) -> Iterator[tuple[str, str]]:
    """A single delay above the whole round trip, or each of two directions with all of it, where nobody measured it."""
    wanted = run.param("rtt_ms")
    measured = [run.measured(name) for name in ("rtt_min_ms", "path_rtt_ms", "ping_rtt_min_ms")]
    delays = [1e3 * qdisc.delay_s for _, qdisc in printed if qdisc.delay_s]
    if not wanted or any(measured) or not 1 <= len(delays) <= 2:
        return
    both = len(delays) == 2 and sum(delays) >= 1.9 * wanted
    if both or max(delays) > (1 + SET_RATIO) * wanted + DELAY_SLACK_MS:
        words = " and ".join(f"{delay:g}" for delay in delays)
        yield f"delays of {words} ms (tc)", f"a round trip of {wanted:g} ms"


# Each frame of Ethernet with data for TCP is larger than the smaller of these, and a full one has the other.
LEAST_BURST_BYTES, FULL_FRAME_BYTES = 576, 1514


def _bursts(run: RunUnderTest, printed: Sequence[tuple[str, Qdisc]]) -> Iterator[tuple[str, str]]:
    """Yield where a tbf has no room for a packet: it drops what is larger than its burst (tc-tbf(8))."""
    mtu_bytes = run.param("mtu_bytes") or FULL_FRAME_BYTES
    for node, qdisc in printed:
        burst = qdisc.burst_bytes
        if qdisc.kind != "tbf" or not burst or burst >= min(mtu_bytes, FULL_FRAME_BYTES):
            continue
        mean = (qdisc.sent_bytes or 0) / (qdisc.sent_packets or 1)
        # What has passed larger packets has another burst than the one that is printed.
        if mean <= burst and (burst < LEAST_BURST_BYTES or qdisc.drops):
            yield (
                f"{node}'s tbf with a burst of {burst} B (tc)",
                f"room for a frame of {FULL_FRAME_BYTES} B: what is larger than the burst never passes",
            )


# What somebody may set anew while a test runs, and in which unit it is said.
CHANGED = (
    ("delay_s", 1e3, "delay", " ms"), ("jitter_s", 1e3, "jitter", " ms"), ("loss_ratio", 100, "loss", " %"),
    ("rate_bps", 1e-6, "rate", " Mbit/s"), ("latency_s", 1e3, "lat", " ms"), ("limit_packets", 1, "limit", " packets"),
    ("limit_bytes", 1, "limit", " B"),
)  # fmt: skip


def _changed(run: RunUnderTest, printed: Sequence[tuple[str, Qdisc]]) -> Iterator[tuple[str, str]]:
    """Yield what was another before the test than after it."""
    if "rate-varies" in run.meanings or run.host_state is None:
        return
    before = {
        (node, qdisc.dev, place_of(qdisc)): qdisc for node, qdisc in run.host_state.qdiscs_before
    }
    for node, qdisc in printed:
        earlier = before.get((node, qdisc.dev, place_of(qdisc)))
        for field, scale, name, unit in CHANGED if earlier else ():
            then, now = getattr(earlier, field), getattr(qdisc, field)
            if then is None or now is None or abs(now - then) <= SET_RATIO * max(now, then):
                continue
            yield (
                f"{node}'s {qdisc.kind} with a {name} of {scale * then:g}{unit} before the test and of {scale * now:g}{unit} after it (tc)",
                "the same before and after",
            )


# A setting in bytes or packets, the kinds of qdiscs that have it (of several the first that is there), and for which
# discipline it is meant, where only for one.
SIZES = (
    ("buffer_bytes", ("bfifo", "tbf"), "limit_bytes", None),
    ("fifo_bytes", ("bfifo",), "limit_bytes", "bfifo"),
    ("fifo_packets", ("pfifo",), "limit_packets", "pfifo"),
    ("red_limit_bytes", ("red",), "limit_bytes", None),
    ("red_min_bytes", ("red",), "min_bytes", None),
    ("red_max_bytes", ("red",), "max_bytes", None),
)
# What netem does to packets besides, where no setting of a lab asks for it, and in words.
UNASKED = {
    "duplicate": "sends packets twice",
    "corrupt": "damages packets",
    "reorder": "lets packets overtake others",
    "slot": "sends packets in bursts",
}


def _sizes_by_tc(
    run: RunUnderTest, printed: Sequence[tuple[str, Qdisc]]
) -> Iterator[tuple[str, str] | None]:
    """Yield for each size that was set None where tc prints it so, else what it prints, and what was meant."""
    for name, kinds, field, discipline in SIZES:
        wanted = run.param(name)
        if (
            not wanted
            or discipline not in (None, run.params.get("discipline"))
            or run.params.get("buffer_text")
        ):
            continue
        sized = [
            (node, qdisc, size)
            for kind in kinds
            for node, qdisc in printed
            if qdisc.kind == kind
            and (size := _size(qdisc, field, [q for n, q in printed if n == node]))
        ]
        sized = [entry for entry in sized if entry[1].kind == sized[0][1].kind]
        if not sized:
            continue
        if any(_near(size, wanted) for _, _, size in sized):
            yield None
            continue
        node, qdisc, size = max(sized, key=lambda entry: entry[1].sent_bytes or 0)
        unit = name.rpartition("_")[2].replace("bytes", "B")
        by = (
            f", by its rate and lat {1e3 * qdisc.latency_s:.3g} ms"
            if qdisc.limit_bytes is None and qdisc.latency_s
            else ""
        )
        yield (
            f"{node}'s {qdisc.kind} with a {field.split('_')[0]} of {size:.0f} {unit}{by} (tc)",
            f"{wanted:.0f} {unit}",
        )


def _size(qdisc: Qdisc, field: str, others: Sequence[Qdisc]) -> float | None:
    """Return a size as tc prints it, of tbf also by its time: lat is what a full queue takes, less the burst."""
    inside = qdisc.handle.partition(":")[0]
    if qdisc.kind == "tbf" and any(
        other.dev == qdisc.dev and (other.parent or "").partition(":")[0] == inside
        for other in others
    ):
        # Another discipline inside has its own limit.
        return None
    size: float | None = getattr(qdisc, field)
    if size is None and field == "limit_bytes" and qdisc.latency_s and qdisc.rate_bps:
        return qdisc.latency_s * qdisc.rate_bps / 8 + (qdisc.burst_bytes or 0)
    return size


def _unasked(run: RunUnderTest, printed: Sequence[tuple[str, Qdisc]]) -> Iterator[tuple[str, str]]:
    """Yield what netem does to packets that nobody asked for."""
    if "rate-varies" in run.meanings:
        return
    for node, qdisc in printed:
        if qdisc.kind != "netem":
            continue
        for name, words in UNASKED.items():
            value = qdisc.options.get(name)
            if value and not any(param.startswith(("detour", name)) for param in run.params):
                share = value.get(name, "") if isinstance(value, dict) else str(value).split()[0]
                share = f"{100 * share:g}%" if isinstance(share, int | float) else share
                yield (
                    f"{node}'s netem {words}: {name} {share} (tc)",
                    f"no {name}, since no setting asks for it",
                )
        if qdisc.jitter_s and qdisc.delay_s and qdisc.jitter_s >= LEAST_JITTER * qdisc.delay_s:
            yield (
                f"{node}'s netem varies its delay of {1e3 * qdisc.delay_s:g} ms by {1e3 * qdisc.jitter_s:g} ms, "
                "so that packets overtake others (tc)",
                "one delay for all",
            )


@check(FindingKind("netem-limit"), needs=("goodput_bps",))
def netem_overflows(run: RunUnderTest) -> Finding | None:
    """A netem that draws no losses drops only what its queue has no room for."""
    goodput_bps, least_bps = run.measured("goodput_bps"), least_rate_bps(run)
    if (
        run.param("loss_ratio")
        or least_bps is None
        or (goodput_bps and fills_the_link(run, goodput_bps))
    ):
        return None
    for node, qdisc in _qdiscs(run, "netem"):
        most_bps = FRAME_BITS * (qdisc.limit_packets or math.inf) / (qdisc.delay_s or 1e-9)
        if not goodput_bps and most_bps >= least_bps:
            # By its settings alone its queue has room for the whole link.
            continue
        if not qdisc.loss_ratio and not qdisc.rate_bps and (qdisc.drops or 0) > FEW_DROPS:
            return Finding(
                "netem-limit",
                f"{node}'s netem dropped {qdisc.drops} packets; its queue holds {qdisc.limit_packets}, and it draws no losses (tc)",
                "room for all that the delay keeps in flight",
                "A packet that is being delayed waits in netem's queue. What doesn't fit is dropped, so the limit over the delay is then "
                f"the rate{f', here {most_bps / 1e6:.3g} Mbit/s' if most_bps < least_bps else ''}.",
                symptom=f"{qdisc.drops} packets dropped, where none should be",
            )  # fmt: skip
    return None


def _near(value: float | None, wanted: float) -> bool:
    return value is not None and abs(value - wanted) <= SET_RATIO * wanted
