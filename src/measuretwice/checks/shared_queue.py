"""The checks of runs in which flows share a link and its queue, of who waits beside them, and of trials that are compared.

Settings have the same names in every lab: `buffer_bytes` is the queue's room in bytes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from measuretwice.checks.registry import (
    Finding,
    FindingKind,
    Member,
    RunUnderTest,
    check,
    set_check,
)
from measuretwice.lab import Lab
from measuretwice.measure.delays import Probes
from measuretwice.measure.fields import in_unit, label_of, number
from measuretwice.stats.intervals import mean_interval
from measuretwice.stats.two_samples import difference_interval

# tc prints times to a microsecond: a buffer in bytes follows from that to far less than this.
SIZE_TOLERANCE_RATIO = 0.02
# A room off by no more than this is near the one that was meant: 1024 x 1024 for a million is 4.9 %.
NEAR_RATIO = 0.1
# iperf3 prints a window with three digits, and it moves between two samples.
UNIT_TOLERANCE_RATIO = 0.012
# Two samplers look at different moments of a queue that goes up and down.
LENGTH_TOLERANCE_RATIO = 0.25
LENGTH_TOLERANCE_PACKETS = 5
BDP_TOLERANCE_RATIO = 0.25
# Of who waits beside the flows: so many packets at least tell how often they are sent; by so much that may be off;
# for which part of the flows' time, if the flows last so long; and how much sooner than the idle path's an answer comes.
FEW_PACKETS = 20
OFTEN_RATIO = 0.25
LEAST_COVERED = 0.4
LEAST_FLOWS_S = 3.0
NEARER_RATIO = 0.5
NEARER_MS = 2.0
# Of what a host received: what transfers brought may be less by so much, and more by what is sent twice, others' packets, and of
# each transfer those that begin and end it.
BROUGHT_RATIO = 0.9
MOST_BROUGHT_RATIO = 1.3
HEADERS_BYTES = 60
OTHERS_BYTES = 100_000
PACKETS_EACH = 10
# How much runs differ is hardly known from fewer: of two, chance makes an interval of almost any width.
LEAST_RUNS = 5


@check(
    FindingKind(
        "size-suffix",
        "The buffer that the qdisc reports, compared with the intended one.",
        explains=("whose-bdp",),
    ),
    FindingKind("configuration"),
    needs=("queue_limit_bytes",),
)
def buffer_size(run: RunUnderTest) -> Finding | None:
    """The buffer that the qdisc has, against the one that was meant."""
    wanted, limit = run.param("buffer_bytes"), run.measured("queue_limit_bytes")
    if not wanted or limit is None or abs(limit - wanted) <= SIZE_TOLERANCE_RATIO * wanted:
        return None
    typed = run.params.get("buffer_text")
    if not typed and not _is_of_a_suffix(limit / wanted):
        return Finding(
            "configuration",
            f"a buffer of {limit:.0f} B by the qdisc",
            f"{wanted:.0f} B",
            "The queue doesn't have the room that the settings say.",
            symptom=f"a buffer of {limit:.0f} B by the qdisc, {wanted:.0f} B were meant",
        )
    return Finding(
        "size-suffix",
        f"a buffer of {limit:.0f} B by the qdisc" + (f" (typed: {typed})" if typed else ""),
        f"{wanted:.0f} B",
        "tc reads a size by its own rules: K, M and G are powers of 1024, and with 'bit' an eighth "
        "of that.",
        symptom=_size_symptom(limit / wanted),
    )


def _size_symptom(ratio: float) -> str:
    """Where the room is nearly right, say by how much it isn't: whoever changed a suffix has come nearer."""
    off = "one number that tc prints of the router's queue isn't the trial's"
    if abs(ratio - 1) > NEAR_RATIO:
        return off
    side = "large" if ratio > 1 else "small"
    return f"{off}; it is near, but {abs(ratio - 1):.1%} too {side}".replace("%", " %")


