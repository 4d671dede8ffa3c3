"""What became of the source's claims, and what is beyond them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Numbers,
    RecordedSets,
    agreed,
    by_trial,
    cell,
    column,
    judge,
    mean,
    mean_interval,
    measured,
    ms,
    param,
    percent,
    percents,
    runs_as_rows,
    seconds,
    size,
    table,
    trial_cell,
    us,
    whole,
)
from measuretwice.facts.values import Probability
from measuretwice.measure.flows import Flow
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import median_interval
from measuretwice.stats.two_samples import holm, rank_sum
from measuretwice.tcp import model

from .runs import (
    ALGORITHM,
    BUFFER,
    CUBIC_LARGE,
    CUBIC_SMALL,
    HIGHSPEED_LARGE,
    HIGHSPEED_SMALL,
    bdp_bytes,
)

# Linux' CUBIC keeps 717/1024 of its window, RFC 9438 says 0.7.
LINUX_CUBIC_KEPT = 717 / 1024
# Of the sweep's buffers, in bytes: those of which the source says something, and the two smallest.
FIVE_PERCENT, A_TENTH, A_FIFTH = 62500, 125000, 250000
SMALLEST, SECOND_SMALLEST = 12500, 25000
# Five runs of a buffer or more, by how long a host may let a packet wait.
SWEEPS = ("buffer-sweep", "buffer-sweep-wait-1-ms")
# Thirty runs of each experiment, by how long a host may let a packet wait.
THIRTY = ("thirty-times", "thirty-times-wait-100-us", "thirty-times-wait-1-ms")
# The same with offloads on; still to be recorded.
OFFLOADS_ON = "thirty-times-offloads-on"
JUDGED = (*THIRTY, OFFLOADS_ON)
SIGNIFICANT = 0.05

# Much less is taken for less than nine tenths (rules.toml).
MUCH_LESS = 0.9


def set_results(f: Facts, sets: RecordedSets) -> None:
    """Set what results.md, the module's other pages and its slides quote."""
    _after_a_loss(f, sets)
    _four_experiments(f, sets)
    _thirty_of_each(f, sets)
    _converging(f, sets)
    _four_comparisons(f, sets)
    _sweep(f, sets)
    _who_has_more(f, sets)
    _growth_by_ack(f, sets)
    _offloads(f, sets)


def _after_a_loss(f: Facts, sets: RecordedSets) -> None:
    """What each algorithm keeps of its window after a loss: by the RFC, by Linux' code, and as recorded."""
    f.kept_of_400_highspeed = whole(400 * (1 - model.highspeed_decrease_ratio(400)))
    f.kept_of_400_cubic = whole(400 * model.CUBIC_KEPT_RATIO)
    f.cubic_cuts = percent(1 - model.CUBIC_KEPT_RATIO)
    f.highspeed_cuts_at_200 = percent(model.highspeed_decrease_ratio(200), 2)
    f.highspeed_cuts_at_800 = percent(model.highspeed_decrease_ratio(800), 2)
    f.kept = table(
        (
            "trial", "algorithm", "buffer", "flow", "losses", "window before", "kept", "by the RFC",
            "by Linux's code",
        ),
        (
            (
                trial_cell(run), name, BUFFER(run), flow.node, Number(flow.decreases), whole(window), Number(kept_ratio),
                Number(_kept_by_rfc(name, window)), Number(_kept_by_linux(name, window)),
            )
            for name in ("highspeed", "cubic", "reno")
            for run, flow, window, kept_ratio in _cuts(sets, name)
        ),
    )  # fmt: skip
    cuts = [(window, kept_ratio) for _, _, window, kept_ratio in _cuts(sets, "highspeed")]
    seen = [1 - kept_ratio for _, kept_ratio in cuts]
    rfc = [model.highspeed_decrease_ratio(window) for window, _ in cuts]
    linux = [model.linux_highspeed_decrease_ratio(window) for window, _ in cuts]
    f.cut_least, f.cut_most = percent(min(seen), 2), percent(max(seen), 2)
    f.cut_by_rfc_least, f.cut_by_rfc_most = percent(min(rfc), 2), percent(max(rfc), 2)
    f.cut_by_linux_least, f.cut_by_linux_most = percent(min(linux), 2), percent(max(linux), 2)
    f.cut_flows = Number(len(cuts))
    of_thirty = [
        run
        for name in THIRTY
        for trial in (HIGHSPEED_LARGE, HIGHSPEED_SMALL)
        for run in sets.runs(name, trial)
    ]
    cuts_of_thirty = [
        1 - kept_ratio for flow in ("s1", "s2") for kept_ratio in column(of_thirty, f"{flow}_kept_ratio")
    ]  # fmt: skip
    f.cuts_of_thirty = Numbers((100 * min(cuts_of_thirty), 100 * max(cuts_of_thirty)), "%", 2)
    f.cut_runs = whole(len(of_thirty))
    f.a_loss_costs_highspeed_little = judge([*seen, *cuts_of_thirty], most=0.25)
    f.little_more_is_kept_than_linux_says = all(
        -0.01 < kept_ratio - _kept_by_linux("highspeed", window) < 0.03
        for window, kept_ratio in cuts
    )


