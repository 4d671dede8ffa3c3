"""What became of the source's claims."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Numbers,
    RecordedSets,
    agreed,
    cell,
    column,
    judge,
    mbit,
    mean,
    mean_interval,
    measured,
    ms,
    param,
    per,
    percent,
    percents,
    runs_as_rows,
    seconds,
    set_cell,
    table,
    whole,
)
from measuretwice.facts.values import Cell, count
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import ratio_bounds
from measuretwice.tcp.model import drain_ms

from .moves import witnessed_shares
from .runs import (
    BBR,
    BBR_IN_CUBIC,
    BBR_IN_RENO,
    BY_BUFFER,
    CROWD_WAIT,
    CUBIC,
    CUBIC_IN_RENO,
    DEFAULT_WAIT,
    HALF_HOUR,
    HALVES,
    LARGE_WAIT,
    LOSSES_AT_CORE,
    LOSSES_AT_EDGE,
    OFFLOADS_ON,
    OTHERS_WAIT,
    RENO,
    RENO_RUNS,
    pooled_c,
)
from .testbeds import CLOUDLAB, FABRIC, published_fairness, published_losses
from .waits import CORE_WAIT, HALVES_WAIT, LONG_WAITS, STEADILY_EVEN, USUAL, WAITS

CROWDS = ("intermediate-300", "intermediate-500", "core")
EACH_SCALE = (*HALF_HOUR, "intermediate", "intermediate-300", "intermediate-500", "core-long")
# Edge has so many flows at most, a crowd so many at least.
EDGE_FLOWS, CROWD_FLOWS = 50, 300
BASE_DELAYS = ("core", "core-100-ms", "core-200-ms")
INDEX_RUNS = (*RENO_RUNS[:-1], "core-100-ms", "core-200-ms")
MIXES = (
    "edge-once", "edge-100-ms", "edge-200-ms", "intermediate", "intermediate-half", "core",
    "core-large-windows", *HALVES,
)  # fmt: skip
# The claims as they were published, and how they are taken where they give no range.
SAME_C, FAIR_INDEX = 1.1, 0.99
UNFAIR_AT_CORE, UNFAIR_AT_EDGE = 0.5, 0.75
CUBIC_TAKES, BBR_TAKES = (0.7, 0.8), (0.35, 0.45)
BBR_TAKES_PUBLISHED, BBR_TAKES_REPRODUCED = 0.4, 0.0096
# Fewer halvings a flow than this don't even out; with fewer than the second slow start still shows.
EVEN_AFTER, SLOW_START_SHOWS = 20, 3


def set_results(f: Facts, sets: RecordedSets) -> None:
    """Set what results.md and its slides quote."""
    _one_c(f, sets)
    _drops_for_each(f, sets)
    _ten_runs(f, sets)
    _how_long(f, sets)
    _fair_among_equals(f, sets)
    _slowest_flows(f, sets)
    _fair_among_others(f, sets)
    _buffers(f, sets)


def _one_c(f: Facts, sets: RecordedSets) -> None:
    """Reno alone, a run of each scale: C by halvings."""
    runs = [sets.run(name, RENO) for name in EACH_SCALE]
    c = column(runs, "c_by_halvings")
    swept = [sets.runs(name, RENO) for name in WAITS]
    waiting = [sets.run(name, RENO) for name in LONG_WAITS]
    pooled = [pooled_c(run) for run in (*runs, *waiting)]
    pooled += [statistics.fmean(map(pooled_c, of_wait)) for of_wait in swept]
    f.c_is_one = max(pooled) <= SAME_C * min(pooled)
    f.c_pooled = Numbers(tuple(pooled))
    f.c_pooled_runs = whole(len(runs) + len(waiting) + sum(map(len, swept)))
    f.c = Numbers(tuple(c))
    up_to_a_hundred = column(runs[:4], "c_by_halvings")
    f.c_to_100 = Numbers(tuple(up_to_a_hundred))
    f.c_is_one_up_to_a_hundred = max(up_to_a_hundred) <= SAME_C * min(up_to_a_hundred)
    f.c_cubic = Number(measured(sets.run("edge-once", CUBIC), "c_by_halvings"))

    alone = [sets.run(name, RENO, seed=1) for name in RENO_RUNS]
    f.reno_runs = runs_as_rows(
        alone,
        {
            "run": set_cell,
            "flows": cell("flows", whole),
            "time counted": cell("duration_s", seconds),
            "halvings": cell("halvings", whole),
            "drops for each halving": cell("drops_per_halving", Number),
            "retransmissions for each halving": cell("retransmits_per_halving", Number),
            "C by drops": cell("c_by_drops", Number),
            "C by retransmissions": cell("c_by_retransmits", Number),
            "C by halvings, and its range by chance": lambda run: _by_chance(run, "c_by_halvings"),
        },
    )
    f.three_c = runs_as_rows(
        alone,
        {
            "run": set_cell,
            "root of drops for each halving": cell("drops_per_halving", _root),
            "C by drops over C by halvings": lambda run: Number(
                per(run, "c_by_drops", "c_by_halvings")
            ),
            "root of retransmissions for each halving": cell("retransmits_per_halving", _root),
            "C by retransmissions over C by halvings": lambda run: Number(
                per(run, "c_by_retransmits", "c_by_halvings")
            ),
            "flows without a halving": _never_halved,
            "retransmissions for each drop": lambda run: Number(
                per(run, "retransmits", "queue_drops")
            ),
        },
    )
    far = [
        set_cell(run)
        for run in alone
        if not 0.95
        <= per(run, "c_by_drops", "c_by_halvings") / measured(run, "drops_per_halving") ** 0.5
        <= 1.05
    ]
    f.root_runs = Number(len(alone))
    f.root_holds = Number(len(alone) - len(far))
    f.root_not = ", ".join(far)


def _drops_for_each(f: Facts, sets: RecordedSets) -> None:
    """Reno alone: drops for each halving, and C by drops."""
    edge = [sets.run(name, RENO) for name in HALF_HOUR]
    core, core_long = sets.run("core", RENO), sets.run("core-long", RENO)
    c_core, c_edge = _by_chance(core_long, "c_by_drops"), column(edge, "c_by_drops")
    # At each wait that was recorded at both scales.
    above = [
        measured(core_run, "c_by_drops") > mean_interval(sets.runs(name, RENO), "c_by_drops").high_value
        for core_run, name in ((core_long, USUAL), (sets.run(CORE_WAIT, RENO), WAITS[2]))
    ]  # fmt: skip
    offloads_edge, offloads_core = (sets.runs(name, RENO) for name in OFFLOADS_ON)
    above.append(
        measured(offloads_core[0], "c_by_drops")
        > mean_interval(offloads_edge, "c_by_drops").high_value
    )
    f.c_drops_offloads = Numbers(
        (mean(offloads_edge, "c_by_drops"), measured(offloads_core[0], "c_by_drops"))
    )
    losses = published_losses(sets)
    both = {
        testbed: [losses["20", flows].value(testbed, "c_by_drops") for flows in ("10", "1000")]
        for testbed in (CLOUDLAB, FABRIC)
    }
    f.c_drops_fabric = Numbers(tuple(both[FABRIC]))
    f.c_drops_by_scale = agreed([*above, *(core > at_edge for at_edge, core in both.values())])
    f.c_drops_edge = Numbers(tuple(c_edge))
    f.c_drops_core = c_core
    f.c_drops_100 = Number(measured(sets.run("intermediate", RENO), "c_by_drops"))
    f.c_drops_factor = Number(c_core.middle_value / max(c_edge))
    f.c_drops_halvings = whole(sum(column([*edge, core_long], "halvings")))
    f.c_drops_paper = Numbers(
        tuple((losses / LOSSES_AT_EDGE) ** 0.5 for losses in LOSSES_AT_CORE), digits=2
    )

    at_edge = column(edge, "drops_per_halving")
    waiting = column([sets.run(name, RENO) for name in LONG_WAITS], "drops_per_halving")
    f.edge_has_1_7 = judge(
        [*at_edge, *waiting], least=LOSSES_AT_EDGE - 0.05, most=LOSSES_AT_EDGE + 0.05
    )
    f.drops_edge_waiting = Numbers(tuple(waiting))
    f.drops_30_waiting, f.drops_50_waiting = (
        Numbers(tuple(of_flows)) for of_flows in (waiting[:2], waiting[2:])
    )
    f.drops_edge = Numbers(tuple(at_edge))
    f.edge_flows = Numbers(tuple(column(edge, "flows")))
    f.edge_halvings = whole(sum(column(edge, "halvings")))

    core_waits = sets.run(CORE_WAIT, RENO)
    at_core = column([core, core_long, core_waits], "drops_per_halving")
    low, high = LOSSES_AT_CORE
    # A wait that was tried at edge alone may make it as many.
    reached = max(at_core[:2]) * f.wait_factor.value >= low
    f.core_has_6_to_9 = (
        None if reached and max(at_core) < low else judge(at_core, least=low, most=high)
    )
    f.core_has_fewer = max(at_core) < low
    f.drops_core = Numbers(tuple(at_core))
    f.core_both = whole(sum(column([core, core_long, core_waits], "halvings")))
    f.core_would_have = Number(max(at_core[:2]) * f.wait_factor.value, digits=2)
    f.core_resent = whole(measured(core, "retransmits"))
    f.core_drops = whole(measured(core, "queue_drops"))
    f.core_spurious = whole(measured(core, "spurious_retransmits"))


def _ten_runs(f: Facts, sets: RecordedSets) -> None:
    """Ten flows of Reno at edge, ten runs; and six over a base delay of 100 ms."""
    runs = sets.runs("edge-ten-times", RENO)
    f.ten_last = seconds(param(runs[0], "duration_s"))
    f.ten_drops = mean_interval(runs, "drops_per_halving")
    f.ten_drops_each = Numbers(tuple(column(runs, "drops_per_halving")))
    f.ten_c_drops = mean_interval(runs, "c_by_drops")
    f.ten_c_drops_each = Numbers(tuple(column(runs, "c_by_drops")))
    f.ten_c_resent = mean_interval(runs, "c_by_retransmits")
    f.ten_c = mean_interval(runs, "c_by_halvings")

    far = measured(sets.run("edge-100-ms", RENO), "drops_per_halving")
    six = sets.runs("edge-100-ms-six-times", RENO)
    drops = column(six, "drops_per_halving")
    f.far_drops = Number(far)
    f.far_is_as_others = min(drops) / 1.5 <= far <= 1.5 * max(drops)
    f.six_each = Numbers(tuple(drops))
    f.six_drops = Interval.of_mean(drops)
    f.six_c = mean_interval(six, "c_by_halvings")


def _how_long(f: Facts, sets: RecordedSets) -> None:
    """A thousand flows at core: how many halvings a run has, and how many each needs."""
    reno, cubic, longer = (
        sets.run("core", RENO),
        sets.run("core", CUBIC),
        sets.run("core-long", RENO),
    )
    flows, rtt_s = measured(reno, "flows"), measured(reno, "rtt_mean_ms") / 1e3
    window = measured(reno, "goodput_bps") / flows * rtt_s / 8 / measured(reno, "mss_bytes")
    f.core_flows = whole(flows)
    f.core_rtt = ms(measured(reno, "rtt_mean_ms"))
    f.core_window = Number(window, digits=2)
    f.core_regrows = seconds(window / 2 * rtt_s, 2)
    f.core_counted = seconds(measured(reno, "duration_s"))
    f.core_halvings = whole(measured(reno, "halvings"))
    f.core_each = Number(measured(reno, "halvings") / flows, digits=2)
    f.core_shows_slow_start = measured(reno, "halvings") < SLOW_START_SHOWS * flows
    f.cubic_counted = seconds(measured(cubic, "duration_s"))
    f.cubic_halvings = whole(measured(cubic, "halvings"))
    f.cubic_drops = Number(measured(cubic, "drops_per_halving"), digits=2)

    halvings = measured(longer, "halvings") / measured(longer, "flows")
    lost = sorted(flow.retransmits / flow.halvings for flow in longer.flows if flow.halvings)
    f.long_counted = seconds(measured(longer, "duration_s"))
    f.long_warmup = seconds(param(longer, "warmup_s"))
    f.long_halvings = whole(measured(longer, "halvings"))
    f.long_each = Number(halvings, digits=2)
    f.long_is_too_short = halvings < EVEN_AFTER
    f.long_drops = Number(measured(longer, "drops_per_halving"))
    f.long_c = Number(measured(longer, "c_by_halvings"))
    f.long_index = Number(measured(longer, "jains_index"))
    f.long_lucky = Number(lost[len(lost) // 10], digits=2)
    f.long_unlucky = Number(lost[9 * len(lost) // 10], digits=2)


def _fair_among_equals(f: Facts, sets: RecordedSets) -> None:
    """Jain's index of each algorithm alone."""
    ten = [sets.runs("edge-ten-times", trial) for trial in (RENO, CUBIC, BBR)]
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *_counted(sets.run(name, RENO)),
            *(Number(_index(sets, name, trial)) for trial in (RENO, CUBIC, BBR)),
        )
        for name in INDEX_RUNS
    ]
    rows.append(
        (
            "ten runs, edge",
            *_counted(ten[0][0]),
            *(mean_interval(runs, "jains_index", within=(0, 1)) for runs in ten),
        )
    )
    f.indices = table(("run", "flows", "time counted", "reno", "cubic", "bbr"), rows)
    edge = [_index(sets, name, trial) for name in HALF_HOUR for trial in (RENO, CUBIC)]
    edge += [_index(sets, name, RENO) for name in LONG_WAITS]
    edge += [_index(sets, name, CUBIC) for name in OTHERS_WAIT]
    # A testbed's cell that says otherwise keeps a claim open: hosts and paths differ there, and ours don't.
    of_testbeds = _indices_of_testbeds(sets, ("reno", "cubic"), most_flows=EDGE_FLOWS)
    f.even_at_edge = agreed([judge(edge, least=FAIR_INDEX), judge(of_testbeds, least=FAIR_INDEX)])
    f.even_edge_testbeds = Numbers((min(of_testbeds), max(of_testbeds)))
    f.edge_index = Numbers(tuple(edge), digits=4)
    f.reno_index = Number(_index(sets, "edge-long", RENO), digits=4)
    f.cubic_index = Number(_index(sets, "edge-long", CUBIC), digits=4)
    f.ten_are_even = min(_index(sets, "edge-long", trial) for trial in (RENO, CUBIC)) > FAIR_INDEX

    core = (_index(sets, "core-long", RENO), _index(sets, "core", CUBIC))
    too_short = f.holds("long_is_too_short")
    f.even_at_core = None if too_short else judge(core, least=FAIR_INDEX)
    f.cubic_core_index = Number(core[1])
    f.core_reno_index = Number(_index(sets, "core", RENO))

    bbr_core = [_index(sets, name, BBR) for name in BASE_DELAYS]
    others = [
        min(_index(sets, name, trial) for trial in (RENO, CUBIC) if sets.runs(name, trial))
        for name in BASE_DELAYS
    ]
    crowds_wait = column(sets.runs(CROWD_WAIT, BBR), "jains_index")
    f.bbr_crowds_wait = Numbers(tuple(crowds_wait))
    # At the longer wait as at the shorter one, of three runs two stay uneven for minutes and one is soon even.
    f.crowds_depend_on_chance = min(crowds_wait) < UNFAIR_AT_CORE < STEADILY_EVEN < max(crowds_wait)
    # Where others are as uneven in the same minutes, it says nothing of BBR.
    f.bbr_uneven_early_at_core = agreed(
        [judge(bbr_core, most=UNFAIR_AT_CORE), judge(crowds_wait, most=UNFAIR_AT_CORE)]
        + [bbr < other for bbr, other in zip(bbr_core, others, strict=True)]
    )
    f.others_early_at_core = Numbers(tuple(others))
    f.bbr_core_index = Numbers(tuple(bbr_core))
    steady = [*f.bbr_steady_crowds.values, f.bbr_steady_core.value]
    f.bbr_steady_index = Numbers(tuple(steady), digits=5)
    crowds = _indices_of_testbeds(sets, ("bbr",), least_flows=CROWD_FLOWS)
    f.bbr_crowds_of_testbeds = Numbers((min(crowds), max(crowds)), digits=2)
    if max(steady) <= UNFAIR_AT_CORE:
        f.bbr_uneven_at_core = True
    elif min(*steady, *crowds) > STEADILY_EVEN:
        f.bbr_uneven_at_core = False
    else:
        f.bbr_uneven_at_core = None
    f.bbr_becomes_even = min(steady) > STEADILY_EVEN
    bbr_edge = [_index(sets, name, BBR) for name in HALF_HOUR]
    waiting = [_index(sets, name, BBR) for name in OTHERS_WAIT]
    testbeds = _indices_of_testbeds(sets, ("bbr",), most_flows=EDGE_FLOWS)
    f.bbr_edge_testbeds = Numbers((min(testbeds), max(testbeds)), digits=2)
    f.bbr_is_even_at_our_edge = min(*bbr_edge, *waiting) > UNFAIR_AT_EDGE
    # "Down to": one of our runs is enough; and one of a testbed's keeps it open.
    if min(*bbr_edge, *waiting) <= UNFAIR_AT_EDGE:
        f.bbr_uneven_at_edge = True
    else:
        f.bbr_uneven_at_edge = None if min(testbeds) <= UNFAIR_AT_EDGE else False
    f.bbr_edge_index = Numbers(tuple(bbr_edge), digits=5)
    f.bbr_edge_index_wait = Numbers(tuple(waiting), digits=5)
    f.bbr_more = Numbers(tuple(bbr_edge[1:]), digits=4)
    crowds = [_index(sets, name, BBR) for name in CROWDS]
    f.bbr_uneven_in_crowds = max(crowds) < UNFAIR_AT_CORE
    f.bbr_crowd_short = Number(crowds[0])
    f.bbr_counted = seconds(measured(sets.run("core", BBR), "duration_s"))

    bbr = sets.run("edge-once", BBR)
    f.bbr_ten = Number(_index(sets, "edge-once", BBR), digits=4)
    f.bbr_ten_are_even = _index(sets, "edge-once", BBR) >= FAIR_INDEX
    f.bbr_drops = whole(measured(bbr, "queue_drops"))
    f.bbr_queue = ms(measured(bbr, "queue_delay_mean_ms"))
    f.reno_queue = ms(measured(sets.run("edge-once", RENO), "queue_delay_mean_ms"))
    f.bbr_200 = Number(_index(sets, "edge-200-ms", BBR))
    f.bbr_200_drops = whole(measured(sets.run("edge-200-ms", BBR), "queue_drops"))


