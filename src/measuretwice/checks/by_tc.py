"""The checks of what tc prints: the settings of its qdiscs against those that were meant, its drops against what was resent.

They need no snapshots of nodes: what `tc -s qdisc` printed is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from measuretwice.checks.registry import Finding, FindingKind, Right, RunUnderTest, check
from measuretwice.checks.transfers import fills_the_link, least_rate_bps
from measuretwice.parse import Qdisc, TcClass

FEW_DROPS = 50
# What tc's text rounds.
SET_RATIO = 0.05
DELAY_SLACK_MS = 1.0


@check(
    FindingKind(
        "drops-not-resent",
        "What qdiscs dropped, compared with what TCP sent again.",
        explains=("loss-ratio", "unexplained"),
        hints=(
            "Compare what tc says was dropped with what the sender says it sent again.",
            "On which host does the qdisc stand that drops, and whose packets pass it?",
            "TCP never missed these packets: a qdisc on the sender's own host tells TCP of each drop, which then takes it back; or they were another flow's.",
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
        return Right("that what was dropped was resent")
    return Finding(
        "drops-not-resent",
        f"{drops:.0f} packets dropped (tc), and {resent:.0f} segments resent",
        "about as many resent as dropped",
        "TCP didn't miss these packets. A qdisc on the sending host itself tells TCP at once that it dropped one, and then it is "
        "no loss: put netem on a host in between. Or what was dropped was of other flows.",
    )  # fmt: skip


def _qdiscs(run: RunUnderTest, kind: str = "") -> list[tuple[str, Qdisc]]:
    """The qdiscs that tc printed, of files that were brought; the lab's own runs are compared with what its scripts set."""
    printed = run.host_state.qdiscs if run.host_state and run.brought else ()
    return [(node, qdisc) for node, qdisc in printed if kind in ("", qdisc.kind)]


@check(FindingKind("loss-percent"), FindingKind("loss-ratio"), needs=())
def loss_by_tc(run: RunUnderTest) -> Finding | Right | None:
    """The loss that netem is set to, by tc's own word, against the one that was meant."""
    wanted, netems = run.param("loss_ratio"), [qdisc for _, qdisc in _qdiscs(run, "netem")]
    by_model = any("loss-" in name for qdisc in netems for name in qdisc.options)
    if wanted is None or not netems or by_model:
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
            "A hundred times too few: a ratio was given where per cent is read.",
        )  # fmt: skip
    return Finding("loss-ratio", measured, expected, "netem isn't set to the loss that was meant.")


@check(FindingKind("configuration"), needs=("rtt_min_ms", "path_rtt_ms", "ping_rtt_min_ms"))
def set_by_tc(run: RunUnderTest) -> Finding | Right | None:
    """Rate and delay that qdiscs are set to, by tc's own word, against the settings."""
    printed = _qdiscs(run)
    differing = [*_rate_by_tc(run, printed), *_delay_by_tc(run, printed)]
    if differing:
        return Finding(
            "configuration", "; ".join(what for what, _ in differing), "; ".join(setting for _, setting in differing),
            "The network wasn't as the settings say.",
            symptom=f"{len(differing)} setting{'s' if len(differing) != 1 else ''} that tc prints differ"
            f"{'' if len(differing) != 1 else 's'} from what was meant",
        )  # fmt: skip
    return (
        Right("rates and delays that tc prints")
        if any(q.rate_bps or q.delay_s for _, q in printed)
        else None
    )


def _rate_by_tc(
    run: RunUnderTest, printed: Sequence[tuple[str, Qdisc]]
) -> Iterator[tuple[str, str]]:
    rates = {
        name: value for name in run.params if name.endswith("_mbit") and (value := run.param(name))
    }
    classes = run.host_state.classes if run.host_state and run.brought else ()
    rated: list[tuple[str, Qdisc | TcClass]] = [*printed, *classes]
    rated = [(node, entry) for node, entry in rated if entry.rate_bps]
    wanted = rates.get("rate_mbit")
    if not wanted or not rated or "rate-varies" in run.meanings:
        return
    printed_bps = {
        bps for _, entry in rated for bps in (entry.rate_bps, getattr(entry, "ceil_bps", None))
    }
    if not any(_near(bps, 1e6 * rate) for bps in printed_bps for rate in rates.values()):
        node, qdisc = max(rated, key=lambda pair: pair[1].sent_bytes or 0)
        what = f"{qdisc.kind} class" if isinstance(qdisc, TcClass) else qdisc.kind
        yield (
            f"{node}'s {what} with a rate of {(qdisc.rate_bps or 0) / 1e6:g} Mbit/s (tc)",
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


@check(FindingKind("netem-limit"), needs=("goodput_bps",))
def netem_overflows(run: RunUnderTest) -> Finding | None:
    """A netem that draws no losses drops only what its queue has no room for."""
    goodput_bps = run.measured("goodput_bps")
    if (
        run.param("loss_ratio")
        or not goodput_bps
        or fills_the_link(run, goodput_bps)
        or least_rate_bps(run) is None
    ):
        return None
    for node, qdisc in _qdiscs(run, "netem"):
        if not qdisc.loss_ratio and not qdisc.rate_bps and (qdisc.drops or 0) > FEW_DROPS:
            return Finding(
                "netem-limit",
                f"{node}'s netem dropped {qdisc.drops} packets; its queue holds {qdisc.limit_packets}, and it draws no losses (tc)",
                "room for all that the delay keeps in flight",
                "A packet that is being delayed waits in netem's queue. What doesn't fit is dropped: the limit, over the delay, is then "
                "the rate.",
                symptom=f"{qdisc.drops} packets dropped, where none were meant to be",
            )  # fmt: skip
    return None


def _near(value: float | None, wanted: float) -> bool:
    return value is not None and abs(value - wanted) <= SET_RATIO * wanted
