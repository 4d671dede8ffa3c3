"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    RecordedSets,
    cell,
    column,
    excerpt,
    judge,
    mbit,
    mean,
    measured,
    ms,
    param,
    percent,
    runs_as_columns,
    runs_as_rows,
    seconds,
    table,
    whole,
)
from measuretwice.measure.flows import Flow
from measuretwice.runs.result import Result
from measuretwice.stats import two_samples
from measuretwice.stats.intervals import median_interval
from measuretwice.tcp import model

FRAME_BYTES, DATA_BYTES = 1514, 1448
# What the source meant by its large buffer, and what tc makes of it after each suffix.
LARGE_MB, SMALL_MB = 1.25, 0.125
MB_BYTES = 1024 * 1024
# Linux' CUBIC keeps 717/1024 of its window, RFC 9438 says 0.7.
LINUX_CUBIC_KEPT = 717 / 1024
# By trial: of the source's four experiments.
HIGHSPEED_LARGE, HIGHSPEED_SMALL, CUBIC_LARGE, CUBIC_SMALL = 1, 2, 3, 4
TBF, TBF_FILE = {"kind": "tbf"}, "g1/qdisc.after.json"
# In one file of a run on g1: almost a second of it.
ROWS = {"first": 110, "last": 8}


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/02-buffers/."""
    f = Facts()
    _settings(f, sets)
    _first_try(f, sets)
    _size_suffix(f.case("size-suffix"), sets)
    _whose_bdp(f.case("whose-bdp"), sets)
    _hidden_queue(f.case("hidden-queue"), sets)
    _field_number(f.case("field-number"), sets)
    _units(f.case("units"), sets)
    _one_run(f.case("one-run"), sets)
    _after_a_loss(f, sets)
    _four_experiments(f, sets)
    _thirty_of_each(f, sets)
    _converging(f, sets)
    _sweep(f, sets)
    _growth_by_ack(f, sets)
    _offloads(f, sets)
    return f


def _settings(f: Facts, sets: RecordedSets) -> None:
    """What trials 1 and 2 are set to, and what follows from it: s1's path is the longer one."""
    one, two = sets.trial(1), sets.trial(2)
    f.rate = whole(one["rate_mbit"], "Mbit/s")
    f.large = _bytes(one["buffer_bytes"])
    f.small = _bytes(two["buffer_bytes"])
    f.burst = _bytes(one["burst_bytes"])
    f.large_packets = whole(one["buffer_bytes"] / FRAME_BYTES)
    f.first_delay = ms(one["first_delay_ms"])
    f.back_delay = ms(one["back_delay_ms"])
    f.first_rtt = ms(_first_rtt_ms(one))
    f.second_rtt = ms(2 * one["second_delay_ms"] + one["back_delay_ms"])
    f.start_spread = ms(one["start_spread_ms"])
    f.bdp = _bytes(_bdp_bytes(one))
    f.bdp_packets = whole(_bdp_bytes(one) / FRAME_BYTES)
    f.trials = table(
        ("trial", "algorithm", "buffer", "of the longer path's BDP", "RTT of s1's path"),
        (
            (
                Number(number),
                str(trial["congestion_control"]),
                _bytes(trial["buffer_bytes"]),
                percent(trial["buffer_bytes"] / _bdp_bytes(one)),
                ms(_first_rtt_ms(trial)),
            )
            for number, trial in ((number, sets.trial(number)) for number in sets.lab.trials)
        ),
    )


def _first_try(f: Facts, sets: RecordedSets) -> None:
    run = sets.run("first-try")
    f.first_jain = Number(measured(run, "jains_index"))
    f.first_buffer = _bytes(param(run, "buffer_bytes"))
    f.first_shares = table(
        ("flow", "goodput", "share"),
        (
            (
                name,
                mbit(measured(run, f"{node}_goodput_bps")),
                percent(measured(run, f"{node}_share")),
            )
            for name, node in (("s1, the longer path", "s1"), ("s2", "s2"))
        ),
    )


