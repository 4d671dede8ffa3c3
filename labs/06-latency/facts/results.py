"""What became of the four claims, each by the rule of its name in rules.toml, and of the tails.

A run is one value. A claim's runs are those of the recorded sets that leave out the flows' start (`warmup_s`); each setting picks
its own from them by what is set. A claim has facts once all of its settings are recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from measuretwice.stats.intervals import effective_count, percentile

from .runs import name_of, room_takes, set_mbit, stream_to

Setting = Mapping[str, Any]

# CoDel's target by RFC 8289, within a factor of two of which its queue is to stay; and how much of the link's use may be lost.
NEAR_TARGET_MS = (2.5, 10.0)
USE_LOST_MOST = 0.02
SIGNIFICANT = 0.05
# An order of magnitude; and below which factor fq_codel at the wrong rate is of no use.
TENFOLD, NO_HELP = 10.0, 1.5
FAIR = ("fq_codel", "cake")
# Scalable senders' wait, and the share that still counts as even.
SCALABLE_MOST_MS, EVEN = 2.0, (0.5, 2.0)

# Claim 1: CoDel, one thing changed at a time; and with flows in both directions, at a home.
UP_ONLY = {"router_up_mbit": 10, "rtt_ms": 40, "up_flows": 4, "down_flows": 0}
CODEL_AT: tuple[Setting, ...] = (
    UP_ONLY,
    UP_ONLY | {"router_up_mbit": 100},
    UP_ONLY | {"rtt_ms": 100},
    UP_ONLY | {"up_flows": 1},
    UP_ONLY | {"up_flows": 16},
    {"router_up_mbit": 9.5, "rtt_ms": 40, "up_flows": 4, "down_flows": 4},
)
# Claim 2: homes by the link's rates, and FIFOs by their room.
HOME: Setting = {
    "router_up_mbit": 9.5,
    "router_down_mbit": 47.5,
    "link_up_mbit": 10,
    "rtt_ms": 40,
    "up_flows": 4,
    "down_flows": 4,
}
EVEN_HOME: Setting = {**HOME, "router_up_mbit": 47.5, "link_up_mbit": 50}
USUAL_FIFO: Setting = {"discipline": "bfifo", "fifo_bytes": 500000}
FIFOS_AT: tuple[tuple[Setting, Setting], ...] = (
    (HOME, {"discipline": "pfifo", "fifo_packets": 100}),
    (HOME, {"discipline": "bfifo", "fifo_bytes": 256000}),
    (HOME, USUAL_FIFO),
    (HOME, {"discipline": "pfifo", "fifo_packets": 1000}),
    (EVEN_HOME, USUAL_FIFO),
)
# Claim 3: the rate and the round trip behind DualPI2.
DUALPI2_AT: tuple[Setting, ...] = (
    {"router_up_mbit": 10, "rtt_ms": 40},
    {"router_up_mbit": 40, "rtt_ms": 40},
    {"router_up_mbit": 100, "rtt_ms": 40},
    {"router_up_mbit": 40, "rtt_ms": 10},
)
# Claim 4: a router that has its discipline and no rate below the link's.
BY_DEFAULT: Setting = {"router_up_mbit": 1000, "router_down_mbit": 1000, "link_up_mbit": 10}
TAILS, START = "home-tails", "home-start"
PERCENTILES = ("server_delay_p50_ms", "server_delay_p99_ms", "phone_transfer_p50_ms", "phone_transfer_p95_ms")  # fmt: skip


def set_results(f: Facts, sets: RecordedSets) -> None:
    """Set what results.md and its slides quote."""
    runs = _claims_runs(sets)
    for set_claim in (
        _codel, _tenfold, _dualpi2_alone, _dualpi2_shares, _by_default, _homes,
    ):  # fmt: skip
        set_claim(f, runs)
    if sets.is_recorded(TAILS):
        _tails(f, sets)
    if sets.is_recorded(START):
        _start(f, sets)


def _claims_runs(sets: RecordedSets) -> list[Result]:
    """The runs that decide: those of all sets that leave the flows' start out."""
    names = [recording.id for recording in sets.lab.file.recordings]
    return [
        run
        for name in names
        if sets.is_recorded(name)
        for run in sets.runs(name)
        if param(run, "warmup_s") > 0
    ]


