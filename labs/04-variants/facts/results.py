"""What became of the source's claims: many runs of each path, buffer and rival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Judgement,
    Number,
    Numbers,
    RecordedSets,
    agreed,
    by_trial,
    column,
    judge,
    mbit,
    measured,
    ms,
    param,
    percent,
    runs_as_rows,
    table,
    us,
    whole,
)
from measuretwice.runs.result import Result
from measuretwice.stats import intervals
from measuretwice.tcp.model import mathis_bandwidth_bps, sack_reno_constant, shaped_goodput_bps

from .runs import (
    BBR,
    BBR_BY_RADIO,
    BBR_OF_SOURCE,
    CABLE,
    CUBIC,
    CUBIC_BY_RADIO,
    GOODPUT,
    NAMES,
    PATHS,
    RADIO,
    RELAYED,
    RENO,
    RENO_BY_RADIO,
    RTT,
    VEGAS,
    VEGAS_BY_RADIO,
    VEGAS_OF_SOURCE,
    algorithm_of,
    mbit_interval,
    mean_of,
    name_of,
    path_bdp_bytes,
    path_of,
)

# Trials with the smallest buffer, a tenth of the BDP, and the deepest one; and beside one flow of CUBIC.
RENO_SMALLEST, BBR_SMALLEST, RENO_TENTH = 17, 20, 21
RENO_DEEPEST, CUBIC_DEEPEST, VEGAS_DEEPEST = 37, 38, 39
VEGAS_BESIDE_CUBIC, BBR_BESIDE_CUBIC = 43, 44
# Where each further buffer's four trials begin; and sets that are still to be recorded.
BUFFERS_BEGIN = range(17, 41, 4)
TENTH_WAIT, RADIO_CLEAN = "tenth-wait-1-ms", "radio-no-loss"
# As the source printed them, in Mbit/s: by cable, and behind the NAT.
PUBLISHED = {13: (238.0, 114.0), 14: (217.0, 141.0), 15: (18.3, 182.0), 16: (273.0, 155.0)}


def set_results(f: Facts, sets: RecordedSets) -> None:
    """Set what results.md and its slides quote."""
    _paths(f, sets)
    _at_each_wait(f, sets)
    _as_the_source_had_it(f, sets)
    _buffers(f, sets)
    _rivals(f, sets)


def _paths(f: Facts, sets: RecordedSets) -> None:
    """The four by cable, over radio, and behind a gateway that ends TCP, by trial."""
    runs = sets.runs("paths")
    goodput, rtt = _values_by_trial(runs, GOODPUT), _values_by_trial(runs, RTT)
    f.paths_runs = whole(len(runs))
    f.paths = runs_as_rows(
        (tries[-1] for tries in by_trial(runs).values()),
        {
            "path": lambda run: path_of(run.params, "TCP ended"),
            "algorithm": name_of,
            "goodput": lambda run: mbit_interval(goodput[run.trial]),
            "round-trip time": lambda run: Interval.of_mean(rtt[run.trial], "ms"),
        },
    )
    f.reno_cable = mbit(mean_of(goodput[RENO]))
    f.vegas_cable, f.bbr_cable, f.bbr_radio = (
        mbit_interval(goodput[trial]) for trial in (VEGAS, BBR, BBR_BY_RADIO)
    )
    f.next_radio = mbit(max(mean_of(goodput[trial]) for trial in (RENO_BY_RADIO, CUBIC_BY_RADIO)))
    f.next_radio_rtt = ms(min(mean_of(rtt[trial]) for trial in (RENO_BY_RADIO, CUBIC_BY_RADIO)), 3)
    f.vegas_cable_rtt, f.bbr_cable_rtt, f.vegas_radio_rtt, f.bbr_radio_rtt = (
        Interval.of_mean(rtt[trial], "ms") for trial in (VEGAS, BBR, VEGAS_BY_RADIO, BBR_BY_RADIO)
    )

    _reno_by_losses(f, runs)
    f.cable_apart = percent(_most_over_least(goodput, CABLE) - 1, 2)
    f.cable_goodput_tells_little = _most_over_least(goodput, CABLE) < 1.05
    f.radio_apart = Number(_most_over_least(goodput, RADIO), "times", 2)
    f.relayed_apart = Number(_most_over_least(goodput, RELAYED), "times", 2)
    f.cable_by_goodput, f.radio_by_goodput = (_in_order(goodput, path) for path in (CABLE, RADIO))
    f.cable_by_rtt, f.radio_by_rtt = (_in_order(rtt, path) for path in (CABLE, RADIO))
    f.bbr_has_least_by_cable = _in_order(goodput, CABLE).startswith("BBR")
    f.bbr_waits_longest_over_radio = _in_order(rtt, RADIO).endswith("BBR")


def _at_each_wait(f: Facts, sets: RecordedSets) -> None:
    """The verdicts on the four, judged at each of the hosts' waits: one that differs from wait to wait can't be told."""
    by_wait = [sets.runs(name) for name in PATHS]
    goodput, rtt = ([_values_by_trial(runs, name) for runs in by_wait] for name in (GOODPUT, RTT))
    by_buffer = sets.runs("buffers")
    groups = (CABLE, *(range(first, first + 4) for first in BUFFERS_BEGIN))
    clean = _values_by_trial(sets.runs(RADIO_CLEAN), GOODPUT)
    f.bbr_clean_radio, f.cubic_clean_radio, f.reno_clean_radio, f.vegas_clean_radio = (
        mbit(mean_of(clean[trial]))
        for trial in (BBR_BY_RADIO, CUBIC_BY_RADIO, RENO_BY_RADIO, VEGAS_BY_RADIO)
    )
    f.losses_make_bbr_first = (
        mean_of(clean[BBR_BY_RADIO]) < 1.02 * mean_of(clean[CUBIC_BY_RADIO])
        and f.bbr_radio.low_value > f.next_radio.value
    )
    f.bbr_is_fastest_over_radio = agreed(
        [
            *(_has_so_many_above(values, RADIO, BBR_BY_RADIO, 0) for values in goodput),
            _fastest_in(sets, RADIO_CLEAN, RADIO),
        ]
    )
    f.bbr_is_fastest_by_cable = agreed(
        [
            *(_has_so_many_above(values, CABLE, BBR, 0) for values in goodput),
            *(
                _has_so_many_above(_values_by_trial(by_buffer, GOODPUT), group, group[-1], 0)
                for group in groups
            ),
            _fastest_in(sets, TENTH_WAIT, range(RENO_TENTH, RENO_TENTH + 4)),
        ]
    )
    f.vegas_is_slowest_by_cable = agreed(
        _has_so_many_above(values, CABLE, VEGAS, 3) for values in goodput
    )
    rtt_by_buffer = _values_by_trial(by_buffer, RTT)
    f.vegas_waits_least_by_cable = agreed(
        [
            *(_has_so_many_above(values, CABLE, VEGAS, 3) for values in rtt),
            *(_has_so_many_above(rtt_by_buffer, group, group[2], 3) for group in groups),
        ]
    )
    f.vegas_rtt_by_buffer = Numbers(
        tuple(mean_of(rtt_by_buffer[group[2]]) for group in groups), "ms"
    )
    f.reno_rtt_smallest, f.vegas_rtt_smallest = (
        ms(mean_of(rtt_by_buffer[trial]), 3) for trial in (RENO_SMALLEST, RENO_SMALLEST + 2)
    )
    tenth = _values_by_trial(sets.runs(TENTH_WAIT), GOODPUT)
    f.bbr_tenth_wait, f.next_tenth_wait = (
        mbit(mean)
        for mean in sorted((mean_of(rates) for rates in tenth.values()), reverse=True)[:2]
    )
    f.vegas_waits_least_over_radio = agreed(
        _has_so_many_above(values, RADIO, VEGAS_BY_RADIO, 3) for values in rtt
    )
    idle_ms = param(by_wait[0][0], "wire_rtt_ms")
    f.bbr_keeps_the_buffer_empty_by_cable, f.bbr_keeps_the_buffer_empty_over_radio = (
        agreed(
            judge(intervals.mean_interval(values[trial])[1:], most=1.25 * idle_ms) for values in rtt
        )
        for trial in (BBR, BBR_BY_RADIO)
    )
    f.paths_by_wait = table(
        (
            "path", "algorithm",
            *(f"{what}, a host waits up to {us(param(runs[0], 'processing_us'))}"
              for what in ("goodput (Mbit/s)", "round-trip time (ms)") for runs in by_wait),
        ),
        (
            (
                path_of(sets.trial(trial), "TCP ended"),
                NAMES[sets.trial(trial)["congestion_control"]],
                *(Interval.of_mean([rate / 1e6 for rate in values[trial]]) for values in goodput),
                *(Interval.of_mean(values[trial]) for values in rtt),
            )
            for trial in (*CABLE, *RADIO)
        ),
    )  # fmt: skip
    waiting = goodput[1]
    f.vegas_cable_wait, f.bbr_cable_wait = (mbit(mean_of(waiting[trial])) for trial in (VEGAS, BBR))
    f.bbr_cable_rtt_wait = Interval.of_mean(rtt[1][BBR], "ms")
    f.wait_slows_vegas = mean_of(waiting[VEGAS]) < 0.95 * mean_of(goodput[0][VEGAS])
    f.wait_makes_bbr_queue = mean_of(rtt[1][BBR]) > 1.25 * mean_of(rtt[0][BBR])
    f.cubic_kept_by_wait = Numbers(
        tuple(mean_of(column(by_trial(runs)[CUBIC], "client_kept_ratio")) for runs in by_wait)
    )


def _fastest_in(sets: RecordedSets, name: str, path: range) -> Judgement:
    """Return whether BBR, the last of these trials, is surely the fastest in a set."""
    return _has_so_many_above(_values_by_trial(sets.runs(name), GOODPUT), path, path[-1], 0)


def _reno_by_losses(f: Facts, runs: Sequence[Result]) -> None:
    """Reno over the radio: what Mathis' model allows it, by the share that the radio loses and the round trips that were
    measured, with the constant of a Reno that repairs by SACK at that share."""
    radio = [run for run in runs if run.trial == RENO_BY_RADIO]
    lost = param(radio[0], "air_loss_ratio")
    allowed = [
        sack_reno_constant(lost)
        * mathis_bandwidth_bps(measured(run, "mss_bytes"), measured(run, RTT), lost)
        for run in radio
    ]
    f.radio_loss = Number(lost, digits=1)
    f.radio_reno_by_model, f.radio_reno = (
        mbit(mean_of(rates)) for rates in (allowed, column(radio, GOODPUT))
    )


def _as_the_source_had_it(f: Facts, sets: RecordedSets) -> None:
    """Ten seconds on a path with the source's three numbers, undisturbed and disturbed, a run of each."""
    calm, disturbed = (
        {run.trial: run for run in sets.runs(name)}
        for name in ("as-the-source", "as-the-source-disturbed")
    )
    f.as_the_source = table(
        (
            "algorithm", "published, cable (Mbit/s)", "published, behind the NAT (Mbit/s)",
            "ours over all ten seconds, undisturbed", "the same, disturbed",
            "our mean RTT, undisturbed",
        ),
        ((
                name_of(calm[trial]),
                Number(wired),
                Number(nat),
                mbit(measured(calm[trial], "goodput_bps")),
                mbit(measured(disturbed[trial], "goodput_bps")),
                ms(measured(calm[trial], RTT)),
            )
            for trial, (wired, nat) in PUBLISHED.items()),
    )  # fmt: skip
    rates = column(list(calm.values()), "goodput_bps")
    f.calm_apart = percent(max(rates) / min(rates) - 1, 2)
    f.calm_rtts = Numbers.of([ms(measured(run, RTT)) for run in calm.values()])
    f.vegas_is_last_where_disturbed = measured(disturbed[VEGAS_OF_SOURCE], "goodput_bps") == min(
        column(list(disturbed.values()), "goodput_bps")
    )
    f.bbr_is_first_where_disturbed = measured(disturbed[BBR_OF_SOURCE], "goodput_bps") == max(
        column(list(disturbed.values()), "goodput_bps")
    )
    vegas, bbr = calm[VEGAS_OF_SOURCE], calm[BBR_OF_SOURCE]
    f.vegas_waits_long_undisturbed = measured(vegas, RTT) > 1.5 * param(vegas, "wire_rtt_ms")
    f.calm_bbr_cwnd_over_rate = ms(measured(bbr, "cwnd_over_rate_ms"))
    f.calm_bbr_rtt = ms(measured(bbr, RTT))