def _cuts(sets: RecordedSets, algorithm: str) -> Iterator[tuple[Result, Flow, float, float]]:
    """Each flow of an algorithm that lost something after slow start, its run, its window before (segments), and which
    part of it was kept."""
    for run in sets.runs("each-once", congestion_control=algorithm):
        for flow in run.flows:
            assert isinstance(flow, Flow)
            if flow.decreases:
                assert flow.decrease_window_segments
                assert flow.kept_ratio
                yield run, flow, flow.decrease_window_segments, flow.kept_ratio


def _kept_by_rfc(algorithm: str, window_segments: float) -> float:
    if algorithm == "highspeed":
        return 1 - model.highspeed_decrease_ratio(window_segments)
    return {"reno": 0.5, "cubic": model.CUBIC_KEPT_RATIO}[algorithm]


def _kept_by_linux(algorithm: str, window_segments: float) -> float:
    if algorithm == "highspeed":
        return 1 - model.linux_highspeed_decrease_ratio(window_segments)
    return {"reno": 0.5, "cubic": LINUX_CUBIC_KEPT}[algorithm]


def _four_experiments(f: Facts, sets: RecordedSets) -> None:
    """A run of each of the source's four experiments."""
    f.queues = runs_as_rows(
        (run for run in sets.runs("each-once") if run.trial <= CUBIC_SMALL),
        {
            "trial": trial_cell,
            "algorithm": ALGORITHM,
            "buffer": BUFFER,
            "packets in the queue, mean": cell("queue_mean_packets", Number),
            "link in use": cell("utilisation", percent),
        },
    )


def _thirty_of_each(f: Facts, sets: RecordedSets) -> None:
    """Thirty runs of each of the source's four experiments: use of the link, and fairness."""
    runs = sets.runs(THIRTY[0])
    experiments = by_trial(runs)
    f.all_runs = Number(len(runs))
    f.runs_of_each = Number(len(experiments[HIGHSPEED_LARGE]))
    f.duration = seconds(param(runs[0], "duration_s"))
    f.thirty = table(
        (
            "algorithm", "buffer", "Jain's index", "s1's share (%)", "link in use (%)",
            "delay in the queue", "s1 ahead", "converged", "time to converge",
        ),
        (
            (
                ALGORITHM(of_trial[0]),
                BUFFER(of_trial[0]),
                mean_interval(of_trial, "jains_index"),
                Interval.of_mean(percents(of_trial, "s1_share")),
                Interval.of_mean(percents(of_trial, "utilisation")),
                ms(mean(of_trial, "queue_delay_mean_ms")),
                f"{sum(share > 0.5 for share in column(of_trial, 's1_share'))} of {len(of_trial)}",
                f"{sum(run.value('sustained_convergence_s') is not None for run in of_trial)} of {len(of_trial)}",
                _convergence(of_trial),
            )
            for of_trial in experiments.values()
        ),
    )  # fmt: skip
    small = experiments[HIGHSPEED_SMALL]
    f.use_small = Interval.of_mean(percents(small, "utilisation"), "%")
    uses = [
        Interval.of_mean(percents(sets.runs(name, HIGHSPEED_SMALL), "utilisation"), "%")
        for name in THIRTY
    ]
    shorter = _use_of_three_buffers(sets, SWEEPS[0])[FIVE_PERCENT]
    f.use_tenth_of_shorter = shorter
    f.use_small_waits = Numbers(tuple(use.middle_value for use in uses), "%")
    f.a_tenth_gives_over_90_percent = agreed(judge(use, least=90) for use in (*uses, shorter))

    jain = {trial: column(of_trial, "jains_index") for trial, of_trial in experiments.items()}
    f.jain_large, f.jain_small = (
        Number(statistics.fmean(jain[trial])) for trial in (HIGHSPEED_LARGE, HIGHSPEED_SMALL)
    )
    f.jain_small_less_large = Interval.of_difference(jain[HIGHSPEED_SMALL], jain[HIGHSPEED_LARGE])
    f.fairness = table(
        ("question", "who said what", "here, with the difference's 95 % interval"),
        (
            (question, who, _compared(jain[first], jain[second]))
            for question, who, first, second in (
                ("HighSpeed TCP, large against small buffer",
                 "large converges faster and is fairer (paper), the opposite (reproduction)", HIGHSPEED_LARGE, HIGHSPEED_SMALL),
                ("CUBIC, large against small buffer", "nothing", CUBIC_LARGE, CUBIC_SMALL),
                ("large buffer, HighSpeed TCP against CUBIC", "CUBIC converges faster (reproduction)",
                 HIGHSPEED_LARGE, CUBIC_LARGE),
                ("small buffer, HighSpeed TCP against CUBIC", "the same", HIGHSPEED_SMALL, CUBIC_SMALL),
            )
        ),
    )  # fmt: skip


