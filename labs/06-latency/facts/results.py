"""What became of the six claims, each by the rule of its name in rules.toml; a home by its discipline; and the tails.

A run is one value, and intervals are over runs.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Judgement,
    Number,
    Numbers,
    Probability,
    RecordedSets,
    Table,
    agreed,
    column,
    judge,
    mbit,
    mean,
    measured,
    ms,
    param,
    percent,
    percents,
    seconds,
    table,
    whole,
)
from measuretwice.runs.result import Result
from measuretwice.stats import intervals, two_samples
from measuretwice.stats.distributions import student_cdf
from measuretwice.stats.intervals import effective_count, percentile

from .runs import (
    FIFO_NAMES,
    flows_wait,
    median_over_runs,
    name_of,
    pings_took,
    pings_wait,
    ratio_of_pairs,
    room_takes,
    runs_of,
    set_mbit,
    stream_to,
)

# Within a factor of two of CoDel's target of 5 ms (RFC 8289); and how much less of the link it may use.
NEAR_TARGET_MS = (2.5, 10.0)
USE_LOST_MOST = 0.02
SIGNIFICANT = 0.05
# A tenth of the wait; and from which factor on fq_codel as a default helps.
TENFOLD, HELPS = 10.0, 1.5
# A scalable sender's wait, and which shares count as even.
SCALABLE_MOST_MS, EVEN = 2.0, (0.5, 2.0)

# Claim 1: the usual setting, then five that differ from it in one thing; the last is a home, with flows both ways.
HOME, EVEN_HOME = "home", "even-home"
CODEL_SETS = ("codel", "codel-100-mbit", "codel-100-ms", "codel-1-flow", "codel-16-flows", HOME)
# Claim 2: a set with a FIFO, and one of the same home with fq_codel and CAKE. The third is the usual.
FIFO_SETS = (
    ("home-fifo-100-packets", HOME), ("home-fifo-256-kb", HOME), (HOME, HOME), ("home-fifo-1000-packets", HOME),
    (EVEN_HOME, EVEN_HOME),
)  # fmt: skip
USUAL_FIFO = FIFO_SETS.index((HOME, HOME))
FAIR = ("fq_codel", "cake")
ORDER = ("bfifo", "codel", *FAIR)
# Claim 3: DCTCP alone, and beside CUBIC; the first is the usual setting.
DCTCP_SETS = ("dctcp", "dctcp-10-mbit", "dctcp-100-mbit", "dctcp-10-ms")
SHARE_SETS = tuple(name.replace("dctcp", "dctcp-and-cubic") for name in DCTCP_SETS)
# Claim 4: a router that has its discipline, and no rate below the link's.
BY_DEFAULT = "fast-router"
TAILS, START = "home-tails", "home-start"
PERCENTILES = ("server_delay_p50_ms", "server_delay_p99_ms", "phone_transfer_p50_ms", "phone_transfer_p95_ms")  # fmt: skip


def set_results(f: Facts, sets: RecordedSets) -> None:
    """Set what results.md and its slides quote."""
    for set_part in (
        _codel,
        _tenfold,
        _dctcp,
        _shares,
        _by_default,
        _homes,
        _a_call_that_waits,
        _even_homes,
        _start,
        _tails,
    ):
        set_part(f, sets)


def _middles(of: Sequence[Interval]) -> Numbers:
    """The values of several intervals, without their ends."""
    return Numbers.of([interval.middle for interval in of])


def _ends(of: Sequence[Interval]) -> tuple[Interval, Interval]:
    """Of several intervals the one with the least value, and the one with the largest."""
    ordered = sorted(of, key=lambda interval: interval.middle_value)
    return ordered[0], ordered[-1]


def _codel(f: Facts, sets: RecordedSets) -> None:
    """CoDel and a FIFO of 500 kB with the same seeds: six settings, of which four differ from the first in one thing, and a home."""
    pairs = [(runs_of(sets, name, "codel"), runs_of(sets, name, "bfifo")) for name in CODEL_SETS]
    waits = [median_over_runs(column(codel, "server_delay_p50_ms"), "ms") for codel, _ in pairs]
    least, most = NEAR_TARGET_MS
    f.codel_runs, f.codel_settings = whole(len(pairs[0][0])), whole(len(pairs))
    f.codel_keeps_the_delay_near_its_target = agreed(
        judge(wait, least=least, most=most) for wait in waits
    )
    less = [
        [a - b for a, b in zip(*(column(of, "utilisation") for of in (fifo, codel)), strict=True)]
        for codel, fifo in pairs
    ]
    little, much = (two_samples.holm([chance(of_pairs) for of_pairs in less]) for chance in (_is_little, _is_much))  # fmt: skip
    f.codel_costs_no_utilisation = agreed(
        True if p_little < SIGNIFICANT else False if p_much < SIGNIFICANT else None
        for p_little, p_much in zip(little, much, strict=True)
    )
    lost = [Interval.of_mean([100 * part for part in of_pairs], "%", 2) for of_pairs in less]
    f.codel_delay, f.codel_loss = waits[0], lost[0]
    f.codel_delays, f.codel_losses = _middles(waits), _middles(lost)
    f.codel_delay_least, f.codel_delay_most = _ends(waits)
    f.codel_loss_least, f.codel_loss_most = _ends(lost)
    f.codel_table = table(
        ("router up", "round trip", "flows", "runs", "median wait of the call", "link in use, CoDel", "FIFO", "less by", "p, if by 2 % or more (Holm)"),
        (
            (
                set_mbit(param(codel[0], "router_up_mbit")),
                ms(param(codel[0], "rtt_ms")),
                _flows(codel[0]),
                whole(len(codel)),
                wait,
                percent(mean(codel, "utilisation")),
                percent(mean(fifo, "utilisation")),
                of_lost,
                Probability(p),
            )
            for (codel, fifo), wait, of_lost, p in zip(pairs, waits, lost, little, strict=True)
        ),
    )  # fmt: skip


def _is_little(differences: Sequence[float]) -> float:
    """p of the claim that the mean of paired differences is the margin or more, on either side: two one-sided tests."""
    return max(_chance(differences, USE_LOST_MOST), _chance([-x for x in differences], USE_LOST_MOST))  # fmt: skip


def _is_much(differences: Sequence[float]) -> float:
    """p of the claim that the mean of paired differences is the margin at most."""
    return _chance([-x for x in differences], -USE_LOST_MOST)


def _chance(differences: Sequence[float], limit: float) -> float:
    """p of the claim that the mean of paired differences is `limit` or more: Student's, one-sided."""
    middle, deviation = intervals.mean_and_deviation(differences)
    if deviation == 0:
        return float(middle >= limit)
    error = deviation / math.sqrt(len(differences))
    return student_cdf(len(differences) - 1, (middle - limit) / error)