def _at(runs: Sequence[Result], setting: Setting, **also: Any) -> list[Result]:
    """The runs of one setting, by seed."""
    wanted = {**setting, **also}
    fitting = [
        run for run in runs if all(run.params.get(name) == value for name, value in wanted.items())
    ]
    return sorted(fitting, key=lambda run: run.seed)


def _waits(runs: Sequence[Result]) -> list[float]:
    """How much longer than on the idle path pings took while the flows ran, in ms, a value a run."""
    return [measured(run, "busy_ping_mean_ms") - measured(run, "path_rtt_ms") for run in runs]


def _pings(runs: Sequence[Result]) -> list[float]:
    """How long pings took while the flows ran, in ms, a value a run."""
    return column(runs, "busy_ping_mean_ms")


def _ratio(upper: Sequence[float], lower: Sequence[float]) -> Interval:
    """The ratio of pairs: its geometric mean, and the interval of that."""
    middle, low, high = intervals.ratio_of_means(upper, lower)
    return Interval(middle, low, high, digits=3, n=len(upper))


def _codel(f: Facts, runs: Sequence[Result]) -> None:
    """CoDel and a FIFO of 500 kB, the same seeds: six settings, of which five differ from the first in one thing."""
    pairs = [
        (
            _at(runs, setting, discipline="codel"),
            _at(runs, setting, discipline="bfifo", fifo_bytes=500000),
        )
        for setting in CODEL_AT
    ]
    if not all(codel and fifo for codel, fifo in pairs):
        return
    waits = [_median(column(codel, "server_delay_p50_ms"), "ms") for codel, _ in pairs]
    least, most = NEAR_TARGET_MS
    f.codel_runs = whole(len(pairs[0][0]))
    f.codel_keeps_near_target = agreed(judge(wait, least=least, most=most) for wait in waits)
    lost = [
        Interval.of_difference(
            percents(fifo, "utilisation"), percents(codel, "utilisation"), "%", 2
        )
        for codel, fifo in pairs
    ]
    corrected = two_samples.holm(
        [
            two_samples.equivalence(
                column(fifo, "utilisation"), column(codel, "utilisation"), USE_LOST_MOST
            )
            for codel, fifo in pairs
        ]
    )
    f.codel_uses_the_link_as_well = agreed(
        True if p < SIGNIFICANT else _not_below(less, 100 * USE_LOST_MOST)
        for p, less in zip(corrected, lost, strict=True)
    )
    f.codel_delay, f.codel_loss = waits[0], lost[0]
    f.codel_delays, f.codel_losses = _middles(waits), _middles(lost)
    f.codel_settings = whole(len(CODEL_AT))
    f.codel_waits_least, f.codel_waits_most = (
        pick(waits, key=lambda wait: wait.middle_value) for pick in (min, max)
    )
    f.codel_loss_most = max(lost, key=lambda less: less.middle_value)
    f.codel_table = table(
        ("router up", "round trip", "flows", "runs", "median wait of the call", "link in use, CoDel", "FIFO", "less by", "p that it is more than 2 % (Holm)"),
        (
            (
                set_mbit(setting["router_up_mbit"]),
                ms(setting["rtt_ms"]),
                _flows(setting),
                whole(len(codel)),
                wait,
                percent(mean(codel, "utilisation")),
                percent(mean(fifo, "utilisation")),
                less,
                Probability(p),
            )
            for setting, (codel, fifo), wait, less, p in zip(
                CODEL_AT, pairs, waits, lost, corrected, strict=True
            )
        ),
    )  # fmt: skip


