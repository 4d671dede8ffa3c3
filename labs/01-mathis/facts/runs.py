"""Names of sets and trials, a case's usual facts, and what several of the lab's facts need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from measuretwice.facts import (
    Excerpt,
    Fact,
    Facts,
    Number,
    RecordedSets,
    cell,
    column,
    excerpt,
    factor,
    mbit,
    measured,
    ms,
    param,
    param_cell,
    percent,
    seconds,
    size,
    table,
    whole,
)
from measuretwice.facts.values import Cell
from measuretwice.parse.ss import parse_ss_samples
from measuretwice.runs.result import Result
from measuretwice.stats import intervals
from measuretwice.tcp import model

QDISC, TO_JULIET = "router/qdisc.after.json", {"kind": "netem", "dev": "eth1"}
RECEIVED = ['"sum_received"', "}"]
# A segment's two headers, and Ethernet's.
HEADER_BYTES, ETHERNET_BYTES = 40, 14
# The sets of the steps, each with one mistake less: in USUAL all are fixed, in LONG each run lasts until it has lost enough.
FIRST_TRY, DURATION_STEP, RATE_STEP = "step-1-first-try", "step-3-duration", "step-4-rate"
TIMESTAMPS_STEP, MTU_STEP, USUAL, LONG = (
    "step-5-timestamps",
    "step-6-mtu",
    "step-7-offloads",
    "step-8-long",
)
# The same as LONG, where hosts take up to 1 ms to look at a packet.
LONG_WAIT = "step-8-wait-1-ms"
# Trials by number: that of which the pages tell most, that which is worked by hand, with most and with fewest losses.
SEVEN, WORKED, MOST_LOSSES, FEWEST_LOSSES = 7, 8, 5, 53
# By this share the reproduction's two goodputs in trial 17 differ; and its goodput in trial 5.
PUBLISHED_DIFFERENCE, PUBLISHED_TRIAL_5_BPS = 0.065, 1.68e6
REGULAR, REGULAR_DELAYED, RANDOM, RANDOM_DELAYED = (
    model.MATHIS_CONSTANTS[name].value for name in ("sqrt(3/2)", "sqrt(3/4)", "1.31", "0.93")
)
# What is put over what: resent segments over all, and segments over the receiver's ACKs.
SHARE_RESENT, SEGMENTS_AN_ACK = (
    ("retrans_total", "data_segs_out"),
    ("data_segs_out", "receiver_acks_out"),
)
# What tables show of a run.
LASTS = param_cell("duration_s", seconds)
GOODPUT, RATIO = cell("goodput_bps", mbit), cell("ratio", Number)
DROPS, TIMEOUTS = cell("qdisc_drops", whole), cell("timeouts", whole)


def set_case(
    f: Facts,
    sets: RecordedSets,
    name: str,
    quoted: str,
    more: Sequence[tuple[str, Callable[[Result], Cell]]] = (),
    p_digits: int = 4,
) -> tuple[Result, Result]:
    """Set the `quoted` ones of a case's usual facts, and the table `stages`; return the case's two runs: the first try, and
    the fixed one.

    `more` are further rows of that table: what, and what shows it of a run.
    """
    both = sets.stages(name)
    usual = usual_facts(name, *both, p_digits)
    for fact in quoted.split():
        setattr(f, fact, usual[fact])
    rows = (("goodput", GOODPUT), ("over the model with C = 1", RATIO), *more)
    f.stages = table(
        (f"recorded run, trial {both[0].trial}", "broken", "fixed"),
        ((what, *map(show, both)) for what, show in rows),
    )
    return both


def usual_facts(name: str, broken: Result, fixed: Result, p_digits: int) -> dict[str, Fact]:
    """What the pages of most cases quote of the first try, and as `..._fixed` of the fixed run."""
    p, faster = param(broken, "loss_ratio"), factor(fixed, broken, "goodput_bps")
    by_chance = 3.3 / math.sqrt(measured(broken, "qdisc_drops"))
    return {
        "trial": Number(broken.trial),
        "mss": size(param(broken, "mss_bytes")),
        "rtt": ms(param(broken, "rtt_ms")),
        "p": Number(p, digits=p_digits),
        "p_percent": percent(p),
        "lasts": seconds(param(broken, "duration_s")),
        "model": mbit(model_bps(broken)),
        "goodput": mbit(measured(broken, "goodput_bps")),
        "goodput_fixed": mbit(measured(fixed, "goodput_bps")),
        "ratio": Number(measured(broken, "ratio")),
        "ratio_fixed": Number(measured(fixed, "ratio")),
        "drops": whole(measured(broken, "qdisc_drops")),
        "packets": whole(measured(broken, "qdisc_offered_packets")),
        "drops_fixed": whole(measured(fixed, "qdisc_drops")),
        "packets_fixed": whole(measured(fixed, "qdisc_offered_packets")),
        "times": Number(measured(broken, "ratio"), "times"),
        "factor": Number(max(faster, 1 / faster)),
        "goodput_fell": faster < 1,
        "loss_is_right": abs(measured(broken, "loss_ratio") / p - 1) < by_chance,
        "iperf3": excerpt(f"{name}-broken", "romeo/iperf3.json", between=RECEIVED),
        "ping": excerpt(f"{name}-broken", "romeo/ping.txt", last=3),
        "ss": excerpt(f"{name}-broken", "romeo/ss-last.txt", last=1),
        "tc": netem_excerpt(
            f"{name}-broken", "kind", "dev", "options", "packets", "drops", "backlog"
        ),
    }


def set_measured(f: Facts, run: Result, show: Callable[[float], Cell], **names: str) -> None:
    """Set facts to measured values of a run: `set_measured(f, run, whole, peak="cwnd_max_segments")`."""
    for fact, name in names.items():
        setattr(f, fact, show(measured(run, name)))


def set_both(
    f: Facts, both: tuple[Result, Result], show: Callable[[float], Cell], **names: str
) -> None:
    """Set facts to measured values of a case's first try, and of the fixed run, as `peak` and `peak_fixed`."""
    set_measured(f, both[0], show, **names)
    set_measured(f, both[1], show, **{f"{fact}_fixed": name for fact, name in names.items()})


