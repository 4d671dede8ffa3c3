"""The checks of what iperf3 and iperf 2 say of their own tests: what each was asked to do, and did.

Each needs one file, whatever else is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, product
from statistics import median

from measuretwice.checks.registry import (
    Finding,
    FindingKind,
    Right,
    RunUnderTest,
    check,
    in_mbit,
)
from measuretwice.measure.connections import PROGRAM
from measuretwice.measure.transfers import Transfer
from measuretwice.tcp.model import USUAL_MSS_BYTES, payload_limit

# iperf3 counts what it hands to its own host, whole blocks, and a full buffer takes the next only when a third is free.
BURST_BYTES = 8 << 20
STALL_S = 4.0
SHORT_STALL_S = 2.0
NEARLY_NOTHING = 0.01
MOST_SPANS = 5
STALL_ROUND_TRIPS = 40
# A window of so few bytes over all the time: timeouts, one after the other.
SHUT_BYTES = 2 * USUAL_MSS_BYTES
APART_RATIO = 1.5
APART_BYTES = 1_000_000
# A test's last packets, and a start that is spread.
SHORT_RATIO = 0.1
SHORT_S = 1.0
# iperf3 always has something to send, so data is in flight all the time.
BUSY_RATIO = 0.85
PROGRAM_RATIO = 0.5
LEAST_SECONDS = 2.0
BUSY_PERCENT = 95.0
USED_RATIO = 0.85
ASKED_RATIO = 0.85
WINDOW_RATIO = 0.75
# With iperf 2's the system says what it gave, of which packets' own headers take a part.
GIVEN_RATIO = 0.35
CONSTANT_ROWS = 5
CONSTANT_RATIO = 0.01
# A flow has two rates where each holds for so many rows and one is so many times the other: losses halve a window.
LEAST_LEVEL_ROWS = 3
LEVEL_RATIO = 2.5
STEADY_RATIO = 0.15
DRIFT_RATIO = 0.05
MOST_NOISE = 0.5


def _transfers(run: RunUnderTest) -> tuple[Transfer, ...]:
    return run.host_state.transfers if run.host_state else ()


def least_rate_bps(run: RunUnderTest) -> float | None:
    """The least rate among the settings; None where no rate is set."""
    rates = (run.param(name) for name in ("rate_mbit", "cable_mbit", "access_mbit"))
    return min((1e6 * rate for rate in rates if rate), default=None)


def fills_the_link(run: RunUnderTest, rate_bps: float) -> bool:
    """Return whether a rate is nearly all that the slowest link carries; False where none is known."""
    least_bps = least_rate_bps(run)
    return least_bps is not None and rate_bps >= USED_RATIO * payload_limit(least_bps)


@check(
    FindingKind(
        "stalled",
        "The rows of iperf3 and iperf 2: was something sent all the time?",
        explains=("application-limited", "duration", "loss-ratio", "unexplained"),
        hints=(
            "Read the rows of the test, from its first second to its last.",
            "From when to when is nothing sent, and what is the window then?",
            "The flow stopped, so its mean tells you nothing about the path. Look for a link that went down, a filter, or packets too large for a later link.",
        ),
    ),
    needs=("rtt_mean_ms",),
)  # fmt: skip
def stalled(run: RunUnderTest) -> Finding | Right | None:
    """A flow that has all there is to send stops for no more than a few timeouts. Of the lab's own runs ss says so."""
    if run.data_sockets() and not run.brought:
        return None
    # Where losses are drawn so often, timeouts rule.
    if (run.param("loss_ratio") or 0) >= (run.max_loss_ratio or 1):
        return None
    looked, go_on = False, True
    link_bps = least_rate_bps(run) if run.is_stated("rate_mbit") else None
    for transfer in _transfers(run):
        rtt_s = (transfer.rtt_ms or run.measured("rtt_mean_ms") or run.param("rtt_ms") or 0) / 1e3
        looked |= len(transfer.rows) > 1
        go_on &= all(row.bytes for row in transfer.rows)
        # Several short ones count together, where no loss was meant.
        several = run.brought and run.param("loss_ratio") == 0
        least_s = max(SHORT_STALL_S if several else STALL_S, STALL_ROUND_TRIPS * rtt_s)
        silences = [
            (begin_s, end_s)
            for begin_s, end_s, shut in _silences(
                transfer, NEARLY_NOTHING if several else 0.0, link_bps
            )
            if end_s - begin_s >= least_s and (shut or _mean_rate(transfer) * (end_s - begin_s) >= BURST_BYTES)
        ]  # fmt: skip
        lasted_s = sum(end_s - begin_s for begin_s, end_s in silences)
        if lasted_s < max(STALL_S, STALL_ROUND_TRIPS * rtt_s):
            continue
        carried = [
            row.bytes
            for row in transfer.rows
            for begin_s, end_s in silences
            if begin_s <= row.start_s < end_s
        ]
        nearly = "next to " if any(carried) else ""
        rate = f", {in_mbit(8 * sum(carried) / lasted_s)} Mbit/s there" if any(carried) else ""
        spans = [f"from {begin_s:.0f} s to {end_s:.0f} s" for begin_s, end_s in silences]
        spans = [*spans[:MOST_SPANS], "..."] if len(spans) > MOST_SPANS else spans
        total = f", {lasted_s:.0f} s in all" if len(silences) > 1 else ""
        return Finding(
            "stalled",
            f"{transfer.node} sent {nearly}nothing {', '.join(spans)} of its test{total}{rate} ({transfer.source})",
            "data on its way all the time",
            "For part of this mean nothing moved. It doesn't tell you how fast the path is.",
        )  # fmt: skip
    return Right("that each test's rows go on") if looked and go_on else None