def _compared(a: Sequence[float], b: Sequence[float]) -> str:
    """Which of two experiments is fairer by Jain's index."""
    difference = Interval.of_difference(a, b)
    fairer = {True: "the first is fairer", False: "the second is fairer", None: "not told apart"}
    return (
        f"Jain's index {Number(statistics.fmean(a))} against {Number(statistics.fmean(b))}; "
        f"difference {difference.ends}: {fairer[judge(difference, least=0)]}"
    )


def _converging(f: Facts, sets: RecordedSets) -> None:
    """Times to even shares that last, of thirty runs of each experiment at each of the hosts' waits: medians, "never"
    being longer than any, and comparisons by ranks."""
    runs = by_trial(sets.runs(THIRTY[0]))
    f.highspeed_large_converges = _convergence(runs[HIGHSPEED_LARGE])
    f.highspeed_small_converges = _convergence(runs[HIGHSPEED_SMALL])
    f.cubic_large_converges = _convergence(runs[CUBIC_LARGE])
    f.cubic_small_converges = _convergence(runs[CUBIC_SMALL])
    f.converging = table(
        ("algorithm", "buffer", *(f"a host waits up to {_wait(sets, name)}" for name in THIRTY)),
        (
            (
                ALGORITHM(runs[trial][0]),
                BUFFER(runs[trial][0]),
                *(_convergence(sets.runs(name, trial)) for name in THIRTY),
            )
            for trial in (HIGHSPEED_LARGE, HIGHSPEED_SMALL, CUBIC_LARGE, CUBIC_SMALL)
        ),
    )
    f.host_wait = _wait(sets, THIRTY[0])
    f.first_looks_last = whole(
        sum(
            run.value("convergence_s") is not None
            and run.value("sustained_convergence_s") is not None
            for run in runs[HIGHSPEED_LARGE]
        )
    )
    f.first_looks_of = whole(
        sum(run.value("convergence_s") is not None for run in runs[HIGHSPEED_LARGE])
    )


