"""What hosts that let packets wait do to each claim: the setting that nobody published."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Numbers,
    RecordedSets,
    column,
    mean,
    mean_interval,
    measured,
    ms,
    param,
    percents,
    table,
    us,
    whole,
)
from measuretwice.facts.values import Cell, Probability
from measuretwice.measure.signatures import BBR_LEAST_WINDOW_SEGMENTS
from measuretwice.parse.ss import parse_ss_samples
from measuretwice.runs.result import Result
from measuretwice.runs.series import STEP_S, FlowSeries, jains_over_time, series_of_run
from measuretwice.stats.intervals import jains_index
from measuretwice.stats.two_samples import rank_sum

from .runs import BBR, BBR_IN_CUBIC, BBR_IN_RENO, CUBIC_IN_RENO, RENO, pooled_c
from .testbeds import CLOUDLAB, FABRIC, published_losses

USUAL = "edge-ten-times"
# Ten Reno flows at edge, by how long a host may let a packet wait; then by how often it takes a batch.
WAITS = (USUAL, "edge-wait-100-us", "edge-wait-1-ms", "edge-wait-5-ms", "edge-wait-20-ms")
BATCHES = ("edge-batch-100-us", "edge-batch-1-ms", "edge-batch-5-ms", "edge-batch-20-ms")
LONG_WAITS = (
    "edge-long-30-wait-1-ms", "edge-long-30-wait-5-ms", "edge-long-50-wait-1-ms", "edge-long-50-wait-5-ms",
)  # fmt: skip
MIXES_WAIT = "edge-mixes-wait-1-ms"
CORE_WAIT, HALVES_WAIT = "core-wait-1-ms", "core-half-wait-1-ms"
# Crowds of BBR flows that run for ten minutes or more; steady is what their last five minutes say.
BBR_CROWD, BBR_CORE, STEADY_S = "intermediate-300-bbr-long", "core-bbr-long", 300
# What lasts is even above this index; a minute is so many steps of a series.
STEADILY_EVEN, MINUTE_STEPS = 0.9, 60 // STEP_S
# A crowd at edge that finds its common step, with its raw files.
EDGE_CROWD, HOSTS = "edge-150-bbr", 10
# One BBR flow against 999 of CUBIC: its share is of the last so many seconds.
ONE_BBR, ONE_BBR_S = "core-one-bbr-long", 100


def set_waits(f: Facts, sets: RecordedSets) -> None:
    """Set what hosts.md quotes, and what verdicts take of other waits and of longer runs."""
    _sweep(f, sets)
    _batches(f, sets)
    _more_flows(f, sets)
    _mixes(f, sets)
    _common_step(f, sets)
    _crowds_of_bbr(f, sets)
    _one_bbr(f, sets)


def _sweep(f: Facts, sets: RecordedSets) -> None:
    """Ten Reno flows at edge, ten runs of each of the hosts' waits."""
    by_wait = [sets.runs(name, RENO) for name in WAITS]
    means = [mean(runs, "drops_per_halving") for runs in by_wait]
    cs = [mean(runs, "c_by_halvings") for runs in by_wait]
    f.waits = table(
        (
            "a host waits up to", "drops for each halving", "C by drops", "C by halvings", "halvings per run",
            "mean round trip (ms)",
        ),
        (_row(_wait(runs), runs) for runs in by_wait),
    )  # fmt: skip
    f.wait_factor = Number(means[-1] / means[0], digits=2)
    f.waits_multiply_drops = means == sorted(means) and means[-1] > 3 * means[0]
    f.c_by_halvings_stays = max(cs) <= 1.1 * min(cs)
    f.wait_longest = mean_interval(by_wait[-1], "drops_per_halving")
    f.wait_with_offloads, f.wait_without_offloads = (
        mean_interval(sets.runs(name, RENO), "drops_per_halving")
        for name in ("edge-offloads-wait-5-ms", "edge-wait-5-ms")
    )
    of_edge = published_losses(sets)[
        str(by_wait[0][0].params["rtt_ms"]), str(by_wait[0][0].params["flows"])
    ]
    cloudlab, fabric = of_edge.drops_each(CLOUDLAB), of_edge.drops_each(FABRIC)
    f.cloudlab_edge_drops, f.fabric_edge_drops = Number(cloudlab), Number(fabric)
    f.cloudlab_lies_within = means[0] < cloudlab < means[-1]
    f.fabric_lies_beyond = max(means) < fabric