def _flows(run: Result) -> str:
    """Return how many flows a run has in each direction."""
    up, down = (round(param(run, f"{way}_flows")) for way in ("up", "down"))
    return f"{up} up, {down} down" if down else f"{up} up"


def _tenfold(f: Facts, sets: RecordedSets) -> None:
    """Waits of pings behind a FIFO, over fq_codel and over CAKE, with the same seeds: two homes, FIFOs of four sizes."""
    groups = [
        (runs_of(sets, name, *FIFO_NAMES), [runs_of(sets, home, fair) for fair in FAIR])
        for name, home in FIFO_SETS
    ]
    ratios = [
        [ratio_of_pairs(pings_wait(fifo), pings_wait(of)) for of in fair] for fifo, fair in groups
    ]
    ping_ratios = [
        [ratio_of_pairs(pings_took(fifo), pings_took(of)) for of in fair] for fifo, fair in groups
    ]
    every, every_ping = ([*itertools.chain(*by_home)] for by_home in (ratios, ping_ratios))
    f.home_runs = whole(len(groups[USUAL_FIFO][0]))
    f.a_tenth_of_the_wait = _tenth(every)
    f.a_tenth_of_the_whole_ping = _tenth(every_ping)
    f.fq_codel_ratio, f.cake_ratio = ratios[USUAL_FIFO]
    f.fq_codel_whole_ratio, f.cake_whole_ratio = ping_ratios[USUAL_FIFO]
    f.ratio_least, f.ratio_most = _ends(every)
    f.whole_ratio_least, f.whole_ratio_most = _ends(every_ping)
    fifo, fair = groups[USUAL_FIFO]
    f.fifo_ping, f.fq_codel_ping, f.cake_ping = (
        Interval.of_mean(pings_took(of), "ms") for of in (fifo, *fair)
    )
    f.fifo_wait, f.fq_codel_wait, f.cake_wait = (
        Interval.of_mean(pings_wait(of), "ms") for of in (fifo, *fair)
    )
    f.fifo_table = table(
        ("router up", "FIFO's room", "takes to empty", "runs", "FIFO's wait", "over fq_codel's", "over CAKE's", "whole pings, over fq_codel's", "over CAKE's"),
        (
            (
                set_mbit(param(fifo[0], "router_up_mbit")),
                _room(fifo[0]),
                room_takes(fifo[0].params, _room_name(fifo[0]), "router_up_mbit"),
                whole(len(fifo)),
                Interval.of_mean(pings_wait(fifo), "ms"),
                *of_waits,
                *of_pings,
            )
            for (fifo, _), of_waits, of_pings in zip(groups, ratios, ping_ratios, strict=True)
        ),
    )  # fmt: skip


