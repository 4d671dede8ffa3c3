"""What runs cost, the essay, and what cables and hosts do at the network's edges."""

from __future__ import annotations

from collections.abc import Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Numbers,
    RecordedSets,
    cell,
    column,
    mean,
    mean_interval,
    measured,
    ms,
    param,
    percent,
    percents,
    runs_as_rows,
    seconds,
    table,
    whole,
)
from measuretwice.facts.values import Cell
from measuretwice.runs.result import Result
from measuretwice.tcp.traces import WINDOWS, window_arrivals

from .runs import BBR_IN_RENO, BY_BUFFER, LOSSES_AT_CORE, OFFLOADS_ON, RENO

EDGE_CABLES = (
    "edge-cables-20", "edge-cables-50", "edge-cables-100", "edge-cables-200", "edge-cables-1000",
    "edge-ten-times", "edge-no-edges",
)  # fmt: skip
CORE_CABLES = (
    "core-cables-1100", "core-cables-2000", "core-cables-5000", "core-cables-10000",
    "core-cables-25000", "core-no-edges",
)  # fmt: skip
TRAINS = (
    "train-20", "train-50", "train-100", "train-200", "train-1000", "train-10000", "train-no-edges",
)  # fmt: skip
# Drops for each halving, counted after the warm-up and from the start.
BOTH_COUNTS = ("drops_per_halving", "all_drops_per_halving")
# The source's design: how long each run lasts, and how many there are.
SOURCE_LASTS_S, SOURCE_RUNS = 1800, 18


def set_elsewhere(f: Facts, sets: RecordedSets) -> None:
    """Set what the essay, the page on edges and others quote."""
    _cost(f, sets)
    _essay(f, sets)
    _edges(f, sets)
    _cables(f, sets)
    _from_the_start(f, sets)


def _cost(f: Facts, sets: RecordedSets) -> None:
    """How long runs last, and what those of the source's design that aren't recorded would cost."""
    f.intermediate_lasts = seconds(param(sets.run("intermediate", RENO), "duration_s"))
    small, large = sets.run("edge-once", RENO), sets.run("core-no-edges", RENO)
    f.core_lasts = seconds(param(large, "duration_s"))
    f.long_lasts = seconds(param(sets.run("core-long", RENO), "duration_s"))
    took_s = sets.real_s(small)
    segments = (
        measured(small, "segments") * param(small, "duration_s") / measured(small, "duration_s")
    )
    a_second = measured(large, "segments") / measured(large, "duration_s")
    core_s = took_s / segments * a_second
    run_hours = core_s * SOURCE_LASTS_S / 3600
    f.edge_took = seconds(took_s, 2)
    f.edge_segments = Number(segments / 1e6, "million", 2)
    f.segment_takes = Number(1e6 * took_s / segments, "µs", 2)
    f.core_segments = whole(a_second / 1e3, "thousand")
    f.core_second = Number(core_s, "s", 2)
    f.run_takes = Number(run_hours, "hours", 2)
    f.design_takes = whole(SOURCE_RUNS * run_hours, "hours")
    f.core_memory = Number(param(large, "memory_bytes") / 2**30, "GiB", 2)


def _essay(f: Facts, sets: RecordedSets) -> None:
    """What docs/story.md says beside the three sizes of buffers."""
    default, middle, large = (sets.run(name, BBR_IN_RENO) for name in BY_BUFFER)
    f.core_rate = Number(param(default, "rate_mbit") / 1e3, "Gbit/s")
    names = (f"{f.default_send}, Linux's default", f.middle_buffers, f.large_buffers)
    f.by_buffer = table(
        ("largest buffer", "BBR's part", "times the fair share"),
        (
            (
                name,
                percent(measured(run, "rival_share")),
                Number(measured(run, "rival_multiple")),
            )
            for name, run in zip(names, (default, middle, large), strict=True)
        ),
    )
    f.middle_factor = Number(param(middle, "wmem_max_bytes") / param(default, "wmem_max_bytes"))
    f.middle_cant_hold_it = f.needed.value * 1e6 > 2 * param(middle, "wmem_max_bytes")
    f.bbr_ten_runs = Interval.of_mean(
        percents(sets.runs("edge-ten-times", BBR_IN_RENO), "rival_share"), "%"
    )
    f.few_or_many_alike = min(f.bbr_ten_runs.middle_value, f.bbr_large.value) > 30
    once = sets.run("edge-once", BBR_IN_RENO)
    f.bbr_once = percent(measured(once, "rival_share"))
    f.bbr_once_rtt = ms(measured(once, "rtt_mean_ms"))
    f.edge_rate = whole(param(once, "rate_mbit"), "Mbit/s")


