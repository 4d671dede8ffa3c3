"""What each of the four algorithms does, by its traces."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Iterable
from itertools import groupby

from measuretwice.facts import (
    Facts,
    Number,
    RecordedSets,
    agreed,
    column,
    mbit,
    measured,
    ms,
    param,
    percent,
    seconds,
    table,
    whole,
)
from measuretwice.measure.queue import Queue
from measuretwice.measure.signatures import BBR_LEAST_WINDOW_SEGMENTS
from measuretwice.runs.result import Result
from measuretwice.tcp.model import CUBIC_KEPT_RATIO, shaped_goodput_bps

from .runs import (
    BBR,
    CUBIC,
    GOODPUT,
    PATHS,
    RENO,
    RTT,
    VEGAS,
    algorithm_of,
    mean_of,
    name_of,
    path_bdp_bytes,
)

# The four alone, where hosts let a packet wait for up to 1 ms.
SIGNATURES_WAIT = "signatures-wait-1-ms"
# What CUBIC keeps of its window, by the paper that published it.
PUBLISHED_CUBIC_KEPT = 0.8
# RFC 9438: C, what CUBIC gives up of its window, and how much of a segment its Reno-friendly window grows a round trip.
CUBIC_C, CUBIC_CUT, CUBIC_RENO_STEP = 0.4, 0.3, 0.9 / 1.7


def set_algorithms(f: Facts, sets: RecordedSets) -> None:
    """Set what the pages on the four algorithms quote, and the evidence about them."""
    _traces(f, sets)
    _reno_and_cubic(f, sets)
    _cubic_elsewhere(f, sets)
    _vegas(f, sets)
    _bbr(f, sets)


def _traces(f: Facts, sets: RecordedSets) -> None:
    """The four, each alone on the cable, looked at many times a second: delay beside window."""
    runs = sets.runs("signatures")
    fast = sets.run("signature-of-highspeed")
    f.traces_last = seconds(param(runs[0], "duration_s"))
    f.samples_a_second = whole(1 / param(runs[0], "sample_interval_s"))
    f.highspeed_samples_a_second = whole(1 / param(fast, "sample_interval_s"))
    f.buffer_bdp = Number(param(runs[0], "buffer_bytes") / path_bdp_bytes(runs[0].params), digits=2)
    rows, delays, windows = [], {}, {}
    for run in runs:
        spread = sets.signature(run).spread
        assert spread
        delays[name_of(run)], windows[name_of(run)] = spread.rtt_ms, spread.cwnd_segments
        rows.append(
            (
                name_of(run),
                ms(measured(run, RTT)),
                ms(spread.rtt_ms, 2),
                whole(measured(run, "steady_cwnd_segments"), "segments"),
                Number(spread.cwnd_segments, digits=2),
            )
        )
    f.delay_and_window = table(
        (
            "algorithm", "mean round trip", "its standard deviation", "mean window",
            "its standard deviation",
        ),
        rows,
    )  # fmt: skip
    f.window_varies_most = max(windows, key=lambda name: windows[name])
    f.delay_varies_most = max(delays, key=lambda name: delays[name])
    f.bbrs_window_varies_most_and_its_delay_does_not = (
        f.window_varies_most == "BBR" != f.delay_varies_most
    )
    waiting = {name_of(run): _settled_queue(sets.sender_files(run).queue) for run in runs}
    average = {name: statistics.fmean(packets) for name, packets in waiting.items()}
    f.queues_look_as_described = (
        average["Vegas"] < average["BBR"] < average["Reno"] < average["CUBIC"]
        and average["Vegas"] < 15
        and min(waiting["Reno"]) < 5
        and min(waiting["CUBIC"]) > 50
    )


def _settled_queue(samples: Queue | None) -> list[int]:
    """How many packets waited at each sample from second 20 to 38."""
    assert samples
    return [
        packets
        for when, packets in zip(samples.time_s, samples.backlog_packets, strict=True)
        if 20 < when - samples.time_s[0] < 38
    ]


def _reno_and_cubic(f: Facts, sets: RecordedSets) -> None:
    """Reno's and CUBIC's runs of the set signatures: what each keeps, and CUBIC's curve from loss to loss."""
    reno, cubic = sets.run("signatures", trial=RENO), sets.run("signatures", trial=CUBIC)
    f.reno_kept = Number(measured(reno, "client_kept_ratio"))
    f.reno_rtt, f.cubic_rtt = ms(measured(reno, RTT), 3), ms(measured(cubic, RTT), 3)
    f.cubic_waits_longer_than_reno = measured(cubic, RTT) > measured(reno, RTT)
    kept_ratio = measured(cubic, "client_kept_ratio")
    f.cubic_kept, f.cubic_kept_by_rfc = Number(kept_ratio), Number(CUBIC_KEPT_RATIO)
    by_cable = [run for name in PATHS for run in sets.runs(name, CUBIC)]
    f.cubic_by_cable = whole(len(by_cable))
    f.cubic_keeps_as_published = agreed(
        abs(ratio - PUBLISHED_CUBIC_KEPT) < abs(ratio - CUBIC_KEPT_RATIO)
        for ratio in (kept_ratio, *column(by_cable, "client_kept_ratio"))
    )

    epochs = sets.signature(cubic).epochs
    reno_like = [
        epoch.kept_ratio * epoch.window_segments
        + CUBIC_RENO_STEP * epoch.lasted_s / (measured(cubic, RTT) / 1e3)
        for epoch in epochs
    ]
    f.epochs = table(
        (
            "from", "window at the loss", "kept", "curve heads for", "K", "lasted",
            "passed K?", "$W_{TCP}$ at the end", "window at the end",
        ),
        ((
                seconds(epoch.start_s),
                whole(epoch.window_segments),
                Number(epoch.kept_ratio),
                whole(epoch.target_segments),
                seconds(epoch.k_s),
                seconds(epoch.lasted_s),
                "yes, convex" if epoch.convex else "no",
                whole(reno_segments),
                whole(epoch.end_segments),
            )
            for epoch, reno_segments in zip(epochs, reno_like, strict=True)),
    )  # fmt: skip
    f.some_end_before_k_and_some_after = {epoch.convex for epoch in epochs} == {True, False}
    f.never_reno_friendly = all(
        reno_segments < epoch.end_segments
        for epoch, reno_segments in zip(epochs, reno_like, strict=True)
    )
    # From 600 segments on, after a loss, by the formulas alone; Reno over 70 ms.
    f.cubic_back, f.cubic_doubles = seconds(_cubic_s(CUBIC_CUT * 600)), seconds(_cubic_s(600))
    f.reno_back, f.reno_doubles = seconds(300 * 0.07), seconds(600 * 0.07)