def _size_suffix(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.run("size-suffix-broken"), sets.run("size-suffix-fixed")
    trial = sets.trial(1)
    f.command = (
        f'sudo tc qdisc add dev "$to_g2" root tbf rate {trial["rate_mbit"]}mbit '
        f"burst {trial['burst_bytes']} limit {broken.params['buffer_text']}"
    )
    f.rtt = ms(measured(fixed, "s1_path_rtt_ms"))
    f.lasts = seconds(param(broken, "duration_s"))
    keys = ["kind", "options", "packets", "drops"]
    f.qdisc = excerpt("size-suffix-broken", TBF_FILE, where=TBF, keys=keys)
    f.qdisc_after = excerpt("size-suffix-fixed", TBF_FILE, where=TBF, keys=keys)
    f.longest = _bytes(measured(broken, "queue_max_bytes"))
    f.longest_after = _bytes(measured(fixed, "queue_max_bytes"))
    f.goodput = mbit(measured(broken, "goodput_bps"))
    f.room = _bytes(measured(broken, "queue_limit_bytes"))
    times = trial["buffer_bytes"] / measured(broken, "queue_limit_bytes")
    f.meant_over_room = Number(times)
    f.room_is_about_an_eighth = 7 < times < 9
    f.as_mbit = whole(LARGE_MB * MB_BYTES / 8)
    f.as_mb = whole(LARGE_MB * MB_BYTES)
    f.small_as_mb = whole(SMALL_MB * MB_BYTES)
    f.mb_over_million = percent(MB_BYTES / 1e6 - 1, 2)
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "stage": _stage,
            "buffer": cell("queue_limit_bytes", _bytes),
            "longest queue": cell("queue_max_bytes", _bytes),
            "mean delay in the queue": cell("queue_delay_mean_ms", ms),
            "dropped": cell("queue_drops", whole),
        },
    )
    f.in_short = runs_as_columns(
        "recorded runs",
        {"broken": broken, "fixed": fixed},
        {
            "buffer by the qdisc": cell("queue_limit_bytes", _bytes),
            "link in use": cell("utilisation", percent),
        },
    )
    f.longest_drains_in = ms(_drain_ms(measured(fixed, "queue_max_bytes"), trial), 3)
    f.jain = Number(measured(broken, "jains_index"))
    f.jain_after = Number(measured(fixed, "jains_index"))


def _whose_bdp(f: Facts, sets: RecordedSets) -> None:
    name = "whose-bdp-broken"
    broken, fixed = sets.run(name), sets.run("whose-bdp-fixed")
    trial = sets.trial(1)
    f.lasts = seconds(param(broken, "duration_s"))
    f.ss_1, f.ss_2 = (
        excerpt(name, f"{node}/ss.txt", grep="data_segs_out:[0-9]{4,}", last=1)
        for node in ("s1", "s2")
    )
    f.ping_1, f.ping_2 = (excerpt(name, f"{node}/ping.txt", last=2) for node in ("s1", "s2"))
    f.qdisc = excerpt(name, TBF_FILE, where=TBF, keys=["kind", "options", "packets", "drops"])
    rtt_ms = [measured(broken, f"{node}_path_rtt_ms") for node in ("s1", "s2")]
    f.idle_rtt = ms(rtt_ms[1])
    f.rtt = ms(measured(broken, "s2_rtt_mean_ms"))
    f.rtt_after = ms(measured(fixed, "s2_rtt_mean_ms"))
    f.bdps = table(
        ("flow", "round-trip time", "its BDP", "the buffer, in its BDP"),
        (
            (
                flow,
                ms(path_ms),
                _bytes(model.bdp_bytes(trial["rate_mbit"], path_ms)),
                Number(measured(broken, f"buffer_bdp_ratio_{end}")),
            )
            for flow, path_ms, end in zip(
                ("s1 to d1", "s2 to d2"), rtt_ms, ("min", "max"), strict=True
            )
        ),
    )
    full_ms = _drain_ms(measured(broken, "queue_limit_bytes"), trial)
    f.room = _bytes(measured(broken, "queue_limit_bytes"))
    f.room_after = _bytes(measured(fixed, "queue_limit_bytes"))
    f.room_delays = ms(full_ms)
    f.rtts_apart = Number(rtt_ms[0] / rtt_ms[1])
    f.rtts_apart_when_full = Number((rtt_ms[0] + full_ms) / (rtt_ms[1] + full_ms))
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "buffer": cell("queue_limit_bytes", _bytes),
            "s2's mean round trip": cell("s2_rtt_mean_ms", ms),
            "over its idle one": lambda run: Number(
                measured(run, "s2_rtt_mean_ms") / measured(run, "s2_path_rtt_ms")
            ),
            "s1's mean round trip": cell("s1_rtt_mean_ms", ms),
            "goodput of both": cell("goodput_bps", mbit),
        },
    )
    f.stays_below_twice = measured(fixed, "s2_rtt_mean_ms") < 2 * measured(fixed, "s2_path_rtt_ms")
    f.goodput_change = _change(broken, fixed)
    f.small_of_short = percent(
        sets.trial(2)["buffer_bytes"] / model.bdp_bytes(trial["rate_mbit"], rtt_ms[1])
    )


