"""The checks of one file by itself: the arithmetic of a test's rows and totals, of a ping's replies and its summary; what
a ping lost, what came twice to it, and whether its path stayed the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from measuretwice.checks.registry import (
    Finding,
    FindingKind,
    Right,
    RunUnderTest,
    Severity,
    check,
    in_mbit,
)
from measuretwice.measure.transfers import Row, Transfer
from measuretwice.parse import PingRun
from measuretwice.stats.intervals import binomial_interval

# Three digits are good to half a per cent; rows and totals are of the same bytes.
ROUNDED_RATIO = 0.03
EXACT_RATIO = 0.01
ROW_RATIO = 0.05
# What one end may count of a block that the other doesn't.
BLOCK_BYTES = 256 << 10
# No TCP has smaller segments, or a window of less than one of the smallest.
LEAST_MSS_BYTES = 500
LEAST_WINDOW_BYTES = 40
# Besides the first, which may wait for the address (ARP), and the last, on its way as ping is stopped.
LOST_ANYWAY = 1
# Of fewer pings than this one that is lost is a large share.
MANY_PINGS = 20
CONFIDENCE = 0.9999
# Where no packet waits, a ping's mean is so near to its least.
IDLE_RATIO, IDLE_MS = 1.25, 5.0
# Some radios answer twice now and then.
TWICE_RATIO = 0.01
# A path's length is told by so many answers, and two of them by so large a step.
LEAST_ANSWERS = 5
STEP_RATIO, STEP_MS = 0.05, 2.0
# The answers before a step, and those after it, differ by less than this share of it.
STEADY_RATIO = 0.25
NO_MEASUREMENT = (
    "These columns are no measurement: the system doesn't give iperf3 TCP's own numbers (as WSL 1), or a count fell below "
    "0, which is printed as nearly 2^32. Bytes and rates are counted differently, and may be right."
)


@check(
    FindingKind(
        "impossible",
        "Arithmetic within one file: rows against totals, retransmitted against sent, received against sent, mean against least and largest, clocks.",
        explains=(
            "bandwidth", "loss-ratio", "retransmissions", "round-trip-time", "rtt-doubling", "two-runs",
        ),
        hints=(
            "One file contradicts itself. Which numbers of it are named?",
            "Work them out again from the other lines of the same file.",
            "A number that can't be true is no measurement: the system doesn't give it, a clock was set while the tool ran, or the file was changed.",
        ),
    ),
    needs=(),
)  # fmt: skip
def impossible(run: RunUnderTest) -> Finding | Right | None:
    state = run.host_state
    if state is None or not (state.transfers or state.pings):
        return None
    for transfer in state.transfers:
        for measured, expected, why in _of_transfer(transfer):
            # What isn't measured at all explains nothing of what is.
            severity: Severity = "warning" if why == NO_MEASUREMENT else "error"
            return Finding("impossible", f"{transfer.source}: {measured}", expected, why, severity)
    for source, ping in state.pings:
        for measured, expected, why in _of_ping(ping):
            return Finding("impossible", f"{source}: {measured}", expected, why, severity="warning")
    return Right("each file's own arithmetic")


def _no_measurement(transfer: Transfer) -> Iterator[tuple[str, str]]:
    """Yield what stands in columns that are no measurement, and what would be possible there."""
    sent, again = transfer.sent, transfer.retransmits
    if sent and again and again > 2 * max(sent.bytes / LEAST_MSS_BYTES, 1):
        yield (
            f"{again} segments retransmitted, of {_size(sent.bytes)} sent",
            "no more retransmitted than sent, so this can be no count",
        )
    tiny = min((row.cwnd_bytes for row in transfer.rows if row.cwnd_bytes), default=None)
    if tiny is not None and tiny < LEAST_WINDOW_BYTES:
        window = f"a congestion window of {tiny} B"
        yield window, "a window of at least one segment, so this is no window"
    if early := transfer.too_old:
        yield (
            f"a round-trip time of {early.rtt_ms or 0:.4g} ms, {early.end_s:.3g} s after the test began",
            "none longer than the connection's age, so this is no time",
        )


def _of_transfer(transfer: Transfer) -> Iterator[tuple[str, str, str]]:
    sent, received = transfer.sent, transfer.received
    # All in one line.
    columns = [*_no_measurement(transfer)]
    if columns:
        yield (
            "; ".join(column for column, _ in columns),
            "; ".join(possible for _, possible in columns),
            NO_MEASUREMENT,
        )
    if sent and received and not transfer.omit_s:
        slack = (EXACT_RATIO if transfer.exact else ROUNDED_RATIO) * sent.bytes + BLOCK_BYTES
        if received.bytes > sent.bytes + slack:
            yield (
                f"{_size(received.bytes)} received, of {_size(sent.bytes)} sent", "no more received than sent",
                "Nothing arrives that wasn't sent, so these totals are from two tests, or the file was changed.",
            )  # fmt: skip
    total = transfer.sent if transfer.tool == "iperf3" else transfer.arrived
    if total and _covers(transfer.rows, total.seconds):
        in_rows = sum(row.bytes for row in transfer.rows)
        ratio = EXACT_RATIO if transfer.exact else ROUNDED_RATIO
        if abs(in_rows - total.bytes) > ratio * total.bytes + transfer.streams * BLOCK_BYTES:
            yield (
                f"{_size(total.bytes)} in its total, {_size(in_rows)} in its rows", "the same bytes",
                "The total is the sum of the rows, so one of them was changed, or rows are missing.",
            )  # fmt: skip
    # Of less, iperf 2 may print two digits.
    least_bytes = 100_000 if transfer.tool == "iperf3" else 1_000_000
    for row in (*transfer.rows, *transfer.totals):
        seconds = row.end_s - row.start_s
        if row.rate_bps is None or seconds < 0.5 or row.bytes < least_bytes:
            continue
        by_bytes = 8 * row.bytes / seconds
        if abs(row.rate_bps - by_bytes) > ROW_RATIO * by_bytes:
            yield (
                f"{in_mbit(row.rate_bps)} Mbit/s from {row.start_s:g} to {row.end_s:g} s",
                f"{by_bytes / 1e6:.4g} Mbit/s: the same row's {_size(row.bytes)} over its time",
                "A rate is bytes over time, so this row was changed, or its units were mixed up.",
            )  # fmt: skip


def _covers(rows: Sequence[Row], seconds: float) -> bool:
    """Return whether rows stand for all of a test's time."""
    lasted_s = sum(row.end_s - row.start_s for row in rows)
    return bool(rows) and abs(lasted_s - seconds) <= 0.02 * seconds + 0.05