def _slowest_flows(f: Facts, sets: RecordedSets) -> None:
    """A thousand flows of Reno at core over a base delay of 100 ms: how unlike they are."""
    far = sets.run("core-100-ms", RENO)
    rates = [flow.goodput_bps for flow in far.flows]
    f.far_index = Number(measured(far, "jains_index"))
    f.farther_index = Number(_index(sets, "core-200-ms", RENO))
    f.far_counted = seconds(measured(far, "duration_s"))
    f.far_each = Number(measured(far, "halvings") / measured(far, "flows"), digits=2)
    f.far_never = _never_halved(far)
    f.far_fastest = mbit(max(rates))
    f.far_median = mbit(statistics.median(rates))


def _fair_among_others(f: Facts, sets: RecordedSets) -> None:
    """Mixes of two algorithms: the rivals' part of the goodput."""
    f.mixes = runs_as_rows(
        (run for name in MIXES for run in sets.runs(name) if run.value("rival_share")),
        {
            "run": set_cell,
            "mix": _mix,
            "rivals' part": cell("rival_share", percent),
            "fair share": cell("rival_fair_share", percent),
            "times the fair share": cell("rival_multiple", Number),
        },
    )
    tens = [
        sets.runs("edge-ten-times", trial) for trial in (CUBIC_IN_RENO, BBR_IN_RENO, BBR_IN_CUBIC)
    ]
    f.ten_mixes = table(
        ("mix, ten runs at edge", "times the fair share, 95 % interval"),
        (
            (
                "{rival} against {congestion_control}".format(**runs[0].params),
                mean_interval(runs, "rival_multiple"),
            )
            for runs in tens
        ),
    )

    once = sets.run("edge-once", CUBIC_IN_RENO)
    f.cubic_once = percent(measured(once, "rival_share"))
    f.cubic_ten = Interval.of_mean(percents(tens[0], "rival_share"), "%")
    low, high = CUBIC_TAKES
    f.edge_has_it_already = measured(once, "rival_share") >= low
    halves = [sets.run(name, CUBIC_IN_RENO) for name in HALVES]
    shares = column([*halves, sets.run(HALVES_WAIT, CUBIC_IN_RENO)], "rival_share")
    f.cubic_takes_70_to_80 = judge(shares, least=low, most=high)
    f.each_is_in_range = low <= min(shares) and max(shares) <= high
    f.cubic_core = Numbers.of([percent(share) for share in shares[:-1]])
    f.cubic_flows = whole(measured(halves[0], "flows") / 2)
    f.queue_adds = ms(drain_ms(param(halves[0], "buffer_bytes"), param(halves[0], "rate_mbit")))
    f.cubic_rtts = Numbers.of([ms(rtt) for rtt in column(halves, "rtt_mean_ms")])

    ten = sets.runs("edge-ten-times", BBR_IN_RENO)
    more = [sets.run("fair-share-fixed"), sets.run("intermediate", BBR_IN_RENO)]
    parts, multiples = (
        [mean(ten, name), *column(more, name)] for name in ("rival_share", "rival_multiple")
    )
    f.bbr_few_ten = Interval.of_mean(percents(ten, "rival_share"), "%")
    f.bbr_few = Numbers.of([percent(part) for part in parts])
    f.bbr_beside = Numbers(tuple(flows - 1 for flows in column([ten[0], *more], "flows")))
    f.bbr_few_times = Numbers(tuple(multiples))
    f.bbr_few_are_near_40 = (
        max(parts) <= 1.3 * min(parts)
        and min(parts) >= 0.3
        and max(parts) <= 0.5
        and multiples == sorted(multiples)
    )
    f.bbr_200_ms = percent(measured(sets.run("edge-200-ms", BBR_IN_RENO), "rival_share"))