def _hidden_queue(f: Facts, sets: RecordedSets) -> None:
    name = "hidden-queue-broken"
    broken, fixed = sets.run(name), sets.run("hidden-queue-fixed")
    trial = sets.trial(33)
    f.delay = ms(trial["first_delay_ms"])
    f.back_delay = ms(trial["back_delay_ms"])
    f.rtt = ms(measured(broken, "s1_path_rtt_ms"))
    f.buffer = _bytes(trial["buffer_bytes"])
    f.lasts = seconds(param(broken, "duration_s"))
    f.qdisc = excerpt(name, TBF_FILE, where=TBF, keys=["kind", "packets", "drops"])
    f.resent_1 = whole(measured(broken, "s1_retransmits"))
    f.resent_2 = whole(measured(broken, "s2_retransmits"))
    f.resent = whole(measured(broken, "retransmits"))
    f.drops = whole(measured(broken, "queue_drops"))
    apart = abs(measured(broken, "retransmits") - measured(broken, "queue_drops"))
    f.they_agree_within_a_hundredth = apart < 0.01 * measured(broken, "queue_drops")
    netem = {
        node: sets.raw_object(broken, f"{node}/qdisc.after.json", kind="netem")
        for node in ("s1", "s2", "d1", "d2")
    }
    f.hosts = table(
        ("node", "passes through its qdisc", "packets", "dropped"),
        (
            (node, what, whole(netem[node]["packets"]), whole(netem[node]["drops"]))
            for node, what in (
                ("s1", "s1's data"), ("s2", "s2's data"), ("d1", "ACKs for s1"), ("d2", "ACKs for s2"),
            )
        ),
    )  # fmt: skip
    f.drops_elsewhere = whole(measured(broken, "other_qdisc_drops"))
    f.acks_lost = whole(netem["d1"]["drops"] + netem["d2"]["drops"])
    f.data_lost = whole(netem["s1"]["drops"] + netem["s2"]["drops"])
    f.limit = whole(param(broken, "host_limit_packets"))
    packets_s = trial["rate_mbit"] * 1e6 / 8 / FRAME_BYTES
    f.packets_a_second = Number(packets_s, digits=2)
    f.in_a_queue = Number(packets_s * trial["first_delay_ms"] / 1e3, digits=2)
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "stage": _stage,
            "dropped by g1": cell("queue_drops", whole),
            "dropped elsewhere": cell("other_qdisc_drops", whole),
            "resent": cell("retransmits", whole),
            "s1's share": cell("s1_share", percent),
            "goodput": cell("goodput_bps", mbit),
        },
    )
    f.goodput_change = _change(broken, fixed)
    f.nothing_is_lost_elsewhere = measured(fixed, "other_qdisc_drops") == 0
    theirs = sets.runs("hosts-limit-as-the-source")
    f.in_their_queue = Number(packets_s * sets.trial(1)["first_delay_ms"] / 1e3, digits=2)
    f.their_drops = whole(sum(column(theirs, "other_qdisc_drops")), "packets")