def _batches(f: Facts, sets: RecordedSets) -> None:
    """The same by batches: what came in the time, all at once."""
    by_batch = [sets.runs(name, RENO) for name in BATCHES]
    halved = [[run for run in runs if measured(run, "halvings")] for runs in by_batch]
    f.batches = table(
        (
            "a host takes batches every", "drops for each halving", "C by drops", "C by halvings", "halvings per run",
            "mean round trip (ms)",
        ),
        (
            _row(_wait(runs), runs) if len(some) == len(runs) else _odd_row(_wait(runs), runs, len(some))
            for runs, some in zip(by_batch, halved, strict=True)
        ),
    )  # fmt: skip
    f.longest_batch_never_halves = whole(len(by_batch[-1]) - len(halved[-1]))
    f.longest_batch_mostly_never_halves = len(halved[-1]) < len(by_batch[-1]) / 2
    f.longest_batch_runs = whole(len(by_batch[-1]))
    f.longest_batch_rate = Interval.of_mean(percents(by_batch[-1], "utilisation"), "%")


def _more_flows(f: Facts, sets: RecordedSets) -> None:
    """Thirty and fifty Reno flows at edge for half an hour, and a thousand at core, by the hosts' wait."""
    names = (
        ("edge-long-30", *LONG_WAITS[:2]),
        ("edge-long-50", *LONG_WAITS[2:]),
        ("core", CORE_WAIT),
    )
    runs = [sets.run(name, RENO) for row in names for name in row]
    f.more_flows = table(
        (
            "flows", "a host waits up to", "time counted", "halvings per flow", "drops for each halving",
            "C by drops", "C by halvings", "Jain's index",
        ),
        (
            (
                whole(measured(run, "flows")),
                _wait([run]),
                Number(measured(run, "duration_s") / 60, "min", 2),
                Number(measured(run, "halvings") / measured(run, "flows"), digits=2),
                Number(measured(run, "drops_per_halving")),
                Number(measured(run, "c_by_drops")),
                Number(measured(run, "c_by_halvings")),
                Number(measured(run, "jains_index")),
            )
            for run in runs
        ),
    )  # fmt: skip
    core, waiting = sets.run("core", RENO), sets.run(CORE_WAIT, RENO)
    f.core_short_drops = Number(measured(core, "drops_per_halving"))
    f.core_wait_each = Number(measured(waiting, "halvings") / measured(waiting, "flows"), digits=2)
    f.a_millisecond_doubles_core = measured(waiting, "drops_per_halving") > 2 * measured(
        core, "drops_per_halving"
    )
    f.core_wait_drops = Number(measured(sets.run(CORE_WAIT, RENO), "drops_per_halving"))
    f.core_wait_pooled = Number(pooled_c(sets.run(CORE_WAIT, RENO)))
    f.core_wait_c = Number(measured(sets.run(CORE_WAIT, RENO), "c_by_halvings"))
    f.core_wait_c_drops = Number(measured(sets.run(CORE_WAIT, RENO), "c_by_drops"))
    f.edge_wait_c_drops = mean_interval(sets.runs(WAITS[2], RENO), "c_by_drops").middle