def _tenth(ratios: Sequence[Interval]) -> Judgement:
    """Return whether a FIFO's is ten times each of the others', at each setting."""
    return agreed(judge(ratio, least=TENFOLD) for ratio in ratios)


def _room_name(fifo: Result) -> str:
    return "fifo_packets" if fifo.params["discipline"] == "pfifo" else "fifo_bytes"


def _room(fifo: Result) -> Number:
    """A FIFO's room as it was set."""
    name = _room_name(fifo)
    return whole(param(fifo, name), "packets" if name == "fifo_packets" else "B")


def _dctcp(f: Facts, sets: RecordedSets) -> None:
    """Four flows of DCTCP behind DualPI2, four settings: the mean of their smoothed round trips, less the idle path's."""
    groups = [runs_of(sets, name, "dualpi2") for name in DCTCP_SETS]
    waits = [Interval.of_mean(flows_wait(of), "ms") for of in groups]
    f.dctcp_runs = whole(len(groups[0]))
    f.dualpi2_keeps_scalable_flows_below_2_ms = agreed(
        judge(wait, most=SCALABLE_MOST_MS) for wait in waits
    )
    f.dctcp_wait, f.dctcp_waits = waits[0], _middles(waits)
    f.dctcp_wait_least, f.dctcp_wait_most = _ends(waits)
    slowest_mbit = min(param(of[0], "router_up_mbit") for of in groups)
    f.slowest_link = set_mbit(slowest_mbit)
    f.dctcp_waits_longest_there = max(
        groups, key=lambda of: statistics.fmean(flows_wait(of))
    ) is min(groups, key=lambda of: param(of[0], "router_up_mbit"))
    f.dctcp_use = percent(mean(groups[0], "utilisation"))
    f.dctcp_table = table(
        ("router up", "round trip", "runs", "DCTCP's wait", "link in use"),
        (
            (
                set_mbit(param(of[0], "router_up_mbit")),
                ms(param(of[0], "rtt_ms")),
                whole(len(of)),
                wait,
                percent(mean(of, "utilisation")),
            )
            for of, wait in zip(groups, waits, strict=True)
        ),
    )


def _shares(f: Facts, sets: RecordedSets) -> None:
    """Two flows of DCTCP beside two of CUBIC behind DualPI2, four settings: DCTCP's goodput over CUBIC's, and both waits."""
    groups = [runs_of(sets, name, "dualpi2") for name in SHARE_SETS]
    shares = [
        ratio_of_pairs(column(of, "laptop_goodput_bps"), column(of, "phone_goodput_bps"))
        for of in groups
    ]
    least, most = EVEN
    f.share_runs = whole(len(groups[0]))
    f.dualpi2_shares_evenly = agreed(judge(share, least=least, most=most) for share in shares)
    f.share_ratio, f.share_ratios = shares[0], _middles(shares)
    f.share_least, f.share_most = _ends(shares)
    f.dctcp_beside, f.cubic_beside = (
        mbit(mean(groups[0], f"{node}_goodput_bps")) for node in ("laptop", "phone")
    )
    f.dctcp_wait_beside, f.cubic_wait_beside = (
        Interval.of_mean(flows_wait(groups[0], f"{node}_rtt_mean_ms"), "ms")
        for node in ("laptop", "phone")
    )
    f.share_table = table(
        ("router up", "round trip", "runs", "DCTCP's goodput over CUBIC's", "DCTCP's wait", "CUBIC's wait", "link in use"),
        (
            (
                set_mbit(param(of[0], "router_up_mbit")),
                ms(param(of[0], "rtt_ms")),
                whole(len(of)),
                share,
                *(
                    Interval.of_mean(flows_wait(of, f"{node}_rtt_mean_ms"), "ms")
                    for node in ("laptop", "phone")
                ),
                percent(mean(of, "utilisation")),
            )
            for of, share in zip(groups, shares, strict=True)
        ),
    )  # fmt: skip


