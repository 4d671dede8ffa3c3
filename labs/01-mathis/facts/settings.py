"""What the lab is set to, and its steps from the first try to the result."""

from __future__ import annotations

from measuretwice.facts import Facts, Number, RecordedSets, mbit, seconds, table, whole

from .runs import (
    RANDOM,
    RANDOM_DELAYED,
    REGULAR,
    REGULAR_DELAYED,
    SEVEN,
    count_within,
    expected_ratio,
    step_names,
)


def set_settings(f: Facts, sets: RecordedSets) -> None:
    """Set what the trials are set to, and what the steps from the first try on came to."""
    _lab(f, sets)
    _steps(f, sets)


def _lab(f: Facts, sets: RecordedSets) -> None:
    """What the lab is set to, and the paper's values of C."""
    seven, low, high = sets.trial(SEVEN), *expected_ratio(sets)
    f.trials, f.pitfalls = whole(len(sets.lab.trials)), whole(len(sets.lab.file.pitfalls))
    f.expected_low, f.expected_high = Number(low), Number(high)
    f.trial_lasts = seconds(seven["duration_s"])
    f.trial_rate = mbit(1e6 * seven["rate_mbit"])
    f.c_plain = Number(1)
    f.c_regular, f.c_regular_delayed = Number(REGULAR), Number(REGULAR_DELAYED)
    f.c_random, f.c_random_delayed = Number(RANDOM), Number(RANDOM_DELAYED)


def _steps(f: Facts, sets: RecordedSets) -> None:
    """The first try's and the last step's runs, and how many are in the range that lab.toml expects."""
    steps = step_names(sets)
    within = [count_within(sets, sets.runs(name)) for name in steps]
    f.steps = whole(len(steps))
    claimed = {run.trial for run in sets.runs(steps[-1])}
    at_length = [run for run in sets.runs(steps[6]) if run.trial in claimed]
    f.in_range_at_240 = whole(count_within(sets, at_length))
    f.in_range_first, f.in_range_loss, f.in_range_longer = map(whole, within[:3])
    f.in_range_mtu, f.in_range_offloads, f.in_range_last = map(whole, within[5:])
    f.first_runs, f.last_runs = (whole(len(sets.runs(steps[n]))) for n in (0, -1))
    f.offloads_bring_it_to_the_line = within[6] > 2 * within[5]
    ratios = sorted(run.ratio for run in sets.runs(steps[0]) if run.ratio is not None)
    f.first_try = table(("of the sixty", "goodput over the formula's"), (
        ("smallest", Number(ratios[0], digits=2)),
        ("half of them are below", Number(ratios[len(ratios) // 2], digits=2)),
        ("largest", Number(ratios[-1])),
    ))  # fmt: skip