def _cubic_elsewhere(f: Facts, sets: RecordedSets) -> None:
    """CUBIC over a short path (lab queues), and two flows with unlike paths (lab buffers)."""
    near = sets.other("queues").run("two-arms-once", trial=21)
    window = measured(near, "host_1_decrease_window_segments")
    rtt_ms = measured(near, "host_1_rtt_mean_ms")
    between_s = param(near, "duration_s") / measured(near, "host_1_decreases")
    f.near_rtt, f.near_window = ms(rtt_ms), whole(window)
    f.near_curve = seconds(_cubic_s(CUBIC_CUT * window))
    f.near_line = seconds(CUBIC_CUT * window * rtt_ms / 1e3 / CUBIC_RENO_STEP)
    f.near_between = seconds(between_s)
    f.near_is_reno_friendly = between_s < _cubic_s(CUBIC_CUT * window) / 2

    sweep = sets.other("buffers").runs("buffer-sweep")
    shares = {
        (algorithm, size): mean_of(column(list(of_arm), "s1_share"))
        for (algorithm, size), of_arm in groupby(sorted(sweep, key=_arm), _arm)
    }
    sizes = sorted({size for _, size in shares})
    nearer = [
        size for size in sizes if abs(shares["cubic", size] - 0.5) < abs(shares["reno", size] - 0.5)
    ]
    less = [size for size in sizes if shares["cubic", size] < 0.5]
    f.unlike_buffers = whole(len(sizes))
    f.unlike_runs = whole(sum(algorithm_of(run) == "cubic" for run in sweep) / len(sizes))
    f.cubic_is_nearer, f.shorter_has_more = whole(len(nearer)), whole(len(less))
    f.cubic_is_fairer_and_not_fair = len(nearer) > 0.75 * len(sizes) and len(less) > len(sizes) / 2


def _arm(run: Result) -> tuple[str, float]:
    return algorithm_of(run), param(run, "buffer_bytes")