def _middles(of: Sequence[Interval]) -> Numbers:
    """The values of several intervals, without their ends."""
    return Numbers.of([interval.middle for interval in of])


def _flows(setting: Setting) -> str:
    both = setting["down_flows"]
    return f"{setting['up_flows']} up, {both} down" if both else f"{setting['up_flows']} up"


def _not_below(interval: Interval, limit: float) -> Judgement:
    """False where an interval lies above a limit; else these runs can't tell."""
    return False if interval.low_value > limit else None


def _tenfold(f: Facts, runs: Sequence[Result]) -> None:
    """How long pings wait behind a FIFO, over fq_codel and over CAKE, the same seeds: two homes, FIFOs of four sizes."""
    groups = [
        (_at(runs, home, **fifo), [_at(runs, home, discipline=name) for name in FAIR])
        for home, fifo in FIFOS_AT
    ]
    if not all(fifo and all(fair) for fifo, fair in groups):
        return
    ratios = [[_ratio(_waits(fifo), _waits(of)) for of in fair] for fifo, fair in groups]
    whole_pings = [[_ratio(_pings(fifo), _pings(of)) for of in fair] for fifo, fair in groups]
    f.home_runs = whole(len(groups[0][0]))
    usual = FIFOS_AT.index((HOME, USUAL_FIFO))
    fifo, (fq_codel, cake) = groups[usual]
    f.fq_codel_cuts_waits_tenfold, f.cake_cuts_waits_tenfold = (
        agreed(judge(of_each[at], least=TENFOLD) for of_each in ratios) for at in range(len(FAIR))
    )
    f.cut_tenfold = agreed(judge(ratio, least=TENFOLD) for of_each in ratios for ratio in of_each)
    f.fq_codel_ratio, f.cake_ratio = ratios[usual]
    f.fq_codel_whole_ratio, f.cake_whole_ratio = whole_pings[usual]
    f.whole_pings_tenfold = agreed(
        judge(ratio, least=TENFOLD) for of_each in whole_pings for ratio in of_each
    )
    f.least_ratio, f.most_ratio = (
        pick((ratio for of_each in ratios for ratio in of_each), key=lambda r: r.middle_value)
        for pick in (min, max)
    )
    f.fifo_ping, f.fq_codel_ping, f.cake_ping = (
        Interval.of_mean(_pings(of), "ms") for of in (fifo, fq_codel, cake)
    )
    f.fifo_wait, f.fq_codel_wait, f.cake_wait = (
        Interval.of_mean(_waits(of), "ms") for of in (fifo, fq_codel, cake)
    )
    f.fifo_table = table(
        ("router up", "FIFO's room", "takes to empty", "runs", "FIFO's wait (ms)", "over fq_codel's", "over CAKE's", "whole pings, over fq_codel's", "over CAKE's"),
        (
            (
                set_mbit(home["router_up_mbit"]),
                _room(room),
                room_takes(fifo[0].params, _room_name(room), "router_up_mbit"),
                whole(len(fifo)),
                Interval.of_mean(_waits(fifo)),
                *of_waits,
                *of_pings,
            )
            for (home, room), (fifo, _), of_waits, of_pings in zip(
                FIFOS_AT, groups, ratios, whole_pings, strict=True
            )
        ),
    )  # fmt: skip


def _room_name(fifo: Setting) -> str:
    return "fifo_packets" if fifo["discipline"] == "pfifo" else "fifo_bytes"


def _room(fifo: Setting) -> Number:
    """A FIFO's room as it was set."""
    return whole(fifo[_room_name(fifo)], "packets" if fifo["discipline"] == "pfifo" else "B")