def _edges(f: Facts, sets: RecordedSets) -> None:
    """Ten Reno flows at edge, ten runs of each speed of the hosts' cables from the slowest on; a thousand at core, a run
    of each."""
    edge = [sets.runs(name, RENO) for name in EDGE_CABLES]
    core = [sets.runs(name, RENO) for name in CORE_CABLES]
    f.cable = whole(sets.trial(RENO)["cable_mbit"], "Mbit/s")
    f.wait = whole(sets.trial(RENO)["processing_us"], "µs")
    f.edge_kind = f"{edge[0][0].params['flows']} flows at {f.edge_rate}"
    f.core_kind = f"{core[0][0].params['flows']} flows at {f.core_rate}"
    f.edges = table(
        (
            "flows",
            "cables (Mbit/s)",
            "runs",
            "drops for each halving after the warm-up",
            "from the start",
        ),
        (
            (
                kind,
                Number(param(runs[0], "cable_mbit"))
                if runs[0].params["cable_mbit"]
                else "infinitely fast",
                whole(len(runs)),
                *(_mean_or_one(runs, name) for name in BOTH_COUNTS),
            )
            for kind, of_kind in ((f.edge_kind, edge), (f.core_kind, core))
            for runs in of_kind
        ),
    )
    trains = [sets.other("mathis").run(name) for name in TRAINS]
    windows = [window_arrivals(sets.raw_text(run, "router/acks.txt"), "acks.txt") for run in trains]
    f.arrivals = table(
        ("cables (Mbit/s)", *(f"of a window of {size} (µs)" for size in WINDOWS)),
        (
            (whole(param(run, "cable_mbit")), *(Numbers(tuple(times)) for times in arrived))
            for run, arrived in zip(trains, windows, strict=True)
        ),
    )
    f.train_rtt = ms(param(trains[0], "rtt_ms"))
    f.slowest_train_takes_longer = windows[0][-1][-1] > 1e3 * param(trains[0], "rtt_ms")