def _is_of_a_suffix(ratio: float) -> bool:
    """Return whether tc's powers of 1024, its bits, or a thousand too much or too little make that ratio."""
    return any(
        math.isclose(ratio, factor, rel_tol=SIZE_TOLERANCE_RATIO)
        for power in (1.024, 1.024**2, 1.024**3, 1000.0, 1024.0, 1e6, 1024.0**2)
        for bits in (1.0, 8.0, 1 / 8)
        for factor in (power * bits, bits / power, bits)
        if factor != 1
    )


@check(
    FindingKind(
        "field-number",
        "A queue's lengths taken from tc's text, against its JSON over the same time.",
    ),
    needs=(
        "length_rows",
        "length_rows_unreadable",
        "length_rows_mean_packets",
        "length_rows_true_packets",
    ),
)
def field_number(run: RunUnderTest) -> Finding | None:
    """A queue's lengths taken from tc's text, against its JSON over the same time."""
    rows, unreadable = run.measured("length_rows"), run.measured("length_rows_unreadable")
    if rows is None:
        return None
    mean, true = run.measured("length_rows_mean_packets"), run.measured("length_rows_true_packets")
    if mean is not None and true is not None and not unreadable:
        slack = LENGTH_TOLERANCE_RATIO * true + LENGTH_TOLERANCE_PACKETS
        if abs(mean - true) <= slack:
            return None
    found = "no numbers" if mean is None else f"{mean:.1f} packets in the queue on average"
    return Finding(
        "field-number",
        found + (f", {unreadable:.0f} lines unreadable" if unreadable else ""),
        "nothing to compare with" if true is None else f"{true:.1f} packets, by tc's JSON",
        "The number of a word in a line changes from one version of tc to the next. Its JSON has "
        "names.",
        symptom="numbers made from tc's output don't fit tc's own counts",
    )


@check(
    FindingKind(
        "units",
        "A window's trace taken from iperf3's text, compared with ss: its times, and its sizes.",
    ),
    needs=("window_rows", "window_rows_ratio", "window_rows_backwards"),
)
def units(run: RunUnderTest) -> Finding | None:
    """Windows taken from iperf3's text, against ss."""
    rows, ratio = run.measured("window_rows"), run.measured("window_rows_ratio")
    if rows is None:
        return None
    backwards = run.measured("window_rows_backwards") or 0
    off = ratio is None or abs(ratio - 1) > UNIT_TOLERANCE_RATIO
    if not off and not backwards:
        return None
    found = []
    symptom = f"the traces of {rows:.0f} rows don't fit what ss printed at the same times"
    if backwards:
        often = "once" if backwards == 1 else f"{backwards:.0f} times"
        found.append(f"time goes back {often} in traces of {rows:.0f} rows")
        symptom = found[0]
    if ratio is None:
        found.append("no row that can be compared")
    elif off:
        found.append(f"large windows are {ratio:.3f} times what ss says")
    return Finding(
        "units",
        "; ".join(found),
        "rows in order of time, and windows as ss has them",
        "iperf3 prints a window in KBytes or MBytes, whichever reads well, and means powers of "
        "1024.",
        symptom=symptom,
    )


@check(
    FindingKind(
        "whose-bdp",
        "The buffer over each flow's own bandwidth-delay product, compared with its stated size.",
    ),
    needs=("buffer_bdp_ratio_min", "buffer_bdp_ratio_max"),
)
def whose_bdp(run: RunUnderTest) -> Finding | None:
    """What a buffer is called, against every flow's own bandwidth-delay product."""
    claimed = run.param("buffer_claimed_ratio")
    low, high = run.measured("buffer_bdp_ratio_min"), run.measured("buffer_bdp_ratio_max")
    if not claimed or low is None or high is None:
        return None
    # The longest path has the largest product, so the buffer is the smallest part of it.
    whose = str(run.params.get("buffer_claimed_for"))
    ends = {"every flow": (low, high), "shortest path": (high,)}.get(whose, (low,))
    if all(abs(ratio - claimed) <= BDP_TOLERANCE_RATIO * claimed for ratio in ends):
        return None
    found = (
        f"{low:.2g} BDP"
        if low == high
        else f"{low:.2g} to {high:.2g} BDP, depending on whose RTT you take"
    )
    return Finding(
        "whose-bdp",
        f"the buffer is {found}",
        f"{claimed:g} BDP for "
        + (whose if whose == "every flow" else f"the flow with the {whose}"),
        "A bandwidth-delay product belongs to one path. Flows with other round-trip times have "
        "others.",
        symptom=f"the run is called one with {claimed:g} BDP, and one number that was measured doesn't fit that",
    )