def _size(bytes_: float) -> str:
    return f"{bytes_ / 1e6:.4g} MB"


def _of_ping(ping: PingRun) -> Iterator[tuple[str, str, str]]:
    changed = "These counts are from two pings, or the file was changed."
    if ping.received > ping.transmitted:
        yield (
            f"{ping.received} answers to {ping.transmitted} pings", "no more received than sent",
            "Duplicates aren't counted here, so an answer is missing its question. " + changed,
        )  # fmt: skip
    elif ping.misprinted_loss_ratio is not None:
        yield (
            f"{100 * ping.misprinted_loss_ratio:g} % lost by its own word, and {ping.received} of {ping.transmitted} received",
            f"{100 * (ping.loss_ratio or 0):.3g} %, which these counts make", changed,
        )  # fmt: skip
    answered = {reply.seq for reply in ping.replies if not reply.duplicate}
    if len(answered) > ping.received + ping.errors:
        yield f"{len(answered)} replies above a summary of {ping.received}", "as many", changed
    clock = "The host's clock was set while ping ran, so some of these times are no round trips."
    if ping.went_back:
        yield f"its clock went back {ping.went_back} times", "time that goes on", clock
    least, mean, most = ping.rtt_min_ms, ping.rtt_avg_ms, ping.rtt_max_ms
    # A ping that prints whole milliseconds has 0 for all below 1.
    if least == 0 and (mean or 0) > 1 and ping.resolution_ms < 1:
        yield (
            "a smallest round-trip time of 0 ms",
            f"some time, where the mean is {mean:g} ms",
            clock,
        )
    if ping.least_is_above_largest:
        yield (
            f"a smallest round-trip time of {least:g} ms, above the largest, {most:g} ms",
            "no smaller time than a time that was measured",
            "No answer carried a time (were they truncated?), so these are no round trips.",
        )
    elif least is not None and mean is not None and most is not None and not least <= mean <= most:
        yield (
            f"a mean round-trip time of {mean:g} ms", f"one between its least, {least:g}, and its largest, {most:g} ms",
            "No mean lies outside its values, so one of these numbers is wrong.",
        )  # fmt: skip
    times = [reply.rtt_ms for reply in ping.replies if reply.rtt_ms is not None]
    if len(times) < max(ping.received, 1) or least is None or most is None:
        return
    # Three digits of a reply, against a summary to a microsecond.
    outside = [time for time in times if not 0.99 * least - 1 <= time <= 1.01 * most + 1]
    if outside:
        yield (
            f"a reply after {outside[0]:g} ms", f"none outside of its own summary, {least:g} to {most:g} ms",
            "The replies and the summary are from two pings, or one of them was changed.",
        )  # fmt: skip