def _dualpi2_alone(f: Facts, runs: Sequence[Result]) -> None:
    """Four flows of DCTCP behind DualPI2, four settings: their mean smoothed round trip less the idle path's."""
    groups = [
        _at(runs, setting, discipline="dualpi2", congestion_control="dctcp", classic_flows=0)
        for setting in DUALPI2_AT
    ]
    if not all(groups):
        return
    waits = [Interval.of_mean(_flows_wait(of), "ms") for of in groups]
    usual = DUALPI2_AT.index({"router_up_mbit": 40, "rtt_ms": 40})
    f.dctcp_runs = whole(len(groups[usual]))
    f.dctcp_waits_little = agreed(judge(wait, most=SCALABLE_MOST_MS) for wait in waits)
    f.dctcp_wait, f.dctcp_waits = waits[usual], _middles(waits)
    f.dctcp_waits_least, f.dctcp_waits_most = (
        pick(waits, key=lambda wait: wait.middle_value) for pick in (min, max)
    )
    f.dctcp_use = percent(mean(groups[usual], "utilisation"))
    f.dctcp_table = table(
        ("router up", "round trip", "runs", "DCTCP's wait", "link in use"),
        (
            (
                set_mbit(setting["router_up_mbit"]),
                ms(setting["rtt_ms"]),
                whole(len(of)),
                wait,
                percent(mean(of, "utilisation")),
            )
            for setting, of, wait in zip(DUALPI2_AT, groups, waits, strict=True)
        ),
    )


def _flows_wait(runs: Sequence[Result], of: str = "rtt_mean_ms") -> list[float]:
    """How much longer than on the idle path the flows' own round trips took, in ms, a value a run."""
    return [measured(run, of) - measured(run, "path_rtt_ms") for run in runs]


def _dualpi2_shares(f: Facts, runs: Sequence[Result]) -> None:
    """Two flows of DCTCP beside two of CUBIC behind DualPI2, four settings: DCTCP's goodput over CUBIC's, and both waits."""
    groups = [
        _at(runs, setting, discipline="dualpi2", congestion_control="dctcp", classic_flows=2)
        for setting in DUALPI2_AT
    ]
    if not all(groups):
        return
    shares = [
        _ratio(column(of, "laptop_goodput_bps"), column(of, "phone_goodput_bps")) for of in groups
    ]
    least, most = EVEN
    usual = DUALPI2_AT.index({"router_up_mbit": 40, "rtt_ms": 40})
    f.dctcp_shares_evenly = agreed(judge(share, least=least, most=most) for share in shares)
    f.share_ratio, f.share_ratios = shares[usual], _middles(shares)
    f.share_runs = whole(len(groups[usual]))
    f.dctcp_share_least, f.dctcp_share_most = (
        pick(shares, key=lambda share: share.middle_value) for pick in (min, max)
    )
    f.dctcp_beside, f.cubic_beside = (
        mbit(mean(groups[usual], f"{node}_goodput_bps")) for node in ("laptop", "phone")
    )
    f.share_table = table(
        ("router up", "round trip", "runs", "DCTCP's goodput over CUBIC's", "DCTCP waits (ms)", "CUBIC waits (ms)", "link in use"),
        (
            (
                set_mbit(setting["router_up_mbit"]),
                ms(setting["rtt_ms"]),
                whole(len(of)),
                share,
                *(
                    Interval.of_mean(_flows_wait(of, f"{node}_rtt_mean_ms"))
                    for node in ("laptop", "phone")
                ),
                percent(mean(of, "utilisation")),
            )
            for setting, of, share in zip(DUALPI2_AT, groups, shares, strict=True)
        ),
    )  # fmt: skip