def _mixes(f: Facts, sets: RecordedSets) -> None:
    """Ten runs of each mix at edge, at both waits."""
    rows: list[tuple[Cell, ...]] = []
    for trial in (CUBIC_IN_RENO, BBR_IN_RENO, BBR_IN_CUBIC):
        usual, waiting = sets.runs(USUAL, trial), sets.runs(MIXES_WAIT, trial)
        shares = [percents(runs, "rival_share") for runs in (usual, waiting)]
        rows.append(
            (
                "{rival} against {congestion_control}".format(**usual[0].params),
                *(Interval.of_mean(share, "%") for share in shares),
                Probability(rank_sum(*shares).p),
            )
        )
    f.mixes_by_wait = table(
        (
            "share of the first-named",
            _wait(sets.runs(USUAL)),
            _wait(sets.runs(MIXES_WAIT)),
            "p (ranks)",
        ),
        rows,
    )
    f.cubic_edge_usual, f.cubic_edge_wait, f.bbr_edge_usual, f.bbr_edge_wait = (
        Interval.of_mean(percents(sets.runs(name, trial), "rival_share"), "%")
        for trial in (CUBIC_IN_RENO, BBR_IN_RENO)
        for name in (USUAL, MIXES_WAIT)
    )
    f.cubic_takes_less_when_hosts_wait = f.cubic_edge_wait.high_value < f.cubic_edge_usual.low_value
    halves = [measured(sets.run(name, CUBIC_IN_RENO), "rival_share") for name in ("core-half", HALVES_WAIT)]  # fmt: skip
    f.cubic_core_usual, f.cubic_core_wait = (Number(100 * share, "%") for share in halves)