def _vegas(f: Facts, sets: RecordedSets) -> None:
    """How many packets Vegas keeps in the queue, of the set signatures, and where it is still rising, of the case ten-seconds."""
    vegas, rising = sets.run("signatures", trial=VEGAS), sets.run("ten-seconds-fixed")
    settled, risen = sets.signature(vegas).band, sets.signature(rising).band
    assert settled
    assert risen
    f.vegas_least, f.vegas_least_risen = whole(settled.least_packets), whole(risen.least_packets)
    f.both_keep_some_packets = min(settled.least_packets, risen.least_packets) > 0
    f.vegas_waiting = Number(settled.mean_packets)
    f.vegas_goodput = mbit(measured(vegas, GOODPUT))
    reno = sets.run("signatures", trial=RENO)
    f.vegas_fills_the_link = measured(vegas, GOODPUT) > 0.99 * measured(reno, GOODPUT)


def _bbr(f: Facts, sets: RecordedSets) -> None:
    """BBR's run of the set signatures: its cycle of gains, and ProbeRTT."""
    bbr = sets.run("signatures", trial=BBR)
    cycle = sets.signature(bbr).cycle
    assert cycle
    assert cycle.cycle_s
    path_ms, up_ms, down_ms = param(bbr, "wire_rtt_ms"), cycle.phase_ms[1.25], cycle.phase_ms[0.75]
    f.gains = table(
        ("pacing gain", "share of the time"),
        ((Number(gain), percent(share)) for gain, share in cycle.gain_share.items()),
    )
    f.bbr_cycle, f.eight_rounds = seconds(cycle.cycle_s), ms(8 * path_ms)
    f.bbr_up, f.bbr_down = ms(up_ms, 3), ms(down_ms, 3)
    f.bbr_up_waits_for_its_bdp = up_ms > 1.1 * path_ms
    f.bbr_down_takes_a_round = 0.9 * path_ms <= down_ms <= 1.1 * path_ms
    first_s = cycle.probe_rtt_s[0]
    f.probe_rtt_at = _and(map(seconds, cycle.probe_rtt_s))
    f.probe_rtt_takes = _and(map(ms, cycle.probe_rtt_ms))
    f.first_probe_rtt = seconds(first_s)
    f.before_probe_rtt, f.after_probe_rtt = (Number(round(first_s + s, 1)) for s in (-3, 1))
    f.bbr_resent = whole(measured(bbr, "steady_retransmits"))
    waiting = sets.run(SIGNATURES_WAIT, trial=BBR)
    f.bbr_resent_wait = whole(measured(waiting, "steady_retransmits"))
    f.bbr_believes, f.bbr_believes_wait = (
        mbit(_believed_bps(sets, run), 4) for run in (bbr, waiting)
    )
    f.link_goodput = mbit(shaped_goodput_bps(param(bbr, "rate_mbit")), 4)
    f.bbr_believes_too_much = f.bbr_believes_wait.value > 1.01 * f.link_goodput.value
    fell = any(_falls_though_nothing_was_resent(sets, run) for run in (bbr, waiting))
    f.bbr_reacts_to_loss = False if fell else None
    f.bbr_cwnd_over_rate = ms(measured(bbr, "cwnd_over_rate_ms"))
    f.bbr_rtt = ms(measured(bbr, RTT))


def _believed_bps(sets: RecordedSets, run: Result) -> float:
    """The mean rate in bit/s that BBR takes for the path's, `bw` in ss, once it has settled."""
    files = sets.sender_files(run)
    settled_s = files.samples[0].time_s + param(run, "average_from_s")
    return statistics.fmean(
        float(str(socket.algorithm["bw"]).removesuffix("bps"))
        for sample in files.samples
        if sample.time_s > settled_s
        for socket in sample.sockets
        if socket.algorithm and "bw" in socket.algorithm
    )


def _falls_though_nothing_was_resent(sets: RecordedSets, run: Result) -> bool:
    """Return whether a run's window ever fell to ProbeRTT's few segments, while in the second before nothing was sent again."""
    trace = sets.sender_files(run).trace
    windows, times_s = trace.cwnd_segments, trace.time_s
    falls = [
        n
        for n in range(1, len(windows))
        if windows[n] <= BBR_LEAST_WINDOW_SEGMENTS < windows[n - 1]
    ]
    return any(
        trace.retransmits[n] == trace.retransmits[bisect_left(times_s, times_s[n] - 1)]
        for n in falls
    )


def _cubic_s(segments: float) -> float:
    """How long CUBIC's curve takes for so many segments up to its W_max, or away from it."""
    return float((segments / CUBIC_C) ** (1 / 3))


def _and(values: Iterable[Number]) -> str:
    """Return values as a sentence has them: `1 s, 4 s and 7 s`."""
    *others, last = map(str, values)
    return f"{', '.join(others)} and {last}" if others else last