# Trials that are compared: do their runs tell them apart, and are they two at all?


@set_check(
    FindingKind(
        "one-run",
        "Trials that are compared by a value: the interval of the difference of their means.",
    )
)
def one_run(lab: Lab, runs: Sequence[Member]) -> Finding | None:
    """Trials that are compared by a value: do their runs tell them apart?

    `compare_by` says which value; a claim that one trial has more of it than another needs an
    interval of the difference that zero isn't in. From as many runs of a case as are planned on, an interval with
    zero in it is an answer as well: the runs don't tell the trials apart.
    """
    name = compared_by(runs)
    values = _by_trial(runs, name) if name else {}
    for first, second in itertools.combinations(sorted(values), 2):
        if finding := _not_told_apart(
            name, first, values[first], second, values[second], _planned(lab, runs)
        ):
            return finding
    return None


def compared_by(runs: Sequence[Member]) -> str:
    """Return the value by which trials are compared to say which has more; "" where runs don't say one and the same."""
    by = {str(run.params.get("compare_by", "nothing")) for run in runs}
    return by.pop() if len(by) == 1 and by != {"nothing"} else ""


def _by_trial(runs: Sequence[Member], name: str) -> dict[int, list[float]]:
    values: dict[int, list[float]] = {run.trial: [] for run in runs}
    for run in runs:
        value = number(run.measured, name)
        if value is not None:
            values[run.trial].append(value)
    return values


def _planned(lab: Lab, runs: Sequence[Member]) -> int | None:
    """Return how many runs of each trial a case plans; None of no case, and where its fixed stage has one run of each."""
    case = runs[0].case if runs else None
    planned = lab.case(case).fixed.repeat if case is not None else 1
    return planned if planned > 1 else None


def _not_told_apart(
    name: str,
    first: int,
    of_first: list[float],
    second: int,
    of_second: list[float],
    planned: int | None,
) -> Finding | None:
    if not of_first or not of_second:
        return None
    count = min(len(of_first), len(of_second))
    means = f"{label_of(name)}: {_mean(name, of_first)} in trial {first}, {_mean(name, of_second)} in trial {second}"
    why = (
        "The same trial comes out differently each time, by chance alone. One run of each "
        "can't show how differently, so it can't show either whether the trials differ."
    )
    off = f"{means}; to say which trial has more is to say more than these numbers show"
    if count < LEAST_RUNS:
        found = f"{means}, from {_count(count)} each"
        enough = f"enough runs to know their spread, at least {LEAST_RUNS} of each"
        return Finding("one-run", found, enough, why, symptom=off)
    low, high = difference_interval(of_first, of_second)
    if low > 0 or high < 0 or (planned and count >= planned):
        return None
    answer = f". From {planned} runs of each on, that is an answer too" if planned else ""
    return Finding(
        "one-run",
        f"{means}, from {_count(count)} each",
        f"a difference that chance doesn't make: its 95 % interval is {in_unit(name, low)} to {in_unit(name, high)}",
        why,
        symptom=f"{means}, from {_count(count)} each; the difference is {in_unit(name, low)} to {in_unit(name, high)} by 95 %. "
        f"Zero is in that interval, so these runs don't tell the trials apart{answer}",
    )