def _buffers(f: Facts, sets: RecordedSets) -> None:
    """One BBR flow at core, with three sizes of the hosts' largest socket buffers: Linux's default, a middle one that
    seemed ample, and a large one."""
    default, middle, large = (sets.run(name, BBR_IN_RENO) for name in BY_BUFFER)
    f.windows_sets = ", ".join(BY_BUFFER)
    f.windows_published = table(
        ("part", "what they said"),
        (
            (percent(BBR_TAKES_REPRODUCED), "highly fair"),
            (percent(BBR_TAKES_PUBLISHED), "40 % from thousands"),
        ),
    )
    shares = column([default, middle, large], "rival_share")
    f.bbr_default, f.bbr_middle, f.bbr_large = map(percent, shares)
    parts = [shares[2], *(part / 100 for part in _other_parts_of_bbr(f, sets))]
    parts.append(measured(sets.run(LARGE_WAIT, BBR_IN_RENO), "rival_share"))
    f.bbr_large_wait = percent(parts[-1])
    f.bbr_takes_40 = judge(parts, least=BBR_TAKES[0], most=BBR_TAKES[1])
    f.bbr_large_is_near_40 = BBR_TAKES[0] <= shares[2] <= BBR_TAKES[1]
    at_1_ms = sets.run(DEFAULT_WAIT, BBR_IN_RENO)
    both = [default, at_1_ms]
    f.bbr_default_wait = percent(measured(at_1_ms, "rival_share"))
    f.default_times_wait = Number(measured(at_1_ms, "rival_multiple"), digits=2)
    f.one_percent_is_fair = judge(column(both, "rival_multiple"), most=2)
    f.buffers_decide = shares[2] > 7 * shares[1] > 49 * shares[0]
    f.default_times = Number(measured(default, "rival_multiple"), digits=2)
    f.large_times = Number(measured(large, "rival_multiple"))
    f.bbr_others = whole(measured(middle, "flows") - 1)
    f.default_send = _mib(default, "wmem_max_bytes")
    f.default_receive = _mib(default, "rmem_max_bytes")
    f.middle_buffers = _mib(middle, "rmem_max_bytes")
    f.large_buffers = _mib(large, "rmem_max_bytes")

    rtt_ms = measured(middle, "rtt_mean_ms")
    f.middle_rtt = ms(rtt_ms)
    f.needed = Number(BBR_TAKES_PUBLISHED * param(middle, "rate_mbit") * rtt_ms / 8e3, "MB")
    beside = [
        measured(sets.run(name, BBR_IN_CUBIC), "rival_share")
        for name in ("core", "core-large-windows")
    ]
    f.cubic_middle, f.cubic_large = map(percent, beside)
    f.cubic_large_counted = seconds(
        measured(sets.run("core-large-windows", BBR_IN_CUBIC), "duration_s")
    )
    f.middle_held_it_too = beside[1] > 1.2 * beside[0]

    ceiling_bps = 8e3 * param(default, "wmem_max_bytes") / measured(default, "rtt_mean_ms")
    of_all = ceiling_bps / measured(default, "goodput_bps")
    f.ceiling, f.default_rtt = mbit(ceiling_bps), ms(measured(default, "rtt_mean_ms"))
    f.ceiling_part = percent(of_all, 2)
    f.ceiling_is_near = 0.5 <= of_all / BBR_TAKES_REPRODUCED <= 2