@check(
    FindingKind(
        "ping-losses",
        "The share of ping's packets that was lost on the idle path, compared with the intended share.",
        explains=("unexplained",),
        hints=(
            "Look at ping's last lines: how many were sent, and how many came back?",
            "Which share of the packets was the path meant to lose, on the way there and on the way back?",
            "Whatever loses pings loses TCP's packets too: a loss that is set somewhere, a cable, a radio, or a host that doesn't answer every ping.",
        ),
    ),
    needs=("qdisc_drops",),
)  # fmt: skip
def ping_losses(run: RunUnderTest) -> Finding | Right | None:
    """Return whether pings lose what they should, on the way there and back, where no queue was in their way and the settings say what is lost."""
    wanted, state = run.param("loss_ratio"), run.host_state
    alone = state is not None and not (state.transfers or state.sockets)
    # Beside a flow those of a queue are the flow's doing.
    pings = [ping for ping in _on_the_path(run) if ping[1].received > 0] if alone else _idle(run)
    pings = [(source, ping) for source, ping in pings if not ping.is_of_many and ping.lost >= 0]
    if wanted is None or not pings or "rate-varies" in run.meanings:
        return None
    for source, ping in pings:
        sent, lost = ping.transmitted - ping.in_flight, ping.lost
        _, most = binomial_interval(sent, 1 - (1 - wanted) ** 2, CONFIDENCE)
        least, _ = binomial_interval(sent, wanted, CONFIDENCE)
        # Where the qdisc's own count is known, pings may go another way through it.
        too_few = lost < least * sent and run.measured("qdisc_drops") is None
        if not too_few and (lost - _at_ends(ping) <= _lost_anyway(ping) or lost <= most * sent):
            continue
        share = f"{100 * lost / sent:.3g} %"
        return Finding(
            "ping-losses",
            f"{lost} of {sent} pings lost, {share} ({source})",
            f"{100 * wanted:g} % of packets lost" if wanted else "none, since no loss was set",
            "The path doesn't lose the share of packets that was set, or one of its ends doesn't answer every ping.",
        )  # fmt: skip
    return Right("the share of pings that was lost")


@check(FindingKind("unfit"), needs=())
def to_itself(run: RunUnderTest) -> Finding | None:
    """A ping to the own host's loopback went over no path."""
    for source, ping in _on_the_path(run) if run.brought else []:
        if ping.address.startswith("127.") or ping.address in ("::1", "localhost"):
            return Finding(
                "unfit", f"{source}: a ping to {ping.address}, the host's own loopback", "a ping to the other end of the path",
                "It went over none of the links, so its times tell you nothing about the path.",
            )  # fmt: skip
    return None