def _four_comparisons(f: Facts, sets: RecordedSets) -> None:
    """The page's four comparisons of two experiments, by ranks, at each of the hosts' waits, and corrected after Holm."""
    questions = {
        "highspeed_is_fairer_with_small": (_evenness, HIGHSPEED_SMALL, HIGHSPEED_LARGE),
        "highspeed_converges_faster_with_large": (_quickness, HIGHSPEED_LARGE, HIGHSPEED_SMALL),
        "cubic_converges_faster_with_large": (_quickness, CUBIC_LARGE, HIGHSPEED_LARGE),
        "cubic_converges_faster_with_small": (_quickness, CUBIC_SMALL, HIGHSPEED_SMALL),
    }
    words = (
        "HighSpeed TCP: more even with the small buffer",
        "HighSpeed TCP: lasting evenness sooner with the large buffer",
        "large buffer: lasting evenness sooner with CUBIC",
        "small buffer: the same",
    )
    verdicts: dict[str, list[bool | None]] = {name: [] for name in questions}
    columns: list[list[str]] = []
    for of_set in JUDGED:
        samples = [
            (values_of(sets.runs(of_set, first)), values_of(sets.runs(of_set, second)))
            for values_of, first, second in questions.values()
        ]
        tests = [rank_sum(a, b) for a, b in samples]
        corrected = holm([test.p for test in tests])
        more = [test.statistic / (len(a) * len(b)) for test, (a, b) in zip(tests, samples, strict=True)]  # fmt: skip
        columns.append(
            [
                f"{percent(part, 2)} ({Probability(p)})"
                for part, p in zip(more, corrected, strict=True)
            ]
        )
        for name, p, part in zip(questions, corrected, more, strict=True):
            verdicts[name].append(part > 0.5 if p < SIGNIFICANT else None)
    for name, at_waits in verdicts.items():
        setattr(f, name, agreed(at_waits))
    f.four_comparisons = table(
        ("statement", *(_arm(sets, name) for name in JUDGED)),
        zip(words, *columns, strict=True),
    )
    f.fairness_by_wait = table(
        ("algorithm", "buffer", *(_arm(sets, name) for name in JUDGED)),
        (
            (
                ALGORITHM(sets.runs(THIRTY[0], trial)[0]),
                BUFFER(sets.runs(THIRTY[0], trial)[0]),
                *(mean_interval(sets.runs(name, trial), "jains_index") for name in JUDGED),
            )
            for trial in (HIGHSPEED_LARGE, HIGHSPEED_SMALL, CUBIC_LARGE, CUBIC_SMALL)
        ),
    )
    gaps = [
        mean(sets.runs(name, CUBIC_SMALL), "jains_index")
        - mean(sets.runs(name, HIGHSPEED_SMALL), "jains_index")
        for name in THIRTY
    ]
    f.gap_usual, f.gap_wait = Number(gaps[0]), Number(gaps[-1])
    f.gap_shrinks = gaps[-1] < gaps[0] / 2
    f.gap_offloads = Number(
        mean(sets.runs(OFFLOADS_ON, CUBIC_SMALL), "jains_index")
        - mean(sets.runs(OFFLOADS_ON, HIGHSPEED_SMALL), "jains_index")
    )
    f.offloads_make_highspeed_even = all(
        mean(sets.runs(OFFLOADS_ON, trial), "jains_index")
        > mean(sets.runs(THIRTY[0], trial), "jains_index") + 0.05
        for trial in (HIGHSPEED_LARGE, HIGHSPEED_SMALL)
    )


def _arm(sets: RecordedSets, name: str) -> str:
    """Return what sets a set of thirty runs apart from the others."""
    return "offloads on" if name == OFFLOADS_ON else f"a host waits up to {_wait(sets, name)}"


def _evenness(runs: Sequence[Result]) -> list[float]:
    return column(runs, "jains_index")


def _quickness(runs: Sequence[Result]) -> list[float]:
    """Times to even shares that last, so that the larger is the sooner."""
    return [-time_s for time_s in _times_s(runs)]


def _wait(sets: RecordedSets, name: str) -> str:
    # As the rules and the cards write it.
    return str(us(param(sets.runs(name)[0], "processing_us"))).replace("0.10", "0.1")


def _convergence(runs: Sequence[Result]) -> str:
    """The median of the times to even shares that last, and its interval."""
    duration_s = param(runs[0], "duration_s")
    middle, low, high = (
        str(seconds(value)) if value < duration_s else "never"
        for value in median_interval(_times_s(runs))
    )
    return f"{middle} ({low} to {high})" if low != "never" else "never"


def _times_s(runs: Sequence[Result]) -> list[float]:
    """Times to even shares that last; a run that never came to them is infinite."""
    times_s = [run.measured["sustained_convergence_s"] for run in runs]
    return [math.inf if time_s is None else float(time_s) for time_s in times_s]