def _field_number(f: Facts, sets: RecordedSets) -> None:
    name = "field-number-broken"
    broken, fixed = sets.run(name), sets.run("field-number-fixed")
    f.lasts = seconds(param(broken, "duration_s"))
    f.rows = excerpt(name, "g1/queue-length.txt", **ROWS)
    f.rows_after = excerpt("field-number-fixed", "g1/queue-length.txt", **ROWS)
    f.line = excerpt(name, "g1/queue-text.txt", first=110, last=1)
    f.goodput = mbit(measured(broken, "goodput_bps"))
    f.drops = whole(measured(broken, "queue_drops"))
    f.length_rows = whole(measured(broken, "length_rows"))
    f.all_rows_say_nothing_waits = measured(broken, "length_rows_mean_packets") == 0
    words = sets.raw_text(broken, "g1/queue-text.txt").splitlines()[-1].split()
    f.words = Number(len(words))
    f.word_of_the_length = Number(words.index("backlog") + 3)
    f.there_is_no_word_31 = len(words) < 31
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "stage": _stage,
            "rows": cell("length_rows", whole),
            "mean of the rows": cell("length_rows_mean_packets", Number),
            "mean by JSON": cell("length_rows_true_packets", Number),
        },
    )
    f.in_short = table(
        ("by the file", "mean queue"),
        (
            (what, Number(measured(run, "length_rows_mean_packets"), "packets"))
            for what, run in (("word 31", broken), ("the word behind its name", fixed))
        ),
    )


def _units(f: Facts, sets: RecordedSets) -> None:
    name = "units-broken"
    broken, fixed = sets.run(name), sets.run("units-fixed")
    f.lasts = seconds(param(broken, "duration_s"))
    f.buffer = _bytes(sets.trial(3)["buffer_bytes"])
    f.iperf3 = excerpt(name, "s2/iperf3.txt", first=6)
    f.begins = excerpt(name, "s2/cwnd.txt", first=9)
    f.ends = excerpt(name, "s2/cwnd.txt", last=5)
    f.middle = excerpt(name, "s2/cwnd.txt", between=["^39.80 ", "^1.10 "])
    f.begins_after = excerpt("units-fixed", "s2/cwnd.txt", first=9)
    f.rows_of_a_sender = whole(measured(broken, "window_rows") / 2)
    f.over_ss = Number(measured(broken, "window_rows_ratio"), digits=4)
    f.too_small_by = percent(1 - 1000 / 1024, 2)
    f.mbyte_segments = whole(MB_BYTES / DATA_BYTES)
    f.seems_to_fall = whole(MB_BYTES / DATA_BYTES * (1 - 1000 / 1024), "segments")
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "stage": _stage,
            "rows, both senders": cell("window_rows", whole),
            "times back": cell("window_rows_backwards", whole),
            "rows over ss, in the larger half": lambda run: Number(
                measured(run, "window_rows_ratio"), digits=4
            ),
        },
    )