def _other_parts_of_bbr(f: Facts, sets: RecordedSets) -> list[float]:
    """Return BBR's parts, in percent, by which the claim of 40 % is judged beside the run at core: the ends of the means'
    intervals of ten runs at edge, at both waits, and of Linux in real time; and the last part of the runs among CUBIC."""
    f.bbr_real_time, f.bbr_not_in_real_time = witnessed_shares(sets, BBR_IN_RENO)
    f.cubic_real_time, f.cubic_not_in_real_time = witnessed_shares(sets, CUBIC_IN_RENO)
    f.real_time_gives_bbr_less = f.bbr_real_time.high_value < f.bbr_not_in_real_time.low_value
    far = [
        100 * measured(sets.run(name, BBR_IN_RENO), "rival_share")
        for name in ("edge-100-ms", "edge-200-ms")
    ]
    f.bbr_far = Numbers(tuple(far), "%")
    return [
        *far,
        *f.bbr_real_time.both_ends,
        *f.bbr_late_in_cubic.values,
        *f.bbr_edge_usual.both_ends,
        *f.bbr_edge_wait.both_ends,
    ]


def _indices_of_testbeds(
    sets: RecordedSets, names: Sequence[str], *, least_flows: int = 0, most_flows: int = 10**9
) -> list[float]:
    """Return Jain's index in all cells of both testbeds of these algorithms alone, with so many flows."""
    return [
        cell.value(testbed, "index")
        for (_, flows, name), cell in published_fairness(sets).items()
        if name in names and least_flows <= int(flows) <= most_flows
        for testbed in (CLOUDLAB, FABRIC)
    ]


def _index(sets: RecordedSets, name: str, trial: int) -> float:
    return measured(sets.run(name, trial), "jains_index")


def _counted(run: Result) -> tuple[Number, Number]:
    """How many flows a run has, and the time in which they were counted."""
    return whole(measured(run, "flows")), seconds(measured(run, "duration_s"))


def _by_chance(run: Result, name: str) -> Interval:
    """A run's C, and how far it would move if each halving came by itself, at random."""
    low, high = ratio_bounds(measured(run, "halvings")) or (0, 0)
    value = measured(run, name)
    return Interval(value, low * value, high * value)


def _never_halved(run: Result) -> Number:
    """How many of a run's flows had no halving, `42 of 1000`."""
    return whole(sum(not flow.halvings for flow in run.flows), f"of {count(len(run.flows))}")


def _root(value: float) -> Number:
    return Number(value**0.5)


def _mix(run: Result) -> str:
    rivals = measured(run, "rivals_found")
    return (
        f"{count(rivals)} {run.params['rival']} against "
        f"{count(measured(run, 'flows') - rivals)} {run.params['congestion_control']}"
    )


def _mib(run: Result, name: str) -> Number:
    return whole(param(run, name) / 2**20, "MiB")