def _by_default(f: Facts, sets: RecordedSets) -> None:
    """A router that sends as fast as it can before a modem's FIFO, the set fast-router: pings' wait with a FIFO on the router,
    over that with fq_codel, with the same seeds."""
    fifo, fq_codel = (runs_of(sets, BY_DEFAULT, name) for name in ("bfifo", "fq_codel"))
    f.default_ratio = ratio_of_pairs(pings_wait(fifo), pings_wait(fq_codel))
    f.a_default_is_enough = judge(f.default_ratio, least=HELPS)
    f.default_runs = whole(len(fifo))
    f.default_rate = set_mbit(param(fifo[0], "router_up_mbit"))
    f.default_ping, f.default_fifo_ping = (
        Interval.of_mean(pings_took(of), "ms") for of in (fq_codel, fifo)
    )
    f.default_table = table(
        ("router's discipline", "runs", "ping under load", "drops in the router, up", "call to the server, late or lost (%)"),
        (
            (
                name_of(of[0]),
                whole(len(of)),
                Interval.of_mean(pings_took(of), "ms"),
                Number(mean(of, "queue_drops"), digits=2),
                Interval.of_mean(percents(of, "server_late_ratio"), within=(0, 100)),
            )
            for of in (fifo, fq_codel)
        ),
    )  # fmt: skip


def _homes(f: Facts, sets: RecordedSets) -> None:
    """A full home by discipline, without the flows' start: what each of those who share it got."""
    home = _by_discipline(sets, HOME)
    f.home_table = _what_each_got(home)
    f.percentiles = table(
        ("discipline", "runs", "call's median wait (ms)", "its 99th percentile (ms)", "page, median (ms)", "page, 95th percentile (ms)"),
        (
            (name, whole(len(of)), *(median_over_runs(column(of, value)) for value in PERCENTILES))
            for name, of in home.items()
        ),
    )  # fmt: skip


def _a_call_that_waits(f: Facts, sets: RecordedSets) -> None:
    """The call to the server through fq_codel in a full home: the median of its waits in each of ten runs, in one of which it waits
    as flows do."""
    medians = column(runs_of(sets, HOME, "fq_codel"), "server_delay_p50_ms")
    usual_ms = statistics.median(medians)
    waiting = [wait_ms for wait_ms in medians if wait_ms > 5 * usual_ms]
    f.calls_that_wait = whole(len(waiting))
    f.call_waits_usually, f.call_waits_most = ms(usual_ms, 3), ms(max(medians), 3)
    f.one_call_waits_as_flows_do = len(waiting) == 1


def _even_homes(f: Facts, sets: RecordedSets) -> None:
    """The same home with 50 Mbit/s in both directions, the set even-home."""
    f.even_table = _what_each_got(_by_discipline(sets, EVEN_HOME))


def _start(f: Facts, sets: RecordedSets) -> None:
    """A full home's first seconds by discipline, the set home-start."""
    f.start_lasts = seconds(param(sets.runs(START)[0], "duration_s"))
    f.start_table = _what_each_got(_by_discipline(sets, START))


def _by_discipline(sets: RecordedSets, name: str) -> dict[str, list[Result]]:
    """A home's runs by its router's discipline, the FIFO first."""
    groups: dict[str, list[Result]] = {}
    for run in sorted(
        sets.runs(name), key=lambda run: (ORDER.index(run.params["discipline"]), run.seed)
    ):
        groups.setdefault(name_of(run), []).append(run)
    return groups


def _what_each_got(shown: Mapping[str, Sequence[Result]]) -> Table:
    """Pings, call, pages and flows, by discipline; a call's packets in percent, goodput in Mbit/s."""
    return table(
        ("discipline", "runs", "ping under load (ms)", "its 99th percentile (ms)", "call to the server, late or lost (%)", "to the phone (%)",
         "page, median (ms)", "goodput up (Mbit/s)", "down (Mbit/s)"),
        (
            (
                name,
                whole(len(of)),
                Interval.of_mean(pings_took(of)),
                Interval.of_mean(column(of, "busy_ping_p99_ms")),
                *(
                    Interval.of_mean(percents(of, f"{node}_late_ratio"), within=(0, 100))
                    for node in ("server", "phone")
                ),
                Interval.of_mean(column(of, "phone_transfer_p50_ms")),
                *(
                    Interval.of_mean([rate / 1e6 for rate in column(of, f"{node}_goodput_bps")])
                    for node in ("laptop", "server")
                ),
            )
            for name, of in shown.items()
        ),
    )  # fmt: skip


def _tails(f: Facts, sets: RecordedSets) -> None:
    """Two runs of each discipline with their raw files, the set home-tails: percentiles of the call's packets to the server."""
    shown = [(run, stream_to(sets, run, "server").delays_ms) for run in sets.runs(TAILS)]
    f.tails = table(
        ("discipline", "seed", "packets", "median", "95th percentile", "99th", "99.9th", "independent packets", "late or lost"),
        (
            (
                name_of(run),
                Number(run.seed),
                whole(len(delays)),
                *(ms(percentile(delays, share), 3) for share in (0.5, 0.95, 0.99, 0.999)),
                whole(effective_count(delays)),
                percent(measured(run, "server_late_ratio")),
            )
            for run, delays in shown
        ),
    )  # fmt: skip
