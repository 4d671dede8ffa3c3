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
    large_buffer, small_buffer = sets.trial(HIGHSPEED_LARGE), sets.trial(HIGHSPEED_SMALL)
    f.rate = whole(large_buffer["rate_mbit"], "Mbit/s")
    f.large = size(large_buffer["buffer_bytes"])
    f.small = size(small_buffer["buffer_bytes"])
    f.burst = size(large_buffer["burst_bytes"])
    f.large_packets = whole(large_buffer["buffer_bytes"] / model.USUAL_FRAME_BYTES)
    f.first_delay = ms(large_buffer["first_delay_ms"])
    f.back_delay = ms(large_buffer["back_delay_ms"])
    f.first_rtt = ms(first_rtt_ms(large_buffer))
    f.second_rtt = ms(2 * large_buffer["second_delay_ms"] + large_buffer["back_delay_ms"])
    f.start_spread = ms(large_buffer["start_spread_ms"])
    f.bdp = size(bdp_bytes(large_buffer))
    f.bdp_packets = whole(bdp_bytes(large_buffer) / model.USUAL_FRAME_BYTES)
    f.trials = table(
        ("trial", "algorithm", "buffer", "of the longer path's BDP", "RTT of s1's path"),
        (
            (
                Number(number),
                str(trial["congestion_control"]),
                size(trial["buffer_bytes"]),
                percent(trial["buffer_bytes"] / bdp_bytes(trial)),
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
