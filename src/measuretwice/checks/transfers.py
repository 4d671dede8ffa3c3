"""The checks of what iperf3 and iperf 2 say of their own tests: what each was asked to do, and did; and what limits a
flow, by each tool's own word.

Each needs one file, whatever else is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from measuretwice.checks.registry import (
    Finding,
    FindingKind,
    Right,
    RunUnderTest,
    check,
    in_mbit,
)
from measuretwice.measure.connections import BUFFER, PROGRAM, RECEIVER, WINDOW
from measuretwice.measure.host_state import Socket
from measuretwice.measure.transfers import Row, Transfer
from measuretwice.tcp.model import USUAL_MSS_BYTES, payload_limit

# iperf3 counts what it hands to its own host, whole blocks, and a full buffer takes the next only when a third is free.
BURST_BYTES = 8 << 20
STALL_S = 4.0
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
            "The flow stopped, so that its mean says nothing of the path: look for a link that went down, a filter, or packets too large for a later link.",
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
    looked = False
    for transfer in _transfers(run):
        rtt_s = (transfer.rtt_ms or run.measured("rtt_mean_ms") or run.param("rtt_ms") or 0) / 1e3
        looked |= len(transfer.rows) > 1
        silent = _longest_silence(transfer)
        if not silent or silent[-1].end_s - silent[0].start_s < max(
            STALL_S, STALL_ROUND_TRIPS * rtt_s
        ):
            continue
        lasted_s = silent[-1].end_s - silent[0].start_s
        all_s = transfer.rows[-1].end_s - transfer.rows[0].start_s
        rate = sum(row.bytes for row in transfer.rows) / all_s
        windows = [row.cwnd_bytes for row in silent if row.cwnd_bytes]
        shut = bool(windows) and max(windows) <= transfer.streams * SHUT_BYTES
        if not shut and rate * lasted_s < BURST_BYTES:
            continue
        begin, end = silent[0].start_s, silent[-1].end_s
        return Finding(
            "stalled",
            f"{transfer.node} sent nothing from {begin:.0f} s to {end:.0f} s of its test ({transfer.source})",
            "data on its way all the time",
            "Most of this mean is a time in which nothing moved. It says nothing of how fast the path is.",
        )  # fmt: skip
    return Right("that each test's rows go on") if looked else None


def _longest_silence(transfer: Transfer) -> list[Row]:
    """Return the most rows on end in which nothing was handed over."""
    longest: list[Row] = []
    current: list[Row] = []
    for row in transfer.rows:
        current = [*current, row] if not row.bytes else []
        longest = max(longest, current, key=len)
    return longest


@check(
    FindingKind(
        "ends-apart",
        "What iperf3's sender handed over, compared with what its receiver got.",
        hints=(
            "iperf3 ends with two lines, the sender's and the receiver's. Compare them.",
            "What hadn't arrived when the sender was done: where was it?",
            "Most of it was still in the sender's own buffer. The receiver's number is the goodput; measure for longer, by time and not by bytes.",
        ),
    ),
    needs=(),
)
def ends_apart(run: RunUnderTest) -> Finding | Right | None:
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
                "sender's rate is none of the path's; the receiver's is of a test that is too short.",
                severity="warning",
            )  # fmt: skip
    return Right("the sender's bytes against the receiver's") if looked else None


@check(
    FindingKind(
        "length",
        "How long a test lasted, compared with how long it was meant to.",
        explains=("duration", "unexplained"),
        hints=(
            "From when to when did the test run? Its last row says it.",
            "Compare that with the length that was meant, and with what iperf3 was told (-t, -n).",
            "It was shorter or longer than meant: -t was left out (10 s then), -n or -F ended it, or it broke off.",
        ),
    ),
    needs=(),
)
def length(run: RunUnderTest) -> Finding | Right | None:
    looked = False
    for transfer in _transfers(run):
        amount = transfer.sent or transfer.received
        lengths_s = [second for second in (run.param("duration_s"), transfer.asked_s) if second]
        if amount is None or not lengths_s:
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
                    "What a mean says depends on how long it was taken: slow start, and the few losses of a short test, weigh more.",
                    severity="warning",
                )  # fmt: skip
    return Right("how long each test lasted") if looked else None


@check(
    FindingKind(
        "application-limited",
        "How long a sender had data in flight (busy in ss), compared with how long it was there.",
        explains=("unexplained", "duration"),
        hints=(
            "ss says how long a connection had something to do. Look at its last line.",
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
    known = any(socket.busy_s is not None for socket in looked)
    return Right("data in flight all the time") if known else None


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
    """Compare what iperf3 was told to send at most (-b) with what it sent."""
    for transfer in _transfers(run):
        if not transfer.bitrate_bps or not transfer.arrived:
            continue
        asked_bps = transfer.bitrate_bps * transfer.streams
        rate_bps = (transfer.sent or transfer.arrived).rate_bps
        if rate_bps < ASKED_RATIO * asked_bps or fills_the_link(run, rate_bps):
            continue
        return Finding(
            "application-limited",
            f"{transfer.node} sent {in_mbit(rate_bps)} Mbit/s and was told to send at most {in_mbit(asked_bps)} "
            f"(-b, in {transfer.source})",
            "as much as TCP can send",
            "The program that sends decided how fast, not TCP.",
            symptom=f"{transfer.node}'s flow sent less than its congestion window allowed",
        )
    return None


@check(FindingKind("receive-window"), needs=())
def window_by_iperf3(run: RunUnderTest) -> Finding | None:
    """The receiver's window or the buffer that was asked for, over the round-trip time, against the rate. ss knows better."""
    if run.data_sockets():
        return None
    for transfer in _transfers(run):
        rtt_ms, arrived = transfer.rtt_ms or run.param("rtt_ms"), transfer.arrived
        window, cwnd = transfer.window_bytes, transfer.cwnd_bytes
        if not rtt_ms or not arrived or fills_the_link(run, arrived.rate_bps):
            continue
        in_flight = arrived.rate_bps * rtt_ms / 8e3
        asked = transfer.buffer_bytes and transfer.buffer_bytes * transfer.streams
        # A window as large as the settings allow is what was asked for.
        allowed = run.param("rmem_max_bytes") or run.param("wmem_max_bytes")
        bound = window if window and cwnd and window <= cwnd else asked
        if not bound or (allowed and bound >= 0.4 * allowed):
            continue
        if WINDOW_RATIO * bound <= in_flight <= 1.3 * bound:
            by_option = (
                f"; iperf3 was told to use buffers of {transfer.buffer_bytes} B (-w)"
                if asked
                else ""
            )
            whose = "the receiver's window was" if bound == window else "its buffer was"
            return Finding(
                "receive-window",
                f"{transfer.node} had {in_flight:.0f} B on their way, and {whose} never above {bound} B "
                f"({transfer.source}){by_option}",
                "losses or the link as the only limit",
                "A window a round trip is all that can be sent: the buffers decided how fast the flow may go, not the "
                "congestion control.",
                symptom=f"{transfer.node}'s flow sent less than its congestion window allowed",
            )
    return None