def _lost_anyway(ping: PingRun) -> int:
    """Return how many may be lost on a path that loses none: of a few none, but for the first and the last."""
    return LOST_ANYWAY if ping.transmitted >= MANY_PINGS else 0


def _at_ends(ping: PingRun) -> int:
    """Of a ping's losses those of its first and its last packet; where its answers don't stand there one by one, of so
    many as were sent at most 1 of a few, and 2 of many."""
    if ping.waited:
        return 0
    seen = {reply.seq for reply in ping.replies}
    if len(seen) < ping.received:
        return 2 if ping.transmitted >= MANY_PINGS else 1
    begin = min(min(seen), 1)
    return (min(seen) > begin) + (not ping.in_flight and max(seen) < begin + ping.transmitted - 1)


def _idle(run: RunUnderTest) -> list[tuple[str, PingRun]]:
    """Pings on the idle path in which no time shows a queue."""
    return [
        (source, ping)
        for source, ping in _on_the_path(run)
        if 0 < ping.received <= ping.transmitted
        and (ping.rtt_avg_ms or 0) <= IDLE_RATIO * (ping.rtt_min_ms or 0) + IDLE_MS
    ]


def _on_the_path(run: RunUnderTest) -> list[tuple[str, PingRun]]:
    state = run.host_state
    return [ping for ping in state.pings if ping[0] not in state.other_pings] if state else []


@check(
    FindingKind(
        "ping-duplicates",
        "How many of ping's answers came more than once.",
        hints=(
            "Look for (DUP!) and for 'duplicates' in ping's output.",
            "How many answers came to each ping, and from which address?",
            "Something on the path sends packets twice (netem's duplicate, a loop, two routers that both forward), or several hosts have the address.",
        ),
    ),
    needs=(),
)  # fmt: skip
def ping_duplicates(run: RunUnderTest) -> Finding | None:
    """Answers that came more than once, of any ping."""
    pings = run.host_state.pings if run.host_state else ()
    for source, ping in pings:
        if ping.duplicates > max(1, TWICE_RATIO * ping.received) and not ping.is_of_many:
            every_one = ", every one twice" if ping.duplicates == ping.received else ""
            return Finding(
                "ping-duplicates",
                f"{ping.duplicates} duplicates beside {ping.received} answers to {ping.transmitted} pings{every_one} ({source})",
                "one answer to each ping",
                "Packets are doubled on the way: by netem's duplicate, a loop, or two routers or bridges that both forward; or "
                "two hosts answer. TCP takes what comes twice for needless retransmissions.",
                severity="warning",
            )  # fmt: skip
    return None


# Where half of the answers waited so much longer than the quickest, the path wasn't idle.
SPREAD_RATIO, SPREAD_MS = 2.0, 5.0


@check(
    FindingKind(
        "ping-spread",
        "How far apart a ping's times are, where ping's output is all that there is.",
        hints=(
            "Compare ping's smallest time with its mean and its largest.",
            "How many of its answers took twice as long as the quickest one?",
            "Either packets waited in a queue because something else used the path, or a radio sent them again and again. Only the smallest time tells you how long the path is.",
        ),
    ),
    needs=(),
)  # fmt: skip
def ping_spread(run: RunUnderTest) -> Finding | None:
    """Return a finding where half of a ping's answers or more waited on a path that was meant to be idle."""
    state = run.host_state
    if state is None or state.transfers or state.sockets or "rate-varies" in run.meanings:
        return None
    for source, ping in _on_the_path(run):
        times = [reply.rtt_ms for reply in ping.replies if reply.rtt_ms and not reply.duplicate]
        usual = median(times) if len(times) >= LEAST_ANSWERS else None
        least = ping.rtt_min_ms
        if usual is None or not least or usual < SPREAD_RATIO * least + SPREAD_MS:
            continue
        return Finding(
            "ping-spread",
            f"round trips of {least:g} to {max(times):g} ms, half of them above {usual:.3g} ms ({source})",
            "times near the smallest, as an idle path has them",
            "These packets waited: in a queue, since something else used the path meanwhile, or at a radio that sends again what it lost.",
            severity="warning",
        )  # fmt: skip
    return None