def _by_default(f: Facts, runs: Sequence[Result]) -> None:
    """A router that sends at 1000 Mbit/s before a modem of 10: how long pings wait with a FIFO, over fq_codel, the same seeds."""
    fq_codel = _at(runs, BY_DEFAULT, discipline="fq_codel")
    fifo = _at(runs, BY_DEFAULT, **USUAL_FIFO)
    if not (fq_codel and fifo):
        return
    f.default_ratio = _ratio(_waits(fifo), _waits(fq_codel))
    f.default_ends_bufferbloat = judge(f.default_ratio, least=NO_HELP)
    f.default_ping = Interval.of_mean(_pings(fq_codel), "ms")
    f.default_fifo_ping = Interval.of_mean(_pings(fifo), "ms")
    f.default_runs = whole(len(fifo))
    f.default_table = table(
        ("router's discipline", "runs", "ping under load (ms)", "drops in the router", "late or lost, to the server"),
        (
            (
                name_of(of[0]),
                whole(len(of)),
                Interval.of_mean(_pings(of)),
                Number(mean(of, "queue_drops"), digits=2),
                percent(mean(of, "server_late_ratio")),
            )
            for of in (fifo, fq_codel)
        ),
    )  # fmt: skip


def _homes(f: Facts, runs: Sequence[Result]) -> None:
    """A full home by discipline, at both pairs of rates, without the flows' start: what each of those who share it got."""
    for name, home in (("home_table", HOME), ("even_table", EVEN_HOME)):
        if shown := _by_discipline(runs, home):
            setattr(f, name, _what_each_got(shown))
    if shown := _by_discipline(runs, HOME):
        f.percentiles = table(
            ("discipline", "runs", "call's median wait (ms)", "its 99th percentile (ms)", "page, median (ms)", "page, 95th percentile (ms)"),
            (
                (
                    name,
                    whole(len(of)),
                    *(_median(column(of, value)) for value in PERCENTILES),
                )
                for name, of in shown.items()
            ),
        )  # fmt: skip


def _by_discipline(runs: Sequence[Result], home: Setting) -> dict[str, list[Result]]:
    """A home's runs by its router's discipline, those that there are."""
    settings: dict[str, Setting] = {
        "FIFO": USUAL_FIFO,
        "CoDel": {"discipline": "codel"},
        "fq_codel": {"discipline": "fq_codel"},
        "CAKE": {"discipline": "cake"},
    }
    groups = {name: _at(runs, home, **setting) for name, setting in settings.items()}
    return {name: of for name, of in groups.items() if of}


def _what_each_got(shown: Mapping[str, Sequence[Result]]) -> Table:
    """Pings, call, pages and flows, by discipline; a call's packets in percent, goodput in Mbit/s."""
    return table(
        ("discipline", "runs", "ping under load (ms)", "its 99th percentile (ms)", "call to the server, late or lost (%)", "to the phone (%)",
         "page, median (ms)", "goodput up (Mbit/s)", "down (Mbit/s)"),
        (
            (
                name,
                whole(len(of)),
                Interval.of_mean(_pings(of)),
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


def _start(f: Facts, sets: RecordedSets) -> None:
    """A full home's first seconds by discipline, the set home-start."""
    shown: dict[str, list[Result]] = {}
    for run in sets.runs(START):
        shown.setdefault(name_of(run), []).append(run)
    f.start_lasts = seconds(param(sets.runs(START)[0], "duration_s"))
    f.start_table = _what_each_got(shown)


def _median(values: Sequence[float], unit: str = "") -> Interval:
    """The median over runs, and its interval by order statistics."""
    return Interval(*intervals.median_interval(values), unit, 3, len(values))


def _tails(f: Facts, sets: RecordedSets) -> None:
    """One run of each discipline with its raw files, the set home-tails: percentiles of the call's packets to the server."""
    shown = [(run, stream_to(sets, run, "server").delays_ms) for run in sets.runs(TAILS)]
    f.tails = table(
        ("discipline", "packets", "median", "95th percentile", "99th", "99.9th", "packets are worth", "late or lost"),
        (
            (
                name_of(run),
                whole(len(delays)),
                *(ms(percentile(delays, share), 3) for share in (0.5, 0.95, 0.99, 0.999)),
                Number(effective_count(delays), digits=2),
                percent(measured(run, "server_late_ratio")),
            )
            for run, delays in shown
        ),
    )  # fmt: skip