def _sweep(f: Facts, sets: RecordedSets) -> None:
    """HighSpeed TCP with many buffers, several runs of each: how much of the link is in use."""
    runs = sets.runs("buffer-sweep")
    bdp = bdp_bytes(sets.trial(HIGHSPEED_LARGE))
    f.sweep_runs = Number(len(runs))
    f.sweep_repeats = Number(len({run.seed for run in runs}))
    f.sweep_duration = seconds(param(runs[0], "duration_s"))
    by_wait = [_use_of_three_buffers(sets, name) for name in SWEEPS]
    use, waiting = by_wait
    f.use_5_percent, f.use_20_percent = use[FIVE_PERCENT], use[A_FIFTH]
    f.use_5_percent_wait, f.use_20_percent_wait = waiting[FIVE_PERCENT], waiting[A_FIFTH]
    much_less = MUCH_LESS * use[A_TENTH].middle_value
    f.use_10_percent, f.much_less = use[A_TENTH], Number(much_less, "%")
    smaller = [_use_of(sets, SWEEPS[0], buffer) for buffer in (SMALLEST, SECOND_SMALLEST)]
    f.use_smaller = Numbers(tuple(interval.middle_value for interval in smaller), "%")
    f.less_than_10_percent_gives_less = agreed(
        [
            *(judge(interval, most=much_less) for interval in smaller),
            *(
                judge(of_wait[FIVE_PERCENT], most=MUCH_LESS * of_wait[A_TENTH].middle_value)
                for of_wait in by_wait
            ),
        ]
    )
    f.less_is_used_with_5_percent = use[FIVE_PERCENT].high_value < use[A_TENTH].low_value
    f.a_fifth_gives_up_to_98_percent = agreed(
        judge(of_wait[A_FIFTH], least=90, most=98) or (judge(of_wait[A_FIFTH], least=90) and None)
        for of_wait in by_wait
    )
    so = {
        True: "holds",
        False: "doesn't hold",
        None: "undecided, since the limit is inside the interval",
    }
    f.percentages = table(
        ("buffer", "paper", "here, and 95 % interval", "verdict for these runs alone"),
        (
            (
                percent(buffer / bdp),
                paper,
                use[buffer],
                so[judge(use[buffer], least=least, most=most)],
            )
            for buffer, paper, least, most in (
                (FIVE_PERCENT, "'significantly' less", 0, much_less),
                (A_TENTH, "over 90 %", 90, 100),
                (A_FIFTH, "up to 98 %", 90, 98),
            )
        ),
    )
    f.smallest = size(SMALLEST)
    f.second_smallest = size(SECOND_SMALLEST)
    f.burst_is_larger_than_the_smallest = param(runs[0], "burst_bytes") > SECOND_SMALLEST and {
        buffer for run in runs if (buffer := param(run, "buffer_bytes")) <= SECOND_SMALLEST
    } == {SMALLEST, SECOND_SMALLEST}


def _use_of_three_buffers(sets: RecordedSets, name: str) -> dict[int, Interval]:
    """Return HighSpeed TCP's mean use of the link with each of the buffers of which the source says something, in bytes."""
    return {buffer: _use_of(sets, name, buffer) for buffer in (FIVE_PERCENT, A_TENTH, A_FIFTH)}


def _use_of(sets: RecordedSets, name: str, buffer_bytes: int) -> Interval:
    """Return HighSpeed TCP's mean use of the link, in percent, with one buffer."""
    runs = sets.runs(name, congestion_control="highspeed", buffer_bytes=buffer_bytes)
    return Interval.of_mean(percents(runs, "utilisation"), "%")