def model_bps(run: Result, **instead: float) -> float:
    """The model's bandwidth for a run, with C = 1, in bit/s; `instead` are other values than the run was set to."""
    values = {name: param(run, name) for name in ("mss_bytes", "rtt_ms", "loss_ratio")}
    return model.mathis_bandwidth_bps(**values | instead)


def mathis_bps(sets: RecordedSets, number: int) -> float:
    """The model's bandwidth for a trial, with C = 1, in bit/s."""
    trial = sets.trial(number)
    return model.mathis_bandwidth_bps(trial["mss_bytes"], trial["rtt_ms"], trial["loss_ratio"])


def expected_losses(run: Result) -> float:
    """How many losses the model expects in a run."""
    rtt_ms, p, time_s = (param(run, name) for name in ("rtt_ms", "loss_ratio", "duration_s"))
    return model.mathis_expected_losses(rtt_ms, p, time_s)


def pftk_bps(run: Result) -> float:
    """PFTK's bandwidth for a run, in bit/s."""
    mss, rtt_ms, p = (param(run, name) for name in ("mss_bytes", "rtt_ms", "loss_ratio"))
    return model.pftk_bandwidth_bps(mss, rtt_ms, p)


def over_pftk(run: Result) -> float:
    """A run's goodput over PFTK's bandwidth."""
    return measured(run, "goodput_bps") / pftk_bps(run)


def chance_of(run: Result, digits: int, of: int = 1) -> Number:
    """The share by which chance moves a run's goodput, judging by its losses; or the difference `of` two."""
    error = intervals.relative_error_of_ratio(measured(run, "qdisc_drops"))
    return percent(math.sqrt(of) * error, digits)


def netem_excerpt(of_set: str, *keys: str, **which: object) -> Excerpt:
    """Some of what netem counted on the router's way to juliet."""
    return excerpt(of_set, QDISC, where=TO_JULIET, keys=list(keys), **which)


def at_largest_window(run: Result, name: str, more: str = " ", **lines: int) -> Excerpt:
    """A sample of ss in which the window was largest."""
    grep = f"cwnd:{run.measured['cwnd_max_segments']}{more}"
    return excerpt(f"{name}-broken", "romeo/ss.txt", grep=grep, **lines)


def step_names(sets: RecordedSets) -> list[str]:
    """The sets that lead from the first try to the result, in order."""
    return [recording.id for recording in sets.lab.file.recordings if recording.step]


def both_ends(low: float | None, high: float | None) -> tuple[float, float]:
    """A range's two ends, which lab.toml or a fit might have left open."""
    assert low is not None
    assert high is not None
    return low, high


def expected_ratio(sets: RecordedSets) -> tuple[float, float]:
    """The range in which lab.toml expects goodput over the model's bandwidth."""
    ratio = next(
        expectation for expectation in sets.lab.file.expect if expectation.measured == "ratio"
    )
    return both_ends(ratio.min, ratio.max)


def count_within(sets: RecordedSets, runs: Sequence[Result]) -> int:
    """Return how many runs are in that range."""
    low, high = expected_ratio(sets)
    return sum(run.ratio is not None and low <= run.ratio <= high for run in runs)


def ratio_range(runs: Sequence[Result]) -> str:
    """The smallest and the largest ratio."""
    ratios = column(runs, "ratio")
    return f"{Number(min(ratios))} to {Number(max(ratios))}"


def acked_over_time(sets: RecordedSets, run: Result) -> list[tuple[float, int]]:
    """Return what ss saw acknowledged on a run's data connection, sample by sample: seconds, and bytes so far."""
    samples = parse_ss_samples(
        sets.raw_text(run, "romeo/ss.txt"),
        "romeo/ss.txt",
        allow_truncated_tail=True,
        local_ports={round(measured(run, "data_port"))},
    )
    return [
        (sample.time_s, socket.bytes_acked)
        for sample in samples
        for socket in sample.sockets
        if socket.bytes_acked
    ]