def steady_index(flows: Sequence[FlowSeries]) -> float:
    """Return Jain's index of what flows got in the last `STEADY_S` that all of them have."""
    common = min(len(flow.acked_bytes) for flow in flows)
    last = slice(common - STEADY_S // STEP_S, common)
    return jains_index([float(sum(flow.acked_bytes[last])) for flow in flows])


def late_share(flows: Sequence[FlowSeries], rival: str) -> float:
    """Return the rivals' part, as a ratio, of what all flows got in the last `ONE_BBR_S` that all of them have."""
    common = min(len(flow.acked_bytes) for flow in flows)
    last = slice(common - ONE_BBR_S // STEP_S, common)
    of_all = sum(sum(flow.acked_bytes[last]) for flow in flows)
    of_rival = sum(sum(flow.acked_bytes[last]) for flow in flows if flow.congestion_control == rival)  # fmt: skip
    return of_rival / of_all


def _crowds_of_bbr(f: Facts, sets: RecordedSets) -> None:
    """Crowds of BBR flows over time: Jain's index of each minute, of the last five, and from when on they are even."""
    crowds = [sets.series(BBR_CROWD, BBR, run.seed) for run in sets.runs(BBR_CROWD, BBR)]
    core = sets.series(BBR_CORE, BBR)
    f.bbr_steady_crowds = Numbers(tuple(map(steady_index, crowds)), digits=4)
    f.bbr_steady_core = Number(steady_index(core), digits=4)
    minutes = [jains_over_time(flows, MINUTE_STEPS) for flows in crowds]
    even_from = [even_from_s(points) for points in minutes]
    f.bbr_crowds_even_from = Numbers(
        tuple(from_s / 60 for from_s in even_from if from_s is not None), "min", 2
    )
    f.bbr_crowds_become_even = None not in even_from
    uneven = [
        index
        for points, from_s in zip(minutes, even_from, strict=True)
        for end_s, index in points
        if from_s is None or end_s < from_s - 60
    ]
    f.bbr_crowds_uneven = Numbers((min(uneven), max(uneven)), digits=2)
    of_core = even_from_s(jains_over_time(core, MINUTE_STEPS))
    f.bbr_core_becomes_even = of_core is not None
    f.bbr_core_even_from = Number((of_core or 0) / 60, "min", 2)


def even_from_s(points: Sequence[tuple[int, float]]) -> int | None:
    """Return the end of the first span from which on all are even; None where the last isn't."""
    from_s = None
    for end_s, index in reversed(points):
        if index < STEADILY_EVEN:
            break
        from_s = end_s
    return from_s


def _common_step(f: Facts, sets: RecordedSets) -> None:
    """A crowd of BBR flows at edge, looked at every five seconds: how many are in ProbeRTT at once, and which least round trip
    they believe in."""
    run = sets.run(EDGE_CROWD, BBR)
    every_s = param(run, "sample_interval_s")
    samples = [
        sample
        for host in range(HOSTS)
        for sample in parse_ss_samples(sets.raw_text(run, f"sender-{host}/ss.txt"), "ss.txt")
    ]
    begin_s = min(sample.time_s for sample in samples)
    seen: dict[int, list[tuple[float, bool]]] = {}
    for sample in samples:
        at = round((sample.time_s - begin_s) / every_s)
        seen.setdefault(at, []).extend(
            (float(str(state["mrtt"])), (socket.cwnd_segments or 0) <= BBR_LEAST_WINDOW_SEGMENTS)
            for socket in sample.sockets
            if (state := socket.algorithm) and "mrtt" in state
        )
    rows = [
        (at * every_s, [rtt for rtt, _ in flows], sum(probes for _, probes in flows))
        for at, flows in sorted(seen.items())
        if len(flows) == param(run, "flows")
    ]
    halved = next(
        n
        for n in range(1, len(rows))
        if statistics.median(rows[n][1]) < 0.5 * statistics.median(rows[n - 1][1])
    )
    before, after = rows[:halved], rows[halved:]
    f.step_at = whole(after[0][0], "s")
    f.step_rtt_before = ms(statistics.median(statistics.median(rtts) for _, rtts, _ in before))
    f.step_rtt_after = ms(statistics.median(statistics.median(rtts) for _, rtts, _ in after[2:]))
    f.step_probing_after = whole(max(probes for _, _, probes in after))
    f.step_all_probe_at_once = f.step_probing_after.value == param(run, "flows")
    points = jains_over_time(series_of_run(sets.lab, run), 3)
    f.step_index_first, f.step_index_last = Number(points[0][1]), Number(points[-1][1], digits=4)


def _one_bbr(f: Facts, sets: RecordedSets) -> None:
    """One BBR flow among 999 of CUBIC for five minutes, two seeds."""
    runs = sets.runs(ONE_BBR, BBR_IN_CUBIC)
    series = [sets.series(ONE_BBR, BBR_IN_CUBIC, run.seed) for run in runs]
    f.bbr_late_in_cubic = Numbers(tuple(100 * late_share(flows, "bbr") for flows in series), "%")
    thirty = 30 // STEP_S
    f.bbr_needs_a_minute = all(
        _part(flows, 2 * thirty, thirty) < late_share(flows, "bbr") * 100 / 2 for flows in series
    )
    f.bbr_grows = table(
        ("the 30 s that end at", *(f"seed {run.seed}" for run in runs)),
        (
            (whole(end * STEP_S, "s"), *(Number(_part(flows, end, thirty), "%") for flows in series))
            for end in range(thirty, min(len(flow.acked_bytes) for flow in series[0]) + 1, thirty)
        ),
    )  # fmt: skip


def _part(flows: Sequence[FlowSeries], end: int, steps: int) -> float:
    """Return BBR's part in percent of what all got in the `steps` that end there."""
    got = [
        (flow.congestion_control, sum(flow.acked_bytes[max(0, end - steps) : end]))
        for flow in flows
    ]
    of_all = sum(bytes_ for _, bytes_ in got)
    return 100 * sum(bytes_ for name, bytes_ in got if name == "bbr") / of_all if of_all else 0.0


def _wait(runs: Sequence[Result]) -> str:
    return str(us(param(runs[0], "processing_us")))


def _row(wait: str, runs: Sequence[Result]) -> tuple[Cell, ...]:
    return (
        wait,
        *(mean_interval(runs, name) for name in ("drops_per_halving", "c_by_drops", "c_by_halvings")),
        whole(mean(runs, "halvings")),
        whole(mean(runs, "rtt_mean_ms")),
    )  # fmt: skip


def _odd_row(wait: str, runs: Sequence[Result], halved: int) -> tuple[Cell, ...]:
    never = f"no halving in {len(runs) - halved} of {len(runs)}"
    return (wait, never, "", "", whole(sum(column(runs, "halvings")) / len(runs)), whole(mean(runs, "rtt_mean_ms")))  # fmt: skip