@check(
    FindingKind(
        "processor",
        "How busy iperf3 kept a processor, where the link isn't full.",
        explains=("unexplained",),
        hints=(
            "iperf3 says at its end how busy it kept the processors of both hosts.",
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


# What limits each flow, by each tool's own word, with the share of its time or of its bound: no judgement

# A share of less is no limit.
LEAST_SHARE = 0.01


def limits(run: RunUnderTest) -> list[str]:
    """Return what limits a run's flows: a line for each limit that a tool tells of, the largest share first, then a line
    for each that only another file would tell."""
    state = run.host_state
    shares: list[tuple[float, str]] = []
    for socket in run.data_sockets():
        shares += _by_ss(socket)
    for transfer in state.transfers if state else ():
        shares += _by_iperf3(run, transfer)
    if run.data_sockets() or (state and state.transfers):
        shares += _of_the_path(run)
    texts = [
        text for share, text in sorted(shares, key=lambda pair: -pair[0]) if share >= LEAST_SHARE
    ]
    return [*texts, *_untold(run)]


def _by_ss(socket: Socket) -> Iterator[tuple[float, str]]:
    """Yield each share of a connection's time that ss tells."""
    if socket.busy_s is None or not socket.alive_s:
        return
    who, busy = f"{socket.node}:{socket.port}", min(socket.busy_s / socket.alive_s, 1.0)
    window, buffer = socket.rwnd_limited_ratio, socket.sndbuf_limited_ratio
    usual = f" of {socket.window_usual_bytes} B" if socket.window_usual_bytes else ""
    # What ss has no clock for, each sample shows at its moment.
    rest, moments = busy * max(1 - window - buffer, 0.0), socket.held_up_by
    is_bbr = (socket.congestion_control or "").startswith("bbr")
    none = (
        "the pace that BBR keeps"
        if is_bbr
        else "neither window, nor the program: pacing, or the host's own queue"
    )
    for share, what in (
        (busy * window + rest * moments.get(RECEIVER, 0.0), f"the receiver's window{usual} (ss: rwnd_limited, snd_wnd)"),
        (busy * buffer + rest * moments.get(BUFFER, 0.0), "the sender's own buffer (ss: sndbuf_limited, app_limited)"),
        (1 - busy + rest * moments.get(PROGRAM, 0.0), "the program, which had nothing to send (ss: busy, app_limited)"),
        (rest * moments.get(WINDOW, 0.0), "the congestion window: losses, or what the path holds (ss: unacked, cwnd)"),
        (rest * moments.get(None, 0.0), f"{none} (ss: unacked, less than the windows allow)"),
    ):  # fmt: skip
        yield share, f"{who}: {100 * share:.0f} % of the time {what}"


def _by_iperf3(run: RunUnderTest, transfer: Transfer) -> Iterator[tuple[float, str]]:
    """Yield how near a test came to each bound that it tells of."""
    arrived = transfer.arrived
    if not arrived or not arrived.seconds:
        return
    rate_bps, rtt_ms = arrived.rate_bps, transfer.rtt_ms
    bounds = [
        (least_rate_bps(run), "the link's {} Mbit/s, less headers", payload_limit(1.0)),
        (transfer.bitrate_bps and transfer.bitrate_bps * transfer.streams, "the {} Mbit/s that iperf3 was told (-b)", 1.0),
    ]  # fmt: skip
    if rtt_ms and not run.data_sockets():
        for size, what in (
            (transfer.window_bytes, "the receiver's window"),
            (transfer.cwnd_bytes, "the congestion window"),
        ):
            words = f"the {{}} Mbit/s that {what} of {size or 0:.0f} B makes at {rtt_ms:.4g} ms"
            bounds.append((size and 8e3 * size / rtt_ms, words, 1.0))
    for bound_bps, words, part in bounds:
        if bound_bps:
            share = rate_bps / (part * bound_bps)
            yield (
                share,
                f"{transfer.node}: {100 * share:.0f} % of {words.format(in_mbit(bound_bps))} (iperf3)",
            )
    for whose, percent in (
        ("sender", transfer.own_cpu_percent),
        ("receiver", transfer.other_cpu_percent),
    ):
        if percent:
            yield (
                percent / 100,
                f"{transfer.node}: {percent:.0f} % of the time the {whose}'s processor was busy (iperf3)",
            )
    share = (transfer.retransmits or 0) * USUAL_MSS_BYTES / max(arrived.bytes, 1)
    # More sent again than sent is no count.
    if 0 < share <= 1:
        yield (
            max(share, LEAST_SHARE),
            f"{transfer.node}: {100 * share:.2g} % of its segments sent again (iperf3)",
        )


def _of_the_path(run: RunUnderTest) -> Iterator[tuple[float, str]]:
    """Yield how much of a round trip is spent in queues."""
    least_ms, mean_ms = run.values.get("rtt_min_ms"), run.values.get("rtt_mean_ms")
    if isinstance(least_ms, int | float) and isinstance(mean_ms, int | float) and mean_ms:
        share = max(1 - least_ms / mean_ms, 0.0)
        yield (
            share,
            f"{100 * share:.0f} % of a mean round trip of {mean_ms:.4g} ms spent in queues (ss)",
        )


def _untold(run: RunUnderTest) -> Iterator[str]:
    """Yield what isn't told, and which file would tell it."""
    state = run.host_state
    transfers = state.transfers if state else ()
    sockets = run.data_sockets()
    if not any(socket.busy_s is not None for socket in sockets):
        bring = (
            "the ss of iproute2 4.19 or newer; this one doesn't say it"
            if sockets
            else "ss -ti on the sender, during the test"
        )
        yield f"not told: how long windows, buffers and the program held it up ({bring})"
    if not any(transfer.own_cpu_percent for transfer in transfers):
        yield "not told: how busy the processors were (iperf3 -J, or -V)"
    if transfers and least_rate_bps(run) is None:
        yield "not told: how much of the link was used (--set rate_mbit=...)"