def conclusion(
    lab: Lab,
    runs: Sequence[Member],
    asked: str,
    label: str,
    of_asked: dict[int, list[float]],
) -> str:
    """Return what several runs of each trial say, in words: the means, and of two trials the interval of the difference
    and whether it tells them apart; "" where a trial has a single run.

    They are compared by what the runs say, else by the value `asked`, which is called `label` and of which each trial has
    `of_asked`.
    """
    name = compared_by(runs) or asked
    values = of_asked if name == asked else _by_trial(runs, name)
    if len(values) < 2 or min(map(len, values.values())) < 2:
        return ""
    label = label if name == asked else label_of(name)
    counts = sorted({len(of_trial) for of_trial in values.values()})
    of_each = f"{' to '.join(map(str, counts[:1] + counts[1:][-1:]))} runs of each"
    means = [f"{_mean(name, values[trial])} in trial {trial}" for trial in sorted(values)]
    words = f"Means of {of_each}, {label}: {', '.join(means)}"
    if len(values) > 2:
        return words
    first, second = sorted(values)
    low, high = difference_interval(values[first], values[second])
    difference = mean_interval(values[first])[0] - mean_interval(values[second])[0]
    words += (
        f". The difference is {in_unit(name, difference)} (trial {first} less trial {second}), "
        f"and its 95 % interval is {in_unit(name, low)} to {in_unit(name, high)}. "
    )
    planned = _planned(lab, runs) if compared_by(runs) else None
    if low <= 0 <= high:
        answer = f". With {planned} of each planned, that is the answer" if planned else ""
        return f"{words}Zero is in it, so these runs don't tell the trials apart{answer}"
    words += f"Zero isn't in it, so trial {first if low > 0 else second} has more"
    if not planned or counts[0] >= planned:
        return words
    return (
        f"{words}. That holds if you had settled on {of_each} beforehand. If you added runs until zero was outside, "
        "chance had more than one try"
    )


def _mean(name: str, values: list[float]) -> str:
    return in_unit(name, mean_interval(values)[0])


