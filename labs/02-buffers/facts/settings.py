"""What the lab is set to, and its first try."""

from __future__ import annotations

from measuretwice.facts import (
    Facts,
    Number,
    RecordedSets,
    mbit,
    measured,
    ms,
    param,
    percent,
    size,
    table,
    whole,
)
from measuretwice.tcp import model

from .runs import HIGHSPEED_LARGE, HIGHSPEED_SMALL, bdp_bytes, first_rtt_ms


def set_settings(f: Facts, sets: RecordedSets) -> None:
    """Set what the trials are set to, and what the set first-try came to."""
    _settings(f, sets)
    _first_try(f, sets)


def _settings(f: Facts, sets: RecordedSets) -> None:
    """What trials 1 and 2 are set to, and what follows from it: s1's path is the longer one."""
    one, two = sets.trial(HIGHSPEED_LARGE), sets.trial(HIGHSPEED_SMALL)
    f.rate = whole(one["rate_mbit"], "Mbit/s")
    f.large = size(one["buffer_bytes"])
    f.small = size(two["buffer_bytes"])
    f.burst = size(one["burst_bytes"])
    f.large_packets = whole(one["buffer_bytes"] / model.USUAL_FRAME_BYTES)
    f.first_delay = ms(one["first_delay_ms"])
    f.back_delay = ms(one["back_delay_ms"])
    f.first_rtt = ms(first_rtt_ms(one))
    f.second_rtt = ms(2 * one["second_delay_ms"] + one["back_delay_ms"])
    f.start_spread = ms(one["start_spread_ms"])
    f.bdp = size(bdp_bytes(one))
    f.bdp_packets = whole(bdp_bytes(one) / model.USUAL_FRAME_BYTES)
    f.trials = table(
        ("trial", "algorithm", "buffer", "of the longer path's BDP", "RTT of s1's path"),
        (
            (
                Number(number),
                str(trial["congestion_control"]),
                size(trial["buffer_bytes"]),
                percent(trial["buffer_bytes"] / bdp_bytes(one)),
                ms(first_rtt_ms(trial)),
            )
            for number, trial in ((number, sets.trial(number)) for number in sets.lab.trials)
        ),
    )


def _first_try(f: Facts, sets: RecordedSets) -> None:
    """The first try: one run."""
    run = sets.run("first-try")
    f.first_jain = Number(measured(run, "jains_index"))
    f.first_buffer = size(param(run, "buffer_bytes"))
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