def _cables(f: Facts, sets: RecordedSets) -> None:
    """Of the same runs: drops for each halving, C and Jain's index by the speed of the hosts' cables."""
    edge = [sets.runs(name, RENO) for name in EDGE_CABLES]
    core = [sets.runs(name, RENO) for name in CORE_CABLES]
    f.cables_last = seconds(param(edge[0][0], "duration_s"))
    means = {
        "drops for each halving": "drops_per_halving",
        "C by drops": "c_by_drops",
        "C by halvings": "c_by_halvings",
    }
    f.cables_edge = table(
        ("cables", "a host waits at most", *means, "Jain's index"),
        (
            (
                _cable(runs[0]),
                _wait(runs[0]),
                *(Interval.of_mean(column(runs, name)) for name in means.values()),
                mean_interval(runs, "jains_index", within=(0, 1)),
            )
            for runs in edge
        ),
    )
    f.core_cables_counted = Numbers(tuple(column([run for run, *_ in core], "duration_s")), "s")
    f.cables_core = runs_as_rows(
        (run for run, *_ in core),
        {
            "cables": _cable,
            "a host waits at most": _wait,
            "halvings": cell("halvings", whole),
            "drops for each halving": cell("drops_per_halving", Number),
            "C by drops": cell("c_by_drops", Number),
            "C by retransmissions": cell("c_by_retransmits", Number),
            "C by halvings": cell("c_by_halvings", Number),
            "Jain's index": cell("jains_index", Number),
        },
    )
    (slow, slow_all), (clean, clean_all) = (
        [mean(runs, name) for name in BOTH_COUNTS] for runs in (edge[0], edge[-1])
    )
    f.clean, f.slow, f.clean_all, f.slow_all = map(Number, (clean, slow, clean_all, slow_all))
    f.slow_and_clean_are_alike = slow < 2 * clean and clean < 2 * slow
    f.slow_has_more = slow > clean
    f.slow_start_overshoots_less = slow_all < clean_all / 2
    after, of_all = ([measured(run, name) for run, *_ in core] for name in BOTH_COUNTS)
    f.core_after = Numbers(tuple(after))
    f.core_after_is_low = max(after) < min(of_all) / 2
    f.core_start_is_high_on_fast = of_all[-1] > 5 * of_all[0]
    f.no_cable_gives_6_to_9 = not any(6 <= ratio <= 9 for ratio in after)
    plain, usual = (
        measured(sets.run(name, RENO), "drops_per_halving")
        for name in ("core-no-edges", "core-cables-10000")
    )
    f.core_clean, f.core_usual = Number(plain), Number(usual)
    f.core_clean_differs = percent(abs(usual / plain - 1), 2)
    f.trains_do_little_at_core = plain < 2 * usual


def _from_the_start(f: Facts, sets: RecordedSets) -> None:
    """Drops for each halving counted after the warm-up and from the start, and how the second goes on falling at core
    with cables without a speed."""
    f.both_counts = table(
        ("flows", "cables", "drops for each halving after the warm-up", "from the start"),
        (
            (what, _cable(runs[0]), *(Number(mean(runs, name)) for name in BOTH_COUNTS))
            for what, names in (
                ("ten, at edge", EDGE_CABLES),
                ("a thousand, at core", CORE_CABLES),
            )
            for runs in (sets.runs(name, RENO) for name in names)
        ),
    )
    of_run = [_start_and_after(sets.run(name, RENO)) for name in (CORE_CABLES[-1], OFFLOADS_ON[1])]
    start_drops, start_cut, drops_s, cut_s = of_run[0]
    f.start_drops, f.start_halvings = whole(start_drops), whole(start_cut)
    f.drops_a_second = Number(drops_s, digits=2)
    f.halvings_a_second = Number(cut_s, digits=2)
    f.offloads_start_drops, f.offloads_start_halvings = whole(of_run[1][0]), whole(of_run[1][1])
    f.offloads_drops_a_second = Number(of_run[1][2], digits=3)
    f.offloads_halvings_a_second = Number(of_run[1][3], digits=3)
    (f.six_after, f.nine_after), (f.six_after_offloads, f.nine_after_offloads) = (
        tuple(
            Number((drops - ratio * cut) / (ratio * cut_s - drops_s) / 60, "minutes", 2)
            for ratio in LOSSES_AT_CORE
        )
        for drops, cut, drops_s, cut_s in of_run
    )


def _start_and_after(run: Result) -> tuple[float, float, float, float]:
    """Return how many drops and halvings a run had until its warm-up ended, and how many a second thereafter."""
    drops, cut = measured(run, "queue_drops"), measured(run, "halvings")
    lasts_s = measured(run, "duration_s")
    return (
        measured(run, "all_queue_drops") - drops,
        measured(run, "all_halvings") - cut,
        drops / lasts_s,
        cut / lasts_s,
    )


def _cable(run: Result) -> Cell:
    cable = param(run, "cable_mbit")
    return whole(cable, "Mbit/s") if cable else "infinitely fast"


def _wait(run: Result) -> Number:
    """How long a run's hosts wait at most until they look at a packet."""
    return whole(param(run, "processing_us"), "µs")


def _mean_or_one(runs: Sequence[Result], name: str) -> Number | Interval:
    values = column(runs, name)
    return Interval.of_mean(values) if len(values) > 1 else Number(values[0])
