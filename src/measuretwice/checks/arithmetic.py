"""The check of arithmetic within one file: a test's rows and totals, a ping's replies and its summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from measuretwice.checks.registry import (
    Finding,
    FindingKind,
    Right,
    RunUnderTest,
    check,
    in_mbit,
)
from measuretwice.measure.transfers import Row, Transfer
from measuretwice.parse import PingRun

# Three digits are good to half a per cent; rows and totals are of the same bytes.
ROUNDED_RATIO = 0.03
EXACT_RATIO = 0.01
ROW_RATIO = 0.05
# What one end may count of a block that the other doesn't.
BLOCK_BYTES = 256 << 10
# No TCP has smaller segments, or a window of less than one of the smallest.
LEAST_MSS_BYTES = 500
LEAST_WINDOW_BYTES = 40


@check(
    FindingKind(
        "impossible",
        "Arithmetic within one file: rows against totals, resent against sent, received against sent, mean against least and largest, clocks.",
        explains=(
            "bandwidth", "loss-ratio", "retransmissions", "round-trip-time", "rtt-doubling", "two-runs", "unexplained",
        ),
        hints=(
            "One file contradicts itself. Which numbers of it are named?",
            "Work them out again from the other lines of the same file.",
            "A number that can't be is no measurement: the system doesn't give it, a clock was set while the tool ran, or the file was changed.",
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
            return Finding("impossible", f"{transfer.source}: {measured}", expected, why)
    for source, ping in state.pings:
        for measured, expected, why in _of_ping(ping):
            return Finding("impossible", f"{source}: {measured}", expected, why, severity="warning")
    return Right("each file's own arithmetic")


def _of_transfer(transfer: Transfer) -> Iterator[tuple[str, str, str]]:
    sent, received, again = transfer.sent, transfer.received, transfer.retransmits
    no_measurement = (
        "This system doesn't give iperf3 TCP's own numbers, so that these columns hold whatever was in memory "
        "(as on WSL 1). Bytes and rates are counted otherwise."
    )
    if sent and again and again > 2 * max(sent.bytes / LEAST_MSS_BYTES, 1):
        yield (
            f"{again} segments resent, of {_size(sent.bytes)} sent",
            "no more resent than sent",
            no_measurement,
        )
    tiny = min((row.cwnd_bytes for row in transfer.rows if row.cwnd_bytes), default=None)
    if tiny is not None and tiny < LEAST_WINDOW_BYTES:
        yield f"a congestion window of {tiny} B", "at least a segment", no_measurement
    if sent and received and not transfer.omit_s:
        slack = (EXACT_RATIO if transfer.exact else ROUNDED_RATIO) * sent.bytes + BLOCK_BYTES
        if received.bytes > sent.bytes + slack:
            yield (
                f"{_size(received.bytes)} received, of {_size(sent.bytes)} sent", "no more received than sent",
                "Nothing arrives that wasn't sent: these totals are of two tests, or the file was changed.",
            )  # fmt: skip
    total = transfer.sent if transfer.tool == "iperf3" else transfer.arrived
    if total and _covers(transfer.rows, total.seconds):
        in_rows = sum(row.bytes for row in transfer.rows)
        ratio = EXACT_RATIO if transfer.exact else ROUNDED_RATIO
        if abs(in_rows - total.bytes) > ratio * total.bytes + transfer.streams * BLOCK_BYTES:
            yield (
                f"{_size(total.bytes)} in its total, {_size(in_rows)} in its rows", "the same bytes",
                "The total is the sum of the rows: one of them was changed, or rows are missing.",
            )  # fmt: skip
    for row in transfer.rows:
        seconds = row.end_s - row.start_s
        if row.rate_bps is None or seconds < 0.5 or row.bytes < 100_000:
            continue
        by_bytes = 8 * row.bytes / seconds
        if abs(row.rate_bps - by_bytes) > ROW_RATIO * by_bytes:
            yield (
                f"{in_mbit(row.rate_bps)} Mbit/s from {row.start_s:g} to {row.end_s:g} s",
                f"{by_bytes / 1e6:.4g} Mbit/s: the same row's {_size(row.bytes)} over its time",
                "A rate is bytes over time: this row was changed, or its units were mixed up.",
            )  # fmt: skip


def _covers(rows: Sequence[Row], seconds: float) -> bool:
    """Return whether rows stand for all of a test's time."""
    lasted_s = sum(row.end_s - row.start_s for row in rows)
    return bool(rows) and abs(lasted_s - seconds) <= 0.02 * seconds + 0.05


def _size(bytes_: float) -> str:
    return f"{bytes_ / 1e6:.4g} MB"


def _of_ping(ping: PingRun) -> Iterator[tuple[str, str, str]]:
    clock = (
        "The host's clock was set while ping ran, so that some of these times are no round trips."
    )
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
    if least is not None and mean is not None and most is not None and not least <= mean <= most:
        yield (
            f"a mean round-trip time of {mean:g} ms", f"one between its least, {least:g}, and its largest, {most:g} ms",
            "No mean lies outside of its values: this line was changed, or is another ping's.",
        )  # fmt: skip
    times = [reply.rtt_ms for reply in ping.replies if reply.rtt_ms is not None]
    if len(times) < max(ping.received, 1) or least is None or most is None:
        return
    # Three digits of a reply, against a summary to a microsecond.
    outside = [time for time in times if not 0.99 * least - 1 <= time <= 1.01 * most + 1]
    if outside:
        yield (
            f"a reply after {outside[0]:g} ms", f"none outside of its own summary, {least:g} to {most:g} ms",
            "The replies and the summary are of two pings, or one of them was changed.",
        )  # fmt: skip