def _who_has_more(f: Facts, sets: RecordedSets) -> None:
    """Of each algorithm in the same sweep: with how many buffers which of the two paths has more."""
    runs = sets.runs("buffer-sweep")
    bdp = bdp_bytes(sets.trial(HIGHSPEED_LARGE))
    rows = []
    for name in sorted({str(run.params["congestion_control"]) for run in runs}):
        of_algorithm = sets.runs("buffer-sweep", congestion_control=name)
        share = {
            buffer: mean(
                [run for run in of_algorithm if run.params["buffer_bytes"] == buffer], "s1_share"
            )
            for buffer in sorted({param(run, "buffer_bytes") for run in of_algorithm})
        }
        longer = [str(percent(buffer / bdp)) for buffer in share if share[buffer] >= 0.5]
        ahead = sum(value > 0.5 for value in column(of_algorithm, "s1_share"))
        rows.append(
            (
                name,
                Number(len(share)),
                Number(len(share) - len(longer)),
                ", ".join(longer) or "none",
                f"{ahead} of {len(of_algorithm)}",
            )
        )
        if name == "bbr":
            f.bbr_favours_the_longer_path_with_large = share[max(share)] > 0.5
    f.who_has_more = table(
        (
            "algorithm", "buffers", "shorter path has more, on average",
            "longer path has more, on average, at", "single runs in which the longer has more",
        ),
        rows,
    )  # fmt: skip


def _growth_by_ack(f: Facts, sets: RecordedSets) -> None:
    """HighSpeed TCP's segments for each ACK, a run of each buffer; and the small buffer behind a small burst."""
    rows, ratios = [], []
    for run in sets.runs("each-once", congestion_control="highspeed"):
        for flow in run.flows:
            grown = sets.counters_grown(run, flow.node)
            ratio = grown["TcpOutSegs"] / grown["TcpInSegs"]
            ratios.append(ratio)
            rows.append(
                (
                    Number(run.trial),
                    size(param(run, "buffer_bytes")),
                    flow.node,
                    Number(ratio),
                    Number(1 / ratio, digits=2),
                )
            )
    f.acks = table(
        (
            "trial",
            "buffer",
            "flow",
            "segments for each ACK",
            "growth that follows, as a multiple of $a(w)$",
        ),
        rows,
    )
    f.about_two_segments_an_ack = min(ratios) >= 1.5 and max(ratios) <= 2.1

    bits = sets.runs("small-burst")
    small = sets.runs("thirty-times", HIGHSPEED_SMALL)
    f.small_burst = size(param(bits[0], "burst_bytes"))
    f.small_burst_has_room_for_two = (
        2 * model.USUAL_FRAME_BYTES <= param(bits[0], "burst_bytes") < 3 * model.USUAL_FRAME_BYTES
    )
    f.use_small_burst = Interval.of_mean(percents(bits, "utilisation"), "%")
    f.use_by_small_burst = Interval.of_difference(
        percents(bits, "utilisation"), percents(small, "utilisation"), "%", 1
    )
    f.small_burst_may_be_chance = 0 in f.use_by_small_burst


def _offloads(f: Facts, sets: RecordedSets) -> None:
    """One run of each experiment with offloads on, beside the least and most of those with offloads off."""
    runs = sets.runs("offloads-on")
    packet_bytes = [
        measured(run, "queue_mean_bytes") / measured(run, "queue_mean_packets") for run in runs
    ]
    f.packet_least, f.packet_most = size(min(packet_bytes)), size(max(packet_bytes))
    rows, outside, uneven = [], [], 0
    for run in runs:
        off = sets.runs("thirty-times", run.trial)
        use, drops = column(off, "utilisation"), column(off, "qdisc_drops")
        if not min(use) - 0.001 <= measured(run, "utilisation") <= max(use) + 0.001:
            outside.append(run.trial)
        indices = column(off, "jains_index")
        uneven += not min(indices) <= measured(run, "jains_index") <= max(indices)
        rows.append(
            (
                trial_cell(run),
                ALGORITHM(run),
                BUFFER(run),
                f"{percent(round(min(use), 3))} to {percent(round(max(use), 3))}",
                percent(round(measured(run, "utilisation"), 3)),
                f"{whole(min(drops))} to {whole(max(drops))}",
                whole(measured(run, "qdisc_drops")),
                f"{Number(min(indices))} to {Number(max(indices))}",
                Number(measured(run, "jains_index")),
            )
        )
    f.with_offloads = table(
        (
            "trial", "algorithm", "buffer", "link in use, off", "on", "drops, off", "on",
            "Jain's index, off", "on",
        ),
        rows,
    )  # fmt: skip
    f.jain_outside_with_offloads = whole(uneven, f"of {len(runs)}")
    f.only_trial_2_differs_with_offloads = outside == [HIGHSPEED_SMALL]