def _mean_rate(transfer: Transfer) -> float:
    """Return what was handed over in a test's rows, in bytes per second."""
    all_s = transfer.rows[-1].end_s - transfer.rows[0].start_s
    return sum(row.bytes for row in transfer.rows) / all_s if all_s else 0.0


def _silences(
    transfer: Transfer, share: float, link_bps: float | None
) -> Iterator[tuple[float, float, bool]]:
    """Yield from when to when no more than this share of the mean was handed over, and far less than a link carries whose
    rate is known; and whether the window was shut then."""
    most = share * _mean_rate(transfer) if transfer.rows else 0.0
    most = min(most, share * (link_bps or math.inf) / 8) if share else 0.0
    for silent, group in groupby(
        transfer.rows, key=lambda row: row.bytes <= most * (row.end_s - row.start_s)
    ):
        rows = [*group]
        windows = [row.cwnd_bytes for row in rows if row.cwnd_bytes]
        # The last of them may be one in which it opened again.
        shut = bool(windows) and sorted(windows)[len(windows) // 2] <= transfer.streams * SHUT_BYTES
        if silent:
            yield rows[0].start_s, rows[-1].end_s, shut


@check(
    FindingKind(
        "two-levels",
        "The rows of iperf3 and iperf 2: is the rate the same from beginning to end, where nothing should change it?",
        explains=("unexplained",),
        hints=(
            "Read the rates of the rows, from the first second to the last.",
            "At which second does the rate change, and is it steady before and after it?",
            "Something changed within the test: a cloud's credit or a shaper's burst was used up, another flow began or ended, or a radio changed its rate. Look at each part by itself.",
        ),
    ),
    needs=(),
)  # fmt: skip
def two_levels(run: RunUnderTest) -> Finding | None:
    """Find the second at which a steady rate becomes another, and stays there. A window that grows isn't steady."""
    transfers = _transfers(run)
    if not run.brought or len(transfers) != 1 or run.param("loss_ratio") or run.meanings:
        return None
    for transfer in transfers:
        # Slow start is in the first rows, and the last one may be short.
        rates = [
            (row.end_s, row.bytes / (row.end_s - row.start_s))
            for row in transfer.rows
            if row.end_s > row.start_s
        ]
        first, rates = rates[:-1], rates[1:-1]
        # The row in which it changes may be of neither.
        for gap, place in product((0, 1), range(LEAST_LEVEL_ROWS, len(rates) - LEAST_LEVEL_ROWS)):
            parts = rates[:place], rates[place + gap :]
            middles = [median(rate for _, rate in part) for part in parts]
            ratio = max(middles) / min(middles) if all(middles) else 0.0
            if ratio >= LEVEL_RATIO and all(_is_level(part, ratio / LEVEL_RATIO) for part in parts):
                before, after = middles
                return Finding(
                    "two-levels",
                    f"{transfer.node} had {in_mbit(8 * before)} Mbit/s up to {rates[place - 1][0]:.0f} s of its test, and "
                    f"{in_mbit(8 * after)} Mbit/s from {rates[place + gap - 1][0]:.0f} s to its end ({transfer.source})",
                    "one rate from beginning to end",
                    "The mean is of two rates, and matches neither. What the path carried changed within the test.",
                    severity="warning",
                )  # fmt: skip
        if burst := _burst(transfer, first):
            return burst
    return None


def _burst(transfer: Transfer, rates: Sequence[tuple[float, float]]) -> Finding | None:
    """Find first rows far above all others, which have one rate: more than a sender's own buffer explains."""
    for count in range(1, LEAST_LEVEL_ROWS + 1):
        begin, rest = rates[:count], rates[count:]
        if len(rest) < CONSTANT_ROWS:
            return None
        usual = median(rate for _, rate in rest)
        least = min(rate for _, rate in begin)
        carried = sum(row.bytes for row in transfer.rows[:count])
        beyond = carried - usual * begin[-1][0]
        if (
            not usual
            or least < LEVEL_RATIO * usual
            or beyond < BURST_BYTES
            or not _is_level(rest, 1.0)
        ):
            continue
        return Finding(
            "two-levels",
            f"{transfer.node} had {in_mbit(8 * carried / begin[-1][0])} Mbit/s in the first {begin[-1][0]:.0f} s of its test, and "
            f"{in_mbit(8 * usual)} Mbit/s after that ({transfer.source})",
            "one rate from beginning to end",
            f"The first {begin[-1][0]:.0f} s carried {beyond / 1e6:.3g} MB more than the others did, and the mean has that in it.",
            severity="warning",
        )  # fmt: skip
    return None


def _is_level(rates: Sequence[tuple[float, float]], slack: float) -> bool:
    """Return whether these rows have one rate, and neither grow nor fall on. Beside a larger step (`slack`) more noise is none."""
    values = [rate for _, rate in rates]
    middle = median(values)
    part = max(len(values) // 3, 1)
    drift = abs(median(values[-part:]) - median(values[:part]))
    apart = max(abs(value - middle) for value in values)
    return (
        apart <= min(STEADY_RATIO * slack, MOST_NOISE) * middle
        and drift <= min(DRIFT_RATIO * slack, STEADY_RATIO) * middle
    )


@check(
    FindingKind(
        "ends-apart",
        "The amount that iperf3's sender handed over, compared with the amount that its receiver got.",
        hints=(
            "iperf3 ends with two lines, the sender's and the receiver's. Compare them.",
            "Where were the data that hadn't arrived when the sender was done?",
            "Most of them were still in the sender's own buffer. The receiver's number is the goodput; measure for longer, by time and not by bytes.",
        ),
    ),
    needs=("goodput_bps",),
)
def ends_apart(run: RunUnderTest) -> Finding | Right | None:
    # Of a run of the kit's own the receiver's number is taken: what a slow sender still holds is in no result.
    if not run.brought and run.measured("goodput_bps") is not None:
        return None
    looked = False
    for transfer in _transfers(run):
        sent, received = transfer.sent, transfer.received
        if not sent or not received:
            continue
        looked = True
        if sent.bytes > APART_RATIO * received.bytes and sent.bytes - received.bytes > APART_BYTES:
            return Finding(
                "ends-apart",
                f"{sent.bytes / 1e6:.4g} MB handed over and {received.bytes / 1e6:.4g} MB received ({transfer.source})",
                "nearly as much received as sent",
                "The sender counts what it hands to its own host, and most of that hadn't left when the test was over. The "
                "sender's rate isn't the path's, and the receiver's is from a test that is too short.",
                severity="warning",
            )  # fmt: skip
    return Right("the sender's bytes against the receiver's") if looked else None


@check(
    FindingKind(
        "length",
        "How long a test lasted, compared with the intended length.",
        explains=("duration", "unexplained"),
        hints=(
            "From when to when did the test run? Look at its last row.",
            "Compare that with the intended length, and with what iperf3 was told (-t, -n).",
            "It was shorter or longer than intended: -t was left out (10 s then), -n or -F ended it, or it broke off.",
        ),
    ),
    needs=(),
)
def length(run: RunUnderTest) -> Finding | Right | None:
    looked = False
    for transfer in _transfers(run):
        amount = transfer.sent or transfer.received
        lengths_s = [second for second in (run.param("duration_s"), transfer.asked_s) if second]
        if amount is None or not lengths_s or transfer.of_rows:
            continue
        looked = True
        for seconds in lengths_s:
            slack_s = max(SHORT_RATIO * seconds, SHORT_S)
            # A receiver is done later, by what was still in the sender's buffer.
            longer = amount.seconds > seconds + slack_s and transfer.sent is not None
            if longer or amount.seconds < seconds - slack_s:
                return Finding(
                    "length",
                    f"a test of {amount.seconds:.4g} s ({transfer.source})",
                    f"{seconds:g} s",
                    "A mean depends on how long it was taken. Slow start, and the few losses of a short test, weigh more.",
                    severity="warning", rests_on="" if seconds == transfer.asked_s else "duration_s",
                )  # fmt: skip
    return Right("how long each test lasted") if looked else None


@check(
    FindingKind(
        "application-limited",
        "How long a sender had data in flight (busy in ss), compared with how long it was there.",
        explains=("unexplained", "duration"),
        hints=(
            "ss shows how long a connection had something to do. Look at its last line.",
            "Compare busy with the length of the test.",
            "The program didn't send all the time: look at iperf3's own options, such as -b.",
        ),
    ),
    needs=(),
)
def application_limited(run: RunUnderTest) -> Finding | Right | None:
    for socket in run.data_sockets():
        if socket.alive_s < LEAST_SECONDS or socket.busy_s is None:
            continue
        # The sampler's clock may jump; iperf3 knows how long it sent.
        lengths_s = [
            transfer.sent.seconds + transfer.omit_s
            for transfer in _transfers(run)
            if transfer.node == socket.node and transfer.sent
        ]
        if socket.busy_s >= BUSY_RATIO * min(
            socket.alive_s, max(lengths_s, default=socket.alive_s)
        ):
            continue
        return Finding(
            "application-limited",
            f"{socket.node}'s flow had data in flight for {socket.busy_s:.1f} s of {socket.alive_s:.1f} s (ss)",
            "all the time",
            "The program that sends had nothing to send for some of the time. Its rate is its own choice, "
            "not TCP's.",
            symptom=f"{socket.node}'s flow was idle for {100 * (1 - socket.busy_s / socket.alive_s):.0f} % of its time",
        )
    if by_program := _nothing_more(run):
        return by_program
    looked = [socket for socket in run.data_sockets() if socket.alive_s >= LEAST_SECONDS]
    is_known = any(socket.busy_s is not None for socket in looked)
    return Right("data in flight all the time") if is_known else None


def _nothing_more(run: RunUnderTest) -> Finding | None:
    """A flow that has less in flight than any window allows, since its program handed nothing more over."""
    sockets = run.data_sockets()
    rate_bps = sum(
        8 * (socket.bytes_acked or 0) / max(socket.alive_s, LEAST_SECONDS) for socket in sockets
    )
    for socket in () if fills_the_link(run, rate_bps) else sockets:
        share = socket.held_up_by.get(PROGRAM, 0.0)
        if share < PROGRAM_RATIO or socket.alive_s < LEAST_SECONDS:
            continue
        return Finding(
            "application-limited",
            f"{socket.node}'s program had nothing more to send in {100 * share:.0f} % of ss's samples (app_limited), and less was "
            "in flight than the windows allow",
            "data that waits to be sent, all the time",
            "The program that sends decided how fast, not TCP: iperf3's -b, another program's own pace, or a host too slow for it.",
            symptom=f"{socket.node}'s flow sent less than its congestion window allowed",
        )
    return None


@check(FindingKind("application-limited"), needs=())
def asked_rate(run: RunUnderTest) -> Finding | None:
    """Compare what iperf3 was told to send at most (-b, --fq-rate) with what it sent."""
    for transfer in _transfers(run):
        if not transfer.options_bps or not transfer.arrived:
            continue
        option = min(transfer.options_bps, key=transfer.options_bps.__getitem__)
        asked_bps = transfer.options_bps[option] * transfer.streams
        rate_bps = (transfer.sent or transfer.arrived).rate_bps
        if rate_bps < ASKED_RATIO * asked_bps or fills_the_link(run, rate_bps):
            continue
        return Finding(
            "application-limited",
            f"{transfer.node} sent {in_mbit(rate_bps)} Mbit/s and was told to send at most {in_mbit(asked_bps)} "
            f"({option}, in {transfer.source})",
            "as much as TCP can send",
            "An option of the program that sends decided how fast, not TCP.",
            symptom=f"{transfer.node}'s flow sent less than its congestion window allowed",
        )
    return None


@check(FindingKind("receive-window"), needs=())
def window_by_iperf3(run: RunUnderTest) -> Finding | None:
    """The receiver's window or the buffer that was asked for, over the round-trip time, against the rate. ss knows better."""
    if run.data_sockets():
        return None
    for transfer in _transfers(run):
        rtt_ms, arrived = transfer.rtt_ms or _known_rtt_ms(run), transfer.arrived
        window, cwnd = transfer.window_bytes, transfer.cwnd_bytes
        constant = _constant_window(transfer)
        if not rtt_ms or not arrived or fills_the_link(run, arrived.rate_bps):
            continue
        in_flight = arrived.rate_bps * rtt_ms / 8e3
        asked = transfer.buffer_bytes and transfer.buffer_bytes * transfer.streams
        # A window as large as the settings allow is what was asked for.
        allowed = run.param("rmem_max_bytes") or run.param("wmem_max_bytes")
        bound = window if window and cwnd and window <= cwnd else asked or constant
        if not bound or (allowed and bound >= 0.4 * allowed):
            continue
        # Behind a queue any window a round trip is the rate.
        if bound == constant and rtt_ms > 1.5 * (run.param("rtt_ms") or rtt_ms):
            continue
        least = GIVEN_RATIO if transfer.tool == "iperf 2" else WINDOW_RATIO
        if least * bound <= in_flight <= 1.3 * bound:
            by_option = f"; {transfer.tool} was told to use such a buffer (-w)" if asked else ""
            whose = (
                "the receiver's window was never above" if bound == window
                else "its buffer was never above" if bound == asked
                else "its window stayed at"
            )  # fmt: skip
            return Finding(
                "receive-window",
                f"{transfer.node} had {in_flight:.0f} B in flight, and {whose} {bound} B "
                f"({transfer.source}){by_option}",
                "losses or the link as the only limit",
                "One window per round trip is all that can be sent, so the buffers decided how fast the flow may go, not the "
                "congestion control.",
                symptom=f"{transfer.node}'s flow sent less than its congestion window allowed",
            )
    return None


def _known_rtt_ms(run: RunUnderTest) -> float | None:
    """Return a path's round-trip time by ping's word, or as somebody said it; None where it is a lab's own."""
    is_set = run.stated is None or "rtt_ms" in run.stated
    pinged = [ping.rtt_min_ms for _, ping in run.host_state.pings] if run.host_state else []
    return run.param("rtt_ms") if is_set else min(filter(None, pinged), default=None)


def _constant_window(transfer: Transfer) -> int | None:
    """Return a congestion window that nothing makes grow, or shrink, from a test's first rows on."""
    rows = transfer.rows[len(transfer.rows) // 5 :]
    windows = [row.cwnd_bytes for row in rows if row.cwnd_bytes]
    if len(windows) < CONSTANT_ROWS or len(windows) < len(rows) or transfer.retransmits:
        return None
    return max(windows) if max(windows) - min(windows) <= CONSTANT_RATIO * max(windows) else None


@check(
    FindingKind(
        "processor",
        "How busy iperf3 kept a processor, where the link isn't full.",
        explains=("unexplained",),
        hints=(
            "At its end iperf3 reports how busy it kept the processors of both hosts.",
            "Is one of them near 100 %, and the link not full?",
            "A host was too slow for this rate: use a slower link, offloads, or several processes, and measure again.",
        ),
    ),
    needs=(),
)
def processor(run: RunUnderTest) -> Finding | Right | None:
    looked = False
    for transfer in _transfers(run):
        for whose, percent in (
            ("sender", transfer.own_cpu_percent),
            ("receiver", transfer.other_cpu_percent),
        ):
            if not percent or not transfer.arrived or least_rate_bps(run) is None:
                continue
            looked = True
            # One thread sends all streams, or each has its own (iperf3 3.16 and newer).
            threads = transfer.streams if percent > 1.1 * 100 else 1
            if percent < BUSY_PERCENT * threads or fills_the_link(run, transfer.arrived.rate_bps):
                continue
            if run.param("loss_ratio"):
                continue
            return Finding(
                "processor",
                f"the {whose}'s processor was busy {percent:.1f} % of the time, with {in_mbit(transfer.arrived.rate_bps)} "
                f"Mbit/s ({transfer.source})",
                "a processor that has time left, where the link isn't full",
                "The host can't do more: what is measured is the host, not the path.",
            )  # fmt: skip
    return Right("the processors' load") if looked else None