def _count(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


@set_check(FindingKind("copied-cell"))
def same_numbers(lab: Lab, runs: Sequence[Member]) -> Finding | None:
    """Two trials whose every measured value is the same were read from one file."""
    trials: dict[tuple[tuple[str, float | int | str | None], ...], int] = {}
    for run in runs:
        # A handful of values may agree by chance or because they were set; dozens don't.
        if len(run.measured) < 10 or not run.measured.get("goodput_bps"):
            continue
        key = tuple(sorted(run.measured.items()))
        other = trials.setdefault(key, run.trial)
        if other != run.trial:
            return Finding(
                "copied-cell",
                f"trials {other} and {run.trial} agree in all of their {len(run.measured)} values",
                "values that differ at least in their last digits",
                "One file was read twice: one of the two trials isn't in the table at all.",
                symptom="two trials are more alike than two measurements can be",
            )
    return None


@check(
    FindingKind(
        "probes",
        "Whether pings, streams and short transfers beside the flows went where they were meant to, as often and for as long, and how much arrived.",
        explains=("mean-hides", "probe-apart", "queue-elsewhere", "unexplained"),
        hints=(
            "Whatever is sent beside the flows has a file of its own. Go through them one by one: who sent what to whom, when, and how often?",
            "Compare the time between two packets, the first and the last time in each file, the fastest answer, and what a host received in all, with the settings and with the idle path.",
            "One of them isn't what the settings say: another address, another interval, size or length, or it ended early. Compare its command with the lab's.",
        ),
    ),
    needs=("path_rtt_ms",),
)
def probes(run: RunUnderTest) -> Finding | None:
    """Return a finding where those who wait beside the flows aren't those that were meant."""
    state = run.host_state
    if state is None or run.brought:
        return None
    waiting = state.probes
    for measured, expected in (
        *_streams(run, waiting),
        *_pings(run, waiting),
        *_transfers(run, waiting),
    ):
        return Finding(
            "probes", measured, expected,
            "How long others waited is known only by these, so that whatever is concluded from them is about something else.",
            symptom=measured,
        )  # fmt: skip
    return None


def _streams(run: RunUnderTest, waiting: Probes) -> Iterator[tuple[str, str]]:
    wanted_ms = run.param("call_interval_ms")
    for stream in waiting.streams:
        if not stream.came_s and stream.sent >= FEW_PACKETS:
            yield (
                f"none of the {stream.sent} packets of a stream came to {stream.node}",
                "those for which the queues have room",
            )
        often_ms = stream.interval_ms if len(stream.came_s) >= FEW_PACKETS else None
        if wanted_ms and often_ms and abs(often_ms - wanted_ms) > OFTEN_RATIO * wanted_ms:
            yield (
                f"a packet to {stream.node} every {often_ms:.3g} ms, by the times at which they were sent",
                f"every {wanted_ms:g} ms",
            )
        if stream.came_s:
            yield from _covered(run, f"packets of a stream to {stream.node}", stream.sent_s)


def _pings(run: RunUnderTest, waiting: Probes) -> Iterator[tuple[str, str]]:
    path_ms = run.measured("path_rtt_ms")
    for node, ping in waiting.pings.items():
        if not ping.received and ping.transmitted >= FEW_PACKETS:
            yield (
                f"none of {node}'s {ping.transmitted} pings beside the flows was answered",
                "answers to those for which the queues have room",
            )
        least_ms = ping.rtt_min_ms
        if path_ms and least_ms is not None and least_ms < NEARER_RATIO * path_ms - NEARER_MS:
            yield (
                f"{node}'s fastest ping beside the flows took {least_ms:.3g} ms",
                f"the idle path's {path_ms:.4g} ms at least: another host is nearer, and its packets wait nowhere",
            )
        times_s = [reply.timestamp_s for reply in ping.replies if reply.timestamp_s is not None]
        yield from _covered(run, f"answers to {node}'s pings", times_s)


def _covered(run: RunUnderTest, what: str, times_s: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Yield where packets were there for a small part of the flows' time alone; where there is none, that is another finding's."""
    begin_s, end_s = run.flows_time()
    watch_s = run.param("watch_s")
    asked_s = watch_s - (run.param("warmup_s") or 0) if watch_s else math.inf
    end_s = min(end_s, begin_s + asked_s)
    if len(times_s) < FEW_PACKETS or end_s - begin_s < LEAST_FLOWS_S:
        return
    beside_s = min(max(times_s), end_s) - max(min(times_s), begin_s)
    if 0 < beside_s < LEAST_COVERED * (end_s - begin_s):
        yield (
            f"{what} for {beside_s:.1f} s of the {end_s - begin_s:.1f} s in which flows were there",
            "as long as the flows, or nearly",
        )


def _transfers(run: RunUnderTest, waiting: Probes) -> Iterator[tuple[str, str]]:
    """Compare what short transfers were to bring with what their host received in all."""
    size, nodes = run.param("page_bytes"), run.host_state.nodes if run.host_state else {}
    senders = {socket.node for socket in run.data_sockets()}
    for name, rows in waiting.transfers.items():
        if not rows:
            yield f"no short transfer on {name}", "one after the other, as long as it was to last"
        counts = [interface.received_bytes for interface in nodes[name].interfaces.values()]
        if not size or not rows or not counts or None in counts:
            continue
        came, asked_bytes = sum(count or 0 for count in counts), len(rows) * size
        others = OTHERS_BYTES + PACKETS_EACH * HEADERS_BYTES * len(rows) + sum(
            ping.received * (HEADERS_BYTES + (ping.payload_bytes or 0))
            for node, ping in waiting.pings.items()
        ) + sum(
            stream.sent * (HEADERS_BYTES + (run.param("call_bytes") or 0))
            for stream in waiting.streams
            if stream.node == name
        )  # fmt: skip
        # A host that has flows of its own receives these flows' data or ACKs.
        too_much = name not in senders and came > MOST_BROUGHT_RATIO * asked_bytes + others
        if came < BROUGHT_RATIO * asked_bytes or too_much:
            yield (
                f"{name} received {came / 1e6:.3g} MB in all (ip -s link), and made {len(rows)} short transfers",
                f"{asked_bytes / 1e6:.3g} MB in these alone, of {size:.0f} B each",
            )