@check(
    FindingKind(
        "path-changed",
        "Whether a ping's times, and the routers that its answers passed, stayed the same.",
        explains=("unexplained",),
        hints=(
            "Go through ping's answers one by one. From which one on is the time or the TTL different?",
            "Compare the least time before that answer and after it, and the TTL.",
            "From then on the packets took another way, or the delay was changed while ping ran.",
        ),
    ),
    needs=("rtt_mean_ms",),
)
def path_changed(run: RunUnderTest) -> Finding | None:
    """A step in a ping of the idle path, with steady times before it and after it; or another TTL from there on."""
    if "rate-varies" in run.meanings:
        return None
    flows = bool(run.host_state and run.host_state.transfers)
    for source, ping in _on_the_path(run):
        change = _ttl_change(ping) or _step(ping, run.measured("rtt_mean_ms"), flows=flows)
        if change:
            return Finding(
                "path-changed", f"{change} ({source})", "one path, of one length",
                "The packets took another way from there on, or the delay was changed while ping ran.",
                severity="warning",
            )  # fmt: skip
    return None


def _ttl_change(ping: PingRun) -> str | None:
    """Say from which answer on all came through another number of routers."""
    ttls = [(reply.seq, reply.ttl) for reply in ping.replies if reply.ttl and not reply.duplicate]
    if len({ttl for _, ttl in ttls}) != 2:
        return None
    split = next(n for n, (_, ttl) in enumerate(ttls) if ttl != ttls[0][1])
    if min(split, len(ttls) - split) < LEAST_ANSWERS or len({ttl for _, ttl in ttls[split:]}) > 1:
        return None
    return f"a TTL of {ttls[0][1]} up to answer {ttls[split - 1][0]}, and of {ttls[split][1]} from answer {ttls[split][0]} on"


def _step(ping: PingRun, flow_rtt_ms: float | None, *, flows: bool) -> str | None:
    """Say from which answer on the times are others; not where that may be a flow's queue, which begins so, too."""
    times = [
        (reply.seq, reply.rtt_ms)
        for reply in ping.replies
        if reply.rtt_ms is not None and not reply.duplicate
    ]
    rtts = [rtt for _, rtt in times]
    if len(rtts) < 2 * LEAST_ANSWERS:
        return None
    # Where the medians before and after differ most; the step itself is between two neighbours near there.
    places = range(LEAST_ANSWERS, len(rtts) - LEAST_ANSWERS + 1)
    near = max(
        places,
        key=lambda n: abs(
            median(rtts[n : n + LEAST_ANSWERS]) - median(rtts[n - LEAST_ANSWERS : n])
        ),
    )
    split = max(range(near - 2, near + 3), key=lambda n: abs(rtts[n] - rtts[n - 1]))
    before, after = rtts[:split], rtts[split:]
    step = median(after) - median(before)
    if abs(step) < max(STEP_MS, STEP_RATIO * min(rtts), 3 * ping.resolution_ms):
        return None
    if any(_spread(part) > STEADY_RATIO * abs(step) for part in (before, after)):
        return None
    low, high = sorted((median(before), median(after)))
    if flows and (flow_rtt_ms is None or flow_rtt_ms > low + STEADY_RATIO * (high - low)):
        return None
    return f"{median(before):.4g} ms up to answer {times[split - 1][0]}, and {median(after):.4g} ms from answer {times[split][0]} on"


def _spread(values: Sequence[float]) -> float:
    tenths = quantiles(values, n=10)
    return tenths[-1] - tenths[0]