def _buffers(f: Facts, sets: RecordedSets) -> None:
    """Each of the four by cable, with seven buffers."""
    runs = sets.runs("buffers")
    goodput, rtt, resent = (_values_by_trial(runs, name) for name in (GOODPUT, RTT, "retransmits"))
    f.buffers_runs = whole(len(runs))
    filling: dict[str, list[float]] = {name: [] for name in NAMES}
    for run in (tries[-1] for tries in by_trial(runs).values()):
        if mean_of(goodput[run.trial]) >= 0.99 * shaped_goodput_bps(param(run, "rate_mbit")):
            share = param(run, "buffer_bytes") / path_bdp_bytes(run.params)
            filling[algorithm_of(run)].append(share)
    f.reno_fills, f.cubic_fills, f.vegas_fills = (
        percent(min(filling[name])) for name in ("reno", "cubic", "vegas")
    )
    f.bbr_never_fills = not filling["bbr"]
    f.reno_smallest_resent, f.bbr_smallest_resent = (
        whole(mean_of(resent[n]))
        for n in (  # Trials with the smallest buffer, a tenth of the BDP, and the deepest one; and beside one flow of CUBIC.
            RENO_SMALLEST,
            BBR_SMALLEST,
        )
    )
    f.bbr_loses_far_more = mean_of(resent[BBR_SMALLEST]) > 10 * mean_of(resent[RENO_SMALLEST])
    f.reno_tenth = mbit(mean_of(goodput[RENO_TENTH]))
    tenth, deep = sets.trial(RENO_TENTH), sets.trial(RENO_DEEPEST)
    f.tenth_of_bdp = percent(tenth["buffer_bytes"] / path_bdp_bytes(tenth))
    f.deepest_bdp = Number(deep["buffer_bytes"] / path_bdp_bytes(deep), digits=2)
    f.reno_deepest_rtt, f.cubic_deepest_rtt, f.vegas_deepest_rtt = (
        ms(mean_of(rtt[trial])) for trial in (RENO_DEEPEST, CUBIC_DEEPEST, VEGAS_DEEPEST)
    )
    deepest = rtt[VEGAS_DEEPEST]
    f.one_vegas_keeps_its_queue = sum(wait > 2 * min(deepest) for wait in deepest) == 1