def _one_run(f: Facts, sets: RecordedSets) -> None:
    once = sets.runs("one-run-broken")
    f.lasts = seconds(param(once[0], "duration_s"))
    f.one_of_each = runs_as_rows(
        once,
        {
            "trial": _trial,
            "buffer": _buffer,
            "s1": cell("s1_goodput_bps", mbit),
            "s2": cell("s2_goodput_bps", mbit),
            "Jain's index": cell("jains_index", Number),
        },
    )
    f.jain_large, f.jain_small = (Number(measured(run, "jains_index")) for run in once)
    f.least_packets = whole(min(column(once, "qdisc_offered_packets")), "packets")

    large, small = (
        sorted(_of_trial(sets.runs("one-run-fixed"), trial), key=lambda run: run.seed)
        for trial in (HIGHSPEED_LARGE, HIGHSPEED_SMALL)
    )
    f.repeats = Number(len(large))
    f.ten_pairs = table(
        (
            "seed", "Jain's index, large", "small", "a person with this pair would say",
            "s1's share, large", "and would say",
        ),
        (
            (
                Number(one.seed),
                Number(measured(one, "jains_index")),
                Number(measured(other, "jains_index")),
                "the large buffer is fairer"
                if measured(one, "jains_index") > measured(other, "jains_index")
                else "the small buffer is fairer",
                percent(measured(one, "s1_share")),
                "the long path wins" if measured(one, "s1_share") > 0.5 else "the short path wins",
            )
            for one, other in zip(large[:10], small[:10], strict=True)
        ),
    )  # fmt: skip
    shares = column(large, "s1_share")
    f.share_least, f.share_most = percent(min(shares)), percent(max(shares))
    f.either_path_could_win = min(shares) < 0.5 < max(shares)

    a, b = column(large, "jains_index"), column(small, "jains_index")
    f.thirty = table(
        ("trial", "buffer", "runs", "mean, and its 95 % interval", "least", "most"),
        (
            (
                Number(runs[0].trial),
                _bytes(param(runs[0], "buffer_bytes")),
                Number(len(runs)),
                Interval.of_mean(values),
                Number(min(values)),
                Number(max(values)),
            )
            for runs, values in ((large, a), (small, b))
        ),
    )
    f.mean_large, f.mean_small = (Number(statistics.fmean(values)) for values in (a, b))
    f.difference = _difference(a, b)
    f.zero_is_in_thirty = _has_zero(f.difference)
    f.ten_1, f.ten_2, f.ten_3 = tens = [
        _difference(a[start : start + 10], b[start : start + 10]) for start in (0, 10, 20)
    ]
    f.zero_is_in_each_ten = all(map(_has_zero, tens))
    f.quarter_below = Number(sorted(a)[len(a) // 4], digits=2)
    f.quarter_above = Number(sorted(a)[3 * len(a) // 4], digits=2)


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
                _trial(run), name, _buffer(run), flow.node, Number(flow.decreases), whole(window), Number(kept),
                Number(_kept_by_rfc(name, window)), Number(_kept_by_linux(name, window)),
            )
            for name in ("highspeed", "cubic", "reno")
            for run, flow, window, kept in _cuts(sets, name)
        ),
    )  # fmt: skip
    cuts = [(window, kept) for _, _, window, kept in _cuts(sets, "highspeed")]
    seen = [1 - kept for _, kept in cuts]
    rfc = [model.highspeed_decrease_ratio(window) for window, _ in cuts]
    linux = [model.linux_highspeed_decrease_ratio(window) for window, _ in cuts]
    f.cut_least, f.cut_most = percent(min(seen), 2), percent(max(seen), 2)
    f.cut_by_rfc_least, f.cut_by_rfc_most = percent(min(rfc), 2), percent(max(rfc), 2)
    f.cut_by_linux_least, f.cut_by_linux_most = percent(min(linux), 2), percent(max(linux), 2)
    f.cut_flows = Number(len(cuts))
    f.a_loss_costs_highspeed_little = judge((min(seen), max(seen)), most=0.25)
    f.little_more_is_kept_than_linux_says = all(
        -0.01 < kept - _kept_by_linux("highspeed", window) < 0.03 for window, kept in cuts
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
    f.queues = runs_as_rows(
        (run for run in sets.runs("each-once") if run.trial <= CUBIC_SMALL),
        {
            "trial": _trial,
            "algorithm": _algorithm,
            "buffer": _buffer,
            "packets in the queue, mean": cell("queue_mean_packets", Number),
            "link in use": cell("utilisation", percent),
        },
    )


def _thirty_of_each(f: Facts, sets: RecordedSets) -> None:
    runs = sets.runs("thirty-times")
    experiments = [_of_trial(runs, trial) for trial in sorted({run.trial for run in runs})]
    f.all_runs = Number(len(runs))
    f.runs_of_each = Number(len(experiments[0]))
    f.duration = seconds(param(runs[0], "duration_s"))
    f.thirty = table(
        (
            "algorithm", "buffer", "Jain's index", "s1's share (%)", "link in use (%)",
            "delay in the queue", "s1 ahead", "converged", "time to converge",
        ),
        (
            (
                _algorithm(those[0]),
                _buffer(those[0]),
                Interval.of_mean(column(those, "jains_index")),
                Interval.of_mean(_percents(those, "s1_share")),
                Interval.of_mean(_percents(those, "utilisation")),
                ms(mean(those, "queue_delay_mean_ms")),
                f"{sum(share > 0.5 for share in column(those, 's1_share'))} of {len(those)}",
                f"{sum(run.value('convergence_s') is not None for run in those)} of {len(those)}",
                _convergence(those),
            )
            for those in experiments
        ),
    )  # fmt: skip
    small = _of_trial(runs, HIGHSPEED_SMALL)
    f.use_small = Interval.of_mean(_percents(small, "utilisation"), "%")
    f.a_tenth_gives_over_90_percent = judge(_ends(f.use_small), least=90)

    jain = {run.trial: column(_of_trial(runs, run.trial), "jains_index") for run in runs}
    f.jain_large, f.jain_small = (
        Number(statistics.fmean(jain[trial])) for trial in (HIGHSPEED_LARGE, HIGHSPEED_SMALL)
    )
    f.jain_small_less_large = _difference(jain[HIGHSPEED_SMALL], jain[HIGHSPEED_LARGE], 2)
    f.highspeed_is_fairer_with_small = judge(_ends(f.jain_small_less_large), least=0)
    f.fairness = table(
        ("question", "who said what", "here, with the difference's 95 % interval"),
        (
            (question, who, _compared(jain[one], jain[other]))
            for question, who, one, other in (
                ("HighSpeed TCP: large against small buffer",
                 "the paper: large converges faster; the reproduction: small", HIGHSPEED_LARGE, HIGHSPEED_SMALL),
                ("CUBIC: large against small buffer", "", CUBIC_LARGE, CUBIC_SMALL),
                ("large buffer: HighSpeed TCP against CUBIC", "the reproduction: CUBIC is fairer",
                 HIGHSPEED_LARGE, CUBIC_LARGE),
                ("small buffer: HighSpeed TCP against CUBIC", "the same", HIGHSPEED_SMALL, CUBIC_SMALL),
            )
        ),
    )  # fmt: skip


def _compared(a: Sequence[float], b: Sequence[float]) -> str:
    """Which of two experiments is fairer by Jain's index."""
    difference = _difference(a, b)
    fairer = {True: "the first is fairer", False: "the second is fairer", None: "not told apart"}
    return (
        f"Jain's index {Number(statistics.fmean(a))} against {Number(statistics.fmean(b))}; "
        f"difference {difference.ends}: {fairer[judge(_ends(difference), least=0)]}"
    )


def _converging(f: Facts, sets: RecordedSets) -> None:
    """Medians of the times to even shares; "never" is longer than any."""
    runs = {
        trial: _of_trial(sets.runs("thirty-times"), trial)
        for trial in (HIGHSPEED_LARGE, HIGHSPEED_SMALL, CUBIC_LARGE, CUBIC_SMALL)
    }
    f.highspeed_large_converges = _convergence(runs[HIGHSPEED_LARGE])
    f.highspeed_small_converges = _convergence(runs[HIGHSPEED_SMALL])
    f.cubic_large_converges = _convergence(runs[CUBIC_LARGE])
    f.cubic_small_converges = _convergence(runs[CUBIC_SMALL])
    f.highspeed_converges_faster_with_large = _is_faster(
        runs[HIGHSPEED_LARGE], runs[HIGHSPEED_SMALL]
    )
    f.cubic_converges_faster_with_large = _is_faster(runs[CUBIC_LARGE], runs[HIGHSPEED_LARGE])
    f.cubic_converges_faster_with_small = _is_faster(runs[CUBIC_SMALL], runs[HIGHSPEED_SMALL])
    so = {
        True: "CUBIC is faster",
        False: "HighSpeed TCP is faster",
        None: "not told apart: the intervals overlap",
    }
    f.converging = table(
        ("buffer", "HighSpeed TCP, median", "CUBIC, median", "so"),
        (
            (
                buffer,
                _convergence(runs[ours]),
                _convergence(runs[cubic]),
                so[_is_faster(runs[cubic], runs[ours])],
            )
            for buffer, ours, cubic in (
                ("large", HIGHSPEED_LARGE, CUBIC_LARGE),
                ("small", HIGHSPEED_SMALL, CUBIC_SMALL),
            )
        ),
    )


def _convergence(runs: Sequence[Result]) -> str:
    """The median of the times to even shares, and its interval."""
    duration_s = param(runs[0], "duration_s")
    middle, low, high = (
        str(seconds(value)) if value < duration_s else "never" for value in _convergence_s(runs)
    )
    return f"{middle} ({low} to {high})"


def _convergence_s(runs: Sequence[Result]) -> tuple[float, float, float]:
    """Median and interval's ends; a run that never came to even shares is infinite."""
    times_s = [run.value("convergence_s") for run in runs]
    return median_interval([math.inf if time_s is None else time_s for time_s in times_s])


def _is_faster(runs: Sequence[Result], others: Sequence[Result]) -> bool | None:
    """Do runs come to even shares before the others? None where the medians' intervals overlap."""
    _, low, high = _convergence_s(runs)
    _, other_low, other_high = _convergence_s(others)
    return True if high < other_low else False if other_high < low else None


def _sweep(f: Facts, sets: RecordedSets) -> None:
    runs = sets.runs("buffer-sweep")
    bdp_bytes = _bdp_bytes(sets.trial(1))
    f.sweep_runs = Number(len(runs))
    f.sweep_repeats = Number(len({run.seed for run in runs}))
    f.sweep_duration = seconds(param(runs[0], "duration_s"))
    use = {
        size: Interval.of_mean(
            _percents(
                sets.runs("buffer-sweep", congestion_control="highspeed", buffer_bytes=size),
                "utilisation",
            ),
            "%",
        )
        for size in (62500, 125000, 250000)
    }
    f.use_5_percent, f.use_20_percent = use[62500], use[250000]
    f.less_than_10_percent_gives_less = judge(_ends(use[62500]), most=90)
    f.a_fifth_gives_up_to_98_percent = judge(_ends(use[250000]), least=90, most=98)
    so = {
        True: "holds",
        False: "doesn't hold",
        None: "can't be told: the limit is inside the interval",
    }
    f.percentages = table(
        ("buffer", "paper", "here, and 95 % interval", "so"),
        (
            (
                percent(size / bdp_bytes),
                said,
                use[size],
                so[judge(_ends(use[size]), least=least, most=most)],
            )
            for size, said, least, most in (
                (62500, "'much lower'", 0, 90),
                (125000, "over 90 %", 90, 100),
                (250000, "up to 98 %", 90, 98),
            )
        ),
    )
    f.smallest = _bytes(12500)
    f.second_smallest = _bytes(25000)
    f.burst_holds_as_much_as_the_smallest = param(runs[0], "burst_bytes") >= 25000 and {
        size for run in runs if (size := param(run, "buffer_bytes")) <= 25000
    } == {12500, 25000}

    rows = []
    for name in sorted({str(run.params["congestion_control"]) for run in runs}):
        those = sets.runs("buffer-sweep", congestion_control=name)
        share = {
            size: mean([run for run in those if run.params["buffer_bytes"] == size], "s1_share")
            for size in sorted({param(run, "buffer_bytes") for run in those})
        }
        longer = [str(percent(size / bdp_bytes)) for size in share if share[size] >= 0.5]
        ahead = sum(value > 0.5 for value in column(those, "s1_share"))
        rows.append(
            (
                name,
                Number(len(share)),
                Number(len(share) - len(longer)),
                ", ".join(longer) or "none",
                f"{ahead} of {len(those)}",
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
    rows, ratios = [], []
    for run in sets.runs("each-once", congestion_control="highspeed"):
        for flow in run.flows:
            grown = sets.counters_grown(run, flow.node)
            ratio = grown["TcpOutSegs"] / grown["TcpInSegs"]
            ratios.append(ratio)
            rows.append(
                (
                    Number(run.trial),
                    _bytes(param(run, "buffer_bytes")),
                    flow.node,
                    Number(ratio),
                    Number(1 / ratio, digits=2),
                )
            )
    f.acks = table(
        ("trial", "buffer", "flow", "segments for each ACK", "so the growth, of $a(w)$"), rows
    )
    f.about_two_segments_an_ack = min(ratios) >= 1.5 and max(ratios) <= 2.1

    bits = sets.runs("small-burst")
    small = _of_trial(sets.runs("thirty-times"), HIGHSPEED_SMALL)
    f.small_burst = _bytes(param(bits[0], "burst_bytes"))
    f.small_burst_has_room_for_two = (
        2 * FRAME_BYTES <= param(bits[0], "burst_bytes") < 3 * FRAME_BYTES
    )
    f.use_small_burst = Interval.of_mean(_percents(bits, "utilisation"), "%")
    f.use_by_small_burst = _difference(
        _percents(bits, "utilisation"), _percents(small, "utilisation"), 1, "%"
    )
    f.small_burst_may_be_chance = _has_zero(f.use_by_small_burst)


def _offloads(f: Facts, sets: RecordedSets) -> None:
    """One run of each experiment with offloads on, beside the least and most of those with offloads off."""
    runs = sets.runs("offloads-on")
    packet_bytes = [
        measured(run, "queue_mean_bytes") / measured(run, "queue_mean_packets") for run in runs
    ]
    f.packet_least, f.packet_most = _bytes(min(packet_bytes)), _bytes(max(packet_bytes))
    rows, outside = [], []
    for run in runs:
        off = _of_trial(sets.runs("thirty-times"), run.trial)
        use, drops = column(off, "utilisation"), column(off, "qdisc_drops")
        if not min(use) - 0.001 <= measured(run, "utilisation") <= max(use) + 0.001:
            outside.append(run.trial)
        rows.append(
            (
                _trial(run),
                _algorithm(run),
                _buffer(run),
                f"{percent(round(min(use), 3))} to {percent(round(max(use), 3))}",
                percent(round(measured(run, "utilisation"), 3)),
                f"{whole(min(drops))} to {whole(max(drops))}",
                whole(measured(run, "qdisc_drops")),
            )
        )
    f.with_offloads = table(
        ("trial", "algorithm", "buffer", "link in use, off", "on", "drops, off", "on"), rows
    )
    f.only_trial_2_differs_with_offloads = outside == [HIGHSPEED_SMALL]


def _stage(run: Result) -> str:
    return run.stage or "broken"


def _trial(run: Result) -> Number:
    return Number(run.trial)


def _algorithm(run: Result) -> str:
    return str(run.params["congestion_control"])


def _buffer(run: Result) -> Number:
    return _bytes(param(run, "buffer_bytes"))


def _bytes(size: float) -> Number:
    return whole(size, "B")


def _of_trial(runs: Sequence[Result], trial: int) -> list[Result]:
    return [run for run in runs if run.trial == trial]


def _percents(runs: Sequence[Result], name: str) -> list[float]:
    return [100 * ratio for ratio in column(runs, name)]


def _first_rtt_ms(trial: Mapping[str, Any]) -> float:
    """The round-trip time of s1's path, the longer one, with empty queues."""
    return float(2 * trial["first_delay_ms"] + trial["back_delay_ms"])


def _bdp_bytes(trial: Mapping[str, Any]) -> float:
    """The bandwidth-delay product of s1's path."""
    return model.bdp_bytes(trial["rate_mbit"], _first_rtt_ms(trial))


def _drain_ms(size_bytes: float, trial: Mapping[str, Any]) -> float:
    """How long a trial's link takes to send so many bytes."""
    return 8e3 * size_bytes / (float(trial["rate_mbit"]) * 1e6)


def _change(broken: Result, fixed: Result) -> Number:
    """By how much the goodput of the fixed run differs from the broken one's."""
    return percent(abs(measured(fixed, "goodput_bps") / measured(broken, "goodput_bps") - 1), 1)


def _difference(
    a: Sequence[float], b: Sequence[float], digits: int = 3, unit: str = ""
) -> Interval:
    """The difference of two means, a's less b's, and its interval."""
    low, high = two_samples.difference_interval(list(a), list(b))
    return Interval(statistics.fmean(a) - statistics.fmean(b), low, high, unit, digits)


def _ends(interval: Interval) -> tuple[float, float]:
    return interval.low_value, interval.high_value


def _has_zero(interval: Interval) -> bool:
    return interval.low_value <= 0 <= interval.high_value
