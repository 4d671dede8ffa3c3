"""Two studies from claim to verdict: what their plans ask for, what their pilots showed, and what came out."""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Sequence
from typing import Any

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    RecordedSets,
    column,
    judge,
    table,
    whole,
)
from measuretwice.stats.two_samples import difference_interval

# The second study is of another lab.
OTHER_LAB = "variants"


def set_studies(f: Facts, sets: RecordedSets) -> None:
    """Set what docs/modules/study-examples.md quotes."""
    _tenfold(f, sets)
    _startup(f, sets.other(OTHER_LAB))


def _plan(sets: RecordedSets, study: str) -> dict[str, Any]:
    path = sets.lab.folder / "studies" / study / "plan.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _tenfold(f: Facts, sets: RecordedSets) -> None:
    """CUBIC with hardly any loss and with one packet lost in a thousand: a ratio between two limits."""
    plan = _plan(sets, "cubic-tenfold")
    rule, of = plan["analysis"], plan["quantity"]
    pilots, runs = (
        [column(sets.runs(f"tenfold{kind}-{setting}", 7), of) for setting in "ab"]
        for kind in ("-pilot", "")
    )
    f.tenfold_pilots, f.tenfold_runs = whole(len(pilots[0])), whole(len(runs[0]))
    f.tenfold_scatter = Number(max(map(_scatter, pilots)), "%", 2)
    f.tenfold_pilot_ratio = ratio(*pilots).middle
    f.tenfold_ratio = tenfold = ratio(*runs)
    f.tenfold_factor = Interval(
        1 / tenfold.middle_value, 1 / tenfold.high_value, 1 / tenfold.low_value
    )
    f.tenfold_above, f.tenfold_below = Number(rule["above"]), Number(rule["below"])
    f.tenfold_holds = judge(tenfold, least=rule["above"], most=rule["below"])
    f.tenfold_table = table(
        ("which runs", "how many of each", f"A: {plan['a']['name']} (Mbit/s)", f"B: {plan['b']['name']} (Mbit/s)"),
        (
            (words, whole(len(some[0])), *(Interval.of_mean([v / 1e6 for v in of]) for of in some))
            for words, some in (("pilots", pilots), ("the study", runs))
        ),
    )  # fmt: skip


def _startup(f: Facts, sets: RecordedSets) -> None:
    """BBR alone before a buffer of four BDPs: a mean below a limit."""
    plan = _plan(sets, "bbr-startup-queue")
    rule, of = plan["analysis"], plan["quantity"]
    pilots, runs = (column(sets.runs(f"startup-queue{kind}", 40), of) for kind in ("-pilot", ""))
    f.startup_pilots, f.startup_runs = whole(len(pilots)), whole(len(runs))
    f.startup_scatter = Number(_scatter(pilots), "%", 2)
    f.startup_pilot_mean = Number(statistics.fmean(pilots) / 1e6, "MB")
    f.startup_mean = startup = Interval.of_mean([value / 1e6 for value in runs], "MB", 4)
    # The path's BDP, in MB: what the claim counts in.
    bdp = sets.trial(40)["rate_mbit"] * sets.trial(40)["wire_rtt_ms"] / 8000
    f.startup_above_two = min(runs) / 1e6 > 2 * bdp
    f.startup_below = Number(rule["below"] / 1e6, "MB")
    f.startup_holds = judge(startup, most=rule["below"] / 1e6)
    f.startup_table = table(
        ("which runs", "how many", "longest queue (MB)"),
        (
            (words, whole(len(some)), Interval.of_mean([value / 1e6 for value in some], "", 4))
            for words, some in (("pilots", pilots), ("the study", runs))
        ),
    )


def ratio(a: Sequence[float], b: Sequence[float]) -> Interval:
    """Return b's geometric mean over a's, with Welch's interval of the logarithms."""
    above, below = ([math.log(value) for value in values] for values in (b, a))
    low, high = difference_interval(above, below)
    middle = statistics.fmean(above) - statistics.fmean(below)
    return Interval(math.exp(middle), math.exp(low), math.exp(high))


def _scatter(values: Sequence[float]) -> float:
    """The deviation in per cent of the mean."""
    return 100 * statistics.stdev(values) / statistics.fmean(values)