def _rivals(f: Facts, sets: RecordedSets) -> None:
    """Each of the four beside one flow of CUBIC."""
    runs = sets.runs("rivals")
    rtt = _values_by_trial(runs, RTT)
    share = {
        trial: [100 * ratio for ratio in shares]
        for trial, shares in _values_by_trial(runs, "client_share").items()
    }
    f.rivals = runs_as_rows(
        (tries[-1] for tries in by_trial(runs).values()),
        {
            "the client's algorithm": name_of,
            "its share of the goodput": lambda run: Interval.of_mean(share[run.trial], "%"),
            "its round-trip time": lambda run: Interval.of_mean(rtt[run.trial], "ms"),
        },
    )
    f.vegas_gives_way = mean_of(share[VEGAS_BESIDE_CUBIC]) < 40
    f.bbr_does_the_opposite = mean_of(share[BBR_BESIDE_CUBIC]) > 60
    f.bbr_leaves = Number(100 - mean_of(share[BBR_BESIDE_CUBIC]), "%")


def _values_by_trial(runs: Sequence[Result], name: str) -> dict[int, list[float]]:
    """A measured value of each run, by trial."""
    return {trial: column(tries, name) for trial, tries in by_trial(runs).items()}


def _has_so_many_above(
    values: Mapping[int, Sequence[float]], path: range, trial: int, wanted: int
) -> Judgement:
    """Whether exactly `wanted` of a path's other three surely have more than this trial, and all others less: their
    intervals don't touch. False once more are above it, or below it, than that; None where it can't be told."""
    ends = {other: intervals.mean_interval(list(values[other]))[1:] for other in path}
    above = sum(ends[other][0] > ends[trial][1] for other in path)
    below = sum(ends[other][1] < ends[trial][0] for other in path)
    if above > wanted or below > 3 - wanted:
        return False
    return True if above + below == 3 else None


def _most_over_least(values: Mapping[int, Sequence[float]], path: range) -> float:
    means = [mean_of(values[trial]) for trial in path]
    return max(means) / min(means)


def _in_order(values: Mapping[int, Sequence[float]], path: range) -> str:
    """The four's names, from the least mean to the most."""
    ranked = sorted(
        zip(path, NAMES.values(), strict=True), key=lambda pair: mean_of(values[pair[0]])
    )
    return ", ".join(name for _, name in ranked)
